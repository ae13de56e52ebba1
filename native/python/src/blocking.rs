//! Blocking functions (`@udf(blocking=True)`): a row is a call of a plain `def` in a thread of the pool, which holds the
//! GIL for its row only.
//!
//! Guarantees: context variables set in one call are never seen by another (R11); what Python objects a runtime keeps is
//! given back with the GIL held, or leaked when the interpreter has ended.

use crate::call_info::{self, Told};
use crate::calls::{call, raised_text, Call, Converted, Frame};
use crate::executor::outcome_of;
use crate::gil;
use crate::object::{self, Owned};
use crate::registry::Function;
use arroyo_udf_plugin::abi;
use arroyo_udf_plugin::arrow::Batch;
use arroyo_udf_plugin::call_info::CallInfo;
use arroyo_udf_plugin::failure::Failure;
use arroyo_udf_plugin::machine::Outcome;
use arroyo_udf_plugin::pool::Work;
use arroyo_udf_plugin::runtime::Attempt;
use arroyo_udf_plugin::value::Value;
use pyo3_ffi::*;
use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

const MODULE: &CStr = c"arroyo_udf_plugin.plugin.blocking";

/// The calls of one runtime.
pub struct Calls {
    function: &'static Function,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    context: Option<Owned>,
    /// The last batch of which pyarrow has converted columns. The weak reference keeps another batch from its address.
    converted: Option<(Weak<Batch>, Arc<Converted>)>,
}

impl Calls {
    pub fn new(function: &'static Function) -> Calls {
        Calls { function, kept: Mutex::default() }
    }

    /// Never held while Python runs.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Safety
    /// The GIL is held.
    unsafe fn converted(&self, batch: &Arc<Batch>) -> Result<Arc<Converted>, String> {
        if let Some((of, converted)) = &self.kept().converted {
            if of.as_ptr() == Arc::as_ptr(batch) {
                return Ok(Arc::clone(converted));
            }
        }
        // SAFETY: passed on.
        let converted = Arc::new(unsafe { Converted::new(self.function, batch) }?);
        let former = self.kept().converted.replace((Arc::downgrade(batch), Arc::clone(&converted)));
        drop(former); // not within the line above: it may run Python
        Ok(converted)
    }

    /// # Safety
    /// The GIL is held; the attempt is one of this function.
    unsafe fn call(&self, attempt: &Attempt, info: CallInfo) -> Outcome<Value> {
        let function = self.function;
        let failed = |text: &str| Outcome::Error(function.row_text(attempt.id, text).into());
        // SAFETY: passed on. The Context lives until `close`, which comes after the last attempt.
        unsafe {
            let converted = match self.converted(&attempt.batch) {
                Ok(converted) => converted,
                Err(text) => return failed(&text),
            };
            let context = self.kept().context.as_ref().map_or(null_mut(), Owned::ptr);
            let Some(variables) = Owned::new(PyContext_New()).filter(|new| PyContext_Enter(new.ptr()) == 0) else {
                return failed(&raised_text());
            };
            let called = if call_info::tell(Told::Row(info)) {
                call(function, &attempt.batch, &converted, attempt.row, context, &mut Frame::new())
            } else {
                Call::Raised
            };
            let outcome = match called {
                Call::Null => Outcome::Value(Value::Null),
                Call::Returned(result) => {
                    let result = Owned::new(result);
                    outcome_of(function, attempt.id, result.as_ref().map_or(null_mut(), Owned::ptr))
                }
                Call::Raised => failed(&raised_text()),
                Call::Failed(text) => failed(&text),
            };
            if PyContext_Exit(variables.ptr()) < 0 {
                PyErr_Clear(); // the function has left another context entered, which ends with its thread
            }
            outcome
        }
    }
}

impl Work for Calls {
    fn open(&self) -> Result<(), Failure> {
        let Some(class) = &self.function.context else { return Ok(()) };
        // SAFETY: the GIL is held inside.
        gil::enter(|| unsafe {
            match object::call(MODULE, c"open", &[class.ptr()]) {
                Some(context) => {
                    self.kept().context = Some(context);
                    Ok(())
                }
                None => {
                    let text = format!("{}: start failed: {}", self.function.signature.name, raised_text());
                    Err(Failure::new(abi::USER_CODE, text))
                }
            }
        })?
    }

    fn run(&self, attempt: &Attempt, info: CallInfo) -> Outcome<Value> {
        // SAFETY: the GIL is held inside.
        gil::enter(|| unsafe { self.call(attempt, info) }).unwrap_or_else(|failure| Outcome::Error(failure.text.into()))
    }

    fn report_stuck(&self, function: &str, row: u64, thread: Option<libc::pthread_t>) {
        // SAFETY: the GIL is held inside; the text has as many bytes as it says.
        let report = || unsafe {
            let name = Owned::new(PyUnicode_FromStringAndSize(function.as_ptr().cast(), function.len() as Py_ssize_t))?;
            let row = Owned::new(PyLong_FromUnsignedLongLong(row))?;
            let thread = Owned::new(PyLong_FromUnsignedLongLong(thread.unwrap_or(0)))?;
            object::call(MODULE, c"report_stuck", &[name.ptr(), row.ptr(), thread.ptr()])
        };
        let reported = gil::enter(|| {
            if report().is_none() {
                // SAFETY: the GIL is held.
                unsafe { PyErr_Clear() };
            }
        });
        drop(reported); // an interpreter that ends has nobody to tell
    }

    fn close(&self) -> Result<(), String> {
        // SAFETY: the GIL is held inside.
        let closed = gil::enter(|| unsafe {
            let kept = std::mem::take(&mut *self.kept());
            match kept.context.as_ref().map(|context| object::call(MODULE, c"close", &[context.ptr()])) {
                Some(None) => Err(raised_text()),
                Some(Some(_)) | None => Ok(()),
            }
        });
        closed.unwrap_or_else(|failure| Err(failure.text))
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        let mut kept = Some(std::mem::take(&mut *self.kept()));
        if gil::enter(|| drop(kept.take())).is_err() {
            std::mem::forget(kept);
        }
    }
}
