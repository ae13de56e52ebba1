//! An executor's seat at its runtime: its turns, the attempts that it takes there and how they ended, closing.
//!
//! A runtime may have several executors, one for each worker of an isolation. Each takes the next row when it can, so that
//! the one machine keeps order, cap and budget; cancellations go to the executor that runs the attempt.
//!
//! Guarantees: after [`After::Asleep`], [`Executor::wake`] is called once, as soon as there is something to do for it;
//! after [`After::Again`] it is not called.

use super::executor::{After, Attempt, Executor, Orders, Turn};
use super::outbox::Outbox;
use super::remote::Ended;
use super::seats::SeatState;
use super::wake_ups::{TOLD, TOLD_APART};
use super::{Runtime, State};
use crate::machine::{Outcome, Token};
use crate::sync::MutexGuard;
use crate::timer::now;
use crate::value::Value;
use std::collections::HashSet;
use std::ops::Deref;
use std::sync::{Arc, Weak};
use std::time::Instant;

impl Runtime {
    /// Reports to the host's log that a call ignores its cancellation (R8); `details` are the executor's own.
    pub fn report_stuck(&self, row: u64, details: &str) {
        self.log.warn(&format!("{}, row {row}: a call ignores its cancellation{details}", self.signature.name));
    }

    /// Wakes a host that waits for rows which have ended by now: for outcomes reported outside a turn.
    pub fn notify(&self) {
        let mut state = self.lock();
        state.take_outcomes();
        self.wake_after(state);
    }

    /// Reports an attempt. The host learns of it at the end of the turn, or by [`Runtime::notify`]. False: it came late and
    /// is discarded.
    pub fn end(&self, token: Token, outcome: Outcome<Value>) -> bool {
        let now = self.clock();
        let mut state = self.lock();
        let now = state.not_back(now);
        let counts = state.end(now, token, outcome);
        self.keep_time(&mut state);
        counts
    }

    /// Reports the attempt of a micro-batch: an outcome for each row, in the order in which they started. Late outcomes are
    /// discarded.
    pub fn end_rows(&self, token: Token, outcomes: impl IntoIterator<Item = Outcome<Value>>) {
        let now = self.clock();
        let mut state = self.lock();
        let now = state.not_back(now);
        state.note_end(token);
        match &mut state.remote {
            Some(remote) => {
                let counts = remote.end(token, Ended::Rows(outcomes.into_iter().collect()));
                state.discarded += u64::from(!counts);
            }
            None => {
                state.discarded += u64::from(!state.machine.is_open(token));
                state.machine.end_rows(now, token, outcomes);
            }
        }
        if state.has_results() {
            state.tell_soon();
        }
        self.keep_time(&mut state);
    }

    /// Whether an attempt could start now.
    pub fn can_start(&self) -> bool {
        let mut state = self.lock();
        if !state.can_start() {
            self.take_in(&mut state);
        }
        state.can_start()
    }

    /// The executor's thread was found blocked while rows wait or run (R9).
    pub fn count_blocked(&self) {
        self.lock().blocked += 1;
    }

    /// Tasks that calls have left running were cancelled at the stop (R11).
    pub fn count_left_behind(&self, tasks: u64) {
        self.lock().left_behind += tasks;
    }

    /// An outcome came for an attempt that had ended before.
    pub fn count_discarded(&self) {
        self.lock().discarded += 1;
    }

    /// Whether a stop has answered that attempts are stuck. The Context is not closed any more then (R13): the host relies
    /// on no more of its code running.
    pub fn is_given_up(&self) -> bool {
        let state = self.lock();
        state.stuck || state.machine.is_overwhelmed()
    }

    /// Reports a failure of the toolkit itself: rows that have not ended become errors with this text, and their attempts are
    /// cancelled (R17).
    pub fn poison(&self, text: &str) {
        let mut state = self.lock();
        self.poison_locked(&mut state, text);
        self.wake_after(state);
        self.changed.notify_all();
    }

    /// There is no executor, because it could not start; and so there were no attempts.
    pub fn has_no_executor(&self) {
        let mut state = self.lock();
        state.closed.get_or_insert(Ok(()));
        self.wake_after(state);
        self.changed.notify_all();
    }
}

/// An executor's place at a runtime.
#[derive(Clone)]
pub struct Seat {
    runtime: Arc<Runtime>,
    number: usize,
    outbox: Arc<Outbox>,
}

/// A seat that does not keep its runtime.
pub struct WeakSeat {
    runtime: Weak<Runtime>,
    number: usize,
    outbox: Arc<Outbox>,
}

impl WeakSeat {
    pub fn upgrade(&self) -> Option<Seat> {
        Some(Seat { runtime: self.runtime.upgrade()?, number: self.number, outbox: Arc::clone(&self.outbox) })
    }
}

impl Deref for Seat {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        &self.runtime
    }
}

impl Seat {
    /// A further seat at a runtime. Before the first row; [`Seat::serve`] comes before that, too.
    pub fn take(runtime: &Arc<Runtime>) -> Seat {
        let mut state = runtime.lock();
        let seat = SeatState::default();
        let outbox = Arc::clone(&seat.outbox);
        state.seats.push(seat);
        Seat { runtime: Arc::clone(runtime), number: state.seats.len() - 1, outbox }
    }

    pub fn downgrade(&self) -> WeakSeat {
        WeakSeat { runtime: Arc::downgrade(&self.runtime), number: self.number, outbox: Arc::clone(&self.outbox) }
    }

    pub fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Sets the executor. Once, before the first row.
    pub fn serve(&self, executor: Box<dyn Executor>) {
        let mut state = self.lock();
        state.interrupts = executor.interrupts();
        let seat = &mut state.seats[self.number];
        assert!(seat.executor.is_none(), "a seat has one executor");
        seat.executor = Some(Arc::from(executor));
    }

    /// One turn of an executor that works in one piece.
    pub fn turn(&self, orders: &mut Orders, executor: &mut impl Turn) -> After {
        self.begin_turn(orders);
        orders.cancelled.drain(..).for_each(|attempt| executor.cancel(attempt));
        orders.stuck.drain(..).for_each(|attempt| executor.stuck(&attempt));
        executor.work();
        self.end_turn()
    }

    /// The first half of a turn: adds to `orders`.
    pub fn begin_turn(&self, orders: &mut Orders) {
        self.lock().take_orders(self.number, orders);
    }

    /// The second half of a turn: informs the host of rows that have ended, and puts the executor to sleep unless there is more to do.
    pub fn end_turn(&self) -> After {
        self.end_turn_with(false)
    }

    /// As `end_turn`. `has_rows`: the executor has taken rows that have not started yet.
    pub(super) fn end_turn_with(&self, has_rows: bool) -> After {
        let mut state = self.lock();
        // In this order: a batch that is sent from now on wakes the executor, and one that was sent before is seen.
        self.inbox.set_asleep(true);
        self.take_in(&mut state);
        let has_work = has_rows || state.has_work(self.number);
        state.seats[self.number].asleep = !has_work;
        self.inbox.set_asleep(state.any_asleep());
        let after = match has_work {
            _ if state.is_settled() => After::Settled,
            true => After::Again,
            false => After::Asleep,
        };
        if after == After::Settled {
            state.closing.get_or_insert_with(Instant::now);
        }
        if after == After::Again && self.tells_later(&mut state) {
            self.wake_others(state);
        } else {
            self.wake_after(state);
        }
        if after == After::Settled {
            self.changed.notify_all(); // a stop waits only so long for the `close`
        }
        after
    }

    /// Whether this turn, after which another follows, leaves it to a later one to tell the host: executors that share the rows
    /// have turns at different times, and each wake-up more costs the host a drain. If a call computes, the timer tells.
    fn tells_later(&self, state: &mut State) -> bool {
        if !state.is_shared() || state.news {
            return false;
        }
        state.take_outcomes();
        if !state.has_results() {
            return false;
        }
        let now = now();
        if now.saturating_sub(state.told_in_turn) >= TOLD_APART {
            state.told_in_turn = now;
            return false;
        }
        // All that the host does not know of has ended since it was told.
        self.outbox.set_told(true);
        state.tell_by(state.told_in_turn + TOLD);
        true
    }

    /// Whether the executor takes no further rows for now: then rows do not wake it, and others start them.
    pub fn set_full(&self, full: bool) {
        self.lock().seats[self.number].full = full;
    }

    /// The next attempt. None: there is none to start now; [`Seat::end_turn`] says whether to sleep.
    pub fn next(&self) -> Option<Attempt> {
        let now = self.clock();
        let mut state = self.lock();
        let now = state.not_back(now);
        self.next_locked(state, now)
    }

    /// Reports an attempt and asks for the next, under one lock. A late outcome is discarded.
    pub fn end_and_next(&self, token: Token, outcome: Outcome<Value>) -> Option<Attempt> {
        let now = self.clock();
        let mut state = self.lock();
        let now = state.not_back(now);
        state.end(now, token, outcome);
        self.next_locked(state, now)
    }

    fn next_locked(&self, mut state: MutexGuard<'_, State>, now: u64) -> Option<Attempt> {
        state.break_off(); // its rows come first
        if !state.can_start() {
            self.take_in(&mut state);
        }
        let attempt = state.start(now, now, self.number);
        self.keep_time(&mut state);
        if attempt.is_some() {
            self.wake_for_more(state);
        }
        attempt
    }

    /// Wakes the next executor, if there is more to start.
    pub(super) fn wake_for_more(&self, mut state: MutexGuard<'_, State>) {
        if state.is_shared() && self.inbox.is_asleep() {
            if let Some(executor) = state.wake_for_row() {
                self.inbox.set_asleep(state.any_asleep());
                drop(state);
                executor.wake();
            }
        }
    }

    /// Attempts that it takes do not begin at once: it can be asked whether they have, before they time out
    /// ([`Orders::unsure`]). Before the first one.
    pub fn can_be_asked(&self) {
        self.lock().seats[self.number].asked = Some(HashSet::new());
    }

    /// Answers for an attempt when its call began. None: it has not. Without an answer it times out as if it had begun.
    pub fn answer(&self, token: Token, begun: Option<u64>) {
        let mut state = self.lock();
        let Some(asked) = &mut state.seats[self.number].asked else { return };
        match begun {
            Some(begun) => {
                state.machine.call_began(token, begun);
                self.keep_time(&mut state);
            }
            None => _ = asked.remove(&token), // it is asked again
        }
    }

    /// The executor has ended; nothing that it has started runs any more. An error is why the Context's `close` failed.
    pub fn closed(&self, result: Result<(), String>) {
        let mut state = self.lock();
        state.take_outcomes();
        let now = state.not_back(now());
        if state.close_seat(self.number, now, result) {
            let failed = state.seats.iter().find_map(|seat| seat.closed.clone().and_then(Result::err));
            state.closed.get_or_insert(failed.map_or(Ok(()), Err));
        }
        self.wake_after(state);
        self.changed.notify_all();
    }
}

impl State {
    /// Starts the next attempt, at a seat; its call begins at `begins`. The caller keeps the time.
    pub(super) fn start(&mut self, now: u64, begins: u64, seat: usize) -> Option<Attempt> {
        let timeout = self.machine.settings().timeout;
        let attempt = self.remote.as_mut().map_or_else(|| self.machine.start_for(now, begins), |remote| remote.start(now, timeout));
        if self.machine.settings().share.is_some() && self.has_results() {
            self.tell_soon(); // rows have ended without a call
        }
        let attempt = attempt?;
        self.note_start(attempt.token, seat);
        Some(attempt)
    }

    /// An attempt has ended. The caller keeps the time.
    pub(super) fn end(&mut self, now: u64, token: Token, outcome: Outcome<Value>) -> bool {
        let counts = self.end_untold(now, token, outcome);
        if self.has_results() {
            self.tell_soon();
        }
        counts
    }

    /// As `end`, but the host is not told of it soon.
    pub(super) fn end_untold(&mut self, now: u64, token: Token, outcome: Outcome<Value>) -> bool {
        self.note_end(token);
        let says_something = matches!(outcome, Outcome::Value(_) | Outcome::Error(_));
        let counts = match &mut self.remote {
            Some(remote) => remote.end(token, Ended::Whole(outcome)),
            None => self.machine.end(now, token, outcome),
        };
        self.discarded += u64::from(says_something && !counts);
        counts
    }
}
