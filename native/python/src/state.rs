//! What this module keeps for each interpreter that has imported it: its types, and what its functions share. Nothing that
//! belongs to one interpreter is static.
//!
//! The module refers to its `State`, and so does each function; the Python objects in it go with the module.

use crate::asyncio::watch::Watch;
use crate::heap::HeapType;
use crate::interpreter::Interpreter;
use pyo3_ffi::*;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, OnceLock};

pub struct State {
    pub interpreter: Arc<Interpreter>,
    pub executor: HeapType,
    pub slot: HeapType,
    pub parker: HeapType,
    pub current_call: HeapType,
    /// The context variable in which calls find their information. Null: no code asks. An owned reference.
    pub call_variable: AtomicPtr<PyObject>,
    /// `asyncio._get_running_loop`, see [`hidden`](crate::asyncio::hidden). Null: not found yet. An owned reference.
    pub get_running_loop: AtomicPtr<PyObject>,
    /// The watch of the event loop, once there is one.
    pub watch: OnceLock<Arc<Watch>>,
}

impl State {
    /// # Safety
    /// The GIL is held.
    unsafe fn new() -> State {
        State {
            // SAFETY: passed on.
            interpreter: unsafe { Interpreter::current() },
            executor: HeapType::new(),
            slot: HeapType::new(),
            parker: HeapType::new(),
            current_call: HeapType::new(),
            call_variable: AtomicPtr::new(null_mut()),
            get_running_loop: AtomicPtr::new(null_mut()),
            watch: OnceLock::new(),
        }
    }

    fn types(&self) -> [&HeapType; 4] {
        [&self.executor, &self.slot, &self.parker, &self.current_call]
    }

    fn objects(&self) -> [&AtomicPtr<PyObject>; 2] {
        [&self.call_variable, &self.get_running_loop]
    }
}

/// The module's own memory: a `State`, or null before its exec.
type Slot = *const State;
/// The size of that memory.
pub const SIZE: Py_ssize_t = size_of::<Slot>() as Py_ssize_t;

unsafe fn slot(module: *mut PyObject) -> *mut Slot {
    // SAFETY: the module is this one, with `SIZE` bytes of its own.
    unsafe { PyModule_GetState(module).cast() }
}

/// Makes the state of a new module.
///
/// # Safety
/// The GIL is held, in the module's exec.
pub unsafe fn fill(module: *mut PyObject) {
    // SAFETY: passed on. The module owns the reference.
    unsafe { slot(module).write(Arc::into_raw(Arc::new(State::new()))) };
}

/// The state of the module that a function was called with.
///
/// # Safety
/// The GIL is held; `fill` has been called with the module, which outlives the answer.
pub unsafe fn of<'a>(module: *mut PyObject) -> &'a State {
    // SAFETY: the module keeps its state.
    unsafe { &**slot(module) }
}

/// As [`of`], to keep.
///
/// # Safety
/// As for [`of`].
pub unsafe fn shared(module: *mut PyObject) -> Arc<State> {
    // SAFETY: the pointer came from an Arc, of which the module has a reference.
    unsafe {
        Arc::increment_strong_count(*slot(module));
        Arc::from_raw(*slot(module))
    }
}

/// For the garbage collector.
pub unsafe extern "C" fn traverse(module: *mut PyObject, visit: visitproc, data: *mut c_void) -> c_int {
    // SAFETY: called by Python with the GIL and the module, perhaps before its exec.
    unsafe {
        let Some(state) = slot(module).as_ref().and_then(|state| state.as_ref()) else { return 0 };
        let objects = state.types().into_iter().map(|kind| kind.ptr().cast());
        for object in objects.chain(state.objects().map(|object| object.load(Ordering::Acquire))) {
            if !object.is_null() {
                let stop = visit(object, data);
                if stop != 0 {
                    return stop;
                }
            }
        }
        0
    }
}

/// For the garbage collector, and at the end.
pub unsafe extern "C" fn clear(module: *mut PyObject) -> c_int {
    // SAFETY: as above.
    unsafe {
        if let Some(state) = slot(module).as_ref().and_then(|state| state.as_ref()) {
            state.types().into_iter().for_each(|kind| kind.clear());
            state.objects().into_iter().for_each(|object| Py_XDECREF(object.swap(null_mut(), Ordering::AcqRel)));
        }
        0
    }
}

pub unsafe extern "C" fn free(module: *mut c_void) {
    // SAFETY: as above; nothing uses the module after this.
    unsafe {
        let module = module.cast();
        clear(module);
        let slot = slot(module);
        if let Some(state) = slot.as_mut() {
            if !state.is_null() {
                drop(Arc::from_raw(std::mem::replace(state, std::ptr::null())));
            }
        }
    }
}
