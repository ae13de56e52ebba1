//! Lines of JSON, each an object, as columns that are known.
//!
//! Guarantees: what is answered is what Python's `json` and pyarrow make of the lines. Where a line is unusual, there is no
//! answer: something that is no JSON, a value of another type, a key that comes twice, a number that Python reads otherwise.
//!
//! Assumes nothing about the bytes.

use super::cursor::{Cursor, Quoted};
use super::texts;
use arroyo_udf_plugin::abi::ArrowSchema;
use arroyo_udf_plugin::arrow::{child_schema, ArrayData, Buffer, Validity};
use std::collections::HashMap;
use std::ffi::CStr;

/// Values within values that are passed over; Python's parser takes as many in every version.
const DEEPEST: usize = 500;
/// Bytes of a number. Python reads no integer of more than 4,300 digits.
const LONGEST: usize = 300;
/// Integers up to here are floats, too.
const EXACT: i64 = 1 << 53;

/// The type of a column or of the items of its lists.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// Its bytes, and the values that it has.
    Int(usize, i128, i128),
    Float,
    Bool,
    Text,
    List(Box<Kind>),
}

impl Kind {
    /// # Safety
    /// A valid Arrow schema.
    unsafe fn of(schema: &ArrowSchema) -> Result<Kind, String> {
        if schema.format.is_null() {
            return Err("a schema without a format".into());
        }
        // SAFETY: not null, so NUL-terminated.
        let format = unsafe { CStr::from_ptr(schema.format) }.to_bytes();
        let int = |width: usize, signed: bool| {
            let bits = 8 * width - usize::from(signed);
            let most = (1i128 << bits) - 1;
            Kind::Int(width, if signed { -most - 1 } else { 0 }, most)
        };
        Ok(match format {
            b"c" => int(1, true),
            b"C" => int(1, false),
            b"s" => int(2, true),
            b"S" => int(2, false),
            b"i" => int(4, true),
            b"I" => int(4, false),
            b"l" => int(8, true),
            b"L" => int(8, false),
            b"g" => Kind::Float,
            b"b" => Kind::Bool,
            b"u" => Kind::Text,
            // SAFETY: passed on.
            b"+l" => Kind::List(Box::new(unsafe { Kind::of(child_schema(schema, 0)?)? })),
            other => return Err(String::from_utf8_lossy(other).into_owned()),
        })
    }
}

/// Reads lines into columns of these names and types.
#[derive(Debug)]
pub struct LinesReader {
    names: Vec<Vec<u8>>,
    kinds: Vec<Kind>,
    places: HashMap<Vec<u8>, usize>,
    ignores: bool,
}

impl LinesReader {
    /// schema: a struct. ignores: further keys are passed over. The error is a format that has no values of JSON.
    ///
    /// # Safety
    /// `schema` is a valid Arrow schema.
    pub unsafe fn new(schema: &ArrowSchema, ignores: bool) -> Result<LinesReader, String> {
        let (mut names, mut kinds) = (Vec::new(), Vec::new());
        for i in 0..schema.n_children as usize {
            // SAFETY: passed on; a name is null or NUL-terminated.
            let (field, name) = unsafe {
                let field = child_schema(schema, i)?;
                (field, if field.name.is_null() { c"" } else { CStr::from_ptr(field.name) })
            };
            names.push(name.to_bytes().to_vec());
            // SAFETY: passed on.
            kinds.push(unsafe { Kind::of(field)? });
        }
        let places = names.iter().cloned().enumerate().map(|(place, name)| (name, place)).collect();
        Ok(LinesReader { names, kinds, places, ignores })
    }

    /// A struct array with a row for each line. lines: without the last line's end.
    pub fn read(&self, lines: &[u8]) -> Option<ArrayData> {
        std::str::from_utf8(lines).ok()?;
        i32::try_from(lines.len()).ok()?;
        let rows = 1 + lines.iter().filter(|&&byte| byte == b'\n').count();
        let mut columns: Vec<Builder> = self.kinds.iter().map(|kind| Builder::new(kind, rows)).collect();
        let mut cursor = Cursor::new(lines);
        let mut scratch = Vec::new();
        // As many objects as lines, with an end of a line between each two: no object goes on in the next line.
        for row in 0..rows {
            if row > 0 && !cursor.take(b'\n') {
                return None;
            }
            self.object(&mut cursor, row, &mut columns, &mut scratch)?;
        }
        cursor.byte().is_none().then(|| ArrayData {
            length: rows,
            null_count: 0,
            buffers: vec![Buffer::none()],
            children: columns.into_iter().map(|column| column.finish().export()).collect(),
        })
    }

    /// The object that begins here is row `row` of the columns.
    fn object(&self, cursor: &mut Cursor, row: usize, columns: &mut [Builder], scratch: &mut Vec<u8>) -> Option<()> {
        let mut more = cursor.enter(b'{', b'}')?;
        let (mut expected, mut found) = (0, 0);
        while more {
            let key = cursor.key()?;
            match self.place(key, expected, scratch) {
                Some(place) => {
                    let column = &mut columns[place];
                    if column.validity.len() != row {
                        return None; // the key comes twice
                    }
                    column.value(cursor)?;
                    (expected, found) = (place + 1, found + 1);
                }
                None if self.ignores => pass(cursor, DEEPEST)?,
                None => return None,
            }
            more = cursor.follows(b'}')?;
        }
        if found < columns.len() {
            columns.iter_mut().filter(|column| column.validity.len() == row).for_each(Builder::null);
        }
        Some(())
    }

    /// The column of a key. expected: the one that it probably is, because lines are alike.
    #[inline]
    fn place(&self, key: Quoted, expected: usize, scratch: &mut Vec<u8>) -> Option<usize> {
        if key.has_escapes {
            scratch.clear();
            return texts::append(key, scratch).then(|| self.places.get(scratch).copied()).flatten();
        }
        match self.names.get(expected) {
            Some(name) if name == key.raw => Some(expected),
            _ => self.places.get(key.raw).copied(),
        }
    }
}

/// Passes a value of which only Python's opinion matters.
fn pass(cursor: &mut Cursor, levels: usize) -> Option<()> {
    let open = cursor.byte()?;
    match open {
        b'{' | b'[' => {
            let (levels, close) = (levels.checked_sub(1)?, open + 2); // ASCII has them so
            let mut more = cursor.enter(open, close)?;
            while more {
                if open == b'{' {
                    cursor.key()?;
                }
                pass(cursor, levels)?;
                more = cursor.follows(close)?;
            }
            Some(())
        }
        b'-' | b'0'..=b'9' => number(cursor).filter(|number| is_whole(number) || float(number).is_some()).map(|_| ()),
        _ => cursor.skip(),
    }
}

/// Passes a number, and answers its text.
#[inline]
fn number<'a>(cursor: &mut Cursor<'a>) -> Option<&'a str> {
    if !matches!(cursor.byte()?, b'-' | b'0'..=b'9') {
        return None;
    }
    let number = cursor.value().filter(|number| number.len() <= LONGEST)?;
    std::str::from_utf8(number).ok()
}

fn is_whole(number: &str) -> bool {
    number.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit())
}

/// The nearest float, unless the number is beyond all of them.
#[inline]
fn float(number: &str) -> Option<f64> {
    number.parse().ok().filter(|float: &f64| float.is_finite())
}

/// A column under construction.
struct Builder {
    validity: Validity,
    values: Values,
}

enum Values {
    Int(Vec<u64>, usize, i128, i128),
    Float(Vec<f64>),
    Bool(Validity),
    Text(Vec<i32>, Vec<u8>),
    List(Vec<i32>, Box<Builder>),
}

impl Builder {
    fn new(kind: &Kind, rows: usize) -> Builder {
        let offsets = || {
            let mut offsets = Vec::with_capacity(rows + 1);
            offsets.push(0);
            offsets
        };
        let values = match kind {
            Kind::Int(width, least, most) => Values::Int(Vec::with_capacity(rows), *width, *least, *most),
            Kind::Float => Values::Float(Vec::with_capacity(rows)),
            Kind::Bool => Values::Bool(Validity::with_capacity(rows)),
            Kind::Text => Values::Text(offsets(), Vec::new()),
            Kind::List(items) => Values::List(offsets(), Box::new(Builder::new(items, rows))),
        };
        Builder { validity: Validity::with_capacity(rows), values }
    }

    fn null(&mut self) {
        self.validity.push(false);
        match &mut self.values {
            Values::Int(values, ..) => values.push(0),
            Values::Float(values) => values.push(0.0),
            Values::Bool(values) => values.push(false),
            Values::Text(offsets, data) => offsets.push(data.len() as i32),
            Values::List(offsets, items) => offsets.push(items.validity.len() as i32),
        }
    }

    /// The value that begins here.
    #[inline]
    fn value(&mut self, cursor: &mut Cursor) -> Option<()> {
        if cursor.byte()? == b'n' {
            self.null();
            return cursor.skip();
        }
        match &mut self.values {
            Values::Int(values, _, least, most) => {
                // A fraction or an exponent is no integer; this does not parse either.
                let value = number(cursor)?.parse::<i128>().ok()?;
                values.push((*least..=*most).contains(&value).then_some(value as u64)?);
            }
            Values::Float(values) => {
                let number = number(cursor)?;
                // Python has no -0 among integers, and those beyond 2^53 may be no floats.
                values.push(if is_whole(number) {
                    number.parse().ok().filter(|whole: &i64| (-EXACT..=EXACT).contains(whole))? as f64
                } else {
                    float(number)?
                });
            }
            Values::Bool(values) => {
                let is_true = matches!(cursor.byte()?, b't');
                if !is_true && cursor.byte()? != b'f' {
                    return None;
                }
                cursor.skip()?;
                values.push(is_true);
            }
            Values::Text(offsets, data) => {
                if !texts::append(cursor.string()?, data) {
                    return None;
                }
                offsets.push(data.len() as i32);
            }
            Values::List(offsets, items) => {
                let mut more = cursor.enter(b'[', b']')?;
                while more {
                    items.value(cursor)?;
                    more = cursor.follows(b']')?;
                }
                offsets.push(items.validity.len() as i32);
            }
        }
        self.validity.push(true);
        Some(())
    }

    fn finish(self) -> ArrayData {
        let (length, null_count) = (self.validity.len(), self.validity.nulls());
        let mut children = Vec::new();
        let mut buffers = vec![self.validity.into_buffer()];
        match self.values {
            Values::Int(values, width, ..) => buffers.push(narrowed(values, width)),
            Values::Float(values) => buffers.push(values.into()),
            Values::Bool(values) => buffers.push(values.into_bits()),
            Values::Text(offsets, data) => buffers.extend([offsets.into(), data.into()]),
            Values::List(offsets, items) => {
                buffers.push(offsets.into());
                children.push(items.finish().export());
            }
        }
        ArrayData { length, null_count, buffers, children }
    }
}

/// Values that have so many bytes.
fn narrowed(values: Vec<u64>, width: usize) -> Buffer {
    match width {
        1 => values.iter().map(|&value| value as u8).collect::<Vec<_>>().into(),
        2 => values.iter().map(|&value| value as u16).collect::<Vec<_>>().into(),
        4 => values.iter().map(|&value| value as u32).collect::<Vec<_>>().into(),
        _ => values.into(),
    }
}
