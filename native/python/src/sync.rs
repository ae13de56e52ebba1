//! `run`: a batch through a sync function, row by row (`def`) or whole (`vectorized=True`). It sees no running event loop.

use crate::asyncio::hidden::Hidden;
use crate::calls::{call_next, Called, Converted, Frame};
use crate::forked;
use crate::function::PythonFunction;
use crate::interrupt;
use crate::object::{exception_text, none, Owned};
use crate::pyarrow::{self, RowErrors};
use crate::traceback::raised_text;
use crate::values::column::ColumnWriter;
use crate::values::conversion::Conversion;
use arroyo_udf_plugin::abi::{self, ArrowArray};
use arroyo_udf_plugin::arrow::{self, Batch};
use arroyo_udf_plugin::exports::Ran;
use arroyo_udf_plugin::failure::Failure;
use arroyo_udf_plugin::forks;
use arroyo_udf_plugin::results;
use arroyo_udf_plugin::signature::Signature;
use arroyo_udf_plugin::value::Value;
use pyo3_ffi::*;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// This process is a worker, and its host keeps the time of calls.
static HOST_KEEPS_TIME: AtomicBool = AtomicBool::new(false);

/// Says that this process is a worker, and its host keeps the time of calls.
pub fn host_keeps_time() {
    HOST_KEEPS_TIME.store(true, Ordering::Release);
}

/// Refuses a function with a timeout where nobody could end its calls.
pub fn check_timeout(signature: &Signature) -> Result<(), Failure> {
    if signature.run_timeout.is_none() || HOST_KEEPS_TIME.load(Ordering::Acquire) {
        return Ok(());
    }
    let text = "has a timeout, and a call can be ended only with the process it runs in: load the plugin with \
                isolation=\"process\", or leave the timeout out";
    Err(Failure::new(abi::NOT_IMPLEMENTED, format!("{}: {text}", signature.name)))
}

/// Fails only by Ctrl-C, which the host raises: the batch ends where it came (R2).
///
/// # Safety
/// The GIL is held; the batch was made for this function.
pub unsafe fn run(function: &PythonFunction, batch: &Arc<Batch>) -> Result<Ran, Failure> {
    let _call = forks::Call::begin();
    // SAFETY: passed on.
    let answered = unsafe {
        let _hidden = Hidden::new(&function.state);
        if function.signature.vectorized {
            pyarrow::vectorized(function, batch)
        } else {
            Converted::new(function, batch).and_then(|converted| match function.returns {
                Conversion::Pyarrow => run_into_list(function, batch, &converted),
                _ => run_into_column(function, batch, 0..batch.rows(), &converted, interrupt::waits),
            })
        }
    };
    // SAFETY: the GIL is held. Functions that take arrays are called by Python code.
    unsafe { forked::came_back(null_mut()) };
    if interrupt::waits() {
        answered.into_iter().for_each(|(values, _)| discard(values));
        return Err(interrupt::failure(&function.signature.name));
    }
    let (values, errors) = answered.unwrap_or_else(|text| all_failed(function, 0..batch.rows(), text));
    let (results, with_outcomes) = results::ran(&function.signature.name, values, &errors);
    Ok(Ran { results, with_outcomes })
}

/// Releases values that go nowhere.
pub fn discard(mut values: ArrowArray) {
    // SAFETY: the array is ours, and nobody else has it.
    values.release.into_iter().for_each(|release| unsafe { release(&mut values) });
}

/// Calls the function for some rows of a batch: their values, and the errors by the rows of the batch. Once `stop` answers
/// true no row is called any more, and what is answered is of no use.
///
/// # Safety
/// The GIL is held, in a thread of the toolkit; the batch was made for this function and has the rows; all types of the
/// function convert natively.
pub unsafe fn run_rows(function: &PythonFunction, batch: &Batch, rows: Range<usize>, stop: impl Fn() -> bool) -> (ArrowArray, RowErrors) {
    // SAFETY: passed on.
    let answered =
        unsafe { Converted::new(function, batch).and_then(|converted| run_into_column(function, batch, rows.clone(), &converted, stop)) };
    answered.unwrap_or_else(|text| all_failed(function, rows, text))
}

/// Every row is an error with this text.
fn all_failed(function: &PythonFunction, rows: Range<usize>, text: String) -> (ArrowArray, RowErrors) {
    let text = results::error_text(text);
    let (values, _) = arrow::build_with_room(&function.signature.returns, std::iter::repeat_n(&Value::Null, rows.len()));
    (values.export(), rows.map(|row| (row, text.clone())).collect())
}

/// The hot loop: native values in, native values out. It ends with an error once `stop` answers true.
unsafe fn run_into_column(
    function: &PythonFunction,
    batch: &Batch,
    rows: Range<usize>,
    converted: &Converted,
    stop: impl Fn() -> bool,
) -> Result<(ArrowArray, RowErrors), String> {
    let count = rows.len();
    let mut column = ColumnWriter::new(&function.returns, count);
    let mut frame = Frame::new();
    let mut errors = Vec::new();
    // SAFETY: None always exists.
    let none = unsafe { Py_None() };
    for row in rows {
        if stop() {
            return Err(String::new());
        }
        // SAFETY: the GIL is held and the row exists.
        let text = match unsafe { call_next(function, batch, converted, row, null_mut(), &mut frame) } {
            Called::Returned(object) if object != none => {
                // SAFETY: the object is valid until its reference is given back.
                let pushed = unsafe { column.push(&function.returns, object) };
                // SAFETY: the reference that the call gave us.
                unsafe { Py_DECREF(object) };
                match pushed {
                    Ok(()) => continue,
                    Err(text) => text,
                }
            }
            Called::Returned(none) => {
                // SAFETY: as above.
                unsafe { Py_DECREF(none) };
                match function.refuse_none() {
                    Some(text) => text.into(),
                    None => {
                        column.push_null();
                        continue;
                    }
                }
            }
            Called::Null => {
                column.push_null();
                continue;
            }
            // SAFETY: the GIL is held.
            Called::Raised => unsafe { raised_text() },
            Called::Failed(text) => text,
        };
        let text = results::error_text(text);
        column.push_error(&text);
        errors.push((row, text));
    }
    Ok((column.finish(count).export(), errors))
}

/// Collects the returned objects in a list, which pyarrow converts at the end. The error is a text for every row.
unsafe fn run_into_list(function: &PythonFunction, batch: &Batch, converted: &Converted) -> Result<(ArrowArray, RowErrors), String> {
    let mut errors = Vec::new();
    // SAFETY: the GIL is held; each item of the list is set once, to a reference of ours.
    unsafe {
        let list = Owned::new(PyList_New(batch.rows() as Py_ssize_t)).ok_or_else(|| exception_text())?;
        let mut frame = Frame::new();
        for row in 0..batch.rows() {
            let (object, text) = match call_next(function, batch, converted, row, null_mut(), &mut frame) {
                Called::Returned(object) if object == Py_None() => (object, function.refuse_none().map(str::to_string)),
                Called::Returned(object) => (object, None),
                Called::Null => (none(), None),
                Called::Raised => (none(), Some(raised_text())),
                Called::Failed(text) => (none(), Some(text)),
            };
            PyList_SetItem(list.ptr(), row as Py_ssize_t, object);
            if text.is_some() && interrupt::waits() {
                return Err(String::new());
            }
            errors.extend(text.map(|text| (row, results::error_text(text))));
        }
        let (values, refused) = pyarrow::list_to_column(function, list.ptr())?;
        errors.extend(refused);
        errors.sort_by_key(|(row, _)| *row);
        errors.dedup_by_key(|(row, _)| *row);
        Ok((values, errors))
    }
}
