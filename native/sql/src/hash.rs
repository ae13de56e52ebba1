//! `multi_hash`: 128 bits of XXH3 over the values of a row, in an encoding that is the same everywhere.
//!
//! The encoding is that of the crate arrow-row, ascending and nulls first, which Arroyo hashes; so hashes are equal to its.
//! Of each value: a byte, 0 for null and 1 for a value, and the value: numbers in big-endian, with the sign bit flipped, and
//! all bits of a negative float; texts and bytes in blocks, each with a byte behind it that says whether another follows, or
//! how much of this one counts.
//!
//! Lists and structs are not supported.

use arroyo_udf_abi::{ArrowArray, ArrowSchema};
use arroyo_udf_plugin::arrow::{ArrayData, Buffer, Column, Layout, Validity};
use std::ffi::CStr;
use xxhash_rust::xxh3::xxh3_128;

/// A column of arguments.
pub struct Argument {
    column: Column,
    layout: Layout,
    number: Number,
}

/// How the bits of a fixed width are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Unsigned,
    Signed,
    Float,
    /// Bytes, not a number.
    Bytes,
}

impl Argument {
    /// The error says what is not supported.
    ///
    /// # Safety
    /// `array` is a valid Arrow array of the schema, and its buffers outlive the argument.
    pub unsafe fn new(array: &ArrowArray, schema: &ArrowSchema) -> Result<Argument, String> {
        // SAFETY: passed on; the layout of a valid schema has read its format.
        let (layout, format) = unsafe { (Layout::of(schema)?, CStr::from_ptr(schema.format).to_bytes()) };
        let number = match format[0] {
            b'C' | b'S' | b'I' | b'L' => Number::Unsigned,
            b'e' | b'f' | b'g' => Number::Float,
            b'w' => Number::Bytes,
            b't' if format.starts_with(b"ti") => return Err("intervals".into()),
            _ => Number::Signed,
        };
        match &layout {
            Layout::List(_) | Layout::LargeList(_) | Layout::FixedList(..) | Layout::Struct(_) => return Err("lists and structs".into()),
            Layout::Fixed(width) if !matches!(width, 1 | 2 | 4 | 8 | 16 | 32) => return Err(format!("binary({width})")),
            _ => {}
        }
        // SAFETY: passed on.
        Ok(Argument { column: unsafe { Column::new(array, &layout, "multi_hash") }?, layout, number })
    }

    fn encode(&self, row: usize, out: &mut Vec<u8>) {
        let valid = self.column.is_valid(row);
        match &self.layout {
            Layout::Null => {}
            Layout::Bool => out.extend([u8::from(valid), u8::from(valid && self.column.boolean(row))]),
            Layout::Fixed(width) => self.fixed(row, *width, valid, out),
            Layout::LargeBytes | Layout::LargeText => blocks(self.column.large_bytes(row).filter(|_| valid), out),
            _ => blocks(self.column.bytes(row).filter(|_| valid), out),
        }
    }

    fn fixed(&self, row: usize, width: usize, valid: bool, out: &mut Vec<u8>) {
        out.push(u8::from(valid));
        let start = out.len();
        if !valid {
            out.resize(start + width, 0);
            return;
        }
        match width {
            1 => out.extend(self.column.fixed::<[u8; 1]>(row)),
            2 => out.extend(self.column.fixed::<[u8; 2]>(row)),
            4 => out.extend(self.column.fixed::<[u8; 4]>(row)),
            8 => out.extend(self.column.fixed::<[u8; 8]>(row)),
            16 => out.extend(self.column.fixed::<[u8; 16]>(row)),
            _ => out.extend(self.column.fixed::<[u8; 32]>(row)),
        }
        if self.number != Number::Bytes {
            out[start..].reverse();
        }
        match self.number {
            Number::Signed => out[start] ^= 0x80,
            Number::Float if out[start] & 0x80 == 0 => out[start] ^= 0x80,
            Number::Float => out[start..].iter_mut().for_each(|byte| *byte = !*byte),
            Number::Unsigned | Number::Bytes => {}
        }
    }
}

/// Four blocks of 8 bytes, then blocks of 32.
fn blocks(bytes: Option<&[u8]>, out: &mut Vec<u8>) {
    let Some(bytes) = bytes else { return out.push(0) };
    if bytes.is_empty() {
        return out.push(1);
    }
    out.push(2);
    let (small, large) = bytes.split_at(bytes.len().min(32));
    let sized = small.chunks(8).map(|block| (block, 8)).chain(large.chunks(32).map(|block| (block, 32)));
    let mut left = bytes.len();
    for (block, size) in sized {
        left -= block.len();
        out.extend_from_slice(block);
        out.resize(out.len() + size - block.len(), 0);
        out.push(if left > 0 { 0xff } else { block.len() as u8 });
    }
}

/// A hash of 16 bytes for each row.
pub fn hashes(arguments: &[Argument], rows: usize) -> ArrayData {
    let (mut hashes, mut row_bytes) = (Vec::with_capacity(16 * rows), Vec::new());
    for row in 0..rows {
        row_bytes.clear();
        for argument in arguments {
            argument.encode(row, &mut row_bytes);
        }
        hashes.extend_from_slice(&xxh3_128(&row_bytes).to_be_bytes());
    }
    let mut validity = Validity::with_capacity(rows);
    (0..rows).for_each(|_| validity.push(true));
    ArrayData { length: rows, null_count: 0, buffers: vec![validity.into_buffer(), Buffer::from(hashes)], children: vec![] }
}
