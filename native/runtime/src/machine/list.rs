//! A linked list through records of a slab, in the order of their times. Assumes that each pushed record is not earlier than
//! those before it. Any record can be removed in O(1), so a slow one at the head costs nothing.

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
        records[key].link().before = self.last;
        match self.last.replace(key) {
            Some(last) => records[last].link().behind = Some(key),
            None => self.first = Some(key),
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

    /// The time of the first record.
    pub fn first_at<T: Linked>(&self, records: &mut Slab<T>) -> Option<u64> {
        self.first.map(|key| records[key].link().at)
    }

    /// The first record, if its time is not after `now`.
    pub fn first_until<T: Linked>(&self, records: &mut Slab<T>, now: u64) -> Option<u32> {
        self.first.filter(|&key| records[key].link().at <= now)
    }
}
