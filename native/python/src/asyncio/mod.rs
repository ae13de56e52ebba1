//! The asyncio executor, native half. `plugin/executor.py` is the other half, and says how a row gets to its coroutine and back.
//!
//! | module         | what it does                                                                     |
//! |----------------|----------------------------------------------------------------------------------|
//! | [`executor`]   | `AsyncioExecutor`: one runtime on the event loop: wake-ups, turns, cancellations |
//! | [`slot`]       | `Slot`: one long-lived Task takes attempt after attempt through it               |
//! | `coroutine`    | a call: its coroutine, and how that comes back                                   |
//! | [`parker`]     | `Parker`: an idle Task waits on it                                               |
//! | [`watch`]      | asks the loop to go on: it gives way, or it is blocked (R9)                      |
//! | [`hidden`]     | hides a thread's loop from plain functions                                       |
//! | [`giving_way`] | hands the GIL of a busy loop to threads that wait for it                         |
//!
//! Guarantees: no call waits or blocks. Assumes: Python calls everything with the GIL held and, except `parker`'s and
//! `watch`'s functions, on the loop's thread.

mod coroutine;
pub mod executor;
mod giving_way;
pub mod hidden;
pub mod parker;
pub mod slot;
pub mod watch;

use crate::object;
use crate::state;
use pyo3_ffi::*;
use std::sync::Arc;
use watch::Watch;

/// watch() -> int: the eventfd, for the loop to watch and to answer with `answer()`.
pub unsafe extern "C" fn watch(module: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and the module.
    unsafe {
        let state = state::of(module);
        if state.watch.get().is_none() {
            let Some(watch) = Watch::new(Arc::clone(&state.interpreter)) else { return PyErr_SetFromErrno(PyExc_OSError) };
            drop(state.watch.set(watch)); // unless another thread has
        }
        PyLong_FromLong(state.watch.get().map_or(-1, |watch| watch.descriptor()).into())
    }
}

/// answer(): the loop runs, and gives way.
pub unsafe extern "C" fn answer(module: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and the module.
    unsafe {
        if let Some(watch) = state::of(module).watch.get() {
            watch.answer();
        }
        object::none()
    }
}

/// Makes the types and adds them to the module. False: an exception is set.
///
/// # Safety
/// The GIL is held, in the module's exec.
pub unsafe fn add_types(module: *mut PyObject) -> bool {
    // SAFETY: passed on.
    unsafe { executor::add_type(module, &[slot::NEW]) && slot::add_type(module) && parker::add_type(module) }
}
