//! A function that has forked comes back twice: in its own process, and in its child, which must not go on with the rows of
//! its parent. The Python half is `plugin/forked.py`.

use crate::modules::FORKED;
use crate::object::{call, none, take_exception, Owned};
use arroyo_udf_plugin::forks;
use pyo3_ffi::PyObject;

/// To be called when a function has come back, before anything else is done: ends this process if it is such a child.
/// `raised`: what it has raised; null: nothing, or the current exception.
///
/// # Safety
/// The GIL is held; `raised` is an exception or null.
#[inline]
pub unsafe fn came_back(raised: *mut PyObject) {
    if forks::is_stray() {
        // SAFETY: passed on.
        unsafe { end(raised) }
    }
}

#[cold]
unsafe fn end(raised: *mut PyObject) -> ! {
    // SAFETY: passed on; `_exit` runs nothing of this process.
    unsafe {
        let current = take_exception();
        let raised = if raised.is_null() { current.as_ref().map(Owned::ptr) } else { Some(raised) };
        let nothing = Owned::new(none());
        let argument = raised.or(nothing.as_ref().map(Owned::ptr));
        drop(argument.map(|argument| call(FORKED, c"end", &[argument]))); // does not come back, unless there is no memory
        libc::_exit(1)
    }
}
