//! The interpreters of this process that run functions, and entering them from any thread, until they end.
//!
//! Guarantees (R18): after [`Interpreter::close`] no thread asks for that interpreter's GIL through here. A thread that is
//! still within user code asks for it when that returns; see [`gil`](crate::gil).
//!
//! A thread that Python did not make keeps its thread state until it ends, because making one costs 7 microseconds, and
//! entering with it 60 nanoseconds.
//!
//! Subinterpreters are entered by threads of the toolkit only, each by threads of its own: whatever a thread has entered
//! last, CPython's PyGILState functions take for the interpreter of that thread.

use crate::gil;
use arroyo_udf_plugin::abi;
use arroyo_udf_plugin::failure::Failure;
use arroyo_udf_plugin::sync::Unpoisoned;
use pyo3_ffi::*;
use std::cell::{Cell, OnceCell};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::{Duration, Instant};

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
            let outer = PyThreadState_New(PyInterpreterState_Main());
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
                // A new thread state gives the GIL back right away; the Ensure below, and later ones, find the state.
                if PyGILState_GetThisThreadState().is_null() {
                    gil::ensure();
                    self.know(PyThreadState_Get());
                    OF_MAIN.with(|state| state.0.set(PyEval_SaveThread()));
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

    /// A further thread state of a subinterpreter, to be kept by its thread or not. None: there is no memory, or the
    /// interpreter ends.
    fn new_state(&self, keep: bool) -> Option<*mut PyThreadState> {
        let mut kept = self.kept.lock().unpoisoned();
        let kept = kept.as_mut()?;
        // SAFETY: the interpreter does not end while the lock is held. Making a state needs no GIL.
        let state = unsafe { PyThreadState_New(self.sub) };
        if state.is_null() {
            return None;
        }
        if keep {
            kept.push(Kept(state));
        }
        Some(state)
    }

    /// This thread's state in a subinterpreter.
    fn state_of_thread(self: &Arc<Self>) -> Result<*mut PyThreadState, Failure> {
        OF_SUB.with(|own| {
            if own.get().is_none() {
                let state = self.new_state(true).ok_or_else(no_memory)?;
                self.know(state);
                drop(own.set(OfSub { interpreter: Arc::clone(self), state }));
            }
            match own.get() {
                Some(own) if Arc::ptr_eq(&own.interpreter, self) => Ok(own.state),
                _ => Err(Failure::internal("a thread enters a second subinterpreter")),
            }
        })
    }

    /// Refuses further entries, and waits at most `patience` for the threads inside. Called without the GIL. False: some are
    /// still inside.
    pub fn close(&self, patience: Duration) -> bool {
        self.closed.store(true, Ordering::SeqCst);
        let until = Instant::now() + patience;
        while self.inside.load(Ordering::SeqCst) > 0 {
            if Instant::now() >= until {
                return false;
            }
            std::thread::yield_now();
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
                gil::without(std::thread::yield_now);
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
        let Some(state) = self.new_state(false) else { return };
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
            if self.begin_end(state) {
                Py_EndInterpreter(state);
            }
        }
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

fn no_memory() -> Failure {
    Failure::for_now(abi::OUT_OF_MEMORY, "no memory for a thread state")
}
