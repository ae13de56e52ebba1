//! `start`: gives a runtime of an async or blocking function its executor, and waits for the Context's init.

use crate::asyncio::executor;
use crate::blocking::BlockingCalls;
use crate::function::PythonFunction;
use crate::interpreter::Interpreter;
use crate::modules;
use crate::object;
use crate::traceback;
use arroyo_udf_plugin::abi;
use arroyo_udf_plugin::failure::Failure;
use arroyo_udf_plugin::machine::Stop;
use arroyo_udf_plugin::pool;
use arroyo_udf_plugin::runtime::Runtime;
use pyo3_ffi::*;
use std::sync::{Arc, Weak};

/// As [`arroyo_udf_plugin::exports::Plugin::start`]. The function is one of this interpreter, unless it has gone.
pub fn start(interpreter: &Arc<Interpreter>, function: &Weak<PythonFunction>, runtime: &Arc<Runtime>) -> Result<(), Failure> {
    let blocking = interpreter.enter(|| {
        let Some(function) = function.upgrade() else {
            return Err(Failure::state(format!("{}: the plugin is closed: load it again", runtime.signature().name)));
        };
        if function.blocking {
            return Ok(Some(BlockingCalls::new(&function)));
        }
        // SAFETY: the GIL is held.
        unsafe { start_async(&function, runtime) }.map(|()| None)
    })??;
    blocking.map_or(Ok(()), |calls| pool::start(runtime, calls))
}

/// # Safety
/// The GIL is held, in the function's interpreter.
unsafe fn start_async(function: &Arc<PythonFunction>, runtime: &Arc<Runtime>) -> Result<(), Failure> {
    let text = |why: String| format!("{}: start failed: {why}", function.signature.name);
    let failed = |why| {
        runtime.stop_soon(Stop::Cancel); // if its Context opens later, it closes at once
        Err(Failure::new(abi::USER_CODE, text(why)))
    };
    // SAFETY: passed on.
    unsafe {
        // Without a loop, nothing can wait for it.
        let prepared = object::call(modules::EXECUTOR, c"prepare", &[]).and_then(|_loop| executor::new(function, Arc::clone(runtime)));
        let Some(executor) = prepared else {
            let status = if PyErr_ExceptionMatches(PyExc_MemoryError) != 0 { abi::OUT_OF_MEMORY } else { abi::ENVIRONMENT };
            return Err(Failure::for_now(status, text(traceback::raised_text())));
        };
        match object::call(modules::EXECUTOR, c"start", &[executor.ptr()]) {
            Some(why) if why.ptr() == Py_None() => Ok(()),
            Some(why) => failed(object::text(why.ptr())),
            None => failed(traceback::raised_text()),
        }
    }
}
