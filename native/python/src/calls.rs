//! From a row of a batch to a call of the user's function, the same for sync and async functions: the null rule (F3) and
//! the arguments. (`outcome.rs` is the way back.)

use crate::forked;
use crate::function::{PythonFunction, MOST_ARGUMENTS};
use crate::gil::vectorcall;
use crate::object::{none, Owned};
use crate::pyarrow::Objects;
use crate::values::conversion::Conversion;
use arroyo_udf_plugin::arrow::{Batch, Column};
use pyo3_ffi::*;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// Room for the arguments of a call: one place before them that the callee may use (PY_VECTORCALL_ARGUMENTS_OFFSET), and
/// one for the Context. Each call has its own, because another one may begin before it returns: in an event loop that the
/// function nests, for example. It is never cleared, and so costs nothing.
pub struct Frame([MaybeUninit<*mut PyObject>; MOST_ARGUMENTS + 2]);

impl Frame {
    pub fn new() -> Frame {
        Frame([const { MaybeUninit::uninit() }; MOST_ARGUMENTS + 2])
    }

    /// The places of the first `count` arguments.
    pub fn arguments(&mut self, count: usize) -> &mut [MaybeUninit<*mut PyObject>] {
        &mut self.0[2..2 + count]
    }
}

/// The columns of a batch that are converted before its rows are called.
pub struct Converted {
    /// Those that pyarrow converts; None for a column that is read natively.
    objects: Vec<Option<Objects>>,
    /// The values of constants that are read natively. Empty: there are none.
    constants: Vec<Option<Owned>>,
}

impl Converted {
    /// The error is a text for every row of the batch.
    ///
    /// # Safety
    /// The GIL is held.
    pub unsafe fn new(function: &PythonFunction, batch: &Batch) -> Result<Converted, String> {
        // A value that cannot be read is the error of each row.
        let constant = |(column, conversion): (&Column, &Conversion)| match column.is_constant() && column.is_valid(0) {
            // SAFETY: passed on.
            true => unsafe { conversion.read(column, 0) }.ok().and_then(|object| unsafe { Owned::new(object) }),
            false => None,
        };
        let constants = match batch.columns().iter().any(Column::is_constant) {
            true => batch.columns().iter().zip(&function.arguments).map(constant).collect(),
            false => Vec::new(),
        };
        if function.arguments.iter().all(|conversion| !matches!(conversion, Conversion::Pyarrow)) {
            return Ok(Converted { objects: Vec::new(), constants });
        }
        let columns = function.arguments.iter().enumerate().map(|(i, conversion)| match conversion {
            // SAFETY: passed on.
            Conversion::Pyarrow => unsafe { Objects::new(function, batch, i) }.map(Some),
            _ => Ok(None),
        });
        Ok(Converted { objects: columns.collect::<Result<_, _>>()?, constants })
    }
}

/// How a call for a row went.
pub enum Called {
    /// The function was not called because an argument is null and must not be; the value is null (F3).
    Null,
    /// The function returned this: a new reference.
    Returned(*mut PyObject),
    /// The function raised; the exception is set.
    Raised,
    /// The function was not called because an argument could not be converted.
    Failed(String),
}

/// Why a row has no arguments.
pub enum Unread {
    /// A null where null is not allowed (F3).
    Null,
    Failed(String),
}

/// Makes the arguments of a row: a new reference in `into` for each column.
///
/// # Safety
/// The GIL is held; the batch was made for this function and has the row; `into` has a place for each column.
#[inline]
pub unsafe fn read_row(
    function: &PythonFunction,
    batch: &Batch,
    converted: &Converted,
    row: usize,
    into: &mut [MaybeUninit<*mut PyObject>],
) -> Result<(), Unread> {
    for (i, column) in batch.columns().iter().enumerate() {
        let argument = if !column.is_valid(row) {
            if function.signature.nullable[i] {
                // SAFETY: the GIL is held.
                Ok(unsafe { none() })
            } else {
                Err(Unread::Null)
            }
        } else {
            let read = match &function.arguments[i] {
                Conversion::Pyarrow => match converted.objects.get(i) {
                    // SAFETY: passed on.
                    Some(Some(objects)) => unsafe { objects.take(function, batch, i, row) },
                    _ => unreachable!("`Converted::new` has converted the column"),
                },
                conversion => match converted.constants.get(i) {
                    // Texts and bytes cannot be changed, so all calls may have the same object.
                    // SAFETY: the GIL is held.
                    Some(Some(object)) => Ok(unsafe { Owned::borrowed(object.ptr()) }.into_ptr()),
                    // SAFETY: passed on.
                    _ => unsafe { conversion.read(column, row) },
                },
            };
            read.map_err(|text| Unread::Failed(format!("argument {}: {text}", function.signature.arguments[i].0)))
        };
        match argument {
            Ok(object) => {
                into[i].write(object);
            }
            Err(why) => {
                // SAFETY: the references made above.
                into[..i].iter().for_each(|object| unsafe { Py_DECREF(object.assume_init()) });
                // A null that keeps the function from being called counts first, as in the other languages.
                let later = batch.columns().iter().zip(&function.signature.nullable).skip(i + 1);
                let is_null = later.into_iter().any(|(column, nullable)| !nullable && !column.is_valid(row));
                return Err(if is_null { Unread::Null } else { why });
            }
        }
    }
    Ok(())
}

/// Calls the function for a row. `context` goes before the row's arguments, unless it is null.
///
/// # Safety
/// The GIL is held; the batch was made for this function and has the row; `context` is valid or null.
#[inline]
pub unsafe fn call_row(function: &PythonFunction, batch: &Batch, converted: &Converted, row: usize, context: *mut PyObject) -> Called {
    let count = batch.columns().len();
    let mut frame = Frame::new();
    // SAFETY: passed on; the references made here are given back.
    unsafe {
        match read_row(function, batch, converted, row, frame.arguments(count)) {
            Ok(()) => {}
            Err(Unread::Null) => return Called::Null,
            Err(Unread::Failed(text)) => return Called::Failed(text),
        }
        let called = call_frame(function, context, count, &mut frame);
        for object in frame.arguments(count) {
            Py_DECREF(object.assume_init());
        }
        called
    }
}

/// Calls the function with the frame's first `count` arguments.
///
/// # Safety
/// The GIL is held; the arguments are set and valid; `context` is valid or null.
#[inline]
pub unsafe fn call_frame(function: &PythonFunction, context: *mut PyObject, count: usize, frame: &mut Frame) -> Called {
    let arguments = &mut frame.0;
    arguments[1].write(context);
    let (start, count) = if context.is_null() { (2, count) } else { (1, count + 1) };
    // SAFETY: `count` valid references from `start` on, with a writable place before them.
    let result = unsafe {
        let first = arguments.as_ptr().add(start).cast();
        vectorcall(function.callable.ptr(), first, count | PY_VECTORCALL_ARGUMENTS_OFFSET, null_mut())
    };
    // SAFETY: the GIL is held.
    unsafe { forked::came_back(null_mut()) };
    if result.is_null() {
        Called::Raised
    } else {
        Called::Returned(result)
    }
}
