//! Plugins in subinterpreters, each with a GIL of its own: `_native.open_subinterpreters`.
//!
//! | module       | what it does                                                            |
//! |--------------|-------------------------------------------------------------------------|
//! | [`creation`] | makes a subinterpreter                                                  |
//! | [`halting`]  | ends those that do not end, when the process does                       |
//! | [`home`]     | a subinterpreter with the thread that it lives in                       |
//! | [`shares`]   | a call in several workers                                               |
//! | [`stopping`] | Ctrl-C during a call                                                    |
//! | [`worker`]   | a home with a plugin's functions                                        |
//!
//! A batch of a sync function is cut into shares, which the workers run. An async or blocking function has an
//! executor, and a Context, in each worker.
//!
//! Guarantees: a host's thread enters no subinterpreter, and so releases its arrays nowhere else (R19). When an instance is
//! dropped its runtimes are stopped, and nothing of the plugin is left in its homes; a home in which something does not end
//! is not used again. A function that needs pyarrow is refused by name, because pyarrow does not load in a subinterpreter.

mod creation;
mod halting;
mod home;
mod shares;
mod stopping;
mod worker;

pub use home::{begin_exit, end_all};

use crate::gil;
use crate::handlers;
use crate::interrupt;
use crate::modules::{EXECUTOR, SUBINTERPRETER};
use crate::object::{self, Owned};
use crate::sync;
use crate::values::conversion::{is_native, name_of};
use arroyo_udf_plugin::abi::{self, Table};
use arroyo_udf_plugin::arrow::{self, Batch, NoRoom};
use arroyo_udf_plugin::exports::Ran;
use arroyo_udf_plugin::failure::Failure;
use arroyo_udf_plugin::isolation::python::PythonPlugin;
use arroyo_udf_plugin::isolation::{self, Instance};
use arroyo_udf_plugin::machine::Stop;
use arroyo_udf_plugin::results;
use arroyo_udf_plugin::runtime::Runtime;
use arroyo_udf_plugin::signature::{text, Signature};
use arroyo_udf_plugin::sync::Unpoisoned;
use home::{end_until, time_until};
use pyo3_ffi::*;
use shares::{discard, Call};
use std::ffi::{c_uint, CStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::ptr::null_mut;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};
use worker::{Program, Worker};

/// How long an interrupted call waits for the row in hand. After that it goes on without the call.
const STOP_TIME: Duration = Duration::from_secs(1);

struct Subinterpreters {
    workers: Vec<Worker>,
    /// Those that were started here.
    runtimes: Mutex<Vec<Weak<Runtime>>>,
}

impl Subinterpreters {
    fn start(program: &Arc<Program>, workers: usize) -> Result<Subinterpreters, Failure> {
        let mut started = Subinterpreters { workers: Vec::new(), runtimes: Mutex::default() };
        for _ in 0..workers {
            started.workers.push(Worker::start(program)?);
        }
        Ok(started)
    }

    /// Refuses a function that needs pyarrow, and a call in a process that was forked from the one with the workers (R13).
    fn check(&self, signature: &Signature) -> Result<(), Failure> {
        if self.workers.iter().all(Worker::is_here) {
            return check(signature);
        }
        let text = "this process was forked from the one that opened the plugin: load the plugin here";
        Err(Failure::state(format!("{}: {text}", signature.name)))
    }

    /// The workers, the least busy first.
    fn idlest(&self) -> Vec<&Worker> {
        let mut workers: Vec<_> = self.workers.iter().map(|worker| (worker.busy(), worker)).collect();
        workers.sort_by_key(|(busy, _)| *busy);
        workers.into_iter().map(|(_, worker)| worker).collect()
    }
}

impl Instance for Subinterpreters {
    fn run(&self, function: u32, signature: &'static Signature, batch: &Arc<Batch>) -> Result<Ran, Failure> {
        self.check(signature)?;
        sync::check_timeout(signature)?;
        let call = Arc::new(Call::new(function as usize, batch, self.workers.len()));
        let (sender, answers) = channel();
        self.idlest().into_iter().take(call.shares()).for_each(|worker| worker.run(Arc::clone(&call), sender.clone()));
        drop(sender);
        let Some(answered) = call.collect(&answers, handlers::end_call) else {
            call.stopping.ask();
            let until = Instant::now() + STOP_TIME;
            discard(call.collect(&answers, || Instant::now() >= until).into_iter().flatten());
            return Err(interrupt::failure(&signature.name));
        };
        if let Some(text) = answered.iter().find_map(|one| one.as_ref().err().cloned()) {
            discard(answered);
            return Err(Failure::internal(text));
        }
        if answered.len() < call.shares() {
            discard(answered);
            return Err(Failure::state(format!("{}: the plugin is closed: load it again", signature.name)));
        }
        let (values, errors): (Vec<_>, Vec<_>) = answered.into_iter().flatten().unzip();
        // SAFETY: each share is a column of this type that our own code has just built.
        let (values, without_room) = unsafe { arrow::concat(&signature.returns, values) };
        let mut errors: Vec<_> = errors.into_iter().flatten().chain(NoRoom::errors(without_room)).collect();
        errors.sort_by_key(|(row, _)| *row);
        let (results, with_outcomes) = results::ran(&signature.name, values, &errors);
        Ok(Ran { results, with_outcomes })
    }

    fn start(&self, function: u32, runtime: &Arc<Runtime>) -> Result<(), Failure> {
        self.check(runtime.signature())?;
        let mut runtimes = self.runtimes.lock().unpoisoned();
        runtimes.retain(|runtime| runtime.strong_count() > 0);
        runtimes.push(Arc::downgrade(runtime));
        drop(runtimes);
        for worker in &self.workers {
            worker.serve(function as usize, runtime).inspect_err(|_| runtime.stop_soon(Stop::Cancel))?;
        }
        Ok(())
    }
}

impl Drop for Subinterpreters {
    fn drop(&mut self) {
        let runtimes: Vec<_> = self.runtimes.lock().unpoisoned().iter().filter_map(Weak::upgrade).collect();
        runtimes.iter().for_each(|runtime| runtime.stop_soon(Stop::Cancel));
        for runtime in runtimes {
            drop(runtime.stop(Stop::Cancel, time_until(end_until()))); // only a host that still drains could use the status
        }
        let until = end_until();
        let leaving: Vec<_> = self.workers.drain(..).filter_map(Worker::leave).collect();
        leaving.into_iter().for_each(|leaving| leaving.wait(until));
    }
}

/// Refuses a function that needs pyarrow.
fn check(signature: &Signature) -> Result<(), Failure> {
    let refused = |what: String| {
        let text = format!(
            "{}: {what}, which needs pyarrow, and that does not load in a subinterpreter: choose isolation=\"process\" or \"thread\"",
            signature.name
        );
        Err(Failure::new(abi::NOT_IMPLEMENTED, text))
    };
    if signature.vectorized {
        return refused("takes whole arrays".into());
    }
    // SAFETY: a checked signature's schemas are valid, with a child for each argument.
    unsafe {
        for (i, (name, _)) in signature.arguments.iter().enumerate() {
            let schema = &**signature.argument_schema.children.add(i);
            if !is_native(schema) {
                return refused(format!("the argument {name:?} is {}", name_of(&text(schema.format))));
            }
        }
        if !is_native(signature.return_schema) {
            return refused(format!("the result is {}", name_of(&text(signature.return_schema.format))));
        }
    }
    Ok(())
}

/// open_subinterpreters(table: int, workers: int) -> tuple[int, int] | tuple[int, str]: the address of the table that runs
/// the plugin's functions, and the number of the first one in it; or a status and a text. `table` is the plugin's own.
pub unsafe extern "C" fn open_subinterpreters(_module: *mut PyObject, arguments: *mut PyObject) -> *mut PyObject {
    let (mut address, mut workers) = (0usize, 0 as c_uint);
    // SAFETY: called by Python with the GIL, which is given back while workers start; the format names the types. The table
    // is that of a library that is never unloaded.
    unsafe {
        if PyArg_ParseTuple(arguments, c"nI:open_subinterpreters".as_ptr(), &mut address, &mut workers) == 0 {
            return null_mut();
        }
        match open(&*(address as *const Table), workers as usize) {
            Ok(base) => Py_BuildValue(c"(nI)".as_ptr(), &raw const isolation::TABLE as usize, base),
            Err(Failure { status, text, .. }) => {
                let Some(text) = Owned::new(PyUnicode_FromStringAndSize(text.as_ptr().cast(), text.len() as Py_ssize_t)) else {
                    return null_mut();
                };
                Py_BuildValue(c"(iO)".as_ptr(), status, text.ptr())
            }
        }
    }
}

/// # Safety
/// The GIL of the main interpreter is held; the table is that of a library that is never unloaded.
pub unsafe fn open(table: &Table, workers: usize) -> Result<u32, Failure> {
    creation::check()?;
    // SAFETY: passed on.
    unsafe {
        let descriptor = (table.describe)();
        let Some(plugin) = PythonPlugin::of(table) else {
            let text = match text((*descriptor).language) {
                python if python == "python" => {
                    "it was built with --no-python, or by another version of the toolkit: choose isolation=\"process\" \
                     or \"thread\", or build it again"
                        .to_string()
                }
                other => format!("subinterpreters are for plugins in Python, not in {other}: choose isolation=\"process\" or \"thread\""),
            };
            return Err(Failure::new(abi::NOT_IMPLEMENTED, text));
        };
        let signatures = isolation::signatures(descriptor).map_err(Failure::argument)?;
        // Here first, because some standard modules crash if a subinterpreter is where the process first imports them.
        let starts = signatures.iter().any(|signature| signature.kind == abi::ASYNC);
        for module in [SUBINTERPRETER].into_iter().chain(starts.then_some(EXECUTOR)) {
            let failed = || Failure::new(abi::ENVIRONMENT, object::exception_text());
            drop(Owned::new(PyImport_ImportModule(module.as_ptr())).ok_or_else(failed)?);
        }
        let parcel = prepared(plugin.parcel).ok_or_else(|| Failure::new(abi::INTERNAL, object::exception_text()))?;
        let prints_to_stderr = PySys_GetObject(c"stdout".as_ptr()) == PySys_GetObject(c"stderr".as_ptr());
        let program = Arc::new(Program { descriptor, signatures, plugin, parcel, path: main_path(), prints_to_stderr });
        let instance: Arc<dyn Instance> = Arc::new(gil::without(|| Subinterpreters::start(&program, workers))?);
        isolation::open(descriptor, &instance).map_err(Failure::argument)
    }
}

/// A plugin's parcel as workers take it. None: an exception is set.
unsafe fn prepared(parcel: &CStr) -> Option<Vec<u8>> {
    // SAFETY: the GIL is held; bytes are copied.
    unsafe {
        let text = Owned::new(PyUnicode_FromString(parcel.as_ptr()))?;
        let prepared = object::call(SUBINTERPRETER, c"prepared", &[text.ptr()])?;
        Some(bytes_of(prepared.ptr()).to_vec())
    }
}

/// `sys.path`, as far as it is text.
unsafe fn main_path() -> Vec<OsString> {
    // SAFETY: the GIL is held; sys.path and its items are borrowed, and bytes are copied.
    unsafe {
        let path = PySys_GetObject(c"path".as_ptr());
        if path.is_null() || PyList_Check(path) == 0 {
            return Vec::new();
        }
        let mut folders = Vec::new();
        for i in 0..PyList_Size(path) {
            match Owned::new(PyUnicode_EncodeFSDefault(PyList_GetItem(path, i))) {
                Some(folder) => folders.push(OsString::from_vec(bytes_of(folder.ptr()).to_vec())),
                None => PyErr_Clear(), // it is no text
            }
        }
        folders
    }
}

unsafe fn bytes_of<'a>(object: *mut PyObject) -> &'a [u8] {
    // SAFETY: the caller keeps the bytes object.
    unsafe { std::slice::from_raw_parts(PyBytes_AsString(object).cast(), PyBytes_Size(object) as usize) }
}
