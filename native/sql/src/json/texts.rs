//! Strings without their escapes, values without their spaces: written behind what is in a buffer.

use super::bytes;
use super::cursor::Quoted;

/// Appends what a string says. False, with nothing appended: it has half of a surrogate pair, which no text can have.
pub fn append(string: Quoted, out: &mut Vec<u8>) -> bool {
    if !string.has_escapes {
        out.extend_from_slice(string.raw);
        return true;
    }
    let before = out.len();
    let written = unescape(string.raw, out).is_some();
    if !written {
        out.truncate(before);
    }
    written
}

/// Whether a key is this one. scratch: for a key with escapes.
#[inline]
pub fn equals(key: Quoted, wanted: &[u8], scratch: &mut Vec<u8>) -> bool {
    if !key.has_escapes {
        return key.raw == wanted;
    }
    scratch.clear();
    append(key, scratch) && scratch == wanted
}

/// Assumes escapes that a cursor has passed.
fn unescape(mut raw: &[u8], out: &mut Vec<u8>) -> Option<()> {
    loop {
        let plain = bytes::plain(raw);
        out.extend_from_slice(&raw[..plain]);
        let Some(&[_, kind, ref rest @ ..]) = raw.get(plain..) else { return raw.len().eq(&plain).then_some(()) };
        raw = rest;
        out.push(match kind {
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let (letter, rest) = unicode(raw)?;
                out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                raw = rest;
                continue;
            }
            other => other,
        });
    }
}

/// The character of the four digits behind \u, or of a pair of such escapes; and what follows.
fn unicode(raw: &[u8]) -> Option<(char, &[u8])> {
    let (high, rest) = hex(raw)?;
    if !(0xd800..0xdc00).contains(&high) {
        return Some((char::from_u32(high)?, rest));
    }
    let (low, rest) = hex(rest.strip_prefix(b"\\u")?)?;
    let low = low.checked_sub(0xdc00).filter(|&low| low < 0x400)?;
    Some((char::from_u32(0x10000 + ((high - 0xd800) << 10 | low))?, rest))
}

fn hex(raw: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = raw.split_at_checked(4)?;
    let value = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    Some((value, rest))
}

/// Appends a value without the spaces between its parts. Assumes a value that a cursor has passed.
pub fn append_compact(value: &[u8], out: &mut Vec<u8>) {
    let mut rest = value;
    while let Some(&byte) = rest.first() {
        let length = match byte {
            b'"' => string_length(rest),
            b' ' | b'\t' | b'\n' | b'\r' => {
                rest = &rest[1..];
                continue;
            }
            _ => 1,
        };
        out.extend_from_slice(&rest[..length]);
        rest = &rest[length..];
    }
}

/// With both quotes.
fn string_length(text: &[u8]) -> usize {
    let mut at = 1;
    loop {
        at += bytes::plain(&text[at..]);
        match text.get(at) {
            Some(b'\\') => at += 2,
            _ => return (at + 1).min(text.len()),
        }
    }
}
