//! A linked list through records of a slab, in the order of their times. A record goes to its place from the end, so that one
//! which is not earlier than those before it costs O(1). Any record can be removed in O(1), so a slow one at the head costs
//! nothing.

use super::slab::Slab;
use std::num::NonZeroU32;

/// A record's place in a list, and its time.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    at: u64,
    before: Neighbour,
    behind: Neighbour,
}

/// The record beside another one. In four bytes, because there is one record for each attempt.
#[derive(Debug, Clone, Copy, Default)]
struct Neighbour(Option<NonZeroU32>);

impl From<Option<u32>> for Neighbour {
    fn from(key: Option<u32>) -> Neighbour {
        Neighbour(key.map(|key| NonZeroU32::MIN.saturating_add(key)))
    }
}

impl Neighbour {
    fn key(self) -> Option<u32> {
        self.0.map(|number| number.get() - 1)
    }
}

impl Link {
    pub fn at(at: u64) -> Link {
        Link { at, before: Neighbour::default(), behind: Neighbour::default() }
    }
}

pub trait Linked {
    fn link(&mut self) -> &mut Link;
}

#[derive(Debug, Default)]
pub struct List {
    first: Option<u32>,
    last: Option<u32>,
}

impl List {
    #[inline]
    pub fn push<T: Linked>(&mut self, records: &mut Slab<T>, key: u32) {
        let at = records[key].link().at;
        let (mut before, mut behind) = (self.last, None);
        while let Some(later) = before.filter(|&before| records[before].link().at > at) {
            (before, behind) = (records[later].link().before.key(), Some(later));
        }
        *records[key].link() = Link { at, before: before.into(), behind: behind.into() };
        match before {
            Some(before) => records[before].link().behind = Some(key).into(),
            None => self.first = Some(key),
        }
        match behind {
            Some(behind) => records[behind].link().before = Some(key).into(),
            None => self.last = Some(key),
        }
    }

    #[inline]
    pub fn remove<T: Linked>(&mut self, records: &mut Slab<T>, key: u32) {
        let Link { before, behind, .. } = *records[key].link();
        match before.key() {
            Some(record) => records[record].link().behind = behind,
            None => self.first = behind.key(),
        }
        match behind.key() {
            Some(record) => records[record].link().before = before,
            None => self.last = before.key(),
        }
    }

    pub fn first(&self) -> Option<u32> {
        self.first
    }

    /// The time of the first record.
    pub fn first_at<T: Linked>(&self, records: &mut Slab<T>) -> Option<u64> {
        self.first.map(|key| records[key].link().at)
    }

    /// The records whose times are not after `now`.
    pub fn until<T: Linked>(&self, records: &mut Slab<T>, now: u64) -> Vec<u32> {
        let mut found = Vec::new();
        let mut next = self.first_until(records, now);
        while let Some(key) = next {
            found.push(key);
            next = records[key].link().behind.key().filter(|&behind| records[behind].link().at <= now);
        }
        found
    }

    /// The first record, if its time is not after `now`.
    pub fn first_until<T: Linked>(&self, records: &mut Slab<T>, now: u64) -> Option<u32> {
        self.first.filter(|&key| records[key].link().at <= now)
    }
}
