//! Values of any type, one by one -> a column that goes out.
//!
//! Assumes values that fit the layout, and totals within 32-bit offsets where it has those (`results::fits`).

use super::bitmap::Validity;
use super::data::{ArrayData, Buffer};
use super::layout::Layout;
use crate::value::Value;
use arroyo_udf_abi::ArrowArray;

/// A column of that layout; a value of another kind is written as null's bytes.
pub fn build<'a>(layout: &Layout, values: impl ExactSizeIterator<Item = &'a Value> + Clone) -> ArrayData {
    let length = values.len();
    let mut validity = Validity::with_capacity(length);
    for value in values.clone() {
        validity.push(!matches!(value, Value::Null));
    }
    let null_count = validity.nulls();
    let (buffers, children): (Vec<Buffer>, Vec<ArrowArray>) = match layout {
        Layout::Null => return ArrayData { length, null_count: length, buffers: vec![], children: vec![] },
        Layout::Bool => {
            let mut bits = Validity::with_capacity(length);
            values.for_each(|v| bits.push(*v == Value::Fixed(1)));
            (vec![validity.into_buffer(), bits.into_bits()], vec![])
        }
        Layout::Fixed(8) => {
            let words: Vec<u64> = values.map(|v| if let Value::Fixed(x) = v { *x } else { 0 }).collect();
            (vec![validity.into_buffer(), words.into()], vec![])
        }
        Layout::Fixed(16) => {
            let words: Vec<[u64; 2]> = values.map(|v| if let Value::Wide(x) = v { *x } else { [0; 2] }).collect();
            (vec![validity.into_buffer(), words.into()], vec![])
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
                    Value::Null | Value::Nested(_) => {}
                }
            }
            (vec![validity.into_buffer(), words.into()], vec![])
        }
        Layout::Bytes | Layout::Text | Layout::LargeBytes | Layout::LargeText => {
            let sizes = values.clone().map(|v| if let Value::Bytes(b) = v { b.len() } else { 0 });
            let mut data = Vec::with_capacity(sizes.clone().sum());
            values.for_each(|v| {
                if let Value::Bytes(b) = v {
                    data.extend_from_slice(b);
                }
            });
            let large = matches!(layout, Layout::LargeBytes | Layout::LargeText);
            (vec![validity.into_buffer(), offsets(large, sizes), data.into()], vec![])
        }
        Layout::List(item) | Layout::LargeList(item) => {
            let sizes = values.clone().map(|v| if let Value::Nested(items) = v { items.len() } else { 0 });
            let offsets = offsets(matches!(layout, Layout::LargeList(_)), sizes);
            let items: Vec<&Value> = values.flat_map(|v| if let Value::Nested(items) = v { &items[..] } else { &[] }).collect();
            (vec![validity.into_buffer(), offsets], vec![build(item, items.iter().copied()).export()])
        }
        Layout::FixedList(width, item) => {
            let mut items = Vec::with_capacity(length * width);
            for value in values {
                match value {
                    Value::Nested(inner) if inner.len() == *width => items.extend(inner.iter()),
                    _ => items.extend(std::iter::repeat_n(&Value::Null, *width)),
                }
            }
            (vec![validity.into_buffer()], vec![build(item, items.iter().copied()).export()])
        }
        Layout::Struct(fields) => {
            let children = fields.iter().enumerate().map(|(i, field)| {
                let column: Vec<&Value> = values
                    .clone()
                    .map(|v| if let Value::Nested(inner) = v { inner.get(i).unwrap_or(&Value::Null) } else { &Value::Null })
                    .collect();
                build(field, column.iter().copied()).export()
            });
            let children = children.collect();
            (vec![validity.into_buffer()], children)
        }
    };
    ArrayData { length, null_count, buffers, children }
}

fn offsets(large: bool, sizes: impl ExactSizeIterator<Item = usize>) -> Buffer {
    let mut end = 0usize;
    if large {
        let mut offsets: Vec<i64> = Vec::with_capacity(sizes.len() + 1);
        offsets.push(0);
        offsets.extend(sizes.map(|size| {
            end += size;
            end as i64
        }));
        offsets.into()
    } else {
        let mut offsets: Vec<i32> = Vec::with_capacity(sizes.len() + 1);
        offsets.push(0);
        offsets.extend(sizes.map(|size| {
            end += size;
            end as i32
        }));
        offsets.into()
    }
}
