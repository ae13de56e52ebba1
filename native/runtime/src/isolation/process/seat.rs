//! The place of a worker: there is one worker in it at a time, and the next one after its death.

use super::mailbox::Reader;
use super::message::{Start, FAILED, RECORDS, RESULTS, RUN};
use super::parcel::{self, Take};
use super::record;
use super::worker::{Further, Spec, Worker};
use crate::arrow::{check, Batch, Layout};
use crate::exports::Ran;
use crate::failure::Failure;
use crate::results;
use crate::signature::Signature;
use crate::sync::Unpoisoned;
use crate::value::Value;
use arroyo_udf_abi::{self as abi, ArrowArray};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The pause before a worker starts after one that answered no row, doubled with each further one.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

pub struct Seat {
    place: Mutex<Place>,
    waiting: AtomicUsize,
}

/// A place while one thread uses it.
pub type Seated<'a> = MutexGuard<'a, Place>;

pub struct Place {
    spec: Arc<Spec>,
    worker: Option<Worker>,
    /// How many workers in a row have ended without a row answered; and when the next one may start.
    failures: u32,
    not_before: Option<Instant>,
    /// No worker starts any more.
    closed: bool,
}

impl Seat {
    pub fn new(spec: Arc<Spec>) -> Seat {
        Seat { place: Mutex::new(Place { spec, worker: None, failures: 0, not_before: None, closed: false }), waiting: AtomicUsize::new(0) }
    }

    /// None: another thread uses it.
    pub fn try_take(&self) -> Option<Seated<'_>> {
        match self.place.try_lock() {
            Ok(place) => Some(place),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    pub fn take(&self) -> Seated<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let place = self.place.lock().unpoisoned();
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        place
    }

    /// How many threads wait for it.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

impl Place {
    /// Ends the worker, and lets no other start.
    pub fn leave(&mut self) {
        self.closed = true;
        if let Some(worker) = self.worker.take() {
            worker.leave();
        }
    }

    /// Makes sure that there is a worker, which may not be ready yet.
    fn occupy(&mut self) -> Result<(), String> {
        if self.worker.as_ref().is_some_and(|worker| !worker.lives()) {
            self.clear(); // it ended between two calls: no row is lost
        }
        if self.closed {
            return Err("the plugin is closed".into());
        }
        if self.worker.is_none() {
            if let Some(at) = self.not_before.take() {
                std::thread::sleep(at.saturating_duration_since(Instant::now()));
            }
            match Worker::start(&self.spec) {
                Ok(worker) => self.worker = Some(worker),
                Err(text) => {
                    self.count_failure();
                    return Err(text);
                }
            }
        }
        Ok(())
    }

    /// The worker, ready for work.
    fn ready(&mut self) -> Result<&mut Worker, String> {
        self.occupy()?;
        let why = match &mut self.worker {
            Some(worker) => worker.ready().err(),
            None => Some("there is no worker".to_string()),
        };
        if let Some(why) = why {
            let how = self.clear();
            return Err(format!("{how}: {why}"));
        }
        self.worker.as_mut().ok_or_else(|| "there is no worker".to_string())
    }

    /// A lane for a started function, in a worker that is ready.
    pub fn further(&mut self, start: &Start) -> Result<Further, String> {
        let worker = self.ready()?;
        worker.answered += 1; // a function that fails at its start is no reason to pause
        worker.add_lane(start).map_err(|error| format!("no shared memory for its calls: {error}"))
    }

    /// How the worker of a lane ended, which has ended.
    pub fn obituary(&mut self, further: &Further) -> String {
        if self.worker.as_ref().is_some_and(|worker| worker.has(further)) {
            return self.clear();
        }
        further.obituary.get().cloned().unwrap_or_else(|| "the worker process has ended".to_string())
    }

    /// Removes the worker, and says how it ended.
    fn clear(&mut self) -> String {
        let Some(worker) = self.worker.take() else { return "there is no worker process".to_string() };
        if worker.answered == 0 {
            self.count_failure();
        } else {
            (self.failures, self.not_before) = (0, None);
        }
        worker.bury()
    }

    fn count_failure(&mut self) {
        let pause = PAUSE.saturating_mul(1 << self.failures.min(10)).min(LONGEST_PAUSE);
        self.failures += 1;
        self.not_before = Some(Instant::now() + pause);
    }
}

/// A call of a sync function.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    pub function: u32,
    pub signature: &'static Signature,
    pub batch: &'a Arc<Batch>,
}

/// Rows that one worker runs, and how they ended.
pub struct Share {
    rows: Range<usize>,
    /// Of the first rows, one for each; null for those that failed.
    pub values: Vec<Value>,
    /// By row of the batch.
    pub failed: Vec<(usize, String)>,
}

impl Share {
    pub fn new(rows: Range<usize>) -> Share {
        Share { values: Vec::with_capacity(rows.len()), failed: Vec::new(), rows }
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

    /// All rows that have not ended are errors.
    pub fn fail(&mut self, text: &str) {
        for _ in self.left() {
            self.push(Err(text.to_string()));
        }
    }
}

/// How a worker answered.
enum Answer {
    /// The share has all rows.
    Rows,
    Results(Ran),
    /// The function was not called.
    Failed(Failure),
    /// The worker is gone: how it ended.
    Died(String),
}

impl Call<'_> {
    /// Runs shares, each in the worker of a seat, at the same time. Some: the results of a vectorised function. An error: no
    /// row was called.
    pub fn run(&self, seats: &mut [Seated], shares: &mut [Share]) -> Result<Option<Ran>, Failure> {
        let no_worker = |why: String| Failure::for_now(abi::ENVIRONMENT, format!("{}: no worker process: {why}", self.signature.name));
        for seat in seats.iter_mut() {
            seat.occupy().map_err(no_worker)?; // all of them start at once
        }
        for seat in seats.iter_mut() {
            seat.ready().map_err(no_worker)?;
        }
        for (seat, share) in seats.iter_mut().zip(shares.iter()) {
            self.post(seat, share).map_err(no_worker)?;
        }
        let mut none_called = true;
        let mut failure = None;
        let mut results = None;
        for (seat, share) in seats.iter_mut().zip(shares.iter_mut()) {
            match self.collect(seat, share) {
                Ok(ran) => {
                    none_called = false;
                    results = ran;
                }
                Err(why) => failure = Some(why),
            }
        }
        match failure {
            Some(failure) if none_called => return Err(failure),
            Some(failure) => shares.iter_mut().for_each(|share| share.fail(&failure.text)),
            None => {}
        }
        Ok(results)
    }

    fn post(&self, place: &mut Place, share: &Share) -> Result<(), String> {
        let worker = place.ready()?;
        let arguments = Layout::Struct(self.signature.arguments.iter().map(|(_, layout)| layout.clone()).collect());
        let posted = worker.post(|message| {
            message.byte(RUN)?;
            message.number(self.function.into())?;
            // SAFETY: the batch has these rows, which were checked (`readable`).
            unsafe { parcel::write(self.batch.array(), &arguments, share.left(), message) }
        });
        posted.map_err(|error| format!("no shared memory for the batch: {error}"))
    }

    /// Waits until all rows of a share have ended. Some: the results of a vectorised function. An error: no row was called.
    fn collect(&self, place: &mut Place, share: &mut Share) -> Result<Option<Ran>, Failure> {
        loop {
            let how = match self.answer(place, share) {
                Answer::Rows => return Ok(None),
                Answer::Results(ran) => return Ok(Some(ran)),
                Answer::Failed(failure) if share.values.is_empty() => return Err(failure),
                Answer::Failed(failure) => {
                    share.fail(&failure.text);
                    return Ok(None);
                }
                Answer::Died(how) => how,
            };
            if self.signature.vectorized && !how.is_empty() {
                share.fail(&format!("{how} during a call for a batch with this row"));
                return Ok(None);
            }
            if !how.is_empty() {
                share.push(Err(format!("{how} during this call")));
            }
            if share.left().is_empty() {
                return Ok(None);
            }
            if let Err(why) = self.post(place, share) {
                share.fail(&format!("no worker process: {why}"));
                return Ok(None);
            }
        }
    }

    /// Waits for an answer. [`Answer::Died`] is empty if no row was in hand.
    fn answer(&self, place: &mut Place, share: &mut Share) -> Answer {
        let Some(worker) = &mut place.worker else { return Answer::Died(String::new()) };
        let waited = worker.wait(None);
        let begun = worker.has_begun();
        let read = match worker.answer() {
            Ok(_) if !begun => Ok(None),
            Ok(mut message) => self.read(&mut message, waited.is_ok(), share),
            Err(error) => Err(error.to_string()),
        };
        worker.answered += share.values.len() as u64;
        match read {
            Ok(Some(answer)) => {
                worker.take();
                if matches!(answer, Answer::Results(_)) {
                    worker.answered += self.batch.rows() as u64;
                }
                answer
            }
            Ok(None) => {
                let how = place.clear();
                Answer::Died(if begun { how } else { String::new() })
            }
            Err(broken) => {
                place.clear();
                Answer::Died(format!("the worker process wrote a broken answer ({broken}), and was ended,"))
            }
        }
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
            FAILED => {
                let status = message.number()? as abi::Status;
                let text = String::from_utf8_lossy(&message.text()?).into_owned();
                Ok(Some(Answer::Failed(Failure::new(status, text))))
            }
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
        unsafe { check(&array.0, schema) }?;
        Ok(Ran { results: array.into_array(), with_outcomes })
    }
}

/// An array that is released unless it goes on.
struct Owned(ArrowArray);

impl Owned {
    fn into_array(mut self) -> ArrowArray {
        std::mem::replace(&mut self.0, ArrowArray::empty())
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(release) = self.0.release {
            // SAFETY: ours, released once.
            unsafe { release(&mut self.0) };
        }
    }
}
