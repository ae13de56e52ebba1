//! Arrays of one type, one after another -> one array that owns its memory.
//!
//! Assumes arrays that were checked whole ([`check`](super::check())), or that are ours.

use super::bitmap::{bit, Validity};
use super::data::{ArrayData, Buffer};
use super::layout::Layout;
use arroyo_udf_abi::ArrowArray;

/// Rows of an array: `count` from `start` on, its own offset included.
#[derive(Clone, Copy)]
struct Piece<'a> {
    array: &'a ArrowArray,
    start: usize,
    count: usize,
}

/// The rows of all arrays in one, and the arrays released. One array goes through as it is. The error: 32-bit offsets do not
/// reach so far.
///
/// # Safety
/// The arrays have that layout, and were checked with all their values' offsets.
pub unsafe fn concat(layout: &Layout, mut arrays: Vec<ArrowArray>) -> Result<ArrowArray, String> {
    if arrays.len() == 1 {
        return Ok(arrays.swap_remove(0));
    }
    let pieces: Vec<Piece> =
        arrays.iter().map(|array| Piece { array, start: array.offset as usize, count: array.length as usize }).collect();
    // SAFETY: passed on.
    let all = unsafe { joined(layout, &pieces) };
    for array in &mut arrays {
        if let Some(release) = array.release {
            // SAFETY: released once, by its owner.
            unsafe { release(array) };
        }
    }
    all.map(ArrayData::export)
}

/// # Safety
/// The pieces are rows of arrays that were checked against the layout.
unsafe fn joined(layout: &Layout, pieces: &[Piece]) -> Result<ArrayData, String> {
    let length = pieces.iter().map(|piece| piece.count).sum();
    // SAFETY: the pieces were checked, so they have the buffers and children of their layout.
    unsafe {
        let validity = if *layout == Layout::Null { Validity::default() } else { validity(pieces, length) };
        let null_count = validity.nulls();
        let (buffers, children) = match layout {
            Layout::Null => return Ok(ArrayData { length, null_count: length, buffers: vec![], children: vec![] }),
            Layout::Bool => {
                let mut bits = Validity::with_capacity(length);
                for piece in pieces {
                    let values = piece.buffer(1).cast::<u8>();
                    (piece.start..piece.end()).for_each(|i| bits.push(bit(values, i)));
                }
                (vec![validity.into_buffer(), bits.into_bits()], vec![])
            }
            Layout::Fixed(width) => (vec![validity.into_buffer(), fixed(pieces, *width, length)], vec![]),
            Layout::Bytes | Layout::Text => {
                let (offsets, spans) = offsets32(pieces, length)?;
                (vec![validity.into_buffer(), offsets, data(&spans)], vec![])
            }
            Layout::LargeBytes | Layout::LargeText => {
                let (offsets, spans) = offsets64(pieces, length);
                (vec![validity.into_buffer(), offsets, data(&spans)], vec![])
            }
            Layout::List(item) => {
                let (offsets, spans) = offsets32(pieces, length)?;
                (vec![validity.into_buffer(), offsets], vec![items(item, &spans)?])
            }
            Layout::LargeList(item) => {
                let (offsets, spans) = offsets64(pieces, length);
                (vec![validity.into_buffer(), offsets], vec![items(item, &spans)?])
            }
            Layout::FixedList(width, item) => {
                let spans: Vec<Piece> = pieces.iter().map(|p| Piece { start: p.start * width, count: p.count * width, ..*p }).collect();
                (vec![validity.into_buffer()], vec![items(item, &spans)?])
            }
            Layout::Struct(fields) => {
                let child = |i: usize| {
                    let parts: Vec<Piece> = pieces.iter().map(|piece| piece.child(i)).collect();
                    joined(&fields[i], &parts).map(ArrayData::export)
                };
                (vec![validity.into_buffer()], all_or_none((0..fields.len()).map(child))?)
            }
        };
        Ok(ArrayData { length, null_count, buffers, children })
    }
}

/// The arrays, or the first error and none of them.
fn all_or_none(arrays: impl Iterator<Item = Result<ArrowArray, String>>) -> Result<Vec<ArrowArray>, String> {
    let mut made = Vec::new();
    for array in arrays {
        match array {
            Ok(array) => made.push(array),
            Err(text) => {
                for array in &mut made {
                    if let Some(release) = array.release {
                        // SAFETY: ours, released once.
                        unsafe { release(array) };
                    }
                }
                return Err(text);
            }
        }
    }
    Ok(made)
}

impl Piece<'_> {
    fn end(&self) -> usize {
        self.start + self.count
    }

    /// # Safety
    /// The array has this buffer.
    unsafe fn buffer(&self, i: usize) -> *const std::ffi::c_void {
        // SAFETY: passed on.
        unsafe { *self.array.buffers.add(i) }
    }

    /// The same rows of a child; those of a list's items are counted by the caller.
    ///
    /// # Safety
    /// The array has this child.
    unsafe fn child(&self, i: usize) -> Piece<'_> {
        // SAFETY: passed on; a checked array's children are not null.
        let array = unsafe { &**self.array.children.add(i) };
        Piece { array, start: self.start + array.offset as usize, count: self.count }
    }

    /// # Safety
    /// As for `joined`; `offset` reads the offset number `i` of the array.
    unsafe fn span(&self, offset: impl Fn(usize) -> i64) -> (i64, Piece<'_>) {
        if self.count == 0 {
            return (0, Piece { start: 0, count: 0, ..*self });
        }
        let (first, last) = (offset(self.start), offset(self.end()));
        (first, Piece { start: first as usize, count: (last - first) as usize, ..*self })
    }
}

/// # Safety
/// As for `joined`.
unsafe fn validity(pieces: &[Piece], length: usize) -> Validity {
    // SAFETY: every layout but Null has a validity buffer first; a null one means that all rows are valid.
    let bitmap = |piece: &Piece| if piece.array.null_count == 0 { std::ptr::null() } else { unsafe { piece.buffer(0) }.cast::<u8>() };
    let mut all = Validity::default();
    if pieces.iter().all(|piece| bitmap(piece).is_null()) {
        return all;
    }
    all = Validity::with_capacity(length);
    for piece in pieces {
        let bits = bitmap(piece);
        // SAFETY: the bitmap is as long as offset and length say.
        (piece.start..piece.end()).for_each(|i| all.push(bits.is_null() || unsafe { bit(bits, i) }));
    }
    all
}

/// # Safety
/// As for `joined`.
unsafe fn fixed(pieces: &[Piece], width: usize, length: usize) -> Buffer {
    let mut words = vec![0u64; (length * width).div_ceil(8)]; // aligned for any type
    let mut into = words.as_mut_ptr().cast::<u8>();
    for piece in pieces.iter().filter(|piece| piece.count > 0) {
        // SAFETY: the source has offset + length values, and the words are as many bytes as all pieces together.
        unsafe {
            let from = piece.buffer(1).cast::<u8>().add(piece.start * width);
            std::ptr::copy_nonoverlapping(from, into, piece.count * width);
            into = into.add(piece.count * width);
        }
    }
    words.into()
}

/// New offsets, and for each piece the span of its data or items.
///
/// # Safety
/// As for `joined`; the layout has 32-bit offsets.
unsafe fn offsets32<'a>(pieces: &'a [Piece], length: usize) -> Result<(Buffer, Vec<Piece<'a>>), String> {
    let mut offsets: Vec<i32> = Vec::with_capacity(length + 1);
    let (mut spans, mut end) = (Vec::with_capacity(pieces.len()), 0i64);
    offsets.push(0);
    for piece in pieces {
        // SAFETY: a checked array has length + 1 offsets after its own offset; a piece without rows reads none.
        unsafe {
            let values = piece.buffer(1).cast::<i32>();
            let (first, span) = piece.span(|i| i64::from(values.add(i).read_unaligned()));
            if end + span.count as i64 > i64::from(i32::MAX) {
                return Err(
                    "the results of the batch have more than 2 GiB; send smaller batches, or return a type with 64-bit offsets".into()
                );
            }
            let moved = end - first;
            offsets.extend((0..piece.count).map(|i| (i64::from(values.add(piece.start + i + 1).read_unaligned()) + moved) as i32));
            end += span.count as i64;
            spans.push(span);
        }
    }
    Ok((offsets.into(), spans))
}

/// As `offsets32`, for 64-bit offsets.
///
/// # Safety
/// As for `joined`; the layout has 64-bit offsets.
unsafe fn offsets64<'a>(pieces: &'a [Piece], length: usize) -> (Buffer, Vec<Piece<'a>>) {
    let mut offsets: Vec<i64> = Vec::with_capacity(length + 1);
    let (mut spans, mut end) = (Vec::with_capacity(pieces.len()), 0i64);
    offsets.push(0);
    for piece in pieces {
        // SAFETY: as in `offsets32`.
        unsafe {
            let values = piece.buffer(1).cast::<i64>();
            let (first, span) = piece.span(|i| values.add(i).read_unaligned());
            let moved = end - first;
            offsets.extend((0..piece.count).map(|i| values.add(piece.start + i + 1).read_unaligned() + moved));
            end += span.count as i64;
            spans.push(span);
        }
    }
    (offsets.into(), spans)
}

/// The bytes of variable-length values.
///
/// # Safety
/// The spans are within the data of their arrays.
unsafe fn data(spans: &[Piece]) -> Buffer {
    let mut all = Vec::with_capacity(spans.iter().map(|span| span.count).sum());
    for span in spans.iter().filter(|span| span.count > 0) {
        // SAFETY: passed on; an array with bytes has the buffer.
        all.extend_from_slice(unsafe { std::slice::from_raw_parts(span.buffer(2).cast::<u8>().add(span.start), span.count) });
    }
    all.into()
}

/// The items of lists. A span counts items from the child's own beginning.
///
/// # Safety
/// The spans are within the children of their arrays.
unsafe fn items(item: &Layout, spans: &[Piece]) -> Result<ArrowArray, String> {
    // SAFETY: passed on.
    unsafe {
        let parts: Vec<Piece> = spans.iter().map(|span| span.child(0)).collect();
        joined(item, &parts).map(ArrayData::export)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrow::{build, Column};
    use crate::value::Value;
    use proptest::prelude::*;

    fn layouts() -> impl Strategy<Value = Layout> {
        let leaf = prop_oneof![
            Just(Layout::Null),
            Just(Layout::Bool),
            prop_oneof![Just(1), Just(3), Just(8), Just(16), Just(32)].prop_map(Layout::Fixed),
            Just(Layout::Bytes),
            Just(Layout::LargeText),
        ];
        leaf.prop_recursive(3, 8, 3, |inner| {
            prop_oneof![
                inner.clone().prop_map(|item| Layout::List(Box::new(item))),
                inner.clone().prop_map(|item| Layout::LargeList(Box::new(item))),
                (0..3usize, inner.clone()).prop_map(|(width, item)| Layout::FixedList(width, Box::new(item))),
                prop::collection::vec(inner, 0..3).prop_map(Layout::Struct),
            ]
        })
    }

    fn values(layout: &Layout) -> BoxedStrategy<Value> {
        let nested = |values: Vec<Value>| Value::Nested(values.into());
        let some = match layout {
            Layout::Null => return Just(Value::Null).boxed(),
            Layout::Bool => (0..2u64).prop_map(Value::Fixed).boxed(),
            Layout::Fixed(width) if *width <= 8 => {
                let unused = 64 - 8 * *width as u32;
                any::<u64>().prop_map(move |x| Value::Fixed(x >> unused)).boxed()
            }
            Layout::Fixed(16) => any::<[u64; 2]>().prop_map(Value::Wide).boxed(),
            Layout::Fixed(width) => prop::collection::vec(any::<u8>(), *width).prop_map(|b| Value::Bytes(b.into())).boxed(),
            Layout::Bytes | Layout::Text | Layout::LargeBytes | Layout::LargeText => {
                "[a-z]{0,5}".prop_map(|text| Value::Bytes(text.into_bytes().into())).boxed()
            }
            Layout::List(item) | Layout::LargeList(item) => prop::collection::vec(values(item), 0..4).prop_map(nested).boxed(),
            Layout::FixedList(width, item) => prop::collection::vec(values(item), *width).prop_map(nested).boxed(),
            Layout::Struct(fields) => fields.iter().map(values).collect::<Vec<_>>().prop_map(nested).boxed(),
        };
        prop_oneof![1 => Just(Value::Null), 3 => some].boxed()
    }

    /// A layout, its values, and places at which they are cut.
    fn cases() -> impl Strategy<Value = (Layout, Vec<Value>, Vec<usize>)> {
        layouts().prop_flat_map(|layout| {
            let rows = prop::collection::vec(values(&layout), 0..80);
            (Just(layout), rows, prop::collection::vec(0..80usize, 1..4))
        })
    }

    fn released(mut array: ArrowArray) {
        if let Some(release) = array.release {
            // SAFETY: ours, released once.
            unsafe { release(&mut array) };
        }
    }

    proptest! {
        #[test]
        fn what_was_cut_is_whole_again((layout, rows, cuts) in cases(), before in 0..10usize) {
            let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (rows.len() + 1)).chain([0, rows.len()]).collect();
            ends.sort_unstable();
            // Each part has rows before its own, which its offset leaves out.
            let parts = ends.windows(2).map(|ends| {
                let skipped = rows.iter().cycle().take(if rows.is_empty() { 0 } else { before });
                let with_skipped: Vec<&Value> = skipped.chain(&rows[ends[0]..ends[1]]).collect();
                let mut array = build(&layout, with_skipped.iter().copied()).export();
                let skipped = array.length - (ends[1] - ends[0]) as i64;
                (array.offset, array.length) = (skipped, array.length - skipped);
                array
            });
            // SAFETY: the arrays are built for the layout.
            let whole = unsafe { concat(&layout, parts.collect()) }.unwrap();
            // SAFETY: as above.
            let column = unsafe { Column::new(&whole, &layout, "whole") }.unwrap();
            let read: Vec<Value> = (0..whole.length as usize).map(|row| column.value(&layout, row).unwrap()).collect();
            prop_assert_eq!(read, rows);
            drop(column);
            released(whole);
        }
    }
}
