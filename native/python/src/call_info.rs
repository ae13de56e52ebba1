//! What a call can ask about itself (R10), native half; `arroyo_udf_plugin/author/call_info.py` is the other one.
//!
//! A call finds its information in a context variable, which Tasks and threads that it makes inherit: they see it for as
//! long as they live, and never that of the row which runs in the same slot after theirs. So each call has the variable set
//! anew. That costs some 200 nanoseconds a row, and is done only once somebody has imported the function that asks.
//!
//! Guarantees: everything here runs with the GIL held, in the interpreter that runs the functions.

use crate::heap::{Body, HeapType};
use crate::object::{none, Owned};
use arroyo_udf_plugin::call_info::CallInfo;
use pyo3_ffi::*;
use std::ffi::c_uint;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// What a call finds.
pub enum Told {
    Row(CallInfo),
    /// Of a micro-batch: the rows that are in its lists, in their order.
    Group(Vec<CallInfo>),
}

static CALL: HeapType = HeapType::new();
/// The context variable, once somebody may ask; lives as long as the process.
static VARIABLE: AtomicPtr<PyObject> = AtomicPtr::new(null_mut());

/// tell_calls(variable: ContextVar[Call]): from now on each call finds its information there.
pub unsafe extern "C" fn tell_calls(_module: *mut PyObject, variable: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and a valid object, of which a reference is kept for ever.
    unsafe {
        // Functions run in the main interpreter only, and no other may reach its objects.
        if PyInterpreterState_Get() == PyInterpreterState_Main() {
            let former = VARIABLE.swap(Owned::borrowed(variable).into_ptr(), Ordering::AcqRel);
            Py_XDECREF(former);
        }
        none()
    }
}

/// Whether calls have to be told of themselves.
pub fn is_asked_for() -> bool {
    !VARIABLE.load(Ordering::Acquire).is_null()
}

/// Tells the call that is about to begin in the current context, if it may ask. False: an exception is set.
///
/// # Safety
/// The GIL is held, and the call's context is entered.
pub unsafe fn tell(told: Told) -> bool {
    let variable = VARIABLE.load(Ordering::Acquire);
    if variable.is_null() {
        return true;
    }
    // SAFETY: the GIL is held; the variable is a ContextVar.
    unsafe {
        let Some(call) = CALL.make(told) else { return false };
        Owned::new(PyContextVar_Set(variable, call.ptr())).is_some()
    }
}

/// (row_id: int, attempt: int, deadline: int, idempotency_key: bytes); the deadline in nanoseconds of the monotonic clock,
/// 2**64 - 1 for none.
unsafe fn fields(info: &CallInfo) -> *mut PyObject {
    let key = info.idempotency_key();
    // SAFETY: the GIL is held; the bytes are copied; the format takes what is given here, and their reference with it.
    unsafe {
        let key = PyBytes_FromStringAndSize(key.as_ptr().cast(), key.len() as Py_ssize_t);
        Py_BuildValue(c"KIKN".as_ptr(), info.row_id(), c_uint::from(info.attempt()), info.deadline_ns(), key)
    }
}

/// row() -> fields | None: of the one row; None in a micro-batch.
unsafe extern "C" fn row(this: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: Python calls this with an object of its type and the GIL held.
    unsafe {
        match &*<Told as Body>::of(this) {
            Told::Row(info) => fields(info),
            Told::Group(_) => none(),
        }
    }
}

/// rows() -> list[fields]
unsafe extern "C" fn rows(this: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: as above.
    unsafe {
        let rows = match &*<Told as Body>::of(this) {
            Told::Row(info) => std::slice::from_ref(info),
            Told::Group(rows) => rows,
        };
        let Some(list) = Owned::new(PyList_New(0)) else { return null_mut() };
        for info in rows {
            let Some(row) = Owned::new(fields(info)) else { return null_mut() };
            if PyList_Append(list.ptr(), row.ptr()) < 0 {
                return null_mut();
            }
        }
        list.into_ptr()
    }
}

/// Makes the type and puts it into the module.
///
/// # Safety
/// The GIL is held, in the module's exec.
pub unsafe fn add_type(module: *mut PyObject) -> bool {
    // SAFETY: the method takes an object of the type that it is defined for.
    unsafe {
        CALL.define::<Told>(module, c"arroyo_udf_plugin._native.Call", &[(c"row", row, METH_NOARGS), (c"rows", rows, METH_NOARGS)], &[])
    }
}
