//! Plugins whose functions run in worker processes: `_native.open_processes`, `_native.close_instance`, and the life of a
//! worker, `_native.work`.

use crate::object::{none, raise};
use crate::values::conversion::is_native;
use crate::{gil, handlers, sync};
use arroyo_udf_plugin::abi;
use arroyo_udf_plugin::isolation::process::child::Program;
use arroyo_udf_plugin::isolation::process::{serve, Limits, Processes, Spec};
use arroyo_udf_plugin::isolation::python::PythonPlugin;
use arroyo_udf_plugin::isolation::{self, contract, Instance};
use arroyo_udf_plugin::signature::Signature;
use pyo3_ffi::*;
use std::ffi::{c_char, c_uint, c_ulonglong, CStr, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::Arc;

unsafe fn owned(text: *const c_char) -> OsString {
    // SAFETY: the caller's text ends with a zero.
    OsStr::from_bytes(unsafe { CStr::from_ptr(text) }.to_bytes()).to_owned()
}

/// open_processes(path: bytes, table: int, python: bytes, module: bytes, workers: int, memory: int, cpu: int) ->
/// tuple[int, int]: the address of the table, and the number of the first function in it. `python -m module` is a worker.
/// That python is the one of $ARROYO_UDF_PYTHON; else the one that built the plugin, which may be of another version than
/// this one; else the given one.
pub unsafe extern "C" fn open_processes(_module: *mut PyObject, arguments: *mut PyObject) -> *mut PyObject {
    let (mut path, mut python, mut module) = (null::<c_char>(), null::<c_char>(), null::<c_char>());
    let (mut table, mut workers) = (0usize, 0 as c_uint);
    let (mut memory, mut cpu) = (0 as c_ulonglong, 0 as c_ulonglong);
    // SAFETY: called by Python with the GIL; the format names the types of the variables; the texts outlive the call.
    unsafe {
        if PyArg_ParseTuple(
            arguments,
            c"ynyyIKK:open_processes".as_ptr(),
            &mut path,
            &mut table,
            &mut python,
            &mut module,
            &mut workers,
            &mut memory,
            &mut cpu,
        ) == 0
        {
            return null_mut();
        }
        let table = &*(table as *const abi::Table);
        let own = PythonPlugin::of(table).map(|about| OsStr::from_bytes(about.python.to_bytes()).to_owned());
        let own = own.filter(|own| Path::new(own).exists());
        let python = contract::chosen_python().or(own).unwrap_or_else(|| owned(python));
        let program = Program { path: python, arguments: vec!["-m".into(), owned(module)] };
        let limits = Limits { memory, cpu };
        let (path, descriptor) = (CStr::from_ptr(path).to_bytes().to_vec(), (table.describe)());
        let opened = Spec::new(program, limits, path, descriptor, handlers::end_call).and_then(|spec| {
            let instance: Arc<dyn Instance> = Arc::new(Processes::new(spec, workers as usize));
            isolation::open(descriptor, &instance)
        });
        match opened {
            Ok(base) => Py_BuildValue(c"(nI)".as_ptr(), &raw const isolation::TABLE as usize, base),
            Err(text) => raise(PyExc_ValueError, &text),
        }
    }
}

/// close_instance(base: int, functions: int): ends the workers of an instance; its functions answer INVALID_STATE.
pub unsafe extern "C" fn close_instance(_module: *mut PyObject, arguments: *mut PyObject) -> *mut PyObject {
    let (mut base, mut functions) = (0 as c_uint, 0 as c_uint);
    // SAFETY: called by Python with the GIL, which is given back while workers end; the format names the types.
    unsafe {
        if PyArg_ParseTuple(arguments, c"II:close_instance".as_ptr(), &mut base, &mut functions) == 0 {
            return null_mut();
        }
        gil::without(|| isolation::close(base, functions));
        none()
    }
}

/// work(): the life of a worker process, whose standard input is the control socket of its host. Returns when the host asks
/// it to leave; raises RuntimeError if it cannot work.
pub unsafe extern "C" fn work(_module: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    sync::host_keeps_time();
    // SAFETY: called by Python with the GIL, which is given back until the worker leaves.
    unsafe {
        match gil::without(|| serve::serve(journals)) {
            Ok(()) => none(),
            Err(text) => raise(PyExc_RuntimeError, &text),
        }
    }
}

/// Whether the loop over the function's rows takes the journal: that of Python functions does if results are converted here.
/// The loops of other languages have no journal of this library.
fn journals(language: &str, signature: &Signature) -> bool {
    language == "python" && is_native(signature.return_schema)
}
