//! How long an executor whose calls share a thread goes on starting rows in a turn, before it informs the host,
//! looks for cancellations and lets others have the thread.
//!
//! Measured by the clock, because the cost of a row depends on its function. Reading the clock costs as much as a row that ends
//! at once, so it is read once for several rows: for one at first, then for twice as many as long as they are cheap.
//!
//! Guarantees: a slice is over as soon as the row returns in which its time ends, unless the rows before it were cheap; then a
//! few more may start.
//! Assumes that one thread at a time uses a slice; it is atomic so that it can be shared.

use crate::timer::now;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The most rows that start between two looks at the clock, and that an executor takes ahead.
pub(super) const MOST: u64 = 16;
/// Rows are cheap if those between two looks take less, in nanoseconds.
const CHEAP: u64 = 50_000;

/// How many rows to start before the next look, if the last ones, so many, took so long.
pub(super) fn next_rows(rows: u64, took: u64) -> u64 {
    rows_within(MOST, rows, took)
}

/// As `next_rows`, at most `most`.
pub(super) fn rows_within(most: u64, rows: u64, took: u64) -> u64 {
    match took {
        _ if took >= CHEAP => 1,
        _ if took < CHEAP / 2 => (rows * 2).min(most),
        _ => rows.min(most),
    }
}

pub struct TimeSlice {
    /// In nanoseconds.
    length: u64,
    ends: AtomicU64,
    looked: AtomicU64,
    /// Rows between the last look and the next; and how many of them have not started.
    rows: AtomicU64,
    rows_left: AtomicU64,
}

impl TimeSlice {
    /// For slices of `length` nanoseconds. None has begun.
    pub fn new(length: u64) -> TimeSlice {
        let zero = || AtomicU64::new(0);
        TimeSlice { length, ends: zero(), looked: zero(), rows: zero(), rows_left: zero() }
    }

    pub fn begin(&self) {
        let now = now();
        self.ends.store(now + self.length, Relaxed);
        self.look(now, 1);
    }

    fn look(&self, now: u64, rows: u64) {
        self.looked.store(now, Relaxed);
        self.rows.store(rows, Relaxed);
        self.rows_left.store(rows, Relaxed);
    }

    /// Whether another row may start.
    pub fn has_time(&self) -> bool {
        if self.rows_left.load(Relaxed) > 0 {
            return true;
        }
        let now = now();
        let has_time = now < self.ends.load(Relaxed);
        if has_time {
            self.look(now, next_rows(self.rows.load(Relaxed), now - self.looked.load(Relaxed)));
        }
        has_time
    }

    /// A row starts.
    pub fn count_row(&self) {
        self.rows_left.store(self.rows_left.load(Relaxed).saturating_sub(1), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_whose_time_is_over_starts_one_row() {
        let slice = TimeSlice::new(0);
        assert!(!slice.has_time(), "none has begun");
        slice.begin();
        let mut rows = 0;
        while slice.has_time() {
            slice.count_row();
            rows += 1;
        }
        assert_eq!(rows, 1, "the time was over before the first row, and nobody looked");
    }

    #[test]
    fn while_there_is_time_no_number_of_rows_ends_a_slice() {
        let slice = TimeSlice::new(3_600_000_000_000);
        slice.begin();
        for _ in 0..10 * MOST {
            assert!(slice.has_time());
            slice.count_row();
        }
    }

    #[test]
    fn the_clock_is_looked_at_more_rarely_while_rows_are_cheap() {
        let looks: Vec<u64> = std::iter::successors(Some(1), |&rows| Some(next_rows(rows, 0))).take(6).collect();
        assert_eq!(looks, [1, 2, 4, 8, 16, 16]);
        assert_eq!(next_rows(16, CHEAP), 1, "after a row that is not, it is looked at after each");
        assert_eq!(next_rows(8, CHEAP / 2), 8);
    }
}
