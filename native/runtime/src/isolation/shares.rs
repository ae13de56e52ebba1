//! A batch of a sync function that is called row by row, cut into shares for several workers. A worker takes the next share
//! when it has run one, so one that the system gives less time runs fewer of them.

use std::ops::Range;

/// The least rows of a share: for fewer, another worker is not worth waking.
const LEAST_ROWS: usize = 256;
/// The most shares for each worker: enough to even out their speeds.
const MOST_SHARES: usize = 4;

/// How many of so many workers a batch of so many rows is worth waking.
pub fn worth_waking(rows: usize, workers: usize) -> usize {
    (rows / LEAST_ROWS).clamp(1, workers.max(1))
}

/// Rows in shares of about the same size, for so many workers; one at least.
pub fn cut(rows: Range<usize>, workers: usize) -> Vec<Range<usize>> {
    let shares = if workers > 1 { (rows.len() / LEAST_ROWS).clamp(1, workers * MOST_SHARES) } else { 1 };
    let bound = |i: usize| rows.start + rows.len() * i / shares;
    (0..shares).map(|i| bound(i)..bound(i + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_all_rows_in_order_and_none_is_small() {
        for (rows, workers) in [(0, 1), (0, 3), (1, 2), (255, 2), (511, 2), (512, 2), (8192, 1), (8192, 2), (8192, 100), (100_003, 3)] {
            let shares = cut(7..7 + rows, workers);
            assert!(shares.len() <= workers * MOST_SHARES);
            assert_eq!(shares.iter().flat_map(Clone::clone).collect::<Vec<_>>(), (7..7 + rows).collect::<Vec<_>>());
            assert!(shares.len() == 1 || shares.iter().all(|share| share.len() >= LEAST_ROWS), "{rows} rows, {workers} workers");
            assert!(worth_waking(rows, workers) <= shares.len(), "each worker that is woken has a share");
        }
    }
}
