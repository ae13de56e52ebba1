//! For tests: a runtime whose function has no arguments, and batches for it.

use super::Runtime;
use crate::abi;
use crate::arrow::{ArgumentArray, Layout};
use crate::machine::{Retry, Settings};
use crate::options::Chosen;
use crate::retired;
use crate::signature::Signature;
use std::ptr::null;
use std::sync::Arc;

/// A runtime that holds at most `max_rows`, one attempt at a time, ordered and without limits of time.
pub fn runtime(returns: Layout, max_rows: u64) -> Arc<Runtime> {
    runtime_of(returns, max_rows, 1)
}

/// As `runtime`, so many attempts at a time.
pub fn runtime_of(returns: Layout, max_rows: u64, allowed_in_flight: u32) -> Arc<Runtime> {
    runtime_with(returns, |settings| Settings { max_rows, allowed_in_flight, ..settings })
}

/// As `runtime`, for one row, with other settings.
pub fn runtime_with(returns: Layout, change: impl FnOnce(Settings) -> Settings) -> Arc<Runtime> {
    let nothing: &'static abi::ArrowSchema = Box::leak(Box::new(abi::ArrowSchema::empty()));
    let signature = Signature {
        name: "plugin.function".into(),
        kind: abi::ASYNC,
        vectorized: false,
        arguments: vec![],
        nullable: vec![],
        argument_schema: nothing,
        returns,
        returns_nullable: false,
        return_schema: nothing,
        run_timeout: None,
        constants: 0,
        options: abi::Options::unset(),
        run_values: nothing,
        run_outcomes: nothing,
        drained: nothing,
        retired: &retired::LIBRARY,
    };
    let settings = Settings {
        ordered: true,
        allowed_in_flight: 1,
        adaptive: false,
        timeout: None,
        deadline: None,
        max_rows: 1,
        max_bytes: 1,
        retry: Retry::NEVER,
        max_stuck: 1,
        gather: None,
        share: None,
        rate: None,
    };
    Runtime::new(Box::leak(Box::new(signature)), Chosen { settings: change(settings), lineage: [1; 16] }).unwrap()
}

unsafe extern "C" fn release_nothing(array: *mut abi::ArrowArray) {
    // SAFETY: the array is valid.
    unsafe { (*array).release = None };
}

/// A batch of one row.
pub fn batch() -> ArgumentArray {
    batch_of(1)
}

/// A batch of so many rows.
pub fn batch_of(rows: i64) -> ArgumentArray {
    let mut buffers = [null()];
    let mut array = abi::ArrowArray { length: rows, n_buffers: 1, release: Some(release_nothing), ..abi::ArrowArray::empty() };
    array.buffers = buffers.as_mut_ptr();
    // SAFETY: a struct array without children and without nulls: its list of buffers is not read.
    unsafe { ArgumentArray::take(&mut array, &[], &retired::LIBRARY) }.unwrap()
}
