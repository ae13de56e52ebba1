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
    /// As `Bytes`, UTF-8.
    Text,
    /// 64-bit offsets and data.
    LargeBytes,
    /// As `LargeBytes`, UTF-8.
    LargeText,
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
        // SAFETY: passed on; a valid schema has valid children.
        let child = |i: usize| unsafe { Layout::of(child_schema(schema, i)?) };
        // SAFETY: passed on.
        Ok(match unsafe { Level::of(schema) }? {
            Level::Null => Layout::Null,
            Level::Bool => Layout::Bool,
            Level::Fixed(width) => Layout::Fixed(width),
            Level::Bytes { wide: false, text: false } => Layout::Bytes,
            Level::Bytes { wide: false, text: true } => Layout::Text,
            Level::Bytes { wide: true, text: false } => Layout::LargeBytes,
            Level::Bytes { wide: true, text: true } => Layout::LargeText,
            Level::List { wide: false } | Level::Map => Layout::List(Box::new(child(0)?)),
            Level::List { wide: true } => Layout::LargeList(Box::new(child(0)?)),
            Level::FixedList(width) => Layout::FixedList(width, Box::new(child(0)?)),
            Level::Struct(fields) => Layout::Struct((0..fields).map(child).collect::<Result<_, _>>()?),
        })
    }

    /// Whether its values are bytes or text.
    pub fn is_bytes(&self) -> bool {
        matches!(self, Layout::Bytes | Layout::Text | Layout::LargeBytes | Layout::LargeText)
    }

    #[inline]
    pub(super) fn level(&self) -> Level {
        match self {
            Layout::Null => Level::Null,
            Layout::Bool => Level::Bool,
            Layout::Fixed(width) => Level::Fixed(*width),
            Layout::Bytes => Level::Bytes { wide: false, text: false },
            Layout::Text => Level::Bytes { wide: false, text: true },
            Layout::LargeBytes => Level::Bytes { wide: true, text: false },
            Layout::LargeText => Level::Bytes { wide: true, text: true },
            Layout::List(_) => Level::List { wide: false },
            Layout::LargeList(_) => Level::List { wide: true },
            Layout::FixedList(width, _) => Level::FixedList(*width),
            Layout::Struct(fields) => Level::Struct(fields.len()),
        }
    }
}

/// One level of a type: what an array of it has itself, whatever its children are. `wide`: offsets have 64 bits, not 32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Null,
    Bool,
    /// Bytes per value.
    Fixed(usize),
    Bytes {
        wide: bool,
        text: bool,
    },
    List {
        wide: bool,
    },
    /// A list of structs, of which neither a struct nor its first field is null.
    Map,
    /// Items per value.
    FixedList(usize),
    /// Fields.
    Struct(usize),
}

impl Level {
    /// The level of a schema, whose children are not read; the error is the unsupported format.
    ///
    /// # Safety
    /// The format is null or NUL-terminated.
    pub(super) unsafe fn of(schema: &ArrowSchema) -> Result<Level, String> {
        if schema.format.is_null() {
            return Err("a schema without a format".into());
        }
        // SAFETY: not null, so NUL-terminated.
        let format = unsafe { CStr::from_ptr(schema.format) }.to_bytes();
        let unsupported = || String::from_utf8_lossy(format).into_owned();
        if !schema.dictionary.is_null() {
            return Err(format!("dictionary-encoded {}", unsupported()));
        }
        let number = |digits: &[u8]| std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).ok_or_else(unsupported);
        let level = match format {
            b"n" => Level::Null,
            b"b" => Level::Bool,
            b"c" | b"C" => Level::Fixed(1),
            b"s" | b"S" | b"e" => Level::Fixed(2),
            b"i" | b"I" | b"f" | b"tdD" | b"tts" | b"ttm" | b"tiM" => Level::Fixed(4),
            b"l" | b"L" | b"g" | b"tdm" | b"ttu" | b"ttn" | b"tDs" | b"tDm" | b"tDu" | b"tDn" | b"tiD" => Level::Fixed(8),
            b"tin" => Level::Fixed(16),
            b"u" => Level::Bytes { wide: false, text: true },
            b"z" => Level::Bytes { wide: false, text: false },
            b"U" => Level::Bytes { wide: true, text: true },
            b"Z" => Level::Bytes { wide: true, text: false },
            b"+l" => Level::List { wide: false },
            b"+L" => Level::List { wide: true },
            b"+m" => Level::Map,
            b"+s" => Level::Struct(usize::try_from(schema.n_children).map_err(|_| unsupported())?),
            [b't', b's', ..] => Level::Fixed(8),
            [b'w', b':', width @ ..] => Level::Fixed(number(width)?),
            [b'+', b'w', b':', width @ ..] => Level::FixedList(number(width)?),
            [b'd', b':', sizes @ ..] => match sizes.split(|&byte| byte == b',').nth(2) {
                None | Some(b"128") => Level::Fixed(16),
                Some(b"32") => Level::Fixed(4),
                Some(b"64") => Level::Fixed(8),
                Some(b"256") => Level::Fixed(32),
                Some(_) => return Err(unsupported()),
            },
            _ => return Err(unsupported()),
        };
        if level.shape().1 as i64 != schema.n_children {
            return Err(format!("{} with {} children", unsupported(), schema.n_children));
        }
        Ok(level)
    }

    /// The numbers of buffers and children of an array.
    #[inline]
    pub(super) fn shape(self) -> (usize, usize) {
        match self {
            Level::Null => (0, 0),
            Level::Bool | Level::Fixed(_) => (2, 0),
            Level::Bytes { .. } => (3, 0),
            Level::List { .. } | Level::Map => (2, 1),
            Level::FixedList(_) => (1, 1),
            Level::Struct(fields) => (1, fields),
        }
    }

    /// The bytes of an offset; None: the level has no offsets.
    #[inline]
    pub(super) fn offset_width(self) -> Option<usize> {
        match self {
            Level::Bytes { wide, .. } | Level::List { wide } => Some(if wide { 8 } else { 4 }),
            Level::Map => Some(4),
            _ => None,
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
