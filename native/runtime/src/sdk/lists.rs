//! Lists as arguments: `Vec<T>` is Arrow's list. Arroyo's aggregates take them: all values of a group. As in Arroyo, nulls
//! are left out unless `T` is an `Option`.

use super::types::{ArgumentType, Date, TimestampMicrosecond, TimestampMillisecond, TimestampNanosecond, TimestampSecond};
use crate::arrow::{Column, BAD_OFFSETS};
use std::ffi::CStr;
use std::time::{Duration, SystemTime};

/// A type that a list can hold. Not `u8`: `Vec<u8>` is binary.
pub trait ListItem<'a>: ArgumentType<'a> {}

macro_rules! items {
    ($($type:ty),*) => {
        $(impl ListItem<'_> for $type {})*
    };
}

items!(bool, i8, i16, i32, i64, u16, u32, u64, f32, f64, String, Date, SystemTime, Duration);
items!(TimestampSecond, TimestampMillisecond, TimestampMicrosecond, TimestampNanosecond);

impl<'a, T: ListItem<'a>> ListItem<'a> for Option<T> {}

impl<'a, T: ListItem<'a>> ArgumentType<'a> for Vec<T> {
    const FORMAT: &'static CStr = c"+l";
    const ITEM: Option<&'static CStr> = Some(T::FORMAT);
    type View = &'a Column;

    fn view(column: &'a Column) -> Self::View {
        column
    }

    unsafe fn read(view: Self::View, row: usize) -> Result<Self, String> {
        let (items, rows) = view.list(row).ok_or(BAD_OFFSETS)?;
        let view = T::view(items);
        let present = rows.filter(|&row| T::NULLABLE || items.is_valid(row));
        // SAFETY: the rows of a list are rows of its items' column, which has the layout of `T`, and this one is valid.
        present.map(|row| unsafe { T::read(view, row) }).collect()
    }
}
