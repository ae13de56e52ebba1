//! Text and bytes, borrowed from the batch or owned.

use super::builders::Bytes;
use super::types::{ArgumentType, ResultType};
use crate::arrow::{BytesView, Column, BAD_OFFSETS};
use std::ffi::CStr;

impl<'a> ArgumentType<'a> for &'a [u8] {
    const FORMAT: &'static CStr = c"z";
    type View = BytesView<'a>;

    #[inline]
    fn view(column: &'a Column) -> Self::View {
        column.bytes_view()
    }

    #[inline]
    unsafe fn read(view: Self::View, row: usize) -> Result<Self, String> {
        // SAFETY: passed on.
        unsafe { view.get(row) }.ok_or_else(|| BAD_OFFSETS.to_string())
    }
}

impl<'a> ArgumentType<'a> for &'a str {
    const FORMAT: &'static CStr = c"u";
    type View = BytesView<'a>;

    #[inline]
    fn view(column: &'a Column) -> Self::View {
        column.bytes_view()
    }

    #[inline]
    unsafe fn read(view: Self::View, row: usize) -> Result<Self, String> {
        // SAFETY: the caller's promise; text has the layout of bytes.
        let bytes = unsafe { <&[u8]>::read(view, row)? };
        std::str::from_utf8(bytes).map_err(|error| format!("the text is not UTF-8: {error}"))
    }
}

/// Reads an owned type as its borrowed one, then copies.
macro_rules! owned {
    ($($owned:ty, $borrowed:ty;)*) => {
        $(
            impl<'a> ArgumentType<'a> for $owned {
                const FORMAT: &'static CStr = <&$borrowed as ArgumentType>::FORMAT;
                type View = BytesView<'a>;

                #[inline]
                fn view(column: &'a Column) -> Self::View {
                    column.bytes_view()
                }

                #[inline]
                unsafe fn read(view: Self::View, row: usize) -> Result<Self, String> {
                    // SAFETY: the caller's promise; both types have the same layout.
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
            impl ResultType for $type {
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
