//! Values of any type, one by one -> a column that goes out.
//!
//! Assumes values that fit the layout.

use super::bitmap::Validity;
use super::data::{ArrayData, Buffer};
use super::layout::Layout;
use super::offsets::{NoRoom, Offset, Offsets};
use crate::value::Value;

/// The bytes and items that a value adds to buffers with 32-bit offsets, all of them together.
pub(crate) fn narrow(layout: &Layout, value: &Value) -> usize {
    match (layout, value) {
        (Layout::Bytes | Layout::Text, value) => value.as_bytes().map_or(0, <[u8]>::len),
        (Layout::List(item), Value::Nested(items)) => items.iter().map(|value| narrow(item, value) + 1).sum(),
        (Layout::LargeList(item) | Layout::FixedList(_, item), Value::Nested(items)) => items.iter().map(|v| narrow(item, v)).sum(),
        (Layout::Struct(fields), Value::Nested(items)) => fields.iter().zip(items).map(|(field, v)| narrow(field, v)).sum(),
        _ => 0,
    }
}

/// As [`build`], with null in the rows for whose values there is no room, which it answers in rising order. It sums up all
/// buffers of a row, so that a value goes in whole or not at all.
pub fn build_with_room<'a>(layout: &Layout, values: impl ExactSizeIterator<Item = &'a Value> + Clone) -> (ArrayData, Vec<usize>) {
    if let Ok(column) = build(layout, values.clone()) {
        return (column, Vec::new());
    }
    let (mut taken, mut without_room) = (0, Vec::new());
    let fitting = values.enumerate().map(|(row, value)| match taken + narrow(layout, value) {
        end if end <= i32::most() => {
            taken = end;
            value
        }
        _ => {
            without_room.push(row);
            &Value::Null
        }
    });
    let fitting: Vec<&Value> = fitting.collect();
    match build(layout, fitting.into_iter()) {
        Ok(column) => (column, without_room),
        Err(NoRoom) => unreachable!("no buffer gets more than all of them together"),
    }
}

/// A column of that layout; a value of another kind is written as null's bytes.
pub fn build<'a>(layout: &Layout, values: impl ExactSizeIterator<Item = &'a Value> + Clone) -> Result<ArrayData, NoRoom> {
    let length = values.len();
    let mut validity = Validity::with_capacity(length);
    for value in values.clone() {
        validity.push(!matches!(value, Value::Null));
    }
    let null_count = validity.nulls();
    let mut column = ArrayData { length, null_count, buffers: vec![validity.into_buffer()], children: vec![] };
    match layout {
        Layout::Null => return Ok(ArrayData { length, null_count: length, buffers: vec![], children: vec![] }),
        Layout::Bool => {
            let mut bits = Validity::with_capacity(length);
            values.for_each(|v| bits.push(*v == Value::Fixed(1)));
            column.buffers.push(bits.into_bits());
        }
        Layout::Fixed(8) => {
            let words: Vec<u64> = values.map(|v| if let Value::Fixed(x) = v { *x } else { 0 }).collect();
            column.buffers.push(words.into());
        }
        Layout::Fixed(16) => {
            let words: Vec<[u64; 2]> = values.map(|v| if let Value::Wide(x) = v { *x } else { [0; 2] }).collect();
            column.buffers.push(words.into());
        }
        Layout::Fixed(width) => {
            // In words of 8 bytes, so that the buffer is aligned for any type.
            let mut words = vec![0u64; (length * width).div_ceil(8)];
            // SAFETY: the words are at least length * width bytes.
            let bytes = unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), length * width) };
            for (slot, value) in bytes.chunks_exact_mut((*width).max(1)).zip(values) {
                match value {
                    Value::Fixed(x) => slot.copy_from_slice(&x.to_le_bytes()[..*width]),
                    Value::Wide([low, high]) => {
                        let both = (u128::from(*high) << 64 | u128::from(*low)).to_le_bytes();
                        slot.copy_from_slice(&both[..*width]);
                    }
                    Value::Bytes(b) => slot.copy_from_slice(&b[..*width]),
                    Value::Shared(b) => slot.copy_from_slice(&b[..*width]),
                    Value::Null | Value::Nested(_) => {}
                }
            }
            column.buffers.push(words.into());
        }
        Layout::Bytes | Layout::Text | Layout::LargeBytes | Layout::LargeText => {
            let bytes = |v: &'a Value| v.as_bytes().unwrap_or_default();
            let sizes = values.clone().map(|v| bytes(v).len());
            column.buffers.push(offsets(matches!(layout, Layout::LargeBytes | Layout::LargeText), sizes.clone())?);
            let mut data = Vec::with_capacity(sizes.sum());
            values.for_each(|v| data.extend_from_slice(bytes(v)));
            column.buffers.push(data.into());
        }
        Layout::List(item) | Layout::LargeList(item) => {
            let items = |v: &'a Value| if let Value::Nested(items) = v { &items[..] } else { &[] };
            column.buffers.push(offsets(matches!(layout, Layout::LargeList(_)), values.clone().map(|v| items(v).len()))?);
            let items: Vec<&Value> = values.flat_map(items).collect();
            column.children.push(build(item, items.iter().copied())?.export());
        }
        Layout::FixedList(width, item) => {
            let mut items = Vec::with_capacity(length * width);
            for value in values {
                match value {
                    Value::Nested(inner) if inner.len() == *width => items.extend(inner.iter()),
                    _ => items.extend(std::iter::repeat_n(&Value::Null, *width)),
                }
            }
            column.children.push(build(item, items.iter().copied())?.export());
        }
        Layout::Struct(fields) => {
            for (i, field) in fields.iter().enumerate() {
                let inner = |v: &'a Value| if let Value::Nested(inner) = v { inner.get(i).unwrap_or(&Value::Null) } else { &Value::Null };
                let values: Vec<&Value> = values.clone().map(inner).collect();
                column.children.push(build(field, values.iter().copied())?.export());
            }
        }
    }
    Ok(column)
}

fn offsets(large: bool, sizes: impl ExactSizeIterator<Item = usize>) -> Result<Buffer, NoRoom> {
    fn of<T: Offset>(mut sizes: impl ExactSizeIterator<Item = usize>) -> Result<Buffer, NoRoom> {
        let mut offsets = Offsets::<T>::with_capacity(sizes.len());
        sizes.try_for_each(|size| offsets.push(size))?;
        Ok(offsets.into())
    }
    if large {
        of::<i64>(sizes)
    } else {
        of::<i32>(sizes)
    }
}
