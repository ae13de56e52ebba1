//! Attempts that have not ended, and the rows that wait for their ends.

use super::list::{Link, Linked};
use super::{Machine, Stuck, Token};

/// A number without alignment: it leaves no gap in the records of rows and attempts, of which there are many.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number([u8; 4]);

impl Number {
    #[inline]
    pub fn new(number: u32) -> Number {
        Number(number.to_ne_bytes())
    }

    #[inline]
    pub fn get(self) -> u32 {
        u32::from_ne_bytes(self.0)
    }
}

#[derive(Debug)]
pub(super) struct AttemptRecord {
    pub generation: u32,
    pub first: First,
    pub state: AttemptState,
    /// Open: when it times out. Cancelled: when it becomes stuck.
    pub link: Link,
}

/// The first row of an attempt, which is mostly its only one.
#[derive(Debug, Clone, Copy)]
pub(super) enum First {
    /// It waits for the attempt's end.
    Waits(Number),
    /// It has ended, or went on without it. Its id.
    Left([u8; 8]),
}

impl First {
    /// The row, if it waits.
    #[inline]
    pub fn row(self) -> Option<u32> {
        match self {
            First::Waits(row) => Some(row.get()),
            First::Left(_) => None,
        }
    }
}

/// The further rows of a micro-batch. None: that row has ended, or went on without it.
pub(super) type FurtherRows = Box<[Option<u32>]>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttemptState {
    Open,
    Cancelled,
    Stuck,
}

impl Linked for AttemptRecord {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// An attempt that has ended: the rows that have waited for it.
pub(super) struct Closed {
    pub first: Option<u32>,
    /// None: it was no micro-batch.
    pub further: Option<FurtherRows>,
    pub state: AttemptState,
}

impl<B, V> Machine<B, V> {
    /// Removes an attempt that has ended; None: the token is stale.
    #[inline]
    pub(super) fn close(&mut self, token: Token) -> Option<Closed> {
        let state = self.attempts.get(token.slot).filter(|a| a.generation == token.generation)?.state;
        match state {
            AttemptState::Open => self.open.remove(&mut self.attempts, token.slot),
            AttemptState::Cancelled => self.ending.remove(&mut self.attempts, token.slot),
            AttemptState::Stuck => self.counts.stuck -= 1,
        }
        let first = self.attempts.remove(token.slot).first.row();
        let further = if self.settings.gather.is_some() { self.further.remove(&token.slot) } else { None };
        Some(Closed { first, further, state })
    }

    /// The rows that wait for an attempt.
    pub(super) fn waiting(&self, slot: u32) -> Vec<u32> {
        let further = self.further.get(&slot).into_iter().flat_map(|rows| rows.iter().copied().flatten());
        self.attempts[slot].first.row().into_iter().chain(further).collect()
    }

    /// A row no longer waits for an attempt. True: it was the last one that did.
    pub(super) fn forget(&mut self, slot: u32, row: u32) -> bool {
        let first = &mut self.attempts[slot].first;
        if first.row() == Some(row) {
            *first = First::Left(self.rows[row].id.to_ne_bytes());
        }
        let mut left = first.row().is_some();
        if self.settings.gather.is_some() {
            for place in self.further.get_mut(&slot).into_iter().flat_map(|rows| rows.iter_mut()) {
                if *place == Some(row) {
                    *place = None;
                }
                left |= place.is_some();
            }
        }
        !left
    }

    /// Another row waits for an attempt instead of one.
    pub(super) fn replace(&mut self, slot: u32, from: u32, to: u32) {
        let first = &mut self.attempts[slot].first;
        if first.row() == Some(from) {
            *first = First::Waits(Number::new(to));
        }
        let further = self.further.get_mut(&slot).into_iter().flat_map(|rows| rows.iter_mut());
        further.filter(|place| **place == Some(from)).for_each(|place| *place = Some(to));
    }

    /// An attempt is stuck (R8), and no row waits for it any more. Answers those that did.
    pub(super) fn stuck(&mut self, slot: u32) -> Vec<u32> {
        let rows = self.waiting(slot);
        let attempt = &mut self.attempts[slot];
        let id = match attempt.first {
            First::Waits(row) => self.rows[row.get()].id,
            First::Left(id) => u64::from_ne_bytes(id),
        };
        (attempt.state, attempt.first) = (AttemptState::Stuck, First::Left(id.to_ne_bytes()));
        self.counts.stuck += 1;
        self.newly_stuck.push(Stuck { token: Token { slot, generation: attempt.generation }, id });
        self.further.remove(&slot);
        rows
    }
}
