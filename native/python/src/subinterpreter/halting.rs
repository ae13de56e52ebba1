//! The end of a process in whose subinterpreters calls go on. CPython ends every interpreter before it lets a process end,
//! and aborts if a thread is still in one. So such threads are stopped where they are, for ever: they hold no GIL then, and
//! can be forgotten.
//!
//! Assumes: the process is about to end. A stopped thread may hold a lock of a C library, whoever needs it waits.

use crate::interpreter::Interpreter;
use crate::modules::SUBINTERPRETER;
use crate::object::call;
use arroyo_udf_plugin::threads::{self, OWN_STACK};
use pyo3_ffi::*;
use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::time::Duration;

/// The toolkit's threads, and those that they make, do not block it.
const SIGNAL: c_int = libc::SIGTRAP;
/// How long an interpreter may take to end.
const PATIENCE: Duration = Duration::from_secs(2);

struct Semaphore(UnsafeCell<MaybeUninit<libc::sem_t>>);
// SAFETY: a semaphore is made for several threads.
unsafe impl Sync for Semaphore {}

/// Counts the threads that have stopped.
static STOPPED: Semaphore = Semaphore(UnsafeCell::new(MaybeUninit::uninit()));

/// Ends the interpreters in which calls go on. Called once, without a GIL.
pub fn halt(interpreters: Vec<Arc<Interpreter>>) {
    if interpreters.is_empty() {
        return;
    }
    // SAFETY: the semaphore is initialised before the handler can use it; the handler only does what a handler may.
    unsafe {
        libc::sem_init(STOPPED.0.get().cast(), 0, 0);
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = stay as *const () as usize;
        libc::sigaction(SIGNAL, &action, null_mut());
    }
    for interpreter in interpreters {
        let (done, ended) = channel::<()>();
        // In a thread of its own, because a call may hold its GIL for ever.
        let end = move || {
            // SAFETY: `stop` stops the threads that it is for.
            unsafe { interpreter.end_at_once(|idents| stop(idents)) };
            drop(done);
        };
        if threads::spawn("udf-halt", OWN_STACK, end).is_ok() {
            let _ = ended.recv_timeout(PATIENCE);
        }
    }
}

extern "C" fn stay(_signal: c_int) {
    // SAFETY: both may be called in a handler.
    unsafe {
        libc::sem_post(STOPPED.0.get().cast());
        loop {
            libc::pause();
        }
    }
}

/// Stops these threads, and those that code of the current interpreter has made. False: one does not stop.
///
/// # Safety
/// The GIL is held, by another thread; threads with these idents have not ended.
unsafe fn stop(mut idents: Vec<u64>) -> bool {
    // SAFETY: passed on. A thread of Python's own does not end without the GIL.
    unsafe {
        if let Some(made) = call(SUBINTERPRETER, c"threads", &[]) {
            for i in 0..PyList_Size(made.ptr()) {
                idents.push(PyLong_AsUnsignedLongLong(PyList_GetItem(made.ptr(), i)));
            }
        }
        idents.sort_unstable();
        idents.dedup();
        idents.into_iter().all(|ident| libc::pthread_kill(ident as libc::pthread_t, SIGNAL) == 0 && stopped())
    }
}

/// Waits a second for a thread to stop.
fn stopped() -> bool {
    // SAFETY: the semaphore is initialised, and the time is local.
    unsafe {
        let mut until: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_REALTIME, &mut until);
        until.tv_sec += 1;
        loop {
            if libc::sem_timedwait(STOPPED.0.get().cast(), &until) == 0 {
                return true;
            }
            if *libc::__errno_location() != libc::EINTR {
                return false;
            }
        }
    }
}
