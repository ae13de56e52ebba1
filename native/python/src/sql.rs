//! Functions of SQL over columns, for the Python side of SQL stages.

use crate::gil;
use crate::object::{none, raise};
use arroyo_udf_plugin::abi::{ArrowArray, ArrowSchema};
use arroyo_udf_plugin::arrow::{Column, Layout};
use arroyo_udf_sql::column::{ByKeys, ByPath, Function, Last};
use arroyo_udf_sql::hash::{hashes, Argument};
use arroyo_udf_sql::json::{LinesReader, Path, Step};
use pyo3_ffi::*;
use std::ffi::{c_int, CStr};
use std::ptr::null_mut;

const FUNCTION: &CStr = c"arroyo_udf_plugin._native.JsonFunction";

unsafe extern "C" fn free(capsule: *mut PyObject) {
    // SAFETY: Python calls this once, when no reference is left; the capsule holds the box of `json_function`.
    unsafe { drop(Box::from_raw(PyCapsule_GetPointer(capsule, FUNCTION.as_ptr()).cast::<Function>())) };
}

/// json_function(name: str, path: tuple[str | int, ...] | str) -> JsonFunction: a function with its path, which is a JSONPath
/// if it is a text. Raises ValueError for a path that is not supported; the text says what to write.
pub unsafe extern "C" fn json_function(_module: *mut PyObject, arguments: *mut *mut PyObject, count: Py_ssize_t) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and `count` arguments.
    unsafe {
        if count != 2 {
            return raise(PyExc_TypeError, "json_function() takes a name and a path");
        }
        let (Some(name), path) = (text(*arguments), *arguments.add(1)) else { return null_mut() };
        let function = if let Some(what) = ByKeys::named(name) {
            let Some(steps) = steps(path) else { return null_mut() };
            Function::Keys(what, steps)
        } else if let Some(what) = ByPath::named(name) {
            let Some(path) = text(path) else { return null_mut() };
            match Path::read(path) {
                Ok(path) => Function::Path(what, path),
                Err(error) => return raise(PyExc_ValueError, &error),
            }
        } else {
            return raise(PyExc_ValueError, &format!("there is no function {name}"));
        };
        PyCapsule_New(Box::into_raw(Box::new(function)).cast(), FUNCTION.as_ptr(), Some(free))
    }
}

/// None: an exception is set.
///
/// # Safety
/// The GIL is held; the text is used no longer than the object lives.
unsafe fn text<'a>(object: *mut PyObject) -> Option<&'a str> {
    let mut length = 0;
    // SAFETY: passed on; Python's texts are UTF-8 here, and stay as they are.
    unsafe {
        let data = PyUnicode_AsUTF8AndSize(object, &mut length);
        (!data.is_null()).then(|| std::str::from_utf8_unchecked(std::slice::from_raw_parts(data.cast(), length as usize)))
    }
}

/// None: an exception is set.
///
/// # Safety
/// The GIL is held.
unsafe fn steps(path: *mut PyObject) -> Option<Vec<Step>> {
    // SAFETY: a tuple, if the length is one, has so many items.
    unsafe {
        let length = PyTuple_Size(path);
        let step = |i| {
            let step = PyTuple_GetItem(path, i);
            if PyUnicode_Check(step) != 0 {
                return text(step).map(|key| Step::Key(key.as_bytes().into()));
            }
            let mut overflow: c_int = 0;
            let index = PyLong_AsLongLongAndOverflow(step, &mut overflow);
            // An index beyond 64 bits leads nowhere.
            PyErr_Occurred().is_null().then_some(Step::Index(if overflow == 0 { index } else { -1 }))
        };
        if length < 0 {
            return None;
        }
        (0..length).map(step).collect()
    }
}

/// An array that pyarrow has exported, released in the end.
struct Given(ArrowArray);

impl Drop for Given {
    fn drop(&mut self) {
        if let Some(release) = self.0.release {
            // SAFETY: the array is ours and has not been released.
            unsafe { release(&mut self.0) };
        }
    }
}

impl Given {
    /// Moves the array out of an address. None: an exception is set.
    ///
    /// # Safety
    /// The GIL is held; pyarrow has exported an array to the address.
    unsafe fn taken(address: *mut PyObject) -> Option<Given> {
        // SAFETY: passed on.
        unsafe {
            let array = PyLong_AsVoidPtr(address).cast::<ArrowArray>();
            if array.is_null() {
                if PyErr_Occurred().is_null() {
                    raise(PyExc_ValueError, "json_answers() takes addresses of arrays");
                }
                return None;
            }
            Some(Given(std::ptr::replace(array, ArrowArray::empty())))
        }
    }

    /// # Safety
    /// Pointers of the array are valid, as pyarrow's are.
    unsafe fn column(&self, layout: &Layout, name: &str) -> Result<Column, String> {
        // SAFETY: passed on.
        unsafe { Column::new(&self.0, layout, name) }
    }
}

/// json_answers(function, texts: int, last: int, kind: str, out: int): the answers for an array of texts, exported to the
/// address `out`. kind: of the array `last`, the last step of each row's path: "" if there is none, "key" (string) or "index"
/// (int64). Takes the arrays out of their addresses.
pub unsafe extern "C" fn json_answers(_module: *mut PyObject, arguments: *mut *mut PyObject, count: Py_ssize_t) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and `count` arguments; the caller's arrays are pyarrow's, of these types.
    unsafe {
        if count != 5 {
            return raise(PyExc_TypeError, "json_answers() takes a function, texts, last steps, their kind and an address");
        }
        let function = PyCapsule_GetPointer(*arguments, FUNCTION.as_ptr()).cast::<Function>();
        if function.is_null() {
            return null_mut();
        }
        let Some(kind) = text(*arguments.add(3)) else { return null_mut() };
        let out = PyLong_AsVoidPtr(*arguments.add(4)).cast::<ArrowArray>();
        let Some(texts) = Given::taken(*arguments.add(1)) else { return null_mut() };
        let last = match kind {
            "" => None,
            _ => match Given::taken(*arguments.add(2)) {
                Some(last) => Some(last),
                None => return null_mut(),
            },
        };
        if out.is_null() {
            return raise(PyExc_ValueError, "json_answers() takes an address for its answers");
        }
        match gil::without(|| answered(&*function, &texts, last.as_ref(), kind)) {
            Ok(array) => {
                out.write(array);
                none()
            }
            Err(text) => raise(PyExc_ValueError, &text),
        }
    }
}

/// # Safety
/// The arrays are pyarrow's: of texts, and of the kind.
unsafe fn answered(function: &Function, texts: &Given, last: Option<&Given>, kind: &str) -> Result<ArrowArray, String> {
    let rows = texts.0.length as usize;
    let layout = if kind == "index" { Layout::Fixed(8) } else { Layout::Text };
    // SAFETY: passed on.
    let (texts, last) = unsafe { (texts.column(&Layout::Text, "texts")?, last.map(|last| last.column(&layout, "steps")).transpose()?) };
    let last = match &last {
        None => Last::None,
        Some(last) if kind == "index" => Last::Index(last),
        Some(last) => Last::Key(last),
    };
    Ok(function.run(&texts, rows, &last).export())
}

/// A schema that pyarrow has exported, released in the end.
struct GivenType(ArrowSchema);

impl Drop for GivenType {
    fn drop(&mut self) {
        if let Some(release) = self.0.release {
            // SAFETY: the schema is ours and has not been released.
            unsafe { release(&mut self.0) };
        }
    }
}

const READER: &CStr = c"arroyo_udf_plugin._native.JsonReader";

unsafe extern "C" fn free_reader(capsule: *mut PyObject) {
    // SAFETY: as `free`, of `json_reader`.
    unsafe { drop(Box::from_raw(PyCapsule_GetPointer(capsule, READER.as_ptr()).cast::<LinesReader>())) };
}

/// json_reader(schema: int, ignores: bool) -> JsonReader: reads lines into columns. Takes the schema out of its address.
/// Raises ValueError for a type that it does not read.
pub unsafe extern "C" fn json_reader(_module: *mut PyObject, arguments: *mut *mut PyObject, count: Py_ssize_t) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and `count` arguments; the schema is pyarrow's.
    unsafe {
        if count != 2 {
            return raise(PyExc_TypeError, "json_reader() takes a schema, and whether further keys are ignored");
        }
        let schema = PyLong_AsVoidPtr(*arguments).cast::<ArrowSchema>();
        let ignores = PyObject_IsTrue(*arguments.add(1));
        if !PyErr_Occurred().is_null() {
            return null_mut();
        }
        let Some(schema) = schema.as_mut() else { return raise(PyExc_ValueError, "json_reader() takes the address of a schema") };
        let given = GivenType(std::ptr::replace(schema, ArrowSchema::empty()));
        match LinesReader::new(&given.0, ignores == 1) {
            Ok(reader) => PyCapsule_New(Box::into_raw(Box::new(reader)).cast(), READER.as_ptr(), Some(free_reader)),
            Err(format) => raise(PyExc_ValueError, &format!("JSON is not read as {format}")),
        }
    }
}

/// json_rows(reader, lines: bytes, out: int) -> bool: a struct array of the lines, exported to the address `out`; False:
/// something is unusual. lines: without the last line's end.
pub unsafe extern "C" fn json_rows(_module: *mut PyObject, arguments: *mut *mut PyObject, count: Py_ssize_t) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and `count` arguments, which live until this returns; bytes do not change.
    unsafe {
        if count != 3 {
            return raise(PyExc_TypeError, "json_rows() takes a reader, lines and an address");
        }
        let reader = PyCapsule_GetPointer(*arguments, READER.as_ptr()).cast::<LinesReader>();
        let (mut data, mut length) = (null_mut(), 0);
        if reader.is_null() || PyBytes_AsStringAndSize(*arguments.add(1), &mut data, &mut length) < 0 {
            return null_mut();
        }
        let out = PyLong_AsVoidPtr(*arguments.add(2)).cast::<ArrowArray>();
        if out.is_null() {
            return raise(PyExc_ValueError, "json_rows() takes an address for its rows");
        }
        let lines = std::slice::from_raw_parts(data.cast::<u8>(), length as usize);
        let rows = gil::without(|| (*reader).read(lines).map(|rows| rows.export()));
        let is_read = rows.is_some();
        if let Some(rows) = rows {
            out.write(rows);
        }
        PyBool_FromLong(is_read.into())
    }
}

/// multi_hash(arrays: int, schemas: int, count: int, out: int): a hash for each row, exported to the address `out` as binary of
/// 16 bytes. Takes `count` arrays of one length with their types out of the addresses. Raises ValueError for types that are not
/// supported; the text names them.
pub unsafe extern "C" fn multi_hash(_module: *mut PyObject, arguments: *mut *mut PyObject, count: Py_ssize_t) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and `count` arguments; the caller has exported so many arrays and types.
    unsafe {
        if count != 4 {
            return raise(PyExc_TypeError, "multi_hash() takes arrays, schemas, their number and an address");
        }
        let arrays = PyLong_AsVoidPtr(*arguments).cast::<ArrowArray>();
        let schemas = PyLong_AsVoidPtr(*arguments.add(1)).cast::<ArrowSchema>();
        let number = PyLong_AsSize_t(*arguments.add(2));
        let out = PyLong_AsVoidPtr(*arguments.add(3)).cast::<ArrowArray>();
        if !PyErr_Occurred().is_null() {
            return null_mut();
        }
        let take = |i| {
            let array = std::ptr::replace(arrays.add(i), ArrowArray::empty());
            (Given(array), GivenType(std::ptr::replace(schemas.add(i), ArrowSchema::empty())))
        };
        let given: Vec<(Given, GivenType)> = (0..number).map(take).collect();
        let hashed = gil::without(|| {
            let arguments = given.iter().map(|(array, schema)| Argument::new(&array.0, &schema.0)).collect::<Result<Vec<_>, _>>()?;
            let rows = given.first().map_or(0, |(array, _)| array.0.length);
            Ok::<_, String>(hashes(&arguments, rows as usize).export())
        });
        match hashed {
            Ok(array) => {
                out.write(array);
                none()
            }
            Err(text) => raise(PyExc_ValueError, &text),
        }
    }
}
