//! The loop over a batch of a sync function.
//!
//! Rows are worked off in runs: validity is read 64 rows at a time, and within a run of rows without nulls the inner loop
//! does nothing but read, call, write. One guard against panics is around all runs; after a panic the loop goes on behind
//! the row that panicked. So code that cannot panic pays nothing, and no row is called twice.

use super::arguments::Arguments;
use super::function::{Function, Results};
use super::panics;
use super::types::{Builder, Position, Return, Value};
use crate::arrow::{Batch, Validity};

/// Calls `call` for each row of `batch` that has no null where none can be; the others are null (F3).
pub fn run<'a, A: Arguments<'a>, R: Return>(function: &Function, batch: &'a Batch, call: impl Fn(A) -> R) -> Results {
    let (columns, rows) = (batch.columns(), batch.rows());
    // First which rows are to be called, in the end which have a value.
    let mut words: Vec<u64> = (0..rows).step_by(64).map(|row| A::callable(columns, row, rows)).collect();
    let mut failed: Vec<(usize, String)> = Vec::new();
    let mut builder = <R::Value as Value>::Builder::new(rows);
    let mut next = 0;
    while next < rows {
        let caught = panics::catch(|| {
            // Made in here they stay in registers; from outside they would be read again after each write to the results.
            let views = A::views(columns);
            let mut position = Position::new(&mut next);
            while position.row < rows {
                let row = position.row;
                let left_in_word = (64 - (row & 63)).min(rows - row);
                let callable = words[row >> 6] >> (row & 63);
                let nulls = (callable.trailing_zeros() as usize).min(left_in_word);
                builder.skip(row, row + nulls);
                position.row += nulls;
                let end = position.row + ((callable >> (nulls & 63)).trailing_ones() as usize).min(left_in_word - nulls);
                builder.fill(&mut position, end, |row| {
                    // SAFETY: row is below `rows`, its bit is set in `callable`, and the batch was checked against the
                    // signature that `function` describes.
                    let result = match unsafe { A::read(views, row) } {
                        Ok(arguments) => function.item(row as u64, call(arguments)),
                        Err((number, text)) => Err(function.unreadable(row as u64, number, &text)),
                    };
                    let item = result.unwrap_or_else(|text| {
                        failed.push((row, text));
                        None
                    });
                    if item.is_none() {
                        words[row >> 6] &= !(1 << (row & 63));
                    }
                    item
                });
            }
        });
        if let Err(text) = caught {
            builder.skip(next, next + 1);
            words[next >> 6] &= !(1 << (next & 63));
            failed.push((next, text));
            next += 1;
        }
    }
    for row in builder.without_room() {
        words[row >> 6] &= !(1 << (row & 63));
        failed.push((row, "the batch's results take more than 2 GiB up to this row: send smaller batches".to_string()));
    }
    failed.sort_unstable_by_key(|(row, _)| *row);
    let mut validity = Validity::with_capacity(rows);
    for (word, row) in words.into_iter().zip((0..rows).step_by(64)) {
        validity.push_word(word, (rows - row).min(64));
    }
    // SAFETY: the loop above fills or skips each row, and goes on behind one that panicked after skipping it.
    let values = unsafe { builder.finish(validity) };
    Results { values, failed }
}
