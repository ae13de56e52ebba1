//! The locks and flags of [`crate::runtime`] and [`crate::inbox`]: the standard library's, or loom's where their tests
//! try every interleaving (`make loom`). And what to do about a lock in which a thread panicked.

use std::sync::{LockResult, PoisonError};

#[cfg(all(test, loom))]
pub use loom::sync::{
    atomic::{AtomicBool, Ordering},
    Condvar, Mutex, MutexGuard,
};
#[cfg(not(all(test, loom)))]
pub use std::sync::{
    atomic::{AtomicBool, Ordering},
    Condvar, Mutex, MutexGuard,
};

/// The guard of a lock, also after a thread panicked while it held it.
///
/// Sound for a lock whose state is whole at each place where code under it may panic. That holds for all locks of the
/// toolkit except the runtime's own (`Runtime::lock`), because no code of an author or a host runs under them, and running
/// out of memory aborts.
pub trait Unpoisoned {
    type Guard;

    fn unpoisoned(self) -> Self::Guard;
}

impl<G> Unpoisoned for LockResult<G> {
    type Guard = G;

    fn unpoisoned(self) -> G {
        self.unwrap_or_else(PoisonError::into_inner)
    }
}
