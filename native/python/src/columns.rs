//! The columns of a call from the Python host: whether they fit the arguments of a function, and their way into one batch.
//! Every call of a function goes this way, and in Python it would cost more than a function that does little.

use crate::host::{free, new_batch};
use crate::object::{raise, Owned};
use pyo3_ffi::*;
use std::ffi::CStr;
use std::ptr::null_mut;

/// What the columns of a function must be.
struct Columns {
    /// pyarrow's Array.
    array: Owned,
    /// Its method `_export_to_c`.
    export: Owned,
    /// The name of an array's type.
    type_name: Owned,
    /// A tuple: the type of each column.
    types: Owned,
}

impl Columns {
    /// None: an exception is set.
    ///
    /// # Safety
    /// The GIL is held; both objects are valid, and `types` is a tuple.
    unsafe fn new(array: *mut PyObject, types: *mut PyObject) -> Option<Columns> {
        // SAFETY: passed on.
        unsafe {
            Some(Columns {
                array: Owned::borrowed(array),
                export: Owned::new(PyObject_GetAttrString(array, c"_export_to_c".as_ptr()))?,
                type_name: Owned::new(PyUnicode_InternFromString(c"type".as_ptr()))?,
                types: Owned::borrowed(types),
            })
        }
    }

    /// Whether these are arrays of the types, and of one length. None: an exception is set.
    ///
    /// # Safety
    /// The GIL is held; `given` is a tuple.
    unsafe fn fit(&self, given: *mut PyObject) -> Option<bool> {
        // SAFETY: passed on. The items of a tuple are borrowed from it, and its owner keeps it.
        unsafe {
            let count = PyTuple_Size(given);
            if count != PyTuple_Size(self.types.ptr()) {
                return Some(false);
            }
            let mut first_length = None;
            for i in 0..count {
                let (array, wanted) = (PyTuple_GetItem(given, i), PyTuple_GetItem(self.types.ptr(), i));
                if PyType_IsSubtype(Py_TYPE(array), self.array.ptr().cast()) == 0 {
                    return Some(false);
                }
                let own = Owned::new(PyObject_GetAttr(array, self.type_name.ptr()))?;
                let is_wanted = PyObject_RichCompareBool(own.ptr(), wanted, Py_EQ);
                let length = PyObject_Size(array);
                if is_wanted < 0 || length < 0 {
                    return None;
                }
                if is_wanted == 0 || length != *first_length.get_or_insert(length) {
                    return Some(false);
                }
            }
            Some(true)
        }
    }

    /// The address of a new batch of these arrays. None: an exception is set.
    ///
    /// # Safety
    /// The GIL is held; `given` is a tuple of arrays, the first of which has the length of the batch.
    unsafe fn export(&self, given: *mut PyObject) -> Option<Owned> {
        // SAFETY: passed on. pyarrow fills each child, which is empty.
        unsafe {
            // A function without arguments has one array of nulls, for its length.
            let (count, length) = (PyTuple_Size(self.types.ptr()), PyObject_Size(PyTuple_GetItem(given, 0)));
            if length < 0 {
                return None;
            }
            let (batch, child) = new_batch(length as i64, count as usize);
            for i in 0..count {
                let address = PyLong_FromVoidPtr(child.wrapping_add(i as usize).cast());
                let exported = Owned::new(address).and_then(|address| {
                    let arguments = [PyTuple_GetItem(given, i), address.ptr()];
                    Owned::new(PyObject_Vectorcall(self.export.ptr(), arguments.as_ptr(), 2, null_mut()))
                });
                if exported.is_none() {
                    free(batch);
                    return None;
                }
            }
            Owned::new(PyLong_FromVoidPtr(batch.cast()))
        }
    }
}

// ---- For Python ----

const COLUMNS: &CStr = c"arroyo_udf_plugin._native.Columns";

unsafe extern "C" fn free_columns(capsule: *mut PyObject) {
    // SAFETY: Python calls this once, when no reference is left; the capsule holds the box of `columns`.
    unsafe { drop(Box::from_raw(PyCapsule_GetPointer(capsule, COLUMNS.as_ptr()).cast::<Columns>())) };
}

/// columns(array: type, types: tuple) -> Columns: pyarrow's Array, and the types of a function's arguments.
pub unsafe extern "C" fn columns(_module: *mut PyObject, arguments: *mut *mut PyObject, count: Py_ssize_t) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and `count` arguments.
    unsafe {
        if count != 2 || PyType_Check(*arguments) == 0 || PyTuple_Check(*arguments.add(1)) == 0 {
            return raise(PyExc_TypeError, "columns() takes a type and a tuple");
        }
        match Columns::new(*arguments, *arguments.add(1)) {
            Some(columns) => PyCapsule_New(Box::into_raw(Box::new(columns)).cast(), COLUMNS.as_ptr(), Some(free_columns)),
            None => null_mut(),
        }
    }
}

/// The arguments of the functions below: columns, and the arrays as a tuple. None: an exception is set.
///
/// # Safety
/// The GIL is held; there are `count` arguments.
unsafe fn columns_and_given<'a>(arguments: *mut *mut PyObject, count: Py_ssize_t) -> Option<(&'a Columns, Owned)> {
    // SAFETY: the caller's columns live at least until the function returns.
    unsafe {
        if count != 2 {
            raise(PyExc_TypeError, "there must be two arguments: columns and a sequence");
            return None;
        }
        let columns = PyCapsule_GetPointer(*arguments, COLUMNS.as_ptr()).cast::<Columns>().as_ref()?;
        Some((columns, Owned::new(PySequence_Tuple(*arguments.add(1)))?))
    }
}

/// fit(columns, given) -> bool: whether these are arrays of the types, and of one length.
pub unsafe extern "C" fn fit(_module: *mut PyObject, arguments: *mut *mut PyObject, count: Py_ssize_t) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and `count` arguments.
    unsafe {
        let fit = columns_and_given(arguments, count).and_then(|(columns, given)| columns.fit(given.ptr()));
        fit.map_or(null_mut(), |fit| PyBool_FromLong(fit.into()))
    }
}

/// export(columns, arrays) -> int: the address of a batch of arrays that fit. It is for `free_batch` or `taken`.
pub unsafe extern "C" fn export(_module: *mut PyObject, arguments: *mut *mut PyObject, count: Py_ssize_t) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and `count` arguments; the caller has asked `fit`.
    unsafe {
        let Some((columns, given)) = columns_and_given(arguments, count) else { return null_mut() };
        if PyTuple_Size(given.ptr()) < PyTuple_Size(columns.types.ptr()).max(1) {
            return raise(PyExc_ValueError, "too few arrays");
        }
        columns.export(given.ptr()).map_or(null_mut(), Owned::into_ptr)
    }
}
