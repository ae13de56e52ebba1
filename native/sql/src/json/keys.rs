//! A path of keys and indices, and the first value that it leads to.

use super::cursor::Cursor;
use super::texts;

/// One step into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Key(Box<[u8]>),
    /// From 0 on; a negative one leads nowhere.
    Index(i64),
}

/// At the value, of which nothing was read. scratch: memory for keys with escapes.
#[inline]
pub fn find<'a>(text: &'a [u8], path: &[Step], scratch: &mut Vec<u8>) -> Option<Cursor<'a>> {
    let mut cursor = Cursor::new(text);
    for step in path {
        match step {
            Step::Key(key) => to_key(&mut cursor, key, scratch)?,
            Step::Index(index) => to_index(&mut cursor, *index)?,
        }
    }
    Some(cursor)
}

#[inline]
fn to_key(cursor: &mut Cursor, wanted: &[u8], scratch: &mut Vec<u8>) -> Option<()> {
    let mut more = cursor.enter(b'{', b'}')?;
    while more {
        if cursor.key_is(wanted, |key| texts::equals(key, wanted, scratch))? {
            return Some(());
        }
        cursor.skip()?;
        more = cursor.follows(b'}')?;
    }
    None
}

#[inline]
fn to_index(cursor: &mut Cursor, index: i64) -> Option<()> {
    let mut left = u64::try_from(index).ok()?;
    let mut more = cursor.enter(b'[', b']')?;
    while more {
        if left == 0 {
            return Some(());
        }
        left -= 1;
        cursor.skip()?;
        more = cursor.follows(b']')?;
    }
    None
}
