//! `run`: a batch through a Python function, row by row (`def`) or whole (`vectorized=True`).

use crate::calls::{self, call, raised_text, refuse_none, Call, Converted, Frame};
use crate::foreign;
use crate::object::Owned;
use crate::registry::Function;
use crate::types::Type;
use crate::writer::Writer;
use arroyo_udf_plugin::abi::ArrowArray;
use arroyo_udf_plugin::arrow::Batch;
use arroyo_udf_plugin::exports::Ran;
use arroyo_udf_plugin::results;
use pyo3_ffi::*;
use std::ptr::null_mut;
use std::sync::Arc;

/// Runs a batch. The GIL is held.
///
/// # Safety
/// The batch was made for this function.
pub unsafe fn run(function: &'static Function, batch: &Arc<Batch>) -> Ran {
    // SAFETY: passed on.
    let (values, failed) = unsafe {
        if function.signature.vectorized {
            foreign::vectorized(function, batch)
        } else {
            match Converted::new(function, batch) {
                Err(text) => all_failed(function, batch.rows(), &text),
                Ok(converted) if matches!(function.returns, Type::Other) => rows_to_pyarrow(function, batch, &converted),
                Ok(converted) => rows(function, batch, &converted),
            }
        }
    };
    let (results, with_outcomes) = results::ran(values, &failed);
    Ran { results, with_outcomes }
}

type Column = (ArrowArray, Vec<(usize, String)>);

/// Every row is an error with this text.
pub fn all_failed(function: &Function, rows: usize, text: &str) -> Column {
    let null = arroyo_udf_plugin::value::Value::Null;
    let values = arroyo_udf_plugin::arrow::build(&function.signature.returns, std::iter::repeat_n(&null, rows));
    (values.export(), (0..rows).map(|row| (row, function.row_text(row, text))).collect())
}

/// The hot loop: native values in, native values out.
unsafe fn rows(function: &Function, batch: &Batch, converted: &Converted) -> Column {
    let mut writer = Writer::new(&function.returns, batch.rows());
    let mut failed = Vec::new();
    let mut frame = Frame::new();
    // SAFETY: None always exists.
    let none = unsafe { Py_None() };
    for row in 0..batch.rows() {
        // SAFETY: the GIL is held and the row exists.
        let text = match unsafe { call(function, batch, converted, row, null_mut(), &mut frame) } {
            Call::Returned(object) if object != none => {
                // SAFETY: the object is valid until its reference is given back.
                let pushed = unsafe { writer.push(&function.returns, object) };
                // SAFETY: the reference that the call gave us.
                unsafe { Py_DECREF(object) };
                match pushed {
                    Ok(()) => continue,
                    Err(text) => text,
                }
            }
            Call::Returned(none) => {
                // SAFETY: as above.
                unsafe { Py_DECREF(none) };
                match refuse_none(function) {
                    Some(text) => text.into(),
                    None => {
                        writer.push_null();
                        continue;
                    }
                }
            }
            Call::Null => {
                writer.push_null();
                continue;
            }
            // SAFETY: the GIL is held.
            Call::Raised => unsafe { raised_text() },
            Call::Failed(text) => text,
        };
        writer.push_null();
        failed.push((row, function.row_text(row, &text)));
    }
    (writer.finish().export(), failed)
}

/// Native calls, results collected in a list that pyarrow converts at the end.
unsafe fn rows_to_pyarrow(function: &Function, batch: &Batch, converted: &Converted) -> Column {
    let mut failed = Vec::new();
    let mut frame = Frame::new();
    // SAFETY: the GIL is held; each item of the list is set once, to a reference of ours.
    unsafe {
        let Some(list) = Owned::new(PyList_New(batch.rows() as Py_ssize_t)) else {
            return all_failed(function, batch.rows(), &crate::object::exception_text());
        };
        for row in 0..batch.rows() {
            let (object, text) = match call(function, batch, converted, row, null_mut(), &mut frame) {
                Call::Returned(object) if object == Py_None() => (object, refuse_none(function).map(str::to_string)),
                Call::Returned(object) => (object, None),
                Call::Null => (crate::object::none(), None),
                Call::Raised => (null_mut(), Some(calls::raised_text())),
                Call::Failed(text) => (null_mut(), Some(text)),
            };
            let object = if object.is_null() { crate::object::none() } else { object };
            PyList_SetItem(list.ptr(), row as Py_ssize_t, object);
            failed.extend(text.map(|text| (row, function.row_text(row, &text))));
        }
        match foreign::list_to_column(function, list.ptr()) {
            Ok((values, refused)) => {
                failed.extend(refused.into_iter().map(|(row, text)| (row, function.row_text(row, &text))));
                failed.sort_by_key(|(row, _)| *row);
                failed.dedup_by_key(|(row, _)| *row);
                (values, failed)
            }
            Err(text) => all_failed(function, batch.rows(), &text),
        }
    }
}
