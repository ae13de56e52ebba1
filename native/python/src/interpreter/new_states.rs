//! New thread states, and no fork meanwhile, where CPython needs that.
//!
//! `PyThreadState_New` needs no GIL, and holds a lock of the list of states. A thread that forks then leaves that lock taken
//! in its child, and CPython up to 3.11.7 waits for it there for ever, before it makes the lock anew (gh-112275). So a fork
//! waits there until no thread of the toolkit makes a state; that takes microseconds. Later versions need no help, and a lock
//! of ours would do harm: 3.13 takes its own before it forks, and who makes a state with ours would wait for it.
//!
//! Guarantees: the lock here is held while a state is made, and not while a thread waits for the GIL, which a thread that
//! forks may hold.

use pyo3_ffi::*;
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::OnceLock;

/// The first version whose children do not wait for the lock of the states.
const MENDED: std::ffi::c_ulong = 0x030b_08f0; // 3.11.8

/// Not one of Rust's, because a child gives back what its parent has taken.
struct Lock(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a mutex is made for several threads.
unsafe impl Sync for Lock {}

static LOCK: Lock = Lock(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));

extern "C" fn take() {
    // SAFETY: an initialised mutex, which this thread does not hold: no state is made by code that forks.
    unsafe { libc::pthread_mutex_lock(LOCK.0.get()) };
}

extern "C" fn give_back() {
    // SAFETY: this thread has taken it, or it is the child's copy of the thread that has.
    unsafe { libc::pthread_mutex_unlock(LOCK.0.get()) };
}

/// A new state of an interpreter. Null: there is no memory for it, or for the handlers of forks.
///
/// # Safety
/// The interpreter is up.
pub unsafe fn new_state(interpreter: *mut PyInterpreterState) -> *mut PyThreadState {
    // SAFETY: a constant of the interpreter.
    if unsafe { Py_Version } >= MENDED {
        // SAFETY: passed on; making a state needs no GIL.
        return unsafe { PyThreadState_New(interpreter) };
    }
    static WATCHED: OnceLock<bool> = OnceLock::new();
    // SAFETY: the handlers only touch the lock, and the library is never unloaded.
    if !WATCHED.get_or_init(|| unsafe { libc::pthread_atfork(Some(take), Some(give_back), Some(give_back)) } == 0) {
        return null_mut();
    }
    take();
    // SAFETY: as above.
    let state = unsafe { PyThreadState_New(interpreter) };
    give_back();
    state
}
