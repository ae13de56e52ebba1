//! Aggregates (F8): the state of a group as bytes, and what the steps of `#[udaf]` call.
//!
//! A state crosses the boundary as Arrow binary: the fields one behind the other, little-endian, texts and lists with their
//! length in 8 bytes before them.
//!
//! Guarantees: bytes from outside are checked. What no `store` has written is an error of its row, and nothing is allocated
//! for items that are not there.

use super::types::ArgumentType;
use crate::arrow::{Column, BAD_OFFSETS};
use std::ffi::CStr;
use std::fmt::Display;
use std::ops::Range;

/// A state that can be kept as bytes, and read again. `#[derive(State)]` implements it for a struct of such fields.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be in the state of an aggregate",
    label = "this has no bytes",
    note = "write one of: bool, i8 to i128, u8 to u128, usize, f32, f64, char, String; a Vec, an Option or an array of such; or a struct with #[derive(State)]"
)]
pub trait State: Sized {
    /// How deep a value nests. A type that holds itself has no such number, so the compiler finds a cycle here: bytes from
    /// outside could nest until the stack is full. Keep the levels in a list instead, with the number of each one's parent.
    const LEVELS: usize;

    /// Appends the value's bytes.
    fn store(&self, to: &mut Vec<u8>);

    /// Reads a value, and moves `from` behind it. None: these are not the bytes of one.
    fn restore(from: &mut &[u8]) -> Option<Self>;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl State for $number {
            const LEVELS: usize = 1;

            fn store(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }

            fn restore(from: &mut &[u8]) -> Option<Self> {
                let (bytes, rest) = from.split_first_chunk()?;
                *from = rest;
                Some(<$number>::from_le_bytes(*bytes))
            }
        }
    )*};
}

numbers!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, f32, f64);

impl State for bool {
    const LEVELS: usize = 1;

    fn store(&self, to: &mut Vec<u8>) {
        to.push(u8::from(*self));
    }

    fn restore(from: &mut &[u8]) -> Option<Self> {
        match u8::restore(from)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl State for char {
    const LEVELS: usize = 1;

    fn store(&self, to: &mut Vec<u8>) {
        u32::from(*self).store(to);
    }

    fn restore(from: &mut &[u8]) -> Option<Self> {
        char::from_u32(u32::restore(from)?)
    }
}

/// A length; None if it is larger than what follows, in which each item has at least one byte.
fn length(from: &mut &[u8]) -> Option<usize> {
    usize::try_from(u64::restore(from)?).ok().filter(|length| *length <= from.len())
}

impl State for String {
    const LEVELS: usize = 1;

    fn store(&self, to: &mut Vec<u8>) {
        (self.len() as u64).store(to);
        to.extend_from_slice(self.as_bytes());
    }

    fn restore(from: &mut &[u8]) -> Option<Self> {
        let length = length(from)?;
        let (bytes, rest) = from.split_at(length);
        *from = rest;
        String::from_utf8(bytes.to_vec()).ok()
    }
}

impl<T: State> State for Vec<T> {
    const LEVELS: usize = 1 + T::LEVELS;

    fn store(&self, to: &mut Vec<u8>) {
        (self.len() as u64).store(to);
        self.iter().for_each(|item| item.store(to));
    }

    fn restore(from: &mut &[u8]) -> Option<Self> {
        let length = length(from)?;
        (0..length).map(|_| T::restore(from)).collect()
    }
}

impl<T: State> State for Option<T> {
    const LEVELS: usize = 1 + T::LEVELS;

    fn store(&self, to: &mut Vec<u8>) {
        self.is_some().store(to);
        self.iter().for_each(|value| value.store(to));
    }

    fn restore(from: &mut &[u8]) -> Option<Self> {
        Some(if bool::restore(from)? { Some(T::restore(from)?) } else { None })
    }
}

impl<T: State, const N: usize> State for [T; N] {
    const LEVELS: usize = 1 + T::LEVELS;

    fn store(&self, to: &mut Vec<u8>) {
        self.iter().for_each(|item| item.store(to));
    }

    fn restore(from: &mut &[u8]) -> Option<Self> {
        let items: Option<Vec<T>> = (0..N).map(|_| T::restore(from)).collect();
        items?.try_into().ok()
    }
}

/// The group of a state, or a new one. The error is the row's.
pub fn opened<S: State + Default>(state: Option<&[u8]>) -> Result<S, String> {
    const { assert!(S::LEVELS > 0) }
    let Some(mut bytes) = state else { return Ok(S::default()) };
    let group = S::restore(&mut bytes).filter(|_| bytes.is_empty());
    group.ok_or_else(|| "the state is not one of this aggregate".to_string())
}

/// The state of a group.
pub fn kept<S: State>(group: &S) -> Vec<u8> {
    let mut state = Vec::new();
    group.store(&mut state);
    state
}

/// What `update` and `merge` may return: nothing, or a `Result` whose error has `Display`.
#[diagnostic::on_unimplemented(
    message = "`update` and `merge` cannot return `{Self}`",
    note = "write no result, or `Result<(), E>`, whose error has Display; `finish` returns the value"
)]
pub trait Done {
    fn done(self) -> Result<(), String>;
}

impl Done for () {
    fn done(self) -> Result<(), String> {
        Ok(())
    }
}

impl<E: Display> Done for Result<(), E> {
    fn done(self) -> Result<(), String> {
        self.map_err(|error| error.to_string())
    }
}

/// The new rows of a group in one argument: a list, whose items are read one by one.
pub struct Rows<'a, T: ArgumentType<'a>> {
    items: &'a Column,
    view: T::View,
    range: Range<usize>,
}

impl<'a, T: ArgumentType<'a>> Rows<'a, T> {
    pub fn len(&self) -> usize {
        self.range.len()
    }

    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// A row's value. None: it is null and cannot be, so the row is left out.
    #[inline]
    pub fn get(&self, row: usize) -> Result<Option<T>, String> {
        let row = self.range.start + row;
        assert!(row < self.range.end);
        if !T::NULLABLE && !self.items.is_valid(row) {
            return Ok(None);
        }
        // SAFETY: the range is within the column of items, which has the layout of `T`; the row is valid if it must be.
        unsafe { T::read(self.view, row) }.map(Some)
    }
}

impl<'a, T: ArgumentType<'a>> ArgumentType<'a> for Rows<'a, T> {
    const FORMAT: &'static CStr = c"+l";
    const ITEM: Option<&'static CStr> = {
        assert!(T::ITEM.is_none(), "an argument of `update` is the value of one row, and cannot be a list: write `i64` for `Vec<i64>`");
        Some(T::FORMAT)
    };
    type View = &'a Column;

    fn view(column: &'a Column) -> Self::View {
        column
    }

    unsafe fn read(view: Self::View, row: usize) -> Result<Self, String> {
        let (items, range) = view.list(row).ok_or(BAD_OFFSETS)?;
        Ok(Rows { items, view: T::view(items), range })
    }
}

/// The number of rows of a group. The error is that its arguments have different ones.
pub fn same_length<const N: usize>(lengths: [usize; N]) -> Result<usize, String> {
    match lengths.iter().all(|length| *length == lengths[0]) {
        true => Ok(lengths[0]),
        false => Err(format!("the lists of a group have different lengths: {lengths:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Mixed = (i64, Option<String>, Vec<bool>, Vec<[f64; 2]>);

    fn stored((number, text, flags, pairs): &Mixed) -> Vec<u8> {
        let mut bytes = Vec::new();
        number.store(&mut bytes);
        text.store(&mut bytes);
        flags.store(&mut bytes);
        pairs.store(&mut bytes);
        bytes
    }

    fn restored(mut bytes: &[u8]) -> Option<Mixed> {
        let from = &mut bytes;
        let mixed = (State::restore(from)?, State::restore(from)?, State::restore(from)?, State::restore(from)?);
        from.is_empty().then_some(mixed)
    }

    proptest! {
        #[test]
        fn what_was_stored_is_restored(mixed in any::<Mixed>()) {
            let bytes = stored(&mixed);
            prop_assert_eq!(restored(&bytes).map(|mixed| stored(&mixed)), Some(bytes.clone())); // a NaN is not itself
            prop_assert_eq!(restored(&bytes).map(|restored| (restored.0, restored.1)), Some((mixed.0, mixed.1)));
            for end in 0..bytes.len() {
                prop_assert!(restored(&bytes[..end]).is_none());
            }
        }

        #[test]
        fn any_bytes_are_restored_or_refused(bytes in any::<Vec<u8>>()) {
            let _ = (restored(&bytes), Vec::<Vec<String>>::restore(&mut &*bytes), Vec::<char>::restore(&mut &*bytes));
        }
    }

    #[test]
    fn a_length_beyond_the_bytes_allocates_nothing() {
        let mut bytes = u64::MAX.to_le_bytes().to_vec();
        assert_eq!(Vec::<u64>::restore(&mut &*bytes), None);
        bytes.push(0);
        assert_eq!(String::restore(&mut &*bytes), None);
        assert_eq!(opened::<u8>(Some(&[1, 2])), Err("the state is not one of this aggregate".to_string()));
        assert_eq!(opened::<u8>(None), Ok(0));
    }
}
