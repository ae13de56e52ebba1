//! Micro-batches (`@udf(batch_size=...)`): the rows of one attempt become one call with a list for each argument, and the
//! list that it returns becomes an outcome for each row.
//!
//! Guarantees: rows with a null where null is not allowed, and rows whose values cannot be read, are not part of the call
//! (F3, F4). An exception in the returned list is the error of its row. Any other mistake in what the call returns fails
//! the whole call, and the machine then splits it (R7).

use crate::calls::{call_frame, read_row, Called, Converted, Frame, Unread};
use crate::function::PythonFunction;
use crate::object::{type_name, Owned};
use crate::outcome::{error_of, outcome_of};
use crate::traceback::{describe, raised_text};
use arroyo_udf_plugin::arrow::Batch;
use arroyo_udf_plugin::machine::Outcome;
use arroyo_udf_plugin::runtime::Attempt;
use arroyo_udf_plugin::value::Value;
use pyo3_ffi::*;
use std::rc::Rc;
use std::sync::Arc;

/// The rows of a running attempt.
#[derive(Default)]
pub struct MicroBatch {
    /// Outcomes known before the call; None for the rows that are part of it.
    known: Vec<Option<Outcome<Value>>>,
}

impl MicroBatch {
    /// Whether row number `row` of the attempt is part of the call.
    pub fn calls(&self, row: usize) -> bool {
        self.known[row].is_none()
    }

    /// Calls the function for the rows of an attempt. None: no row needs a call. `before_call` runs right before the call;
    /// if it answers false, an exception is set and the call does not take place.
    ///
    /// # Safety
    /// The GIL is held; the attempt belongs to this function.
    pub unsafe fn call(
        &mut self,
        function: &PythonFunction,
        attempt: &Attempt,
        context: *mut PyObject,
        mut converted: impl FnMut(&Arc<Batch>) -> Result<Rc<Converted>, String>,
        before_call: impl FnOnce(&MicroBatch) -> bool,
    ) -> Option<Called> {
        self.known.clear();
        let width = function.arguments.len();
        let mut frame = Frame::new();
        // SAFETY: passed on; the comments say where references are given back.
        unsafe {
            let mut lists = Vec::with_capacity(width);
            for _ in 0..width {
                let Some(list) = Owned::new(PyList_New(0)) else { return Some(Called::Raised) };
                lists.push(list);
            }
            let others = attempt.others.iter().map(|other| (&other.batch, other.row));
            let mut needs_call = false;
            for (batch, row) in std::iter::once((&attempt.batch, attempt.row)).chain(others) {
                let read = match converted(batch) {
                    Ok(converted) => read_row(function, batch, &converted, row, &mut frame),
                    Err(text) => Err(Unread::Failed(text)),
                };
                self.known.push(match read {
                    Ok(()) => {
                        let mut arguments = lists.iter().zip(frame.arguments());
                        if !arguments.all(|(list, object)| PyList_Append(list.ptr(), *object) == 0) {
                            return Some(Called::Raised);
                        }
                        needs_call = true;
                        None
                    }
                    Err(Unread::Null) => Some(Outcome::Value(Value::Null)),
                    Err(Unread::Failed(text)) => Some(error_of(text)),
                });
            }
            if !needs_call {
                return None;
            }
            if !before_call(self) {
                return Some(Called::Raised);
            }
            for (place, list) in frame.arguments().iter_mut().zip(lists) {
                Py_XDECREF(std::mem::replace(place, list.into_ptr()));
            }
            Some(call_frame(function, context, &mut frame))
        }
    }

    /// The outcomes if no row needed a call.
    pub fn outcomes_without_call(&mut self) -> Vec<Outcome<Value>> {
        self.known.drain(..).flatten().collect()
    }

    /// The outcomes of a call that returned. The error is a text for all of its rows.
    ///
    /// # Safety
    /// The GIL is held; `result` is valid.
    pub unsafe fn outcomes(&mut self, function: &PythonFunction, result: *mut PyObject) -> Result<Vec<Outcome<Value>>, String> {
        let expected = self.known.iter().filter(|known| known.is_none()).count();
        // SAFETY: passed on. User code that runs below may change a list, so its items are copied into a tuple first.
        unsafe {
            let Some(results) = (PyList_Check(result) != 0 || PyTuple_Check(result) != 0).then(|| PySequence_Tuple(result)) else {
                return Err(format!("returned {}, not a list with a result for each row", type_name(result)));
            };
            let Some(results) = Owned::new(results) else { return Err(raised_text()) };
            let count = PyTuple_Size(results.ptr()) as usize;
            if count != expected {
                return Err(format!("returned {count} results for {expected} rows"));
            }
            let mut next = 0;
            let outcome = |known: Option<Outcome<Value>>| {
                known.unwrap_or_else(|| {
                    let item = PyTuple_GetItem(results.ptr(), next);
                    next += 1;
                    if PyExceptionInstance_Check(item) != 0 {
                        error_of(describe(item))
                    } else {
                        outcome_of(function, item)
                    }
                })
            };
            Ok(self.known.drain(..).map(outcome).collect())
        }
    }
}
