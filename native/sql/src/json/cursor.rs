//! Reads a JSON text from left to right.
//!
//! Guarantees: what it passes is JSON, by the grammar of RFC 8259; None says that something is not, or that the text ends
//! too early. It does not call itself: depth costs a bit per level.
//!
//! Assumes UTF-8, which an Arrow text is.

use super::bytes;

/// What is left of a text.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

/// What is between the quotes of a string.
#[derive(Debug, Clone, Copy)]
pub struct Quoted<'a> {
    pub raw: &'a [u8],
    pub has_escapes: bool,
}

impl<'a> Cursor<'a> {
    /// At the first byte that is no space.
    #[inline(always)]
    pub fn new(text: &'a [u8]) -> Cursor<'a> {
        let mut cursor = Cursor { rest: text };
        cursor.space();
        cursor
    }

    /// The byte here. It says what kind of value begins.
    #[inline(always)]
    pub fn byte(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Whether nothing is left but spaces.
    pub fn is_end(mut self) -> bool {
        self.space();
        self.rest.is_empty()
    }

    /// Passes a byte if it is this one.
    #[inline(always)]
    pub fn take(&mut self, byte: u8) -> bool {
        match self.rest {
            [first, rest @ ..] if *first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    #[inline(always)]
    pub fn space(&mut self) {
        while let [first, rest @ ..] = self.rest {
            // In most places there is none, or one.
            if *first > b' ' || !matches!(first, b' ' | b'\t' | b'\n' | b'\r') {
                return;
            }
            self.rest = rest;
        }
    }

    /// Passes the value that begins here.
    #[inline(always)]
    pub fn skip(&mut self) -> Option<()> {
        match self.byte()? {
            b'{' | b'[' => self.nested(),
            _ => self.scalar(),
        }
    }

    /// Passes the value that begins here, and answers its text.
    #[inline(always)]
    pub fn value(&mut self) -> Option<&'a [u8]> {
        let before = self.rest;
        self.skip()?;
        before.get(..before.len() - self.rest.len())
    }

    /// Passes a string.
    #[inline(always)]
    pub fn string(&mut self) -> Option<Quoted<'a>> {
        let [b'"', inner @ ..] = self.rest else { return None };
        let plain = bytes::plain(inner);
        if let Some((raw, [b'"', rest @ ..])) = inner.split_at_checked(plain) {
            self.rest = rest;
            return Some(Quoted { raw, has_escapes: false });
        }
        self.string_with_escapes(inner, plain)
    }

    /// inner: behind the quote. plain: how much of it is.
    #[inline(never)]
    fn string_with_escapes(&mut self, inner: &'a [u8], plain: usize) -> Option<Quoted<'a>> {
        self.rest = &inner[plain..];
        loop {
            self.escape()?;
            self.rest = &self.rest[bytes::plain(self.rest)..];
            if let [b'"', rest @ ..] = self.rest {
                let raw = &inner[..inner.len() - self.rest.len()];
                self.rest = rest;
                return Some(Quoted { raw, has_escapes: true });
            }
        }
    }

    /// None also for a control character, which has to be escaped.
    fn escape(&mut self) -> Option<()> {
        let [b'\\', kind, rest @ ..] = self.rest else { return None };
        let digits = match kind {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 0,
            b'u' => 4,
            _ => return None,
        };
        let (digits, rest) = rest.split_at_checked(digits)?;
        self.rest = rest;
        digits.iter().all(u8::is_ascii_hexdigit).then_some(())
    }

    /// Passes a key and its colon, to the value.
    #[inline(always)]
    pub fn key(&mut self) -> Option<Quoted<'a>> {
        let key = self.string()?;
        self.space();
        let is_key = self.take(b':');
        self.space();
        is_key.then_some(key)
    }

    /// Passes a key and its colon, to the value: whether the key is this one. escaped: answers that for a key with escapes.
    /// As `key`, but the key stays in registers.
    #[inline(always)]
    pub fn key_is(&mut self, wanted: &[u8], escaped: impl FnOnce(Quoted) -> bool) -> Option<bool> {
        let [b'"', inner @ ..] = self.rest else { return None };
        let plain = bytes::plain(inner);
        let is_it = if inner.get(plain) == Some(&b'"') {
            self.rest = &inner[plain + 1..];
            plain == wanted.len() && inner.first() == wanted.first().or(Some(&b'"')) && inner[..plain] == *wanted
        } else {
            escaped(self.string_with_escapes(inner, plain)?)
        };
        self.space();
        let is_key = self.take(b':');
        self.space();
        is_key.then_some(is_it)
    }

    /// Behind an item of an array, or of an object: whether another one follows, which begins here then. close: the bracket.
    #[inline(always)]
    pub fn follows(&mut self, close: u8) -> Option<bool> {
        self.space();
        if self.take(b',') {
            self.space();
            return Some(true);
        }
        self.take(close).then_some(false)
    }

    /// Enters an array or object: whether it has items, of which the first begins here then. open, close: its brackets.
    #[inline]
    pub fn enter(&mut self, open: u8, close: u8) -> Option<bool> {
        if !self.take(open) {
            return None;
        }
        self.space();
        Some(!self.take(close))
    }

    #[inline(always)]
    fn scalar(&mut self) -> Option<()> {
        match self.byte()? {
            b'"' => self.string().map(|_| ()),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => None,
        }
    }

    #[inline(always)]
    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(word)?;
        Some(())
    }

    #[inline(always)]
    fn number(&mut self) -> Option<()> {
        self.take(b'-');
        let count = bytes::digits(self.rest);
        if count == 0 || (count > 1 && self.byte() == Some(b'0')) {
            return None;
        }
        self.rest = &self.rest[count..];
        if self.take(b'.') {
            self.digits()?;
        }
        match self.byte() {
            Some(b'e' | b'E') => self.exponent(),
            _ => Some(()),
        }
    }

    #[inline(never)]
    fn exponent(&mut self) -> Option<()> {
        self.rest = &self.rest[1..];
        let _ = self.take(b'-') || self.take(b'+');
        self.digits()
    }

    /// At least one.
    #[inline(always)]
    fn digits(&mut self) -> Option<()> {
        let count = bytes::digits(self.rest);
        self.rest = &self.rest[count..];
        (count > 0).then_some(())
    }

    /// Passes an array or object, with all that is in it.
    #[inline(never)]
    fn nested(&mut self) -> Option<()> {
        let mut levels = Levels::default();
        loop {
            let is_object = self.byte()? == b'{';
            let ended = if is_object || self.byte()? == b'[' {
                let has_items = if is_object { self.enter(b'{', b'}')? } else { self.enter(b'[', b']')? };
                if has_items {
                    levels.push(is_object);
                    if is_object {
                        self.key()?;
                    }
                }
                !has_items
            } else {
                self.scalar()?;
                true
            };
            if ended && !self.next_value(&mut levels)? {
                return Some(());
            }
        }
    }

    /// Behind a value: goes to the one after it, out of all levels that end here. False: the last level has ended.
    #[inline]
    fn next_value(&mut self, levels: &mut Levels) -> Option<bool> {
        while let Some(is_object) = levels.last() {
            if self.follows(if is_object { b'}' } else { b']' })? {
                if is_object {
                    self.key()?;
                }
                return Some(true);
            }
            levels.pop();
        }
        Some(false)
    }
}

/// Whether each open level is an object, in bits. The first 64 levels take no memory.
#[derive(Default)]
struct Levels {
    bits: u64,
    depth: usize,
    /// Each with 64 levels, outer ones first.
    outer: Vec<u64>,
}

impl Levels {
    fn push(&mut self, is_object: bool) {
        if self.depth > 0 && self.depth % 64 == 0 {
            self.outer.push(self.bits);
        }
        self.bits = self.bits << 1 | u64::from(is_object);
        self.depth += 1;
    }

    fn pop(&mut self) {
        self.bits >>= 1;
        self.depth -= 1;
        if self.depth > 0 && self.depth % 64 == 0 {
            self.bits = self.outer.pop().unwrap_or_default();
        }
    }

    fn last(&self) -> Option<bool> {
        (self.depth > 0).then_some(self.bits & 1 == 1)
    }
}
