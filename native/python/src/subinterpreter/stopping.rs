//! Ends the shares of a call that its host has interrupted by Ctrl-C (R2).
//!
//! A share that runs gets a KeyboardInterrupt in its thread, as a call in the host's main thread does, and calls no row after
//! it; one that waits does not begin. Python sees the exception between two instructions: a call that waits in native code
//! goes on until that returns.
//!
//! Guarantees: no exception is left for a later call. Whoever stops needs no GIL.

use crate::interpreter::Interpreter;
use arroyo_udf_plugin::sync::Unpoisoned;
use arroyo_udf_plugin::threads::{self, AUTHORS_STACK};
use pyo3_ffi::*;
use std::ffi::{c_long, c_ulong};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// One call's.
#[derive(Default)]
pub struct Stopping {
    asked: AtomicBool,
    /// The shares that run: their interpreters, and their threads' idents. Nobody waits with the lock.
    running: Mutex<Vec<(Arc<Interpreter>, c_ulong)>>,
}

impl Stopping {
    /// Whether no further row is to be called.
    pub fn is_asked(&self) -> bool {
        self.asked.load(SeqCst)
    }

    /// Runs a share. None: it was stopped before.
    ///
    /// # Safety
    /// The GIL is held, in this interpreter.
    pub unsafe fn guard<R>(&self, interpreter: &Arc<Interpreter>, body: impl FnOnce() -> R) -> Option<R> {
        // SAFETY: it takes nothing and always succeeds.
        let ident = unsafe { PyThread_get_thread_ident() };
        {
            let mut running = self.running.lock().unpoisoned();
            if self.is_asked() {
                return None;
            }
            running.push((Arc::clone(interpreter), ident));
        }
        let result = body();
        self.running.lock().unpoisoned().retain(|(_, thread)| *thread != ident);
        if self.is_asked() {
            // SAFETY: passed on. No exception comes from here on, because this thread is not in the list.
            unsafe { PyThreadState_SetAsyncExc(ident as c_long, null_mut()) };
        }
        Some(result)
    }

    /// Stops the shares. Called without a GIL.
    pub fn ask(self: &Arc<Self>) {
        self.asked.store(true, SeqCst);
        let running = self.running.lock().unpoisoned().clone();
        for (interpreter, ident) in running {
            let this = Arc::clone(self);
            let stop = move || {
                let raise = || {
                    let running = this.running.lock().unpoisoned();
                    if running.iter().any(|(_, thread)| *thread == ident) {
                        // SAFETY: the GIL is held; the exception is one for all interpreters.
                        unsafe { PyThreadState_SetAsyncExc(ident as c_long, PyExc_KeyboardInterrupt) };
                    }
                };
                drop(interpreter.enter(raise)); // an interpreter that ends has no calls
            };
            // In a thread of its own, because the host's must not enter. Without one, the row that runs is the last.
            drop(threads::spawn("udf-stop", AUTHORS_STACK, stop));
        }
    }
}
