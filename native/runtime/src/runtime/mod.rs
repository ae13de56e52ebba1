//! One started function: the inbox, the machine under its mutex, and the threads that wait for them.
//!
//! | module         | what it does                                                                  |
//! |----------------|-------------------------------------------------------------------------------|
//! | [`host`]       | the host's side: send, drain, cancel, statistics, stop                        |
//! | [`executor`]   | what an executor is: turns and their duties                                   |
//! | [`seat`]       | the executor's side: its seat, attempts and how they ended, closing           |
//! | `seats`        | which executor is woken, and which one runs an attempt                        |
//! | [`ahead`]      | rows that an executor takes ahead                                             |
//! | [`stretch`]    | rows that an executor calls one after the other, without attempts             |
//! | `outbox`       | what it says of them without the lock                                         |
//! | [`remote`]     | calls of a runtime in a worker process, whose machine is the host's           |
//! | [`wake_ups`]   | wait, arm, disarm; the wake-ups that a change makes necessary                 |
//! | [`time_slice`] | how long an executor starts rows before others get the thread                 |
//!
//! Guarantees: under the mutex no user code runs, no array of the other side is released, and no thread is woken. Work of
//! that kind is collected there and done after the lock is given back. A sleeper announces itself under the mutex
//! (`set_asleep`, `waiting`, `armed`) and is woken once, by the thread that makes its condition true.
//!
//! Assumes: executors, usually one, that take turns; any number of host threads.
//!
//! `send` takes the mutex only to wake the executor. Otherwise it leaves its batch in the [`Inbox`], and each method that
//! must see all batches moves them to the machine first ([`Runtime::take_in`]). Lock order: the mutex, then the inbox.

pub mod ahead;
pub mod executor;
pub mod host;
mod outbox;
pub mod remote;
#[cfg(test)]
pub mod samples;
pub mod seat;
mod seats;
pub mod stretch;
#[cfg(all(test, not(loom)))]
mod tests;
pub mod time_slice;
pub mod wake_ups;

pub use ahead::Ahead;
pub use executor::{After, Attempt, Executor, Orders, Turn};
pub use host::{Drained, NotTaken, Put};
pub use seat::{Seat, WeakSeat};
pub use stretch::{Next, Stretch};
pub use time_slice::TimeSlice;
pub use wake_ups::{NEWS, SPACE};

use crate::arrow::{ArgumentArray, Batch};
use crate::failure::Failure;
use crate::inbox::{Inbox, Sent, Size};
use crate::log;
use crate::machine::{Counts, Machine, Settings};
use crate::options::Chosen;
use crate::panics::catch_own;
use crate::rates;
use crate::signature::Signature;
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::timer::{now, Alarm, Ticking};
use crate::value::Value;
use arroyo_udf_abi as abi;
use remote::Remote;
use seats::{Runners, SeatState};
use std::sync::{Arc, Weak};
use std::time::Instant;
use wake_ups::Armed;

pub struct Runtime {
    signature: &'static Signature,
    lineage: [u8; 16],
    /// Whether attempts need the time; and whether rows do when they are accepted.
    timed: bool,
    rows_timed: bool,
    inbox: Inbox<ArgumentArray>,
    state: Mutex<State>,
    /// For threads in wait, disarm and stop.
    changed: Condvar,
    log: log::Place,
    me: Weak<Runtime>,
}

struct State {
    /// In a worker process it has no rows: see [`remote`].
    machine: Machine<Arc<Batch>, Value>,
    remote: Option<Box<Remote>>,
    /// Batches on their way from the inbox to the machine; empty otherwise.
    arrived: Vec<Sent<ArgumentArray>>,
    seats: Vec<SeatState>,
    runners: Runners,
    wake_ups: u64,
    blocked: u64,
    left_behind: u64,
    discarded: u64,
    /// There are results from turns that are over, so that a host wakes once per turn and not once per row.
    news: bool,
    /// When the timer tells the host of results, if nobody does it before.
    tell_by: Option<u64>,
    /// When a turn told the host after which another followed.
    told_in_turn: u64,
    /// How many threads in `wait` sleep for each condition.
    waiting: [u32; 2],
    armed: Option<Armed>,
    /// An armed function runs now.
    calling: bool,
    /// The latest time that the machine has seen.
    latest: u64,
    /// Rings when the machine next needs the time, or earlier.
    alarm: Alarm,
    /// Since when executors close: one has been told to.
    closing: Option<Instant>,
    /// How the executors closed: a Context's `close` may fail.
    closed: Option<Result<(), String>>,
    /// A stop has given up on attempts that are stuck.
    stuck: bool,
    /// See [`Executor::interrupts`].
    interrupts: bool,
}

impl State {
    /// `now` was read before the lock was taken: another thread may have passed on a later time since.
    fn not_back(&mut self, now: u64) -> u64 {
        self.latest = self.latest.max(now);
        self.latest
    }

    /// Rows have ended: whatever the executor does now, the host is told soon. The caller keeps the time.
    fn tell_soon(&mut self) {
        if self.tell_by.is_none() && !self.news {
            self.tell_by = Some(now() + wake_ups::TOLD);
        }
    }

    /// As `tell_soon`, at a time.
    fn tell_by(&mut self, by: u64) {
        if !self.news {
            self.tell_by = Some(self.tell_by.map_or(by, |known| known.min(by)));
        }
    }

    /// Whether there is something for the host.
    fn has_results(&self) -> bool {
        self.machine.has_results() || self.remote.as_ref().is_some_and(|remote| remote.has_news())
    }

    /// Whether an attempt may start.
    fn can_start(&self) -> bool {
        self.remote.as_ref().map_or_else(|| self.machine.can_start(), |remote| remote.can_start())
    }

    /// Whether the executor may close.
    fn is_settled(&self) -> bool {
        self.machine.is_settled() && self.remote.as_ref().is_none_or(|remote| remote.is_empty())
    }

    fn counts(&self) -> Counts {
        let counts = self.machine.counts();
        self.remote.as_ref().map_or(counts, |remote| Counts {
            queued: remote.waiting(),
            running: remote.running(),
            stuck: remote.stuck(),
            ..counts
        })
    }

    /// Whether only drains are left.
    fn is_over(&self) -> bool {
        self.has_ended() || self.machine.poisoned().is_some()
    }

    /// Whether a stop need not wait any longer: the executor has ended, or a stop has given up on it.
    fn has_ended(&self) -> bool {
        self.closed.is_some() || self.stuck
    }
}

impl Runtime {
    /// A runtime without an executor: [`Seat::serve`] sets it. Fails if there is no thread for timers.
    pub fn new(signature: &'static Signature, chosen: Chosen) -> Result<Arc<Runtime>, Failure> {
        // Here, so that nothing that comes later can fail for want of it. Under loom no time passes.
        #[cfg(not(all(test, loom)))]
        crate::timer::start()
            .map_err(|error| Failure::for_now(abi::ENVIRONMENT, format!("{}: no thread for timers: {error}", signature.name)))?;
        let Settings { deadline, gather, rate, .. } = chosen.settings;
        let rows_timed = deadline.is_some() || gather.is_some() || rate.is_some();
        let write_arguments =
            Box::new(|batch: &Arc<Batch>, row, into: &mut Vec<u8>| batch.write_arguments(&signature.arguments, row, into));
        let mut machine = Machine::sharing(chosen.settings, write_arguments);
        if let Some(rate) = rate {
            machine.paced_by(rates::shared(&signature.name, rate));
        }
        Ok(Arc::new_cyclic(|me| Runtime {
            signature,
            lineage: chosen.lineage,
            timed: chosen.settings.is_timed(),
            rows_timed,
            inbox: Inbox::new(Size { rows: chosen.settings.max_rows, bytes: chosen.settings.max_bytes }),
            state: Mutex::new(State {
                machine,
                remote: None,
                arrived: Vec::new(),
                news: false,
                tell_by: None,
                told_in_turn: 0,
                seats: Vec::new(),
                runners: Runners::default(),
                wake_ups: 0,
                blocked: 0,
                left_behind: 0,
                discarded: 0,
                waiting: [0; 2],
                armed: None,
                calling: false,
                latest: 0,
                alarm: Alarm::new(),
                closing: None,
                closed: None,
                stuck: false,
                interrupts: true,
            }),
            changed: Condvar::new(),
            log: log::Place::default(),
            me: me.clone(),
        }))
    }

    pub fn signature(&self) -> &'static Signature {
        self.signature
    }

    pub fn log(&self) -> &log::Place {
        &self.log
    }

    /// Together with a row's id, the idempotency key of the row's calls (R10).
    pub fn lineage(&self) -> [u8; 16] {
        self.lineage
    }

    pub fn settings(&self) -> Settings {
        *self.lock().machine.settings()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Unlike other locks (`sync::Unpoisoned`), this one guards a state that a panic may leave half changed. Such a
        // panic is ours, so the runtime ends.
        self.state.lock().unwrap_or_else(|poisoned| {
            let mut state = poisoned.into_inner();
            self.poison_locked(&mut state, "internal error: the state of the runtime is broken");
            state
        })
    }

    /// Moves the sent batches from the inbox to the machine, and the outcomes that executors have left.
    fn take_in(&self, state: &mut State) {
        state.take_outcomes();
        self.inbox.take(&mut state.arrived);
        self.accept(&mut state.machine, &mut state.arrived);
    }

    /// Makes a change that may end the acceptance of batches: the machine has every batch accepted before it, and the inbox
    /// accepts none after it.
    fn between_sends(&self, state: &mut State, change: impl FnOnce(&mut Machine<Arc<Batch>, Value>)) {
        state.take_outcomes();
        let State { machine, arrived, .. } = state;
        self.inbox.take_and(arrived, |arrived| {
            self.accept(machine, arrived);
            change(machine);
            machine.stopping().is_some() || machine.poisoned().is_some()
        });
    }

    fn accept(&self, machine: &mut Machine<Arc<Batch>, Value>, arrived: &mut Vec<Sent<ArgumentArray>>) {
        for Sent { at, first_id, size, batch } in arrived.drain(..) {
            let deadline = batch.deadline();
            let batch = Batch::of(batch, &self.signature.arguments);
            let taken = machine.accept_until(at, deadline, first_id, size.rows, size.bytes, batch);
            taken.expect("the machine takes what the inbox has taken: it holds no more, and stops no sooner");
        }
    }

    fn check(&self, state: &State) -> Result<(), Failure> {
        match state.machine.poisoned() {
            Some(text) => {
                let status = if state.machine.is_overwhelmed() { abi::USER_CODE } else { abi::INTERNAL };
                Err(Failure::new(status, format!("{}: {text}", self.signature.name)))
            }
            None => Ok(()),
        }
    }

    /// The time, if the machine's settings make it matter: reading the clock costs a tenth of a row that returns at once.
    /// Read before the lock is taken, so that no thread waits for it.
    fn clock(&self) -> u64 {
        if self.timed {
            now()
        } else {
            0
        }
    }

    /// Makes the timer call when the machine next needs the time.
    fn keep_time(&self, state: &mut State) {
        if let Some(at) = state.machine.next_deadline().into_iter().chain(state.tell_by).min() {
            state.alarm.set(at, || self.me.clone());
        }
    }

    fn poison_locked(&self, state: &mut State, text: &str) {
        let now = state.not_back(now());
        state.break_off();
        self.between_sends(state, |machine| machine.poison(now, text));
        state.remote.iter_mut().for_each(|remote| remote.cancel_all());
        self.keep_time(state); // for calls that ignore their cancellation
    }

    /// Runs a part of the toolkit. A panic in it poisons this runtime (R17), and the answer is None.
    pub fn guard<T>(&self, body: impl FnOnce() -> T) -> Option<T> {
        catch_own(body).map_err(|text| catch_own(|| self.poison(&text))).ok()
    }
}

impl Ticking for Runtime {
    fn tick(&self, now: u64) {
        self.guard(|| {
            let mut state = self.lock();
            state.alarm.withdraw();
            let now = state.not_back(now);
            state.take_outcomes();
            // The alarm may be for a turn that has told the host by itself: each wake-up more costs the host a drain.
            if state.machine.next_deadline().into_iter().chain(state.tell_by).all(|at| at > now) {
                return self.keep_time(&mut state);
            }
            if state.machine.stretch_must_end(now) {
                state.break_off();
            }
            state.put_timeouts_off(now);
            self.between_sends(&mut state, |machine| machine.tick(now));
            let stuck_for_good = state.machine.is_stuck();
            let poisoned = state.machine.poisoned().is_some();
            self.wake_after(state);
            if poisoned || stuck_for_good {
                self.changed.notify_all(); // for a stop that waits
            }
        });
    }
}
