//! The stretch of an executor that works on one thread: rows that it calls one after the other, without the runtime's lock and
//! without an attempt for each. A call that suspends gets its attempt then, and the rows behind it may start again.
//!
//! Guarantees: whoever has the lock sees each outcome from the moment at which it was left. Who must know all rows (a
//! cancellation, a stop, a timeout) breaks the stretch off: then the row in hand has an attempt, and the rows behind it may
//! start again.
//! Assumes: a runtime with one seat. Only the executor begins a stretch.

use super::executor::Attempt;
use super::outbox::{News, STRETCH};
use super::time_slice::rows_within;
use super::{Ahead, State};
use crate::arrow::Batch;
use crate::call_info::{key_of, CallInfo};
use crate::machine::{Outcome, Token};
use crate::timer::{lately, tick};
use crate::value::Value;
use std::sync::Arc;

/// Rows of a batch for an executor. It gives them back with [`Ahead::end_stretch`].
pub struct Stretch {
    pub batch: Arc<Batch>,
    first_id: u64,
    from: u64,
    next: u64,
    to: u64,
}

/// What an executor calls next.
pub enum Next {
    /// Rows that need no attempts as long as their calls end at once.
    Stretch(Stretch),
    Attempt(Attempt),
}

impl Stretch {
    /// The row in hand: its place in the batch. None: the stretch is over.
    #[inline]
    pub fn row(&self) -> Option<usize> {
        (self.next < self.to).then_some(self.next as usize)
    }
}

impl State {
    /// Moves the outcomes of a stretch from the outbox to the machine.
    pub(super) fn take_stretch(&mut self) {
        if self.machine.ended_in_stretch().is_some() {
            let left = self.seats[0].outbox.left_in_stretch();
            self.take_first_of_stretch(left);
        }
    }

    /// As `take_stretch`, those at the first places.
    fn take_first_of_stretch(&mut self, left: usize) {
        while let Some(place) = self.machine.ended_in_stretch().filter(|&ended| ended < left) {
            let Some((at, outcome)) = self.seats[0].outbox.take_in_stretch(place) else { break };
            let at = self.not_back(at);
            self.machine.end_in_stretch(at, outcome);
        }
        if self.has_results() {
            self.tell_soon();
        }
    }

    /// Breaks the stretch off, if there is one: afterwards all its rows have ended, have an attempt, or may start.
    pub(super) fn break_off(&mut self) {
        if self.machine.ended_in_stretch().is_none() {
            return;
        }
        let left = self.seats[0].outbox.break_off();
        self.take_first_of_stretch(left);
        let in_hand = self.end_stretch(true);
        self.seats[0].in_hand = in_hand;
    }

    /// Ends the stretch, whose outcomes were taken. `goes_on`: the row in hand has begun, or may have.
    fn end_stretch(&mut self, goes_on: bool) -> Option<Attempt> {
        // When a row begins is known to a tick.
        let begun = self.machine.in_hand_since().filter(|_| goes_on).map(|begun| begun + tick());
        let attempt = self.machine.end_stretch(self.latest, begun)?;
        self.note_start(attempt.token, 0);
        Some(attempt)
    }
}

impl Ahead {
    /// Whether the next rows need no attempts, for all that is known.
    #[inline]
    pub(super) fn takes_stretch(&self) -> bool {
        self.ends_at_once && self.is_alone && !self.in_stretch && self.taken.is_empty()
    }

    /// A call has ended at once.
    #[inline]
    pub fn ended_at_once(&mut self) {
        self.ends_at_once = true;
    }

    /// What to call next. None: there is nothing to start in this turn.
    #[inline]
    pub fn take_next(&mut self) -> Option<Next> {
        if self.takes_stretch() {
            let now = lately();
            match self.begin_stretch(now, rows_within(STRETCH as u64, self.rows, now.saturating_sub(self.took))) {
                Ok(stretch) => return Some(Next::Stretch(stretch)),
                Err(may_start) if !may_start => return None,
                Err(_) => {}
            }
        }
        self.next_attempt().map(Next::Attempt)
    }

    /// Takes at most so many rows that need no attempts as long as their calls end at once. An error: there are none, and
    /// whether an attempt may start.
    pub(crate) fn begin_stretch(&mut self, now: u64, rows: u64) -> Result<Stretch, bool> {
        (self.took, self.rows) = (now, rows);
        let mut state = self.seat.lock();
        self.is_alone = self.is_plain && state.is_alone();
        if !self.is_alone {
            return Err(true);
        }
        let tell_by = state.tell_by;
        if state.machine.queued() < rows {
            self.seat.take_in(&mut state);
        } else {
            state.take_outcomes();
        }
        let now = state.not_back(now);
        let Some(taken) = state.machine.begin_stretch(now, rows) else {
            let may_start = state.can_start();
            if !may_start {
                self.telling.nothing_starts(&self.seat, state, tell_by);
            }
            return Err(may_start);
        };
        self.seat.outbox().begin_stretch();
        self.seat.keep_time(&mut state);
        self.in_stretch = true;
        drop(state);
        self.call_begins();
        let crate::machine::Stretch { batch, first_id, from, to } = taken;
        Ok(Stretch { batch, first_id, from, next: from, to })
    }

    /// What the call of the row in hand, which begins now, can ask about itself.
    pub fn call_info(&self, stretch: &Stretch) -> CallInfo {
        let id = stretch.first_id + stretch.next;
        let key = key_of(self.lineage(), id, &stretch.batch, stretch.next as usize);
        CallInfo::of(id, 1, self.deadline_from_now(u64::MAX), key, stretch.batch.traced())
    }

    /// The call of the row in hand has ended. The next row is in hand, unless the stretch is over.
    #[inline]
    pub fn end_in_stretch(&mut self, stretch: &mut Stretch, outcome: Outcome<Value>) {
        let at = lately();
        let place = (stretch.next - stretch.from) as usize;
        stretch.next += 1;
        match self.seat.outbox().leave_in_stretch(place, at, outcome) {
            News::Nothing => {}
            News::NobodyTells => {
                self.telling.is_untold = true;
                if !self.telling.in_turn || stretch.row().is_some() {
                    self.have_told();
                }
            }
            News::BrokenOff => self.end_broken_off(stretch, place),
        }
    }

    /// The stretch was broken off while the row at `place` was in hand.
    #[cold]
    fn end_broken_off(&mut self, stretch: &mut Stretch, place: usize) {
        stretch.to = stretch.next;
        let in_hand = self.seat.lock().seats[0].in_hand.take();
        if let (Some(attempt), Some((at, outcome))) = (in_hand, self.seat.outbox().take_back(place)) {
            self.hand_over(at, attempt.token, outcome);
        }
    }

    /// Gives back the rows of a stretch that have not begun. `suspended`: the call of the row in hand goes on; the answer names
    /// its attempt.
    pub fn end_stretch(&mut self, stretch: &Stretch, suspended: bool) -> Option<Token> {
        self.in_stretch = false;
        self.ends_at_once = !suspended;
        stretch.row()?; // all have ended
        let mut state = self.seat.lock();
        let attempt = if self.seat.outbox().is_broken_off() {
            state.seats[0].in_hand.take()
        } else {
            state.take_outcomes();
            state.end_stretch(suspended)
        };
        self.seat.keep_time(&mut state);
        drop(state);
        let attempt = attempt?;
        let token = attempt.token;
        if !suspended {
            self.taken.push_front((None, attempt)); // it counts as begun, and must be called
        }
        Some(token)
    }
}
