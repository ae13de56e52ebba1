//! A batch of a sync function, cut into shares. A worker takes the next share when it has run one, so a worker on a slower
//! core runs fewer of them, and one that is busy with another call none.
//!
//! Guarantees: a worker holds the batch only while it runs a share, and has given it back before the host gets the answer
//! (R19); unless the host has not waited for it, because of Ctrl-C.

use super::stopping::Stopping;
use crate::pyarrow::RowErrors;
use crate::sync;
use arroyo_udf_plugin::abi::ArrowArray;
use arroyo_udf_plugin::arrow::Batch;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The least rows of a share: for fewer, another thread is not worth waking.
const LEAST_ROWS: usize = 256;
/// The most shares for each worker: enough to even out their speeds.
const MOST_SHARES: usize = 4;
/// How often a call that waits for its shares looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

/// Values and errors of rows.
pub type Answered = Result<(ArrowArray, RowErrors), String>;
/// Which share a worker has run, and what came out.
pub type Answer = (usize, Answered);

/// A call of the host.
pub struct Call {
    pub function: usize,
    pub stopping: Arc<Stopping>,
    /// Of the host, which waits.
    pub batch: Weak<Batch>,
    rows: usize,
    /// How many shares there are.
    pub shares: usize,
    next: AtomicUsize,
}

impl Call {
    pub fn new(function: usize, batch: &Arc<Batch>, workers: usize) -> Call {
        let rows = batch.rows();
        let shares = if workers == 1 { 1 } else { (rows / LEAST_ROWS).clamp(1, MOST_SHARES * workers) };
        Call { function, stopping: Arc::default(), batch: Arc::downgrade(batch), rows, shares, next: AtomicUsize::new(0) }
    }

    /// The number and the rows of the next share. None: all are taken.
    pub fn next(&self) -> Option<(usize, Range<usize>)> {
        let number = self.next.fetch_add(1, Relaxed);
        (number < self.shares).then(|| (number, self.rows * number / self.shares..self.rows * (number + 1) / self.shares))
    }

    /// The answers of all shares, in order. None: `stop` has answered true, between two looks at what has come. Fewer: the
    /// workers have ended.
    pub fn collect(&self, answers: &Receiver<Answer>, stop: impl Fn() -> bool) -> Option<Vec<Answered>> {
        let mut all = Vec::new();
        while all.len() < self.shares {
            match answers.recv_timeout(LOOK) {
                Ok(answer) => all.push(answer),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if !stop() => {}
                Err(RecvTimeoutError::Timeout) => {
                    discard(all.into_iter().map(|(_, answered)| answered));
                    return None;
                }
            }
        }
        all.sort_by_key(|(number, _)| *number);
        Some(all.into_iter().map(|(_, answered)| answered).collect())
    }
}

/// Releases what goes nowhere.
pub fn discard(answers: impl IntoIterator<Item = Answered>) {
    answers.into_iter().flatten().for_each(|(values, _)| sync::discard(values));
}
