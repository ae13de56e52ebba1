//! extension("worker/1"): what a worker needs of its plugin beyond the table, so that calls in it are attempts of the host's
//! runtime.
//!
//! The host's runtime decides all: order, timeouts, retries. In the worker there is another runtime, which decides nothing.
//! Its rows are the attempts, and it gives them the row, the number and the deadline that they have in the host's. A
//! cancellation that the host's runtime asks for ends no row there: it ends as its call does, because the host must learn when
//! the call has ended.

use crate::arrow;
use crate::failure::{guard, Failure};
use crate::{handles, sending};
use arroyo_udf_abi as abi;
use std::ffi::CStr;

pub const ID: &CStr = c"worker/1";

/// What a row is in the host's runtime.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    pub row_id: u64,
    /// Nanoseconds of the monotonic clock; `u64::MAX`: none.
    pub deadline_ns: u64,
    pub attempt: u32,
    pub reserved: u32,
}

/// The answer of the extension.
#[repr(C)]
pub struct Relay {
    pub size: u64,
    /// Before the first `send`: each batch that is sent is one call of a function that takes micro-batches. If the call fails
    /// as a whole, all its rows are cancelled, and the host's runtime splits it.
    pub keep_batches_apart: unsafe extern "C" fn(abi::Handle, *mut abi::Error) -> abi::Status,
    /// As the slot `send`, with an origin for each row.
    pub send: unsafe extern "C" fn(
        abi::Handle,
        u64,
        *mut abi::ArrowArray,
        *const abi::BatchContext,
        *const Origin,
        *mut abi::Error,
    ) -> abi::Status,
    /// Asks for the cancellation of a row's call. The row comes out when the call has ended.
    pub cancel: unsafe extern "C" fn(abi::Handle, u64, *mut abi::Error) -> abi::Status,
    /// The row's call ignores that: another may run in its place. Reports it to the log, under the id that the row has in the
    /// host's runtime.
    pub report_stuck: unsafe extern "C" fn(abi::Handle, u64, u64, *mut abi::Error) -> abi::Status,
}

pub static RELAY: Relay = Relay { size: size_of::<Relay>() as u64, keep_batches_apart, send, cancel, report_stuck };

impl Relay {
    /// The extension of a plugin; None: it was built before there was one, or has no async functions.
    ///
    /// # Safety
    /// The table is that of a plugin, in which a function has been started.
    pub unsafe fn of(table: &abi::Table) -> Option<&'static Relay> {
        // SAFETY: the plugin answers with null, or with a constant that states its size.
        unsafe { (table.extension)(ID.as_ptr()).cast::<Relay>().as_ref() }.filter(|relay| relay.size >= size_of::<Relay>() as u64)
    }
}

unsafe extern "C" fn send(
    handle: abi::Handle,
    first_id: u64,
    arguments: *mut abi::ArrowArray,
    context: *const abi::BatchContext,
    origins: *const Origin,
    error: *mut abi::Error,
) -> abi::Status {
    // SAFETY: the worker keeps what a host must keep, and passes an origin for each row.
    unsafe { sending::send(handle, first_id, arguments, context, |rows| Some(origins_of(origins, rows)), error) }
}

unsafe extern "C" fn keep_batches_apart(handle: abi::Handle, error: *mut abi::Error) -> abi::Status {
    let body = || -> Result<abi::Status, Failure> {
        handles::get(handle)?.keep_batches_apart();
        Ok(abi::OK)
    };
    // SAFETY: the worker passes a writable error struct, or null.
    unsafe { guard(error, |_| {}, body) }
}

unsafe extern "C" fn cancel(handle: abi::Handle, id: u64, error: *mut abi::Error) -> abi::Status {
    let body = || -> Result<abi::Status, Failure> {
        handles::get(handle)?.ask(id);
        Ok(abi::OK)
    };
    // SAFETY: the worker passes a writable error struct, or null.
    unsafe { guard(error, |_| {}, body) }
}

unsafe extern "C" fn report_stuck(handle: abi::Handle, id: u64, row_id: u64, error: *mut abi::Error) -> abi::Status {
    let body = || -> Result<abi::Status, Failure> {
        handles::get(handle)?.give_up_asking(id, row_id);
        Ok(abi::OK)
    };
    // SAFETY: the worker passes a writable error struct, or null.
    unsafe { guard(error, |_| {}, body) }
}

/// The origins of so many rows.
///
/// # Safety
/// There are so many.
unsafe fn origins_of(origins: *const Origin, rows: usize) -> Box<[arrow::Origin]> {
    // SAFETY: as promised.
    let origins = unsafe { std::slice::from_raw_parts(origins, rows) };
    let origin = |from: &Origin| arrow::Origin { row_id: from.row_id, attempt: from.attempt as u16, deadline: from.deadline_ns };
    origins.iter().map(origin).collect()
}
