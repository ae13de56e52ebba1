//! Micro-batches (`@udf(batch_size=...)`): the rows of one attempt become one call with a list for each argument, and its
//! list of results becomes an outcome for each row.
//!
//! Guarantees: rows with a null where null is not allowed, and rows whose values cannot be read, are not part of the call
//! (F3, F4); an exception among the results is the error of its row; whatever else is wrong with the answer is a failure
//! of the whole call, which the machine splits (R7).

use crate::calls::{describe, enter, read_row, Call, Converted, Frame, Unread};
use crate::executor::outcome_of;
use crate::object::{type_name, Owned};
use crate::registry::Function;
use arroyo_udf_plugin::arrow::Batch;
use arroyo_udf_plugin::machine::Outcome;
use arroyo_udf_plugin::runtime::Attempt;
use arroyo_udf_plugin::value::Value;
use pyo3_ffi::*;
use std::sync::Arc;

/// The rows of an attempt that is open.
#[derive(Default)]
pub struct Group {
    ids: Vec<u64>,
    /// None: the call answers it.
    known: Vec<Option<Outcome<Value>>>,
}

impl Group {
    /// Whether row number `row` of the attempt is part of the call.
    pub fn calls(&self, row: usize) -> bool {
        self.known[row].is_none()
    }

    /// Calls the function for the rows of an attempt. None: there is no row to call it for.
    ///
    /// # Safety
    /// The GIL is held; the attempt is one of this function. `converted` answers the pointer of a batch's columns, which
    /// is valid until the next call of it. `tell` comes right before the call, and answers false with an exception set.
    pub unsafe fn call(
        &mut self,
        function: &Function,
        attempt: &Attempt,
        context: *mut PyObject,
        frame: &mut Frame,
        mut converted: impl FnMut(&Arc<Batch>) -> Result<*const Converted, String>,
        tell: impl FnOnce(&Group) -> bool,
    ) -> Option<Call> {
        self.ids.clear();
        self.known.clear();
        let width = function.arguments.len();
        // SAFETY: passed on; references are counted as the comments say.
        unsafe {
            let mut lists = Vec::with_capacity(width);
            for _ in 0..width {
                let Some(list) = Owned::new(PyList_New(0)) else { return Some(Call::Raised) };
                lists.push(list);
            }
            let others = attempt.others.iter().map(|other| (other.id, &other.batch, other.row));
            let mut calls = false;
            for (id, batch, row) in std::iter::once((attempt.id, &attempt.batch, attempt.row)).chain(others) {
                let into = &mut frame.0[2..2 + width];
                let read = match converted(batch) {
                    Ok(converted) => read_row(function, batch, &*converted, row, into),
                    Err(text) => Err(Unread::Failed(text)),
                };
                self.ids.push(id);
                self.known.push(match read {
                    Ok(()) => {
                        let taken = lists.iter().zip(into.iter()).all(|(list, &object)| PyList_Append(list.ptr(), object) == 0);
                        into.iter().for_each(|&object| Py_DECREF(object)); // the lists have their own
                        if !taken {
                            return Some(Call::Raised);
                        }
                        calls = true;
                        None
                    }
                    Err(Unread::Null) => Some(Outcome::Value(Value::Null)),
                    Err(Unread::Failed(text)) => Some(Outcome::Error(function.row_text(id, &text).into())),
                });
            }
            if !calls {
                return None;
            }
            if !tell(self) {
                return Some(Call::Raised);
            }
            for (place, list) in frame.0[2..].iter_mut().zip(&lists) {
                *place = list.ptr();
            }
            Some(enter(function, context, width, frame))
        }
    }

    /// The outcomes, where no row needed a call.
    pub fn without_call(&mut self) -> Vec<Outcome<Value>> {
        self.known.drain(..).flatten().collect()
    }

    /// The outcomes of a call that has returned. The error is a text for all of its rows.
    ///
    /// # Safety
    /// The GIL is held; `result` is valid.
    pub unsafe fn outcomes(&mut self, function: &Function, result: *mut PyObject) -> Result<Vec<Outcome<Value>>, String> {
        let asked = self.known.iter().filter(|known| known.is_none()).count();
        // SAFETY: passed on. The items of a list may change while user code runs below, so each is fetched, and kept, by
        // its own.
        unsafe {
            let Some(results) = (PyList_Check(result) != 0 || PyTuple_Check(result) != 0).then(|| PySequence_Tuple(result)) else {
                return Err(format!("returned {}, not a list with a result for each row", type_name(result)));
            };
            let Some(results) = Owned::new(results) else { return Err(crate::calls::raised_text()) };
            let count = PyTuple_Size(results.ptr()) as usize;
            if count != asked {
                return Err(format!("returned {count} results for {asked} rows"));
            }
            let mut next = 0;
            let outcome = |(id, known): (u64, Option<Outcome<Value>>)| {
                known.unwrap_or_else(|| {
                    let item = PyTuple_GetItem(results.ptr(), next);
                    next += 1;
                    if PyExceptionInstance_Check(item) != 0 {
                        Outcome::Error(function.row_text(id, &describe(item)).into())
                    } else {
                        outcome_of(function, id, item)
                    }
                })
            };
            Ok(self.ids.drain(..).zip(self.known.drain(..)).map(outcome).collect())
        }
    }
}
