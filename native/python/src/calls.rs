//! From a row of a batch to a call of the user's function, the same for sync and async functions: the null rule (F3),
//! the arguments, the result's null rule.

use crate::foreign;
use crate::gil::vectorcall;
use crate::object::{exception_text, Owned};
use crate::registry::Function;
use crate::types::Type;
use arroyo_udf_plugin::arrow::Batch;
use pyo3_ffi::*;
use std::ptr::null_mut;

/// A function takes at most so many arguments, so that a call needs no allocation.
pub const MOST_ARGUMENTS: usize = 64;

/// Room for the arguments of a call: one place before them for the callee's use (PY_VECTORCALL_ARGUMENTS_OFFSET), one
/// for the Context. Made once, used for many calls.
pub struct Frame([*mut PyObject; MOST_ARGUMENTS + 2]);

impl Frame {
    pub fn new() -> Frame {
        Frame([null_mut(); MOST_ARGUMENTS + 2])
    }
}

/// The columns of a batch that go through pyarrow, converted; None where a column is read natively.
pub struct Converted(Vec<Option<Owned>>);

impl Converted {
    /// The error is a text for every row of the batch.
    ///
    /// # Safety
    /// The GIL is held.
    pub unsafe fn new(function: &Function, batch: &Batch) -> Result<Converted, String> {
        if function.arguments.iter().all(|kind| !matches!(kind, Type::Other)) {
            return Ok(Converted(Vec::new()));
        }
        let columns = function.arguments.iter().enumerate().map(|(i, kind)| match kind {
            // SAFETY: passed on.
            Type::Other => unsafe { foreign::column_to_list(function, batch, i) }.map(Some),
            _ => Ok(None),
        });
        columns.collect::<Result<_, _>>().map(Converted)
    }
}

/// What comes of trying to call a function for a row.
pub enum Call {
    /// A null argument where null is not allowed: the function was not called, the value is null (F3).
    Null,
    /// What the function returned: a new reference.
    Returned(*mut PyObject),
    /// The function has raised: the exception is set.
    Raised,
    /// An argument could not be converted.
    Failed(String),
}

/// Calls the function for a row. `first` goes before the row's arguments (the Context); null: nothing.
///
/// # Safety
/// The GIL is held; the batch was made for this function and has the row.
#[inline]
pub unsafe fn call(function: &Function, batch: &Batch, converted: &Converted, row: usize, first: *mut PyObject, frame: &mut Frame) -> Call {
    let arguments = &mut frame.0;
    arguments[1] = first;
    let mut made = 0;
    let columns = batch.columns();
    let mut outcome = None;
    for (i, column) in columns.iter().enumerate() {
        let object = if !column.is_valid(row) {
            if !function.signature.nullable[i] {
                outcome = Some(Call::Null);
                break;
            }
            // SAFETY: None always exists; the GIL is held.
            unsafe { crate::object::none() }
        } else {
            match &function.arguments[i] {
                // SAFETY: the list has an item for each row; the item is borrowed, and a new reference is taken.
                Type::Other => unsafe {
                    let item = converted.0[i].as_ref().map_or(null_mut(), |list| PyList_GetItem(list.ptr(), row as Py_ssize_t));
                    Py_XINCREF(item);
                    item
                },
                // SAFETY: passed on.
                kind => match unsafe { kind.read(column, row) } {
                    Ok(object) => object,
                    Err(text) => {
                        outcome = Some(Call::Failed(format!("argument {}: {text}", function.signature.arguments[i].0)));
                        break;
                    }
                },
            }
        };
        arguments[2 + made] = object;
        made += 1;
    }
    let outcome = outcome.unwrap_or_else(|| {
        let (start, count) = if first.is_null() { (2, made) } else { (1, made + 1) };
        // SAFETY: `count` valid references from `start` on, with a writable place before them.
        let result = unsafe {
            vectorcall(function.callable.ptr(), arguments.as_ptr().add(start), count | PY_VECTORCALL_ARGUMENTS_OFFSET, null_mut())
        };
        if result.is_null() {
            Call::Raised
        } else {
            Call::Returned(result)
        }
    });
    for &object in &arguments[2..2 + made] {
        // SAFETY: references that were made above.
        unsafe { Py_DECREF(object) };
    }
    outcome
}

/// The error text for a result that is None. None: null is allowed.
pub fn refuse_none(function: &Function) -> Option<&'static str> {
    (!function.signature.returns_nullable).then_some("returned None, but the result is not nullable; annotate it with `| None`")
}

/// The text of the exception that is set, with the end of its traceback (R2); taken off.
///
/// # Safety
/// The GIL is held.
pub unsafe fn raised_text() -> String {
    // SAFETY: passed on.
    unsafe {
        match crate::object::take_exception() {
            Some(exception) => describe(exception.ptr()),
            None => "an error without an exception".into(),
        }
    }
}

/// The text of an exception, with the end of its traceback.
///
/// # Safety
/// The GIL is held; `exception` is an exception.
pub unsafe fn describe(exception: *mut PyObject) -> String {
    // SAFETY: passed on.
    unsafe {
        match crate::object::call(c"arroyo_udf_plugin._traceback", c"describe", &[exception]) {
            Some(text) => crate::object::text(text.ptr()),
            None => {
                let why = exception_text();
                format!("{} (its traceback failed: {why})", crate::object::summary(exception))
            }
        }
    }
}
