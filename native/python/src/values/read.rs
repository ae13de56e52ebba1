//! Reading: one value of an Arrow column as a Python object.

use super::conversion::{Conversion, Int, Unit, Zone, DAY_SECONDS, NOT_NATIVE};
use crate::object::{call_method, exception_text, Owned};
use arroyo_udf_plugin::arrow::{Column, BAD_OFFSETS};
use arroyo_udf_plugin::calendar::civil;
use pyo3_ffi::*;
use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::ptr::null_mut;
use std::sync::OnceLock;

impl Conversion {
    /// A new reference to the value of a row that is not null. The error is a text for the row.
    ///
    /// `earlier`: was made for another row of the column. Inlined, so that a loop over rows keeps the object in a register.
    ///
    /// # Safety
    /// The GIL is held; the column has this type and has the row.
    #[inline(always)]
    pub unsafe fn read(&self, column: &Column, row: usize, earlier: Earlier) -> Result<*mut PyObject, String> {
        // SAFETY: constructors of Python objects need only the GIL.
        unsafe {
            match self {
                Conversion::Int(int) => {
                    drop(earlier); // so that its memory is that of the new one
                    made(integer(*int, column, row))
                }
                Conversion::Float64 => earlier.float(column.fixed::<f64>(row)),
                Conversion::Utf8 => string(column.bytes(row), earlier),
                Conversion::Float32 => earlier.float(column.fixed::<f32>(row).into()),
                Conversion::Bool => made(PyBool_FromLong(column.boolean(row).into())),
                Conversion::LargeUtf8 => string(column.large_bytes(row), earlier),
                Conversion::Binary => bytes(column.bytes(row)),
                Conversion::LargeBinary => bytes(column.large_bytes(row)),
                Conversion::Date32 => date(column.fixed::<i32>(row).into()),
                Conversion::Timestamp(unit, zone) => datetime(column.fixed::<i64>(row), *unit, zone),
                Conversion::Pyarrow => Err(NOT_NATIVE.into()),
            }
        }
    }
}

#[inline(always)]
unsafe fn integer(int: Int, column: &Column, row: usize) -> *mut PyObject {
    // SAFETY: the GIL is held; the column has this type and has the row.
    unsafe {
        match int {
            Int::I64 => PyLong_FromLongLong(column.fixed::<i64>(row)),
            Int::I32 => PyLong_FromLongLong(column.fixed::<i32>(row).into()),
            Int::I16 => PyLong_FromLongLong(column.fixed::<i16>(row).into()),
            Int::I8 => PyLong_FromLongLong(column.fixed::<i8>(row).into()),
            Int::U32 => PyLong_FromLongLong(column.fixed::<u32>(row).into()),
            Int::U16 => PyLong_FromLongLong(column.fixed::<u16>(row).into()),
            Int::U8 => PyLong_FromLongLong(column.fixed::<u8>(row).into()),
            Int::U64 => PyLong_FromUnsignedLongLong(column.fixed::<u64>(row)),
        }
    }
}

/// The object that Python has made. The error is the exception's text, if it has made none.
#[inline(always)]
unsafe fn made(object: *mut PyObject) -> Result<*mut PyObject, String> {
    if object.is_null() {
        // SAFETY: the GIL is held.
        return Err(unsafe { exception_text() });
    }
    Ok(object)
}

/// An argument of an earlier row, or null: a reference, which is given back.
///
/// If it is the only one, the object becomes the argument of this row. Nobody can tell it from a new one, which would have
/// the same memory; and CPython changes texts in place, too, while nobody else has them.
pub struct Earlier(*mut PyObject);

impl Earlier {
    /// # Safety
    /// `object` is null, or a reference that is given away, to what [`Conversion::read`] has made for the same column, or to
    /// an object that others have as well. The GIL is held as long as this lives.
    pub unsafe fn new(object: *mut PyObject) -> Earlier {
        Earlier(object)
    }

    pub fn none() -> Earlier {
        Earlier(null_mut())
    }

    /// Takes the object, if nobody else has it.
    #[inline(always)]
    unsafe fn alone(self) -> Option<Owned> {
        // SAFETY: passed on.
        unsafe {
            if self.0.is_null() || Py_REFCNT(self.0) != 1 {
                return None;
            }
            Owned::new(self.into_ptr())
        }
    }

    fn into_ptr(self) -> *mut PyObject {
        let object = self.0;
        std::mem::forget(self);
        object
    }

    /// # Safety
    /// The column has floats.
    #[inline(always)]
    unsafe fn float(self, value: f64) -> Result<*mut PyObject, String> {
        // SAFETY: an object that is alone was made by `read`, and so it is a float.
        unsafe {
            match self.alone() {
                Some(float) => {
                    (*float.ptr().cast::<PyFloatObject>()).ob_fval = value;
                    Ok(float.into_ptr())
                }
                None => made(PyFloat_FromDouble(value)),
            }
        }
    }

    /// A text of ASCII characters, at least two: the interpreter shares those of less. Null: there is no memory.
    ///
    /// # Safety
    /// The column has texts.
    #[inline(always)]
    unsafe fn ascii(self, bytes: &[u8]) -> *mut PyObject {
        // SAFETY: an object that is alone was made by `read`. An ASCII text has its length and hash in its head, and behind
        // it room for its characters and a zero; one that takes as many steps of memory was made here, with as much room.
        unsafe {
            let object = match self.alone().filter(|text| is_as_made(text.ptr()) && steps(length(text.ptr())) == steps(bytes.len())) {
                Some(text) => {
                    (*text.ptr().cast::<PyASCIIObject>()).hash = -1; // not known yet
                    text.into_ptr()
                }
                None => new_ascii(steps(bytes.len())),
            };
            if !object.is_null() {
                let data = PyUnicode_DATA(object).cast::<u8>();
                data.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
                data.add(bytes.len()).write(0);
                (*object.cast::<PyASCIIObject>()).length = bytes.len() as Py_ssize_t;
            }
            object
        }
    }
}

impl Drop for Earlier {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the reference is ours; the GIL is held, see `new`.
        unsafe { Py_XDECREF(self.0) }
    }
}

/// Of an ASCII text, before its characters.
const HEAD: usize = size_of::<PyASCIIObject>();
/// The allocator of Python's objects gives memory in such steps.
const STEP: usize = 16;

/// Steps of memory that an ASCII text of so many characters takes.
#[inline(always)]
fn steps(length: usize) -> usize {
    (HEAD + length + 1).div_ceil(STEP)
}

/// The length of a text.
#[inline(always)]
unsafe fn length(text: *mut PyObject) -> usize {
    // SAFETY: the caller has a text.
    unsafe { (*text.cast::<PyASCIIObject>()).length as usize }
}

/// The state of a new ASCII text. Some of its bits mean nothing, and CPython leaves them as they were in memory: here all
/// texts get the same ones, so that states can be compared.
static NEW: OnceLock<u32> = OnceLock::new();

/// An ASCII text that takes so many steps of memory. Null: there is none.
#[inline(always)]
unsafe fn new_ascii(steps: usize) -> *mut PyObject {
    // SAFETY: the GIL is held; no other code has seen the text yet.
    unsafe {
        let text = PyUnicode_New((steps * STEP - HEAD - 1) as Py_ssize_t, 127);
        if !text.is_null() {
            let state = &mut (*text.cast::<PyASCIIObject>()).state;
            *state = *NEW.get_or_init(|| *state);
        }
        text
    }
}

/// Whether a text was made by [`new_ascii`], and nobody has interned it, or made a copy of it in another form, which Python
/// 3.11 keeps behind the state.
#[inline(always)]
unsafe fn is_as_made(text: *mut PyObject) -> bool {
    const COPY: usize = offset_of!(PyASCIIObject, state) + 8;
    // SAFETY: the caller has a text, and holds the GIL.
    unsafe {
        NEW.get() == Some(&(*text.cast::<PyASCIIObject>()).state)
            && (HEAD == COPY || text.byte_add(COPY).cast::<*const c_void>().read().is_null())
    }
}

#[inline(always)]
unsafe fn string(bytes: Option<&[u8]>, earlier: Earlier) -> Result<*mut PyObject, String> {
    let bytes = bytes.ok_or(BAD_OFFSETS)?;
    // SAFETY: passed on.
    let object = unsafe {
        if bytes.len() > 1 && bytes.is_ascii() {
            earlier.ascii(bytes)
        } else {
            PyUnicode_DecodeUTF8(bytes.as_ptr().cast(), bytes.len() as Py_ssize_t, null_mut())
        }
    };
    if object.is_null() {
        // SAFETY: the GIL is held.
        return Err(unsafe { no_string() });
    }
    Ok(object)
}

/// Why Python has made no text.
#[cold]
unsafe fn no_string() -> String {
    // SAFETY: the GIL is held.
    let (is_decoding, why) = unsafe { (PyErr_ExceptionMatches(PyExc_UnicodeDecodeError) != 0, exception_text()) };
    if is_decoding {
        format!("the text is not UTF-8 ({why})")
    } else {
        format!("the text cannot be read ({why})")
    }
}

unsafe fn bytes(bytes: Option<&[u8]>) -> Result<*mut PyObject, String> {
    let bytes = bytes.ok_or(BAD_OFFSETS)?;
    // SAFETY: the GIL is held; the bytes are copied.
    unsafe {
        let object = PyBytes_FromStringAndSize(bytes.as_ptr().cast(), bytes.len() as Py_ssize_t);
        if object.is_null() {
            return Err(exception_text());
        }
        Ok(object)
    }
}

/// Year, month and day; an error beyond 0001-01-01 to 9999-12-31, the range of Python's dates.
fn in_range(days: i64) -> Result<(c_int, c_int, c_int), String> {
    if !(-719_162..=2_932_896).contains(&days) {
        return Err(format!("day {days} since 1970 is beyond Python's dates"));
    }
    let (year, month, day) = civil(days);
    Ok((year as c_int, month as c_int, day as c_int))
}

unsafe fn date(days: i64) -> Result<*mut PyObject, String> {
    let (year, month, day) = in_range(days)?;
    // SAFETY: the module has imported the datetime API; the GIL is held.
    unsafe {
        let api = &*PyDateTimeAPI();
        made((api.Date_FromDate)(year, month, day, api.DateType))
    }
}

unsafe fn datetime(value: i64, unit: Unit, zone: &Zone) -> Result<*mut PyObject, String> {
    let seconds = value.div_euclid(unit.0);
    let fraction = value.rem_euclid(unit.0);
    let microseconds = if unit.0 > 1_000_000 {
        if fraction % (unit.0 / 1_000_000) != 0 {
            return Err(format!(
                "the timestamp {value} ns is not a whole microsecond, which is all that datetime holds; cast it to timestamp[us]"
            ));
        }
        fraction / (unit.0 / 1_000_000)
    } else {
        fraction * (1_000_000 / unit.0)
    };
    let (year, month, day) = in_range(seconds.div_euclid(DAY_SECONDS))?;
    let second = seconds.rem_euclid(DAY_SECONDS) as c_int;
    // SAFETY: the module has imported the datetime API; the GIL is held.
    unsafe {
        let api = &*PyDateTimeAPI();
        let make = |zone| {
            let (hour, minute) = (second / 3_600, second / 60 % 60);
            (api.DateTime_FromDateAndTime)(year, month, day, hour, minute, second % 60, microseconds as c_int, zone, api.DateTimeType)
        };
        let Some(zone) = &zone.0 else { return made(make(Py_None())) };
        if zone.ptr() == api.TimeZone_UTC {
            return made(make(api.TimeZone_UTC));
        }
        let utc = Owned::new(make(api.TimeZone_UTC)).ok_or_else(|| exception_text())?;
        let local = call_method(utc.ptr(), c"astimezone", zone.ptr()).ok_or_else(|| exception_text())?;
        Ok(local.into_ptr())
    }
}
