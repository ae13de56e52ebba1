//! What the functions of SQL answer about one text. None, or false where something is written, is null.
//!
//! Values are written as they are in the text. What is written goes behind what is in a buffer, and nothing is if the answer
//! is null.

use super::cursor::Cursor;
use super::keys::{find, Step};
use super::paths::{items, members, Path};
use super::texts;

/// json_get: any value but null.
#[inline]
pub fn value<'a>(text: &'a [u8], path: &[Step], scratch: &mut Vec<u8>) -> Option<&'a [u8]> {
    raw(text, path, scratch).filter(|&value| value != b"null")
}

/// json_get_json: any value, also null.
#[inline]
pub fn raw<'a>(text: &'a [u8], path: &[Step], scratch: &mut Vec<u8>) -> Option<&'a [u8]> {
    find(text, path, scratch)?.value()
}

/// json_as_text: what a string says, other values as they are, no null.
#[inline]
pub fn as_text(text: &[u8], path: &[Step], scratch: &mut Vec<u8>, out: &mut Vec<u8>) -> bool {
    let Some(mut cursor) = find(text, path, scratch) else { return false };
    if cursor.byte() == Some(b'"') {
        return cursor.string().is_some_and(|string| texts::append(string, out));
    }
    let value = cursor.value().filter(|&value| value != b"null");
    out.extend_from_slice(value.unwrap_or_default());
    value.is_some()
}

/// json_get_str: what a string says.
#[inline]
pub fn string(text: &[u8], path: &[Step], scratch: &mut Vec<u8>, out: &mut Vec<u8>) -> bool {
    find(text, path, scratch).and_then(|mut cursor| cursor.string()).is_some_and(|string| texts::append(string, out))
}

/// json_get_int: a number without fraction and exponent, of 64 bits.
#[inline]
pub fn int(text: &[u8], path: &[Step], scratch: &mut Vec<u8>) -> Option<i64> {
    number(text, path, scratch)?.parse().ok()
}

/// json_get_float: any number; the nearest one that 64 bits hold, unless it is beyond all of them.
#[inline]
pub fn float(text: &[u8], path: &[Step], scratch: &mut Vec<u8>) -> Option<f64> {
    number(text, path, scratch)?.parse().ok().filter(|number: &f64| number.is_finite())
}

fn number<'a>(text: &'a [u8], path: &[Step], scratch: &mut Vec<u8>) -> Option<&'a str> {
    let value = raw(text, path, scratch)?;
    let is_number = value.first().is_some_and(|&byte| byte == b'-' || byte.is_ascii_digit());
    std::str::from_utf8(value).ok().filter(|_| is_number)
}

/// json_get_bool
#[inline]
pub fn boolean(text: &[u8], path: &[Step], scratch: &mut Vec<u8>) -> Option<bool> {
    match raw(text, path, scratch)? {
        b"true" => Some(true),
        b"false" => Some(false),
        _ => None,
    }
}

/// json_contains: whether the path leads somewhere. A text that is no JSON leads nowhere.
#[inline]
pub fn contains(text: &[u8], path: &[Step], scratch: &mut Vec<u8>) -> Option<bool> {
    match find(text, path, scratch) {
        Some(mut cursor) if cursor.byte().is_some() => cursor.skip().map(|()| true),
        _ => Some(false),
    }
}

/// json_length: of an array or object.
pub fn length(text: &[u8], path: &[Step], scratch: &mut Vec<u8>) -> Option<u64> {
    let mut cursor = find(text, path, scratch)?;
    let is_object = cursor.byte()? == b'{';
    let (open, close) = if is_object { (b'{', b'}') } else { (b'[', b']') };
    let (mut more, mut length) = (cursor.enter(open, close)?, 0);
    while more {
        if is_object {
            cursor.key()?;
        }
        cursor.skip()?;
        length += 1;
        more = cursor.follows(close)?;
    }
    Some(length)
}

/// json_get_array: calls `each` with the items of an array.
pub fn array<'a>(text: &'a [u8], path: &[Step], scratch: &mut Vec<u8>, mut each: impl FnMut(&'a [u8])) -> bool {
    let Some(array) = raw(text, path, scratch) else { return false };
    let all = items(&mut Cursor::new(array), |item| {
        each(item);
        Some(())
    });
    all.is_some()
}

/// json_object_keys: calls `each` with each key of an object, without escapes.
pub fn keys_of(text: &[u8], path: &[Step], scratch: &mut Vec<u8>, mut each: impl FnMut(&[u8])) -> bool {
    let Some(object) = raw(text, path, scratch) else { return false };
    // Twice, because a key that cannot be written makes all of it null.
    let mut keys = |each: &mut dyn FnMut(&[u8])| {
        members(&mut Cursor::new(object), |key, _| {
            scratch.clear();
            let is_text = texts::append(key, scratch);
            each(scratch);
            is_text.then_some(())
        })
    };
    keys(&mut |_| ()).and_then(|()| keys(&mut each)).is_some()
}

/// get_first_json_object: the first value that the path leads to, without spaces.
pub fn first(text: &[u8], path: &Path, out: &mut Vec<u8>) -> bool {
    first_value(text, path).map(|value| texts::append_compact(value, out)).is_some()
}

/// extract_json_string: the same, what it says, if it is a string.
pub fn first_string(text: &[u8], path: &Path, out: &mut Vec<u8>) -> bool {
    let found = first_value(text, path).and_then(|value| Cursor::new(value).string());
    found.is_some_and(|string| texts::append(string, out))
}

fn first_value<'a>(text: &'a [u8], path: &Path) -> Option<&'a [u8]> {
    let mut first = None;
    path.query(text, |value| {
        first = Some(value);
        false
    })?;
    first
}

/// extract_json: calls `each` with each value that the path leads to.
pub fn query<'a>(text: &'a [u8], path: &Path, mut each: impl FnMut(&'a [u8])) -> bool {
    let found = path.query(text, |value| {
        each(value);
        true
    });
    found.is_some()
}
