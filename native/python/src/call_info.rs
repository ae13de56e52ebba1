//! What a call can ask about itself (R10), native half; `arroyo_udf_plugin/_call_info.py` is the other one.
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
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

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
pub unsafe fn tell(info: CallInfo) -> bool {
    let variable = VARIABLE.load(Ordering::Acquire);
    if variable.is_null() {
        return true;
    }
    // SAFETY: the GIL is held; the variable is a ContextVar.
    unsafe {
        let Some(call) = CALL.make(info) else { return false };
        Owned::new(PyContextVar_Set(variable, call.ptr())).is_some()
    }
}

/// fields() -> (row_id: int, attempt: int, deadline: int, idempotency_key: bytes); the deadline in nanoseconds of the
/// monotonic clock, 2**64 - 1 for none.
unsafe extern "C" fn fields(this: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: Python calls this with an object of its type and the GIL held; the format takes what is given here, and the
    // bytes are copied.
    unsafe {
        let info = &*<CallInfo as Body>::of(this);
        let key = info.idempotency_key();
        let (data, length) = (key.as_ptr(), key.len() as Py_ssize_t);
        Py_BuildValue(c"KIKy#".as_ptr(), info.row_id(), std::ffi::c_uint::from(info.attempt()), info.deadline_ns(), data, length)
    }
}

/// Makes the type and puts it into the module.
///
/// # Safety
/// The GIL is held, in the module's exec.
pub unsafe fn add_type(module: *mut PyObject) -> bool {
    // SAFETY: the method takes an object of the type that it is defined for.
    unsafe { CALL.define::<CallInfo>(module, c"arroyo_udf_plugin._native.Call", &[(c"fields", fields, METH_NOARGS)], &[]) }
}
