//! Blocking functions (`#[udf(blocking)]`): each row is a call in a thread of the pool.

use super::arguments::Arguments;
use super::function::{CallRow, Function};
use super::types::Return;
use crate::arrow::Batch;
use crate::call_info::CallInfo;
use crate::machine::Outcome;
use crate::panics;
use crate::pool::Work;
use crate::runtime::Attempt;
use crate::value::Value;

impl Work for CallRow {
    fn run(&self, attempt: &Attempt, info: CallInfo) -> Outcome<Value> {
        info.within(|| self(&attempt.batch, attempt.row))
    }
}

/// Calls the author's function for a row. The arguments may point into the batch, which outlives the call.
pub fn call<'a, A: Arguments<'a>, R: Return>(function: &Function, batch: &'a Batch, row: usize, call: impl Fn(A) -> R) -> Outcome<Value> {
    let columns = batch.columns();
    if A::callable(columns, row, row + 1) == 0 {
        return Outcome::Value(Value::Null);
    }
    // SAFETY: the machine numbers the rows of this batch, `callable` says that this one may be read, and the batch was
    // checked against the signature that `function` describes.
    let called = panics::catch(|| match unsafe { A::read(A::views(columns), row) } {
        Ok(arguments) => function.outcome(call(arguments)),
        Err((number, text)) => Outcome::Error(function.unreadable(number, &text).into()),
    });
    called.unwrap_or_else(|text| Outcome::Error(text.into()))
}
