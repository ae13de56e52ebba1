//! The interpreters of this process that run functions, and entering them from any thread, until they end.
//!
//! | module         | what it does                                             |
//! |----------------|----------------------------------------------------------|
//! | [`ending`]     | the end of interpreters, by force if a process ends      |
//! | [`frames`]     | what a thread executes, for reports                      |
//! | [`new_states`] | new thread states, and no fork meanwhile                 |
//!
//! Guarantees (R18): after [`Interpreter::close`] no thread asks for that interpreter's GIL through here. A thread that is
//! still within user code asks for it when that returns; see [`gil`](crate::gil).
//!
//! A thread that Python did not make keeps its thread state until it ends, because making one costs 7 microseconds, and
//! entering with it 60 nanoseconds.
//!
//! Subinterpreters are entered by threads of the toolkit only, each by threads of its own: whatever a thread has entered
//! last, CPython's PyGILState functions take for the interpreter of that thread.

mod ending;
mod frames;
mod new_states;

use crate::gil;
use arroyo_udf_plugin::abi;
use arroyo_udf_plugin::failure::Failure;
use arroyo_udf_plugin::sync::Unpoisoned;
use new_states::new_state;
use pyo3_ffi::*;
use std::cell::{Cell, OnceCell};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

pub struct Interpreter {
    /// Null: the main one.
    sub: *mut PyInterpreterState,
    closed: AtomicBool,
    /// The number of threads that are inside or about to ask for the GIL.
    inside: AtomicUsize,
    /// The thread states with which threads enter a subinterpreter again. None: it ends.
    kept: Mutex<Option<Vec<Kept>>>,
    /// Held while somebody tries to end it.
    ending: Mutex<()>,
    /// Threads whose stacks may be asked for, by their idents.
    known: Mutex<Vec<(u64, Kept)>>,
}

/// A thread state that its thread keeps while it is outside.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kept(*mut PyThreadState);

// SAFETY: the pointer of an interpreter serves comparison and the calls below, which any thread may do.
unsafe impl Send for Interpreter {}
// SAFETY: as above; all else is atomic or locked.
unsafe impl Sync for Interpreter {}
// SAFETY: a thread state that no thread uses may be used or deleted by any thread.
unsafe impl Send for Kept {}

/// Those that [`Interpreter::make`] has made.
static SUBINTERPRETERS: RwLock<Vec<Arc<Interpreter>>> = RwLock::new(Vec::new());

struct Inside<'a>(&'a Interpreter);

impl Inside<'_> {
    fn enter(interpreter: &Interpreter) -> Option<Inside<'_>> {
        interpreter.inside.fetch_add(1, Ordering::SeqCst);
        let inside = Inside(interpreter);
        // Read after the count, so that either `close` sees this thread in the count, or this thread sees `closed`.
        (!interpreter.closed.load(Ordering::SeqCst)).then_some(inside)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The thread state of a thread that Python did not make, in the main interpreter.
struct OfMain(Cell<*mut PyThreadState>);

impl Drop for OfMain {
    fn drop(&mut self) {
        let state = self.0.get();
        if state.is_null() {
            return;
        }
        Interpreter::main().forget(state);
        if let Some(_inside) = Inside::enter(Interpreter::main()) {
            // SAFETY: the state belongs to this thread, which does not hold the GIL.
            unsafe { delete(state) };
        }
    }
}

/// The same in the one subinterpreter that the thread enters.
struct OfSub {
    interpreter: Arc<Interpreter>,
    state: *mut PyThreadState,
}

impl Drop for OfSub {
    fn drop(&mut self) {
        self.interpreter.forget(self.state);
        if let Some(_inside) = Inside::enter(&self.interpreter) {
            if let Some(kept) = &mut *self.interpreter.kept.lock().unpoisoned() {
                kept.retain(|kept| kept.0 != self.state);
            }
            // SAFETY: as above.
            unsafe { delete(self.state) };
        }
    }
}

/// Ends a thread state. Not by PyGILState_Release: the C library may have cleared Python's key for this thread already.
///
/// # Safety
/// The state belongs to this thread, which does not hold the GIL; the interpreter is up.
unsafe fn delete(state: *mut PyThreadState) {
    // SAFETY: passed on.
    unsafe {
        gil::restore(state);
        PyThreadState_Clear(state);
        PyThreadState_DeleteCurrent();
    }
}

thread_local! {
    static OF_MAIN: OfMain = const { OfMain(Cell::new(null_mut())) };
    static OF_SUB: OnceCell<OfSub> = const { OnceCell::new() };
}

/// The GIL of the main interpreter; given back even if the body panics.
struct Ensured(PyGILState_STATE);

impl Drop for Ensured {
    fn drop(&mut self) {
        // SAFETY: made in `enter`, by the same thread.
        unsafe { PyGILState_Release(self.0) };
    }
}

/// The GIL of a subinterpreter; given back even if the body panics.
struct Attached;

impl Drop for Attached {
    fn drop(&mut self) {
        // SAFETY: the thread state was restored by the same thread.
        unsafe { PyEval_SaveThread() };
    }
}

impl Interpreter {
    fn new(sub: *mut PyInterpreterState) -> Interpreter {
        Interpreter {
            sub,
            closed: AtomicBool::new(false),
            inside: AtomicUsize::new(0),
            kept: Mutex::new(Some(Vec::new())),
            ending: Mutex::new(()),
            known: Mutex::default(),
        }
    }

    pub fn main() -> &'static Arc<Interpreter> {
        static MAIN: OnceLock<Arc<Interpreter>> = OnceLock::new();
        MAIN.get_or_init(|| Arc::new(Interpreter::new(null_mut())))
    }

    /// That of the caller. A subinterpreter that somebody else has made cannot be entered.
    ///
    /// # Safety
    /// The GIL is held.
    pub unsafe fn current() -> Arc<Interpreter> {
        // SAFETY: passed on.
        let current = unsafe { PyInterpreterState_Get() };
        // SAFETY: it takes nothing.
        if current == unsafe { PyInterpreterState_Main() } {
            return Arc::clone(Interpreter::main());
        }
        let known = SUBINTERPRETERS.read().unpoisoned().iter().rfind(|one| one.sub == current).cloned(); // not one from before a fork
        known.unwrap_or_else(|| Arc::new(Interpreter { closed: AtomicBool::new(true), ..Interpreter::new(current) }))
    }

    /// A new subinterpreter, in a thread of the toolkit that enters no other one. `make` is called with the main
    /// interpreter's GIL; if it succeeds, the thread holds the new one's with its first thread state.
    ///
    /// # Safety
    /// `make` does as it is told; if it fails, the thread holds the GIL that it held before, or none.
    pub unsafe fn make(make: impl FnOnce() -> Result<(), Failure>) -> Result<Arc<Interpreter>, Failure> {
        let main = Interpreter::main();
        let Some(_inside) = Inside::enter(main) else { return Err(main.ended()) };
        // SAFETY: the main interpreter is up, see `enter`. Not PyGILState_Ensure, which would keep a thread state of the main
        // interpreter for this thread.
        unsafe {
            let outer = new_state(PyInterpreterState_Main());
            if outer.is_null() {
                return Err(no_memory());
            }
            gil::restore(outer);
            let made = make().map(|()| {
                let (sub, state) = (PyInterpreterState_Get(), PyEval_SaveThread());
                let interpreter = Arc::new(Interpreter::new(sub));
                interpreter.know(state);
                SUBINTERPRETERS.write().unpoisoned().push(Arc::clone(&interpreter));
                let own = OfSub { interpreter: Arc::clone(&interpreter), state };
                OF_SUB.with(|it| it.set(own)).unwrap_or_else(|_| unreachable!("it enters no other one"));
                interpreter
            });
            if compat::PyThreadState_GetUnchecked().is_null() {
                gil::restore(outer);
            }
            PyThreadState_Clear(outer);
            PyThreadState_DeleteCurrent();
            made
        }
    }

    pub fn is_main(&self) -> bool {
        self.sub.is_null()
    }

    /// Runs `body` with the GIL held. Fails when the interpreter ends or has ended.
    pub fn enter<R>(self: &Arc<Self>, body: impl FnOnce() -> R) -> Result<R, Failure> {
        let Some(_inside) = Inside::enter(self) else { return Err(self.ended()) };
        // SAFETY: the interpreter is up, because `close` had not been called when this thread was counted.
        unsafe {
            if self.is_main() {
                // The Ensure below, and later ones, find the state. They would make one as well, while a thread may fork.
                if PyGILState_GetThisThreadState().is_null() {
                    let state = new_state(PyInterpreterState_Main());
                    if state.is_null() {
                        return Err(no_memory());
                    }
                    self.know(state);
                    OF_MAIN.with(|own| own.0.set(state));
                }
                let _ensured = Ensured(gil::ensure());
                return Ok(body());
            }
            let state = self.state_of_thread()?;
            if compat::PyThreadState_GetUnchecked() == state {
                return Ok(body()); // it is inside already
            }
            gil::restore(state);
            let _attached = Attached;
            Ok(body())
        }
    }

    fn ended(&self) -> Failure {
        Failure::state(if self.is_main() {
            "the Python interpreter of this process has ended"
        } else {
            "the subinterpreter has ended: load the plugin again"
        })
    }

    /// A further thread state of a subinterpreter, which this thread keeps. None: there is no memory, or the interpreter ends.
    fn new_state(&self) -> Option<*mut PyThreadState> {
        let mut kept = self.kept.lock().unpoisoned();
        let kept = kept.as_mut()?;
        // SAFETY: the interpreter does not end while the lock is held.
        let state = unsafe { new_state(self.sub) };
        if state.is_null() {
            return None;
        }
        kept.push(Kept(state));
        self.know(state); // within the lock: who ends the interpreter by force stops each thread that may still enter
        Some(state)
    }

    /// This thread's state in a subinterpreter.
    fn state_of_thread(self: &Arc<Self>) -> Result<*mut PyThreadState, Failure> {
        OF_SUB.with(|own| {
            if own.get().is_none() {
                let state = self.new_state().ok_or_else(no_memory)?;
                drop(own.set(OfSub { interpreter: Arc::clone(self), state }));
            }
            match own.get() {
                Some(own) if Arc::ptr_eq(&own.interpreter, self) => Ok(own.state),
                _ => Err(Failure::internal("a thread enters a second subinterpreter")),
            }
        })
    }
}

fn no_memory() -> Failure {
    Failure::for_now(abi::OUT_OF_MEMORY, "no memory for a thread state")
}
