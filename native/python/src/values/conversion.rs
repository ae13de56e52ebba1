//! `Conversion`: how values of an Arrow type become Python objects and back.

use crate::object::{call, Owned};
use arroyo_udf_plugin::abi::ArrowSchema;
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

/// The zone of a timestamp: its tzinfo, or None for local time without a zone.
#[derive(Debug)]
pub struct Zone(pub Option<Owned>);

#[derive(Debug)]
pub enum Conversion {
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
    /// Every other type: pyarrow converts it, a batch at a time (`pyarrow.rs`).
    Pyarrow,
}

/// The error text if a value is read or written here although pyarrow converts it.
pub(super) const NOT_NATIVE: &str = "pyarrow converts this type, a batch at a time";

pub(super) const DAY_SECONDS: i64 = 86_400;

/// Whether values of this type are converted here, and not by pyarrow. Needs no GIL.
pub fn is_native(schema: &ArrowSchema) -> bool {
    // SAFETY: a valid schema has a NUL-terminated format.
    let format = unsafe { CStr::from_ptr(schema.format) }.to_bytes();
    let is_timestamp = format.starts_with(b"ts") && format.len() > 3;
    is_timestamp || format == b"tdD" || matches!(format, [letter] if b"bcsilCSILfguUzZ".contains(letter))
}

/// What users call a type that pyarrow converts; its format in the C data interface, if it is a rare one.
pub fn name_of(format: &str) -> String {
    let name = match format.as_bytes() {
        [b'+', b'l' | b'L' | b'w', ..] => "a list",
        [b'+', b's', ..] => "a struct",
        [b'+', b'm', ..] => "a map",
        [b'd', b':', ..] => "a decimal",
        [b't', b't', ..] => "a time of day",
        [b't', b'D', ..] => "a duration",
        [b't', b'd', ..] => "a date in milliseconds",
        [b'w', ..] => "binary of one size",
        b"e" => "float16",
        _ => return format!("of Arrow type {format:?}"),
    };
    name.to_string()
}

impl Conversion {
    /// The conversion for a field of a descriptor. None: Python does not know the zone; an exception is set.
    ///
    /// # Safety
    /// The GIL is held; `schema` is valid.
    pub unsafe fn of(schema: &ArrowSchema) -> Option<Conversion> {
        // SAFETY: a valid schema has a NUL-terminated format.
        let format = unsafe { CStr::from_ptr(schema.format) }.to_bytes();
        Some(match format {
            b"b" => Conversion::Bool,
            b"c" => Conversion::Int(Int::I8),
            b"s" => Conversion::Int(Int::I16),
            b"i" => Conversion::Int(Int::I32),
            b"l" => Conversion::Int(Int::I64),
            b"C" => Conversion::Int(Int::U8),
            b"S" => Conversion::Int(Int::U16),
            b"I" => Conversion::Int(Int::U32),
            b"L" => Conversion::Int(Int::U64),
            b"f" => Conversion::Float32,
            b"g" => Conversion::Float64,
            b"u" => Conversion::Utf8,
            b"U" => Conversion::LargeUtf8,
            b"z" => Conversion::Binary,
            b"Z" => Conversion::LargeBinary,
            b"tdD" => Conversion::Date32,
            [b't', b's', unit, b':', zone @ ..] => {
                let unit = Unit(match unit {
                    b's' => 1,
                    b'm' => 1_000,
                    b'u' => 1_000_000,
                    _ => 1_000_000_000,
                });
                // SAFETY: passed on.
                Conversion::Timestamp(unit, unsafe { zone_of(zone) }?)
            }
            _ => Conversion::Pyarrow,
        })
    }
}

/// The tzinfo of an Arrow zone: "" (none), "UTC", an offset such as "+05:30", or a name of the zone database. None: an
/// exception is set.
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
                Some(Zone(Some(call(c"zoneinfo", c"ZoneInfo", &[name.ptr()])?)))
            }
        }
    }
}
