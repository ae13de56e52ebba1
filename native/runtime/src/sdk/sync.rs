//! The loop over a batch of a sync function.
//!
//! Validity is read 64 rows at a time and cut into runs; in a run without nulls the inner loop only reads, calls and writes.
//! One guard against panics surrounds all runs, and after a panic the loop continues with the next row. So code that cannot
//! panic pays nothing, and no row is called twice.

use super::arguments::Arguments;
use super::builders::{Builder, Position};
use super::function::{Function, Results};
use super::types::{ResultType, Return};
use crate::arrow::{Batch, NoRoom, Validity};
use crate::panics;

/// Calls `call` for each row of `batch`, except where an argument is null that cannot be: those rows are null (F3).
pub fn run<'a, A: Arguments<'a>, R: Return>(function: &Function, batch: &'a Batch, call: impl Fn(A) -> R) -> Results {
    let (columns, rows) = (batch.columns(), batch.rows());
    // At first: which rows to call. In the end: which rows have a value.
    let mut words: Vec<u64> = (0..rows).step_by(64).map(|row| A::callable(columns, row, rows)).collect();
    let mut failed: Vec<(usize, String)> = Vec::new();
    let mut builder = <R::Value as ResultType>::Builder::new(rows);
    let mut next = 0;
    while next < rows {
        let caught = panics::catch(|| {
            // Made inside the closure, they stay in registers; from outside they would be reloaded after each write.
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
                        Ok(arguments) => function.item(call(arguments)),
                        Err((number, text)) => Err(function.unreadable(number, &text)),
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
    for (row, text) in NoRoom::errors(builder.without_room()) {
        words[row >> 6] &= !(1 << (row & 63));
        failed.push((row, text));
    }
    failed.sort_unstable_by_key(|(row, _)| *row);
    let mut validity = Validity::with_capacity(rows);
    for (word, row) in words.into_iter().zip((0..rows).step_by(64)) {
        validity.push_word(word, (rows - row).min(64));
    }
    // SAFETY: the loop above fills or skips each row, including rows that panicked.
    let values = unsafe { builder.finish(validity) };
    Results { values, failed }
}
