//! The locks and flags of [`crate::runtime`] and [`crate::inbox`]: the standard library's, or loom's where their tests
//! try every interleaving (`make loom`).

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
