//! Entering Python from any thread, until the interpreter ends.
//!
//! Guarantees (R18): after [`close`] no thread asks for the GIL through here. CPython (up to 3.13) would end such a thread by
//! unwinding it, and the process would abort at our frames. A thread that is still within user code, in a `sleep` or a
//! `read`, asks for the GIL when that returns: it is held for ever ([`held`]), as later versions of CPython do themselves.
//!
//! A thread that Python did not make keeps its thread state until it ends, because making one costs 7 microseconds, and
//! entering with it 60 nanoseconds.

use arroyo_udf_plugin::failure::Failure;
use pyo3_ffi::*;
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

static CLOSED: AtomicBool = AtomicBool::new(false);
/// The number of threads that are inside or about to ask for the GIL.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

struct Inside;

impl Inside {
    fn enter() -> Option<Inside> {
        INSIDE.fetch_add(1, Ordering::SeqCst);
        let inside = Inside;
        // Read after the count, so that either `close` sees this thread in the count, or this thread sees CLOSED.
        (!CLOSED.load(Ordering::SeqCst)).then_some(inside)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The thread state of a thread that Python did not make.
struct ThreadState(Cell<*mut PyThreadState>);

impl Drop for ThreadState {
    fn drop(&mut self) {
        let state = self.0.get();
        if state.is_null() {
            return;
        }
        if let Some(_inside) = Inside::enter() {
            // SAFETY: the state belongs to this thread, which does not hold the GIL. Not PyGILState_Release: the C
            // library may have cleared Python's key for this thread already.
            unsafe {
                held(|| unwinding::PyEval_RestoreThread(state));
                PyThreadState_Clear(state);
                PyThreadState_DeleteCurrent();
            }
        }
    }
}

thread_local! {
    static THREAD_STATE: ThreadState = const { ThreadState(Cell::new(null_mut())) };
}

/// The GIL; given back even if `body` panics.
struct Held(PyGILState_STATE);

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: made in `enter`, by the same thread.
        unsafe { PyGILState_Release(self.0) };
    }
}

/// Runs `body` with the GIL held. Fails when the interpreter ends or has ended.
pub fn enter<R>(body: impl FnOnce() -> R) -> Result<R, Failure> {
    let Some(_inside) = Inside::enter() else {
        return Err(Failure::state("the Python interpreter of this process has ended"));
    };
    // SAFETY: the interpreter is up, because `close` had not been called when this thread was counted. A new thread state
    // gives the GIL back right away; the Ensure below, and later ones, find the state.
    unsafe {
        if PyGILState_GetThisThreadState().is_null() {
            held(|| unwinding::PyGILState_Ensure());
            THREAD_STATE.with(|state| state.0.set(PyEval_SaveThread()));
        }
        let _held = Held(held(|| unwinding::PyGILState_Ensure()));
        Ok(body())
    }
}

mod unwinding {
    use pyo3_ffi::{PyGILState_STATE, PyObject, PyThreadState};

    // As in pyo3_ffi, but declared to unwind; otherwise no frame of ours could stop it.
    extern "C-unwind" {
        pub fn PyObject_Vectorcall(
            callable: *mut PyObject,
            arguments: *const *mut PyObject,
            count: usize,
            names: *mut PyObject,
        ) -> *mut PyObject;
        pub fn PyGILState_Ensure() -> PyGILState_STATE;
        pub fn PyEval_RestoreThread(state: *mut PyThreadState);
    }
}

/// Runs `body`, which takes the GIL. If CPython unwinds the thread, it stays here for ever.
fn held<R>(body: impl FnOnce() -> R) -> R {
    struct Rest;
    impl Drop for Rest {
        fn drop(&mut self) {
            loop {
                // SAFETY: it only waits. This thread holds no lock of ours where it takes the GIL.
                unsafe { libc::pause() };
            }
        }
    }
    let rest = Rest;
    let result = body();
    std::mem::forget(rest);
    result
}

/// PyObject_Vectorcall: enters user code, which may give the GIL back and take it again.
///
/// # Safety
/// As for PyObject_Vectorcall.
pub unsafe fn vectorcall(callable: *mut PyObject, arguments: *const *mut PyObject, count: usize, names: *mut PyObject) -> *mut PyObject {
    // SAFETY: passed on.
    held(|| unsafe { unwinding::PyObject_Vectorcall(callable, arguments, count, names) })
}

/// Refuses further entries, and waits at most `patience` for the threads inside. Called without the GIL.
pub fn close(patience: Duration) {
    CLOSED.store(true, Ordering::SeqCst);
    let until = Instant::now() + patience;
    while INSIDE.load(Ordering::SeqCst) > 0 && Instant::now() < until {
        std::thread::yield_now();
    }
}

/// Runs `body` without the GIL. Called with it.
///
/// # Safety
/// The GIL is held, and `body` touches no Python object.
pub unsafe fn without<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: passed on.
    unsafe {
        let state = PyEval_SaveThread();
        let result = body();
        PyEval_RestoreThread(state);
        result
    }
}
