//! What an executor that takes rows ahead tells without the runtime's lock: when the calls of those rows began, and how calls
//! ended. Whoever has the lock reads it.
//!
//! Guarantees: an outcome is taken once, whole (release and acquire). What is told of a call counts from the moment at which it
//! was told, also if the executor's thread then blocks. Of an outcome that is left while nobody is to tell the host, the executor
//! learns that ([`Outbox::nobody_tells`]).
//! Assumes: one executor tells; of those that read, one at a time, with the runtime's lock.

use super::time_slice::MOST;
use crate::machine::{Outcome, Token};
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering, UnsafeCell};
use crate::value::Value;

/// How many outcomes it holds, and rows that were taken at once.
pub(super) const ROOM: usize = MOST as usize;

/// When an attempt ended, and how.
type Left = (u64, Token, Outcome<Value>);

/// The time of a call that has not begun.
const NEVER: u64 = u64::MAX;

pub(super) struct Outbox {
    /// A ring: `left` of them were ever put in, and `taken` out.
    outcomes: [UnsafeCell<Option<Left>>; ROOM],
    left: AtomicUsize,
    taken: AtomicUsize,
    /// The host has been told of results, or will be: by the timer, or by whoever has set this.
    is_told: AtomicBool,
    /// When the call began of each row that was taken last.
    begun: [AtomicU64; ROOM],
}

// SAFETY: a place of the ring is the executor's from the moment that it is taken until it is left again, and else that of the
// thread with the runtime's lock; the two counts hand it over.
unsafe impl Sync for Outbox {}
// SAFETY: its values may go from thread to thread.
unsafe impl Send for Outbox {}

impl Default for Outbox {
    fn default() -> Outbox {
        Outbox {
            outcomes: std::array::from_fn(|_| UnsafeCell::new(None)),
            left: AtomicUsize::new(0),
            taken: AtomicUsize::new(0),
            is_told: AtomicBool::new(false),
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
        !self.is_told.swap(true, Ordering::AcqRel)
    }

    /// Whether somebody tells the host of outcomes that are left; with the runtime's lock.
    pub fn set_told(&self, is_told: bool) {
        self.is_told.swap(is_told, Ordering::AcqRel);
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

    /// Makes room for rows that are taken; the executor's, with the runtime's lock.
    pub fn forget_begun(&self) {
        self.begun.iter().for_each(|begun| begun.store(NEVER, Ordering::Relaxed));
    }
}
