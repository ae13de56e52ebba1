//! What a call can ask about itself (R10): its row, its attempt, its deadline, and a key under which it may do something
//! once only.
//!
//! Async and blocking functions ask with [`call_info`]. The executor sets a thread-local variable ([`CallInfo::within`])
//! while a call runs on the thread, and not while it waits.

use crate::arrow::Batch;
use crate::batch_context::{BatchContext, Key};
use crate::runtime::{Attempt, Runtime};
use crate::timer;
use std::cell::Cell;
use std::ffi::CStr;
use std::num::NonZeroU64;
use std::ptr::null;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Information about a call. It may be kept, and passed on to other tasks and threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallInfo {
    row_id: u64,
    attempt: u16,
    deadline: u64,
    key: Key,
    /// If it has a trace parent.
    context: Option<Arc<BatchContext>>,
}

/// What a call that waits keeps of its [`CallInfo`]: half of it, if the host gave its batch neither keys nor a trace parent.
pub enum KeptInfo {
    Plain {
        row_id: u64,
        /// Never zero, which leaves a value for the other variant.
        deadline: NonZeroU64,
    },
    Given(Box<CallInfo>),
}

impl KeptInfo {
    /// Of the call for a row of a batch.
    pub fn new(info: &CallInfo, batch: &Batch) -> KeptInfo {
        if batch.context().is_some_and(|context| context.trace_parent.is_some() || context.keys.is_some()) {
            KeptInfo::Given(Box::new(info.clone()))
        } else {
            KeptInfo::Plain { row_id: info.row_id, deadline: NonZeroU64::new(info.deadline).unwrap_or(NonZeroU64::MIN) }
        }
    }

    /// Passes on what it was, of a call with this number in a runtime with this lineage.
    #[inline]
    pub fn with<R>(&self, attempt: u16, lineage: [u8; 16], body: impl FnOnce(&CallInfo) -> R) -> R {
        match self {
            KeptInfo::Given(info) => body(info),
            KeptInfo::Plain { row_id, deadline } => body(&CallInfo::of(*row_id, attempt, deadline.get(), made_key(lineage, *row_id), None)),
        }
    }
}

thread_local! {
    /// Of the call that runs on this thread; null: none does. [`CallInfo::within`] keeps it valid.
    static CURRENT: Cell<*const CallInfo> = const { Cell::new(null()) };
}

/// Information about the running call. For async and blocking functions marked `#[udf]`, and what they call or await. In a
/// task or a thread that the call makes it is not known: ask before, and pass the answer on.
///
/// ```ignore
/// #[udf(max_attempts = 3, retry_on = "error")]
/// async fn pay(account: i64, amount: i64) -> Result<i64, Error> {
///     bank().transfer(account, amount, call_info().idempotency_key()).await
/// }
/// ```
///
/// # Panics
/// Outside a call.
#[track_caller]
pub fn call_info() -> CallInfo {
    // SAFETY: null, or valid while `within` runs, which called this.
    match unsafe { CURRENT.get().as_ref() } {
        Some(info) => info.clone(),
        None => panic!(
            "call_info() outside of a call: it is for async and blocking functions marked #[udf], and for what they await; \
             ask before you spawn a task or a thread, and pass the answer on"
        ),
    }
}

impl CallInfo {
    pub fn new(runtime: &Runtime, attempt: &Attempt) -> CallInfo {
        let key = key_of(runtime.lineage(), attempt.id, &attempt.batch, attempt.row);
        CallInfo::of(attempt.id, attempt.attempt, attempt.deadline, key, attempt.batch.traced())
    }

    /// As [`CallInfo::new`], from the parts of an attempt that an executor has kept.
    pub fn of(row_id: u64, attempt: u16, deadline: u64, key: Key, context: Option<&Arc<BatchContext>>) -> CallInfo {
        CallInfo { row_id, attempt, deadline, key, context: context.cloned() }
    }

    /// One for each row of an attempt.
    pub fn of_rows<'a>(runtime: &Runtime, attempt: &'a Attempt) -> impl Iterator<Item = CallInfo> + 'a {
        let first = CallInfo::new(runtime, attempt);
        let (deadline, lineage) = (first.deadline, runtime.lineage());
        let others = attempt.others.iter().map(move |other| CallInfo {
            row_id: other.id,
            attempt: other.attempt,
            deadline,
            key: key_of(lineage, other.id, &other.batch, other.row),
            context: other.batch.traced().cloned(),
        });
        std::iter::once(first).chain(others)
    }

    /// The id that the engine gave the row.
    pub fn row_id(&self) -> u64 {
        self.row_id
    }

    /// 1 for the first call for this row, 2 for the next one after an error or a timeout.
    pub fn attempt(&self) -> u16 {
        self.attempt
    }

    /// When the call, or its row, times out. None: never.
    pub fn deadline(&self) -> Option<Instant> {
        let left = self.deadline.saturating_sub(timer::now());
        (self.deadline != u64::MAX).then(|| Instant::now() + Duration::from_nanos(left))
    }

    /// As [`CallInfo::deadline`], in nanoseconds of the monotonic clock; u64::MAX: never.
    pub fn deadline_ns(&self) -> u64 {
        timer::on_system_clock(self.deadline)
    }

    /// The same for all calls for a row, also after a restart, and different for each row: what the engine gave with the row,
    /// or the lineage that it gave at the start, and the row's id, most significant byte first.
    pub fn idempotency_key(&self) -> Key {
        self.key
    }

    /// The engine's trace context of the row, as W3C defines it (`traceparent`). None: the engine gave none.
    pub fn trace_parent(&self) -> Option<&str> {
        self.trace_parent_c().and_then(|text| text.to_str().ok())
    }

    /// As [`CallInfo::trace_parent`], for C.
    pub fn trace_parent_c(&self) -> Option<&CStr> {
        self.context.as_ref()?.trace_parent.as_deref()
    }

    /// Runs `body` as part of this call.
    pub fn within<R>(&self, body: impl FnOnce() -> R) -> R {
        struct Former(*const CallInfo);
        impl Drop for Former {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        let _former = Former(CURRENT.replace(self));
        body()
    }
}

/// The idempotency key of a row's calls (R10). row: its place in the batch.
pub fn key_of(lineage: [u8; 16], id: u64, batch: &Batch, row: usize) -> Key {
    batch.context().and_then(|context| context.key(row)).unwrap_or_else(|| made_key(lineage, id))
}

/// The key of a row for which the host gave none.
fn made_key(lineage: [u8; 16], id: u64) -> Key {
    let mut key = [0; 24];
    key[..16].copy_from_slice(&lineage);
    key[16..].copy_from_slice(&id.to_be_bytes());
    key
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::arrow::Layout;
    use crate::runtime::{samples, Seat};

    #[test]
    fn a_call_that_waits_keeps_all_that_it_can_be_asked() {
        for given in [false, true] {
            let runtime = samples::runtime(Layout::Fixed(8), 10);
            let mut batch = samples::batch_of(2);
            if given {
                let keys = Some(Box::from([[7; 24], [8; 24]]));
                batch.set_context(Some(Arc::new(BatchContext { keys, trace_parent: Some(c"00-1".into()), ..BatchContext::default() })));
            }
            assert!(runtime.send(5, batch).is_ok());
            let attempt = Seat::take(&runtime).next().expect("the first row");
            let info = CallInfo::new(&runtime, &attempt);
            assert_eq!((info.row_id(), info.trace_parent().is_some()), (5, given));
            let kept = KeptInfo::new(&info, &attempt.batch);
            kept.with(info.attempt(), runtime.lineage(), |again| assert_eq!(again, &info));
        }
    }
}
