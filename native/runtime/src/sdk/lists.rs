//! Lists as arguments: `Vec<T>` is Arrow's list. Arroyo's aggregates are such functions, of all values of a group; as there,
//! nulls are left out where `T` is no `Option`.

use super::types::{Argument, Date, TimestampMicrosecond, TimestampMillisecond, TimestampNanosecond, TimestampSecond};
use crate::arrow::Column;
use std::ffi::CStr;
use std::time::{Duration, SystemTime};

/// A type that lists have. Not `u8`: `Vec<u8>` is binary.
pub trait Item<'a>: Argument<'a> {}

macro_rules! items {
    ($($type:ty),*) => {
        $(impl Item<'_> for $type {})*
    };
}

items!(bool, i8, i16, i32, i64, u16, u32, u64, f32, f64, String, Date, SystemTime, Duration);
items!(TimestampSecond, TimestampMillisecond, TimestampMicrosecond, TimestampNanosecond);

impl<'a, T: Item<'a>> Item<'a> for Option<T> {}

impl<'a, T: Item<'a>> Argument<'a> for Vec<T> {
    const FORMAT: &'static CStr = c"+l";
    const ITEM: Option<(&'static CStr, bool)> = Some((T::FORMAT, T::NULLABLE));
    type View = &'a Column;

    fn view(column: &'a Column) -> Self::View {
        column
    }

    unsafe fn read(view: Self::View, row: usize) -> Result<Self, String> {
        let (items, rows) = view.list(row).ok_or("the list has invalid offsets")?;
        let view = T::view(items);
        let there = rows.filter(|&row| T::NULLABLE || items.is_valid(row));
        // SAFETY: the rows of a list are rows of its items' column, which has the layout of `T`, and this one is valid.
        there.map(|row| unsafe { T::read(view, row) }).collect()
    }
}
