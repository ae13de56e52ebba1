//! Records with small, stable numbers: a removed record's number is used again.

use std::ops::{Index, IndexMut};

/// A row's number with its id, which shows whether the number now belongs to another row.
pub type RowKey = (u32, u64);

#[derive(Debug)]
pub struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { entries: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Adds the record that `make` returns, built in place: records are large, and copying what was just written is slow.
    #[inline]
    pub fn insert(&mut self, make: impl FnOnce() -> T) -> u32 {
        let key = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() as u32 - 1
        });
        let former = self.entries[key as usize].replace(make());
        std::mem::forget(former); // it is None; spares the drop code
        key
    }

    /// Drops a record in place. Panics if there is none: a mistake of the caller.
    pub fn remove(&mut self, key: u32) {
        let entry = &mut self.entries[key as usize];
        assert!(entry.is_some(), "a record under this key");
        *entry = None;
        self.free.push(key);
    }

    pub fn get(&self, key: u32) -> Option<&T> {
        self.entries.get(key as usize)?.as_ref()
    }

    pub fn get_mut(&mut self, key: u32) -> Option<&mut T> {
        self.entries.get_mut(key as usize)?.as_mut()
    }

    pub fn keys(&self) -> impl Iterator<Item = u32> + '_ {
        self.entries.iter().enumerate().filter(|(_, entry)| entry.is_some()).map(|(key, _)| key as u32)
    }

    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;
    fn index(&self, key: u32) -> &T {
        self.entries[key as usize].as_ref().expect("a record under this key")
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, key: u32) -> &mut T {
        self.entries[key as usize].as_mut().expect("a record under this key")
    }
}
