//! A linked list through records of a slab, in the order of their times. A record goes to its place from the end, so that one
//! which is not earlier than those before it costs O(1). Any record can be removed in O(1), so a slow one at the head costs
//! nothing.

use super::slab::Slab;

/// A record's place in a list, and its time.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    at: u64,
    before: Option<u32>,
    behind: Option<u32>,
}

impl Link {
    pub fn at(at: u64) -> Link {
        Link { at, before: None, behind: None }
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
    pub fn push<T: Linked>(&mut self, records: &mut Slab<T>, key: u32) {
        let at = records[key].link().at;
        let (mut before, mut behind) = (self.last, None);
        while let Some(later) = before.filter(|&before| records[before].link().at > at) {
            (before, behind) = (records[later].link().before, Some(later));
        }
        *records[key].link() = Link { at, before, behind };
        match before {
            Some(before) => records[before].link().behind = Some(key),
            None => self.first = Some(key),
        }
        match behind {
            Some(behind) => records[behind].link().before = Some(key),
            None => self.last = Some(key),
        }
    }

    pub fn remove<T: Linked>(&mut self, records: &mut Slab<T>, key: u32) {
        let Link { before, behind, .. } = *records[key].link();
        match before {
            Some(before) => records[before].link().behind = behind,
            None => self.first = behind,
        }
        match behind {
            Some(behind) => records[behind].link().before = before,
            None => self.last = before,
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
            next = records[key].link().behind.filter(|&behind| records[behind].link().at <= now);
        }
        found
    }

    /// The first record, if its time is not after `now`.
    pub fn first_until<T: Linked>(&self, records: &mut Slab<T>, now: u64) -> Option<u32> {
        self.first.filter(|&key| records[key].link().at <= now)
    }
}
