//! `check_array`: an array that a plugin answered, checked before pyarrow gets it.

use crate::object::{none, raise};
use arroyo_udf_plugin::abi::{ArrowArray, ArrowSchema};
use arroyo_udf_plugin::arrow;
use pyo3_ffi::*;
use std::ptr::null_mut;

/// check_array(array: int, schema: int, full: bool): raises ValueError if the array at the first address does not fit the
/// schema at the second, or would make its reader leave the memory that it was given. `full`: also if a text is not UTF-8.
pub unsafe extern "C" fn check_array(_module: *mut PyObject, arguments: *mut *mut PyObject, count: Py_ssize_t) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and `count` arguments; the host passes addresses of structs that it received.
    unsafe {
        if count != 3 {
            return raise(PyExc_TypeError, "check_array() takes the addresses of an array and a schema, and whether to check texts");
        }
        let array = PyLong_AsVoidPtr(*arguments).cast::<ArrowArray>();
        let schema = PyLong_AsVoidPtr(*arguments.add(1)).cast::<ArrowSchema>();
        let full = PyObject_IsTrue(*arguments.add(2));
        if !PyErr_Occurred().is_null() {
            return null_mut();
        }
        let (Some(array), Some(schema)) = (array.as_ref(), schema.as_ref()) else {
            return raise(PyExc_ValueError, "no array or no schema: the address is NULL");
        };
        match arrow::check(array, schema, full == 1) {
            Ok(()) => none(),
            Err(text) => raise(PyExc_ValueError, &text),
        }
    }
}
