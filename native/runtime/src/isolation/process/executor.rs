//! The host's side of a started function: an executor of the host's runtime whose calls run in one worker.
//!
//! A thread of its own takes the runtime's turns, sends attempts to the worker, and reports how they ended. If the worker
//! dies, the attempts that had started are errors, which the machine retries if it was told to; the next worker starts the
//! function again, with a Context of its own.
//!
//! The thread keeps no runtime while it sleeps. So a runtime that is released with stuck attempts is freed, and the worker is
//! told to let go of it.

use super::attempts::{closed, count, read, rows, write, write_log, Row};
use super::mailbox::{wait, Bell};
use super::message::{read_failure, Counts, Start, FAILED, FORGET, LEAVE, READY};
use super::place::{NoWorker, Seat as Place, TRIES};
use super::worker::{Further, Interrupted, Stopped, TICK};
use crate::abi;
use crate::failure::Failure;
use crate::limits::{CLOSE_TIME, GRACE, INIT_TIME};
use crate::machine::{Outcome, Token};
use crate::runtime::{After, Attempt, Executor, Orders, Runtime, Seat, WeakSeat};
use crate::signature::Signature;
use crate::threads::{self, OWN_STACK};
use crate::value::Value;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{mpsc, Arc};
use std::time::{Duration, Instant};

/// The most attempts in one message.
const MOST_AT_ONCE: usize = 1024;

/// The text of a row whose call the worker has ended because the plugin was closed.
const LEFT: &str = "the plugin was closed during this call";

/// Serves a runtime with one worker in each place, and waits until all have started the function. If the host ends that, an
/// `init` goes on in its worker, and its Context is closed.
pub fn start(places: &[Arc<Place>], interrupted: Interrupted, function: u32, runtime: &Arc<Runtime>) -> Result<(), Failure> {
    let (settings, signature) = (runtime.settings(), runtime.signature());
    let most = (settings.allowed_in_flight as usize).div_ceil(places.len());
    let start = Start {
        function,
        allowed_in_flight: most as u32,
        batch_size: settings.gather.map_or(0, |gather| gather.rows),
        lineage: runtime.lineage(),
    };
    let (tell, told) = mpsc::channel();
    let no_room = |error: io::Error| Failure::for_now(abi::ENVIRONMENT, format!("{}: no thread for its calls: {error}", signature.name));
    let seats: Vec<Seat> = places.iter().map(|_| Seat::take(runtime)).collect();
    let mut started = Ok(());
    for (place, seat) in places.iter().zip(seats) {
        let spawned = started.clone().and_then(|()| {
            let bell = Arc::new(Bell::create().map_err(no_room)?);
            seat.serve(Box::new(ProcessExecutor(Arc::clone(&bell))));
            let (place, seat, tell) = (Arc::clone(place), seat.clone(), tell.clone());
            let sender = move || Sender::new(place, start, &seat, bell, most).live(seat, tell);
            threads::spawn("udf-process", OWN_STACK, sender).map_err(no_room)
        });
        if let Err(failure) = spawned.map(drop) {
            seat.closed(Ok(()));
            started = Err(failure);
        }
    }
    drop(tell);
    let all = loop {
        match told.recv_timeout(TICK) {
            Ok(one) => started = started.and(one),
            Err(mpsc::RecvTimeoutError::Disconnected) => break started,
            Err(mpsc::RecvTimeoutError::Timeout) if interrupted() => break Err(Stopped::Interrupted.failure(&signature.name)),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
    };
    all.inspect_err(|_| runtime.stop_soon(crate::machine::Stop::Cancel))
}

/// The runtime's end of the thread.
struct ProcessExecutor(Arc<Bell>);

impl Executor for ProcessExecutor {
    fn wake(&self) {
        self.0.ring();
    }
}

impl Drop for ProcessExecutor {
    fn drop(&mut self) {
        self.0.ring(); // the runtime is gone
    }
}

/// The thread's end.
struct Sender {
    place: Arc<Place>,
    start: Start,
    signature: &'static Signature,
    seat: WeakSeat,
    bell: Arc<Bell>,
    /// None: the worker has died.
    worker: Option<Further>,
    /// What it had counted when it last said so.
    counted: Counts,
    /// The attempts that the worker has, by the keys of their first rows, which it knows.
    running: BTreeMap<u64, Running>,
    keys: HashMap<Token, u64>,
    /// The rows of cancelled attempts that the worker has not been told of.
    untold: Vec<u64>,
    /// The first rows of stuck attempts that it has not been told of: key and id. And how many attempts are stuck.
    untold_stuck: Vec<(u64, u64)>,
    stuck: usize,
    next_key: u64,
    /// How many attempts it takes.
    most: usize,
}

/// An attempt that the worker has.
struct Running {
    token: Token,
    /// How its rows ended; None: not yet.
    ended: Vec<Option<Outcome<Value>>>,
    /// Those of them that were sent, in the order of their keys.
    sent: Vec<usize>,
    is_cancelled: bool,
    /// Out of the cap (R8).
    is_stuck: bool,
}

impl Running {
    /// Whether a micro-batch that was sent has failed as a whole.
    fn failed_whole(&self) -> bool {
        let cancelled = |row: &usize| matches!(self.ended[*row], Some(Outcome::Cancelled));
        !self.is_cancelled && self.sent.len() > 1 && self.sent.iter().all(cancelled)
    }

    /// Reports an attempt whose rows have all ended.
    fn report(self, seat: &Seat) {
        if self.failed_whole() {
            seat.end(self.token, Outcome::Error("the call has failed".into())); // the machine splits it
            return;
        }
        let is_cancelled = self.is_cancelled;
        if is_cancelled && self.ended.iter().all(|row| matches!(row, Some(Outcome::Cancelled))) {
            seat.end(self.token, Outcome::Cancelled); // whatever came too late, the worker has counted
            return;
        }
        let mut outcomes = self.ended.into_iter().map(|outcome| match outcome {
            Some(Outcome::Error(_)) | None if is_cancelled => Outcome::Cancelled, // its row has ended before
            Some(Outcome::Cancelled) | None if !is_cancelled => Outcome::Error(LEFT.into()), // the machine has not asked for it
            outcome => outcome.unwrap_or(Outcome::Cancelled),
        });
        match (outcomes.next(), outcomes.len()) {
            (Some(only), 0) => drop(seat.end(self.token, only)),
            (first, _) => seat.end_rows(self.token, first.into_iter().chain(outcomes)),
        }
    }
}

/// Why a function has not started in a worker.
enum Unopened {
    /// The worker ended; another may do better.
    Ended(Failure),
    /// It says why, or says nothing for too long.
    Refused(Failure),
}

impl From<Failure> for Unopened {
    fn from(failure: Failure) -> Unopened {
        Unopened::Refused(failure)
    }
}

impl Sender {
    fn new(place: Arc<Place>, start: Start, seat: &Seat, bell: Arc<Bell>, most: usize) -> Sender {
        Sender {
            place,
            start,
            signature: seat.signature(),
            seat: seat.downgrade(),
            bell,
            worker: None,
            counted: Counts::default(),
            running: BTreeMap::new(),
            keys: HashMap::new(),
            untold: Vec::new(),
            untold_stuck: Vec::new(),
            stuck: 0,
            next_key: 0,
            most,
        }
    }

    /// The thread's life. A panic of ours poisons the runtime (R17).
    fn live(mut self, seat: Seat, tell: mpsc::Sender<Result<(), Failure>>) {
        let opened = self.open();
        let is_open = opened.is_ok();
        if !is_open {
            seat.closed(Ok(()));
        }
        let _ = tell.send(opened);
        drop(tell); // `start` waits for all
        if is_open {
            let runtime = Arc::downgrade(seat.runtime());
            drop(seat);
            if crate::panics::catch_own(|| self.serve()).is_err() {
                if let (Some(runtime), Some(seat)) = (runtime.upgrade(), self.seat.upgrade()) {
                    runtime.poison("internal error: the sender of attempts has failed");
                    seat.closed(Ok(()));
                }
            }
        }
    }

    fn serve(&mut self) {
        let mut orders = Orders::default();
        loop {
            let Some(seat) = self.seat.upgrade() else { return self.let_go() };
            seat.begin_turn(&mut orders);
            for token in orders.cancelled.drain(..) {
                let Some(&key) = self.keys.get(&token) else { continue };
                if let Some(attempt) = self.running.get_mut(&key) {
                    attempt.is_cancelled = true;
                    self.untold.extend(key..key + attempt.sent.len() as u64);
                }
            }
            for stuck in orders.stuck.drain(..) {
                let Some(&key) = self.keys.get(&stuck.token) else { continue };
                if let Some(attempt) = self.running.get_mut(&key).filter(|attempt| !attempt.is_stuck) {
                    attempt.is_stuck = true;
                    self.stuck += 1;
                    self.untold_stuck.push((key, stuck.id));
                }
            }
            if let Err(text) = self.receive(&seat) {
                seat.poison(&text);
            }
            self.send(&seat);
            let is_full = self.is_full();
            seat.set_full(is_full);
            match seat.end_turn() {
                After::Settled => {
                    let closed = if seat.is_given_up() {
                        self.let_go();
                        Ok(())
                    } else {
                        self.close(&seat)
                    };
                    return seat.closed(closed);
                }
                After::Again if !is_full => {}
                _ => {
                    drop(seat);
                    self.sleep();
                }
            }
        }
    }

    /// Whether no more attempts can be sent now.
    fn is_full(&self) -> bool {
        self.running.len() - self.stuck >= self.most || self.worker.as_ref().is_some_and(|worker| !worker.lane.sent.is_free())
    }

    fn sleep(&self) {
        match &self.worker {
            Some(worker) => wait(&[&self.bell, &worker.lane.ours], &[worker.end.as_raw_fd()], None),
            None => wait(&[&self.bell], &[], None),
        };
    }

    /// Starts the function in a worker. One that ends before it has is followed by another, a few times: something may have
    /// killed it that has nothing to do with the function.
    fn open(&mut self) -> Result<(), Failure> {
        let mut tries = 1;
        loop {
            match self.open_once() {
                Err(Unopened::Ended(_)) if tries < TRIES => tries += 1,
                Err(Unopened::Ended(failure) | Unopened::Refused(failure)) => return Err(failure),
                Ok(()) => return Ok(()),
            }
        }
    }

    fn open_once(&mut self) -> Result<(), Unopened> {
        let name = &self.signature.name;
        let no_worker = |why: NoWorker| match why {
            NoWorker::Because(why) => Failure::for_now(abi::ENVIRONMENT, format!("{name}: no worker process: {why}")),
            NoWorker::Stopped(why) => why.failure(name),
        };
        let mut worker = self.place.take().further(&self.start).map_err(no_worker)?;
        let until = Instant::now() + INIT_TIME + 2 * GRACE;
        while worker.lane.received.is_free() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                // The worker keeps the time of init, and says so if that is over.
                let text = format!("{name}: start failed: its worker process has not answered for {} s", (INIT_TIME + 2 * GRACE).as_secs());
                return Err(Failure::for_now(abi::ENVIRONMENT, text).into());
            }
            if worker.lane.wait(Some(worker.end.as_raw_fd()), Some(left)) && worker.lane.received.is_free() {
                let how = self.place.take().obituary(&worker);
                return Err(Unopened::Ended(Failure::new(abi::USER_CODE, format!("{name}: start failed: {how}"))));
            }
        }
        let broken = |why: String| Failure::internal(format!("{name}: the worker process wrote a broken answer: {why}"));
        let mut message = worker.lane.received.read().map_err(|error| broken(error.to_string()))?;
        match message.byte().map_err(broken)? {
            READY => {}
            FAILED => {
                worker.life.set_answered(); // a function that fails at its start is no reason to pause
                return Err(read_failure(&mut message).map_err(broken)?.into());
            }
            other => return Err(broken(format!("a message of kind {other}")).into()),
        }
        worker.lane.take();
        self.counted = Counts::default();
        self.worker = Some(worker);
        Ok(())
    }

    /// Takes what the worker has said. An error: its answer is broken.
    fn receive(&mut self, seat: &Seat) -> Result<(), String> {
        loop {
            let Some(worker) = &mut self.worker else { return Ok(()) };
            if worker.lane.received.is_free() {
                let mut end = libc::pollfd { fd: worker.end.as_raw_fd(), events: libc::POLLIN, revents: 0 };
                // SAFETY: one element; it does not wait.
                let has_ended = unsafe { libc::poll(&mut end, 1, 0) > 0 };
                if has_ended && worker.lane.received.is_free() {
                    self.bury(seat);
                }
                return Ok(());
            }
            let mut message = worker.lane.received.read().map_err(|error| error.to_string())?;
            let ended = read(self.signature, &mut message, seat, &mut self.counted);
            worker.lane.take();
            let life = Arc::clone(&worker.life);
            for (key, outcome) in ended? {
                let Some((&first, attempt)) = self.running.range_mut(..=key).next_back() else { continue };
                let Some(&row) = attempt.sent.get((key - first) as usize) else { continue };
                attempt.ended[row] = Some(outcome);
                life.set_answered();
                if attempt.ended.iter().all(Option::is_some) {
                    if let Some(attempt) = self.running.remove(&first) {
                        self.keys.remove(&attempt.token);
                        self.stuck -= usize::from(attempt.is_stuck);
                        attempt.report(seat);
                    }
                }
            }
        }
    }

    /// The worker has died: attempts that had started are errors.
    fn bury(&mut self, seat: &Seat) {
        let Some(worker) = self.worker.take() else { return };
        let text = loop {
            // A sync call may have the place for long, but notices the same end and says how it came.
            if let Some(how) = worker.life.obituary() {
                break format!("{how} during this call");
            }
            match self.place.try_take() {
                Some(place) if place.is_closed() => break LEFT.to_string(),
                Some(mut place) => break format!("{} during this call", place.obituary(&worker)),
                None => std::thread::sleep(Duration::from_millis(1)), // until one of the two is so, which is soon
            }
        };
        for mut attempt in std::mem::take(&mut self.running).into_values() {
            for row in attempt.ended.iter_mut().filter(|row| row.is_none()) {
                *row = Some(Outcome::Error(text.as_str().into()));
            }
            attempt.report(seat);
        }
        self.keys.clear();
        self.untold.clear();
        self.untold_stuck.clear();
        self.stuck = 0;
    }

    /// Sends attempts and cancellations, as many as there is room for.
    fn send(&mut self, seat: &Seat) {
        if self.worker.is_none() && seat.can_start() {
            if let Err(failure) = self.open() {
                // Each attempt of now is answered; the next ones try again, after the pause that the place makes.
                for _ in 0..self.most {
                    let Some(attempt) = seat.next() else { return };
                    fail(seat, &attempt, &failure.text);
                }
            }
        }
        if self.worker.as_ref().is_none_or(|worker| !worker.lane.sent.is_free()) {
            return;
        }
        let mut attempts = Vec::new();
        while self.running.len() - self.stuck < self.most && attempts.len() < MOST_AT_ONCE {
            let Some(attempt) = seat.next() else { break };
            let read = rows(self.signature, &attempt);
            let ended = read.iter().map(|row| row.as_ref().err().map(|text| Outcome::Error(text.as_str().into()))).collect();
            let sent = (0..read.len()).filter(|&row| read[row].is_ok()).collect::<Vec<_>>();
            let rows: Vec<Row> = read.into_iter().flatten().collect();
            let running = Running { token: attempt.token, ended, sent, is_cancelled: false, is_stuck: false };
            if rows.is_empty() {
                running.report(seat);
                continue;
            }
            let key = self.next_key;
            self.next_key += rows.len() as u64;
            self.running.insert(key, running);
            self.keys.insert(attempt.token, key);
            attempts.push((key, attempt, rows));
        }
        let untold = std::mem::take(&mut self.untold);
        let stuck = std::mem::take(&mut self.untold_stuck);
        if attempts.is_empty() && untold.is_empty() && stuck.is_empty() {
            return;
        }
        let Some(worker) = &mut self.worker else { return };
        if let Err(error) = worker.lane.post(|message| write(&untold, &stuck, &attempts, message)) {
            for (key, attempt, _) in attempts {
                self.running.remove(&key);
                self.keys.remove(&attempt.token);
                fail(seat, &attempt, &format!("no shared memory for its arguments: {error}"));
            }
            (self.untold, self.untold_stuck) = (untold, stuck);
        }
    }

    /// The runtime is stopped and nothing runs: closes the Context.
    fn close(&mut self, seat: &Seat) -> Result<(), String> {
        let Some(mut worker) = self.worker.take() else { return Ok(()) };
        let until = Instant::now() + CLOSE_TIME + 4 * GRACE;
        let mut asked = false;
        loop {
            if !asked && worker.lane.sent.is_free() {
                worker.lane.post(|message| message.byte(LEAVE)).map_err(|error| error.to_string())?;
                asked = true;
            }
            if !worker.lane.received.is_free() {
                let mut message = worker.lane.received.read().map_err(|error| error.to_string())?;
                if message.byte()? == LEAVE {
                    let (status, text) = (message.number()? as abi::Status, message.text()?);
                    count(seat, Counts::read(&mut message)?, &mut self.counted);
                    write_log(seat, &mut message)?;
                    return closed(self.signature, status, &String::from_utf8_lossy(&text));
                }
                worker.lane.take(); // outcomes that nobody waits for
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(crate::limits::close_took_too_long(CLOSE_TIME));
            }
            if worker.lane.wait(Some(worker.end.as_raw_fd()), Some(left)) && worker.lane.received.is_free() {
                return Err(self.place.take().obituary(&worker));
            }
        }
    }

    /// The runtime is gone, or its stop has given up, with attempts that were stuck: the worker closes no Context (R13).
    fn let_go(&mut self) {
        let Some(worker) = &mut self.worker else { return };
        let until = Instant::now() + GRACE;
        while !worker.lane.sent.is_free() && Instant::now() < until {
            worker.lane.wait(Some(worker.end.as_raw_fd()), Some(Duration::from_millis(100)));
        }
        if worker.lane.sent.is_free() {
            drop(worker.lane.post(|message| message.byte(FORGET)));
        }
    }
}

/// All rows of an attempt are errors.
fn fail(seat: &Seat, attempt: &Attempt, text: &str) {
    let ended = (0..=attempt.others.len()).map(|_| Some(Outcome::Error(text.into()))).collect();
    Running { token: attempt.token, ended, sent: Vec::new(), is_cancelled: false, is_stuck: false }.report(seat);
}
