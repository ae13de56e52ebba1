//! How an async function runs, and what is true of a batch.

use std::ffi::CString;
use std::time::Duration;

use arroyo_udf_abi as abi;

use crate::{Error, ErrorKind, Result};

/// The order in which results come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As rows were accepted.
    Ordered,
    /// As rows end.
    Unordered,
}

/// When a row gets another attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryOn {
    /// After a timeout.
    Timeouts,
    /// After an error.
    Errors,
    /// After either.
    TimeoutsAndErrors,
}

/// How to run an async function. `None`, or a number of 0, is the author's choice, else the default of `arroyo_udf.h`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The order of results.
    pub order: Option<Order>,
    /// Most attempts at once.
    pub allowed_in_flight: Option<u32>,
    /// Of one attempt; `Duration::MAX`: none.
    pub timeout: Option<Duration>,
    /// Of a row, with its time in the queue and all attempts; `Duration::MAX`: none.
    pub deadline: Option<Duration>,
    /// Whether the limit of attempts at once adapts; then `allowed_in_flight` is its largest value.
    pub adaptive: Option<bool>,
    /// Most attempts that start in a time: so many, in so many seconds.
    pub rate: Option<(u32, u32)>,
    /// Most rows held: waiting, running or not drained.
    pub max_rows: Option<u64>,
    /// Most bytes of the batches held.
    pub max_bytes: Option<u64>,
    /// Attempts per row.
    pub max_attempts: Option<u32>,
    /// When a row gets another attempt.
    pub retry_on: Option<RetryOn>,
    /// The pause before a row's second attempt, doubled for each later one.
    pub backoff: Option<Duration>,
    /// The longest pause.
    pub max_backoff: Option<Duration>,
    /// Of the pauses' jitter.
    pub seed: Option<u64>,
    /// Whether a row is retried although a former attempt ignored its cancellation.
    pub idempotent: Option<bool>,
    /// The runtime is poisoned once this many attempts ignore their cancellation.
    pub max_stuck: Option<u32>,
    /// Of rows whose batch brings no idempotency keys.
    pub lineage: Option<[u8; 16]>,
    /// Most rows of a micro-batch.
    pub batch_size: Option<u64>,
    /// How long a row waits for a micro-batch to fill.
    pub max_wait: Option<Duration>,
    /// Most bytes of a micro-batch.
    pub batch_bytes: Option<u64>,
    /// Whether equal arguments give equal values, so that rows that have them share a call.
    pub deterministic: Option<bool>,
    /// Most values kept for later rows; only for deterministic functions.
    pub cache: Option<u64>,
    /// Most bytes of what is kept, with the arguments.
    pub cache_bytes: Option<u64>,
    /// How long a value is kept.
    pub cache_ttl: Option<Duration>,
    /// Whether errors are kept, too.
    pub cache_errors: Option<bool>,
}

impl Options {
    /// As the plugin gets them.
    pub(crate) fn raw(&self) -> abi::Options {
        abi::Options {
            order: match self.order {
                None => 0,
                Some(Order::Ordered) => abi::ORDERED,
                Some(Order::Unordered) => abi::UNORDERED,
            },
            allowed_in_flight: self.allowed_in_flight.unwrap_or(0),
            timeout_ns: self.timeout.map_or(0, nanoseconds),
            deadline_ns: self.deadline.map_or(0, nanoseconds),
            max_rows: self.max_rows.unwrap_or(0),
            max_bytes: self.max_bytes.unwrap_or(0),
            max_attempts: self.max_attempts.unwrap_or(0),
            retry_on: match self.retry_on {
                None => 0,
                Some(RetryOn::Timeouts) => abi::RETRY_TIMEOUTS,
                Some(RetryOn::Errors) => abi::RETRY_ERRORS,
                Some(RetryOn::TimeoutsAndErrors) => abi::RETRY_TIMEOUTS | abi::RETRY_ERRORS,
            },
            backoff_ns: self.backoff.map_or(0, nanoseconds),
            max_backoff_ns: self.max_backoff.map_or(0, nanoseconds),
            seed: self.seed.unwrap_or(0),
            idempotent: self.idempotent.map_or(0, yes_or_no),
            max_stuck: self.max_stuck.unwrap_or(0),
            lineage: self.lineage.unwrap_or_default(),
            batch_size: self.batch_size.unwrap_or(0),
            max_wait_ns: self.max_wait.map_or(0, nanoseconds),
            batch_bytes: self.batch_bytes.unwrap_or(0),
            deterministic: self.deterministic.map_or(0, yes_or_no),
            cache: self.cache.unwrap_or(0),
            cache_bytes: self.cache_bytes.unwrap_or(0),
            cache_ttl_ns: self.cache_ttl.map_or(0, nanoseconds),
            cache_errors: self.cache_errors.map_or(0, yes_or_no),
            adaptive: self.adaptive.map_or(0, |yes| if yes { abi::YES } else { abi::NO }),
            rate: self.rate.map_or(0, |(starts, _)| starts),
            rate_seconds: self.rate.map_or(0, |(_, seconds)| seconds),
            ..abi::Options::unset()
        }
    }
}

/// What is true of all rows of one batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BatchContext {
    /// From the call, for each row.
    pub deadline: Option<Duration>,
    /// A W3C `traceparent`.
    pub trace_parent: Option<String>,
    /// For each row; where a row comes from, also when it is sent again after a restart.
    pub idempotency_keys: Option<Vec<[u8; 24]>>,
}

impl BatchContext {
    /// Calls with the context as the plugin gets it, for a batch with this many rows and these constants.
    pub(crate) fn with<T>(&self, rows: usize, constants: u64, call: impl FnOnce(*const abi::BatchContext) -> Result<T>) -> Result<T> {
        let invalid = |text: String| Error::new(ErrorKind::InvalidArgument, text);
        // The plugin reads 24 bytes for each row of the batch.
        if let Some(keys) = self.idempotency_keys.as_ref().filter(|keys| keys.len() != rows) {
            return Err(invalid(format!("{} idempotency keys for {rows} rows", keys.len())));
        }
        let trace_parent = self.trace_parent.as_deref().map(CString::new).transpose();
        let trace_parent = trace_parent.map_err(|_| invalid("a trace parent contains a zero byte".into()))?;
        call(&abi::BatchContext {
            size: size_of::<abi::BatchContext>() as u64,
            deadline_ns: self.deadline.map_or(0, nanoseconds),
            trace_parent: trace_parent.as_ref().map_or(std::ptr::null(), |text| text.as_ptr()),
            idempotency_keys: self.idempotency_keys.as_ref().map_or(std::ptr::null(), |keys| keys.as_ptr().cast()),
            constants,
        })
    }
}

fn yes_or_no(yes: bool) -> u32 {
    if yes {
        abi::YES
    } else {
        abi::NO
    }
}

/// At least 1, because 0 is no choice; the largest number, which has no end, for what is longer.
fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).max(1)
}
