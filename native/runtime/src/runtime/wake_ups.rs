//! Wake-ups: threads that wait for a condition, functions that are called at one, and the executor.
//!
//! Guarantees: a thread that waits for a condition, or a function armed for it, learns of it once it holds, after the
//! results are visible. An armed function is called once, with no lock held (R14).

use super::seats::Woken;
use super::{Runtime, State};
use crate::sync::{MutexGuard, Unpoisoned};
use arroyo_udf_abi as abi;
use std::ffi::c_void;
use std::time::{Duration, Instant};

/// A condition of [`Runtime::arm`] that no host can ask for through the table: [`Runtime::space`] (see `arroyo`).
pub const SPACE: u32 = 4;

/// As that: there are results. Unlike [`abi::RESULTS`], it does not hold only because the runtime is over.
pub const NEWS: u32 = 8;

/// How long rows that have ended may wait until the host is told of them, while the executor's turn goes on.
pub(super) const TOLD: u64 = 2_000_000;

/// How far apart two turns are, at least, that tell the host and go on, if several executors have turns.
pub(super) const TOLD_APART: u64 = 1_000_000;

/// A host's request to be called.
pub(super) struct Armed {
    condition: u32,
    function: abi::Armed,
    data: *mut c_void,
}
// SAFETY: the host promises that `function(data)` may be called from any thread.
unsafe impl Send for Armed {}

/// What to do after the mutex is given back.
#[must_use]
struct Todo {
    executors: Woken,
    wake_waiters: bool,
    call: Option<Armed>,
}

impl Runtime {
    /// See `wait` in the header. False: the time is over.
    pub fn wait(&self, condition: u32, timeout: Duration) -> bool {
        let until = Instant::now().checked_add(timeout);
        let mut state = self.lock();
        let bits = [abi::RESULTS, abi::ROOM];
        let count = |state: &mut State, by: i32| {
            for (waiting, bit) in state.waiting.iter_mut().zip(bits) {
                *waiting = waiting.wrapping_add_signed(if condition & bit != 0 { by } else { 0 });
            }
        };
        count(&mut state, 1);
        let held = loop {
            if self.holds(&state, condition) {
                break true;
            }
            let in_time;
            (state, in_time) = self.sleep(state, until);
            if !in_time {
                break false;
            }
        };
        count(&mut state, -1);
        held
    }

    /// Sleeps until a change, at most until `until`. False: it is that late already.
    pub(super) fn sleep<'s>(&self, state: MutexGuard<'s, State>, until: Option<Instant>) -> (MutexGuard<'s, State>, bool) {
        match until.map(|until| until.saturating_duration_since(Instant::now())) {
            Some(Duration::ZERO) => (state, false),
            Some(left) => (self.changed.wait_timeout(state, left).unpoisoned().0, true),
            None => (self.changed.wait(state).unpoisoned(), true),
        }
    }

    /// See `arm` in the header. True: the condition holds already, nothing is registered.
    pub fn arm(&self, condition: u32, function: abi::Armed, data: *mut c_void) -> bool {
        let mut state = self.lock();
        self.take_in(&mut state);
        let holds = self.holds(&state, condition);
        state.armed = (!holds).then_some(Armed { condition, function, data });
        holds
    }

    /// See `disarm` in the header.
    pub fn disarm(&self) {
        let mut state = self.lock();
        state.armed = None;
        while state.calling {
            state = self.changed.wait(state).unpoisoned();
        }
    }

    /// Whether a condition of `wait` and `arm` holds.
    pub(super) fn holds(&self, state: &State, condition: u32) -> bool {
        let over = state.is_over();
        let stopping = state.machine.stopping().is_some();
        condition & abi::RESULTS != 0 && (over || state.news)
            || condition & abi::ROOM != 0 && (over || stopping || self.inbox.has_room())
            || condition & NEWS != 0 && state.news
            || condition & SPACE != 0 && (over || stopping || state.space() > 0)
    }

    /// Gives the lock back after a change, then wakes every sleeper whose condition holds now. Keeps the time.
    pub(super) fn wake_after(&self, mut state: MutexGuard<'_, State>) {
        state.note_news();
        self.wake_others(state);
    }

    /// As `wake_after`, but the host is not told of results that are new.
    pub(super) fn wake_others(&self, mut state: MutexGuard<'_, State>) {
        let todo = self.todo(&mut state);
        drop(state);
        self.act(todo);
    }

    /// The wake-ups that a change makes necessary.
    fn todo(&self, state: &mut State) -> Todo {
        self.keep_time(state);
        let mut executors = Woken::new();
        if self.inbox.is_asleep() {
            state.wake_seats(&mut executors);
            self.inbox.set_asleep(state.any_asleep());
        }
        let wakes = |bit: u32, waiting: u32| waiting > 0 && self.holds(state, bit);
        let wake_waiters = wakes(abi::RESULTS, state.waiting[0]) || wakes(abi::ROOM, state.waiting[1]);
        let ready = !state.calling && state.armed.as_ref().is_some_and(|armed| self.holds(state, armed.condition));
        let call = if ready { state.armed.take() } else { None };
        state.calling |= call.is_some();
        Todo { executors, wake_waiters, call }
    }

    fn act(&self, todo: Todo) {
        todo.executors.iter().for_each(|executor| executor.wake());
        if todo.wake_waiters {
            self.changed.notify_all();
        }
        if let Some(armed) = todo.call {
            // SAFETY: the host promises that the function may be called from any thread until disarm has returned, and
            // disarm waits for `calling`.
            unsafe { (armed.function)(armed.data) };
            let mut state = self.lock();
            state.calling = false;
            // The host may have armed again while the former request was answered.
            state.note_news();
            let todo = self.todo(&mut state);
            drop(state);
            self.changed.notify_all();
            if todo.call.is_some() || !todo.executors.is_empty() {
                self.act(todo);
            }
        }
    }
}

impl State {
    /// The host is told now of the results that there are, and the timer need not tell it.
    fn note_news(&mut self) {
        // In this order: of an outcome that is left from now on, the executor learns that nobody tells; any other is seen.
        self.set_told(false);
        self.take_outcomes();
        self.news = self.has_results();
        self.tell_by = None;
        if self.news {
            self.set_told(true);
        }
    }

    fn set_told(&self, is_told: bool) {
        self.seats.iter().for_each(|seat| seat.outbox.set_told(is_told));
    }
}
