//! What a call can ask about itself (R10), native half. `author/call_info.py` is the other half.
//!
//! A call finds its information in a context variable. Tasks and threads that the call makes inherit it: they see it as long
//! as they live, and never see that of a later row in the same slot. So the variable is set anew for each call. That costs
//! some 200 nanoseconds a row, and begins when the module with the asking function is imported.
//!
//! Assumes: the GIL is held, in the interpreter that runs the functions.

use crate::heap::{method, Body};
use crate::object::{none, Owned};
use crate::state::{self, State};
use arroyo_udf_plugin::call_info::CallInfo;
use pyo3_ffi::*;
use std::ffi::{c_uint, CStr};
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering;

/// What a call finds.
pub enum CurrentCall {
    Row(CallInfo),
    /// The rows in the lists of a micro-batch, in their order.
    MicroBatch(Vec<CallInfo>),
}

/// set_call_variable(variable: ContextVar[CurrentCall]): from now on each call finds its information there.
pub unsafe extern "C" fn set_call_variable(module: *mut PyObject, variable: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and a valid object, to which the module's state keeps a reference.
    unsafe {
        let former = state::of(module).call_variable.swap(Owned::borrowed(variable).into_ptr(), Ordering::AcqRel);
        Py_XDECREF(former);
        none()
    }
}

/// Whether any code may ask.
pub fn is_asked_for(state: &State) -> bool {
    !state.call_variable.load(Ordering::Acquire).is_null()
}

/// Sets what the call finds that is about to begin in the current context, if any code may ask. False: an exception is set.
///
/// # Safety
/// The GIL is held, in the interpreter of this state, and the call's context is entered.
pub unsafe fn set(state: &State, call: CurrentCall) -> bool {
    let variable = state.call_variable.load(Ordering::Acquire);
    if variable.is_null() {
        return true;
    }
    // SAFETY: the GIL is held; the variable is a ContextVar.
    unsafe {
        let Some(call) = state.current_call.make(call) else { return false };
        Owned::new(PyContextVar_Set(variable, call.ptr())).is_some()
    }
}

/// (row_id: int, attempt: int, deadline: int, idempotency_key: bytes, trace_parent: str | None); the deadline in nanoseconds
/// of the monotonic clock, 2**64 - 1 for none.
unsafe fn fields(info: &CallInfo) -> *mut PyObject {
    let key = info.idempotency_key();
    // SAFETY: the GIL is held; the bytes are copied; the format names the types of the values, and takes over the reference.
    unsafe {
        let key = PyBytes_FromStringAndSize(key.as_ptr().cast(), key.len() as Py_ssize_t);
        let trace = info.trace_parent_c().map_or(null(), CStr::as_ptr);
        Py_BuildValue(c"KIKNz".as_ptr(), info.row_id(), c_uint::from(info.attempt()), info.deadline_ns(), key, trace)
    }
}

method! {
    /// row() -> fields | None: of the one row; None in a micro-batch.
    fn row(this: CurrentCall, _a) {
        match &*this {
            CurrentCall::Row(info) => fields(info),
            CurrentCall::MicroBatch(_) => none(),
        }
    }
}
method! {
    /// rows() -> list[fields]
    fn rows(this: CurrentCall, _a) {
        let rows = match &*this {
            CurrentCall::Row(info) => std::slice::from_ref(info),
            CurrentCall::MicroBatch(rows) => rows,
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

/// Makes the type and adds it to the module. False: an exception is set.
///
/// # Safety
/// The GIL is held, in the module's exec.
pub unsafe fn add_type(module: *mut PyObject) -> bool {
    // SAFETY: the methods take an object of this type.
    unsafe {
        let methods = &[(c"row", row as _, METH_NOARGS), (c"rows", rows as _, METH_NOARGS)];
        state::of(module).current_call.define::<CurrentCall>(module, c"arroyo_udf_plugin._native.CurrentCall", methods, &[])
    }
}
