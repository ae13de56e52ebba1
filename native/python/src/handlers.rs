//! Signals of a Python host while one of its calls waits for a worker.

use crate::object::take_exception;
use crate::{gil, interrupt};
use pyo3_ffi::*;

/// Runs the host's handlers of the signals that have come, if this is its main thread. True: one has raised an exception, such
/// as KeyboardInterrupt, which ends the call and waits for the host.
pub fn end_call() -> bool {
    if !interrupt::is_main() {
        return false;
    }
    // SAFETY: there is a Python host, and this thread is in a call of its main thread, without the GIL.
    unsafe {
        let state = gil::ensure();
        let raised = if PyErr_CheckSignals() == 0 { None } else { take_exception() };
        if let Some(exception) = &raised {
            interrupt::keep(exception.ptr());
        }
        let is_raised = raised.is_some();
        drop(raised);
        PyGILState_Release(state);
        is_raised
    }
}
