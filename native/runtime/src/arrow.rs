//! Arrow C Data, the two ways: checked views of arrays that came in, and arrays that go out.
//!
//! Guarantees: an array is compared with the declared layout before it is believed (children, buffers, lengths);
//! offsets of variable-length values are checked where a value is read, so a wrong one is that row's error. What cannot
//! be checked is assumed: that buffers are as long as the array's length and offsets say, and stay unchanged.

use crate::retired;
use crate::value::Value;
use arroyo_udf_abi::{ArrowArray, ArrowSchema};
use smallvec::SmallVec;
use std::any::Any;
use std::ffi::{c_void, CStr};
use std::ptr::null_mut;

/// How the values of a type lie in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    Null,
    Bool,
    /// Bytes a value.
    Fixed(usize),
    /// 32-bit offsets and data.
    Bytes,
    /// 64-bit offsets and data.
    LargeBytes,
    List(Box<Layout>),
    LargeList(Box<Layout>),
    FixedList(usize, Box<Layout>),
    Struct(Vec<Layout>),
}

impl Layout {
    /// The layout of a schema; an error names the format that is not supported.
    ///
    /// # Safety
    /// `schema` is a valid Arrow schema; its release may be null.
    pub unsafe fn of(schema: &ArrowSchema) -> Result<Layout, String> {
        // SAFETY: a valid schema has a NUL-terminated format.
        let format = unsafe { CStr::from_ptr(schema.format) }.to_str().map_err(|_| "a format that is not UTF-8".to_string())?;
        if !schema.dictionary.is_null() {
            return Err(format!("dictionary-encoded {format}"));
        }
        // SAFETY: as above, for the children.
        let child = |i: usize| unsafe { Layout::of(child_schema(schema, i)?) };
        let fixed = |text: &str| text.parse::<usize>().map_err(|_| format.to_string());
        Ok(match format {
            "n" => Layout::Null,
            "b" => Layout::Bool,
            "c" | "C" => Layout::Fixed(1),
            "s" | "S" | "e" => Layout::Fixed(2),
            "i" | "I" | "f" | "tdD" | "tts" | "ttm" | "tiM" => Layout::Fixed(4),
            "l" | "L" | "g" | "tdm" | "ttu" | "ttn" | "tDs" | "tDm" | "tDu" | "tDn" | "tiD" => Layout::Fixed(8),
            "tin" => Layout::Fixed(16),
            "u" | "z" => Layout::Bytes,
            "U" | "Z" => Layout::LargeBytes,
            "+l" | "+m" => Layout::List(Box::new(child(0)?)),
            "+L" => Layout::LargeList(Box::new(child(0)?)),
            "+s" => Layout::Struct((0..schema.n_children as usize).map(child).collect::<Result<_, _>>()?),
            _ if format.starts_with("ts") => Layout::Fixed(8),
            _ if format.starts_with("w:") => Layout::Fixed(fixed(&format[2..])?),
            _ if format.starts_with("+w:") => Layout::FixedList(fixed(&format[3..])?, Box::new(child(0)?)),
            _ if format.starts_with("d:") => match format[2..].split(',').nth(2) {
                None | Some("128") => Layout::Fixed(16),
                Some(bits) => Layout::Fixed(fixed(bits)? / 8),
            },
            _ => return Err(format.to_string()),
        })
    }

    /// How many buffers and children an array of this layout has.
    fn shape(&self) -> (i64, usize) {
        match self {
            Layout::Null => (0, 0),
            Layout::Bool | Layout::Fixed(_) => (2, 0),
            Layout::Bytes | Layout::LargeBytes => (3, 0),
            Layout::List(_) | Layout::LargeList(_) => (2, 1),
            Layout::FixedList(..) => (1, 1),
            Layout::Struct(fields) => (1, fields.len()),
        }
    }
}

/// Child number `i` of a schema.
///
/// # Safety
/// `schema` is a valid Arrow schema.
pub unsafe fn child_schema(schema: &ArrowSchema, i: usize) -> Result<&ArrowSchema, String> {
    if (i as i64) >= schema.n_children || schema.children.is_null() {
        return Err(format!("a schema without child {i}"));
    }
    // SAFETY: a valid schema has n_children pointers to valid children.
    unsafe { (*schema.children.add(i)).as_ref() }.ok_or_else(|| format!("a schema whose child {i} is null"))
}

/// A view of one array. Rows count from the array's offset; the caller keeps rows below the length it was made for.
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
    data_length: usize,
    children: Vec<Column>,
    length: usize,
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
        // SAFETY: passed on.
        unsafe { column.set(array, layout, name) }.map(|()| column)
    }

    /// A view of nothing, to be set.
    const fn empty() -> Column {
        Column {
            validity: std::ptr::null(),
            outer: std::ptr::null(),
            outer_offset: 0,
            offset: 0,
            first: std::ptr::null(),
            data: std::ptr::null(),
            data_length: 0,
            children: Vec::new(),
            length: 0,
        }
    }

    /// As `new`, where the column is: `send` has no time to move it about.
    ///
    /// # Safety
    /// As for `new`; the column is empty.
    unsafe fn set(&mut self, array: &ArrowArray, layout: &Layout, name: &str) -> Result<(), String> {
        let (n_buffers, n_children) = layout.shape();
        if array.release.is_none() {
            return Err(format!("{name}: the array has been released"));
        }
        if array.length < 0 || array.offset < 0 || array.length.checked_add(array.offset).is_none() {
            return Err(format!("{name}: length {} and offset {} make no array", array.length, array.offset));
        }
        if array.n_buffers != n_buffers || array.n_children != n_children as i64 || !array.dictionary.is_null() {
            return Err(format!(
                "{name}: an array with {} buffers and {} children, where {layout:?} has {n_buffers} and {n_children}",
                array.n_buffers, array.n_children
            ));
        }
        let (length, offset) = (array.length as usize, array.offset as usize);
        let buffer = |i: i64| -> *const u8 {
            if i < n_buffers && !array.buffers.is_null() {
                // SAFETY: the array has n_buffers pointers.
                unsafe { (*array.buffers.add(i as usize)).cast() }
            } else {
                std::ptr::null()
            }
        };
        self.validity = if array.null_count == 0 { std::ptr::null() } else { buffer(0) };
        (self.first, self.data) = (buffer(1), buffer(2));
        (self.offset, self.length) = (offset, length);
        let needs_values = length > 0 && n_buffers > 1 && !matches!(layout, Layout::Fixed(0));
        if needs_values && self.first.is_null() {
            return Err(format!("{name}: an array of length {length} without a buffer of values"));
        }
        if array.null_count > 0 && self.validity.is_null() && *layout != Layout::Null {
            return Err(format!("{name}: {} nulls but no validity buffer", array.null_count));
        }
        if needs_values && matches!(layout, Layout::Bytes | Layout::LargeBytes) {
            let end = if *layout == Layout::Bytes { self.offset32(length) } else { self.offset64(length) };
            self.data_length = usize::try_from(end).map_err(|_| format!("{name}: a negative offset"))?;
            if self.data_length > 0 && self.data.is_null() {
                return Err(format!("{name}: offsets up to {end} but no data"));
            }
        }
        for i in 0..n_children {
            // SAFETY: the array has n_children pointers.
            let child = if array.children.is_null() { None } else { unsafe { (*array.children.add(i)).as_ref() } };
            let child = child.ok_or_else(|| format!("{name}: child {i} is null"))?;
            let child_layout = match layout {
                Layout::Struct(fields) => &fields[i],
                Layout::List(item) | Layout::LargeList(item) | Layout::FixedList(_, item) => item,
                _ => return Err(format!("{name}: {layout:?} has no children")),
            };
            // SAFETY: passed on.
            let view = unsafe { Column::new(child, child_layout, &format!("{name}, child {i}"))? };
            let needed = match layout {
                Layout::Struct(_) => offset + length,
                Layout::FixedList(width, _) => (offset + length) * width,
                _ => 0, // lists: offsets are checked where a value is read
            };
            if view.length < needed {
                return Err(format!("{name}: child {i} has {} rows, {needed} are needed", view.length));
            }
            self.children.push(view);
        }
        Ok(())
    }

    #[inline]
    pub fn is_valid(&self, row: usize) -> bool {
        // SAFETY: both bitmaps are as long as the array, and row is below its length.
        unsafe {
            (self.validity.is_null() || bit(self.validity, self.offset + row))
                && (self.outer.is_null() || bit(self.outer, self.outer_offset + row))
        }
    }

    /// Whether every row is valid for want of a bitmap.
    #[inline]
    pub fn has_no_nulls(&self) -> bool {
        self.validity.is_null() && self.outer.is_null()
    }

    /// Validity of the rows `row .. row + 64`, the first in the lowest bit; rows from `rows` on are 0.
    #[inline]
    pub fn validity_word(&self, row: usize, rows: usize) -> u64 {
        let count = (rows - row).min(64);
        let all = if count == 64 { u64::MAX } else { (1 << count) - 1 };
        let mut word = all;
        if !self.validity.is_null() {
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

    /// The bytes of a `Bytes` column; None if the offsets make no range.
    #[inline]
    pub fn bytes(&self, row: usize) -> Option<&[u8]> {
        self.range(self.offset32(row), self.offset32(row + 1))
    }

    /// The bytes of a `LargeBytes` column; None if the offsets make no range.
    #[inline]
    pub fn large_bytes(&self, row: usize) -> Option<&[u8]> {
        self.range(self.offset64(row), self.offset64(row + 1))
    }

    /// The items of a `List` column's row, as rows of their own column; None if the offsets make no range.
    pub fn list(&self, row: usize) -> Option<(&Column, std::ops::Range<usize>)> {
        let (start, end) = (self.offset32(row), self.offset32(row + 1));
        let items = self.children.first().filter(|items| 0 <= start && start <= end && end as usize <= items.length)?;
        Some((items, start as usize..end as usize))
    }

    #[inline]
    fn range(&self, start: i64, end: i64) -> Option<&[u8]> {
        if start < 0 || end < start || end as usize > self.data_length {
            return None;
        }
        if start == end {
            return Some(&[]);
        }
        // SAFETY: 0 <= start < end <= data_length, and the buffer is that long.
        Some(unsafe { std::slice::from_raw_parts(self.data.add(start as usize), (end - start) as usize) })
    }

    /// Any value, copied. The error is a text for the row.
    pub fn value(&self, layout: &Layout, row: usize) -> Result<Value, String> {
        if !self.is_valid(row) || *layout == Layout::Null {
            return Ok(Value::Null);
        }
        let items = |child: &Column, item: &Layout, start: i64, end: i64| {
            if start < 0 || end < start || end as usize > child.length {
                return Err(format!("list offsets {start} and {end} make no range"));
            }
            (start as usize..end as usize).map(|i| child.value(item, i)).collect::<Result<Box<[_]>, _>>().map(Value::Nested)
        };
        let bytes = |bytes: Option<&[u8]>| bytes.map(|b| Value::Bytes(b.into())).ok_or_else(|| "offsets that make no range".to_string());
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
            Layout::List(item) => items(&self.children[0], item, self.offset32(row), self.offset32(row + 1)),
            Layout::LargeList(item) => items(&self.children[0], item, self.offset64(row), self.offset64(row + 1)),
            Layout::FixedList(width, item) => {
                let start = (self.offset + row) * width;
                items(&self.children[0], item, start as i64, (start + width) as i64)
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

    /// Bytes of the rows `from .. to`, for the budget (R4): of a slice, not of what it was cut from. Offsets that make no
    /// range count nothing here; they are refused where a value is read.
    fn slice_bytes(&self, layout: &Layout, from: usize, to: usize) -> u64 {
        let rows = to - from;
        if rows == 0 {
            return 0;
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
            Layout::Bytes => (rows * 4 + span32().1 - span32().0) as u64,
            Layout::LargeBytes => (rows * 8 + span64().1 - span64().0) as u64,
            Layout::List(item) => rows as u64 * 4 + child(0, item, span32()),
            Layout::LargeList(item) => rows as u64 * 8 + child(0, item, span64()),
            Layout::FixedList(width, item) => child(0, item, (range.0 * width, range.1 * width)),
            Layout::Struct(fields) => fields.iter().enumerate().map(|(i, field)| child(i, field, range)).sum(),
        }
    }
}

/// A value of at most 16 bytes as a number, a longer one as bytes.
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

#[inline]
unsafe fn bit(bitmap: *const u8, i: usize) -> bool {
    // SAFETY: the caller keeps i within the bitmap.
    unsafe { *bitmap.add(i >> 3) >> (i & 7) & 1 != 0 }
}

/// `count` (1..=64) bits from bit `start` on; reads no byte beyond the last of them.
#[inline]
unsafe fn bits(bitmap: *const u8, start: usize, count: usize) -> u64 {
    let (byte, shift) = (start >> 3, start & 7);
    let n_bytes = (shift + count).div_ceil(8);
    let mut raw = [0u8; 16];
    // SAFETY: the caller keeps start + count within the bitmap, so its last byte is byte + n_bytes - 1.
    unsafe { std::ptr::copy_nonoverlapping(bitmap.add(byte), raw.as_mut_ptr(), n_bytes) };
    let word = (u128::from_le_bytes(raw) >> shift) as u64;
    if count == 64 {
        word
    } else {
        word & ((1 << count) - 1)
    }
}

/// Those of most functions take no allocation: `send` is to cost less than 100 ns.
type Columns = SmallVec<[Column; 2]>;

/// A batch of arguments: owns the struct array that came in; dropped, it retires it ([`retired`]).
#[derive(Debug)]
pub struct Batch {
    array: ArrowArray,
    columns: Columns,
    rows: usize,
    bytes: u64,
}

impl Batch {
    /// Takes over a struct array of arguments if it fits the layouts; else the array stays as it is.
    ///
    /// # Safety
    /// `array` is a valid Arrow array, as far as the checks here cannot tell.
    pub unsafe fn take(array: &mut ArrowArray, arguments: &[(String, Layout)]) -> Result<Batch, String> {
        if array.release.is_none() {
            return Err("the batch has been released".into());
        }
        if array.n_children != arguments.len() as i64 {
            return Err(format!("the batch has {} columns, the function {} arguments", array.n_children, arguments.len()));
        }
        if array.length < 0 || array.offset < 0 || array.length.checked_add(array.offset).is_none() {
            return Err(format!("length {} and offset {} make no batch", array.length, array.offset));
        }
        let (rows, offset) = (array.length as usize, array.offset as usize);
        let outer: *const u8 = if array.n_buffers < 1 || array.buffers.is_null() || array.null_count == 0 {
            std::ptr::null()
        } else {
            // SAFETY: the array has at least one buffer.
            unsafe { (*array.buffers).cast() }
        };
        let mut columns = Columns::with_capacity(arguments.len());
        let mut bytes = 0;
        for (i, (name, layout)) in arguments.iter().enumerate() {
            // SAFETY: a valid array has n_children pointers.
            let child = if array.children.is_null() { None } else { unsafe { (*array.children.add(i)).as_ref() } };
            let child = child.ok_or_else(|| format!("argument {name}: no array"))?;
            columns.push(Column::empty());
            let Some(column) = columns.last_mut() else { unreachable!("pushed above") };
            // SAFETY: passed on; the batch owns the buffers as long as the columns live.
            unsafe { column.set(child, layout, name) }.map_err(|text| format!("argument {text}"))?;
            if column.length < rows + offset {
                return Err(format!("argument {name}: {} rows, the batch has {}", column.length, rows + offset));
            }
            column.offset += offset;
            column.length = rows;
            column.outer = outer;
            column.outer_offset = offset;
            bytes += column.slice_bytes(layout, 0, rows);
        }
        Ok(Batch { array: std::mem::replace(array, ArrowArray::empty()), columns, rows, bytes })
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Logical size of the slice, for the budget (R4).
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The array itself, still owned by the batch.
    pub fn array(&self) -> &ArrowArray {
        &self.array
    }

    /// Gives the array back.
    pub fn into_array(mut self) -> ArrowArray {
        std::mem::replace(&mut self.array, ArrowArray::empty())
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        retired::retire(std::mem::replace(&mut self.array, ArrowArray::empty()));
    }
}

/// Memory of an array that goes out.
pub struct Buffer {
    pointer: *const c_void,
    _owner: Option<Box<dyn Any + Send>>,
}

impl Buffer {
    /// The absent buffer: no validity, or no values.
    pub fn none() -> Buffer {
        Buffer { pointer: std::ptr::null(), _owner: None }
    }
}

impl<T: Send + 'static> From<Vec<T>> for Buffer {
    fn from(values: Vec<T>) -> Buffer {
        // An empty Vec points nowhere in particular, which is all that an empty buffer needs.
        Buffer { pointer: values.as_ptr().cast(), _owner: Some(Box::new(values)) }
    }
}

/// An array about to go out.
pub struct ArrayData {
    pub length: usize,
    pub null_count: usize,
    pub buffers: Vec<Buffer>,
    /// Ready to go out.
    pub children: Vec<ArrowArray>,
}

struct Exported {
    pointers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
    _buffers: Vec<Buffer>,
}

impl ArrayData {
    /// As a C Data array that owns its memory. Any thread may release it.
    pub fn export(self) -> ArrowArray {
        let mut exported = Box::new(Exported {
            pointers: self.buffers.iter().map(|b| b.pointer).collect(),
            children: self.children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect(),
            _buffers: self.buffers,
        });
        ArrowArray {
            length: self.length as i64,
            null_count: self.null_count as i64,
            offset: 0,
            n_buffers: exported.pointers.len() as i64,
            n_children: exported.children.len() as i64,
            buffers: exported.pointers.as_mut_ptr(),
            children: if exported.children.is_empty() { null_mut() } else { exported.children.as_mut_ptr() },
            dictionary: null_mut(),
            release: Some(release_exported),
            private_data: Box::into_raw(exported).cast(),
        }
    }
}

impl From<ArrayData> for ArrowArray {
    fn from(data: ArrayData) -> ArrowArray {
        data.export()
    }
}

unsafe extern "C" fn release_exported(array: *mut ArrowArray) {
    // SAFETY: `private_data` is the box of `export`; `release` is reset, so this happens once. A child that the consumer
    // has moved out has a null release.
    unsafe {
        let exported = Box::from_raw((*array).private_data.cast::<Exported>());
        for &child in &exported.children {
            if let Some(release) = (*child).release {
                release(child);
            }
            drop(Box::from_raw(child));
        }
        (*array).release = None;
    }
}

/// Validity of a column under construction.
#[derive(Debug, Default)]
pub struct Validity {
    words: Vec<u64>,
    length: usize,
    nulls: usize,
}

impl Validity {
    pub fn with_capacity(rows: usize) -> Validity {
        Validity { words: Vec::with_capacity(rows.div_ceil(64)), length: 0, nulls: 0 }
    }

    #[inline]
    pub fn push(&mut self, valid: bool) {
        if self.length & 63 == 0 {
            self.words.push(0);
        }
        if let Some(word) = self.words.last_mut() {
            *word |= u64::from(valid) << (self.length & 63);
        }
        self.length += 1;
        self.nulls += usize::from(!valid);
    }

    /// Appends `count` rows (1..=64) at once; only where `length` is a multiple of 64.
    #[inline]
    pub fn push_word(&mut self, word: u64, count: usize) {
        debug_assert!(self.length & 63 == 0 && count <= 64);
        self.words.push(word);
        self.length += count;
        self.nulls += count - word.count_ones() as usize;
    }

    pub fn nulls(&self) -> usize {
        self.nulls
    }

    pub fn len(&self) -> usize {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The bits as the values of a boolean column.
    pub fn into_bits(self) -> Buffer {
        self.words.into()
    }

    /// The buffer, absent when nothing is null.
    pub fn into_buffer(self) -> Buffer {
        if self.nulls == 0 {
            Buffer::none()
        } else {
            self.words.into()
        }
    }
}

/// A column of values of any layout.
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
        Layout::Bytes | Layout::LargeBytes => {
            let sizes = values.clone().map(|v| if let Value::Bytes(b) = v { b.len() } else { 0 });
            let mut data = Vec::with_capacity(sizes.clone().sum());
            values.for_each(|v| {
                if let Value::Bytes(b) = v {
                    data.extend_from_slice(b);
                }
            });
            (vec![validity.into_buffer(), offsets(*layout == Layout::LargeBytes, sizes), data.into()], vec![])
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
