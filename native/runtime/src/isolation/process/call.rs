//! A call of a sync function: the rows of a batch in shares, each in the worker of a place.
//!
//! Guarantees: each row is called at most once. A row is in hand from the end of the row before it until its own end, which
//! the worker writes down ([`super::journal`]); so when the worker ends, whatever the reason, the row in hand is known, and
//! the rows after it have not been called.

use super::mailbox::Reader;
use super::message::{read_failure, FAILED, RECORDS, RESULTS, RUN};
use super::parcel::{self, Take};
use super::place::{NoWorker, Place, Seated, TRIES};
use super::record;
use super::worker::{Stopped, Worker, START_TIME};
use crate::arrow::{check, check_rows, Batch, Layout, Owned};
use crate::exports::Ran;
use crate::failure::Failure;
use crate::results;
use crate::signature::Signature;
use crate::value::Value;
use arroyo_udf_abi as abi;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a worker that has run rows before may take to begin, at least.
const BEGIN_TIME: Duration = Duration::from_secs(1);

#[derive(Clone, Copy)]
pub struct Call<'a> {
    pub function: u32,
    pub signature: &'static Signature,
    pub batch: &'a Arc<Batch>,
    /// How long a worker may take for the rows that it is handed.
    pub timeout: Option<Duration>,
}

/// Rows that one worker runs, and how they ended.
pub struct Share {
    rows: Range<usize>,
    /// Of the first rows, one for each; null for those that failed.
    pub values: Vec<Value>,
    /// By row of the batch.
    pub failed: Vec<(usize, String)>,
    /// Those of them that timed out.
    pub late: Vec<usize>,
    /// The worker that has it has begun.
    begun: bool,
    /// When that worker must have answered; before it has begun: when it must have begun.
    until: Option<Instant>,
}

impl Share {
    pub fn new(rows: Range<usize>) -> Share {
        Share { values: Vec::with_capacity(rows.len()), failed: Vec::new(), late: Vec::new(), begun: false, until: None, rows }
    }

    pub fn first(&self) -> usize {
        self.rows.start
    }

    /// The rows that have not ended.
    fn left(&self) -> Range<usize> {
        self.rows.start + self.values.len()..self.rows.end
    }

    fn push(&mut self, record: record::Record) {
        let row = self.left().start;
        match record {
            Ok(value) => self.values.push(value),
            Err(text) => {
                self.values.push(Value::Null);
                self.failed.push((row, results::error_text(text)));
            }
        }
    }

    /// So many of the rows that have not ended are errors.
    fn fail_some(&mut self, rows: usize, text: &str) {
        (0..rows).for_each(|_| self.push(Err(text.to_string())));
    }

    /// All rows that have not ended are errors.
    pub fn fail(&mut self, text: &str) {
        self.fail_some(self.left().len(), text);
    }
}

/// How a worker answered.
enum Answer {
    /// The share has all rows.
    Rows,
    Results(Ran),
    /// The function was not called.
    Failed(Failure),
    /// The worker is gone: how it ended, and whether it had begun.
    Died {
        how: String,
        begun: bool,
    },
    /// It took too long, and is gone.
    Late,
    /// What it has written makes no sense, and it is gone. Nobody knows which rows were called.
    Broken(String),
}

/// What a worker does for a call.
struct Task {
    share: usize,
    /// How many workers in a row have ended before they began.
    in_vain: u32,
    /// The share has not reached it.
    failed: Option<NoResults>,
}

/// Why a call has no results.
pub enum NoResults {
    /// No row was called.
    NotCalled(Failure),
    /// The host waits no longer.
    Stopped(Stopped),
}

impl Call<'_> {
    /// Runs shares in the workers of seats: each takes the next share when it has done one. Some: the results of a vectorised
    /// function.
    pub fn run(&self, seats: &mut [Seated], shares: &mut [Share]) -> Result<Option<Ran>, NoResults> {
        for seat in seats.iter_mut() {
            seat.occupy().map_err(|why| self.no_worker(why))?; // all of them start at once
        }
        for seat in seats.iter_mut() {
            seat.ready().map_err(|why| self.no_worker(why))?;
        }
        let mut taken = 0;
        let mut tasks: Vec<_> = seats.iter_mut().map(|seat| self.take(seat, shares, &mut taken)).collect();
        let mut none_called = true;
        let mut failure = None;
        let mut results = None;
        while tasks.iter().any(Option::is_some) {
            let mut all_wait = true;
            for (seat, place) in seats.iter_mut().zip(&mut tasks) {
                let Some(task) = place else { continue };
                let Some(ended) = self.advance(seat, &mut shares[task.share], task) else { continue };
                all_wait = false;
                *place = None;
                match ended {
                    Ok(ran) => {
                        (none_called, results) = (false, ran);
                        *place = self.take(seat, shares, &mut taken);
                    }
                    Err(NoResults::NotCalled(why)) => failure = Some(why),
                    Err(NoResults::Stopped(why)) => return Err(stop(seats, &tasks, why)),
                }
            }
            let waiting = seats.iter().zip(&tasks).filter(|(_, task)| task.is_some()).map(|(seat, _)| &**seat);
            let until = tasks.iter().flatten().filter_map(|task| shares[task.share].until).min();
            if let Some(why) = if all_wait { Place::wait(waiting, until) } else { None } {
                return Err(stop(seats, &tasks, why));
            }
        }
        match failure {
            Some(failure) if none_called => return Err(NoResults::NotCalled(failure)),
            Some(failure) => shares.iter_mut().for_each(|share| share.fail(&failure.text)),
            None => {}
        }
        Ok(results)
    }

    /// Hands the next share to a worker; None: all are taken.
    fn take(&self, seat: &mut Place, shares: &mut [Share], taken: &mut usize) -> Option<Task> {
        let share = *taken;
        let posted = self.post(seat, shares.get_mut(share)?);
        *taken += 1;
        Some(Task { share, in_vain: 0, failed: posted.err() })
    }

    fn no_worker(&self, why: NoWorker) -> NoResults {
        match why {
            NoWorker::Stopped(why) => NoResults::Stopped(why),
            NoWorker::Because(why) => NoResults::NotCalled(Failure::for_now(abi::ENVIRONMENT, self.no_worker_text(&why))),
        }
    }

    fn no_worker_text(&self, why: &str) -> String {
        format!("{}: no worker process: {why}", self.signature.name)
    }

    /// Sends the rows that have not ended.
    fn post(&self, place: &mut Place, share: &mut Share) -> Result<(), NoResults> {
        let worker = place.ready().map_err(|why| self.no_worker(why))?;
        let arguments = Layout::Struct(self.signature.arguments.iter().map(|(_, layout)| layout.clone()).collect());
        let posted = worker.post(|message| {
            message.byte(RUN)?;
            message.number(self.function.into())?;
            // SAFETY: the batch has these rows, which were checked (`readable`).
            unsafe { parcel::write(self.batch.array(), &arguments, share.left(), message) }
        });
        (share.begun, share.until) = (false, Some(Instant::now() + self.begin_time(worker)));
        posted.map_err(|error| self.no_worker(NoWorker::Because(format!("no shared memory for the batch: {error}"))))
    }

    /// How long the worker may take to begin. One that has run no rows may have to import the plugin's module.
    fn begin_time(&self, worker: &Worker) -> Duration {
        match self.timeout {
            Some(timeout) if worker.life().has_answered() => timeout.clamp(BEGIN_TIME, START_TIME),
            _ => START_TIME,
        }
    }

    /// Goes on with a share, as far as that needs no waiting. Some: all its rows have ended, with the results of a vectorised
    /// function, if it is one.
    fn advance(&self, place: &mut Place, share: &mut Share, task: &mut Task) -> Option<Result<Option<Ran>, NoResults>> {
        if let Some(why) = task.failed.take() {
            return Some(self.give_up(share, why));
        }
        loop {
            let answer = self.answer(place, share)?;
            // A vectorised function returns all rows at once.
            let in_hand = if self.signature.vectorized { share.left().len() } else { 1.min(share.left().len()) };
            let during = if self.signature.vectorized { "a call for a batch with this row" } else { "this call" };
            match answer {
                Answer::Results(ran) => return Some(Ok(Some(ran))),
                Answer::Failed(failure) if share.values.is_empty() => return Some(Err(NoResults::NotCalled(failure))),
                Answer::Failed(failure) => share.fail(&failure.text),
                Answer::Broken(why) => share.fail(&format!("the worker process was ended, because its answer is broken: {why}")),
                Answer::Died { how, begun: true } => share.fail_some(in_hand, &format!("{how} during {during}")),
                Answer::Died { how, begun: false } => {
                    task.in_vain += 1;
                    if task.in_vain == TRIES {
                        let why = NoWorker::Because(format!("{how} before it called the function, {TRIES} times in a row"));
                        return Some(self.give_up(share, self.no_worker(why)));
                    }
                }
                Answer::Late => {
                    let seconds = self.timeout.unwrap_or_default().as_secs_f64();
                    let text = format!("timed out (timeout {seconds} s) during {during}; its worker process was ended");
                    share.late.extend(share.left().take(in_hand));
                    share.fail_some(in_hand, &text);
                }
                Answer::Rows => {}
            }
            if share.left().is_empty() {
                share.until = None;
                return Some(Ok(None));
            }
            if let Err(why) = self.post(place, share) {
                return Some(self.give_up(share, why));
            }
        }
    }

    /// There is no worker for the rows that have not ended.
    fn give_up(&self, share: &mut Share, why: NoResults) -> Result<Option<Ran>, NoResults> {
        match why {
            NoResults::NotCalled(failure) if !share.values.is_empty() => {
                share.fail(&failure.text);
                Ok(None)
            }
            why => Err(why),
        }
    }

    /// What the worker has answered. None: nothing yet.
    fn answer(&self, place: &mut Place, share: &mut Share) -> Option<Answer> {
        let Some(worker) = place.worker() else { return Some(Answer::Died { how: "the worker process is gone".into(), begun: false }) };
        if !share.begun && worker.has_begun() {
            (share.begun, share.until) = (true, self.timeout.map(|timeout| Instant::now() + timeout));
        }
        let is_late = !worker.has_answered() && share.until.is_some_and(|until| until <= Instant::now());
        if is_late {
            worker.kill(); // first, so that no further row begins
        } else if !worker.has_answered() && worker.lives() {
            return None;
        }
        let (begun, whole, before) = (worker.has_begun(), worker.has_answered(), share.values.len());
        let read = match worker.answer() {
            Ok(_) if !begun => Ok(None),
            Ok(mut message) => self.read(&mut message, whole, share),
            Err(error) => Err(error.to_string()),
        };
        // A time that is over was pause enough.
        if share.values.len() > before || is_late || matches!(read, Ok(Some(_))) {
            worker.life().set_answered();
        }
        Some(match read {
            Ok(Some(answer)) => {
                worker.take();
                answer
            }
            Ok(None) if is_late && begun => {
                place.clear();
                Answer::Late
            }
            Ok(None) => Answer::Died { how: place.clear(), begun },
            Err(broken) => {
                place.clear();
                Answer::Broken(broken)
            }
        })
    }

    /// Reads an answer, `whole` or as far as it goes; then the answer is None.
    fn read(&self, message: &mut Reader, whole: bool, share: &mut Share) -> Result<Option<Answer>, String> {
        if !whole && message.parts() == 0 {
            return Ok(None);
        }
        match message.byte()? {
            RECORDS => {
                let parts = message.parts().min(share.left().len() as u64);
                for _ in 0..parts {
                    let record = record::read(&self.signature.returns, message)?;
                    share.push(record.and_then(|value| results::fits(&self.signature.returns, &value).map(|()| value)));
                }
                match (whole, share.left().len()) {
                    (true, 0) => Ok(Some(Answer::Rows)),
                    (true, rows) => Err(format!("{rows} rows are missing")),
                    (false, _) => Ok(None),
                }
            }
            RESULTS => self.results(message).map(|ran| Some(Answer::Results(ran))),
            FAILED => read_failure(message).map(|failure| Some(Answer::Failed(failure))),
            other => Err(format!("a message of kind {other}")),
        }
    }

    fn results(&self, message: &mut Reader) -> Result<Ran, String> {
        let with_outcomes = message.byte()? != 0;
        let (fields, schema) = match with_outcomes {
            false => (vec![self.signature.returns.clone()], self.signature.run_values),
            true => (vec![self.signature.returns.clone(), Layout::Fixed(1), Layout::Text], self.signature.run_outcomes),
        };
        let array = Owned(parcel::read(&Layout::Struct(fields), Take::Copy, message)?);
        if array.0.length != self.batch.rows() as i64 {
            return Err(format!("{} results for {} rows", array.0.length, self.batch.rows()));
        }
        // SAFETY: what was read has the buffers and children of its layout.
        unsafe {
            check(&array.0, schema)?;
            check_rows(&array.0, schema, 0..self.batch.rows(), true)?;
        }
        Ok(Ran { results: array.into_array(), with_outcomes })
    }
}

/// Ends a call: the workers that have a share of it.
fn stop(seats: &mut [Seated], tasks: &[Option<Task>], why: Stopped) -> NoResults {
    let mut busy: Vec<_> = seats.iter_mut().zip(tasks).filter(|(_, task)| task.is_some()).map(|(seat, _)| seat).collect();
    Worker::kill_all(busy.iter_mut().filter_map(|seat| seat.worker()));
    busy.into_iter().for_each(|seat| drop(seat.clear()));
    NoResults::Stopped(why)
}
