//! [`Constant`]: a text or bytes that most queries give once for all rows, such as a pattern.

use super::types::ArgumentType;
use crate::arrow::{BytesView, Column, Kept};
use std::convert::Infallible;
use std::ffi::CStr;
use std::ops::Deref;

/// An argument that usually has the same value in all rows of a batch. It is used as the value, and keeps what is made of
/// it, so that a pattern is compiled once for each batch:
///
/// ```ignore
/// #[udf]
/// fn matches(text: &str, pattern: Constant<&str>) -> Result<bool, regex::Error> {
///     let regex = pattern.try_prepared(|pattern| Regex::new(pattern))?;
///     Ok(regex.is_match(text))
/// }
/// ```
///
/// A column may vary all the same; then each row has its own value, and what is made of it.
#[derive(Debug, Clone, Copy)]
pub struct Constant<'a, T> {
    value: T,
    column: &'a Column,
}

impl<'a, T> Constant<'a, T> {
    /// What `make` makes of the value: called once if all rows of the batch that are not null have this value, else for each
    /// row. Call it for one type in each function: what it makes of a second one is not kept.
    pub fn prepared<P: Send + Sync + 'static>(&self, make: impl FnOnce(&T) -> P) -> Prepared<'a, P> {
        match self.try_prepared(|value| Ok::<P, Infallible>(make(value))) {
            Ok(prepared) => prepared,
            Err(never) => match never {},
        }
    }

    /// The same where `make` may fail. An error is not kept.
    pub fn try_prepared<P: Send + Sync + 'static, E>(&self, make: impl FnOnce(&T) -> Result<P, E>) -> Result<Prepared<'a, P>, E> {
        let find = || self.column.kept().get().map(|kept| kept.as_ref().and_then(|kept| kept.downcast_ref::<P>()));
        let made = match find() {
            Some(Some(kept)) => return Ok(Prepared::Kept(kept)),
            Some(None) => return make(&self.value).map(Prepared::Own),
            None => make(&self.value)?,
        };
        if !self.column.is_uniform() {
            let _ = self.column.kept().set(None);
            return Ok(Prepared::Own(made));
        }
        let mut made = Some(made);
        self.column.kept().get_or_init(|| made.take().map(|made| Box::new(made) as Kept));
        // Another thread may have been first: threads share the batch of a blocking function.
        Ok(match (made, find()) {
            (None, Some(Some(kept))) => Prepared::Kept(kept),
            (Some(own), _) => Prepared::Own(own),
            (None, _) => unreachable!("this call has kept it"),
        })
    }
}

impl<T> Deref for Constant<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// What a function has made of a [`Constant`].
#[derive(Debug)]
pub enum Prepared<'a, P> {
    /// For all rows of the batch.
    Kept(&'a P),
    /// For this row.
    Own(P),
}

impl<P> Deref for Prepared<'_, P> {
    type Target = P;

    fn deref(&self) -> &P {
        match self {
            Prepared::Kept(kept) => kept,
            Prepared::Own(own) => own,
        }
    }
}

macro_rules! constants {
    ($($type:ty;)*) => {
        $(
            impl<'a> ArgumentType<'a> for Constant<'a, $type> {
                const FORMAT: &'static CStr = <$type as ArgumentType<'a>>::FORMAT;
                type View = (&'a Column, BytesView<'a>);

                #[inline]
                fn view(column: &'a Column) -> Self::View {
                    (column, column.bytes_view())
                }

                #[inline]
                unsafe fn read((column, view): Self::View, row: usize) -> Result<Self, String> {
                    // SAFETY: passed on; the types have the same layout.
                    let value = unsafe { <$type>::read(view, row) }?;
                    Ok(Constant { value, column })
                }
            }
        )*
    };
}

constants! {
    &'a str;
    &'a [u8];
    String;
    Vec<u8>;
}
