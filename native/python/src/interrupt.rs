//! Ctrl-C in a Python host (R2). A `KeyboardInterrupt` that code of a plugin lets out in the host's main thread (a sync
//! function, a module at its import, a `start`) is no failure of that code: it waits here, the call fails, and the host raises
//! it in place of that failure.
//!
//! Guarantees: no exception of another thread waits here, and none at all unless a Python host takes it; it is taken once.

use arroyo_udf_plugin::abi;
use arroyo_udf_plugin::failure::Failure;
use pyo3_ffi::*;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::SeqCst};

/// The ident of the host's main thread; 0, which no thread has: there is no Python host.
static MAIN: AtomicU64 = AtomicU64::new(0);
/// An owned reference, or null.
static WAITING: AtomicPtr<PyObject> = AtomicPtr::new(null_mut());

/// Whether this is the main thread of a Python host.
pub fn is_main() -> bool {
    // SAFETY: it takes nothing and always succeeds.
    MAIN.load(SeqCst) == unsafe { PyThread_get_thread_ident() }
}

/// Keeps the exception for the host if it is Ctrl-C. True: it is.
///
/// # Safety
/// The GIL is held; `exception` is an exception, and none is set.
pub unsafe fn note(exception: *mut PyObject) -> bool {
    // SAFETY: passed on; the reference that waited before was ours.
    unsafe {
        if !is_main() || PyErr_GivenExceptionMatches(exception, PyExc_KeyboardInterrupt) == 0 {
            return false;
        }
        keep(exception);
        true
    }
}

/// Keeps an exception for the host, whose main thread this is.
///
/// # Safety
/// The GIL is held; `exception` is an exception.
pub unsafe fn keep(exception: *mut PyObject) {
    // SAFETY: passed on; the reference that waited before was ours.
    unsafe {
        Py_INCREF(exception);
        Py_XDECREF(WAITING.swap(exception, SeqCst));
    }
}

/// Whether Ctrl-C waits for the host in this thread.
pub fn waits() -> bool {
    !WAITING.load(SeqCst).is_null() && is_main()
}

/// What a call answers in which Ctrl-C came. Only a host that is not ours reads it.
pub fn failure(name: &str) -> Failure {
    Failure::new(abi::USER_CODE, format!("{name}: KeyboardInterrupt"))
}

/// raise_interrupts(main_thread: int): a Python host takes them, in the thread with this ident.
pub unsafe extern "C" fn raise_interrupts(_module: *mut PyObject, main_thread: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and one argument.
    unsafe {
        let ident = PyLong_AsUnsignedLongLong(main_thread);
        if !PyErr_Occurred().is_null() {
            return null_mut();
        }
        MAIN.store(ident, SeqCst);
        Py_NewRef(Py_None())
    }
}

/// take_interrupt() -> BaseException | None: what the host raises in place of the failure that a plugin has answered.
pub unsafe extern "C" fn take_interrupt(_module: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    let taken = if is_main() { WAITING.swap(null_mut(), SeqCst) } else { null_mut() };
    if taken.is_null() {
        // SAFETY: called by Python with the GIL.
        return unsafe { Py_NewRef(Py_None()) };
    }
    taken // the reference is the caller's now
}
