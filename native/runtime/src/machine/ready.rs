//! Rows that have ended and whose turn has come, until the host takes them. They have left the records of rows, so that
//! those are few and near, and the host touches none of them.
//!
//! A host that takes all of them gets the list itself: the executor waits for its lock no longer than that takes.

use std::collections::VecDeque;

/// What a drain answers for a row without a value or a text is a text of about this length.
const MADE_TEXT: u64 = 100;
/// So many places are ready for further rows, at most, when all have been taken.
const KEPT: usize = 4096;

/// How a row ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<V> {
    Value(V),
    Error(Box<str>),
    TimedOut,
    Cancelled,
}

/// A row on its way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished<V> {
    pub id: u64,
    pub attempts: u16,
    pub outcome: Outcome<V>,
}

/// A function's result.
pub trait Weigh {
    /// Its bytes in buffers of variable length.
    fn bytes(&self) -> u64;
}

#[derive(Debug)]
pub struct ReadyRows<V> {
    rows: VecDeque<Finished<V>>,
    /// Of all of them.
    bytes: u64,
    /// Their batches: of so many consecutive ones.
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

    pub fn push(&mut self, batch: u32, row: Finished<V>) {
        self.bytes += bytes(&row);
        self.rows.push_back(row);
        match self.batches.back_mut() {
            Some((last, rows)) if *last == batch => *rows += 1,
            _ => self.batches.push_back((batch, 1)),
        }
    }

    /// Takes up to `limit` rows, until they hold more than `most` bytes. `left` is told of their batches.
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
            let of_it = count.min(*rows);
            left(*batch, of_it);
            count -= of_it;
            *rows -= of_it;
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
        Outcome::TimedOut | Outcome::Cancelled => MADE_TEXT,
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
