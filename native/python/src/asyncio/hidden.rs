//! Hides the event loop that runs in a host's thread from the plain functions that are called there: code that itself calls
//! `asyncio.run`, such as the sync half of many clients, works wherever the host calls it from.

use crate::object::Owned;
use crate::state::State;
use pyo3_ffi::*;
use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::atomic::Ordering;

/// The loop of this thread, hidden until this is dropped.
pub struct Hidden(Owned);

impl Hidden {
    /// None: no loop runs in this thread.
    ///
    /// # Safety
    /// The GIL is held, here and where the answer is dropped; no exception is set.
    pub unsafe fn new(state: &State) -> Option<Hidden> {
        // SAFETY: passed on.
        unsafe {
            let running = Owned::new(PyObject_CallNoArgs(ask(state)?)).or_else(|| ignored())?;
            (running.ptr() != Py_None()).then(|| {
                set(Py_None());
                Hidden(running)
            })
        }
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // SAFETY: see `new`.
        unsafe { set(self.0.ptr()) };
    }
}

/// `asyncio._get_running_loop`, borrowed. None: nobody has imported asyncio, so no loop runs.
unsafe fn ask(state: &State) -> Option<*mut PyObject> {
    let known = state.get_running_loop.load(Ordering::Acquire);
    if !known.is_null() {
        return Some(known);
    }
    // SAFETY: passed on; the state takes over the reference, and the GIL keeps others from doing the same.
    unsafe {
        let found = function(c"_get_running_loop")?.into_ptr();
        Py_XDECREF(state.get_running_loop.swap(found, Ordering::AcqRel));
        Some(found)
    }
}

/// Sets the loop that runs in this thread.
unsafe fn set(event_loop: *mut PyObject) {
    // SAFETY: passed on.
    unsafe {
        let set = function(c"_set_running_loop");
        drop(set.and_then(|set| Owned::new(PyObject_CallOneArg(set.ptr(), event_loop)).or_else(|| ignored())));
    }
}

/// A function of `_asyncio`, if that was imported.
unsafe fn function(name: &CStr) -> Option<Owned> {
    // SAFETY: passed on. The dict of modules and what it has are borrowed.
    unsafe {
        let modules = PyImport_GetModuleDict();
        let module = if modules.is_null() { null_mut() } else { PyDict_GetItemString(modules, c"_asyncio".as_ptr()) };
        if module.is_null() {
            return None;
        }
        Owned::new(PyObject_GetAttrString(module, name.as_ptr())).or_else(|| ignored())
    }
}

/// What user code has removed is not there.
unsafe fn ignored<T>() -> Option<T> {
    // SAFETY: passed on.
    unsafe { PyErr_Clear() };
    None
}
