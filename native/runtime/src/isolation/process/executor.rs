//! The host's side of a started function: an executor of the host's runtime whose calls run in one worker.
//!
//! A thread of its own takes the runtime's turns, sends attempts to the worker, and reports how they ended. If the worker
//! dies, the attempts that it had are errors, which the machine retries if it was told to; the next worker starts the
//! function again, with a Context of its own. Attempts may wait in the worker: it is asked whether their calls have begun
//! before they time out.
//!
//! The thread keeps no runtime while it sleeps. So a runtime that is released with stuck attempts is freed, and the worker is
//! told to let go of it.

use super::attempts::{closed, Outgoing, Running, Said, LEFT};
use super::mailbox::{wait, Bell};
use super::message::{read_failure, Counts, Start, FAILED, FORGET, LEAVE, READY, SAID};
use super::place::{NoWorker, Seat as Place, TRIES};
use super::worker::{Further, Interrupted, Stopped, TICK};
use crate::abi;
use crate::failure::Failure;
use crate::limits::{CLOSE_TIME, GRACE, INIT_TIME};
use crate::machine::{Outcome, Token};
use crate::runtime::remote::Ended;
use crate::runtime::{After, Executor, Orders, Runtime, Seat, WeakSeat};
use crate::signature::Signature;
use crate::threads::{self, OWN_STACK};
use crate::timer;
use std::collections::HashMap;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{mpsc, Arc};
use std::time::{Duration, Instant};

/// The most attempts in one message.
const MOST_AT_ONCE: usize = 1024;

/// Serves a runtime with one worker in each place, and waits until all have started the function. If the host ends that, an
/// `init` goes on in its worker, and its Context is closed.
pub fn start(places: &[Arc<Place>], interrupted: Interrupted, function: u32, runtime: &Arc<Runtime>) -> Result<(), Failure> {
    let (settings, signature) = (runtime.settings(), runtime.signature());
    let most = (settings.allowed_in_flight as usize).div_ceil(places.len());
    let start = Start {
        function,
        allowed_in_flight: most as u32,
        batch_size: settings.gather.map_or(0, |gather| gather.rows),
        timeout: settings.timeout.unwrap_or(u64::MAX),
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
            seat.can_be_asked();
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
    /// The attempts that the worker has.
    running: HashMap<Token, Running>,
    /// What it has not been told.
    untold: Orders,
    /// How many attempts are stuck.
    stuck: usize,
    /// How many attempts it takes.
    most: usize,
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
            running: HashMap::new(),
            untold: Orders::default(),
            stuck: 0,
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
            self.note(&mut orders);
            if let Err(why) = self.receive(&seat) {
                self.fail(&seat, &format!("the worker process was ended, because its answer is broken: {why}"));
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
                // Orders that came in this turn leave the seat awake, so no wake-up follows; those that wait for the lane
                // follow its bell.
                After::Again if !is_full || self.is_lane_free() => {}
                _ => {
                    drop(seat);
                    self.sleep();
                }
            }
        }
    }

    /// Keeps orders for the next message.
    fn note(&mut self, orders: &mut Orders) {
        for token in orders.cancelled.drain(..) {
            if let Some(attempt) = self.running.get_mut(&token) {
                attempt.is_cancelled = true;
                self.untold.cancelled.push(token);
            }
        }
        for stuck in orders.stuck.drain(..) {
            if let Some(attempt) = self.running.get_mut(&stuck.token).filter(|attempt| !attempt.is_stuck) {
                attempt.is_stuck = true;
                self.stuck += 1;
                self.untold.stuck.push(stuck);
            }
        }
        self.untold.unsure.extend(orders.unsure.drain(..).filter(|token| self.running.contains_key(token)));
    }

    /// Whether no more attempts can be sent now.
    fn is_full(&self) -> bool {
        self.running.len() - self.stuck >= self.most || self.worker.is_some() && !self.is_lane_free()
    }

    /// Whether there is a worker that takes a message now.
    fn is_lane_free(&self) -> bool {
        self.worker.as_ref().is_some_and(|worker| worker.lane.sent.is_free())
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
        self.await_start(&mut worker).inspect_err(|_| {
            // It may start all the same: then it closes its Context.
            drop(worker.lane.post(|message| message.byte(LEAVE)));
        })?;
        self.counted = Counts::default();
        self.worker = Some(worker);
        Ok(())
    }

    /// Waits until the function has started.
    fn await_start(&self, worker: &mut Further) -> Result<(), Unopened> {
        let name = &self.signature.name;
        let until = Instant::now() + INIT_TIME + 2 * GRACE;
        while worker.lane.received.is_free() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                // The worker keeps the time of init, and says so if that is over.
                let text = format!("{name}: start failed: its worker process has not answered for {} s", (INIT_TIME + 2 * GRACE).as_secs());
                return Err(Failure::for_now(abi::ENVIRONMENT, text).into());
            }
            if worker.lane.wait(Some(worker.end.as_raw_fd()), Some(left)) && worker.lane.received.is_free() {
                let how = self.place.take().obituary(worker);
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
            let said = match message.byte()? {
                SAID => Said::read(self.signature, &mut message),
                other => Err(format!("the worker process wrote a message of kind {other}")),
            };
            worker.lane.take();
            let life = Arc::clone(&worker.life);
            let said = said?;
            self.hear(seat, &said);
            for (token, begun) in said.begun {
                let begun = Some(begun).filter(|&since| since != u64::MAX);
                let begun = begun.map(|since| timer::from_system_clock(since).saturating_add(timer::tick()));
                seat.answer(token, begun.map(|begun| begun.min(timer::now())));
            }
            if !said.ended.is_empty() {
                life.set_answered();
            }
            if said.poison.is_empty() {
                self.end(seat, said.ended)?;
                continue;
            }
            // What ended before the poison counts; what it has cancelled becomes an error with its text (R17).
            let is_cancelled = |(_, ended): &(Token, Ended)| *ended == Ended::Whole(Outcome::Cancelled);
            let (cancelled, ended) = said.ended.into_iter().partition(is_cancelled);
            self.end(seat, ended)?;
            seat.poison(&said.poison);
            self.end(seat, cancelled)?;
        }
    }

    /// Attempts have ended in the worker.
    fn end(&mut self, seat: &Seat, ended: Vec<(Token, Ended)>) -> Result<(), String> {
        for (token, ended) in ended {
            let Some(attempt) = self.running.remove(&token) else { continue };
            self.stuck -= usize::from(attempt.is_stuck);
            attempt.end(seat, token, ended)?;
        }
        Ok(())
    }

    /// What the worker's runtime would have counted and written.
    fn hear(&mut self, seat: &Seat, said: &Said) {
        let before = std::mem::replace(&mut self.counted, said.counts);
        let new = |now: u64, before: u64| now.saturating_sub(before).min(1 << 16);
        seat.count_left_behind(new(said.counts.left_behind, before.left_behind));
        (0..new(said.counts.blocked, before.blocked)).for_each(|_| seat.count_blocked());
        (0..new(said.counts.discarded, before.discarded)).for_each(|_| seat.count_discarded());
        said.lines.iter().for_each(|line| seat.log().warn(&String::from_utf8_lossy(line)));
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
        self.fail_all(seat, &text);
    }

    /// Ends the worker, which makes no sense or takes nothing: attempts that it has are errors, and the next ones have another.
    fn fail(&mut self, seat: &Seat, text: &str) {
        if let Some(worker) = self.worker.take() {
            worker.kill();
        }
        self.fail_all(seat, text);
    }

    fn fail_all(&mut self, seat: &Seat, text: &str) {
        for (token, attempt) in std::mem::take(&mut self.running) {
            attempt.fail(seat, token, text);
        }
        (self.untold, self.stuck) = (Orders::default(), 0);
    }

    /// Sends attempts and cancellations, as many as there is room for.
    fn send(&mut self, seat: &Seat) {
        if self.worker.is_none() && seat.can_start() {
            if let Err(failure) = self.open() {
                // Each attempt of now is answered; the next ones try again, after the pause that the place makes.
                for _ in 0..self.most {
                    let Some(attempt) = seat.next() else { return };
                    let ended = vec![None; 1 + attempt.others.len()];
                    Running { ended, sent: Vec::new(), is_cancelled: false, is_stuck: false }.fail(seat, attempt.token, &failure.text);
                }
            }
        }
        if !self.is_lane_free() {
            return;
        }
        let mut outgoing = Outgoing::default();
        while self.running.len() - self.stuck < self.most && outgoing.attempts.len() < MOST_AT_ONCE {
            let Some(attempt) = seat.next() else { break };
            let rows = outgoing.check(self.signature, &attempt).into_iter();
            let ended: Vec<_> = rows.map(|row| row.err().map(|text| Outcome::Error(text.into()))).collect();
            let sent: Vec<usize> = (0..ended.len()).filter(|&row| ended[row].is_none()).collect();
            let token = attempt.token;
            if sent.is_empty() {
                Running { ended, sent, is_cancelled: false, is_stuck: false }.report(seat, token);
                continue;
            }
            outgoing.add(attempt, &sent);
            self.running.insert(token, Running { ended, sent, is_cancelled: false, is_stuck: false });
        }
        if outgoing.attempts.is_empty() && self.untold.is_empty() {
            return;
        }
        let (Some(worker), signature, untold) = (&mut self.worker, self.signature, &self.untold) else { return };
        match worker.lane.post(|message| outgoing.write(signature, untold, message)) {
            Ok(()) => self.untold = Orders::default(),
            Err(error) => {
                // The orders need next to no memory.
                let told = untold.is_empty() || worker.lane.post(|message| Outgoing::default().write(signature, untold, message)).is_ok();
                let text = format!("no shared memory for its arguments: {error}");
                for (attempt, _) in outgoing.attempts {
                    if let Some(running) = self.running.remove(&attempt.token) {
                        running.fail(seat, attempt.token, &text);
                    }
                }
                if told {
                    self.untold = Orders::default();
                } else {
                    self.fail(seat, &format!("the worker process was ended, because there is no shared memory for orders: {error}"));
                }
            }
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
                    if message.byte()? == SAID {
                        let said = Said::read(self.signature, &mut message)?;
                        self.hear(seat, &said);
                    }
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
