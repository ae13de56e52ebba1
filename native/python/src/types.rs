//! One value between an Arrow column and a Python object, for the types that are converted natively (F2, F4): bool,
//! integers, floats, utf8, large_utf8, binary, large_binary, date32, timestamp. All other types are [`Type::Other`] and
//! go through pyarrow, a batch at a time (`foreign.rs`).
//!
//! Guarantees: what does not fit is an error text for the row, never a wrong value.

use crate::object::{exception_text, type_name, Owned};
use arroyo_udf_plugin::abi::ArrowSchema;
use arroyo_udf_plugin::arrow::Column;
use arroyo_udf_plugin::calendar::{civil, days_of};
use pyo3_ffi::*;
use std::ffi::{c_int, CStr};
use std::ptr::null_mut;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Int {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
}

/// Units of a timestamp per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit(pub i64);

/// The zone of a timestamp: None for local time without a zone, else its tzinfo.
#[derive(Debug)]
pub struct Zone(Option<Owned>);

#[derive(Debug)]
pub enum Type {
    Bool,
    Int(Int),
    Float32,
    Float64,
    Utf8,
    LargeUtf8,
    Binary,
    LargeBinary,
    Date32,
    Timestamp(Unit, Zone),
    Other,
}

impl Type {
    /// The type of a field of a descriptor. None: a zone that Python does not know; the exception is set.
    ///
    /// # Safety
    /// The GIL is held; `schema` is valid.
    pub unsafe fn of(schema: &ArrowSchema) -> Option<Type> {
        // SAFETY: a valid schema has a NUL-terminated format.
        let format = unsafe { CStr::from_ptr(schema.format) }.to_bytes();
        Some(match format {
            b"b" => Type::Bool,
            b"c" => Type::Int(Int::I8),
            b"s" => Type::Int(Int::I16),
            b"i" => Type::Int(Int::I32),
            b"l" => Type::Int(Int::I64),
            b"C" => Type::Int(Int::U8),
            b"S" => Type::Int(Int::U16),
            b"I" => Type::Int(Int::U32),
            b"L" => Type::Int(Int::U64),
            b"f" => Type::Float32,
            b"g" => Type::Float64,
            b"u" => Type::Utf8,
            b"U" => Type::LargeUtf8,
            b"z" => Type::Binary,
            b"Z" => Type::LargeBinary,
            b"tdD" => Type::Date32,
            [b't', b's', unit, b':', zone @ ..] => {
                let unit = Unit(match unit {
                    b's' => 1,
                    b'm' => 1_000,
                    b'u' => 1_000_000,
                    _ => 1_000_000_000,
                });
                // SAFETY: passed on.
                Type::Timestamp(unit, unsafe { zone_of(zone) }?)
            }
            _ => Type::Other,
        })
    }

    /// A new reference to the value of a row that is not null. The error is a text for the row.
    ///
    /// # Safety
    /// The GIL is held; the column has this type, and the row.
    #[inline]
    pub unsafe fn read(&self, column: &Column, row: usize) -> Result<*mut PyObject, String> {
        // SAFETY: constructors of Python objects need only the GIL.
        let object = unsafe {
            match self {
                Type::Int(Int::I64) => PyLong_FromLongLong(column.fixed::<i64>(row)),
                Type::Float64 => PyFloat_FromDouble(column.fixed::<f64>(row)),
                Type::Utf8 => return string(column.bytes(row)),
                Type::LargeUtf8 => return string(column.large_bytes(row)),
                Type::Bool => PyBool_FromLong(column.boolean(row).into()),
                Type::Int(Int::I8) => PyLong_FromLongLong(column.fixed::<i8>(row).into()),
                Type::Int(Int::I16) => PyLong_FromLongLong(column.fixed::<i16>(row).into()),
                Type::Int(Int::I32) => PyLong_FromLongLong(column.fixed::<i32>(row).into()),
                Type::Int(Int::U8) => PyLong_FromLongLong(column.fixed::<u8>(row).into()),
                Type::Int(Int::U16) => PyLong_FromLongLong(column.fixed::<u16>(row).into()),
                Type::Int(Int::U32) => PyLong_FromLongLong(column.fixed::<u32>(row).into()),
                Type::Int(Int::U64) => PyLong_FromUnsignedLongLong(column.fixed::<u64>(row)),
                Type::Float32 => PyFloat_FromDouble(column.fixed::<f32>(row).into()),
                Type::Binary => return bytes(column.bytes(row)),
                Type::LargeBinary => return bytes(column.large_bytes(row)),
                Type::Date32 => date(column.fixed::<i32>(row).into())?,
                Type::Timestamp(unit, zone) => datetime(column.fixed::<i64>(row), *unit, zone)?,
                Type::Other => return Err("a type that is converted a batch at a time".into()),
            }
        };
        if object.is_null() {
            // SAFETY: the GIL is held.
            return Err(unsafe { exception_text() });
        }
        Ok(object)
    }
}

/// What a function returned, in Arrow's terms.
pub enum Scalar<'a> {
    /// The lowest bytes, little-endian; a boolean is 0 or 1.
    Fixed(u64),
    Bytes(&'a [u8]),
}

impl Type {
    /// The content of an object that is not None. The bytes live as long as the object. The error is a text for the row.
    ///
    /// # Safety
    /// The GIL is held; `object` is valid while the scalar is used.
    #[inline]
    pub unsafe fn write<'a>(&self, object: *mut PyObject) -> Result<Scalar<'a>, String> {
        // SAFETY: every call below gets a valid object under the GIL.
        unsafe {
            match self {
                Type::Int(int) => integer(*int, object),
                Type::Float64 => float(object).map(|x| Scalar::Fixed(x.to_bits())),
                Type::Utf8 | Type::LargeUtf8 => utf8(object).map(Scalar::Bytes),
                Type::Bool if object == Py_True() => Ok(Scalar::Fixed(1)),
                Type::Bool if object == Py_False() => Ok(Scalar::Fixed(0)),
                Type::Bool => Err(wrong("bool", object)),
                Type::Float32 => {
                    let wide = float(object)?;
                    let narrow = wide as f32;
                    if narrow.is_infinite() && wide.is_finite() {
                        return Err(format!("{wide} does not fit float32"));
                    }
                    Ok(Scalar::Fixed(narrow.to_bits().into()))
                }
                Type::Binary | Type::LargeBinary if PyBytes_Check(object) != 0 => {
                    Ok(Scalar::Bytes(std::slice::from_raw_parts(PyBytes_AsString(object).cast(), PyBytes_Size(object) as usize)))
                }
                Type::Binary | Type::LargeBinary => Err(wrong("bytes", object)),
                Type::Date32 => days(object).map(|days| Scalar::Fixed(days as u64)),
                Type::Timestamp(unit, zone) => timestamp(object, *unit, zone).map(|t| Scalar::Fixed(t as u64)),
                Type::Other => Err("a type that is converted a batch at a time".into()),
            }
        }
    }
}

/// "returned X, not Y": the function gave an object of the wrong type.
unsafe fn wrong(expected: &str, object: *mut PyObject) -> String {
    // SAFETY: passed on.
    format!("returned {}, not {expected}", unsafe { type_name(object) })
}

// ---- text and bytes ------------------------------------------------------------------------------------------------

const BAD_OFFSETS: &str = "the argument's offsets make no range";

#[inline]
unsafe fn string(bytes: Option<&[u8]>) -> Result<*mut PyObject, String> {
    let bytes = bytes.ok_or(BAD_OFFSETS)?;
    // SAFETY: a new ASCII string of n characters has room for n bytes; nobody else has seen it yet. Strings of less than
    // two characters are shared by the interpreter and must come from it.
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
        return Err(format!("the argument is not valid UTF-8 ({})", unsafe { exception_text() }));
    }
    Ok(object)
}

#[inline]
unsafe fn utf8<'a>(object: *mut PyObject) -> Result<&'a [u8], String> {
    // SAFETY: the GIL is held; the UTF-8 form is cached in the string and lives as long.
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

// ---- numbers -------------------------------------------------------------------------------------------------------

#[inline]
unsafe fn integer<'a>(int: Int, object: *mut PyObject) -> Result<Scalar<'a>, String> {
    // SAFETY: the GIL is held.
    unsafe {
        if PyLong_Check(object) == 0 {
            // numpy's integers and the like: whatever says of itself that it is a whole number.
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

/// A number as text, cut where it is long. A subclass may have any text.
unsafe fn short(object: *mut PyObject) -> String {
    // SAFETY: passed on. Numbers of more than 4,300 digits have no text in Python.
    let mut text = unsafe { crate::object::text(object) };
    if let Some((end, _)) = text.char_indices().nth(40) {
        text.truncate(end);
        text.push_str("...");
    }
    text
}

#[inline]
unsafe fn float(object: *mut PyObject) -> Result<f64, String> {
    // SAFETY: the GIL is held.
    unsafe {
        if PyFloat_CheckExact(object) != 0 {
            return Ok(PyFloat_AS_DOUBLE(object));
        }
        if PyFloat_Check(object) == 0 && PyLong_Check(object) == 0 && PyUnicode_Check(object) == 0 {
            // numpy's float32 and the like: whatever converts itself without being a text.
            let value = PyFloat_AsDouble(object);
            if value == -1.0 && !PyErr_Occurred().is_null() {
                PyErr_Clear();
                return Err(wrong("float", object));
            }
            return Ok(value);
        }
        if PyUnicode_Check(object) != 0 {
            return Err(wrong("float", object));
        }
        let value = PyFloat_AsDouble(object);
        if value == -1.0 && !PyErr_Occurred().is_null() {
            PyErr_Clear();
            return Err(format!("{} does not fit float64", short(object)));
        }
        Ok(value)
    }
}

// ---- dates ---------------------------------------------------------------------------------------------------------

const DAY: i64 = 86_400;

fn in_range(days: i64) -> Result<(c_int, c_int, c_int), String> {
    // 0001-01-01 to 9999-12-31, all that Python's dates know.
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
    let (year, month, day) = in_range(seconds.div_euclid(DAY))?;
    let second = seconds.rem_euclid(DAY) as c_int;
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
        let local = PyObject_CallMethodOneArg(utc.ptr(), name("astimezone")?.ptr(), zone.ptr());
        if local.is_null() {
            return Err(exception_text());
        }
        Ok(local)
    }
}

unsafe fn days(object: *mut PyObject) -> Result<i32, String> {
    // SAFETY: the GIL is held; the fields are read of a date only.
    unsafe {
        if PyDate_Check(object) == 0 || PyDateTime_Check(object) != 0 {
            return Err(wrong("date", object));
        }
        Ok(days_of(PyDateTime_GET_YEAR(object).into(), PyDateTime_GET_MONTH(object).into(), PyDateTime_GET_DAY(object).into()) as i32)
    }
}

unsafe fn timestamp(object: *mut PyObject, unit: Unit, zone: &Zone) -> Result<i64, String> {
    // SAFETY: the GIL is held; the fields are read of a datetime only.
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
            let utc = PyObject_CallMethodOneArg(object, name("astimezone")?.ptr(), (*PyDateTimeAPI()).TimeZone_UTC);
            let utc = Owned::new(utc).ok_or_else(|| exception_text())?;
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
        let microseconds = (days * DAY + i64::from(clock)) * 1_000_000 + i64::from(PyDateTime_DATE_GET_MICROSECOND(t));
        if unit.0 >= 1_000_000 {
            microseconds.checked_mul(unit.0 / 1_000_000).ok_or_else(|| "the datetime does not fit timestamp[ns]".into())
        } else if microseconds.rem_euclid(1_000_000 / unit.0) == 0 {
            Ok(microseconds.div_euclid(1_000_000 / unit.0))
        } else {
            Err(format!("the datetime has microseconds, which timestamp[{}] does not hold", if unit.0 == 1 { "s" } else { "ms" }))
        }
    }
}

/// An interned name.
unsafe fn name(text: &str) -> Result<Owned, String> {
    // SAFETY: the GIL is held; the text is copied.
    unsafe {
        let name = PyUnicode_FromStringAndSize(text.as_ptr().cast(), text.len() as Py_ssize_t);
        Owned::new(name).ok_or_else(|| exception_text())
    }
}

/// The tzinfo of an Arrow zone: "" is none, "UTC", an offset as "+05:30", or a name of the zone database.
unsafe fn zone_of(zone: &[u8]) -> Option<Zone> {
    // SAFETY: the GIL is held.
    unsafe {
        match zone {
            b"" => Some(Zone(None)),
            b"UTC" | b"+00:00" => Some(Zone(Some(Owned::borrowed((*PyDateTimeAPI()).TimeZone_UTC)))),
            [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
                let digit = |d: &u8| c_int::from(d.wrapping_sub(b'0'));
                let seconds = (digit(h1) * 10 + digit(h2)) * 3_600 + (digit(m1) * 10 + digit(m2)) * 60;
                let api = &*PyDateTimeAPI();
                let delta = Owned::new((api.Delta_FromDelta)(0, if *sign == b'-' { -seconds } else { seconds }, 0, 1, api.DeltaType))?;
                Some(Zone(Some(Owned::new((api.TimeZone_FromTimeZone)(delta.ptr(), null_mut()))?)))
            }
            _ => {
                let name = Owned::new(PyUnicode_FromStringAndSize(zone.as_ptr().cast(), zone.len() as Py_ssize_t))?;
                Some(Zone(Some(crate::object::call(c"zoneinfo", c"ZoneInfo", &[name.ptr()])?)))
            }
        }
    }
}
