//! The functions that the Python plugins of this process have registered: `_native.register`.
//!
//! A plugin's `run` and `start` count its own functions; the base that `register` answers turns that into a number here.
//! Functions are never removed, as plugins are never unloaded.

use crate::calls::MOST_ARGUMENTS;
use crate::object::{raise, Owned};
use crate::types::Type;
use arroyo_udf_plugin::abi::Descriptor;
use arroyo_udf_plugin::failure::Failure;
use arroyo_udf_plugin::results;
use arroyo_udf_plugin::signature::{text, Signature};
use pyo3_ffi::*;
use std::sync::RwLock;

/// A user's function, ready to be called.
pub struct Function {
    pub signature: &'static Signature,
    pub callable: Owned,
    /// The class of the Context, of async functions that take one.
    pub context: Option<Owned>,
    /// Called in a thread of the pool, not on the event loop.
    pub blocking: bool,
    pub arguments: Vec<Type>,
    pub returns: Type,
}

static FUNCTIONS: RwLock<Vec<&'static Function>> = RwLock::new(Vec::new());

pub fn get(function: u32) -> Result<&'static Function, Failure> {
    let functions = FUNCTIONS.read().unwrap_or_else(|e| e.into_inner());
    functions.get(function as usize).copied().ok_or_else(|| Failure::argument(format!("function number {function} is not registered")))
}

/// register(descriptor: int, functions: list[tuple[callable, type | None, bool]]) -> int: the number of the first one. The
/// bool: blocking.
pub unsafe extern "C" fn register(_module: *mut PyObject, arguments: *mut PyObject) -> *mut PyObject {
    let (mut address, mut functions) = (0usize, std::ptr::null_mut::<PyObject>());
    // SAFETY: called by Python with the GIL; the format names the types of the two variables. Items are borrowed from a
    // list that the caller keeps.
    unsafe {
        if PyArg_ParseTuple(arguments, c"nO!:register".as_ptr(), &mut address, &raw mut PyList_Type, &mut functions) == 0 {
            return std::ptr::null_mut();
        }
        let descriptor = address as *const Descriptor;
        let Some(descriptor) = descriptor.as_ref().filter(|d| d.size == size_of::<Descriptor>() as u64) else {
            return raise(PyExc_ValueError, "the descriptor is of another version");
        };
        if PyList_Size(functions) != descriptor.n_functions as Py_ssize_t {
            return raise(PyExc_ValueError, "one function is needed for each of the descriptor's");
        }
        let plugin = text(descriptor.name);
        let mut read = Vec::new();
        for i in 0..descriptor.n_functions as usize {
            let item = PyList_GetItem(functions, i as Py_ssize_t);
            let (mut callable, mut context, mut blocking) = (std::ptr::null_mut(), std::ptr::null_mut(), 0);
            if PyArg_ParseTuple(item, c"OOp:register".as_ptr(), &mut callable, &mut context, &mut blocking) == 0 {
                return std::ptr::null_mut();
            }
            let signature = match Signature::read(&plugin, *descriptor.functions.add(i)) {
                Ok(signature) => Box::leak(Box::new(signature)),
                Err(text) => return raise(PyExc_ValueError, &text),
            };
            if signature.arguments.len() > MOST_ARGUMENTS {
                return raise(PyExc_ValueError, &format!("{}: more than {MOST_ARGUMENTS} arguments", signature.name));
            }
            let Some(function) = function(signature, callable, context, blocking != 0) else { return std::ptr::null_mut() };
            read.push(&*Box::leak(Box::new(function)));
        }
        let mut functions = FUNCTIONS.write().unwrap_or_else(|e| e.into_inner());
        let base = functions.len();
        functions.extend(read);
        PyLong_FromSize_t(base)
    }
}

unsafe fn function(signature: &'static Signature, callable: *mut PyObject, context: *mut PyObject, blocking: bool) -> Option<Function> {
    // SAFETY: the GIL is held; the signature has been checked, so its schemas have the children that are read here.
    unsafe {
        let fields = 0..signature.arguments.len();
        let schemas = fields.map(|i| &**signature.argument_schema.children.add(i));
        Some(Function {
            signature,
            callable: Owned::borrowed(callable),
            context: (context != Py_None()).then(|| Owned::borrowed(context)),
            blocking,
            arguments: schemas.map(|schema| Type::of(schema)).collect::<Option<_>>()?,
            returns: Type::of(signature.return_schema)?,
        })
    }
}

impl Function {
    /// Whether a call is for several rows: a list for each argument, and a list of results.
    pub fn takes_groups(&self) -> bool {
        self.signature.options.batch_size > 0
    }

    /// The error text of a row.
    pub fn row_text(&self, row: impl std::fmt::Display, text: &str) -> String {
        results::error_text(format!("{}, row {row}: {text}", self.signature.name))
    }
}
