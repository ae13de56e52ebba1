//! The locks and flags of [`crate::runtime`] and [`crate::inbox`]: the standard library's, or loom's where their tests
//! try every interleaving (`make loom`). And what to do about a lock in which a thread panicked.

use std::sync::{LockResult, PoisonError};

#[cfg(all(test, loom))]
pub use loom::sync::{
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    Condvar, Mutex, MutexGuard,
};
#[cfg(not(all(test, loom)))]
pub use std::sync::{
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    Condvar, Mutex, MutexGuard,
};

#[cfg(all(test, loom))]
pub use loom::cell::UnsafeCell;

/// As that of the standard library, with the access that loom can watch.
#[cfg(not(all(test, loom)))]
#[derive(Debug, Default)]
pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(all(test, loom)))]
impl<T> UnsafeCell<T> {
    pub fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    /// Calls `access` with a pointer to the value. What it may do there is for the caller to know.
    pub fn with_mut<R>(&self, access: impl FnOnce(*mut T) -> R) -> R {
        access(self.0.get())
    }
}

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
