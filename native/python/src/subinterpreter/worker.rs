//! A worker: a subinterpreter with a plugin's functions, and the thread that made it, runs batches in it and ends it.

use super::creation;
use crate::function::PythonFunction;
use crate::interpreter::Interpreter;
use crate::modules::SUBINTERPRETER;
use crate::object::{self, exception_text, Owned};
use crate::pyarrow::RowErrors;
use crate::registry;
use crate::starting;
use crate::state;
use crate::sync;
use arroyo_udf_plugin::abi::{self, ArrowArray, Descriptor};
use arroyo_udf_plugin::arrow::Batch;
use arroyo_udf_plugin::failure::Failure;
use arroyo_udf_plugin::isolation::python::PythonPlugin;
use arroyo_udf_plugin::panics::catch_own;
use arroyo_udf_plugin::runtime::Runtime;
use arroyo_udf_plugin::signature::Signature;
use arroyo_udf_plugin::sync::Unpoisoned;
use arroyo_udf_plugin::threads::{self, AUTHORS_STACK};
use pyo3_ffi::*;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// What the functions of a plugin are made from.
pub struct Program {
    pub descriptor: *const Descriptor,
    pub signatures: Vec<&'static Signature>,
    pub plugin: PythonPlugin,
    /// `sys.path` of the main interpreter.
    pub path: Vec<String>,
    /// Standard output is the host's: what `print` writes goes to standard error.
    pub prints_to_stderr: bool,
}

// SAFETY: the descriptor is a constant of a library that is never unloaded.
unsafe impl Send for Program {}
// SAFETY: as above.
unsafe impl Sync for Program {}

/// Rows that a worker has run: which share of the batch, and its values and errors.
pub type Answer = (usize, Result<(ArrowArray, RowErrors), String>);

/// Rows of a batch to run.
pub struct Share {
    pub function: usize,
    pub batch: Arc<Batch>,
    pub rows: Range<usize>,
    pub number: usize,
    pub answers: Sender<Answer>,
}

pub struct Worker {
    interpreter: Arc<Interpreter>,
    functions: Vec<Weak<PythonFunction>>,
    shares: Sender<Share>,
    /// Shares that wait or run.
    pub busy: Arc<AtomicUsize>,
    /// How the worker has ended.
    ended: Mutex<Receiver<Result<(), String>>>,
}

impl Worker {
    /// Starts one, with the plugin's module executed in it.
    pub fn start(program: &Arc<Program>) -> Result<Worker, Failure> {
        let (started, starts) = channel();
        let (shares, waiting) = channel();
        let (end, ended) = channel();
        let busy = Arc::new(AtomicUsize::new(0));
        let (program, busy_too) = (Arc::clone(program), Arc::clone(&busy));
        let live = move || {
            let made = catch_own(|| begin(&program)).unwrap_or_else(|text| Err(Failure::internal(text)));
            match made {
                Ok((interpreter, functions)) => {
                    let weak = functions.iter().map(Arc::downgrade).collect();
                    drop(started.send(Ok((Arc::clone(&interpreter), weak))));
                    serve(&interpreter, &functions, &waiting, &busy_too);
                    drop(end.send(finish(&interpreter, functions)));
                }
                Err(failure) => drop(started.send(Err(failure))),
            }
        };
        let spawned = threads::spawn("udf-python", AUTHORS_STACK, live);
        spawned.map_err(|error| Failure::for_now(abi::ENVIRONMENT, format!("no thread for a subinterpreter: {error}")))?;
        let started = starts.recv().unwrap_or_else(|_| Err(Failure::internal("the thread of a subinterpreter has ended")));
        started.map(|(interpreter, functions)| Worker { interpreter, functions, shares, busy, ended: Mutex::new(ended) })
    }

    /// Answers by the share's own channel.
    pub fn run(&self, share: Share) {
        self.busy.fetch_add(1, Ordering::Relaxed);
        drop(self.shares.send(share)); // without a thread, the share is dropped, and its channel closes
    }

    /// Starts an async or blocking function here. In a thread of its own, because no other may enter.
    pub fn serve(&self, function: usize, runtime: &Arc<Runtime>) -> Result<(), Failure> {
        let (interpreter, function) = (Arc::clone(&self.interpreter), Weak::clone(&self.functions[function]));
        let (done, answer) = channel();
        let runtime = Arc::clone(runtime);
        let start = move || {
            let started = catch_own(|| starting::start(&interpreter, &function, &runtime));
            drop(runtime);
            drop(done.send(started.unwrap_or_else(|text| Err(Failure::internal(text)))));
        };
        let spawned = threads::spawn("udf-start", AUTHORS_STACK, start);
        spawned.map_err(|error| Failure::for_now(abi::ENVIRONMENT, format!("no thread for a start: {error}")))?;
        answer.recv().unwrap_or_else(|_| Err(Failure::internal("the thread of a start has ended")))
    }

    /// Ends the worker, after the shares that it has. The error says why it goes on.
    pub fn end(self, patience: Duration) -> Result<(), String> {
        drop(self.shares);
        match self.ended.into_inner().unpoisoned().recv_timeout(patience) {
            Ok(ended) => ended,
            Err(RecvTimeoutError::Timeout) => Err("a call is still running".into()),
            Err(RecvTimeoutError::Disconnected) => Err("its thread has failed".into()),
        }
    }
}

/// How long threads may take to leave an interpreter that ends.
const LEAVE_TIME: Duration = Duration::from_secs(1);

type Functions = Vec<Arc<PythonFunction>>;

/// The start, in the worker's thread.
fn begin(program: &Program) -> Result<(Arc<Interpreter>, Functions), Failure> {
    let _alone = creation::one_at_a_time();
    let interpreter = creation::create()?;
    // SAFETY: the GIL is held inside.
    let loaded = interpreter.enter(|| unsafe { load(program) })?;
    match loaded {
        Ok(functions) => Ok((interpreter, functions)),
        Err(failure) => {
            drop(finish(&interpreter, Vec::new())); // why it goes on is of no use to anybody
            Err(failure)
        }
    }
}

/// Executes the plugin's module.
///
/// # Safety
/// The GIL is held, in a new interpreter.
unsafe fn load(program: &Program) -> Result<Functions, Failure> {
    // SAFETY: passed on; the texts are C strings.
    unsafe {
        let failed = || Failure::new(abi::ENVIRONMENT, format!("a subinterpreter does not start: {}", exception_text()));
        set_path(&program.path).ok_or_else(failed)?;
        let text = |text: &std::ffi::CStr| Owned::new(PyUnicode_DecodeFSDefault(text.as_ptr()));
        let arguments = [
            object::address(program.descriptor),
            Owned::new(PyUnicode_FromString(program.plugin.parcel.as_ptr())),
            text(program.plugin.library),
            text(program.plugin.python),
            Owned::new(PyLong_FromUnsignedLong(program.plugin.format.into())),
            Owned::new(PyBool_FromLong(program.prints_to_stderr.into())),
        ];
        let arguments = arguments.into_iter().collect::<Option<Vec<_>>>().ok_or_else(failed)?;
        let pointers: Vec<_> = arguments.iter().map(Owned::ptr).collect();
        let loaded = object::call(SUBINTERPRETER, c"load", &pointers).ok_or_else(failed)?;
        if PyList_Check(loaded.ptr()) == 0 {
            let status = PyLong_AsLong(PyTuple_GetItem(loaded.ptr(), 0)) as abi::Status;
            return Err(Failure::new(status, object::text(PyTuple_GetItem(loaded.ptr(), 1))));
        }
        let module = Owned::new(PyImport_ImportModule(c"arroyo_udf_plugin._native".as_ptr())).ok_or_else(failed)?;
        registry::functions(&state::shared(module.ptr()), &program.signatures, loaded.ptr()).ok_or_else(failed)
    }
}

/// Sets `sys.path`, as the main interpreter has it: a program may have changed it. None: an exception is set.
unsafe fn set_path(path: &[String]) -> Option<()> {
    // SAFETY: the GIL is held; sys.path is borrowed.
    unsafe {
        let list = Owned::new(PyList_New(0))?;
        for folder in path {
            let folder = Owned::new(PyUnicode_DecodeFSDefaultAndSize(folder.as_ptr().cast(), folder.len() as Py_ssize_t))?;
            if PyList_Append(list.ptr(), folder.ptr()) < 0 {
                return None;
            }
        }
        (PySys_SetObject(c"path".as_ptr(), list.ptr()) == 0).then_some(())
    }
}

/// Runs shares until nobody can send any more.
fn serve(interpreter: &Arc<Interpreter>, functions: &Functions, shares: &Receiver<Share>, busy: &AtomicUsize) {
    while let Ok(Share { function, batch, rows, number, answers }) = shares.recv() {
        // SAFETY: the GIL is held inside; the batch was checked against this function's signature.
        let run = || interpreter.enter(|| unsafe { sync::run_rows(&functions[function], &batch, rows) });
        let ran = catch_own(run).and_then(|ran| ran.map_err(|failure| failure.text));
        drop(batch); // before the answer: then the host alone has it (R19)
        busy.fetch_sub(1, Ordering::Relaxed);
        drop(answers.send((number, ran)));
    }
}

/// The end, in the worker's thread. The error says why the interpreter stays.
fn finish(interpreter: &Arc<Interpreter>, functions: Functions) -> Result<(), String> {
    // SAFETY: the GIL is held inside. Functions go where they came from.
    let left = interpreter.enter(|| unsafe {
        let left = object::call(SUBINTERPRETER, c"leave", &[]).map(drop).ok_or_else(|| exception_text());
        drop(functions);
        left
    });
    left.map_err(|failure| failure.text)??;
    interpreter.end(LEAVE_TIME)
}
