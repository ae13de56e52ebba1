//! `Parker`: an idle slot yields it to its Task, over and over, and the Task waits. To asyncio it looks like a Future
//! (`_asyncio_future_blocking`, `add_done_callback`, `result`). Unlike a Future, one Parker serves many waits, and a turn
//! steps the waiting Task at once instead of in the loop's next turn.
//!
//! Assumes: only the loop's thread uses it, with the GIL held.

use crate::gil::vectorcall;
use crate::heap::{method, Body, Instance};
use crate::object::{none, raise, Owned};
use crate::state::{self, State};
use pyo3_ffi::*;
use std::ffi::{c_char, CStr};
use std::mem::offset_of;
use std::ptr::null_mut;

pub struct Parker {
    /// `_asyncio_future_blocking`: set when the Task is about to wait; the Task resets it.
    blocking: c_char,
    event_loop: Owned,
    callback: Option<Owned>,
    context: Option<Owned>,
}

/// A Parker for a Task of this loop. None: an exception is set.
///
/// # Safety
/// The GIL is held; the loop is valid.
pub(super) unsafe fn new(state: &State, event_loop: Owned) -> Option<Owned> {
    // SAFETY: passed on.
    unsafe { state.parker.make(Parker { blocking: 0, event_loop, callback: None, context: None }) }
}

/// What a Task gets that is to wait: a new reference.
///
/// # Safety
/// The GIL is held; the object is a Parker.
pub(super) unsafe fn park(parker: &Owned) -> *mut PyObject {
    // SAFETY: passed on.
    unsafe {
        (*Parker::of(parker.ptr())).blocking = 1;
        Owned::borrowed(parker.ptr()).into_ptr()
    }
}

/// Steps the waiting Task, if any. Null: an exception is set.
///
/// # Safety
/// The GIL is held; the object is a Parker.
pub(super) unsafe fn fire(parker: &Owned) -> *mut PyObject {
    // SAFETY: passed on. No reference to the body is alive while the Task runs.
    unsafe {
        let this = Parker::of(parker.ptr());
        // Taken out first, because the Task may park again within the call.
        let (callback, context) = ((*this).callback.take(), (*this).context.take());
        let Some(callback) = callback else { return none() };
        let inside = context.as_ref().map_or(null_mut(), Owned::ptr);
        if !inside.is_null() && PyContext_Enter(inside) < 0 {
            return null_mut();
        }
        let result = vectorcall(callback.ptr(), &parker.ptr(), 1, null_mut());
        if !inside.is_null() && PyContext_Exit(inside) < 0 {
            Py_XDECREF(result);
            return null_mut();
        }
        result
    }
}

// Python calls each of these with the GIL and an object of this type.

method! {
    /// get_loop() -> AbstractEventLoop
    fn get_loop(this: Parker, _a) { Owned::borrowed((*this).event_loop.ptr()).into_ptr() }
}
method! {
    /// result() -> None
    fn result(_this: Parker, _a) { none() }
}

/// cancel() -> bool: False. A Task that is cancelled while it is parked gets its CancelledError when it is fired.
unsafe extern "C" fn cancel(_: *mut PyObject, _: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: see above.
    unsafe { PyBool_FromLong(0) }
}

/// add_done_callback(callback, *, context)
unsafe extern "C" fn add_done_callback(
    this: *mut PyObject,
    arguments: *const *mut PyObject,
    count: Py_ssize_t,
    names: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: see above. There are `count` arguments, then one for each of the names; all are borrowed, and references taken.
    unsafe {
        let parker = Parker::of(this);
        if count < 1 {
            return raise(PyExc_TypeError, "add_done_callback() takes a callback");
        }
        let named = if names.is_null() { 0 } else { PyTuple_Size(names) };
        let is_context = |i: &Py_ssize_t| PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, *i), c"context".as_ptr()) == 0;
        let context = (0..named).find(is_context).map(|i| *arguments.offset(count + i));
        (*parker).callback = Some(Owned::borrowed(*arguments));
        (*parker).context = context.map(|context| Owned::borrowed(context));
        none()
    }
}

struct Members([PyMemberDef; 2]);
// SAFETY: never written to.
unsafe impl Sync for Members {}

static MEMBERS: Members = Members([
    PyMemberDef {
        name: c"_asyncio_future_blocking".as_ptr(),
        type_code: Py_T_BOOL,
        offset: (offset_of!(Instance<Parker>, body) + offset_of!(Parker, blocking)) as Py_ssize_t,
        flags: 0,
        doc: std::ptr::null(),
    },
    PyMemberDef { name: std::ptr::null(), type_code: 0, offset: 0, flags: 0, doc: std::ptr::null() },
]);

/// Makes the type and adds it to the module. False: an exception is set.
///
/// # Safety
/// The GIL is held, in the module's exec.
pub(super) unsafe fn add_type(module: *mut PyObject) -> bool {
    const KEYWORDS: std::ffi::c_int = METH_VARARGS | METH_KEYWORDS;
    const NAME: &CStr = c"arroyo_udf_plugin._native.Parker";
    type Plain = unsafe extern "C" fn(*mut PyObject, *mut PyObject) -> *mut PyObject;
    // SAFETY: the methods take an object of this type. With METH_KEYWORDS Python calls a function with three arguments, or with
    // METH_FASTCALL, too, four; it is only stored as one with two.
    unsafe {
        let cancel: Plain = std::mem::transmute::<PyCFunctionWithKeywords, Plain>(cancel);
        let add_done_callback: Plain = std::mem::transmute::<PyCFunctionFastWithKeywords, Plain>(add_done_callback);
        state::of(module).parker.define::<Parker>(
            module,
            NAME,
            &[
                (c"get_loop", get_loop, METH_NOARGS),
                (c"result", result, METH_NOARGS),
                (c"cancel", cancel, KEYWORDS),
                (c"add_done_callback", add_done_callback, METH_FASTCALL | METH_KEYWORDS),
            ],
            &[PyType_Slot { slot: Py_tp_members, pfunc: (&raw const MEMBERS.0).cast_mut().cast() }],
        )
    }
}
