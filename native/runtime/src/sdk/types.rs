//! The types of a Rust UDF and how they lie in Arrow (F2). This table is the whole of it:
//!
//! | Rust                                   | Arrow            |                                                        |
//! |----------------------------------------|------------------|--------------------------------------------------------|
//! | `bool`                                 | bool             |                                                        |
//! | `i8 i16 i32 i64`, `u8 u16 u32 u64`     | the same         |                                                        |
//! | `f32 f64`                              | float32, float64 |                                                        |
//! | `String`, `&str`                       | utf8             | an `async fn` does not return `&str`                   |
//! | `Vec<u8>`, `&[u8]`                     | binary           | an `async fn` does not return `&[u8]`                  |
//! | [`Date`]                               | date32           | days since 1970-01-01                                  |
//! | [`TimestampSecond`] ... `Nanosecond`   | timestamp        | s, ms, us, ns since 1970-01-01, of no particular zone  |
//! | [`SystemTime`](std::time::SystemTime)  | timestamp        | us since 1970-01-01, in UTC, though the type names no zone: as Arroyo declares it |
//! | [`Duration`](std::time::Duration)      | duration         | us; a negative one is an error of its row              |
//! | `Vec<T>` of these, but not `Vec<u8>`   | list of the same | arguments only; nulls are left out, unless it is `Vec<Option<T>>` |
//! | `Option<T>` of these                   | the same         | null, as an argument and as a result                   |
//! | `Result<T, E>`, `Result<Option<T>, E>` | the same         | results only; `E: Display` is the row's error          |
//!
//! [`Argument`] is what a column is read as, [`Return`] what a function may answer, [`Value`] what a result column holds.

use crate::arrow::{ArrayData, Buffer, Column, Validity};
use crate::value;
use std::ffi::CStr;
use std::fmt::Display;
use std::time::{Duration, SystemTime};

/// A calendar day, as days since 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(pub i32);

/// Seconds since 1970-01-01T00:00:00, of no particular time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimestampSecond(pub i64);

/// Milliseconds since 1970-01-01T00:00:00, of no particular time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimestampMillisecond(pub i64);

/// Microseconds since 1970-01-01T00:00:00, of no particular time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimestampMicrosecond(pub i64);

/// Nanoseconds since 1970-01-01T00:00:00, of no particular time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimestampNanosecond(pub i64);

/// A type that an argument can have. `'a` is the batch that the row lies in.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a UDF",
    label = "no column can be read as this",
    note = "write one of: bool, i8 to i64, u8 to u64, f32, f64, String, Vec<u8>, Date, Timestamp... from `arroyo_udf_plugin::sdk::types`, SystemTime, Duration from std::time; &str or &[u8]; a Vec of such; or an Option of it"
)]
pub trait Argument<'a>: Sized {
    const FORMAT: &'static CStr;
    const NULLABLE: bool = false;
    /// Of a list, what its items are: format, and whether they can be null.
    const ITEM: Option<(&'static CStr, bool)> = None;
    /// What reading needs of the column, small enough for registers: the loop over the rows holds one per argument.
    type View: Copy;

    fn view(column: &'a Column) -> Self::View;

    /// The value of one row, or the text of the row's error (F4).
    ///
    /// # Safety
    /// `row` is below the length of the column, which has the layout of `FORMAT`. If not `NULLABLE`, the row is valid.
    unsafe fn read(view: Self::View, row: usize) -> Result<Self, String>;
}

/// A type that a result column can hold.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a UDF",
    label = "no column can hold this",
    note = "write one of: bool, i8 to i64, u8 to u64, f32, f64, String, Vec<u8>, Date, Timestamp... from `arroyo_udf_plugin::sdk::types`, SystemTime, Duration from std::time; an Option of it; or a Result of either, whose error has Display"
)]
pub trait Value: Sized {
    const FORMAT: &'static CStr;
    type Builder: Builder;

    /// What the builder takes, or the text of the row's error (F4).
    fn into_item(self) -> Result<<Self::Builder as Builder>::Item, String>;
}

/// What a function may answer for a row.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a UDF",
    label = "no column can hold this",
    note = "write one of: bool, i8 to i64, u8 to u64, f32, f64, String, Vec<u8>, Date, Timestamp... from `arroyo_udf_plugin::sdk::types`, SystemTime, Duration from std::time; an Option of it; or a Result of either, whose error has Display"
)]
pub trait Return {
    type Value: Value;
    const NULLABLE: bool;

    /// A value, null, or the text of the row's error.
    fn into_result(self) -> Result<Option<Self::Value>, String>;
}

impl<T: Value> Return for T {
    type Value = T;
    const NULLABLE: bool = false;

    #[inline]
    fn into_result(self) -> Result<Option<T>, String> {
        Ok(Some(self))
    }
}

impl<T: Value> Return for Option<T> {
    type Value = T;
    const NULLABLE: bool = true;

    #[inline]
    fn into_result(self) -> Result<Option<T>, String> {
        Ok(self)
    }
}

impl<T: Value, E: Display> Return for Result<T, E> {
    type Value = T;
    const NULLABLE: bool = false;

    #[inline]
    fn into_result(self) -> Result<Option<T>, String> {
        self.map(Some).map_err(|error| error.to_string())
    }
}

impl<T: Value, E: Display> Return for Result<Option<T>, E> {
    type Value = T;
    const NULLABLE: bool = true;

    #[inline]
    fn into_result(self) -> Result<Option<T>, String> {
        self.map_err(|error| error.to_string())
    }
}

impl<'a, T: Argument<'a>> Argument<'a> for Option<T> {
    const FORMAT: &'static CStr = T::FORMAT;
    const NULLABLE: bool = true;
    const ITEM: Option<(&'static CStr, bool)> = T::ITEM;
    type View = (&'a Column, T::View);

    #[inline]
    fn view(column: &'a Column) -> Self::View {
        (column, T::view(column))
    }

    #[inline]
    unsafe fn read((column, view): Self::View, row: usize) -> Result<Self, String> {
        if !column.is_valid(row) {
            return Ok(None);
        }
        // SAFETY: passed on, and the row is valid.
        unsafe { T::read(view, row) }.map(Some)
    }
}

/// Builds the column of results, row after row. `fill` and `skip` are called with rising rows, none left out.
pub trait Builder {
    type Item;

    fn new(rows: usize) -> Self;

    /// Calls `call` for the rows from `position.row` on, up to `end`. `None` takes the room of a null. When `call`
    /// panics, `position.row` is the row that did, and all rows before it are done.
    fn fill(&mut self, position: &mut Position<'_>, end: usize, call: impl FnMut(usize) -> Option<Self::Item>);

    /// The rows from `start` up to `end` are null.
    fn skip(&mut self, start: usize, end: usize);

    /// Rows whose value had no room: they became null, and are errors.
    fn without_room(&mut self) -> Vec<usize> {
        Vec::new()
    }

    /// The column.
    ///
    /// # Safety
    /// Each row was filled or skipped, and `validity` has as many.
    unsafe fn finish(self, validity: Validity) -> ArrayData;

    /// One value on its own, as an async function's result waits for its drain.
    fn value(item: Self::Item) -> value::Value;
}

/// The row that is worked on. It is written back when dropped, so that code which cannot panic keeps it in a register,
/// and code which does still tells where.
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

/// A number as it lies in a buffer.
pub trait Number: Copy + Default + Send + 'static {
    fn bits(self) -> u64;
}

/// A column of numbers. Each row is written exactly once, so the buffer need not be zeroed first.
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

    fn value(item: T) -> value::Value {
        value::Value::Fixed(item.bits())
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

    fn value(item: bool) -> value::Value {
        value::Value::Fixed(u64::from(item))
    }
}

/// A column of text or bytes; `T` is what the function returned.
pub struct Bytes<T> {
    offsets: Vec<i32>,
    data: Vec<u8>,
    without_room: Vec<usize>,
    items: std::marker::PhantomData<T>,
}

impl<T: AsRef<[u8]>> Builder for Bytes<T> {
    type Item = T;

    fn new(rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Bytes { offsets, data: Vec::new(), without_room: Vec::new(), items: std::marker::PhantomData }
    }

    fn fill(&mut self, position: &mut Position<'_>, end: usize, mut call: impl FnMut(usize) -> Option<T>) {
        while position.row < end {
            if let Some(item) = call(position.row) {
                // 32-bit offsets reach no further.
                if self.data.len() + item.as_ref().len() <= i32::MAX as usize {
                    self.data.extend_from_slice(item.as_ref());
                } else {
                    self.without_room.push(position.row);
                }
            }
            self.offsets.push(self.data.len() as i32);
            position.row += 1;
        }
    }

    fn skip(&mut self, start: usize, end: usize) {
        self.offsets.extend(std::iter::repeat_n(self.data.len() as i32, end - start));
    }

    fn without_room(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.without_room)
    }

    unsafe fn finish(self, validity: Validity) -> ArrayData {
        column(validity, vec![self.offsets.into(), self.data.into()])
    }

    fn value(item: T) -> value::Value {
        value::Value::Bytes(item.as_ref().into())
    }
}

fn column(validity: Validity, values: Vec<Buffer>) -> ArrayData {
    let (length, null_count) = (validity.len(), validity.nulls());
    let buffers = std::iter::once(validity.into_buffer()).chain(values).collect();
    ArrayData { length, null_count, buffers, children: vec![] }
}

/// A type that lies in its column as a number: itself, or what it wraps.
macro_rules! number {
    ($type:ty, $native:ty, $format:literal, $wrap:expr, $unwrap:expr) => {
        impl<'a> Argument<'a> for $type {
            const FORMAT: &'static CStr = $format;
            type View = *const $native;

            #[inline]
            fn view(column: &'a Column) -> Self::View {
                column.values::<$native>(0)
            }

            #[inline]
            unsafe fn read(view: Self::View, row: usize) -> Result<Self, String> {
                // SAFETY: the buffer of a column with this layout holds a value for each row, perhaps unaligned.
                $wrap(unsafe { view.add(row).read_unaligned() })
            }
        }

        impl Value for $type {
            const FORMAT: &'static CStr = $format;
            type Builder = Numbers<$native>;

            #[inline]
            fn into_item(self) -> Result<$native, String> {
                $unwrap(self)
            }
        }
    };
}

macro_rules! primitive {
    ($($type:ident $format:literal $bits:expr;)*) => {
        $(
            number!($type, $type, $format, Ok, Ok);

            impl Number for $type {
                #[inline]
                fn bits(self) -> u64 {
                    $bits(self)
                }
            }
        )*
    };
}

// The bits of a value are its little-endian bytes, so a signed number is cut to its own width first.
primitive! {
    i8  c"c" |x: i8| u64::from(x as u8);
    u8  c"C" u64::from;
    i16 c"s" |x: i16| u64::from(x as u16);
    u16 c"S" u64::from;
    i32 c"i" |x: i32| u64::from(x as u32);
    u32 c"I" u64::from;
    i64 c"l" |x: i64| x as u64;
    u64 c"L" std::convert::identity;
    f32 c"f" |x: f32| u64::from(x.to_bits());
    f64 c"g" f64::to_bits;
}

number!(Date, i32, c"tdD", |x| Ok(Date(x)), |day: Date| Ok(day.0));
number!(TimestampSecond, i64, c"tss:", |x| Ok(TimestampSecond(x)), |time: TimestampSecond| Ok(time.0));
number!(TimestampMillisecond, i64, c"tsm:", |x| Ok(TimestampMillisecond(x)), |time: TimestampMillisecond| Ok(time.0));
number!(TimestampMicrosecond, i64, c"tsu:", |x| Ok(TimestampMicrosecond(x)), |time: TimestampMicrosecond| Ok(time.0));
number!(TimestampNanosecond, i64, c"tsn:", |x| Ok(TimestampNanosecond(x)), |time: TimestampNanosecond| Ok(time.0));
number!(SystemTime, i64, c"tsu:", |time| Ok(system_time(time)), microseconds);
number!(Duration, i64, c"tDu", duration, length);

fn system_time(microseconds: i64) -> SystemTime {
    let distance = Duration::from_micros(microseconds.unsigned_abs());
    if microseconds < 0 {
        SystemTime::UNIX_EPOCH - distance
    } else {
        SystemTime::UNIX_EPOCH + distance
    }
}

/// The microsecond that an instant lies in.
fn microseconds(time: SystemTime) -> Result<i64, String> {
    let microseconds = match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_micros()),
        Err(before) => i64::try_from(-(before.duration().as_nanos().div_ceil(1_000) as i128)),
    };
    microseconds.map_err(|_| format!("{time:?} does not fit in a timestamp of microseconds"))
}

fn duration(microseconds: i64) -> Result<Duration, String> {
    let microseconds = u64::try_from(microseconds).map_err(|_| format!("a Duration is not negative, and this is {microseconds} us"))?;
    Ok(Duration::from_micros(microseconds))
}

fn length(duration: Duration) -> Result<i64, String> {
    i64::try_from(duration.as_micros()).map_err(|_| format!("{duration:?} does not fit in a duration of microseconds"))
}

impl<'a> Argument<'a> for bool {
    const FORMAT: &'static CStr = c"b";
    type View = &'a Column;

    fn view(column: &'a Column) -> Self::View {
        column
    }

    #[inline]
    unsafe fn read(view: Self::View, row: usize) -> Result<Self, String> {
        Ok(view.boolean(row))
    }
}

impl Value for bool {
    const FORMAT: &'static CStr = c"b";
    type Builder = Booleans;

    #[inline]
    fn into_item(self) -> Result<bool, String> {
        Ok(self)
    }
}

impl<'a> Argument<'a> for &'a [u8] {
    const FORMAT: &'static CStr = c"z";
    type View = &'a Column;

    fn view(column: &'a Column) -> Self::View {
        column
    }

    #[inline]
    unsafe fn read(view: Self::View, row: usize) -> Result<Self, String> {
        view.bytes(row).ok_or_else(|| "the value has invalid offsets".to_string())
    }
}

impl<'a> Argument<'a> for &'a str {
    const FORMAT: &'static CStr = c"u";
    type View = &'a Column;

    fn view(column: &'a Column) -> Self::View {
        column
    }

    #[inline]
    unsafe fn read(view: Self::View, row: usize) -> Result<Self, String> {
        // SAFETY: passed on: text lies as bytes do.
        let bytes = unsafe { <&[u8]>::read(view, row)? };
        std::str::from_utf8(bytes).map_err(|error| format!("the text is not UTF-8: {error}"))
    }
}

/// An owned type is read as its borrowed one, then copied.
macro_rules! owned {
    ($($owned:ty, $borrowed:ty;)*) => {
        $(
            impl<'a> Argument<'a> for $owned {
                const FORMAT: &'static CStr = <&$borrowed as Argument>::FORMAT;
                type View = &'a Column;

                fn view(column: &'a Column) -> Self::View {
                    column
                }

                #[inline]
                unsafe fn read(view: Self::View, row: usize) -> Result<Self, String> {
                    // SAFETY: passed on.
                    unsafe { <&$borrowed>::read(view, row) }.map(Into::into)
                }
            }
        )*
    };
}

owned! {
    String, str;
    Vec<u8>, [u8];
}

macro_rules! bytes {
    ($($type:ty, $format:literal;)*) => {
        $(
            impl Value for $type {
                const FORMAT: &'static CStr = $format;
                type Builder = Bytes<Self>;

                #[inline]
                fn into_item(self) -> Result<Self, String> {
                    Ok(self)
                }
            }
        )*
    };
}

bytes! {
    String, c"u";
    &str, c"u";
    Vec<u8>, c"z";
    &[u8], c"z";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_microseconds_on_both_sides_of_1970() {
        for instant in [0, 1, -1, 1_500_000, -1_500_001, i64::MAX, i64::MIN] {
            assert_eq!(microseconds(system_time(instant)), Ok(instant));
        }
        let within = SystemTime::UNIX_EPOCH - Duration::from_nanos(1_001);
        assert_eq!((microseconds(within), microseconds(within + Duration::from_nanos(2_000))), (Ok(-2), Ok(0)));
    }

    #[test]
    fn an_instant_that_does_not_fit_is_an_error() {
        for instant in [i64::MAX, i64::MIN] {
            let far = system_time(instant);
            let farther = if instant > 0 { far + Duration::from_micros(1) } else { far - Duration::from_micros(1) };
            assert!(microseconds(farther).unwrap_err().contains("does not fit"));
        }
    }

    #[test]
    fn a_duration_has_no_sign_and_is_short_enough() {
        for microseconds in [0, 1, i64::MAX] {
            assert_eq!(duration(microseconds).and_then(length), Ok(microseconds));
        }
        assert!(duration(-1).unwrap_err().contains("this is -1 us"));
        assert!(length(Duration::from_secs(u64::MAX)).unwrap_err().contains("does not fit"));
    }

    #[test]
    fn bits_are_cut_to_their_width() {
        assert_eq!(((-1i8).bits(), (-1i16).bits(), (-1i32).bits()), (0xff, 0xffff, 0xffff_ffff));
        assert_eq!((1.0f32.bits(), (-0.0f64).bits()), (0x3f80_0000, 1 << 63));
    }

    #[test]
    fn text_beyond_two_gibibytes_has_no_room() {
        // Zeroed memory that is never touched is never there.
        let mut bytes = Bytes { data: vec![0; i32::MAX as usize - 1], ..Bytes::new(2) };
        bytes.fill(&mut Position::new(&mut 0), 2, |row| (row == 0).then_some("ab"));
        assert_eq!(bytes.without_room(), [0]);
        assert_eq!(bytes.offsets, [0, i32::MAX - 1, i32::MAX - 1]);
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
