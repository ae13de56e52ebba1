//! Columns of results under construction: a row's value goes in, the array comes out.
//!
//! Guarantees: each row takes one place, also a null; a panic of the author's code leaves the builder as it was before that
//! row. Assumes that each row is filled or skipped once, in order; the loop in `sync.rs` does so.

use crate::arrow::{ArrayData, Buffer, NoRoom, Offsets, Validity};
use crate::value::Value;

/// Builds a column of results. Each row is filled or skipped once, in order.
pub trait Builder {
    type Item;

    fn new(rows: usize) -> Self;

    /// Fills the rows from `position.row` to `end` with what `call` returns; `None` is null. If `call` panics,
    /// `position.row` is its row, and all rows before it are filled.
    fn fill(&mut self, position: &mut Position<'_>, end: usize, call: impl FnMut(usize) -> Option<Self::Item>);

    /// Makes the rows `start .. end` null.
    fn skip(&mut self, start: usize, end: usize);

    /// Rows whose value did not fit into the column. They are null there, and errors for the host.
    fn without_room(&mut self) -> Vec<usize> {
        Vec::new()
    }

    /// The column.
    ///
    /// # Safety
    /// Each row was filled or skipped, and `validity` has the same number of rows.
    unsafe fn finish(self, validity: Validity) -> ArrayData;

    /// A single value: an async function's result until it is drained.
    fn value(item: Self::Item) -> Value;
}

/// The current row. It is written back on drop: code that cannot panic keeps it in a register, and after a panic it still
/// names the row.
pub struct Position<'a> {
    pub row: usize,
    written_back: &'a mut usize,
}

impl<'a> Position<'a> {
    pub fn new(written_back: &'a mut usize) -> Self {
        Position { row: *written_back, written_back }
    }
}

impl Drop for Position<'_> {
    #[inline]
    fn drop(&mut self) {
        *self.written_back = self.row;
    }
}

/// A number as a buffer holds it.
pub trait Number: Copy + Default + Send + 'static {
    /// Its little-endian bytes, zero-extended.
    fn bits(self) -> u64;
}

/// A column of numbers. The buffer is not zeroed first, because each row is written exactly once.
pub struct Numbers<T> {
    values: Vec<T>,
    rows: usize,
}

impl<T: Number> Builder for Numbers<T> {
    type Item = T;

    fn new(rows: usize) -> Self {
        Numbers { values: Vec::with_capacity(rows), rows }
    }

    #[inline]
    fn fill(&mut self, position: &mut Position<'_>, end: usize, mut call: impl FnMut(usize) -> Option<T>) {
        assert!(end <= self.rows);
        let values = self.values.as_mut_ptr();
        let mut row = Position { row: position.row, written_back: &mut position.row };
        while row.row < end {
            let value = call(row.row).unwrap_or_default();
            // SAFETY: row < end <= rows, the capacity.
            unsafe { values.add(row.row).write(value) };
            row.row += 1;
        }
    }

    #[inline]
    fn skip(&mut self, start: usize, end: usize) {
        assert!(end <= self.rows);
        for row in start..end {
            // SAFETY: row < end <= rows, the capacity.
            unsafe { self.values.as_mut_ptr().add(row).write(T::default()) };
        }
    }

    unsafe fn finish(mut self, validity: Validity) -> ArrayData {
        // SAFETY: the caller promises that every row was written.
        unsafe { self.values.set_len(self.rows) };
        column(validity, vec![self.values.into()])
    }

    fn value(item: T) -> Value {
        Value::Fixed(item.bits())
    }
}

/// A column of booleans.
pub struct Booleans {
    words: Vec<u64>,
}

impl Builder for Booleans {
    type Item = bool;

    fn new(rows: usize) -> Self {
        Booleans { words: vec![0; rows.div_ceil(64)] }
    }

    #[inline]
    fn fill(&mut self, position: &mut Position<'_>, end: usize, mut call: impl FnMut(usize) -> Option<bool>) {
        while position.row < end {
            let value = call(position.row).unwrap_or_default();
            self.words[position.row >> 6] |= u64::from(value) << (position.row & 63);
            position.row += 1;
        }
    }

    fn skip(&mut self, _start: usize, _end: usize) {}

    unsafe fn finish(self, validity: Validity) -> ArrayData {
        column(validity, vec![self.words.into()])
    }

    fn value(item: bool) -> Value {
        Value::Fixed(u64::from(item))
    }
}

/// A column of text or bytes; `T` is what the function returned.
pub struct Bytes<T> {
    offsets: Offsets<i32>,
    data: Vec<u8>,
    without_room: Vec<usize>,
    items: std::marker::PhantomData<T>,
}

impl<T: AsRef<[u8]>> Builder for Bytes<T> {
    type Item = T;

    fn new(rows: usize) -> Self {
        let offsets = Offsets::with_capacity(rows);
        Bytes { offsets, data: Vec::new(), without_room: Vec::new(), items: std::marker::PhantomData }
    }

    fn fill(&mut self, position: &mut Position<'_>, end: usize, mut call: impl FnMut(usize) -> Option<T>) {
        while position.row < end {
            let item = call(position.row);
            match item.as_ref().map(AsRef::as_ref) {
                None => self.offsets.skip(1),
                Some(bytes) => match self.offsets.push(bytes.len()) {
                    Ok(()) => self.data.extend_from_slice(bytes),
                    Err(NoRoom) => {
                        self.without_room.push(position.row);
                        self.offsets.skip(1);
                    }
                },
            }
            position.row += 1;
        }
    }

    fn skip(&mut self, start: usize, end: usize) {
        self.offsets.skip(end - start);
    }

    fn without_room(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.without_room)
    }

    unsafe fn finish(self, validity: Validity) -> ArrayData {
        column(validity, vec![self.offsets.into(), self.data.into()])
    }

    fn value(item: T) -> Value {
        Value::Bytes(item.as_ref().into())
    }
}

fn column(validity: Validity, values: Vec<Buffer>) -> ArrayData {
    let (length, null_count) = (validity.len(), validity.nulls());
    let buffers = std::iter::once(validity.into_buffer()).chain(values).collect();
    ArrayData { length, null_count, buffers, children: vec![] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrow::limit;

    #[test]
    fn text_that_32_bit_offsets_do_not_reach_has_no_room() {
        let bytes = limit::during(3, || {
            let mut bytes = Bytes::new(4);
            bytes.fill(&mut Position::new(&mut 0), 4, |row| ["ab", "cd", "", "e"].get(row));
            bytes
        });
        assert_eq!(bytes.without_room, [1]);
        assert_eq!(bytes.data, b"abe");
    }

    #[test]
    fn the_position_survives_a_panic() {
        let mut next = 0;
        let mut numbers = Numbers::<i64>::new(10);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            numbers.fill(&mut Position::new(&mut next), 10, |row| if row == 7 { std::panic::resume_unwind(Box::new(())) } else { Some(1) });
        }));
        assert!(panicked.is_err());
        assert_eq!(next, 7);
    }
}
