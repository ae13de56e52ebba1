//! Values that go through pyarrow: types that `values` does not convert, and vectorized functions. The Python half is
//! `plugin/conversion.py`.
//!
//! Guarantees: pyarrow receives views and never owns an array of the host. A view of a column lives for one call. A view for
//! a vectorized function keeps the batch alive until pyarrow drops it, in any thread; the batch is then released in a thread
//! of the host (R19).
//!
//! What goes to the host is checked as well, because a function may return an array of any content: `plugin/vectorized.py`
//! asks [`settle`] before it hands results on.
//!
//! pyarrow checks nothing, so offsets at every level are checked before it gets a view; and for vectorized functions, whose
//! kernels assume it, that texts are UTF-8. If a check fails, rows are taken one by one, and those at fault are errors (F4).
//! A value that pyarrow makes is handed out once, because a call may change it: another attempt gets another one.

use crate::forked;
use crate::function::PythonFunction;
use crate::interrupt;
use crate::modules::CONVERSION;
use crate::object::{address, call, exception_text, none, raise, text, Owned};
use arroyo_udf_plugin::abi::{ArrowArray, ArrowSchema};
use arroyo_udf_plugin::arrow::{self, Batch, Column, Layout, NoRoom};
use arroyo_udf_plugin::results;
use arroyo_udf_plugin::signature;
use arroyo_udf_plugin::value::Value;
use pyo3_ffi::*;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::Arc;

/// schema(address: int) -> capsule "arrow_schema": a copy of a constant schema, for pyarrow to import.
pub unsafe extern "C" fn schema(_module: *mut PyObject, argument: *mut PyObject) -> *mut PyObject {
    unsafe extern "C" fn free(capsule: *mut PyObject) {
        // SAFETY: the capsule holds the box made below; a consumer that moved the schema out has reset its release.
        unsafe {
            let schema = Box::from_raw(PyCapsule_GetPointer(capsule, c"arrow_schema".as_ptr()).cast::<ArrowSchema>());
            let mut schema = *schema;
            if let Some(release) = schema.release {
                release(&mut schema);
            }
        }
    }
    // SAFETY: called by Python with the GIL and the address of a registered function's schema.
    unsafe {
        let pointer = PyLong_AsVoidPtr(argument).cast::<ArrowSchema>();
        let Some(constant) = pointer.as_ref() else {
            return raise(PyExc_ValueError, "not the address of a schema");
        };
        let copy = Box::into_raw(Box::new(signature::copy(constant)));
        PyCapsule_New(copy.cast(), c"arrow_schema".as_ptr(), Some(free))
    }
}

/// settle(array: capsule "arrow_array", schema: int) -> list[tuple[int, str]]: the rows of an array that are not as its type
/// says, with why. If there are any, the array in the capsule is replaced by one in which they are null. Raises ValueError if the
/// array is broken as a whole.
pub unsafe extern "C" fn settle(_module: *mut PyObject, arguments: *mut *mut PyObject, count: Py_ssize_t) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and `count` arguments: pyarrow's export of an array, and the address of a registered
    // function's schema, whose type the array has.
    unsafe {
        if count != 2 {
            return raise(PyExc_TypeError, "settle() takes an array and the address of a schema");
        }
        let array = PyCapsule_GetPointer(*arguments, c"arrow_array".as_ptr()).cast::<ArrowArray>();
        let schema = PyLong_AsVoidPtr(*arguments.add(1)).cast::<ArrowSchema>();
        if !PyErr_Occurred().is_null() {
            return null_mut();
        }
        match settled(&*array, &*schema) {
            Ok((None, _)) => PyList_New(0),
            Ok((Some(settled), broken)) => {
                if let Some(release) = (*array).release {
                    release(array);
                }
                array.write(settled);
                row_list(&broken)
            }
            Err(text) => raise(PyExc_ValueError, &text),
        }
    }
}

/// An array in which rows that are not as the type says are null, and these rows; None: there are none.
unsafe fn settled(array: &ArrowArray, schema: &ArrowSchema) -> Result<(Option<ArrowArray>, RowErrors), String> {
    let rows = array.length as usize;
    // SAFETY: passed on; each row is read only if it passed the check.
    unsafe {
        let check = |rows: Range<usize>| arrow::check_rows(array, schema, rows, true);
        if check(0..rows).is_ok() {
            return Ok((None, Vec::new()));
        }
        let layout = Layout::of(schema)?;
        let column = Column::new(array, &layout, "it")?;
        let mut broken = Vec::new();
        let values: Vec<Value> = (0..rows)
            .map(|row| {
                let read = || check(row..row + 1).and_then(|()| column.value(&layout, row));
                if !column.is_valid(row) {
                    return Value::Null;
                }
                read().unwrap_or_else(|text| {
                    broken.push((row, text));
                    Value::Null
                })
            })
            .collect();
        let (settled, without_room) = arrow::build_with_room(&layout, values.iter());
        broken.extend(NoRoom::errors(without_room));
        broken.sort_by_key(|(row, _)| *row);
        Ok((Some(settled.export()), broken))
    }
}

/// The errors of rows as a list of pairs. Null: an exception is set.
unsafe fn row_list(errors: &[(usize, String)]) -> *mut PyObject {
    // SAFETY: the GIL is held; the list takes its own references.
    unsafe {
        let Some(list) = Owned::new(PyList_New(0)) else { return null_mut() };
        for (row, text) in errors {
            let text = PyUnicode_FromStringAndSize(text.as_ptr().cast(), text.len() as Py_ssize_t);
            let Some(text) = Owned::new(text) else { return null_mut() };
            let pair = Py_BuildValue(c"(nO)".as_ptr(), *row as Py_ssize_t, text.ptr());
            if Owned::new(pair).is_none_or(|pair| PyList_Append(list.ptr(), pair.ptr()) < 0) {
                return null_mut();
            }
        }
        list.into_ptr()
    }
}

unsafe fn child<T>(children: *mut *mut T, i: usize) -> *const T {
    // SAFETY: the array or schema was checked to have the child.
    unsafe { *children.add(i) }
}

/// A column of a batch as Python objects.
pub struct Objects {
    /// An object for each row; None after it was taken.
    list: Owned,
    /// Rows that could not be converted, ascending; None in the list.
    unreadable: RowErrors,
}

impl Objects {
    /// The error is a text for every row.
    ///
    /// # Safety
    /// The GIL is held; the batch was made for this function.
    pub unsafe fn new(function: &PythonFunction, batch: &Batch, argument: usize) -> Result<Objects, String> {
        let column = PyarrowColumn { function, batch, argument };
        // SAFETY: passed on; the list gets an object, or None, for each row.
        unsafe {
            if let Ok(list) = column.convert(0..batch.rows()) {
                return Ok(Objects { list, unreadable: Vec::new() });
            }
            let list = Owned::new(PyList_New(batch.rows() as Py_ssize_t)).ok_or_else(|| exception_text())?;
            let mut unreadable = Vec::new();
            for row in 0..batch.rows() {
                let object = if batch.columns()[argument].is_valid(row) { column.object(row) } else { Ok(none()) };
                let object = object.unwrap_or_else(|text| {
                    unreadable.push((row, text));
                    none()
                });
                PyList_SetItem(list.ptr(), row as Py_ssize_t, object);
            }
            Ok(Objects { list, unreadable })
        }
    }

    /// A new reference to the object of a row that is not null, which no other call has had. The error is a text for the row.
    ///
    /// # Safety
    /// As for `new`, with the same arguments; the batch has the row.
    pub unsafe fn take(&self, function: &PythonFunction, batch: &Batch, argument: usize, row: usize) -> Result<*mut PyObject, String> {
        if let Ok(i) = self.unreadable.binary_search_by_key(&row, |(row, _)| *row) {
            return Err(self.unreadable[i].1.clone());
        }
        // SAFETY: the list has an item for each row; the reference that it gives up is replaced by one to None.
        unsafe {
            let object = PyList_GetItem(self.list.ptr(), row as Py_ssize_t);
            if object == Py_None() {
                return PyarrowColumn { function, batch, argument }.object(row);
            }
            Py_INCREF(object);
            PyList_SetItem(self.list.ptr(), row as Py_ssize_t, none());
            Ok(object)
        }
    }
}

/// A column that pyarrow converts. Each method: the GIL is held, and the batch was made for the function.
struct PyarrowColumn<'a> {
    function: &'a PythonFunction,
    batch: &'a Batch,
    argument: usize,
}

impl PyarrowColumn<'_> {
    /// Checks rows. `full`: texts, too.
    unsafe fn check(&self, rows: Range<usize>, full: bool) -> Result<(), String> {
        let offset = self.batch.array().offset as usize;
        // SAFETY: the batch has this column, and was compared with the schema.
        unsafe {
            let schema = &*child(self.function.signature.argument_schema.children, self.argument);
            arrow::check_rows(&*child(self.batch.array().children, self.argument), schema, offset + rows.start..offset + rows.end, full)
        }
    }

    /// Rows as a list. The error says what is wrong with one of them.
    unsafe fn convert(&self, rows: Range<usize>) -> Result<Owned, String> {
        // SAFETY: the rows were checked; pyarrow copies the values into Python objects and drops the view before the call
        // returns.
        unsafe {
            self.check(rows.clone(), false)?;
            let outer = self.batch.array();
            let layout = &self.function.signature.arguments[self.argument].1;
            let mut column = arrow::view(&*child(outer.children, self.argument), layout);
            column.offset += outer.offset + rows.start as i64;
            column.length = rows.len() as i64;
            let schema = child(self.function.signature.argument_schema.children, self.argument);
            let list = match (address(&raw const column), address(schema)) {
                (Some(array), Some(schema)) => call(CONVERSION, c"column_to_list", &[array.ptr(), schema.ptr()]),
                _ => None,
            };
            let list = list.filter(|list| PyList_Check(list.ptr()) != 0).ok_or_else(|| exception_text());
            if let Some(release) = column.release {
                release(&mut column);
            }
            list
        }
    }

    /// A new reference to the object of a row.
    unsafe fn object(&self, row: usize) -> Result<*mut PyObject, String> {
        // SAFETY: a list of one row has one item.
        unsafe {
            let list = self.convert(row..row + 1)?;
            Ok(Owned::borrowed(PyList_GetItem(list.ptr(), 0)).into_ptr())
        }
    }
}

/// Row numbers of a batch, with their error texts.
pub type RowErrors = Vec<(usize, String)>;

/// A list of returned objects as an array of the function's return type. Objects that do not fit become null and a row
/// error.
///
/// # Safety
/// The GIL is held; `list` is a list.
pub unsafe fn list_to_column(function: &PythonFunction, list: *mut PyObject) -> Result<(ArrowArray, RowErrors), String> {
    let mut out = ArrowArray::empty();
    // SAFETY: `out` is writable during the call; the list that comes back has pairs of an int and a str.
    unsafe {
        let refused = match (address(function.signature.return_schema), address(&raw mut out)) {
            (Some(schema), Some(array)) => call(CONVERSION, c"list_to_column", &[list, schema.ptr(), array.ptr()]),
            _ => None,
        };
        let refused = refused.ok_or_else(|| exception_text())?;
        Ok((out, row_errors(refused.ptr())))
    }
}

/// One object as a value of the function's return type. The error is a text for the row.
///
/// # Safety
/// The GIL is held; `object` is valid.
pub unsafe fn object_to_value(function: &PythonFunction, object: *mut PyObject) -> Result<Value, String> {
    // SAFETY: the list gets its own reference; the array that comes back is released here, in the thread that made it.
    unsafe {
        let list = Owned::new(PyList_New(1)).ok_or_else(|| exception_text())?;
        PyList_SetItem(list.ptr(), 0, Owned::borrowed(object).into_ptr());
        let (mut array, refused) = list_to_column(function, list.ptr())?;
        let layout: &Layout = &function.signature.returns;
        let value = match refused.into_iter().next() {
            Some((_, text)) => Err(text),
            None => Column::new(&array, layout, "the result").and_then(|column| column.value(layout, 0)),
        };
        if let Some(release) = array.release {
            release(&mut array);
        }
        value
    }
}

/// Calls a vectorized function with a batch, without the rows that cannot be read: they are null, and row errors, as those
/// that fail in the call (F4). The error is a text for every row of the batch.
///
/// # Safety
/// The GIL is held; the batch was made for this function.
pub unsafe fn vectorized(function: &PythonFunction, batch: &Arc<Batch>) -> Result<(ArrowArray, RowErrors), String> {
    let mut out = ArrowArray::empty();
    // SAFETY: pyarrow moves the view out of `input`; if it does not, the view is released below. `out` is writable during
    // the call.
    unsafe {
        let unreadable = unreadable_rows(function, batch);
        let rows = Owned::new(PyList_New(0)).ok_or_else(|| exception_text())?;
        for (row, _) in &unreadable {
            let appended = Owned::new(PyLong_FromSize_t(*row)).is_some_and(|row| PyList_Append(rows.ptr(), row.ptr()) == 0);
            if !appended {
                return Err(exception_text());
            }
        }
        let signature = function.signature;
        let mut input = arrow::view_batch(batch, &signature.arguments);
        let split = if function.split { Py_True() } else { Py_False() };
        let failed =
            match (address(&raw mut input), address(signature.argument_schema), address(signature.return_schema), address(&raw mut out)) {
                (Some(array), Some(schema), Some(returns), Some(out)) => call(
                    CONVERSION,
                    c"vectorized",
                    &[function.callable.ptr(), array.ptr(), schema.ptr(), returns.ptr(), out.ptr(), rows.ptr(), split],
                ),
                _ => None,
            };
        if let Some(release) = input.release {
            release(&mut input);
        }
        let Some(failed) = failed else { return Err(exception_text()) };
        let mut errors = unreadable;
        errors.extend(row_errors(failed.ptr()));
        errors.sort_by_key(|(row, _)| *row);
        Ok((out, errors))
    }
}

/// The errors that a function in conversion.py returns: a list of pairs.
unsafe fn row_errors(list: *mut PyObject) -> RowErrors {
    // SAFETY: the GIL is held; our own Python function builds this list.
    unsafe {
        let pairs = (0..PyList_Size(list)).map(|i| PyList_GetItem(list, i));
        pairs.map(|pair| (PyLong_AsSize_t(PyTuple_GetItem(pair, 0)), results::error_text(text(PyTuple_GetItem(pair, 1))))).collect()
    }
}

/// The rows of a batch that pyarrow must not see, with their error texts.
unsafe fn unreadable_rows(function: &PythonFunction, batch: &Batch) -> RowErrors {
    let columns = || (0..batch.columns().len()).map(|argument| PyarrowColumn { function, batch, argument });
    // SAFETY: passed on. A null's bytes need not be text.
    unsafe {
        if columns().all(|column| column.check(0..batch.rows(), true).is_ok()) {
            return Vec::new();
        }
        let unreadable = |row: usize| {
            columns().find_map(|column| {
                let text = column.check(row..row + 1, batch.columns()[column.argument].is_valid(row)).err()?;
                let argument = &function.signature.arguments[column.argument].0;
                Some((row, format!("argument {argument}: {text}")))
            })
        };
        (0..batch.rows()).filter_map(unreadable).collect()
    }
}

/// note_interrupt(error: BaseException) -> bool: whether what a function has raised is Ctrl-C; the host then raises it after
/// the call.
pub unsafe extern "C" fn note_interrupt(_module: *mut PyObject, error: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and one argument.
    unsafe {
        forked::came_back(error);
        PyBool_FromLong(interrupt::note(error).into())
    }
}
