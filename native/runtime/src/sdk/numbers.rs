//! Types of fixed width: booleans, integers, floats, and what wraps one (`number!`).

use super::builders::{Booleans, Number, Numbers};
use super::types::{ArgumentType, ResultType};
use crate::arrow::Column;
use std::ffi::CStr;

/// Implements both traits for a type whose column holds numbers of type `$native`. `$wrap` makes a value of a number,
/// `$unwrap` the reverse; each may fail with the text of the row's error.
macro_rules! number {
    ($type:ty, $native:ty, $format:literal, $wrap:expr, $unwrap:expr) => {
        impl<'a> ArgumentType<'a> for $type {
            const FORMAT: &'static CStr = $format;
            type View = *const $native;

            #[inline]
            fn view(column: &'a Column) -> Self::View {
                column.values::<$native>(0)
            }

            #[inline]
            unsafe fn read(view: Self::View, row: usize) -> Result<Self, String> {
                // SAFETY: the buffer of a column with this layout holds a value for each row; unaligned reads are allowed.
                $wrap(unsafe { view.add(row).read_unaligned() })
            }
        }

        impl ResultType for $type {
            const FORMAT: &'static CStr = $format;
            type Builder = Numbers<$native>;

            #[inline]
            fn into_item(self) -> Result<$native, String> {
                $unwrap(self)
            }
        }
    };
}
pub(super) use number;

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

// Casts to the unsigned type of the same width, so that signed numbers are not sign-extended.
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

impl<'a> ArgumentType<'a> for bool {
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

impl ResultType for bool {
    const FORMAT: &'static CStr = c"b";
    type Builder = Booleans;

    #[inline]
    fn into_item(self) -> Result<bool, String> {
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_cut_to_their_width() {
        assert_eq!(((-1i8).bits(), (-1i16).bits(), (-1i32).bits()), (0xff, 0xffff, 0xffff_ffff));
        assert_eq!((1.0f32.bits(), (-0.0f64).bits()), (0x3f80_0000, 1 << 63));
    }
}
