//! What an executor that takes rows ahead tells without the runtime's lock: when the calls of those rows began, how calls
//! ended, and how the rows of its stretch did. Whoever has the lock reads it.
//!
//! Guarantees: an outcome is taken once, whole (release and acquire). What is told of a call counts from the moment at which it
//! was told, also if the executor's thread then blocks. Of an outcome that is left while nobody is to tell the host, the executor
//! learns that ([`Outbox::nobody_tells`], [`News`]). A stretch that is broken off is so between two outcomes: those before count
//! for it, and the executor learns of it when it leaves the next one.
//! Assumes: one executor tells; of those that read, one at a time, with the runtime's lock.

use super::time_slice::MOST;
use crate::machine::{Outcome, Token};
use crate::sync::{AtomicU64, AtomicUsize, Ordering, UnsafeCell};
use crate::value::Value;

/// How many outcomes it holds, and rows that were taken at once.
pub(super) const ROOM: usize = MOST as usize;

/// How many rows a stretch has at most.
pub(super) const STRETCH: usize = 64;

/// When an attempt ended, and how.
type Left = (u64, Token, Outcome<Value>);

/// When the call of a row of the stretch ended, and how.
type LeftInStretch = (u64, Outcome<Value>);

/// What the executor learns as it leaves the outcome of a row of its stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    Nothing,
    /// Nobody is to tell the host of the outcome.
    NobodyTells,
    /// The stretch was broken off before: the outcome is not left.
    BrokenOff,
}

// The parts of `Outbox::word`: the number of outcomes of the stretch, and two flags.
const BROKEN_OFF: u64 = 1 << 32;
const TOLD: u64 = 1 << 33;

/// The time of a call that has not begun.
const NEVER: u64 = u64::MAX;

pub(super) struct Outbox {
    /// A ring: `left` of them were ever put in, and `taken` out.
    outcomes: [UnsafeCell<Option<Left>>; ROOM],
    left: AtomicUsize,
    taken: AtomicUsize,
    /// The outcomes of the stretch, in the order of its rows.
    stretch: [UnsafeCell<Option<LeftInStretch>>; STRETCH],
    /// How many of those are left; and the flags. TOLD: the host has been told of results, or will be: by the timer, or by
    /// whoever has set this. All changes replace the value, and so come one after the other.
    word: AtomicU64,
    /// When the call began of each row that was taken last.
    begun: [AtomicU64; ROOM],
}

// SAFETY: a place of the ring is the executor's from the moment that it is taken until it is left again, and else that of the
// thread with the runtime's lock; the two counts hand it over. A place of the stretch is the executor's until it is counted in
// `word`, and again from the beginning of the next stretch on.
unsafe impl Sync for Outbox {}
// SAFETY: its values may go from thread to thread.
unsafe impl Send for Outbox {}

impl Default for Outbox {
    fn default() -> Outbox {
        Outbox {
            outcomes: std::array::from_fn(|_| UnsafeCell::new(None)),
            left: AtomicUsize::new(0),
            taken: AtomicUsize::new(0),
            stretch: std::array::from_fn(|_| UnsafeCell::new(None)),
            word: AtomicU64::new(0),
            begun: std::array::from_fn(|_| AtomicU64::new(NEVER)),
        }
    }
}

impl Outbox {
    /// Leaves an outcome; the executor's. An error: it is full.
    pub fn leave(&self, left: Left) -> Result<(), Left> {
        let count = self.left.load(Ordering::Relaxed);
        if count - self.taken.load(Ordering::Acquire) == ROOM {
            return Err(left);
        }
        // SAFETY: the place was taken, or never left: it is the executor's.
        self.outcomes[count % ROOM].with_mut(|place| unsafe { *place = Some(left) });
        self.left.store(count + 1, Ordering::Release);
        Ok(())
    }

    /// Takes the next outcome, with the runtime's lock.
    pub fn take(&self) -> Option<Left> {
        let count = self.taken.load(Ordering::Relaxed);
        if count == self.left.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: the place was left, and not taken yet: it is that of whoever has the lock.
        let left = self.outcomes[count % ROOM].with_mut(|place| unsafe { (*place).take() });
        self.taken.store(count + 1, Ordering::Release);
        left
    }

    /// After an outcome was left: whether nobody is to tell the host of it; the executor's, which then sees to it.
    ///
    /// Either this comes before [`Outbox::set_told`], which then sees the outcome that was left; or it sees what was set. Both
    /// replace the value, because a load could miss the latest one.
    pub fn nobody_tells(&self) -> bool {
        self.word.fetch_or(TOLD, Ordering::AcqRel) & TOLD == 0
    }

    /// Whether somebody tells the host of outcomes that are left; with the runtime's lock.
    pub fn set_told(&self, is_told: bool) {
        if is_told {
            self.word.fetch_or(TOLD, Ordering::AcqRel);
        } else {
            self.word.fetch_and(!TOLD, Ordering::AcqRel);
        }
    }

    /// A stretch begins; the executor's, with the runtime's lock. The outcomes of the one before were taken.
    pub fn begin_stretch(&self) {
        self.word.fetch_and(TOLD, Ordering::AcqRel);
    }

    /// Leaves the outcome of row `place` of the stretch; the executor's.
    #[inline]
    pub fn leave_in_stretch(&self, place: usize, at: u64, outcome: Outcome<Value>) -> News {
        // SAFETY: the place has not been counted since the stretch began: it is the executor's.
        self.stretch[place].with_mut(|place| unsafe { *place = Some((at, outcome)) });
        match self.word.fetch_add(1, Ordering::AcqRel) {
            word if word & BROKEN_OFF != 0 => News::BrokenOff,
            word if word & TOLD == 0 => News::NobodyTells,
            _ => News::Nothing,
        }
    }

    /// Takes back what was left after the stretch had been broken off; the executor's.
    pub fn take_back(&self, place: usize) -> Option<LeftInStretch> {
        // SAFETY: nobody takes outcomes of a stretch that was broken off.
        self.stretch[place].with_mut(|place| unsafe { (*place).take() })
    }

    /// How many outcomes of the stretch were left; with the runtime's lock.
    pub fn left_in_stretch(&self) -> usize {
        self.word.load(Ordering::Acquire) as u32 as usize
    }

    /// Breaks the stretch off, and answers how many outcomes were left before; with the runtime's lock.
    pub fn break_off(&self) -> usize {
        self.word.fetch_or(BROKEN_OFF, Ordering::AcqRel) as u32 as usize
    }

    /// Whether the stretch was broken off; with the runtime's lock.
    pub fn is_broken_off(&self) -> bool {
        self.word.load(Ordering::Acquire) & BROKEN_OFF != 0
    }

    /// Takes the outcome at a place of the stretch that was left; with the runtime's lock.
    pub fn take_in_stretch(&self, place: usize) -> Option<LeftInStretch> {
        // SAFETY: the place was counted, and is that of whoever has the lock until the next stretch begins.
        self.stretch[place].with_mut(|place| unsafe { (*place).take() })
    }

    #[cfg(all(test, not(loom)))]
    pub fn is_empty(&self) -> bool {
        self.taken.load(Ordering::Relaxed) == self.left.load(Ordering::Acquire)
    }

    /// The call of row `place` begins; the executor's.
    pub fn begin(&self, place: usize, at: u64) {
        self.begun[place].store(at, Ordering::Relaxed);
    }

    /// When the call of row `place` began, or a tick of the system before. None: it has not.
    pub fn begun(&self, place: usize) -> Option<u64> {
        Some(self.begun[place].load(Ordering::Relaxed)).filter(|at| *at != NEVER)
    }

    /// Makes room for rows that are taken, after `count` others; the executor's, with the runtime's lock.
    pub fn forget_begun(&self, count: usize) {
        self.begun[..count].iter().for_each(|begun| begun.store(NEVER, Ordering::Relaxed));
    }
}
