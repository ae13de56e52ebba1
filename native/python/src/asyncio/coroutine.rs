//! A call of an async function: its coroutine, and how that comes back each time it is resumed.
//!
//! Assumes: the caller holds the GIL, on the thread of the loop, in a Task.

use crate::forked::came_back;
use crate::gil;
use crate::modules;
use crate::object::{call, take_exception, Owned};
use arroyo_udf_plugin::machine::Outcome;
use arroyo_udf_plugin::value::Value;
use pyo3_ffi::*;
use std::ptr::null_mut;

/// How a call has come back.
pub(super) enum Came {
    /// It has yielded this: a new reference.
    Suspended(*mut PyObject),
    Ended(Ended),
}

/// How a call has ended.
pub(super) enum Ended {
    Returned(Owned),
    /// The exception is set.
    Raised,
    /// The function was not called.
    NotCalled(Outcome<Value>),
}

/// The coroutine behind what the function has returned. None: an exception is set.
///
/// # Safety
/// The GIL is held; the objects are valid.
#[inline]
pub(super) unsafe fn coroutine_of(awaitable: Owned) -> Option<Owned> {
    // SAFETY: passed on.
    unsafe {
        // Nobody else has a reference, so nobody else awaits it.
        if PyCoro_CheckExact(awaitable.ptr()) != 0 && Py_REFCNT(awaitable.ptr()) == 1 {
            return Some(awaitable);
        }
        call(modules::EXECUTOR, c"awaited", &[awaitable.ptr()])
    }
}

/// Resumes a call with a value.
///
/// # Safety
/// The GIL is held; the objects are valid.
#[inline]
pub(super) unsafe fn send(call: *mut PyObject, value: *mut PyObject) -> Came {
    // SAFETY: passed on.
    unsafe {
        let mut result = null_mut();
        let how = gil::iter_send(call, value, &mut result);
        came_back(null_mut());
        match (how, Owned::new(result)) {
            (PySendResult::PYGEN_NEXT, Some(yielded)) => Came::Suspended(yielded.into_ptr()),
            (PySendResult::PYGEN_RETURN, Some(result)) => Came::Ended(Ended::Returned(result)),
            _ => Came::Ended(Ended::Raised),
        }
    }
}

/// Resumes a call with an exception: the arguments of `throw`.
///
/// # Safety
/// The GIL is held; the objects are valid.
pub(super) unsafe fn throw(call: *mut PyObject, arguments: *mut PyObject) -> Came {
    // SAFETY: passed on.
    unsafe {
        let Some(throw) = Owned::new(PyObject_GetAttrString(call, c"throw".as_ptr())) else {
            return Came::Ended(Ended::Raised);
        };
        let yielded = gil::call(throw.ptr(), arguments);
        came_back(null_mut());
        if !yielded.is_null() {
            return Came::Suspended(yielded);
        }
        if PyErr_ExceptionMatches(PyExc_StopIteration) == 0 {
            return Came::Ended(Ended::Raised);
        }
        let stopped = take_exception();
        match stopped.and_then(|stopped| Owned::new(PyObject_GetAttrString(stopped.ptr(), c"value".as_ptr()))) {
            Some(result) => Came::Ended(Ended::Returned(result)),
            None => Came::Ended(Ended::Raised),
        }
    }
}
