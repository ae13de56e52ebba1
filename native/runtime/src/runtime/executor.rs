//! What an executor is: turns, and the duties that it has in them.
//!
//! An executor (tokio, asyncio, threads, C, an Arroyo library) has no rules of its own. It has a [`Seat`](super::Seat) at
//! its runtime, and works in turns:
//!
//! 1. [`Seat::begin_turn`](super::Seat::begin_turn): it gets its [`Orders`], cancels attempts, and reports stuck ones.
//! 2. It starts attempts ([`Seat::next`](super::Seat::next)), and reports those that have ended
//!    ([`Seat::end`](super::Runtime::end)).
//! 3. [`Seat::end_turn`](super::Seat::end_turn): it takes another turn, sleeps, or closes ([`After`]).
//!
//! An executor that works in one piece calls [`Seat::turn`](super::Seat::turn) instead; one that awaits or calls into Python
//! in between uses the two halves. Attempts may also end between turns;
//! [`Runtime::notify`](super::Runtime::notify) then informs the host.

use crate::arrow::Batch;
use crate::machine::{Start, Stuck, Token};
use std::sync::Arc;

/// Runs the attempts of a runtime.
pub trait Executor: Send + Sync {
    /// There may be something to start, to cancel or to close. Called at most once between two sleeps, with no lock held,
    /// from any thread; must not wait.
    fn wake(&self);

    /// Whether it can cancel a running attempt. Otherwise cancellations are dropped, and do not wake it.
    fn interrupts(&self) -> bool {
        true
    }
}

pub type Attempt = Start<Arc<Batch>>;

/// The duties of an executor before it starts attempts. Kept from turn to turn, so that a turn costs no allocation.
#[derive(Debug, Default)]
pub struct Orders {
    /// Attempts to cancel. They stay open until [`Seat::end`](super::Runtime::end).
    pub cancelled: Vec<Token>,
    /// Attempts that ignore their cancellation: report each once (R8).
    pub stuck: Vec<Stuck>,
    /// Attempts whose calls may not have begun, for [`Seat::answer`](super::Seat::answer).
    pub unsure: Vec<Token>,
}

impl Orders {
    pub(super) fn move_to(&mut self, other: &mut Orders) {
        other.cancelled.append(&mut self.cancelled);
        other.stuck.append(&mut self.stuck);
        other.unsure.append(&mut self.unsure);
    }

    pub fn is_empty(&self) -> bool {
        self.cancelled.is_empty() && self.stuck.is_empty() && self.unsure.is_empty()
    }
}

/// What comes after a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum After {
    /// Close the Context, then call [`Seat::closed`](super::Seat::closed): the runtime is stopped, and no attempt runs or waits.
    Settled,
    /// Sleep until [`Executor::wake`].
    Asleep,
    /// Take another turn: there is more to do.
    Again,
}

/// The executor's part of [`Seat::turn`](super::Seat::turn).
pub trait Turn {
    /// Cancels an attempt, which may have ended by now.
    fn cancel(&mut self, attempt: Token);
    /// Reports an attempt that ignores its cancellation (R8).
    fn stuck(&mut self, attempt: &Stuck);
    /// Starts attempts, and reports those that have ended.
    fn work(&mut self);
}
