//! A checked view of one array that came in, and the reading of its values.
//!
//! Guarantees: the array is compared with its declared layout (children, buffers, lengths) before anything is read; offsets
//! and UTF-8 are checked as each value is read, so a wrong one is an error of that row alone. [`check`](super::check) has
//! the rules.
//!
//! Assumes what cannot be checked: buffers are as long as length and offsets say, stay unchanged, and outlive the view.
//! Methods that take a row expect one below the view's length.

use super::bitmap::{bit, bits};
use super::check;
use super::layout::Layout;
use crate::value::Value;
use arroyo_udf_abi::ArrowArray;
use std::any::Any;
use std::marker::PhantomData;
use std::sync::OnceLock;

/// Why a row cannot be read.
pub const BAD_OFFSETS: &str = "the value has invalid offsets";

/// How a value begins that is written ([`Column::write_to`]).
const NULL: u8 = 0;
const VALUE: u8 = 1;

/// How a value of a number of bytes or items begins.
#[inline]
fn sized(count: u64) -> [u8; 9] {
    let mut head = [VALUE; 9];
    head[1..].copy_from_slice(&count.to_le_bytes());
    head
}

/// Something that a function has made of a value.
pub type Kept = Box<dyn Any + Send + Sync>;

/// The values of a `Bytes` or `Text` column, for loops that keep it in registers.
#[derive(Debug, Clone, Copy)]
pub struct BytesView<'a> {
    /// Of row 0.
    offsets: *const i32,
    data: *const u8,
    last: usize,
    mask: usize,
    column: PhantomData<&'a Column>,
}

impl<'a> BytesView<'a> {
    /// As [`Column::bytes`].
    ///
    /// # Safety
    /// The row is below the column's length.
    #[inline]
    pub unsafe fn get(self, row: usize) -> Option<&'a [u8]> {
        // SAFETY: the column has an offset for each row, and one more; they may be unaligned.
        let (start, end) = unsafe {
            let offset = self.offsets.add(row & self.mask);
            (i64::from(offset.read_unaligned()), i64::from(offset.add(1).read_unaligned()))
        };
        // SAFETY: the data of the column has `last` bytes, and lives as long as the column.
        unsafe { range(self.data, self.last, start, end) }
    }
}

/// The bytes between two offsets; None if they are no range below `last`.
///
/// # Safety
/// `data` has `last` bytes, which live for `'a`.
#[inline]
unsafe fn range<'a>(data: *const u8, last: usize, start: i64, end: i64) -> Option<&'a [u8]> {
    if start < 0 || end < start || end as usize > last {
        return None;
    }
    if start == end {
        return Some(&[]);
    }
    // SAFETY: 0 <= start < end <= last.
    Some(unsafe { std::slice::from_raw_parts(data.add(start as usize), (end - start) as usize) })
}

/// A view of one array. Row 0 is at the array's offset.
#[derive(Debug)]
pub struct Column {
    /// Null: every row is valid.
    validity: *const u8,
    /// Validity of the struct around the columns, with its offset. Null: every row is valid.
    outer: *const u8,
    outer_offset: usize,
    offset: usize,
    /// Values, or offsets of variable-length values.
    first: *const u8,
    data: *const u8,
    /// The last offset: no row reaches beyond it.
    last: usize,
    children: Vec<Column>,
    length: usize,
    /// Of row numbers: 0 if one value counts for all rows.
    mask: usize,
    /// What a function keeps for all rows, see [`kept`](Self::kept).
    kept: OnceLock<Option<Kept>>,
}

// SAFETY: a view of immutable buffers, which the owner (Batch) keeps alive.
unsafe impl Send for Column {}
// SAFETY: as above.
unsafe impl Sync for Column {}

impl Column {
    /// Checks an array against a layout. `name` is for the error text.
    ///
    /// # Safety
    /// `array` is a valid Arrow array of that layout, and its buffers outlive the column.
    pub unsafe fn new(array: &ArrowArray, layout: &Layout, name: &str) -> Result<Column, String> {
        let mut column = Column::empty();
        // SAFETY: the caller promises it.
        unsafe { column.set(array, layout, name) }.map(|()| column)
    }

    /// A view of nothing, for `set`.
    pub(super) const fn empty() -> Column {
        Column {
            validity: std::ptr::null(),
            outer: std::ptr::null(),
            outer_offset: 0,
            offset: 0,
            first: std::ptr::null(),
            data: std::ptr::null(),
            last: 0,
            children: Vec::new(),
            length: 0,
            mask: usize::MAX,
            kept: OnceLock::new(),
        }
    }

    /// As `new`, in place: `send` has no time to move a column about.
    ///
    /// # Safety
    /// As for `new`; the column is empty.
    pub(super) unsafe fn set(&mut self, array: &ArrowArray, layout: &Layout, name: &str) -> Result<(), String> {
        // SAFETY: passed on.
        let last = unsafe { check::level(array, layout.level()) }.map_err(|text| format!("{name}: {text}"))?;
        let (n_buffers, n_children) = layout.level().shape();
        // SAFETY: a checked array has n_buffers pointers.
        let buffer = |i: usize| if i < n_buffers { unsafe { (*array.buffers.add(i)).cast() } } else { std::ptr::null() };
        self.validity = if array.null_count == 0 { std::ptr::null() } else { buffer(0) };
        (self.first, self.data) = (buffer(1), buffer(2));
        (self.offset, self.length, self.last) = (array.offset as usize, array.length as usize, last);
        let needed = check::rows_of_children(array, layout.level(), last);
        for i in 0..n_children {
            // SAFETY: a checked array has n_children pointers.
            let child = unsafe { (*array.children.add(i)).as_ref() }.ok_or_else(|| format!("{name}: child {i} is NULL"))?;
            let child_layout = match layout {
                Layout::Struct(fields) => &fields[i],
                Layout::List(item) | Layout::LargeList(item) | Layout::FixedList(_, item) => item,
                _ => return Err(format!("{name}: {layout:?} has no children")),
            };
            // SAFETY: the caller promises it.
            let view = unsafe { Column::new(child, child_layout, "") }.map_err(|text| format!("{name}, child {i}{text}"))?;
            if view.length < needed {
                return Err(format!("{name}, child {i}: {} rows, but {needed} are needed", view.length));
            }
            self.children.push(view);
        }
        Ok(())
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Views only the `rows` rows from `offset` on, those of a struct whose validity bitmap is `outer` (null: all valid).
    ///
    /// # Safety
    /// `offset + rows` is at most `len`, and `outer` is null or has that many bits.
    #[inline]
    pub(super) unsafe fn narrow(&mut self, outer: *const u8, offset: usize, rows: usize) {
        self.offset += offset;
        self.length = rows;
        (self.outer, self.outer_offset) = (outer, offset);
    }

    /// Views one value, that of a column of bytes with one row, as that of `rows` rows, in a struct as for `narrow`.
    ///
    /// # Safety
    /// `outer` is null or has `offset + rows` bits.
    pub(super) unsafe fn repeat(&mut self, outer: *const u8, offset: usize, rows: usize) {
        self.mask = 0;
        self.length = rows;
        (self.outer, self.outer_offset) = (outer, offset);
    }

    /// Whether one value counts for all rows, but those that are null in the struct itself.
    #[inline]
    pub fn is_constant(&self) -> bool {
        self.mask == 0
    }

    /// Whether all valid values of a `Bytes` or `Text` column are the same. Looks no further than the first that differs.
    pub fn is_uniform(&self) -> bool {
        let rows = if self.is_constant() { 0 } else { self.length };
        let mut values = (0..rows).filter(|&row| self.is_valid(row)).map(|row| self.bytes(row));
        let first = values.next();
        values.all(|value| value.is_some() && Some(value) == first)
    }

    /// The place of what a function makes of the value that all rows have in common; None: they have no such value.
    pub fn kept(&self) -> &OnceLock<Option<Kept>> {
        &self.kept
    }

    #[inline]
    pub fn is_valid(&self, row: usize) -> bool {
        // SAFETY: both bitmaps are as long as the array, and row is below its length.
        unsafe {
            (self.validity.is_null() || bit(self.validity, self.offset + (row & self.mask)))
                && (self.outer.is_null() || bit(self.outer, self.outer_offset + row))
        }
    }

    /// Whether every row is known to be valid, because there is no bitmap.
    #[inline]
    pub fn has_no_nulls(&self) -> bool {
        self.validity.is_null() && self.outer.is_null()
    }

    /// Validity of the rows `row .. row + 64`, the first in the lowest bit; 0 from row `rows` on.
    #[inline]
    pub fn validity_word(&self, row: usize, rows: usize) -> u64 {
        let count = (rows - row).min(64);
        let all = if count == 64 { u64::MAX } else { (1 << count) - 1 };
        let mut word = all;
        if self.is_constant() {
            // SAFETY: the one row is within the array.
            let is_null = !self.validity.is_null() && !unsafe { bit(self.validity, self.offset) };
            word = if is_null { 0 } else { all };
        } else if !self.validity.is_null() {
            // SAFETY: count rows from row on are within the array.
            word &= unsafe { bits(self.validity, self.offset + row, count) };
        }
        if !self.outer.is_null() {
            // SAFETY: as above.
            word &= unsafe { bits(self.outer, self.outer_offset + row, count) };
        }
        word
    }

    /// The value of a fixed-width column whose layout is `Fixed(size_of::<T>())`.
    #[inline]
    pub fn fixed<T: Copy>(&self, row: usize) -> T {
        // SAFETY: the buffer holds offset + length values; unaligned buffers are allowed.
        unsafe { self.first.cast::<T>().add(self.offset + row).read_unaligned() }
    }

    /// The values from `row` on, as a pointer for tight loops; may be unaligned.
    #[inline]
    pub fn values<T: Copy>(&self, row: usize) -> *const T {
        self.first.cast::<T>().wrapping_add(self.offset + row)
    }

    #[inline]
    pub fn boolean(&self, row: usize) -> bool {
        // SAFETY: the bitmap of values is as long as the array.
        unsafe { bit(self.first, self.offset + row) }
    }

    #[inline]
    fn offset32(&self, row: usize) -> i64 {
        i64::from(self.fixed::<i32>(row))
    }

    #[inline]
    fn offset64(&self, row: usize) -> i64 {
        self.fixed::<i64>(row)
    }

    /// The bytes of a `Bytes` or `Text` column; None if the offsets are no range.
    #[inline]
    pub fn bytes(&self, row: usize) -> Option<&[u8]> {
        let row = row & self.mask;
        // SAFETY: the buffer is as long as the last offset says.
        unsafe { range(self.data, self.last, self.offset32(row), self.offset32(row + 1)) }
    }

    /// The bytes of a `LargeBytes` or `LargeText` column; None if the offsets are no range.
    #[inline]
    pub fn large_bytes(&self, row: usize) -> Option<&[u8]> {
        let row = row & self.mask;
        // SAFETY: as above.
        unsafe { range(self.data, self.last, self.offset64(row), self.offset64(row + 1)) }
    }

    /// The items of a `List` column's row, as rows of their own column; None if the offsets are no range.
    pub fn list(&self, row: usize) -> Option<(&Column, std::ops::Range<usize>)> {
        let (start, end) = (self.offset32(row), self.offset32(row + 1));
        let items = self.children.first().filter(|_| 0 <= start && start <= end && end as usize <= self.last)?;
        Some((items, start as usize..end as usize))
    }

    /// The values of a `Bytes` or `Text` column.
    #[inline]
    pub fn bytes_view(&self) -> BytesView<'_> {
        let offsets = self.first.cast::<i32>().wrapping_add(self.offset);
        BytesView { offsets, data: self.data, last: self.last, mask: self.mask, column: PhantomData }
    }

    /// Any value, copied. The error is the text of the row's error.
    pub fn value(&self, layout: &Layout, row: usize) -> Result<Value, String> {
        if !self.is_valid(row) || *layout == Layout::Null {
            return Ok(Value::Null);
        }
        let items = |child: &Column, item: &Layout, start: i64, end: i64, last: usize| {
            if start < 0 || end < start || end as usize > last {
                return Err(BAD_OFFSETS.to_string());
            }
            (start as usize..end as usize).map(|i| child.value(item, i)).collect::<Result<Box<[_]>, _>>().map(Value::Nested)
        };
        let bytes = |bytes: Option<&[u8]>| bytes.map(|b| Value::Bytes(b.into())).ok_or_else(|| BAD_OFFSETS.to_string());
        let utf8 = |value: Value| match &value {
            Value::Bytes(b) => match std::str::from_utf8(b) {
                Ok(_) => Ok(value),
                Err(error) => Err(format!("the text is not UTF-8: {error}")),
            },
            _ => Ok(value),
        };
        match layout {
            Layout::Null => Ok(Value::Null),
            Layout::Bool => Ok(Value::Fixed(u64::from(self.boolean(row)))),
            Layout::Fixed(width) => {
                // SAFETY: the buffer holds offset + length values of that width.
                let raw = unsafe { std::slice::from_raw_parts(self.first.add((self.offset + row) * width), *width) };
                Ok(fixed_value(raw))
            }
            Layout::Bytes => bytes(self.bytes(row)),
            Layout::LargeBytes => bytes(self.large_bytes(row)),
            Layout::Text => bytes(self.bytes(row)).and_then(utf8),
            Layout::LargeText => bytes(self.large_bytes(row)).and_then(utf8),
            Layout::List(item) => items(&self.children[0], item, self.offset32(row), self.offset32(row + 1), self.last),
            Layout::LargeList(item) => items(&self.children[0], item, self.offset64(row), self.offset64(row + 1), self.last),
            Layout::FixedList(width, item) => {
                let start = (self.offset + row) * width;
                items(&self.children[0], item, start as i64, (start + width) as i64, start + width)
            }
            Layout::Struct(fields) => {
                let row = self.offset + row;
                fields
                    .iter()
                    .zip(&self.children)
                    .map(|(field, child)| child.value(field, row))
                    .collect::<Result<Box<[_]>, _>>()
                    .map(Value::Nested)
            }
        }
    }

    /// Appends a value as bytes, such that two values of the layout are equal bit for bit if, and only if, their bytes are, and
    /// that the bytes of none begin with those of another. False: the value has invalid offsets.
    pub fn write_to(&self, layout: &Layout, row: usize, into: &mut Vec<u8>) -> bool {
        if !self.is_valid(row) || *layout == Layout::Null {
            into.push(NULL);
            return true;
        }
        let items = |child: &Column, item: &Layout, start: i64, end: i64, last: usize, into: &mut Vec<u8>| {
            if start < 0 || end < start || end as usize > last {
                return false;
            }
            into.extend_from_slice(&sized((end - start) as u64));
            (start as usize..end as usize).all(|i| child.write_to(item, i, into))
        };
        let bytes = |bytes: Option<&[u8]>, into: &mut Vec<u8>| {
            let Some(bytes) = bytes else { return false };
            into.extend_from_slice(&sized(bytes.len() as u64));
            into.extend_from_slice(bytes);
            true
        };
        match layout {
            Layout::Null => true,
            Layout::Bool => {
                into.extend_from_slice(&[VALUE, u8::from(self.boolean(row))]);
                true
            }
            Layout::Fixed(width) => {
                into.push(VALUE);
                // SAFETY: the buffer holds offset + length values of that width.
                into.extend_from_slice(unsafe { std::slice::from_raw_parts(self.first.add((self.offset + row) * width), *width) });
                true
            }
            Layout::Bytes | Layout::Text => bytes(self.bytes(row), into),
            Layout::LargeBytes | Layout::LargeText => bytes(self.large_bytes(row), into),
            Layout::List(item) => items(&self.children[0], item, self.offset32(row), self.offset32(row + 1), self.last, into),
            Layout::LargeList(item) => items(&self.children[0], item, self.offset64(row), self.offset64(row + 1), self.last, into),
            Layout::FixedList(width, item) => {
                let start = (self.offset + row) * width;
                into.push(VALUE);
                (start..start + width).all(|i| self.children[0].write_to(item, i, into))
            }
            Layout::Struct(fields) => {
                let row = self.offset + row;
                into.push(VALUE);
                fields.iter().zip(&self.children).all(|(field, child)| child.write_to(field, row, into))
            }
        }
    }

    /// Bytes of the rows `from .. to`, not of the buffers they are part of: for the budget (R4). Invalid offsets count
    /// nothing here; reading a value refuses them.
    pub(super) fn slice_bytes(&self, layout: &Layout, from: usize, to: usize) -> u64 {
        let rows = to - from;
        if rows == 0 {
            return 0;
        }
        if self.is_constant() {
            return self.last as u64;
        }
        let span = |start: i64, end: i64| if 0 <= start && start <= end { (start as usize, end as usize) } else { (0, 0) };
        let span32 = || span(self.offset32(from), self.offset32(to));
        let span64 = || span(self.offset64(from), self.offset64(to));
        let child = |i: usize, layout: &Layout, (start, end): (usize, usize)| {
            let child = &self.children[i];
            child.slice_bytes(layout, start.min(child.length), end.min(child.length))
        };
        let range = (self.offset + from, self.offset + to);
        match layout {
            Layout::Null => 0,
            Layout::Bool => rows as u64 / 8,
            Layout::Fixed(width) => (rows * width) as u64,
            Layout::Bytes | Layout::Text => (rows * 4 + span32().1 - span32().0) as u64,
            Layout::LargeBytes | Layout::LargeText => (rows * 8 + span64().1 - span64().0) as u64,
            Layout::List(item) => rows as u64 * 4 + child(0, item, span32()),
            Layout::LargeList(item) => rows as u64 * 8 + child(0, item, span64()),
            Layout::FixedList(width, item) => child(0, item, (range.0 * width, range.1 * width)),
            Layout::Struct(fields) => fields.iter().enumerate().map(|(i, field)| child(i, field, range)).sum(),
        }
    }
}

/// Up to 16 bytes as a number, more as bytes.
fn fixed_value(raw: &[u8]) -> Value {
    let mut words = [0u8; 16];
    match raw.len() {
        0..=16 => words[..raw.len()].copy_from_slice(raw),
        _ => return Value::Bytes(raw.into()),
    }
    let low = u64::from_le_bytes(words[..8].try_into().unwrap_or_default());
    let high = u64::from_le_bytes(words[8..].try_into().unwrap_or_default());
    if raw.len() <= 8 {
        Value::Fixed(low)
    } else {
        Value::Wide([low, high])
    }
}
