//! Offsets of columns that go out: the one place where lengths become offsets.
//!
//! Guarantees: offsets rise, and never wrap. A value that they do not reach is refused, and leaves them as they were.

use super::data::Buffer;
use std::fmt;

/// 32-bit offsets do not reach so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRoom;

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "there is no room for its value: 32-bit offsets hold 2 GiB of texts or bytes in a batch, and 2,147,483,647 items of \
             lists; send smaller batches, or return a type with 64-bit offsets, such as large_utf8, large_binary or large_list",
        )
    }
}

impl NoRoom {
    /// The errors of rows for whose values there is no room.
    pub fn errors(rows: Vec<usize>) -> impl Iterator<Item = (usize, String)> {
        rows.into_iter().map(|row| (row, NoRoom.to_string()))
    }
}

/// i32 or i64.
pub trait Offset: Copy + Default + Send + 'static {
    /// The largest one.
    fn most() -> usize;

    /// One that is at most [`Offset::most`].
    fn of(end: usize) -> Self;
}

impl Offset for i32 {
    #[inline]
    #[cfg(not(test))]
    fn most() -> usize {
        i32::MAX as usize
    }

    #[cfg(test)]
    fn most() -> usize {
        limit::MOST.get()
    }

    #[inline]
    fn of(end: usize) -> i32 {
        end as i32
    }
}

impl Offset for i64 {
    #[inline]
    fn most() -> usize {
        i64::MAX as usize
    }

    #[inline]
    fn of(end: usize) -> i64 {
        end as i64
    }
}

/// A lower limit of 32-bit offsets, so that a test of it needs no gigabytes.
#[cfg(test)]
pub mod limit {
    use std::cell::Cell;

    thread_local! {
        pub(super) static MOST: Cell<usize> = const { Cell::new(i32::MAX as usize) };
    }

    /// Runs `body` with another limit in this thread.
    pub fn during<R>(most: usize, body: impl FnOnce() -> R) -> R {
        let before = MOST.replace(most);
        let answer = body();
        MOST.set(before);
        answer
    }
}

/// The offsets of a column under construction.
pub struct Offsets<T> {
    offsets: Vec<T>,
    end: usize,
}

impl<T: Offset> Offsets<T> {
    pub fn with_capacity(rows: usize) -> Offsets<T> {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(T::default());
        Offsets { offsets, end: 0 }
    }

    /// Appends a value of so many bytes or items.
    #[inline]
    pub fn push(&mut self, length: usize) -> Result<(), NoRoom> {
        let end = self.end.checked_add(length).filter(|&end| end <= T::most()).ok_or(NoRoom)?;
        self.end = end;
        self.offsets.push(T::of(end));
        Ok(())
    }

    /// Appends values of nothing: nulls.
    #[inline]
    pub fn skip(&mut self, rows: usize) {
        self.offsets.extend(std::iter::repeat_n(T::of(self.end), rows));
    }
}

impl<T: Offset> From<Offsets<T>> for Buffer {
    fn from(offsets: Offsets<T>) -> Buffer {
        offsets.offsets.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_that_32_bits_do_not_reach_is_refused_and_leaves_the_offsets_as_they_were() {
        let mut offsets = Offsets::<i32>::with_capacity(4);
        assert_eq!(offsets.push(i32::MAX as usize), Ok(()));
        for length in [1, usize::MAX, 1 << 32] {
            assert_eq!(offsets.push(length), Err(NoRoom));
        }
        assert_eq!(offsets.push(0), Ok(()));
        offsets.skip(1);
        assert_eq!(offsets.offsets, [0, i32::MAX, i32::MAX, i32::MAX]);
        let mut wide = Offsets::<i64>::with_capacity(1);
        assert_eq!(wide.push(1 << 32), Ok(()));
        assert_eq!(wide.offsets, [0, 1 << 32]);
    }
}
