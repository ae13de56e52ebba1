//! Rows that wait for the host to take them: they have ended, and so have the rows before them where order is kept. They
//! have left the slab of rows, which stays small and in the cache, and which the host need not touch.
//!
//! A host that takes all of them gets the list itself, so the executor waits for the lock only briefly.

use super::outcome::{Finished, Outcome, Weigh};
use std::collections::VecDeque;

/// About the length of the text that a drain makes for a row that timed out or was cancelled.
const MADE_TEXT: u64 = 100;
/// The most capacity that the list keeps when all rows are taken.
const KEPT: usize = 4096;

/// The batch of rows that were put back.
pub const NO_BATCH: u32 = u32::MAX;

#[derive(Debug)]
pub struct ReadyRows<V> {
    rows: VecDeque<Finished<V>>,
    /// Of all rows.
    bytes: u64,
    /// Their batches, each with its number of consecutive rows.
    batches: VecDeque<(u32, u64)>,
}

impl<V: Weigh> ReadyRows<V> {
    pub fn new() -> Self {
        ReadyRows { rows: VecDeque::new(), bytes: 0, batches: VecDeque::new() }
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    #[inline]
    pub fn push(&mut self, batch: u32, row: Finished<V>) {
        self.bytes += bytes(&row);
        self.rows.push_back(row);
        match self.batches.back_mut() {
            Some((last, rows)) if *last == batch => *rows += 1,
            _ => self.batches.push_back((batch, 1)),
        }
    }

    /// Puts rows back that were taken, to be taken first.
    pub fn put_back(&mut self, rows: Vec<Finished<V>>) {
        self.batches.push_front((NO_BATCH, rows.len() as u64));
        for row in rows.into_iter().rev() {
            self.bytes += bytes(&row);
            self.rows.push_front(row);
        }
    }

    /// Takes up to `limit` rows, until they hold more than `most` bytes. Calls `left` with each batch and its number of
    /// rows taken.
    pub fn take(&mut self, limit: u64, most: u64, mut left: impl FnMut(u32, u64)) -> Vec<Finished<V>> {
        let taken: Vec<Finished<V>> = if self.rows.len() as u64 <= limit && self.bytes <= most {
            self.bytes = 0;
            let room = VecDeque::with_capacity(self.rows.len().min(KEPT));
            std::mem::replace(&mut self.rows, room).into()
        } else {
            // There are more rows than the limit, or more bytes.
            let (mut count, mut held) = (0, 0);
            while (count as u64) < limit && held <= most {
                held += bytes(&self.rows[count]);
                count += 1;
            }
            self.bytes -= held;
            self.rows.drain(..count).collect()
        };
        let mut count = taken.len() as u64;
        while let Some((batch, rows)) = self.batches.front_mut().filter(|_| count > 0) {
            let of_batch = count.min(*rows);
            left(*batch, of_batch);
            count -= of_batch;
            *rows -= of_batch;
            if *rows == 0 {
                self.batches.pop_front();
            }
        }
        taken
    }
}

fn bytes<V: Weigh>(row: &Finished<V>) -> u64 {
    match &row.outcome {
        Outcome::Value(value) => value.bytes(),
        Outcome::Error(text) => text.len() as u64,
        Outcome::TimedOut(_) | Outcome::Cancelled => MADE_TEXT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_rows_of_a_batch_are_counted_together() {
        let mut ready = ReadyRows::new();
        for (id, batch) in [(1u64, 7), (2, 7), (3, 8), (4, 7)] {
            ready.push(batch, Finished { id, attempts: 1, outcome: Outcome::Value(id) });
        }
        let mut left = Vec::new();
        let ids: Vec<u64> = ready.take(3, u64::MAX, |batch, rows| left.push((batch, rows))).iter().map(|row| row.id).collect();
        assert_eq!((ids, left), (vec![1, 2, 3], vec![(7, 2), (8, 1)]));
    }
}
