//! Records with small, stable numbers: a removed record's number is used again.

use std::ops::{Index, IndexMut};

/// A row's number with its id, which shows whether the number now belongs to another row.
pub type RowKey = (u32, u64);

/// How many records are allocated together. A list that doubled would hold twice what is needed, and copy all of it.
const CHUNK: usize = 256;

#[derive(Debug)]
pub struct Slab<T> {
    chunks: Vec<Box<[Option<T>; CHUNK]>>,
    /// Places that were ever used.
    used: usize,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { chunks: Vec::new(), used: 0, free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Adds the record that `make` returns, built in place: records are large, and copying what was just written is slow.
    #[inline]
    pub fn insert(&mut self, make: impl FnOnce() -> T) -> u32 {
        let key = self.free.pop().unwrap_or_else(|| self.next_place());
        let former = self.chunks[key as usize / CHUNK][key as usize % CHUNK].replace(make());
        std::mem::forget(former); // it is None; spares the drop code
        key
    }

    #[cold]
    fn next_place(&mut self) -> u32 {
        if self.used == self.chunks.len() * CHUNK {
            let chunk: Box<[Option<T>]> = std::iter::repeat_with(|| None).take(CHUNK).collect();
            let Ok(chunk) = chunk.try_into() else { unreachable!("it has this length") };
            self.chunks.push(chunk);
        }
        self.used += 1;
        self.used as u32 - 1
    }

    /// Takes a record out. Panics if there is none: a mistake of the caller.
    #[inline]
    pub fn remove(&mut self, key: u32) -> T {
        let record = self.chunks[key as usize / CHUNK][key as usize % CHUNK].take().expect("a record under this key");
        self.free.push(key);
        record
    }

    #[inline]
    pub fn get(&self, key: u32) -> Option<&T> {
        self.chunks.get(key as usize / CHUNK)?[key as usize % CHUNK].as_ref()
    }

    #[inline]
    pub fn get_mut(&mut self, key: u32) -> Option<&mut T> {
        self.chunks.get_mut(key as usize / CHUNK)?[key as usize % CHUNK].as_mut()
    }

    pub fn keys(&self) -> impl Iterator<Item = u32> + '_ {
        let entries = self.chunks.iter().flat_map(|chunk| chunk.iter());
        entries.enumerate().filter(|(_, entry)| entry.is_some()).map(|(key, _)| key as u32)
    }

    pub fn len(&self) -> usize {
        self.used - self.free.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;
    #[inline]
    fn index(&self, key: u32) -> &T {
        self.chunks[key as usize / CHUNK][key as usize % CHUNK].as_ref().expect("a record under this key")
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, key: u32) -> &mut T {
        self.chunks[key as usize / CHUNK][key as usize % CHUNK].as_mut().expect("a record under this key")
    }
}
