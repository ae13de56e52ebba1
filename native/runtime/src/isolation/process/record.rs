//! How a row ended, in a message.
//!
//! Guarantees: what is read fits the layout, whatever the writer has written.

use super::mailbox::{Reader, Writer};
use crate::arrow::Layout;
use crate::results::error_text;
use crate::value::Value;
use std::io;

/// A row's value or the text of its error.
pub type Record = Result<Value, String>;

const NULL: u8 = 0;
const VALUE: u8 = 1;
const ERROR: u8 = 2;

pub fn write(record: Result<&Value, &str>, into: &mut Writer) -> io::Result<()> {
    match record {
        Ok(value) => write_value(value, into),
        Err(text) => write_error(text, into),
    }
}

pub fn write_error(text: &str, into: &mut Writer) -> io::Result<()> {
    into.byte(ERROR)?;
    into.text(text.as_bytes())
}

pub fn write_null(into: &mut Writer) -> io::Result<()> {
    into.byte(NULL)
}

/// A value of up to 8 bytes.
pub fn write_fixed(value: u64, into: &mut Writer) -> io::Result<()> {
    into.byte(VALUE)?;
    into.number(value)
}

pub fn write_bytes(value: &[u8], into: &mut Writer) -> io::Result<()> {
    into.byte(VALUE)?;
    into.text(value)
}

fn write_value(value: &Value, into: &mut Writer) -> io::Result<()> {
    match value {
        Value::Null => write_null(into),
        Value::Fixed(number) => write_fixed(*number, into),
        Value::Bytes(bytes) => write_bytes(bytes, into),
        Value::Shared(bytes) => write_bytes(bytes, into),
        Value::Wide([low, high]) => {
            write_fixed(*low, into)?;
            into.number(*high)
        }
        Value::Nested(items) => {
            write_fixed(items.len() as u64, into)?;
            items.iter().try_for_each(|item| write_value(item, into))
        }
    }
}

/// The outer error: the message is broken.
pub fn read(layout: &Layout, from: &mut Reader) -> Result<Record, String> {
    match from.byte()? {
        ERROR => Ok(Err(error_text(String::from_utf8_lossy(&from.text()?).into_owned()))),
        tag => read_value(tag, layout, from).map(Ok),
    }
}

fn read_value(tag: u8, layout: &Layout, from: &mut Reader) -> Result<Value, String> {
    match tag {
        NULL => return Ok(Value::Null),
        VALUE => {}
        tag => return Err(format!("a value of kind {tag}")),
    }
    Ok(match layout {
        Layout::Null => return Err("a value of type null".into()),
        Layout::Bool => Value::Fixed(u64::from(from.number()? != 0)),
        Layout::Fixed(0..=8) => Value::Fixed(from.number()?),
        Layout::Fixed(9..=16) => Value::Wide([from.number()?, from.number()?]),
        Layout::Fixed(width) => match from.text()? {
            bytes if bytes.len() == *width => Value::Bytes(bytes),
            bytes => return Err(format!("{} bytes for a value of {width}", bytes.len())),
        },
        Layout::Bytes | Layout::LargeBytes => Value::Bytes(from.text()?),
        Layout::Text | Layout::LargeText => {
            let bytes = from.text()?;
            std::str::from_utf8(&bytes).map_err(|error| format!("the text is not UTF-8: {error}"))?;
            Value::Bytes(bytes)
        }
        Layout::List(item) | Layout::LargeList(item) => {
            let count = from.size()?;
            read_items(std::iter::repeat_n(&**item, count), from)?
        }
        Layout::FixedList(width, item) => match from.size()? {
            count if count == *width => read_items(std::iter::repeat_n(&**item, count), from)?,
            count => return Err(format!("{count} items for a list of {width}")),
        },
        Layout::Struct(fields) => match from.size()? {
            count if count == fields.len() => read_items(fields.iter(), from)?,
            count => return Err(format!("{count} fields for a struct of {}", fields.len())),
        },
    })
}

/// One item after another. The message ends before a wrong count does harm, because each item takes a byte at least.
fn read_items<'a>(layouts: impl Iterator<Item = &'a Layout>, from: &mut Reader) -> Result<Value, String> {
    let mut items = Vec::new();
    for layout in layouts {
        let tag = from.byte()?;
        items.push(read_value(tag, layout, from)?);
    }
    Ok(Value::Nested(items.into()))
}
