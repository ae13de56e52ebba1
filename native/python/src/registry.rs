//! The functions that the Python plugins of this process have registered: `_native.register`.
//!
//! A plugin's `run` and `start` number its own functions from 0; `register` answers the base that turns such a number into
//! one of the registry. Functions are never removed, because plugins are never unloaded.

use crate::function::{PythonFunction, MOST_ARGUMENTS};
use crate::object::raise;
use crate::state::{self, State};
use arroyo_udf_plugin::abi::Descriptor;
use arroyo_udf_plugin::failure::Failure;
use arroyo_udf_plugin::retired::Retired;
use arroyo_udf_plugin::signature::{text, Signature};
use arroyo_udf_plugin::sized;
use arroyo_udf_plugin::sync::Unpoisoned;
use pyo3_ffi::*;
use std::ptr::null_mut;
use std::sync::{Arc, RwLock};

static FUNCTIONS: RwLock<Vec<Arc<PythonFunction>>> = RwLock::new(Vec::new());

pub fn get(function: u32) -> Result<Arc<PythonFunction>, Failure> {
    let functions = FUNCTIONS.read().unpoisoned();
    functions.get(function as usize).cloned().ok_or_else(|| Failure::argument(format!("function number {function} is not registered")))
}

/// Adds the functions of a plugin, and answers its base. Python never runs while the lock is held: making an object may
/// collect garbage, and so run any code, which may call a function.
fn add(registered: Vec<Arc<PythonFunction>>) -> usize {
    let mut functions = FUNCTIONS.write().unpoisoned();
    let base = functions.len();
    functions.extend(registered);
    base
}

/// The functions of a plugin in the interpreter of this state: for each function of the descriptor an item (callable, class
/// of the Context or None, whether it blocks, whether it may be split). None: an exception is set.
///
/// # Safety
/// The GIL is held, in the interpreter of this state; the list is one, and kept by the caller.
pub unsafe fn functions(state: &Arc<State>, signatures: &[&'static Signature], list: *mut PyObject) -> Option<Vec<Arc<PythonFunction>>> {
    // SAFETY: passed on. The format names the types of the variables; items are borrowed from the list.
    unsafe {
        if PyList_Size(list) != signatures.len() as Py_ssize_t {
            raise(PyExc_ValueError, "one function is needed for each of the descriptor's");
            return None;
        }
        let function = |(i, signature): (usize, &&'static Signature)| {
            let item = PyList_GetItem(list, i as Py_ssize_t);
            let (mut callable, mut context, mut blocking, mut split) = (null_mut(), null_mut(), 0, 0);
            if PyArg_ParseTuple(item, c"OOpp:register".as_ptr(), &mut callable, &mut context, &mut blocking, &mut split) == 0 {
                return None;
            }
            PythonFunction::new(state, signature, callable, context, blocking != 0, split != 0).map(Arc::new)
        };
        signatures.iter().enumerate().map(function).collect()
    }
}

/// The signatures of a plugin's functions, which live as long as the process.
///
/// # Safety
/// The address is that of a valid descriptor, which is a constant.
pub unsafe fn signatures(descriptor: *const Descriptor) -> Result<Vec<&'static Signature>, String> {
    // SAFETY: passed on; a valid descriptor has n_functions functions.
    unsafe {
        let descriptor = sized::read(descriptor)?;
        let plugin = text(descriptor.name);
        let retired: &'static Retired = Box::leak(Box::default());
        let signature = |i| {
            let signature = Signature::read(&plugin, *descriptor.functions.add(i))?;
            if signature.arguments.len() > MOST_ARGUMENTS {
                return Err(format!("{}: more than {MOST_ARGUMENTS} arguments", signature.name));
            }
            Ok(&*Box::leak(Box::new(Signature { retired, ..signature })))
        };
        (0..descriptor.n_functions as usize).map(signature).collect()
    }
}

/// register(descriptor: int, functions: list[tuple[callable, type | None, bool, bool]]) -> int: the base. See [`functions`].
pub unsafe extern "C" fn register(module: *mut PyObject, arguments: *mut PyObject) -> *mut PyObject {
    let (mut address, mut list) = (0usize, null_mut::<PyObject>());
    // SAFETY: called by Python with the GIL; the format names the types of the two variables.
    unsafe {
        let state = state::shared(module);
        if !state.interpreter.is_main() {
            return raise(PyExc_RuntimeError, "plugins register their functions in the main interpreter");
        }
        if PyArg_ParseTuple(arguments, c"nO!:register".as_ptr(), &mut address, &raw mut PyList_Type, &mut list) == 0 {
            return null_mut();
        }
        let signatures = match signatures(address as *const Descriptor) {
            Ok(signatures) => signatures,
            Err(text) => return raise(PyExc_ValueError, &text),
        };
        let Some(functions) = functions(&state, &signatures, list) else { return null_mut() };
        PyLong_FromSize_t(add(functions))
    }
}
