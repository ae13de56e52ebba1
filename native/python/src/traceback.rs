//! Exceptions of user code as text, with the end of their traceback (R2). The Python half is `plugin/stacks.py`.

use crate::modules;
use crate::object::{call, exception_text, summary, take_exception, text};
use pyo3_ffi::PyObject;

/// The text of the current exception, which is cleared.
///
/// # Safety
/// The GIL is held.
pub unsafe fn raised_text() -> String {
    // SAFETY: passed on.
    unsafe {
        match take_exception() {
            Some(exception) => describe(exception.ptr()),
            None => "an error without an exception".into(),
        }
    }
}

/// The text of an exception.
///
/// # Safety
/// The GIL is held; `exception` is an exception.
pub unsafe fn describe(exception: *mut PyObject) -> String {
    // SAFETY: passed on.
    unsafe {
        match call(modules::STACKS, c"describe", &[exception]) {
            Some(description) => text(description.ptr()),
            None => {
                let why = exception_text();
                format!("{} (its traceback failed: {why})", summary(exception))
            }
        }
    }
}
