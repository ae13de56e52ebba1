//! Forks: what a child of this process must not do.
//!
//! A child has one thread, a copy of the one that forked, and shares descriptors and shared memory with its parent. What the
//! parent's other threads do stops in it, and their locks may never be free again. So no started function is good in a child
//! (R13, [`crate::handles`]). And if a function has forked in a thread that does the toolkit's work, its child comes back to
//! that work, which is the parent's alone: [`is_stray`]. It ends there, as a program ends whose main function returns.
//!
//! Assumes that a fork runs the handlers of `pthread_atfork`.

use crate::failure::Failure;
use crate::sync::Unpoisoned;
use crate::threads;
use arroyo_udf_abi as abi;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;

static FORKED: AtomicBool = AtomicBool::new(false);

extern "C" fn in_child() {
    FORKED.store(true, Ordering::Relaxed);
    threads::as_child();
}

/// Learns of forks from now on.
pub fn watch() -> Result<(), Failure> {
    static WATCHED: Mutex<bool> = Mutex::new(false);
    let mut watched = WATCHED.lock().unpoisoned();
    if !*watched {
        // SAFETY: the handler only touches an atomic and the thread's mask. The library is never unloaded.
        let refused = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        if refused != 0 {
            let error = std::io::Error::from_raw_os_error(refused);
            return Err(Failure::new(abi::ENVIRONMENT, format!("the system refuses to tell of forks: {error}")));
        }
        *watched = true;
    }
    Ok(())
}

/// As [`watch`], in a worker process.
pub fn watch_worker() -> Result<(), Failure> {
    threads::work_for_a_host();
    watch()
}

/// Whether this process was forked from one that watched. Takes no lock: after a fork one may never be free.
#[inline]
pub fn was_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// Whether this is the child of a function that has forked in a thread which does the toolkit's work. To be asked when an
/// author's code comes back, before anything else is done.
#[inline]
pub fn is_stray() -> bool {
    was_forked() && (threads::is_worker() || threads::is_own())
}

/// Ends this process if it [is such a child](is_stray).
#[inline]
pub fn end_stray() {
    if is_stray() {
        // SAFETY: it takes a number, and runs nothing of this process: exit handlers are the parent's.
        unsafe { libc::_exit(0) };
    }
}
