//! How the values of a type lie in memory: a schema's physical layout, without its logical type.
//!
//! Assumes a schema that is valid by the Arrow C Data Interface; an unsupported format is an error that names it.

use arroyo_udf_abi::ArrowSchema;
use std::ffi::CStr;

/// A physical layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    Null,
    Bool,
    /// Bytes per value.
    Fixed(usize),
    /// 32-bit offsets and data.
    Bytes,
    /// 64-bit offsets and data.
    LargeBytes,
    List(Box<Layout>),
    LargeList(Box<Layout>),
    FixedList(usize, Box<Layout>),
    Struct(Vec<Layout>),
}

impl Layout {
    /// The layout of a schema; the error is the unsupported format.
    ///
    /// # Safety
    /// `schema` is a valid Arrow schema; its release may be null.
    pub unsafe fn of(schema: &ArrowSchema) -> Result<Layout, String> {
        // SAFETY: a valid schema has a NUL-terminated format.
        let format = unsafe { CStr::from_ptr(schema.format) }.to_str().map_err(|_| "a format that is not UTF-8".to_string())?;
        if !schema.dictionary.is_null() {
            return Err(format!("dictionary-encoded {format}"));
        }
        // SAFETY: as above, for the children.
        let child = |i: usize| unsafe { Layout::of(child_schema(schema, i)?) };
        let fixed = |text: &str| text.parse::<usize>().map_err(|_| format.to_string());
        Ok(match format {
            "n" => Layout::Null,
            "b" => Layout::Bool,
            "c" | "C" => Layout::Fixed(1),
            "s" | "S" | "e" => Layout::Fixed(2),
            "i" | "I" | "f" | "tdD" | "tts" | "ttm" | "tiM" => Layout::Fixed(4),
            "l" | "L" | "g" | "tdm" | "ttu" | "ttn" | "tDs" | "tDm" | "tDu" | "tDn" | "tiD" => Layout::Fixed(8),
            "tin" => Layout::Fixed(16),
            "u" | "z" => Layout::Bytes,
            "U" | "Z" => Layout::LargeBytes,
            "+l" | "+m" => Layout::List(Box::new(child(0)?)),
            "+L" => Layout::LargeList(Box::new(child(0)?)),
            "+s" => Layout::Struct((0..schema.n_children as usize).map(child).collect::<Result<_, _>>()?),
            _ if format.starts_with("ts") => Layout::Fixed(8),
            _ if format.starts_with("w:") => Layout::Fixed(fixed(&format[2..])?),
            _ if format.starts_with("+w:") => Layout::FixedList(fixed(&format[3..])?, Box::new(child(0)?)),
            _ if format.starts_with("d:") => match format[2..].split(',').nth(2) {
                None | Some("128") => Layout::Fixed(16),
                Some(bits) => Layout::Fixed(fixed(bits)? / 8),
            },
            _ => return Err(format.to_string()),
        })
    }

    /// The numbers of buffers and children of an array of this layout.
    pub(super) fn shape(&self) -> (i64, usize) {
        match self {
            Layout::Null => (0, 0),
            Layout::Bool | Layout::Fixed(_) => (2, 0),
            Layout::Bytes | Layout::LargeBytes => (3, 0),
            Layout::List(_) | Layout::LargeList(_) => (2, 1),
            Layout::FixedList(..) => (1, 1),
            Layout::Struct(fields) => (1, fields.len()),
        }
    }
}

/// Child `i` of a schema.
///
/// # Safety
/// `schema` is a valid Arrow schema.
pub unsafe fn child_schema(schema: &ArrowSchema, i: usize) -> Result<&ArrowSchema, String> {
    if (i as i64) >= schema.n_children || schema.children.is_null() {
        return Err(format!("a schema without child {i}"));
    }
    // SAFETY: a valid schema has n_children pointers to valid children.
    unsafe { (*schema.children.add(i)).as_ref() }.ok_or_else(|| format!("a schema whose child {i} is null"))
}
