//! Writing: what a function returned, checked (F4), as the content of an Arrow value.

use super::conversion::{Conversion, Int, Unit, Zone, DAY_SECONDS, NOT_NATIVE};
use crate::object::{call_method, exception_text, text, type_name, Owned};
use arroyo_udf_plugin::calendar::days_of;
use pyo3_ffi::*;

/// The content of an Arrow value.
pub enum Scalar<'a> {
    /// The lowest bytes, little-endian; a boolean is 0 or 1.
    Fixed(u64),
    Bytes(&'a [u8]),
}

impl Conversion {
    /// The content of an object that is not None. The bytes live as long as the object. The error is a text for the row.
    ///
    /// Inlined, as `read` is.
    ///
    /// # Safety
    /// The GIL is held; `object` is valid while the scalar is used.
    #[inline(always)]
    pub unsafe fn write<'a>(&self, object: *mut PyObject) -> Result<Scalar<'a>, String> {
        // SAFETY: every call below gets a valid object under the GIL.
        unsafe {
            match self {
                Conversion::Int(int) => integer(*int, object),
                Conversion::Float64 => float(object).map(|x| Scalar::Fixed(x.to_bits())),
                Conversion::Utf8 | Conversion::LargeUtf8 => utf8(object).map(Scalar::Bytes),
                Conversion::Bool if object == Py_True() => Ok(Scalar::Fixed(1)),
                Conversion::Bool if object == Py_False() => Ok(Scalar::Fixed(0)),
                Conversion::Bool => Err(wrong("bool", object)),
                Conversion::Float32 => {
                    let wide = float(object)?;
                    let narrow = wide as f32;
                    if narrow.is_infinite() && wide.is_finite() {
                        return Err(format!("{wide} does not fit float32"));
                    }
                    Ok(Scalar::Fixed(narrow.to_bits().into()))
                }
                Conversion::Binary | Conversion::LargeBinary if PyBytes_Check(object) != 0 => {
                    Ok(Scalar::Bytes(std::slice::from_raw_parts(PyBytes_AsString(object).cast(), PyBytes_Size(object) as usize)))
                }
                Conversion::Binary | Conversion::LargeBinary => Err(wrong("bytes", object)),
                Conversion::Date32 => days(object).map(|days| Scalar::Fixed(days as u64)),
                Conversion::Timestamp(unit, zone) => timestamp(object, *unit, zone).map(|t| Scalar::Fixed(t as u64)),
                Conversion::Pyarrow => Err(NOT_NATIVE.into()),
            }
        }
    }
}

/// The error text for an object of the wrong type.
#[cold]
unsafe fn wrong(expected: &str, object: *mut PyObject) -> String {
    // SAFETY: passed on.
    format!("returned {}, not {expected}", unsafe { type_name(object) })
}

// ---- text ------------------------------------------------------------------------------------------------------------

#[inline]
unsafe fn utf8<'a>(object: *mut PyObject) -> Result<&'a [u8], String> {
    // SAFETY: the GIL is held; the string caches its UTF-8 form and keeps it for life.
    unsafe {
        if PyUnicode_Check(object) == 0 {
            return Err(wrong("str", object));
        }
        let mut length = 0;
        let data = PyUnicode_AsUTF8AndSize(object, &mut length);
        if data.is_null() {
            return Err(exception_text());
        }
        Ok(std::slice::from_raw_parts(data.cast(), length as usize))
    }
}

// ---- numbers ---------------------------------------------------------------------------------------------------------

#[inline]
unsafe fn integer<'a>(int: Int, object: *mut PyObject) -> Result<Scalar<'a>, String> {
    // SAFETY: the GIL is held.
    unsafe {
        if PyLong_Check(object) == 0 {
            // numpy's integers and the like convert themselves.
            if PyIndex_Check(object) == 0 {
                return Err(wrong("int", object));
            }
            let index = Owned::new(PyNumber_Index(object)).ok_or_else(|| exception_text())?;
            return whole(int, index.ptr());
        }
        whole(int, object)
    }
}

#[inline]
unsafe fn whole<'a>(int: Int, object: *mut PyObject) -> Result<Scalar<'a>, String> {
    let (low, high, name) = match int {
        Int::I64 => (i64::MIN, i64::MAX, "int64"),
        Int::I32 => (i32::MIN.into(), i32::MAX.into(), "int32"),
        Int::I16 => (i16::MIN.into(), i16::MAX.into(), "int16"),
        Int::I8 => (i8::MIN.into(), i8::MAX.into(), "int8"),
        Int::U32 => (0, u32::MAX.into(), "uint32"),
        Int::U16 => (0, u16::MAX.into(), "uint16"),
        Int::U8 => (0, u8::MAX.into(), "uint8"),
        Int::U64 => (0, i64::MAX, "uint64"),
    };
    // SAFETY: the GIL is held; the object is an int.
    unsafe {
        let mut overflow = 0;
        let value = PyLong_AsLongLongAndOverflow(object, &mut overflow);
        if overflow == 0 && (low..=high).contains(&value) {
            return Ok(Scalar::Fixed(value as u64));
        }
        if int == Int::U64 && overflow > 0 {
            let value = PyLong_AsUnsignedLongLong(object);
            if PyErr_Occurred().is_null() {
                return Ok(Scalar::Fixed(value));
            }
            PyErr_Clear();
        }
        Err(format!("{} does not fit {name}", short(object)))
    }
}

/// A number as text, cut after 40 characters: the `__str__` of a subclass may answer any text.
unsafe fn short(object: *mut PyObject) -> String {
    // SAFETY: passed on. Python refuses to write numbers of more than 4,300 digits; `text` answers a substitute.
    let mut digits = unsafe { text(object) };
    if let Some((end, _)) = digits.char_indices().nth(40) {
        digits.truncate(end);
        digits.push_str("...");
    }
    digits
}

#[inline]
unsafe fn float(object: *mut PyObject) -> Result<f64, String> {
    // SAFETY: the GIL is held.
    unsafe {
        if PyFloat_CheckExact(object) != 0 {
            return Ok(PyFloat_AS_DOUBLE(object));
        }
        to_float(object)
    }
}

/// Integers, and numpy's float32 and the like, which convert themselves.
unsafe fn to_float(object: *mut PyObject) -> Result<f64, String> {
    // SAFETY: the GIL is held.
    unsafe {
        if PyUnicode_Check(object) != 0 {
            return Err(wrong("float", object));
        }
        let value = PyFloat_AsDouble(object);
        if value == -1.0 && !PyErr_Occurred().is_null() {
            PyErr_Clear();
            let is_int = PyLong_Check(object) != 0;
            return Err(if is_int { format!("{} does not fit float64", short(object)) } else { wrong("float", object) });
        }
        Ok(value)
    }
}

// ---- dates -----------------------------------------------------------------------------------------------------------

#[inline(never)]
unsafe fn days(object: *mut PyObject) -> Result<i32, String> {
    // SAFETY: the GIL is held; only a date's fields are read.
    unsafe {
        if PyDate_Check(object) == 0 || PyDateTime_Check(object) != 0 {
            return Err(wrong("date", object));
        }
        Ok(days_of(PyDateTime_GET_YEAR(object).into(), PyDateTime_GET_MONTH(object).into(), PyDateTime_GET_DAY(object).into()) as i32)
    }
}

#[inline(never)]
unsafe fn timestamp(object: *mut PyObject, unit: Unit, zone: &Zone) -> Result<i64, String> {
    // SAFETY: the GIL is held; only a datetime's fields are read.
    unsafe {
        if PyDateTime_Check(object) == 0 {
            return Err(wrong("datetime", object));
        }
        let aware = PyDateTime_DATE_GET_TZINFO(object) != Py_None();
        match (&zone.0, aware) {
            (None, true) => {
                return Err("returned a datetime with a zone, but the type has none; return it without, or name the zone in the type".into())
            }
            (Some(_), false) => return Err("returned a datetime without a zone, but the type has one; give it a tzinfo".into()),
            _ => {}
        }
        let utc = if aware {
            let utc = call_method(object, c"astimezone", (*PyDateTimeAPI()).TimeZone_UTC).ok_or_else(|| exception_text())?;
            if PyDateTime_Check(utc.ptr()) == 0 {
                return Err(format!("returned a {} whose astimezone() answers {}", type_name(object), type_name(utc.ptr())));
            }
            utc
        } else {
            Owned::borrowed(object)
        };
        let t = utc.ptr();
        let days = days_of(PyDateTime_GET_YEAR(t).into(), PyDateTime_GET_MONTH(t).into(), PyDateTime_GET_DAY(t).into());
        let clock = PyDateTime_DATE_GET_HOUR(t) * 3_600 + PyDateTime_DATE_GET_MINUTE(t) * 60 + PyDateTime_DATE_GET_SECOND(t);
        let microseconds = (days * DAY_SECONDS + i64::from(clock)) * 1_000_000 + i64::from(PyDateTime_DATE_GET_MICROSECOND(t));
        if unit.0 >= 1_000_000 {
            microseconds.checked_mul(unit.0 / 1_000_000).ok_or_else(|| "the datetime does not fit timestamp[ns]".into())
        } else if microseconds.rem_euclid(1_000_000 / unit.0) == 0 {
            Ok(microseconds.div_euclid(1_000_000 / unit.0))
        } else {
            Err(format!("the datetime has microseconds, which timestamp[{}] does not hold", if unit.0 == 1 { "s" } else { "ms" }))
        }
    }
}
