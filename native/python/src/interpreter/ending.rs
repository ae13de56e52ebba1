//! The end of interpreters.
//!
//! CPython aborts the process if a subinterpreter ends while another thread state of it is left. So that is looked at before,
//! and an interpreter in which something goes on stays.

use super::new_states::new_state;
use super::{Interpreter, OF_SUB, SUBINTERPRETERS};
use crate::gil;
use arroyo_udf_plugin::sync::Unpoisoned;
use pyo3_ffi::*;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Between two looks at what is about to end.
const PAUSE: Duration = Duration::from_micros(50);

impl Interpreter {
    /// Refuses further entries, and waits at most `patience` for the threads inside. Called without the GIL. False: some are
    /// still inside.
    pub fn close(&self, patience: Duration) -> bool {
        self.closed.store(true, Ordering::SeqCst);
        self.is_left_within(patience)
    }

    /// Waits at most `patience` until no thread is inside. Called without the GIL.
    pub fn is_left_within(&self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        while self.inside.load(Ordering::SeqCst) > 0 {
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(PAUSE); // once at an end; a thread that leaves, on the hot path, wakes nobody
        }
        true
    }

    /// Ends a subinterpreter, in the thread that made it, which holds no GIL. The error says why it cannot end: it stays
    /// then, with all its memory.
    pub fn end(self: &Arc<Self>, patience: Duration) -> Result<(), String> {
        if !self.close(patience) {
            return Err("a thread is still within its code".into());
        }
        let Some(state) = OF_SUB.with(|own| own.get().map(|own| own.state)) else { unreachable!("this thread has made it") };
        let _ending = self.ending.lock().unpoisoned();
        let Some(kept) = self.kept.lock().unpoisoned().as_mut().map(std::mem::take) else { return Err("it was ended".into()) };
        // SAFETY: nobody enters any more, so the kept states are unused, and stay so. CPython aborts the process if another
        // thread state is left, so that is looked at before.
        unsafe {
            gil::restore(state);
            for other in kept {
                PyThreadState_Clear(other.0);
                PyThreadState_Delete(other.0);
            }
            let until = Instant::now() + patience;
            while !self.begin_end(state) {
                if Instant::now() >= until {
                    PyEval_SaveThread();
                    return Err("a thread that its code has started does not end".into());
                }
                gil::without(|| std::thread::sleep(PAUSE)); // Python tells nobody when a thread of its code has ended
            }
            Py_EndInterpreter(state);
        }
        SUBINTERPRETERS.write().unpoisoned().retain(|one| !Arc::ptr_eq(one, self));
        Ok(())
    }

    /// Lets no thread state come any more, if this is the only one.
    ///
    /// # Safety
    /// The GIL is held with this state.
    unsafe fn begin_end(&self, state: *mut PyThreadState) -> bool {
        let mut kept = self.kept.lock().unpoisoned();
        // SAFETY: passed on.
        let alone = unsafe { self.states() }.all(|one| one == state);
        if alone {
            *kept = None;
        }
        alone
    }

    /// Ends a subinterpreter in which calls go on, or leaves it. `stop` stops threads, with the GIL held: those with these
    /// idents, and those that its code has made; false: it cannot.
    ///
    /// # Safety
    /// The threads that `stop` stops never go on. The interpreter refuses entries ([`Interpreter::close`]).
    pub unsafe fn end_at_once(&self, stop: impl FnOnce(Vec<u64>) -> bool) {
        let _ending = self.ending.lock().unpoisoned();
        let Some(state) = self.last_state() else { return };
        // SAFETY: all other thread states belong to threads that are stopped or have ended.
        unsafe {
            gil::restore(state);
            let known = self.known.lock().unpoisoned(); // none of them ends meanwhile
            let stopped = stop(known.iter().map(|(ident, _)| *ident).collect());
            if !stopped {
                drop(known);
                PyEval_SaveThread();
                return;
            }
            let others: Vec<_> = self.states().filter(|other| *other != state).collect();
            others.into_iter().for_each(|other| PyThreadState_Delete(other)); // not cleared, which might run a thread's code
            Py_EndInterpreter(state);
        }
    }

    /// A thread state after which there is none more. None: there is no memory, or the interpreter has ended.
    fn last_state(&self) -> Option<*mut PyThreadState> {
        let mut kept = self.kept.lock().unpoisoned();
        kept.as_ref()?;
        // SAFETY: the interpreter does not end while the lock is held.
        let state = unsafe { new_state(self.sub) };
        *kept = None;
        (!state.is_null()).then_some(state)
    }

    /// The thread states of a subinterpreter.
    ///
    /// # Safety
    /// The GIL is held, in this interpreter.
    unsafe fn states(&self) -> impl Iterator<Item = *mut PyThreadState> {
        // SAFETY: passed on.
        let mut next = unsafe { PyInterpreterState_ThreadHead(self.sub) };
        std::iter::from_fn(move || {
            let state = next;
            if state.is_null() {
                return None;
            }
            // SAFETY: passed on.
            next = unsafe { PyThreadState_Next(state) };
            Some(state)
        })
    }

    /// The subinterpreters of this process that have not ended. They refuse entries from now on.
    pub fn left() -> Vec<Arc<Interpreter>> {
        let left = SUBINTERPRETERS.read().unpoisoned().clone();
        left.iter().for_each(|interpreter| interpreter.closed.store(true, Ordering::SeqCst));
        left
    }
}
