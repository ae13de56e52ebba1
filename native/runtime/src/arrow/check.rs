//! What is checked of an array that came in. The rules are the same in all languages; `arroyo_udf_c_arrays.h` has them for
//! sync functions in C.
//!
//! * When an array is taken ([`level`]): its release is set; numbers of buffers and children are those of its type, and there
//!   is no dictionary; length and offset are not negative; buffers are there where rows need them; a validity buffer is there
//!   if there are nulls; the last offset is not negative, and not beyond the items; children have the rows that they need. An
//!   array that fails is refused: its owner keeps it.
//! * When a row is read ([`Column`](super::Column)): its offsets ascend and end at or before the last one; its text is UTF-8.
//!   A row that fails is an error, and touches no other row.
//! * Before pyarrow gets an array ([`check`], [`check_rows`]): both at once for all rows, at every level of nesting, because
//!   pyarrow checks nothing by itself. And before an array goes out that pyarrow or another library has made: then decimals,
//!   too, which must be within their precision.
//!
//! Null rows are not read, so nothing is checked of them; but pyarrow sees their offsets.
//!
//! Assumes what no check can tell: buffers are as long as lengths and offsets say, and pointers that are not null are valid.
//! `null_count` is believed if it is 0; [`check`] compares it with the bitmap otherwise.

use super::bitmap::{bit, nulls};
use super::decimal::Decimal;
use super::layout::{child_schema, Level};
use arroyo_udf_abi::{ArrowArray, ArrowSchema};
use std::ffi::CStr;
use std::ops::Range;

/// Deeper types are refused, as pyarrow does.
const MOST_LEVELS: usize = 64;

/// A schema with more levels in all is refused: it may contain itself.
const MOST_ARRAYS: usize = 1 << 16;

/// Checks an array itself, without its children. Answers its last offset; 0 if it has none.
///
/// # Safety
/// Pointers in `array` are null or valid, and buffers are as long as its length and offset say.
#[inline]
pub(super) unsafe fn level(array: &ArrowArray, kind: Level) -> Result<usize, String> {
    let (n_buffers, n_children) = kind.shape();
    if array.release.is_none() {
        return Err("the array has been released".into());
    }
    if array.n_buffers != n_buffers as i64 || array.n_children != n_children as i64 || !array.dictionary.is_null() {
        return Err(other_shape(array, kind));
    }
    if n_buffers > 0 && array.buffers.is_null() || n_children > 0 && array.children.is_null() {
        return Err("the list of its buffers or of its children is NULL".into());
    }
    let Some(end) = extent(array, kind) else {
        return Err(format!("invalid length {} and offset {}", array.length, array.offset));
    };
    // SAFETY: the array has n_buffers pointers.
    let buffer = |i: usize| unsafe { *array.buffers.add(i) };
    if array.null_count > 0 && n_buffers > 0 && buffer(0).is_null() {
        return Err(format!("{} nulls, but no validity buffer", array.null_count));
    }
    if n_buffers < 2 || array.length == 0 || kind == Level::Fixed(0) {
        return Ok(0);
    }
    if buffer(1).is_null() {
        return Err(format!("an array of length {} has no buffer of values", array.length));
    }
    let Some(width) = kind.offset_width() else { return Ok(0) };
    // SAFETY: an array of this type has end + 1 offsets; they may be unaligned.
    let last = unsafe { offset(buffer(1).cast(), width, end) };
    let last = usize::try_from(last).map_err(|_| format!("the last offset is negative: {last}"))?;
    if last > 0 && n_buffers > 2 && buffer(2).is_null() {
        return Err(format!("offsets up to {last}, but no data"));
    }
    Ok(last)
}

#[cold]
fn other_shape(array: &ArrowArray, kind: Level) -> String {
    let (n_buffers, n_children) = kind.shape();
    let dictionary = if array.dictionary.is_null() { "" } else { " and a dictionary" };
    format!(
        "the array has {} buffers and {} children{dictionary}, but its type needs {n_buffers} and {n_children}",
        array.n_buffers, array.n_children
    )
}

/// Offset and length together. None: one of them is negative, or no memory holds so many rows; so what is computed from them
/// does not overflow.
#[inline]
fn extent(array: &ArrowArray, kind: Level) -> Option<usize> {
    let end = usize::try_from(array.length).ok()?.checked_add(usize::try_from(array.offset).ok()?)?;
    let width = match kind {
        Level::Fixed(width) | Level::FixedList(width) => width.max(16),
        _ => 16,
    };
    (end.checked_add(1)?.checked_mul(width)? <= isize::MAX as usize).then_some(end)
}

/// The rows that each child of a checked array needs. `last` is its last offset.
#[inline]
pub(super) fn rows_of_children(array: &ArrowArray, level: Level, last: usize) -> usize {
    let end = (array.offset + array.length) as usize;
    match level {
        Level::Struct(_) => end,
        Level::FixedList(width) => end * width,
        _ => last,
    }
}

/// # Safety
/// The buffer has an offset number `i` of that width.
#[inline]
unsafe fn offset(offsets: *const u8, width: usize, i: usize) -> i64 {
    // SAFETY: passed on.
    unsafe {
        match width {
            4 => offsets.cast::<i32>().add(i).read_unaligned().into(),
            _ => offsets.cast::<i64>().add(i).read_unaligned(),
        }
    }
}

/// Checks an array against its schema, children included, so that no reader leaves the memory that it was given. The error
/// names the culprit: "child value, child item: offset 3 decreases".
///
/// # Safety
/// Pointers in both are null or valid; names and formats are NUL-terminated; buffers are as long as lengths and offsets say.
pub unsafe fn check(array: &ArrowArray, schema: &ArrowSchema) -> Result<(), String> {
    // SAFETY: passed on.
    unsafe { Walk { full: false, left: MOST_ARRAYS }.array(array, schema, None, 0) }.map_err(Wrong::text)
}

/// As [`check`], of some rows of an array and of what they consist of. Null counts are not compared. `full`: texts and
/// decimals are checked, too.
///
/// # Safety
/// As for [`check`].
pub unsafe fn check_rows(array: &ArrowArray, schema: &ArrowSchema, rows: Range<usize>, full: bool) -> Result<(), String> {
    // SAFETY: passed on.
    unsafe { Walk { full, left: MOST_ARRAYS }.array(array, schema, Some(rows), 0) }.map_err(Wrong::text)
}

/// What is wrong, and where: the names of children, the innermost first.
struct Wrong {
    path: Vec<String>,
    what: String,
}

impl Wrong {
    fn text(self) -> String {
        let path: Vec<String> = self.path.iter().rev().map(|name| format!("child {name}")).collect();
        if path.is_empty() {
            self.what
        } else {
            format!("{}: {}", path.join(", "), self.what)
        }
    }
}

impl From<String> for Wrong {
    fn from(what: String) -> Wrong {
        Wrong { path: Vec::new(), what }
    }
}

struct Walk {
    full: bool,
    /// Arrays that may still be looked at.
    left: usize,
}

impl Walk {
    /// `rows` None: all of them, of the children too.
    unsafe fn array(&mut self, array: &ArrowArray, schema: &ArrowSchema, rows: Option<Range<usize>>, depth: usize) -> Result<(), Wrong> {
        self.left = self.left.checked_sub(1).filter(|_| depth < MOST_LEVELS).ok_or_else(|| "nested too deeply".to_string())?;
        // SAFETY: passed on; the level's check comes before all that reads the array.
        unsafe {
            let kind = Level::of(schema).map_err(|format| format!("unsupported type {format}"))?;
            let last = level(array, kind)?;
            if rows.is_none() {
                null_count(array, kind)?;
            }
            let all = 0..array.length as usize;
            let needed = rows_of_children(array, kind, last);
            let rows_here = rows.clone().unwrap_or(all.clone());
            if rows_here.end > all.end {
                return Err(format!("{} rows, but {} are needed", all.end, rows_here.end).into());
            }
            // Also of no rows: where they would begin is read by code that takes whole arrays apart.
            let looks = array.length > 0 && (self.full || !rows_here.is_empty());
            if self.full {
                if let Some(decimal) = Decimal::of(schema) {
                    decimals(array, decimal, rows_here.clone())?;
                }
            }
            let range = if looks { self.values(array, kind, rows_here, last)? } else { 0..0 };
            for i in 0..kind.shape().1 {
                let child_schema = child_schema(schema, i)?;
                let checked = match (*array.children.add(i)).as_ref() {
                    None => Err("the array is NULL".to_string().into()),
                    Some(child) => match self.array(child, child_schema, rows.as_ref().map(|_| range.clone()), depth + 1) {
                        Ok(()) if (child.length as usize) < needed => Err(format!("{} rows, but {needed} are needed", child.length).into()),
                        Ok(()) if kind == Level::Map => no_nulls_in_keys(child),
                        checked => checked,
                    },
                };
                checked.map_err(|mut wrong: Wrong| {
                    wrong.path.push(name(child_schema, i));
                    wrong
                })?;
            }
            Ok(())
        }
    }

    /// Checks rows of an array that is not empty; answers the rows of its children that belong to them.
    unsafe fn values(&self, array: &ArrowArray, kind: Level, rows: Range<usize>, last: usize) -> Result<Range<usize>, Wrong> {
        let start = array.offset as usize;
        let (from, to) = (start + rows.start, start + rows.end);
        let Some(width) = kind.offset_width() else {
            return Ok(match kind {
                Level::FixedList(width) => from * width..to * width,
                _ => from..to,
            });
        };
        // SAFETY: a checked array has a buffer of offsets, with one more than offset and length together.
        unsafe {
            let offsets: *const u8 = (*array.buffers.add(1)).cast();
            let decrease = if width == 4 { first_decrease::<i32>(offsets, from, to) } else { first_decrease::<i64>(offsets, from, to) };
            if let Some(i) = decrease {
                return Err(format!("offset {} decreases", i - start).into());
            }
            let (first, end) = (offset(offsets, width, from), offset(offsets, width, to));
            if first < 0 {
                return Err(format!("offset {} is negative", rows.start).into());
            }
            if end as usize > last {
                return Err(format!("offset {} is beyond the last one", rows.end).into());
            }
            if self.full && matches!(kind, Level::Bytes { text: true, .. }) {
                texts(array, offsets, width, rows, start)?;
            }
            Ok(first as usize..end as usize)
        }
    }
}

/// The first offset after `from` and up to `to` that is less than the one before it.
///
/// # Safety
/// The buffer has offsets up to number `to`.
unsafe fn first_decrease<T: Copy + PartialOrd>(offsets: *const u8, from: usize, to: usize) -> Option<usize> {
    // SAFETY: passed on; unaligned reads are allowed.
    let decreases = |i: usize| unsafe {
        let offsets = offsets.cast::<T>().add(i);
        offsets.read_unaligned() < offsets.sub(1).read_unaligned()
    };
    // Without a way out of the loop, so that it compares several offsets at once.
    if (from + 1..=to).fold(false, |any, i| any | decreases(i)) {
        (from + 1..=to).find(|&i| decreases(i))
    } else {
        None
    }
}

/// Checks that the texts of these rows are UTF-8, unless they are null.
///
/// # Safety
/// The array was checked, offsets included, and has texts.
unsafe fn texts(array: &ArrowArray, offsets: *const u8, width: usize, rows: Range<usize>, start: usize) -> Result<(), Wrong> {
    // SAFETY: as promised; a slice of no bytes needs no buffer.
    unsafe {
        let data: *const u8 = (*array.buffers.add(2)).cast();
        let bytes = |from: usize, to: usize| {
            let (from, to) = (offset(offsets, width, start + from) as usize, offset(offsets, width, start + to) as usize);
            if from == to {
                &[]
            } else {
                std::slice::from_raw_parts(data.add(from), to - from)
            }
        };
        if bytes(rows.start, rows.end).is_ascii() {
            return Ok(());
        }
        let validity = validity(array);
        for row in rows {
            if validity.is_none_or(|bitmap| bit(bitmap, start + row)) {
                std::str::from_utf8(bytes(row, row + 1)).map_err(|error| format!("row {row} is not UTF-8: {error}"))?;
            }
        }
        Ok(())
    }
}

/// Checks that these rows are null, or have no more digits than their type.
///
/// # Safety
/// The array was checked, and has decimals of this type.
unsafe fn decimals(array: &ArrowArray, decimal: Decimal, rows: Range<usize>) -> Result<(), Wrong> {
    let start = array.offset as usize;
    // SAFETY: as promised; an array with rows has the buffer.
    unsafe {
        let values: *const u8 = (*array.buffers.add(1)).cast();
        let validity = validity(array);
        for row in rows {
            if !decimal.fits(values, start + row) && validity.is_none_or(|bitmap| bit(bitmap, start + row)) {
                return Err(format!("row {row} has more than {} digits", decimal.digits()).into());
            }
        }
        Ok(())
    }
}

/// The bitmap, unless all rows are known to be valid.
///
/// # Safety
/// The array was checked, and its type has a validity buffer.
unsafe fn validity(array: &ArrowArray) -> Option<*const u8> {
    // SAFETY: as promised.
    let bitmap: *const u8 = unsafe { *array.buffers }.cast();
    (array.null_count != 0 && !bitmap.is_null()).then_some(bitmap)
}

/// Checks that a null count that is known is right: readers allocate what it says, or look at the bitmap all the same.
unsafe fn null_count(array: &ArrowArray, kind: Level) -> Result<(), Wrong> {
    if kind == Level::Null || array.null_count == -1 {
        return Ok(());
    }
    // SAFETY: the array was checked; its bitmap, if it has one, has a bit for each row.
    let counted = unsafe {
        let bitmap: *const u8 = (*array.buffers).cast();
        if bitmap.is_null() {
            0
        } else {
            nulls(bitmap, array.offset as usize, array.length as usize)
        }
    };
    if counted as i64 == array.null_count {
        return Ok(());
    }
    Err(format!("null_count is {}, but {counted} rows are null", array.null_count).into())
}

/// Checks the entries of a map: pyarrow ends the process if one is null, or has a null for a key.
unsafe fn no_nulls_in_keys(entries: &ArrowArray) -> Result<(), Wrong> {
    // SAFETY: the array was checked, children included.
    unsafe {
        if entries.n_children != 2 || entries.n_buffers != 1 {
            return Err("the entries of a map are structs of a key and a value".to_string().into());
        }
        let key = &**entries.children;
        for (array, what) in [(entries, "an entry"), (key, "a key")] {
            let has_bitmap = array.n_buffers > 0;
            let null = match if has_bitmap { validity(array) } else { None } {
                Some(bitmap) => nulls(bitmap, array.offset as usize, array.length as usize) > 0,
                None => !has_bitmap && array.length > 0,
            };
            if null {
                return Err(format!("{what} of a map is null").into());
            }
        }
        Ok(())
    }
}

/// The name of child `i`; its number if it has none.
unsafe fn name(schema: &ArrowSchema, i: usize) -> String {
    if schema.name.is_null() {
        return i.to_string();
    }
    // SAFETY: not null, so NUL-terminated.
    unsafe { CStr::from_ptr(schema.name) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrow::ArrayData;
    use crate::signature::field;

    /// Checks rows of a column of texts, of which the first is null.
    fn check_texts(texts: &[&[u8]], rows: Range<usize>, full: bool) -> Result<(), String> {
        let ends = texts.iter().scan(0, |end, text| {
            *end += text.len() as i32;
            Some(*end)
        });
        let offsets: Vec<i32> = std::iter::once(0).chain(ends).collect();
        let buffers = vec![vec![u64::MAX - 1].into(), offsets.into(), texts.concat().into()];
        let mut array = ArrayData { length: texts.len(), null_count: 1, buffers, children: vec![] }.export();
        // SAFETY: array and schema are whole.
        let checked = unsafe { check_rows(&array, &field(c"", c"u", 0), rows, full) };
        if let Some(release) = array.release {
            // SAFETY: released once.
            unsafe { release(&mut array) };
        }
        checked
    }

    #[test]
    fn text_is_checked_row_by_row_if_it_is_checked_in_full() {
        let texts: [&[u8]; 4] = [b"\xff", b"caf\xc3\xa9", b"caf\xc3", b"\xa9"];
        assert_eq!(check_texts(&texts, 0..4, false), Ok(()));
        assert_eq!(check_texts(&texts, 0..2, true), Ok(()), "bytes below a null are not text");
        for (rows, wrong) in [(0..3, "row 2 is not UTF-8"), (1..4, "row 2 is not UTF-8"), (3..4, "row 3 is not UTF-8")] {
            let text = check_texts(&texts, rows, true).unwrap_err();
            assert!(text.starts_with(wrong), "{text}");
        }
    }
}
