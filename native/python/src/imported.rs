//! Functions of libraries built for the Arroyo engine, behind our table: `_native.open_arroyo`, `_native.import_arroyo`.
//!
//! Functions are numbered in the order of their import, and never removed, because libraries are never unloaded.

use crate::object::raise;
use arroyo_udf_plugin::abi;
use arroyo_udf_plugin::arrow::Batch;
use arroyo_udf_plugin::arroyo::import;
use arroyo_udf_plugin::arroyo::theirs::Library;
use arroyo_udf_plugin::exports::{self, Plugin, Ran};
use arroyo_udf_plugin::failure::Failure;
use arroyo_udf_plugin::runtime::Runtime;
use arroyo_udf_plugin::signature::{text, Signature};
use arroyo_udf_plugin::sized;
use arroyo_udf_plugin::sync::Unpoisoned;
use pyo3_ffi::*;
use std::ffi::{c_char, CStr};
use std::ptr::{null, null_mut};
use std::sync::{Arc, RwLock};

struct ImportedFunction {
    library: Library,
    signature: Signature,
}

static FUNCTIONS: RwLock<Vec<&'static ImportedFunction>> = RwLock::new(Vec::new());

fn get(function: u32) -> Result<&'static ImportedFunction, Failure> {
    let functions = FUNCTIONS.read().unpoisoned();
    functions.get(function as usize).copied().ok_or_else(|| Failure::argument(format!("function number {function} is not imported")))
}

/// All imported functions, behind one table.
struct Imported;

impl Plugin for Imported {
    /// The importer describes each library.
    fn describe() -> *const abi::Descriptor {
        null()
    }

    fn signature(function: u32) -> Result<&'static Signature, Failure> {
        get(function).map(|function| &function.signature)
    }

    fn run(function: u32, batch: &Arc<Batch>) -> Result<Ran, Failure> {
        let function = get(function)?;
        import::run(function.library, &function.signature, batch)
    }

    fn start(function: u32, runtime: &Arc<Runtime>) -> Result<(), Failure> {
        import::start(get(function)?.library, runtime)
    }
}

static TABLE: abi::Table = exports::table::<Imported>();

unsafe fn open(path: *const c_char) -> Option<Library> {
    // SAFETY: the path is a NUL-terminated text that Python keeps; the caller has the GIL.
    unsafe {
        match Library::open(CStr::from_ptr(path)) {
            Ok(library) => Some(library),
            Err(text) => {
                raise(PyExc_OSError, &text);
                None
            }
        }
    }
}

/// open_arroyo(path: bytes) -> int: the kind of the library's function. Raises OSError if it cannot be opened.
pub unsafe extern "C" fn open_arroyo(_module: *mut PyObject, path: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and one argument, which outlives the call.
    unsafe {
        let path = PyBytes_AsString(path);
        if path.is_null() {
            return null_mut();
        }
        match open(path) {
            Some(Library::Sync(_)) => PyLong_FromLong(abi::SYNC.into()),
            Some(Library::Async(_)) => PyLong_FromLong(abi::ASYNC.into()),
            None => null_mut(),
        }
    }
}

/// import_arroyo(path: bytes, descriptor: int) -> tuple[int, int]: the address of the table, and the function's number in
/// it. The descriptor has one function, and is a constant from here on.
pub unsafe extern "C" fn import_arroyo(_module: *mut PyObject, arguments: *mut PyObject) -> *mut PyObject {
    let (mut path, mut address) = (null::<c_char>(), 0usize);
    // SAFETY: called by Python with the GIL; the format names the types of the two variables.
    unsafe {
        if PyArg_ParseTuple(arguments, c"yn:import_arroyo".as_ptr(), &mut path, &mut address) == 0 {
            return null_mut();
        }
        let Some(library) = open(path) else { return null_mut() };
        let descriptor = sized::read(address as *const abi::Descriptor);
        let signature = match descriptor.and_then(|it| Signature::read(&text(it.name), *it.functions)) {
            Ok(signature) => signature,
            Err(text) => return raise(PyExc_ValueError, &text),
        };
        let mut functions = FUNCTIONS.write().unpoisoned();
        functions.push(Box::leak(Box::new(ImportedFunction { library, signature })));
        Py_BuildValue(c"(nn)".as_ptr(), &raw const TABLE as usize, functions.len() - 1)
    }
}
