//! The seat of an executor that works on one thread: it takes some rows at once and leaves outcomes in its outbox, so that it
//! meets the others at the runtime's lock for some rows and not for each.
//!
//! How many rows it takes doubles while they are cheap, so that few wait behind one that is not. A call of theirs begins
//! when the executor gets to it: until then its timeout does not run.
//!
//! Guarantees: a row that was taken ahead starts in the same turn or the next; if it is cancelled before, it ends without
//! a call. Whoever has the lock and looks at rows empties the outboxes first, so an outcome counts from the moment at which
//! it was left. The host is told of it [`TOLD`](super::wake_ups::TOLD) later at most, whatever calls do then: who leaves the
//! first outcome that nobody is to tell of asks the timer; in a turn, before the next call begins, because the turn tells the
//! host anyway: when it first finds nothing to start, and at its end.

use super::executor::{After, Attempt, Orders};
use super::outbox::{Outbox, ROOM};
use super::seat::Seat;
use super::seats::SeatState;
use super::time_slice::next_rows;
use super::{Runtime, State};
use crate::call_info::{key_of, CallInfo};
use crate::machine::{Outcome, Token};
use crate::sync::MutexGuard;
use crate::timer::{lately, now, tick};
use crate::value::Value;
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;

impl State {
    /// Moves the outcomes from the outboxes to the machine.
    pub(super) fn take_outcomes(&mut self) {
        self.take_stretch();
        for seat in 0..self.seats.len() {
            while let Some((at, token, outcome)) = self.seats[seat].outbox.take() {
                let at = self.not_back(at);
                self.end(at, token, outcome);
            }
        }
    }

    /// The seat's outbox and the place there of a row that was taken ahead, among the last ones.
    pub(super) fn taken_ahead(&self, token: Token) -> Option<(&Outbox, usize)> {
        self.seats.iter().find_map(|seat| Some((&*seat.outbox, seat.taken.iter().position(|taken| *taken == token)?)))
    }

    /// Timeouts count from the beginning of a call: puts those off that come too soon, because a row was taken ahead, or waits
    /// in a worker process, which is asked ([`Seat::answer`]).
    pub(super) fn put_timeouts_off(&mut self, now: u64) {
        for token in self.machine.due(now) {
            let begun = match self.taken_ahead(token) {
                Some((outbox, place)) => Some(outbox.begun(place).map_or(now, |since| if place > 0 { since + tick() } else { since })),
                None => self.ask_for(token).then_some(now),
            };
            if let Some(begun) = begun {
                self.machine.call_began(token, begun);
            }
        }
    }

    /// Tells the machine when calls began, if that was more than a tick after their rows were taken, at `took`: the executor is
    /// about to take further rows.
    fn begin_calls(&mut self, seat: usize, took: u64) {
        let SeatState { taken, outbox, .. } = &mut self.seats[seat];
        let count = taken.len();
        for (place, token) in taken.drain(..).enumerate().skip(1) {
            match (outbox.begun(place), &mut self.remote) {
                (Some(since), Some(remote)) => remote.call_began(token, since),
                (Some(since), None) if since > took => self.machine.call_began(token, since + tick()),
                _ => {}
            }
        }
        outbox.forget_begun(count);
    }
}

pub struct Ahead {
    pub(super) seat: Seat,
    pub(super) timeout: Option<u64>,
    /// Ends of calls are told to within less than a tick: a limit that adapts compares how long calls take.
    exact: bool,
    /// The most rows that it takes at once.
    most: u64,
    /// With their places in the outbox; None: the call counts as begun.
    pub(super) taken: VecDeque<(Option<usize>, Attempt)>,
    /// How many rows it took last, and when.
    pub(super) rows: u64,
    pub(super) took: u64,
    /// The last call has ended at once, so the next may, too.
    pub(super) ends_at_once: bool,
    /// The settings do without an attempt for each row.
    pub(super) is_plain: bool,
    /// As that, and no other executor takes rows of this runtime. Known once rows were taken.
    pub(super) is_alone: bool,
    pub(super) in_stretch: bool,
    pub(super) telling: Telling,
}

/// Who tells the host of rows that have ended.
#[derive(Default)]
pub(super) struct Telling {
    pub in_turn: bool,
    /// In a turn in which the host has not been told.
    is_first: bool,
    /// Nobody is to tell the host of an outcome that was left in this turn: before a call begins, the timer is.
    pub is_untold: bool,
}

impl Telling {
    /// There is nothing to start; `tell_by` is from before the outbox was emptied. The first time in a turn that something has
    /// ended then, this tells the host, which need not wait for what an executor does around its calls. Later the end of the
    /// turn does, unless a call begins before. The timer is not needed for it.
    pub fn nothing_starts(&mut self, runtime: &Runtime, mut state: MutexGuard<'_, State>, tell_by: Option<u64>) {
        if self.is_first && state.has_results() {
            (self.is_first, self.is_untold) = (false, false);
            return runtime.wake_after(state);
        }
        if self.in_turn && tell_by.is_none() && state.tell_by.take().is_some() {
            self.is_untold = true;
        }
        runtime.keep_time(&mut state);
    }
}

impl Deref for Ahead {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        &self.seat
    }
}

impl Ahead {
    pub fn new(seat: Seat) -> Ahead {
        let settings = seat.settings();
        let most = if settings.gather.is_some() { 1 } else { ROOM as u64 };
        let is_plain = settings.gather.is_none() && settings.share.is_none() && settings.rate.is_none() && !settings.adaptive;
        Ahead {
            timeout: settings.timeout,
            exact: settings.adaptive,
            most,
            seat,
            taken: VecDeque::with_capacity(ROOM),
            rows: 1,
            took: 0,
            ends_at_once: false,
            is_plain,
            is_alone: false,
            in_stretch: false,
            telling: Telling::default(),
        }
    }

    pub fn runtime(&self) -> &Arc<Runtime> {
        self.seat.runtime()
    }

    /// As [`Seat::begin_turn`].
    pub fn begin_turn(&mut self, orders: &mut Orders) {
        (self.telling.in_turn, self.telling.is_first) = (true, true);
        self.seat.begin_turn(orders);
        if self.taken.is_empty() {
            return;
        }
        orders.cancelled.retain(|&token| match self.taken.iter().position(|(_, attempt)| attempt.token == token) {
            Some(place) => {
                self.taken.remove(place);
                self.seat.end(token, Outcome::Cancelled);
                false
            }
            None => true,
        });
    }

    /// Calls go on, and a turn follows soon: its end tells the host of those that end.
    pub fn go_on(&mut self) {
        self.telling.in_turn = true;
    }

    /// As [`Seat::end_turn`].
    pub fn end_turn(&mut self) -> After {
        self.telling = Telling::default();
        self.seat.end_turn_with(!self.taken.is_empty())
    }

    /// Whether it has rows that have not started.
    #[cfg(all(test, not(loom)))]
    pub(super) fn has_taken(&self) -> bool {
        !self.taken.is_empty()
    }

    /// Whether an attempt could start now.
    pub fn can_start(&self) -> bool {
        !self.taken.is_empty() || self.seat.can_start()
    }

    /// As [`Seat::next`]: the call begins now.
    #[inline]
    pub fn next_attempt(&mut self) -> Option<Attempt> {
        self.next_at(lately())
    }

    /// Reports an attempt. The host learns of it at the end of the turn, or a little later.
    #[inline]
    pub fn end(&mut self, token: Token, outcome: Outcome<Value>) {
        self.end_at(self.end_time(), token, outcome);
    }

    #[inline]
    fn end_time(&self) -> u64 {
        if self.exact {
            now()
        } else {
            lately()
        }
    }

    /// As [`Seat::end_and_next`]. None, too: [`Ahead::take_next`] may find rows.
    #[inline]
    pub fn end_and_next(&mut self, token: Token, outcome: Outcome<Value>) -> Option<Attempt> {
        let now = self.end_time();
        if self.is_alone && self.taken.is_empty() && !self.takes_stretch() {
            return self.end_and_take(now, token, outcome);
        }
        self.end_at(now, token, outcome);
        if self.takes_stretch() {
            return None;
        }
        self.next_at(now)
    }

    #[inline]
    fn next_at(&mut self, now: u64) -> Option<Attempt> {
        if self.taken.is_empty() {
            self.take_rows(now);
        }
        let (place, mut attempt) = self.taken.pop_front()?;
        self.call_begins();
        if let (Some(timeout), Some(place)) = (self.timeout, place) {
            let since = now.max(self.took);
            self.seat.outbox().begin(place, since);
            attempt.deadline = attempt.row_deadline.min(since.saturating_add(timeout));
        }
        Some(attempt)
    }

    /// Reports an attempt and takes the next under one lock: most calls suspend, and so there is room for one row at a time.
    fn end_and_take(&mut self, now: u64, token: Token, outcome: Outcome<Value>) -> Option<Attempt> {
        let mut state = self.seat.lock();
        state.break_off(); // a call that runs an event loop of its own comes here while its row is in hand
        state.take_outcomes();
        let now = state.not_back(now);
        state.end_untold(now, token, outcome);
        let begins = now + tick(); // when the call begins is known to a tick
        let mut attempt = state.start(now, begins, self.seat.number());
        if attempt.is_none() {
            self.seat.take_in(&mut state);
            attempt = state.start(now, begins, self.seat.number());
        }
        if state.has_results() {
            // The end of the turn tells the host, unless a call begins before.
            self.telling.is_untold = self.telling.in_turn && attempt.is_none();
            if !self.telling.is_untold {
                state.tell_soon();
            }
        }
        self.seat.keep_time(&mut state);
        attempt
    }

    #[inline]
    fn end_at(&mut self, now: u64, token: Token, outcome: Outcome<Value>) {
        if let Err((at, token, outcome)) = self.seat.outbox().leave((now, token, outcome)) {
            self.hand_over(at, token, outcome);
        }
        if self.seat.outbox().nobody_tells() {
            self.telling.is_untold = true;
            if !self.telling.in_turn {
                self.have_told();
            }
        }
    }

    /// The author's code runs from now on: who is to tell the host of what was left must know it.
    #[inline]
    pub(super) fn call_begins(&mut self) {
        if self.telling.is_untold {
            self.have_told();
        }
    }

    /// Makes the timer tell the host of what is in the outbox.
    #[cold]
    pub(super) fn have_told(&mut self) {
        self.telling.is_untold = false;
        let mut state = self.seat.lock();
        self.seat.outbox().set_told(true);
        state.take_outcomes();
        state.tell_soon();
        self.seat.keep_time(&mut state);
    }

    /// What the call of an attempt, which begins now, can ask about itself: its deadline is exact, where the runtime counts from
    /// up to a tick later.
    pub fn call_info_of(&self, attempt: &Attempt) -> CallInfo {
        let Attempt { id, attempt: number, row_deadline, batch, row, .. } = attempt;
        let key = key_of(self.lineage(), *id, batch, *row);
        CallInfo::of(*id, *number, self.deadline_from_now(*row_deadline), key, batch.traced())
    }

    /// When a call that begins now times out, unless its row does before.
    pub(super) fn deadline_from_now(&self, row_deadline: u64) -> u64 {
        self.timeout.map_or(row_deadline, |timeout| row_deadline.min(now().saturating_add(timeout)))
    }

    /// As [`Seat::closed`].
    pub fn closed(&self, result: Result<(), String>) {
        self.seat.closed(result);
    }

    /// The outbox is full.
    #[cold]
    pub(super) fn hand_over(&self, at: u64, token: Token, outcome: Outcome<Value>) {
        let mut state = self.seat.lock();
        state.take_outcomes();
        let at = state.not_back(at);
        state.end(at, token, outcome);
        self.seat.keep_time(&mut state);
    }

    /// Takes rows `lately`. Where others are free for rows, it matters how long the last ones took, and the clock is read.
    fn take_rows(&mut self, lately: u64) {
        let is_exact = !self.is_alone;
        let now = if is_exact { now() } else { lately };
        self.take_at(now, is_exact, next_rows(self.rows, now.saturating_sub(self.took)));
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn take(&mut self, now: u64, rows: u64) {
        self.take_at(now, true, rows);
    }

    /// Takes a fair part of the rows that may start, `rows` at most: others may be free for the rest.
    fn take_at(&mut self, now: u64, is_exact: bool, rows: u64) {
        let took = std::mem::replace(&mut self.took, now);
        self.rows = rows;
        let mut state = self.seat.lock();
        let tell_by = state.tell_by;
        state.break_off(); // a call that runs an event loop of its own comes here while its row is in hand
        let seat = self.seat.number();
        self.is_alone = self.is_plain && state.is_alone();
        let shares = if state.is_shared() { 2 * state.seats.len() as u64 } else { 1 };
        if state.machine.queued() < shares * self.rows {
            self.seat.take_in(&mut state);
        } else {
            state.take_outcomes();
        }
        let now = state.not_back(now);
        state.begin_calls(seat, took);
        let allowed = u64::from(state.machine.settings().allowed_in_flight) / shares;
        let waiting = state.remote.as_ref().map_or_else(|| state.machine.queued(), |remote| remote.waiting());
        let rows = (waiting / shares).min(allowed).min(self.rows).clamp(1, self.most);
        for place in 0..rows as usize {
            // When a call begins is known to a tick; of the first one exactly, if the clock was read.
            let begins = if place == 0 && is_exact { now } else { now + tick() };
            let Some(attempt) = state.start(now, begins, seat) else { break };
            state.seats[seat].taken.push(attempt.token);
            self.taken.push_back((Some(place), attempt));
        }
        if self.taken.is_empty() {
            return self.telling.nothing_starts(&self.seat, state, tell_by);
        }
        self.seat.keep_time(&mut state);
        self.seat.wake_for_more(state);
    }
}
