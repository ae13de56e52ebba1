//! `__run`: a batch through a sync function. May be called by several threads at once.

use super::arguments;
use super::layout::{Array, Arrays, RunResult};
use super::on_error::{report, OnError};
use crate::arrow::{Batch, Column, Layout};
use crate::exports::Plugin;
use crate::failure::Failure;
use crate::panics::catch_own;
use crate::retired;
use crate::signature::exported;
use arroyo_udf_abi as abi;

/// `__run` of function number `function`.
///
/// # Safety
/// `arrays` is what a host passed.
pub unsafe extern "C" fn run<P: Plugin>(function: u32, on_error: OnError, arrays: Arrays) -> RunResult {
    // SAFETY: passed on.
    let answer = catch_own(|| unsafe { answer::<P>(function, on_error, arrays) });
    retired::LIBRARY.sweep();
    match answer {
        Ok(Ok(value)) => RunResult { tag: RunResult::OK, value },
        Ok(Err(failure)) => {
            report(&failure.text);
            RunResult::failed()
        }
        Err(text) => {
            report(&text);
            RunResult::failed()
        }
    }
}

unsafe fn answer<P: Plugin>(function: u32, on_error: OnError, arrays: Arrays) -> Result<Array, Failure> {
    let signature = P::signature(function)?;
    // SAFETY: passed on.
    let batch = unsafe { arguments::batch(signature, arrays) };
    let batch = batch.map_err(|text| Failure::argument(format!("{}: {text}", signature.name)))?;
    let mut ran = P::run(function, &Batch::of(batch, &signature.arguments))?;
    // SAFETY: `run` answers a struct array whose first child is the values; it stays whole until it is released below.
    unsafe {
        let failed = if ran.with_outcomes && on_error == OnError::Fail { first_failure(&ran.results) } else { None };
        let mut values = std::mem::replace(&mut **ran.results.children, abi::ArrowArray::empty());
        let release = |array: &mut abi::ArrowArray| {
            if let Some(release) = array.release {
                release(array);
            }
        };
        release(&mut ran.results);
        if let Some(text) = failed {
            release(&mut values);
            return Err(Failure::new(abi::USER_CODE, text));
        }
        Ok(Array { array: values, schema: exported(signature.return_schema) })
    }
}

/// The text of the first row that is an error, and how many more there are.
///
/// # Safety
/// `results` is a struct array {value, outcome, error}.
unsafe fn first_failure(results: &abi::ArrowArray) -> Option<String> {
    // SAFETY: as promised; the columns are dropped before the array is.
    let (outcomes, errors) = unsafe {
        let child = |i: usize| &**results.children.add(i);
        (Column::new(child(1), &Layout::Fixed(1), "outcome").ok()?, Column::new(child(2), &Layout::Bytes, "error").ok()?)
    };
    let mut failed = (0..results.length as usize).filter(|&row| outcomes.fixed::<u8>(row) != abi::VALUE);
    let row = failed.next()?;
    let text = String::from_utf8_lossy(errors.bytes(row).unwrap_or_default()).into_owned();
    let more = match failed.count() {
        0 => String::new(),
        more => format!(" (and {more} more of this batch)"),
    };
    Some(text + &more)
}
