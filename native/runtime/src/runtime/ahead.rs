//! Rows that an executor takes ahead, where several executors share a runtime.
//!
//! Executors that met at the runtime's lock for each row would be slower together than one alone. So an executor that works
//! on one thread takes some rows at once, and leaves outcomes in the outbox of its seat. Whoever has the lock and looks at
//! rows empties the outboxes first, so an outcome counts from the moment at which it was left, also if the executor's
//! thread then blocks.
//!
//! Guarantees: a row that was taken ahead starts in the same turn or the next; if it is cancelled before, it ends without
//! a call. An executor that has the runtime to itself takes row by row, and nothing of this costs it anything.

use super::executor::{After, Attempt, Orders, Seat};
use super::{Runtime, State};
use crate::machine::{Outcome, Token};
use crate::sync::{Mutex, Unpoisoned};
use crate::value::Value;
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;

/// The most rows that are taken at once.
const MOST: u64 = 16;

/// Outcomes on their way to the machine. Its lock is taken after the runtime's, or alone.
#[derive(Default)]
pub(super) struct Outbox(Mutex<Vec<Left>>);

/// When an attempt ended, and how.
type Left = (u64, Token, Outcome<Value>);

impl Outbox {
    fn leave(&self, left: Left) {
        self.0.lock().unpoisoned().push(left);
    }
}

impl State {
    /// Moves the outcomes from the outboxes to the machine.
    pub(super) fn take_outcomes(&mut self) {
        if !self.is_shared() {
            return;
        }
        for seat in 0..self.seats.len() {
            let left = std::mem::take(&mut *self.seats[seat].outbox.0.lock().unpoisoned());
            for (at, token, outcome) in left {
                let at = self.not_back(at);
                self.end(at, token, outcome);
            }
        }
    }
}

/// The seat of an executor that works on one thread.
pub struct Ahead {
    seat: Seat,
    /// Other executors have seats, too. Known from the first turn on.
    is_shared: bool,
    taken: VecDeque<Attempt>,
}

impl Deref for Ahead {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        &self.seat
    }
}

impl Ahead {
    pub fn new(seat: Seat) -> Ahead {
        Ahead { seat, is_shared: false, taken: VecDeque::new() }
    }

    pub fn runtime(&self) -> &Arc<Runtime> {
        self.seat.runtime()
    }

    /// As [`Seat::begin_turn`].
    pub fn begin_turn(&mut self, orders: &mut Orders) {
        {
            let mut state = self.seat.lock();
            state.take_orders(self.seat.number(), orders);
            self.is_shared = state.is_shared() && state.machine.settings().gather.is_none();
        }
        if self.taken.is_empty() {
            return;
        }
        orders.cancelled.retain(|&token| match self.taken.iter().position(|attempt| attempt.token == token) {
            Some(place) => {
                self.taken.remove(place);
                self.seat.end(token, Outcome::Cancelled);
                false
            }
            None => true,
        });
    }

    /// As [`Seat::end_turn`].
    pub fn end_turn(&self) -> After {
        self.seat.end_turn_with(!self.taken.is_empty())
    }

    /// Whether an attempt could start now.
    pub fn can_start(&self) -> bool {
        !self.taken.is_empty() || self.seat.can_start()
    }

    /// As [`Seat::next`].
    pub fn next_attempt(&mut self) -> Option<Attempt> {
        if !self.is_shared {
            return self.seat.next();
        }
        if self.taken.is_empty() {
            self.take_rows();
        }
        self.taken.pop_front()
    }

    /// Reports an attempt. The host learns of it at the end of the turn.
    pub fn end(&self, token: Token, outcome: Outcome<Value>) {
        if self.is_shared {
            self.seat.outbox().leave((self.seat.clock(), token, outcome));
        } else {
            self.seat.end(token, outcome);
        }
    }

    /// As [`Seat::end_and_next`].
    pub fn end_and_next(&mut self, token: Token, outcome: Outcome<Value>) -> Option<Attempt> {
        if !self.is_shared {
            return self.seat.end_and_next(token, outcome);
        }
        self.end(token, outcome);
        self.next_attempt()
    }

    /// As [`Seat::closed`].
    pub fn closed(&self, result: Result<(), String>) {
        self.seat.closed(result);
    }

    /// Takes a fair part of the rows that may start: others may be free for the rest.
    fn take_rows(&mut self) {
        let now = self.seat.clock();
        let mut state = self.seat.lock();
        self.seat.take_in(&mut state);
        let now = state.not_back(now);
        let shares = 2 * state.seats.len() as u64;
        let allowed = u64::from(state.machine.settings().allowed_in_flight) / shares;
        let rows = (state.machine.counts().queued / shares).min(allowed).clamp(1, MOST);
        for _ in 0..rows {
            let Some(attempt) = self.seat.start(&mut state, now) else { break };
            self.taken.push_back(attempt);
        }
        self.seat.wake_for_more(state);
    }
}
