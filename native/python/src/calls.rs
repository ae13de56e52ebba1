//! From a row of a batch to a call of the user's function, the same for sync and async functions: the null rule (F3) and
//! the arguments. (`outcome.rs` is the way back.)

use crate::forked;
use crate::function::{PythonFunction, MOST_ARGUMENTS};
use crate::object::{none, Owned};
use crate::pyarrow::Objects;
use crate::values::conversion::Conversion;
use crate::values::read::Earlier;
use arroyo_udf_plugin::arrow::{Batch, Column};
use pyo3_ffi::*;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// Room for the arguments of a call: one place before them that the callee may use (PY_VECTORCALL_ARGUMENTS_OFFSET), and
/// one for the Context. It may serve one call after the other, but not two at once: another call may begin before one
/// returns, in an event loop that the function nests, for example.
pub struct Frame {
    places: [MaybeUninit<*mut PyObject>; MOST_ARGUMENTS + 2],
    /// Arguments that have been set: each is null or a reference. The other places are never cleared, and so cost nothing.
    set: usize,
}

impl Frame {
    pub const fn new() -> Frame {
        Frame { places: [const { MaybeUninit::uninit() }; MOST_ARGUMENTS + 2], set: 0 }
    }

    /// The arguments that have been set.
    pub fn arguments(&mut self) -> &mut [*mut PyObject] {
        let arguments = &mut self.places[2..2 + self.set];
        // SAFETY: these places have been set.
        unsafe { &mut *(std::ptr::from_mut(arguments) as *mut [*mut PyObject]) }
    }

    /// Takes an argument out, leaving null. Null: it has not been set.
    #[inline(always)]
    fn take(&mut self, argument: usize) -> *mut PyObject {
        self.arguments().get_mut(argument).map_or(null_mut(), |place| std::mem::replace(place, null_mut()))
    }

    /// Sets an argument that is null; all before it have been set.
    #[inline(always)]
    fn set(&mut self, argument: usize, object: *mut PyObject) {
        self.places[2 + argument].write(object);
        self.set = self.set.max(argument + 1);
    }
}

impl Drop for Frame {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the GIL is held by whoever has read and called a row.
        self.arguments().iter().for_each(|&object| unsafe { Py_XDECREF(object) });
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
            true => unsafe { conversion.read(column, 0, Earlier::none()) }.ok().and_then(|object| unsafe { Owned::new(object) }),
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

/// Makes the arguments of a row, in the place of those of an earlier row, if there are any.
///
/// # Safety
/// The GIL is held; the batch was made for this function and has the row; what is in the frame was made here for this
/// function.
#[inline(always)]
pub unsafe fn read_row(
    function: &PythonFunction,
    batch: &Batch,
    converted: &Converted,
    row: usize,
    frame: &mut Frame,
) -> Result<(), Unread> {
    for (i, (column, conversion)) in batch.columns().iter().zip(&function.arguments).enumerate() {
        // SAFETY: what is in its place was made here for this column; what all rows have, and None, others have as well.
        let earlier = unsafe { Earlier::new(frame.take(i)) };
        let argument = if !column.is_valid(row) {
            if function.signature.nullable[i] {
                // SAFETY: the GIL is held.
                Ok(unsafe { none() })
            } else {
                Err(Unread::Null)
            }
        } else if let (Conversion::Pyarrow, Some(Some(objects))) = (conversion, converted.objects.get(i)) {
            // SAFETY: passed on.
            unsafe { objects.take(function, batch, i, row) }.map_err(Unread::Failed)
        } else if let Some(Some(object)) = converted.constants.get(i) {
            // Texts and bytes cannot be changed, so all calls may have the same object.
            // SAFETY: the GIL is held.
            Ok(unsafe { Owned::borrowed(object.ptr()) }.into_ptr())
        } else {
            // SAFETY: passed on.
            unsafe { conversion.read(column, row, earlier) }.map_err(Unread::Failed)
        };
        match argument {
            Ok(object) => frame.set(i, object),
            Err(why) => return Err(unread(function, batch, row, i, why)),
        }
    }
    Ok(())
}

/// Why a row has no arguments if number `argument` is null, or could not be made.
#[cold]
fn unread(function: &PythonFunction, batch: &Batch, row: usize, argument: usize, why: Unread) -> Unread {
    // A null that keeps the function from being called counts first, as in the other languages.
    let mut later = batch.columns().iter().zip(&function.signature.nullable).skip(argument + 1);
    match why {
        Unread::Failed(text) if !later.any(|(column, nullable)| !nullable && !column.is_valid(row)) => {
            Unread::Failed(format!("argument {}: {text}", function.signature.arguments[argument].0))
        }
        _ => Unread::Null,
    }
}

/// Calls the function for a row. `context` goes before the row's arguments, unless it is null.
///
/// # Safety
/// The GIL is held; the batch was made for this function and has the row; `context` is valid or null.
#[inline]
pub unsafe fn call_row(function: &PythonFunction, batch: &Batch, converted: &Converted, row: usize, context: *mut PyObject) -> Called {
    let mut frame = Frame::new();
    // SAFETY: passed on.
    unsafe { call_next(function, batch, converted, row, context, &mut frame) }
}

/// As [`call_row`], for one row after the other: `frame` serves no other function.
///
/// # Safety
/// As for [`call_row`].
#[inline(always)]
pub unsafe fn call_next(
    function: &PythonFunction,
    batch: &Batch,
    converted: &Converted,
    row: usize,
    context: *mut PyObject,
    frame: &mut Frame,
) -> Called {
    // SAFETY: passed on.
    unsafe {
        match read_row(function, batch, converted, row, frame) {
            Ok(()) => call_frame(function, context, frame),
            Err(Unread::Null) => Called::Null,
            Err(Unread::Failed(text)) => Called::Failed(text),
        }
    }
}

/// Calls the function with the frame's arguments.
///
/// # Safety
/// The GIL is held; all arguments are set and valid; `context` is valid or null.
#[inline]
pub unsafe fn call_frame(function: &PythonFunction, context: *mut PyObject, frame: &mut Frame) -> Called {
    frame.places[1].write(context);
    let (start, count) = if context.is_null() { (2, frame.set) } else { (1, frame.set + 1) };
    // SAFETY: `count` valid references from `start` on, with a writable place before them.
    let result = unsafe {
        let first = frame.places.as_ptr().add(start).cast();
        function.entry.call(function.callable.ptr(), first, count | PY_VECTORCALL_ARGUMENTS_OFFSET)
    };
    // SAFETY: the GIL is held.
    unsafe { forked::came_back(null_mut()) };
    if result.is_null() {
        Called::Raised
    } else {
        Called::Returned(result)
    }
}
