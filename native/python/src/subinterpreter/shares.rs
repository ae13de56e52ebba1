//! A call of a sync function in several workers: each takes the next share of the batch when it has run one, and one that is
//! busy with another call takes none.
//!
//! Guarantees: a worker holds the batch only while it runs a share, and has given it back before the host gets the answer
//! (R19); unless the host has not waited for it, because of Ctrl-C.

use super::stopping::Stopping;
use crate::pyarrow::RowErrors;
use crate::sync;
use arroyo_udf_plugin::abi::ArrowArray;
use arroyo_udf_plugin::arrow::Batch;
use arroyo_udf_plugin::isolation::shares;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::time::Duration;

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
    shares: Vec<Range<usize>>,
    next: AtomicUsize,
}

impl Call {
    pub fn new(function: usize, batch: &Arc<Batch>, workers: usize) -> Call {
        let shares = shares::cut(0..batch.rows(), workers);
        Call { function, stopping: Arc::default(), batch: Arc::downgrade(batch), shares, next: AtomicUsize::new(0) }
    }

    /// How many shares there are.
    pub fn shares(&self) -> usize {
        self.shares.len()
    }

    /// The number and the rows of the next share. None: all are taken.
    pub fn next(&self) -> Option<(usize, Range<usize>)> {
        let number = self.next.fetch_add(1, Relaxed);
        self.shares.get(number).map(|rows| (number, rows.clone()))
    }

    /// The answers of all shares, in order. None: `stop` has answered true, between two looks at what has come. Fewer: the
    /// workers have ended.
    pub fn collect(&self, answers: &Receiver<Answer>, stop: impl Fn() -> bool) -> Option<Vec<Answered>> {
        let mut all = Vec::new();
        while all.len() < self.shares() {
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
