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
pub struct Frame(pub [*mut PyObject; MOST_ARGUMENTS + 2]);

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

/// Why a row has no arguments to call the function with.
pub enum Unread {
    /// A null where null is not allowed (F3).
    Null,
    Failed(String),
}

/// Makes the arguments of a row: new references in `into`, one for each column.
///
/// # Safety
/// The GIL is held; the batch was made for this function and has the row; `into` is as long as the function has columns.
#[inline]
pub unsafe fn read_row(
    function: &Function,
    batch: &Batch,
    converted: &Converted,
    row: usize,
    into: &mut [*mut PyObject],
) -> Result<(), Unread> {
    for (i, column) in batch.columns().iter().enumerate() {
        let read = if !column.is_valid(row) {
            if function.signature.nullable[i] {
                // SAFETY: None always exists; the GIL is held.
                Ok(unsafe { crate::object::none() })
            } else {
                Err(Unread::Null)
            }
        } else {
            match &function.arguments[i] {
                // SAFETY: the list has an item for each row; the item is borrowed, and a new reference is taken.
                Type::Other => unsafe {
                    let item = converted.0[i].as_ref().map_or(null_mut(), |list| PyList_GetItem(list.ptr(), row as Py_ssize_t));
                    Py_XINCREF(item);
                    Ok(item)
                },
                // SAFETY: passed on.
                kind => unsafe { kind.read(column, row) }
                    .map_err(|text| Unread::Failed(format!("argument {}: {text}", function.signature.arguments[i].0))),
            }
        };
        match read {
            Ok(object) => into[i] = object,
            Err(why) => {
                // SAFETY: references that were made above.
                into[..i].iter().for_each(|&object| unsafe { Py_DECREF(object) });
                return Err(why);
            }
        }
    }
    Ok(())
}

/// Calls the function for a row. `first` goes before the row's arguments (the Context); null: nothing.
///
/// # Safety
/// The GIL is held; the batch was made for this function and has the row.
#[inline]
pub unsafe fn call(function: &Function, batch: &Batch, converted: &Converted, row: usize, first: *mut PyObject, frame: &mut Frame) -> Call {
    let count = batch.columns().len();
    let Frame(arguments) = frame;
    // SAFETY: passed on; the references that were made are given back.
    unsafe {
        match read_row(function, batch, converted, row, &mut arguments[2..2 + count]) {
            Ok(()) => {}
            Err(Unread::Null) => return Call::Null,
            Err(Unread::Failed(text)) => return Call::Failed(text),
        }
        let called = enter(function, first, count, frame);
        for &object in &frame.0[2..2 + count] {
            Py_DECREF(object);
        }
        called
    }
}

/// Calls the function with the `count` arguments in the frame, from its third place on.
///
/// # Safety
/// The GIL is held; the arguments are valid.
#[inline]
pub unsafe fn enter(function: &Function, first: *mut PyObject, count: usize, frame: &mut Frame) -> Call {
    let arguments = &mut frame.0;
    arguments[1] = first;
    let (start, count) = if first.is_null() { (2, count) } else { (1, count + 1) };
    // SAFETY: `count` valid references from `start` on, with a writable place before them.
    let result =
        unsafe { vectorcall(function.callable.ptr(), arguments.as_ptr().add(start), count | PY_VECTORCALL_ARGUMENTS_OFFSET, null_mut()) };
    if result.is_null() {
        Call::Raised
    } else {
        Call::Returned(result)
    }
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
        match crate::object::call(c"arroyo_udf_plugin.plugin.stacks", c"describe", &[exception]) {
            Some(text) => crate::object::text(text.ptr()),
            None => {
                let why = exception_text();
                format!("{} (its traceback failed: {why})", crate::object::summary(exception))
            }
        }
    }
}
