//! Reading: one value of an Arrow column as a Python object.

use super::conversion::{Conversion, Int, Unit, Zone, DAY_SECONDS, NOT_NATIVE};
use crate::object::{call_method, exception_text, Owned};
use arroyo_udf_plugin::arrow::{Column, BAD_OFFSETS};
use arroyo_udf_plugin::calendar::civil;
use pyo3_ffi::*;
use std::ffi::c_int;
use std::ptr::null_mut;

impl Conversion {
    /// A new reference to the value of a row that is not null. The error is a text for the row.
    ///
    /// # Safety
    /// The GIL is held; the column has this type and has the row.
    #[inline]
    pub unsafe fn read(&self, column: &Column, row: usize) -> Result<*mut PyObject, String> {
        // SAFETY: constructors of Python objects need only the GIL.
        let object = unsafe {
            match self {
                Conversion::Int(Int::I64) => PyLong_FromLongLong(column.fixed::<i64>(row)),
                Conversion::Float64 => PyFloat_FromDouble(column.fixed::<f64>(row)),
                Conversion::Utf8 => return string(column.bytes(row)),
                Conversion::LargeUtf8 => return string(column.large_bytes(row)),
                Conversion::Bool => PyBool_FromLong(column.boolean(row).into()),
                Conversion::Int(Int::I8) => PyLong_FromLongLong(column.fixed::<i8>(row).into()),
                Conversion::Int(Int::I16) => PyLong_FromLongLong(column.fixed::<i16>(row).into()),
                Conversion::Int(Int::I32) => PyLong_FromLongLong(column.fixed::<i32>(row).into()),
                Conversion::Int(Int::U8) => PyLong_FromLongLong(column.fixed::<u8>(row).into()),
                Conversion::Int(Int::U16) => PyLong_FromLongLong(column.fixed::<u16>(row).into()),
                Conversion::Int(Int::U32) => PyLong_FromLongLong(column.fixed::<u32>(row).into()),
                Conversion::Int(Int::U64) => PyLong_FromUnsignedLongLong(column.fixed::<u64>(row)),
                Conversion::Float32 => PyFloat_FromDouble(column.fixed::<f32>(row).into()),
                Conversion::Binary => return bytes(column.bytes(row)),
                Conversion::LargeBinary => return bytes(column.large_bytes(row)),
                Conversion::Date32 => date(column.fixed::<i32>(row).into())?,
                Conversion::Timestamp(unit, zone) => datetime(column.fixed::<i64>(row), *unit, zone)?,
                Conversion::Pyarrow => return Err(NOT_NATIVE.into()),
            }
        };
        if object.is_null() {
            // SAFETY: the GIL is held.
            return Err(unsafe { exception_text() });
        }
        Ok(object)
    }
}

#[inline]
unsafe fn string(bytes: Option<&[u8]>) -> Result<*mut PyObject, String> {
    let bytes = bytes.ok_or(BAD_OFFSETS)?;
    // SAFETY: a new ASCII string of n characters has room for n bytes, and no other code has seen it yet. The interpreter
    // shares strings of less than two characters, so those must come from it.
    let object = unsafe {
        if bytes.len() > 1 && bytes.is_ascii() {
            let object = PyUnicode_New(bytes.len() as Py_ssize_t, 127);
            if !object.is_null() {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), PyUnicode_DATA(object).cast::<u8>(), bytes.len());
            }
            object
        } else {
            PyUnicode_DecodeUTF8(bytes.as_ptr().cast(), bytes.len() as Py_ssize_t, null_mut())
        }
    };
    if object.is_null() {
        // SAFETY: the GIL is held.
        let (is_decoding, why) = unsafe { (PyErr_ExceptionMatches(PyExc_UnicodeDecodeError) != 0, exception_text()) };
        return Err(if is_decoding { format!("the text is not UTF-8 ({why})") } else { format!("the text cannot be read ({why})") });
    }
    Ok(object)
}

#[inline]
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
        Ok((api.Date_FromDate)(year, month, day, api.DateType))
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
        let Some(zone) = &zone.0 else { return Ok(make(Py_None())) };
        if zone.ptr() == api.TimeZone_UTC {
            return Ok(make(api.TimeZone_UTC));
        }
        let utc = Owned::new(make(api.TimeZone_UTC)).ok_or_else(|| exception_text())?;
        let local = call_method(utc.ptr(), c"astimezone", zone.ptr()).ok_or_else(|| exception_text())?;
        Ok(local.into_ptr())
    }
}
