//! Values that go through pyarrow: types that `values` does not convert, and vectorized functions. The Python half is
//! `plugin/conversion.py`.
//!
//! Guarantees: pyarrow receives views and never owns an array of the host. A view of a column lives for one call. A view for
//! a vectorized function keeps the batch alive until pyarrow drops it, in any thread; the batch is then released in a thread
//! of the host (R19).

use crate::function::PythonFunction;
use crate::modules::CONVERSION;
use crate::object::{address, call, exception_text, raise, text, Owned};
use arroyo_udf_plugin::abi::{ArrowArray, ArrowSchema};
use arroyo_udf_plugin::arrow::{Batch, Column, Layout};
use arroyo_udf_plugin::signature;
use arroyo_udf_plugin::value::Value;
use pyo3_ffi::*;
use std::ffi::c_void;
use std::sync::Arc;

/// schema(address: int) -> capsule "arrow_schema": a copy of a constant schema, for pyarrow to import.
pub unsafe extern "C" fn schema(_module: *mut PyObject, argument: *mut PyObject) -> *mut PyObject {
    unsafe extern "C" fn free(capsule: *mut PyObject) {
        // SAFETY: the capsule holds the box made below; a consumer that moved the schema out has reset its release.
        unsafe {
            let schema = Box::from_raw(PyCapsule_GetPointer(capsule, c"arrow_schema".as_ptr()).cast::<ArrowSchema>());
            let mut schema = *schema;
            if let Some(release) = schema.release {
                release(&mut schema);
            }
        }
    }
    // SAFETY: called by Python with the GIL and the address of a registered function's schema.
    unsafe {
        let pointer = PyLong_AsVoidPtr(argument).cast::<ArrowSchema>();
        let Some(constant) = pointer.as_ref() else {
            return raise(PyExc_ValueError, "not the address of a schema");
        };
        let copy = Box::into_raw(Box::new(signature::copy(constant)));
        PyCapsule_New(copy.cast(), c"arrow_schema".as_ptr(), Some(free))
    }
}

unsafe extern "C" fn forget(array: *mut ArrowArray) {
    // SAFETY: called by the consumer of a view; there is nothing to free.
    unsafe { (*array).release = None };
}

unsafe extern "C" fn drop_batch(array: *mut ArrowArray) {
    // SAFETY: `private_data` is the Arc given away in `vectorized`; dropping it frees nothing that the host owns, see above.
    unsafe {
        drop(Arc::from_raw((*array).private_data.cast::<Batch>()));
        (*array).release = None;
    }
}

unsafe fn child<T>(children: *mut *mut T, i: usize) -> *const T {
    // SAFETY: the array or schema was checked to have the child.
    unsafe { *children.add(i) }
}

/// A view of an array with another owner.
fn view(array: &ArrowArray, release: unsafe extern "C" fn(*mut ArrowArray), private_data: *const c_void) -> ArrowArray {
    ArrowArray { release: Some(release), private_data: private_data.cast_mut(), ..*array }
}

/// A column of a batch as a list of Python objects. The error is a text for every row.
///
/// # Safety
/// The GIL is held; the batch was made for this function.
pub unsafe fn column_to_list(function: &PythonFunction, batch: &Batch, argument: usize) -> Result<Owned, String> {
    // SAFETY: the batch has this column; pyarrow copies the values into Python objects and drops the view before the call
    // returns.
    unsafe {
        let outer = batch.array();
        let mut column = view(&*child(outer.children, argument), forget, std::ptr::null());
        column.offset += outer.offset;
        column.length = batch.rows() as i64;
        column.null_count = -1;
        let schema = child(function.signature.argument_schema.children, argument);
        let list = match (address(&raw const column), address(schema)) {
            (Some(array), Some(schema)) => call(CONVERSION, c"column_to_list", &[array.ptr(), schema.ptr()]),
            _ => None,
        };
        list.filter(|list| PyList_Check(list.ptr()) != 0).ok_or_else(|| exception_text())
    }
}

/// Row numbers of a batch, with their error texts.
pub type RowErrors = Vec<(usize, String)>;

/// A list of returned objects as an array of the function's return type. Objects that do not fit become null and a row
/// error.
///
/// # Safety
/// The GIL is held; `list` is a list.
pub unsafe fn list_to_column(function: &PythonFunction, list: *mut PyObject) -> Result<(ArrowArray, RowErrors), String> {
    let mut out = ArrowArray::empty();
    // SAFETY: `out` is writable during the call; the list that comes back has pairs of an int and a str.
    unsafe {
        let refused = match (address(function.signature.return_schema), address(&raw mut out)) {
            (Some(schema), Some(array)) => call(CONVERSION, c"list_to_column", &[list, schema.ptr(), array.ptr()]),
            _ => None,
        };
        let refused = refused.ok_or_else(|| exception_text())?;
        let mut texts = Vec::new();
        for i in 0..PyList_Size(refused.ptr()) {
            let pair = PyList_GetItem(refused.ptr(), i);
            texts.push((PyLong_AsSize_t(PyTuple_GetItem(pair, 0)), text(PyTuple_GetItem(pair, 1))));
        }
        Ok((out, texts))
    }
}

/// One object as a value of the function's return type. The error is a text for the row.
///
/// # Safety
/// The GIL is held; `object` is valid.
pub unsafe fn object_to_value(function: &PythonFunction, object: *mut PyObject) -> Result<Value, String> {
    // SAFETY: the list gets its own reference; the array that comes back is released here, in the thread that made it.
    unsafe {
        let list = Owned::new(PyList_New(1)).ok_or_else(|| exception_text())?;
        PyList_SetItem(list.ptr(), 0, Owned::borrowed(object).into_ptr());
        let (mut array, refused) = list_to_column(function, list.ptr())?;
        let layout: &Layout = &function.signature.returns;
        let value = match refused.into_iter().next() {
            Some((_, text)) => Err(text),
            None => Column::new(&array, layout, "the result").and_then(|column| column.value(layout, 0)),
        };
        if let Some(release) = array.release {
            release(&mut array);
        }
        value
    }
}

/// Calls a vectorized function with a batch. The error is a text for every row of the batch (F4).
///
/// # Safety
/// The GIL is held; the batch was made for this function.
pub unsafe fn vectorized(function: &PythonFunction, batch: &Arc<Batch>) -> Result<ArrowArray, String> {
    let mut out = ArrowArray::empty();
    // SAFETY: pyarrow moves the view out of `input`; if it does not, the view is released below. `out` is writable during
    // the call.
    unsafe {
        let mut input = view(batch.array(), drop_batch, Arc::into_raw(Arc::clone(batch)).cast());
        let signature = function.signature;
        let failed =
            match (address(&raw mut input), address(signature.argument_schema), address(signature.return_schema), address(&raw mut out)) {
                (Some(array), Some(schema), Some(returns), Some(out)) => {
                    call(CONVERSION, c"vectorized", &[function.callable.ptr(), array.ptr(), schema.ptr(), returns.ptr(), out.ptr()])
                }
                _ => None,
            };
        if let Some(release) = input.release {
            release(&mut input);
        }
        match failed {
            Some(failed) if failed.ptr() == Py_None() => Ok(out),
            Some(failed) => Err(text(failed.ptr())),
            None => Err(exception_text()),
        }
    }
}
