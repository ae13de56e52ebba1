//! `start`: gives a runtime of an async or blocking function its executor, and waits for the Context's init.

use crate::asyncio::executor;
use crate::blocking::BlockingCalls;
use crate::function::PythonFunction;
use crate::modules;
use crate::object;
use crate::traceback;
use arroyo_udf_plugin::abi;
use arroyo_udf_plugin::failure::Failure;
use arroyo_udf_plugin::machine::Stop;
use arroyo_udf_plugin::pool;
use arroyo_udf_plugin::runtime::Runtime;
use pyo3_ffi::*;
use std::sync::Arc;

/// As [`arroyo_udf_plugin::exports::Plugin::start`].
pub fn start(function: &Arc<PythonFunction>, runtime: &Arc<Runtime>) -> Result<(), Failure> {
    if function.blocking {
        return pool::start(runtime, BlockingCalls::new(function));
    }
    // SAFETY: the GIL is held inside.
    function.state.interpreter.enter(|| unsafe {
        let text = |why: String| format!("{}: start failed: {why}", function.signature.name);
        let failed = |why| {
            runtime.stop_soon(Stop::Cancel); // if its Context opens later, it closes at once
            Err(Failure::new(abi::USER_CODE, text(why)))
        };
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
    })?
}
