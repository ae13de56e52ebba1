//! `described`: what Python code needs of a plugin's descriptor, without cffi, which cannot be imported in a subinterpreter.

use crate::object::{raise, Owned};
use arroyo_udf_plugin::abi::{self, Descriptor, Function};
use arroyo_udf_plugin::sized;
use pyo3_ffi::*;
use std::ffi::c_int;
use std::ptr::null_mut;

/// described(descriptor: int) -> tuple[str, str, list[tuple[str, bool, bool, int]]]: the plugin's name and hash, and of each
/// function its name, whether it is started, whether it takes micro-batches, and the number of its columns. The descriptor
/// is a valid one.
pub unsafe extern "C" fn described(_module: *mut PyObject, address: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and one argument; a valid descriptor has n_functions functions.
    unsafe {
        let address = PyLong_AsVoidPtr(address).cast::<Descriptor>();
        if address.is_null() {
            return raise(PyExc_ValueError, "described() takes the address of a descriptor");
        }
        let Some(list) = Owned::new(PyList_New(0)) else { return null_mut() };
        let descriptor = sized::read(address);
        let functions = descriptor.and_then(|it| (0..it.n_functions as usize).map(|i| sized::read(*it.functions.add(i))).collect());
        let functions: Vec<Function> = match functions {
            Ok(functions) => functions,
            Err(text) => return raise(PyExc_ValueError, &text),
        };
        for function in &functions {
            let Some(one) = Owned::new(one(function)) else { return null_mut() };
            if PyList_Append(list.ptr(), one.ptr()) < 0 {
                return null_mut();
            }
        }
        Py_BuildValue(c"(ssO)".as_ptr(), (*address).name, (*address).hash, list.ptr())
    }
}

unsafe fn one(function: &Function) -> *mut PyObject {
    // SAFETY: the GIL is held; a valid function has a schema of its arguments, and options if it is started.
    unsafe {
        let starts = function.kind == abi::ASYNC;
        let batched = function.options.as_ref().is_some_and(|options| options.batch_size > 0);
        let flag = |it: bool| PyBool_FromLong(it.into());
        let columns = (*function.arguments).n_children as c_int;
        Py_BuildValue(c"(sNNi)".as_ptr(), function.name, flag(starts), flag(batched), columns)
    }
}
