//! JSONPath (RFC 9535) without what has to be computed: names, indices, and all items.
//!
//! For example `$.store['book'][0].title`, `$.tags[*]`, `$.stops[-1].*`.

use super::cursor::{Cursor, Quoted};
use super::texts;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Name(Box<[u8]>),
    /// A negative one counts from the end.
    Index(i64),
    All,
}

/// A path that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path(Vec<Segment>);

impl Path {
    /// The error says what is wrong, and what to write.
    pub fn read(text: &str) -> Result<Path, String> {
        let wrong = |at: usize, what: &str| Err(format!("the path {text:?} is not supported at its character {}: {what}", at + 1));
        let Some(mut rest) = text.strip_prefix('$') else { return wrong(0, "write a path that begins with $, such as '$.a[0].b'") };
        let mut segments = Vec::new();
        while !rest.is_empty() {
            let at = text.chars().count() - rest.chars().count();
            let (segment, after) = if rest.starts_with("..") {
                return wrong(at, "write the names on the way instead of ..");
            } else if let Some(after) = rest.strip_prefix(".*").or_else(|| rest.strip_prefix("[*]")) {
                (Segment::All, after)
            } else if let Some(after) = rest.strip_prefix('.') {
                let end = after.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(after.len());
                if end == 0 || after.starts_with(|c: char| c.is_numeric()) {
                    return wrong(at + 1, "write a name, or ['name'] if it has other characters than letters, digits and _");
                }
                (Segment::Name(after.as_bytes()[..end].into()), &after[end..])
            } else if let Some((segment, after)) = bracket(rest) {
                (segment, after)
            } else {
                return wrong(at, "write .name, ['name'], [0], [-1], [*] or .*: filters, slices and lists are not supported");
            };
            segments.push(segment);
            rest = after;
        }
        Ok(Path(segments))
    }

    /// Calls `each` with the text of each value that the path leads to, in their order, until it answers false. None: the text
    /// is no JSON.
    pub fn query<'a>(&self, text: &'a [u8], mut each: impl FnMut(&'a [u8]) -> bool) -> Option<()> {
        let (mut cursor, mut scratch) = (Cursor::new(text), Vec::new());
        // One step is made while the text is checked.
        let (found, path) = match self.0.split_first() {
            Some((Segment::All, _)) | None => (Some(cursor.value()?), &self.0[..]),
            Some((segment, rest)) => (step(segment, &mut cursor, &mut scratch)?, rest),
        };
        if !cursor.is_end() {
            return None;
        }
        if let Some(value) = found {
            let _enough = walk(value, path, &mut scratch, &mut each);
        }
        Some(())
    }
}

/// [...] with a name or an index, and what follows.
fn bracket(text: &str) -> Option<(Segment, &str)> {
    let inner = text.strip_prefix('[')?.trim_start();
    let (segment, rest) = if let Some(inner) = inner.strip_prefix('\'') {
        // As a string of JSON: an escaped quote stands alone, and a double one needs no escape.
        let end = end_of_name(inner)?;
        let raw = inner[..end].replace("\\'", "'").replace("\\\"", "\"").replace('"', "\\\"");
        (Segment::Name(name(&raw)?), &inner[end + 1..])
    } else if inner.starts_with('"') {
        let mut cursor = Cursor::new(inner.as_bytes());
        let string = cursor.value()?;
        (Segment::Name(unquoted(Cursor::new(string).string()?)?), &inner[string.len()..])
    } else {
        let end = inner.find(|c: char| c != '-' && !c.is_ascii_digit()).unwrap_or(inner.len());
        (Segment::Index(index(&inner[..end])?), &inner[end..])
    };
    Some((segment, rest.trim_start().strip_prefix(']')?))
}

/// Where a name in single quotes ends.
fn end_of_name(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices()
        .find(|&(_, c)| {
            let ends = c == '\'' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        })
        .map(|(at, _)| at)
}

fn name(raw: &str) -> Option<Box<[u8]>> {
    unquoted(Cursor::new(format!("\"{raw}\"").as_bytes()).string()?)
}

fn unquoted(string: Quoted) -> Option<Box<[u8]>> {
    let mut out = Vec::new();
    texts::append(string, &mut out).then(|| out.into())
}

/// Without leading zeros, and no -0.
fn index(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_index = !digits.starts_with('0') || text == "0";
    text.parse().ok().filter(|_| is_index)
}

/// None: `each` has had enough. The value was passed before, so nothing in it is wrong.
fn walk<'a>(value: &'a [u8], path: &[Segment], scratch: &mut Vec<u8>, each: &mut impl FnMut(&'a [u8]) -> bool) -> Option<()> {
    let Some((segment, rest)) = path.split_first() else { return each(value).then_some(()) };
    match (segment, value.first()) {
        (Segment::All, Some(b'[')) => items(&mut Cursor::new(value), |item| walk(item, rest, scratch, each)),
        (Segment::All, Some(b'{')) => members(&mut Cursor::new(value), |_, member| walk(member, rest, scratch, each)),
        (Segment::All, _) => Some(()),
        _ => match step(segment, &mut Cursor::new(value), scratch)? {
            Some(found) => walk(found, rest, scratch, each),
            None => Some(()),
        },
    }
}

/// Passes a value, and answers the value in it that a name or an index leads to.
fn step<'a>(segment: &Segment, cursor: &mut Cursor<'a>, scratch: &mut Vec<u8>) -> Option<Option<&'a [u8]>> {
    let mut found = None;
    match (segment, cursor.byte()?) {
        (Segment::Name(name), b'{') => {
            let mut more = cursor.enter(b'{', b'}')?;
            while more {
                if cursor.key_is(name, |key| texts::equals(key, name, scratch))? {
                    found = Some(cursor.value()?);
                } else {
                    cursor.skip()?;
                }
                more = cursor.follows(b'}')?;
            }
        }
        (Segment::Index(index), b'[') => {
            let mut wanted = *index;
            if wanted < 0 {
                items(&mut cursor.clone(), |_| {
                    wanted += 1;
                    Some(())
                })?;
                // It counts from the end, and has met all items.
                wanted = if wanted < 0 { i64::MAX } else { wanted };
            }
            items(cursor, |item| {
                if wanted == 0 {
                    found = Some(item);
                }
                wanted -= 1;
                Some(())
            })?;
        }
        _ => cursor.skip()?,
    }
    Some(found)
}

/// Passes an array, and calls `each` with its items, until it answers None.
#[inline(always)]
pub fn items<'a>(cursor: &mut Cursor<'a>, mut each: impl FnMut(&'a [u8]) -> Option<()>) -> Option<()> {
    let mut more = cursor.enter(b'[', b']')?;
    while more {
        each(cursor.value()?)?;
        more = cursor.follows(b']')?;
    }
    Some(())
}

/// Passes an object, and calls `each` with its keys and values, until it answers None.
#[inline(always)]
pub fn members<'a>(cursor: &mut Cursor<'a>, mut each: impl FnMut(Quoted<'a>, &'a [u8]) -> Option<()>) -> Option<()> {
    let mut more = cursor.enter(b'{', b'}')?;
    while more {
        let key = cursor.key()?;
        each(key, cursor.value()?)?;
        more = cursor.follows(b'}')?;
    }
    Some(())
}
