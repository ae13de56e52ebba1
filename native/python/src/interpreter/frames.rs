//! The frames that an interpreter's threads execute, for reports of calls that are stuck.
//!
//! Guarantees: no frame of another interpreter is handed out, as `sys._current_frames` of CPython 3.13 does.

use super::{Interpreter, Kept};
use arroyo_udf_plugin::sync::Unpoisoned;
use pyo3_ffi::*;
use std::ptr::null_mut;

impl Interpreter {
    /// This thread's stack may be asked for from now on, until [`Interpreter::forget`].
    pub fn know(&self, state: *mut PyThreadState) {
        // SAFETY: it takes nothing and always succeeds.
        self.known.lock().unpoisoned().push((unsafe { PyThread_get_thread_ident() }, Kept(state)));
    }

    /// Before the thread state ends.
    pub fn forget(&self, state: *mut PyThreadState) {
        self.known.lock().unpoisoned().retain(|(_, known)| known.0 != state);
    }

    /// The frame that a thread executes: a new reference, or null. Not by `sys._current_frames`, which hands out the frames of
    /// all interpreters of the process, and so mixes their objects.
    ///
    /// # Safety
    /// The GIL is held, in this interpreter.
    pub unsafe fn frame(&self, ident: u64) -> *mut PyFrameObject {
        let known = self.known.lock().unpoisoned();
        let state = known.iter().find(|(thread, _)| *thread == ident);
        // SAFETY: a state that is known has not ended, and does not while the lock is held.
        state.map_or(null_mut(), |(_, state)| unsafe { PyThreadState_GetFrame(state.0) })
    }
}
