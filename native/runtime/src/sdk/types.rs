//! The types of a Rust UDF and their Arrow types (F2). This table is complete:
//!
//! | Rust                                   | Arrow            |                                                        |
//! |----------------------------------------|------------------|--------------------------------------------------------|
//! | `bool`                                 | bool             |                                                        |
//! | `i8 i16 i32 i64`, `u8 u16 u32 u64`     | the same         |                                                        |
//! | `f32 f64`                              | float32, float64 |                                                        |
//! | `String`, `&str`                       | utf8             | an `async fn` does not return `&str`                   |
//! | `Vec<u8>`, `&[u8]`                     | binary           | an `async fn` does not return `&[u8]`                  |
//! | [`Date`]                               | date32           | days since 1970-01-01                                  |
//! | [`TimestampSecond`] ... `Nanosecond`   | timestamp        | s, ms, us, ns since 1970-01-01, without a time zone    |
//! | [`SystemTime`](std::time::SystemTime)  | timestamp        | us since 1970-01-01 in UTC; the type names no zone, as in Arroyo |
//! | [`Duration`](std::time::Duration)      | duration         | us; a negative one is the error of its row             |
//! | `Vec<T>` of these, but not `Vec<u8>`   | list of the same | arguments only; nulls are left out, unless it is `Vec<Option<T>>` |
//! | [`Constant`]`<T>` of a text or bytes   | the same         | sync arguments only: usually the same in all rows      |
//! | `Option<T>` of these                   | the same         | null, as an argument and as a result                   |
//! | `Result<T, E>`, `Result<Option<T>, E>` | the same         | results only; `E: Display` is the row's error          |
//!
//! The traits: [`ArgumentType`] for what a column can be read as, [`Return`] for what a function may return, [`ResultType`]
//! for what a result column can hold. Their implementations are in `numbers.rs`, `times.rs`, `texts.rs` and `lists.rs`.

pub use super::constant::{Constant, Prepared};

use super::builders::Builder;
use crate::arrow::Column;
use std::ffi::CStr;
use std::fmt::Display;

/// A calendar day, as days since 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(pub i32);

/// Seconds since 1970-01-01T00:00:00, without a time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimestampSecond(pub i64);

/// Milliseconds since 1970-01-01T00:00:00, without a time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimestampMillisecond(pub i64);

/// Microseconds since 1970-01-01T00:00:00, without a time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimestampMicrosecond(pub i64);

/// Nanoseconds since 1970-01-01T00:00:00, without a time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimestampNanosecond(pub i64);

/// A type that an argument can have. `'a` is the batch of the row.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a UDF",
    label = "no column can be read as this",
    note = "write one of: bool, i8 to i64, u8 to u64, f32, f64, String, Vec<u8>, Date, Timestamp... from `arroyo_udf_plugin::sdk::types`, SystemTime, Duration from std::time; &str or &[u8]; a Vec of such; or an Option of it"
)]
pub trait ArgumentType<'a>: Sized {
    const FORMAT: &'static CStr;
    const NULLABLE: bool = false;
    /// For a list: the format of its items. They may be null.
    const ITEM: Option<&'static CStr> = None;
    /// The part of the column that `read` needs. Small, so that the loop over rows keeps one per argument in registers.
    type View: Copy;

    fn view(column: &'a Column) -> Self::View;

    /// The value of one row, or the text of the row's error (F4).
    ///
    /// # Safety
    /// `row` is below the length of the column, which has the layout of `FORMAT`. If not `NULLABLE`, the row is valid.
    unsafe fn read(view: Self::View, row: usize) -> Result<Self, String>;
}

/// A type that a result column can hold.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a UDF",
    label = "no column can hold this",
    note = "write one of: bool, i8 to i64, u8 to u64, f32, f64, String, Vec<u8>, Date, Timestamp... from `arroyo_udf_plugin::sdk::types`, SystemTime, Duration from std::time; an Option of it; or a Result of either, whose error has Display"
)]
pub trait ResultType: Sized {
    const FORMAT: &'static CStr;
    type Builder: Builder;

    /// The builder's item, or the text of the row's error (F4).
    fn into_item(self) -> Result<<Self::Builder as Builder>::Item, String>;
}

/// A type that a function may return: `T`, `Option<T>`, or a `Result` of either.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a UDF",
    label = "no column can hold this",
    note = "write one of: bool, i8 to i64, u8 to u64, f32, f64, String, Vec<u8>, Date, Timestamp... from `arroyo_udf_plugin::sdk::types`, SystemTime, Duration from std::time; an Option of it; or a Result of either, whose error has Display"
)]
pub trait Return {
    type Value: ResultType;
    const NULLABLE: bool;

    /// A value, null, or the text of the row's error.
    fn into_result(self) -> Result<Option<Self::Value>, String>;
}

impl<T: ResultType> Return for T {
    type Value = T;
    const NULLABLE: bool = false;

    #[inline]
    fn into_result(self) -> Result<Option<T>, String> {
        Ok(Some(self))
    }
}

impl<T: ResultType> Return for Option<T> {
    type Value = T;
    const NULLABLE: bool = true;

    #[inline]
    fn into_result(self) -> Result<Option<T>, String> {
        Ok(self)
    }
}

impl<T: ResultType, E: Display> Return for Result<T, E> {
    type Value = T;
    const NULLABLE: bool = false;

    #[inline]
    fn into_result(self) -> Result<Option<T>, String> {
        self.map(Some).map_err(|error| error.to_string())
    }
}

impl<T: ResultType, E: Display> Return for Result<Option<T>, E> {
    type Value = T;
    const NULLABLE: bool = true;

    #[inline]
    fn into_result(self) -> Result<Option<T>, String> {
        self.map_err(|error| error.to_string())
    }
}

impl<'a, T: ArgumentType<'a>> ArgumentType<'a> for Option<T> {
    const FORMAT: &'static CStr = T::FORMAT;
    const NULLABLE: bool = true;
    const ITEM: Option<&'static CStr> = T::ITEM;
    type View = (&'a Column, T::View);

    #[inline]
    fn view(column: &'a Column) -> Self::View {
        (column, T::view(column))
    }

    #[inline]
    unsafe fn read((column, view): Self::View, row: usize) -> Result<Self, String> {
        if !column.is_valid(row) {
            return Ok(None);
        }
        // SAFETY: the caller's promise, and the row is valid.
        unsafe { T::read(view, row) }.map(Some)
    }
}
