//! Arrays of one type, one after another -> one array that owns its memory.
//!
//! Assumes arrays that were checked whole ([`check`](super::check())), or that are ours.

use super::bitmap::{bit, Validity};
use super::build::build;
use super::data::{ArrayData, Buffer};
use super::layout::Layout;
use super::offsets::{NoRoom, Offset, Offsets};
use crate::value::Value;
use arroyo_udf_abi::ArrowArray;

/// Rows of an array: `count` from `start` on, its own offset included.
#[derive(Clone, Copy)]
struct Piece<'a> {
    array: &'a ArrowArray,
    start: usize,
    count: usize,
}

/// The rows of all arrays in one, and the arrays released. One array goes through as it is. Also the rows for whose values
/// there is no room, which are null.
///
/// # Safety
/// The arrays have that layout, and were checked with all their values' offsets.
pub unsafe fn concat(layout: &Layout, mut arrays: Vec<ArrowArray>) -> (ArrowArray, Vec<usize>) {
    if arrays.len() == 1 {
        return (arrays.swap_remove(0), Vec::new());
    }
    let pieces: Vec<Piece> =
        arrays.iter().map(|array| Piece { array, start: array.offset as usize, count: array.length as usize }).collect();
    // SAFETY: passed on.
    let all = unsafe { joined(layout, &pieces).map_or_else(|NoRoom| joined_with_room(layout, &pieces), |all| (all, Vec::new())) };
    for array in &mut arrays {
        if let Some(release) = array.release {
            // SAFETY: released once, by its owner.
            unsafe { release(array) };
        }
    }
    (all.0.export(), all.1)
}

/// As [`joined`], with null in the rows for whose values there is no room. As in [`super::build_with_room`], what a row adds to
/// all buffers is summed up.
///
/// # Safety
/// As for `joined`.
unsafe fn joined_with_room(layout: &Layout, pieces: &[Piece]) -> (ArrayData, Vec<usize>) {
    let Ok(null) = build(layout, std::iter::once(&Value::Null)) else { unreachable!("a null needs no room") };
    let mut null = null.export();
    let (mut taken, mut row, mut without_room) = (0, 0, Vec::new());
    let mut fitting: Vec<Piece> = Vec::new();
    for piece in pieces {
        for start in piece.start..piece.end() {
            let one = Piece { start, count: 1, ..*piece };
            // SAFETY: a row of a piece.
            let end = taken + unsafe { narrow(layout, one) };
            if end <= i32::most() {
                taken = end;
                match fitting.last_mut() {
                    Some(last) if std::ptr::eq(last.array, piece.array) && last.end() == start => last.count += 1,
                    _ => fitting.push(one),
                }
            } else {
                without_room.push(row);
                fitting.push(Piece { array: &null, start: 0, count: 1 });
            }
            row += 1;
        }
    }
    // SAFETY: passed on; the null was built for the layout.
    let Ok(all) = (unsafe { joined(layout, &fitting) }) else { unreachable!("no buffer gets more than all of them together") };
    if let Some(release) = null.release {
        // SAFETY: ours, released once.
        unsafe { release(&mut null) };
    }
    (all, without_room)
}

/// The bytes and items that a piece adds to buffers with 32-bit offsets, all of them together.
///
/// # Safety
/// As for `joined`.
unsafe fn narrow(layout: &Layout, piece: Piece) -> usize {
    // SAFETY: passed on.
    unsafe {
        match layout {
            Layout::Bytes | Layout::Text => piece.span::<i32>().count,
            Layout::List(item) => {
                let span = piece.span::<i32>();
                span.count + narrow(item, span.child(0))
            }
            Layout::LargeList(item) => narrow(item, piece.span::<i64>().child(0)),
            Layout::FixedList(width, item) => {
                narrow(item, Piece { start: piece.start * width, count: piece.count * width, ..piece }.child(0))
            }
            Layout::Struct(fields) => fields.iter().enumerate().map(|(i, field)| narrow(field, piece.child(i))).sum(),
            _ => 0,
        }
    }
}

/// # Safety
/// The pieces are rows of arrays that were checked against the layout.
unsafe fn joined(layout: &Layout, pieces: &[Piece]) -> Result<ArrayData, NoRoom> {
    let length = pieces.iter().map(|piece| piece.count).sum();
    if *layout == Layout::Null {
        return Ok(ArrayData { length, null_count: length, buffers: vec![], children: vec![] });
    }
    // SAFETY: the pieces were checked, so they have the buffers and children of their layout.
    unsafe {
        let validity = validity(pieces, length);
        let mut all = ArrayData { length, null_count: validity.nulls(), buffers: vec![validity.into_buffer()], children: vec![] };
        match layout {
            Layout::Null => {}
            Layout::Bool => {
                let mut bits = Validity::with_capacity(length);
                for piece in pieces {
                    let values = piece.buffer(1).cast::<u8>();
                    (piece.start..piece.end()).for_each(|i| bits.push(bit(values, i)));
                }
                all.buffers.push(bits.into_bits());
            }
            Layout::Fixed(width) => all.buffers.push(fixed(pieces, *width, length)),
            Layout::Bytes | Layout::Text => all.buffers.extend([offsets::<i32>(pieces, length)?, data(&spans::<i32>(pieces))]),
            Layout::LargeBytes | Layout::LargeText => {
                all.buffers.extend([offsets::<i64>(pieces, length)?, data(&spans::<i64>(pieces))]);
            }
            Layout::List(item) => {
                all.buffers.push(offsets::<i32>(pieces, length)?);
                all.children.push(items(item, &spans::<i32>(pieces))?);
            }
            Layout::LargeList(item) => {
                all.buffers.push(offsets::<i64>(pieces, length)?);
                all.children.push(items(item, &spans::<i64>(pieces))?);
            }
            Layout::FixedList(width, item) => {
                let spans: Vec<Piece> = pieces.iter().map(|p| Piece { start: p.start * width, count: p.count * width, ..*p }).collect();
                all.children.push(items(item, &spans)?);
            }
            Layout::Struct(fields) => {
                for (i, field) in fields.iter().enumerate() {
                    let parts: Vec<Piece> = pieces.iter().map(|piece| piece.child(i)).collect();
                    all.children.push(joined(field, &parts)?.export());
                }
            }
        }
        Ok(all)
    }
}

impl<'a> Piece<'a> {
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
    unsafe fn child(&self, i: usize) -> Piece<'a> {
        // SAFETY: passed on; a checked array's children are not null.
        let array = unsafe { &**self.array.children.add(i) };
        Piece { array, start: self.start + array.offset as usize, count: self.count }
    }

    /// Offset number `i` of the array.
    ///
    /// # Safety
    /// The array has offsets of that width, and this one.
    unsafe fn offset<T: Offset + Into<i64>>(&self, i: usize) -> usize {
        // SAFETY: passed on; offsets may be unaligned. They are not negative, because they were checked.
        unsafe { self.buffer(1).cast::<T>().add(i).read_unaligned() }.into() as usize
    }

    /// The rows of the data or items that belong to these rows.
    ///
    /// # Safety
    /// As for `joined`; the array has offsets of that width.
    unsafe fn span<T: Offset + Into<i64>>(&self) -> Piece<'a> {
        if self.count == 0 {
            return Piece { start: 0, ..*self };
        }
        // SAFETY: a checked array has length + 1 offsets after its own offset.
        let (start, end) = unsafe { (self.offset::<T>(self.start), self.offset::<T>(self.end())) };
        Piece { start, count: end - start, ..*self }
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

/// New offsets.
///
/// # Safety
/// As for `joined`; the layout has offsets of that width.
unsafe fn offsets<T: Offset + Into<i64>>(pieces: &[Piece], length: usize) -> Result<Buffer, NoRoom> {
    let mut offsets = Offsets::<T>::with_capacity(length);
    for piece in pieces {
        // SAFETY: a checked array has length + 1 offsets after its own offset, in rising order.
        (piece.start..piece.end()).try_for_each(|i| offsets.push(unsafe { piece.offset::<T>(i + 1) - piece.offset::<T>(i) }))?;
    }
    Ok(offsets.into())
}

/// For each piece the span of its data or items.
///
/// # Safety
/// As for `joined`; the layout has offsets of that width.
unsafe fn spans<'a, T: Offset + Into<i64>>(pieces: &[Piece<'a>]) -> Vec<Piece<'a>> {
    // SAFETY: passed on.
    pieces.iter().map(|piece| unsafe { piece.span::<T>() }).collect()
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
unsafe fn items(item: &Layout, spans: &[Piece]) -> Result<ArrowArray, NoRoom> {
    // SAFETY: passed on.
    unsafe {
        let parts: Vec<Piece> = spans.iter().map(|span| span.child(0)).collect();
        joined(item, &parts).map(ArrayData::export)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrow::{build_with_room, limit, Column};
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

    /// The rows of an array, which is released.
    fn read(layout: &Layout, array: ArrowArray) -> Vec<Value> {
        // SAFETY: the array is built for the layout.
        let column = unsafe { Column::new(&array, layout, "whole") }.unwrap();
        let rows = (0..array.length as usize).map(|row| column.value(layout, row).unwrap()).collect();
        drop(column);
        released(array);
        rows
    }

    proptest! {
        #[test]
        fn a_row_without_room_is_null_and_the_others_are_whole((layout, rows, cuts) in cases(), most in 0..60usize) {
            let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (rows.len() + 1)).chain([0, rows.len()]).collect();
            ends.sort_unstable();
            let parts = ends.windows(2).map(|ends| build(&layout, rows[ends[0]..ends[1]].iter()).unwrap().export()).collect();
            let (built, without_room) = limit::during(most, || build_with_room(&layout, rows.iter()));
            // SAFETY: the arrays are built for the layout.
            let (joined, without_room_joined) = limit::during(most, || unsafe { concat(&layout, parts) });
            prop_assert_eq!(&without_room, &without_room_joined);
            let expected = rows.iter().enumerate().map(|(row, value)| if without_room.contains(&row) { Value::Null } else { value.clone() });
            let expected: Vec<Value> = expected.collect();
            prop_assert_eq!(read(&layout, built.export()), &expected[..]);
            prop_assert_eq!(read(&layout, joined), expected);
        }

        #[test]
        fn what_was_cut_is_whole_again((layout, rows, cuts) in cases(), before in 0..10usize) {
            let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (rows.len() + 1)).chain([0, rows.len()]).collect();
            ends.sort_unstable();
            // Each part has rows before its own, which its offset leaves out.
            let parts = ends.windows(2).map(|ends| {
                let skipped = rows.iter().cycle().take(if rows.is_empty() { 0 } else { before });
                let with_skipped: Vec<&Value> = skipped.chain(&rows[ends[0]..ends[1]]).collect();
                let mut array = build(&layout, with_skipped.iter().copied()).unwrap().export();
                let skipped = array.length - (ends[1] - ends[0]) as i64;
                (array.offset, array.length) = (skipped, array.length - skipped);
                array
            });
            // SAFETY: the arrays are built for the layout.
            let (whole, without_room) = unsafe { concat(&layout, parts.collect()) };
            prop_assert!(without_room.is_empty());
            prop_assert_eq!(read(&layout, whole), rows);
        }
    }
}
