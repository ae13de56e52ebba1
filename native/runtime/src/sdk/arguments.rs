//! One row of a batch -> the tuple of a function's arguments.

use super::types::ArgumentType;
use crate::arrow::Column;

/// A tuple of up to 12 arguments.
pub trait Arguments<'a>: Sized {
    type Views: Copy;

    /// One column for each argument.
    fn views(columns: &'a [Column]) -> Self::Views;

    /// Which of the 64 rows from `row` on to call: bit i is set if row + i exists and no argument is null that cannot be
    /// (F3).
    fn callable(columns: &'a [Column], row: usize, rows: usize) -> u64;

    /// The arguments of one row; or the number of the argument that cannot be read, with the reason.
    ///
    /// # Safety
    /// `row` is below the length of the columns, has its bit set in `callable`, and the columns have the layouts of the
    /// arguments.
    unsafe fn read(views: Self::Views, row: usize) -> Result<Self, (usize, String)>;
}

macro_rules! tuple {
    ($($argument:ident $number:tt),*) => {
        impl<'a, $($argument: ArgumentType<'a>),*> Arguments<'a> for ($($argument,)*) {
            type Views = ($($argument::View,)*);

            #[allow(unused_variables, clippy::unused_unit, reason = "a function may have no arguments")]
            fn views(columns: &'a [Column]) -> Self::Views {
                ($($argument::view(&columns[$number]),)*)
            }

            #[allow(unused_mut, unused_variables, reason = "a function may have no arguments")]
            fn callable(columns: &'a [Column], row: usize, rows: usize) -> u64 {
                let mut callable = u64::MAX >> (64 - (rows - row).min(64));
                $(
                    if !$argument::NULLABLE {
                        callable &= columns[$number].validity_word(row, rows);
                    }
                )*
                callable
            }

            #[inline]
            #[allow(unused_variables, reason = "a function may have no arguments")]
            unsafe fn read(views: Self::Views, row: usize) -> Result<Self, (usize, String)> {
                // SAFETY: the caller's promise; a set bit in `callable` means valid where null is not allowed.
                Ok(($(unsafe { $argument::read(views.$number, row) }.map_err(|text| ($number, text))?,)*))
            }
        }
    };
}

tuple!();
tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, E 4);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11);
