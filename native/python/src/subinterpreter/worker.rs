//! A worker: a home with a plugin's functions.

use super::creation;
use super::home::{end_until, is_exit, leave_time, time_until, Functions, Home};
use super::shares::{discard, Answer, Call};
use crate::function::PythonFunction;
use crate::interpreter::Interpreter;
use crate::modules::SUBINTERPRETER;
use crate::object::{self, exception_text, Owned};
use crate::registry;
use crate::starting;
use crate::state;
use crate::sync;
use arroyo_udf_plugin::abi::{self, Descriptor};
use arroyo_udf_plugin::failure::Failure;
use arroyo_udf_plugin::isolation::python::PythonPlugin;
use arroyo_udf_plugin::panics::catch_own;
use arroyo_udf_plugin::runtime::Runtime;
use arroyo_udf_plugin::signature::Signature;
use arroyo_udf_plugin::threads::{self, AUTHORS_STACK};
use pyo3_ffi::*;
use std::ffi::{CStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Receiver, SendError, Sender};
use std::sync::{Arc, Weak};
use std::time::Instant;

/// What the functions of a plugin are made from.
pub struct Program {
    pub descriptor: *const Descriptor,
    pub signatures: &'static [&'static Signature],
    pub plugin: PythonPlugin,
    /// Its parcel, as `prepared` of subinterpreter.py gives it.
    pub parcel: Vec<u8>,
    /// `sys.path` of the main interpreter.
    pub path: Vec<OsString>,
    /// Standard output is the host's: what `print` writes goes to standard error.
    pub prints_to_stderr: bool,
}

// SAFETY: the descriptor is a constant of a library that is never unloaded.
unsafe impl Send for Program {}
// SAFETY: as above.
unsafe impl Sync for Program {}

pub struct Worker {
    home: Home,
    functions: Vec<Weak<PythonFunction>>,
    /// Calls that wait or run.
    busy: Arc<AtomicUsize>,
    /// What a start needs has been imported.
    can_start: Arc<AtomicBool>,
}

impl Worker {
    /// Executes the plugin's module in a home. One at a time in the process, because the first import of some standard modules
    /// in several interpreters at once crashes.
    pub fn start(program: &Arc<Program>) -> Result<Worker, Failure> {
        let _alone = creation::one_at_a_time();
        if is_exit() {
            return Err(Failure::state("the process ends"));
        }
        creation::check_room()?;
        let home = Home::find()?;
        let (done, loaded) = channel();
        let program = Arc::clone(program);
        home.run(move |interpreter, functions| {
            // SAFETY: the GIL is held inside.
            let loaded = interpreter.enter(|| unsafe { load(&program) }).and_then(|loaded| loaded);
            drop(done.send(loaded.map(|loaded| {
                *functions = loaded;
                functions.iter().map(Arc::downgrade).collect()
            })));
        });
        match loaded.recv().unwrap_or_else(|_| Err(Failure::internal("a plugin does not load in a subinterpreter"))) {
            Ok(functions) => Ok(Worker { home, functions, busy: Arc::default(), can_start: Arc::default() }),
            Err(failure) => {
                home.end().into_iter().for_each(|ending| ending.wait(end_until()));
                Err(failure)
            }
        }
    }

    /// Whether this is not a process that was forked from its own.
    pub fn is_here(&self) -> bool {
        self.home.is_here()
    }

    /// How many calls wait or run.
    pub fn busy(&self) -> usize {
        self.busy.load(Ordering::Relaxed)
    }

    /// Runs shares of a call, until all are taken.
    pub fn run(&self, call: Arc<Call>, answers: Sender<Answer>) {
        self.busy.fetch_add(1, Ordering::Relaxed);
        let busy = Arc::clone(&self.busy);
        self.home.run(move |interpreter, functions| {
            while let Some((number, rows)) = call.next() {
                let Some(batch) = call.batch.upgrade() else { break };
                let ran = catch_own(|| {
                    // SAFETY: the GIL is held inside; the batch was checked against this function's signature.
                    interpreter.enter(|| unsafe {
                        let (function, stopping) = (&functions[call.function], &call.stopping);
                        stopping.guard(interpreter, || sync::run_rows(function, &batch, rows, || stopping.is_asked()))
                    })
                });
                drop(batch);
                let ran = ran.and_then(|ran| ran.map_err(|failure| failure.text));
                let ran = ran.and_then(|ran| ran.ok_or_else(|| "the call was interrupted".to_string()));
                if let Err(SendError((_, late))) = answers.send((number, ran)) {
                    discard([late]);
                }
            }
            busy.fetch_sub(1, Ordering::Relaxed);
        });
    }

    /// Starts an async or blocking function here. In a thread of its own, because the host's must not enter, and the home's
    /// serves sync functions.
    pub fn serve(&self, function: usize, runtime: &Arc<Runtime>) -> Result<(), Failure> {
        creation::check_room()?;
        let (interpreter, function) = (Arc::clone(self.home.interpreter()), Weak::clone(&self.functions[function]));
        let (done, answer) = channel();
        let (runtime, can_start) = (Arc::clone(runtime), Arc::clone(&self.can_start));
        let start = move || {
            let started = catch_own(|| {
                prepare(&interpreter, &can_start)?;
                starting::start(&interpreter, &function, &runtime)
            });
            drop(runtime);
            drop(done.send(started.unwrap_or_else(|text| Err(Failure::internal(text)))));
        };
        let spawned = threads::spawn("udf-start", AUTHORS_STACK, start);
        spawned.map_err(|error| Failure::for_now(abi::ENVIRONMENT, format!("no thread for a start: {error}")))?;
        answer.recv().unwrap_or_else(|_| Err(Failure::internal("the thread of a start has ended")))
    }

    /// Removes the plugin from its home, after the shares that it has. None: that is not of this process.
    pub fn leave(self) -> Option<Leaving> {
        if !self.is_here() {
            std::mem::forget(self);
            return None;
        }
        let (done, unloaded) = channel();
        self.home.run(move |interpreter, functions| {
            // SAFETY: the GIL is held inside.
            let clean = interpreter.enter(|| unsafe { unload(functions) });
            let _ = done.send(matches!(clean, Ok(true)) && interpreter.is_left_within(leave_time()));
        });
        Some(Leaving { home: self.home, unloaded })
    }
}

/// A plugin that is about to leave its home.
pub struct Leaving {
    home: Home,
    unloaded: Receiver<bool>,
}

impl Leaving {
    /// Waits for it until then. If something of the plugin stays, the home ends.
    pub fn wait(self, until: Instant) {
        match self.unloaded.recv_timeout(time_until(until)) {
            Ok(true) => self.home.keep(),
            _ => self.home.end().into_iter().for_each(|ending| ending.wait(until)),
        }
    }
}

/// Imports what a start needs: asyncio takes longer than all else in an interpreter, and many plugins never start anything.
fn prepare(interpreter: &Arc<Interpreter>, can_start: &AtomicBool) -> Result<(), Failure> {
    if can_start.load(Ordering::SeqCst) {
        return Ok(());
    }
    let _alone = creation::one_at_a_time();
    if is_exit() {
        return Err(Failure::state("the process ends"));
    }
    // SAFETY: the GIL is held inside.
    interpreter.enter(|| unsafe {
        let failed = || {
            let status = if PyErr_ExceptionMatches(PyExc_MemoryError) != 0 { abi::OUT_OF_MEMORY } else { abi::ENVIRONMENT };
            Failure::for_now(status, format!("a subinterpreter cannot start functions: {}", exception_text()))
        };
        drop(object::call(SUBINTERPRETER, c"prepare", &[]).ok_or_else(failed)?);
        can_start.store(true, Ordering::SeqCst);
        Ok(())
    })?
}

/// Executes the plugin's module.
///
/// # Safety
/// The GIL is held.
unsafe fn load(program: &Program) -> Result<Functions, Failure> {
    // SAFETY: passed on; the texts are C strings.
    unsafe {
        let failed = || Failure::new(abi::ENVIRONMENT, format!("a subinterpreter does not load plugins: {}", exception_text()));
        set_path(&program.path).ok_or_else(failed)?;
        let text = |text: &CStr| Owned::new(PyUnicode_DecodeFSDefault(text.as_ptr()));
        let arguments = [
            object::address(program.descriptor),
            Owned::new(PyBytes_FromStringAndSize(program.parcel.as_ptr().cast(), program.parcel.len() as Py_ssize_t)),
            text(program.plugin.library),
            text(program.plugin.python),
            Owned::new(PyLong_FromUnsignedLong(program.plugin.format.into())),
            environment(),
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
        registry::functions(&state::shared(module.ptr()), program.signatures, loaded.ptr()).ok_or_else(failed)
    }
}

/// Removes the plugin. False: something of it is left.
///
/// # Safety
/// The GIL is held.
unsafe fn unload(functions: &mut Functions) -> bool {
    functions.clear();
    // SAFETY: passed on.
    unsafe {
        match object::call(SUBINTERPRETER, c"unload", &[]) {
            Some(clean) => clean.ptr() == Py_True(),
            None => {
                PyErr_Clear();
                false
            }
        }
    }
}

/// Sets `sys.path`, as the main interpreter has it: a program may have changed it. None: an exception is set.
unsafe fn set_path(path: &[OsString]) -> Option<()> {
    // SAFETY: the GIL is held.
    unsafe {
        let list = Owned::new(PyList_New(0))?;
        for folder in path {
            let folder = folder.as_bytes();
            let folder = Owned::new(PyUnicode_DecodeFSDefaultAndSize(folder.as_ptr().cast(), folder.len() as Py_ssize_t))?;
            if PyList_Append(list.ptr(), folder.ptr()) < 0 {
                return None;
            }
        }
        (PySys_SetObject(c"path".as_ptr(), list.ptr()) == 0).then_some(())
    }
}

/// The environment of the process, which an interpreter reads once, as a dict of bytes. None: an exception is set.
unsafe fn environment() -> Option<Owned> {
    // SAFETY: the GIL is held; the texts are copied.
    unsafe {
        let bytes = |text: OsString| Owned::new(PyBytes_FromStringAndSize(text.as_bytes().as_ptr().cast(), text.len() as Py_ssize_t));
        let dict = Owned::new(PyDict_New())?;
        for (name, value) in std::env::vars_os() {
            if PyDict_SetItem(dict.ptr(), bytes(name)?.ptr(), bytes(value)?.ptr()) < 0 {
                return None;
            }
        }
        Some(dict)
    }
}
