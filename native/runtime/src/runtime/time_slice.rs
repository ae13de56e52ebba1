//! How long an executor whose calls share a thread goes on starting rows in a turn, before it informs the host,
//! looks for cancellations and lets others have the thread.
//!
//! Measured by the clock, because the cost of a row depends on its function. The clock is read once for several rows,
//! because reading it costs as much as a row that ends at once.
//!
//! Assumes that one thread at a time uses a slice; it is atomic so that it can be shared.

use crate::timer::now;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// How many rows start between two looks at the clock.
const ROWS_A_LOOK: u32 = 16;

pub struct TimeSlice {
    /// In nanoseconds.
    length: u64,
    ends: AtomicU64,
    /// Rows to start until the next look at the clock.
    rows_left: AtomicU32,
}

impl TimeSlice {
    /// For slices of `length` nanoseconds. None has begun.
    pub const fn new(length: u64) -> TimeSlice {
        TimeSlice { length, ends: AtomicU64::new(0), rows_left: AtomicU32::new(0) }
    }

    pub fn begin(&self) {
        self.ends.store(now() + self.length, Relaxed);
        self.rows_left.store(ROWS_A_LOOK, Relaxed);
    }

    /// Whether another row may start.
    pub fn has_time(&self) -> bool {
        if self.rows_left.load(Relaxed) > 0 {
            return true;
        }
        let has_time = now() < self.ends.load(Relaxed);
        if has_time {
            self.rows_left.store(ROWS_A_LOOK, Relaxed);
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
    fn rows_start_until_a_look_at_the_clock_says_no() {
        let slice = TimeSlice::new(0);
        assert!(!slice.has_time(), "none has begun");
        slice.begin();
        let mut rows = 0;
        while slice.has_time() {
            slice.count_row();
            rows += 1;
        }
        assert_eq!(rows, ROWS_A_LOOK, "the time was over before the first row, and nobody looked");
    }

    #[test]
    fn while_there_is_time_no_number_of_rows_ends_a_slice() {
        let slice = TimeSlice::new(3_600_000_000_000);
        slice.begin();
        for _ in 0..10 * ROWS_A_LOOK {
            assert!(slice.has_time());
            slice.count_row();
        }
    }
}
