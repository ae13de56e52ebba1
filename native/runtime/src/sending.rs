//! How a batch enters a started function: the slot `send`.

use crate::arrow::ArgumentArray;
use crate::batch_context::BatchContext;
use crate::failure::{guard, Failure};
use crate::runtime::{NotTaken, Put, Runtime};
use crate::{handles, retired};
use arroyo_udf_abi as abi;
use std::sync::Arc;

/// # Safety
/// As for the slot `send`, whose caller is a host.
pub unsafe fn send(
    handle: abi::Handle,
    first_id: u64,
    arguments: *mut abi::ArrowArray,
    context: *const abi::BatchContext,
    error: *mut abi::Error,
) -> abi::Status {
    let mut retired = None;
    let put = |runtime: &Arc<Runtime>| {
        // SAFETY: the host passes a valid array, or null.
        let arguments = unsafe { arguments.as_mut() }.ok_or_else(|| Failure::null("send", "arguments"))?;
        let signature = runtime.signature();
        retired = Some(signature.retired);
        let refused = |text: String| Failure::argument(format!("{}: {text}", signature.name));
        // SAFETY: as above.
        let mut batch = unsafe { ArgumentArray::take(arguments, &signature.arguments, signature.retired) }.map_err(refused)?;
        // SAFETY: the host passes a context of the size that it states, with a key for each row, or null.
        match unsafe { BatchContext::read(context, batch.rows()) } {
            Ok(context) => batch.set_context(context),
            Err(text) => {
                *arguments = batch.into_array();
                return Err(refused(text));
            }
        }
        match runtime.put(first_id, batch) {
            Ok(Put::Done) => Ok((abi::OK, None)),
            Ok(Put::Deliver) => Ok((abi::OK, Some(Arc::clone(runtime)))),
            Err(NotTaken { batch, failure }) => {
                *arguments = batch.into_array();
                failure.map_or(Ok((abi::WOULD_BLOCK, None)), Err)
            }
        }
    };
    let body = || {
        let (status, deliver) = handles::with(handle, put)??;
        if let Some(runtime) = deliver {
            runtime.guard(|| runtime.deliver()); // after a panic too the batch is accepted: its rows come out, as errors
        }
        Ok(status)
    };
    // SAFETY: the host passes a writable error struct, or null.
    let status = unsafe { guard(error, |text| handles::poison(handle, text), body) };
    retired::sweep(retired);
    status
}
