//! The functions that the Python plugins of this process have registered: `_native.register`.
//!
//! A plugin's `run` and `start` number its own functions from 0; `register` answers the base that turns such a number into
//! one of the registry. Functions are never removed, because plugins are never unloaded.

use crate::function::{PythonFunction, MOST_ARGUMENTS};
use crate::object::{is_main_interpreter, raise, ONLY_MAIN};
use arroyo_udf_plugin::abi::Descriptor;
use arroyo_udf_plugin::failure::Failure;
use arroyo_udf_plugin::retired::Retired;
use arroyo_udf_plugin::signature::{text, Signature};
use arroyo_udf_plugin::sized;
use arroyo_udf_plugin::sync::Unpoisoned;
use pyo3_ffi::*;
use std::ptr::null_mut;
use std::sync::RwLock;

static FUNCTIONS: RwLock<Vec<&'static PythonFunction>> = RwLock::new(Vec::new());

pub fn get(function: u32) -> Result<&'static PythonFunction, Failure> {
    let functions = FUNCTIONS.read().unpoisoned();
    functions.get(function as usize).copied().ok_or_else(|| Failure::argument(format!("function number {function} is not registered")))
}

/// Adds the functions of a plugin, and answers its base. Python never runs while the lock is held: making an object may
/// collect garbage, and so run any code, which may call a function.
fn add(registered: Vec<&'static PythonFunction>) -> usize {
    let mut functions = FUNCTIONS.write().unpoisoned();
    let base = functions.len();
    functions.extend(registered);
    base
}

/// register(descriptor: int, functions: list[tuple[callable, type | None, bool]]) -> int: the base. The type is the class
/// of the Context; the bool says whether the function blocks.
pub unsafe extern "C" fn register(_module: *mut PyObject, arguments: *mut PyObject) -> *mut PyObject {
    let (mut address, mut functions) = (0usize, null_mut::<PyObject>());
    // SAFETY: called by Python with the GIL; the format names the types of the two variables. Items are borrowed from a
    // list that the caller keeps.
    unsafe {
        if !is_main_interpreter() {
            return raise(PyExc_RuntimeError, ONLY_MAIN);
        }
        if PyArg_ParseTuple(arguments, c"nO!:register".as_ptr(), &mut address, &raw mut PyList_Type, &mut functions) == 0 {
            return null_mut();
        }
        let descriptor = match sized::read(address as *const Descriptor) {
            Ok(descriptor) => descriptor,
            Err(text) => return raise(PyExc_ValueError, &text),
        };
        if PyList_Size(functions) != descriptor.n_functions as Py_ssize_t {
            return raise(PyExc_ValueError, "one function is needed for each of the descriptor's");
        }
        let plugin = text(descriptor.name);
        let retired: &'static Retired = Box::leak(Box::default());
        let mut registered = Vec::new();
        for i in 0..descriptor.n_functions as usize {
            let item = PyList_GetItem(functions, i as Py_ssize_t);
            let (mut callable, mut context, mut blocking, mut split) = (null_mut(), null_mut(), 0, 0);
            if PyArg_ParseTuple(item, c"OOpp:register".as_ptr(), &mut callable, &mut context, &mut blocking, &mut split) == 0 {
                return null_mut();
            }
            let signature = match Signature::read(&plugin, *descriptor.functions.add(i)) {
                Ok(signature) => Box::leak(Box::new(Signature { retired, ..signature })),
                Err(text) => return raise(PyExc_ValueError, &text),
            };
            if signature.arguments.len() > MOST_ARGUMENTS {
                return raise(PyExc_ValueError, &format!("{}: more than {MOST_ARGUMENTS} arguments", signature.name));
            }
            let Some(function) = PythonFunction::new(signature, callable, context, blocking != 0, split != 0) else { return null_mut() };
            registered.push(&*Box::leak(Box::new(function)));
        }
        PyLong_FromSize_t(add(registered))
    }
}
