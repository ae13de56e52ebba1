//! Blocking functions (`@udf(blocking=True)`): a row is a call of a plain `def` in a thread of the pool, which holds the
//! GIL only during the call. The Python half is `plugin/blocking.py`.
//!
//! Guarantees: no call sees context variables that another one has set (R11). A runtime gives its Python objects back with
//! the GIL held, or leaks them if the interpreter has ended.

use crate::call_info::{self, CurrentCall};
use crate::calls::{call_row, Called, Converted};
use crate::forked::came_back;
use crate::function::PythonFunction;
use crate::interpreter::Interpreter;
use crate::modules::BLOCKING;
use crate::object::{self, Owned};
use crate::outcome::{error_of, outcome_of};
use crate::traceback::raised_text;
use arroyo_udf_plugin::abi;
use arroyo_udf_plugin::arrow::Batch;
use arroyo_udf_plugin::call_info::CallInfo;
use arroyo_udf_plugin::failure::Failure;
use arroyo_udf_plugin::machine::Outcome;
use arroyo_udf_plugin::pool::Work;
use arroyo_udf_plugin::runtime::{Attempt, Runtime};
use arroyo_udf_plugin::sync::Unpoisoned;
use arroyo_udf_plugin::value::Value;
use pyo3_ffi::*;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// What the pool's threads do for one runtime.
pub struct BlockingCalls {
    /// For the function's text, also when it has gone.
    name: &'static str,
    interpreter: Arc<Interpreter>,
    /// Weak, because it must not go outside of its interpreter.
    function: Weak<PythonFunction>,
    kept: Mutex<Kept>,
}

/// The Python objects of a runtime.
#[derive(Default)]
struct Kept {
    context: Option<Owned>,
    /// What pyarrow converted of the latest batch. While the weak reference lives, no other batch can get the same address.
    converted: Option<(Weak<Batch>, Arc<Converted>)>,
}

impl BlockingCalls {
    pub fn new(function: &Arc<PythonFunction>) -> BlockingCalls {
        BlockingCalls {
            name: &function.signature.name,
            interpreter: Arc::clone(&function.state.interpreter),
            function: Arc::downgrade(function),
            kept: Mutex::default(),
        }
    }

    /// Runs `body` with the GIL held and the function.
    fn enter<R>(&self, body: impl FnOnce(&Arc<PythonFunction>) -> R) -> Result<R, Failure> {
        self.interpreter.enter(|| match self.function.upgrade() {
            Some(function) => Ok(body(&function)),
            None => Err(Failure::state(format!("{}: the plugin is closed: load it again", self.name))),
        })?
    }

    /// Python never runs while this lock is held.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unpoisoned()
    }

    /// # Safety
    /// The GIL is held.
    unsafe fn converted(&self, function: &PythonFunction, batch: &Arc<Batch>) -> Result<Arc<Converted>, String> {
        if let Some((of, converted)) = &self.kept().converted {
            if of.as_ptr() == Arc::as_ptr(batch) {
                return Ok(Arc::clone(converted));
            }
        }
        // SAFETY: passed on.
        let converted = Arc::new(unsafe { Converted::new(function, batch) }?);
        let former = self.kept().converted.replace((Arc::downgrade(batch), Arc::clone(&converted)));
        drop(former); // after the line above has given the lock back: dropping may run Python
        Ok(converted)
    }

    /// # Safety
    /// The GIL is held; the attempt belongs to this function.
    unsafe fn call(&self, function: &PythonFunction, attempt: &Attempt, info: CallInfo) -> Outcome<Value> {
        // SAFETY: passed on. The Context lives until `close`, which comes after the last attempt.
        unsafe {
            let converted = match self.converted(function, &attempt.batch) {
                Ok(converted) => converted,
                Err(text) => return error_of(text),
            };
            let context = self.kept().context.as_ref().map_or(null_mut(), Owned::ptr);
            let Some(variables) = Owned::new(PyContext_New()).filter(|new| PyContext_Enter(new.ptr()) == 0) else {
                return error_of(raised_text());
            };
            let called = if call_info::set(&function.state, CurrentCall::Row(info)) {
                call_row(function, &attempt.batch, &converted, attempt.row, context)
            } else {
                Called::Raised
            };
            let outcome = match called {
                Called::Null => Outcome::Value(Value::Null),
                Called::Returned(result) => {
                    let result = Owned::new(result);
                    outcome_of(function, result.as_ref().map_or(null_mut(), Owned::ptr))
                }
                Called::Raised => error_of(raised_text()),
                Called::Failed(text) => error_of(text),
            };
            if PyContext_Exit(variables.ptr()) < 0 {
                PyErr_Clear(); // the function left another context entered; that one ends with the thread
            }
            outcome
        }
    }
}

impl Work for BlockingCalls {
    fn open(&self) -> Result<(), Failure> {
        // SAFETY: the GIL is held inside.
        self.enter(|function| unsafe {
            let Some(class) = &function.context else { return Ok(()) };
            let opened = object::call(BLOCKING, c"open", &[class.ptr()]);
            came_back(null_mut());
            match opened {
                Some(context) => {
                    self.kept().context = Some(context);
                    Ok(())
                }
                None => {
                    let text = format!("{}: start failed: {}", self.name, raised_text());
                    Err(Failure::new(abi::USER_CODE, text))
                }
            }
        })?
    }

    fn run(&self, attempt: &Attempt, info: CallInfo) -> Outcome<Value> {
        // SAFETY: the GIL is held inside.
        self.enter(|function| unsafe { self.call(function, attempt, info) }).unwrap_or_else(|failure| Outcome::Error(failure.text.into()))
    }

    fn report_stuck(&self, runtime: &Runtime, row: u64, thread: Option<libc::pthread_t>) {
        // SAFETY: the GIL is held inside.
        let stack = self.interpreter.enter(|| unsafe {
            let thread = Owned::new(PyLong_FromUnsignedLongLong(thread.unwrap_or(0)));
            match thread.and_then(|thread| object::call(BLOCKING, c"stack", &[thread.ptr()])) {
                Some(stack) => object::text(stack.ptr()),
                None => raised_text(),
            }
        });
        let Ok(stack) = stack else { return }; // an interpreter that ends needs no report
        runtime.report_stuck(row, &format!("; it goes on in its thread\n{stack}"));
    }

    fn close(&self) -> Result<(), String> {
        // SAFETY: the GIL is held inside.
        let closed = self.interpreter.enter(|| unsafe {
            let kept = std::mem::take(&mut *self.kept());
            let closed = kept.context.as_ref().map(|context| object::call(BLOCKING, c"close", &[context.ptr()]));
            came_back(null_mut());
            match closed {
                Some(None) => Err(raised_text()),
                Some(Some(_)) | None => Ok(()),
            }
        });
        closed.unwrap_or_else(|failure| Err(failure.text))
    }
}

impl Drop for BlockingCalls {
    /// In any thread. Nothing is left after `close`, unless a call is stuck.
    fn drop(&mut self) {
        let kept = std::mem::take(&mut *self.kept());
        if kept.context.is_none() && kept.converted.is_none() {
            return;
        }
        let mut kept = Some(kept);
        if !self.interpreter.is_main() || self.interpreter.enter(|| drop(kept.take())).is_err() {
            std::mem::forget(kept);
        }
    }
}
