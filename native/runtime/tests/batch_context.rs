//! The context of a batch: a deadline for its rows, and a trace parent that their calls can ask for.
#![cfg(feature = "tokio")]

mod host;

use arroyo_udf_plugin::abi;
use arroyo_udf_plugin::value::Value;
use arroyo_udf_plugin::{call_info, timer, tokio, udf};
use host::started::{numbers, options, Started};
use host::{text, Row, NULL};
use std::ffi::CStr;
use std::time::Duration;

const HOUR: u64 = 3_600_000_000_000;

fn context(deadline_ns: u64, trace_parent: Option<&CStr>) -> abi::BatchContext {
    let trace_parent = trace_parent.map_or(std::ptr::null(), CStr::as_ptr);
    let size = size_of::<abi::BatchContext>() as u64;
    abi::BatchContext { size, deadline_ns, trace_parent, idempotency_keys: std::ptr::null(), constants: 0 }
}

/// Waits in between, so that its thread has run another row's call.
#[udf]
async fn traced(_x: i64) -> Option<String> {
    tokio::task::yield_now().await;
    call_info().trace_parent().map(str::to_owned)
}

#[udf(blocking)]
fn traced_blocking(_x: i64) -> Option<String> {
    call_info().trace_parent().map(str::to_owned)
}

#[test]
fn a_call_sees_the_trace_parent_of_its_batch() {
    for name in ["traced", "traced_blocking"] {
        let started = Started::new(name, abi::Options { timeout_ns: u64::MAX, ..options() }); // another test moves the clock
        let traces = [Some(c"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), None, Some(c"another")];
        for (first, trace) in (0..).step_by(50).zip(traces) {
            // The text is copied: it ends with this turn.
            let copy = trace.map(CStr::to_owned);
            assert_eq!(started.send_with(name, first, &[numbers(first..first + 50)], &context(0, copy.as_deref())), abi::OK);
        }
        let expected = |row: usize| traces[row / 50].map_or(NULL, |trace| Row::Value(text(trace.to_str().expect("ASCII"))));
        let rows: Vec<Row> = started.drain(150).into_iter().map(|(_, row)| row).collect();
        assert_eq!(rows, (0..150).map(expected).collect::<Vec<_>>(), "{name}");
    }
}

fn hexadecimal(key: &[u8]) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The key of the second attempt, after a first one that failed.
#[udf(max_attempts = 2, retry_on = "error", backoff = "1ms")]
async fn key(_x: i64) -> Result<String, String> {
    tokio::task::yield_now().await;
    let info = call_info();
    if info.attempt() == 1 {
        return Err("again".into());
    }
    Ok(hexadecimal(&info.idempotency_key()))
}

#[udf(blocking)]
fn key_blocking(_x: i64) -> String {
    hexadecimal(&call_info().idempotency_key())
}

/// R10
#[test]
fn a_call_has_the_key_that_came_with_its_row_and_else_lineage_and_id() {
    for name in ["key", "key_blocking"] {
        let lineage = [3; 16];
        let started = Started::new(name, abi::Options { timeout_ns: u64::MAX, lineage, ..options() });
        let keys: Vec<u8> = (0..50 * 24).map(|byte| (byte / 24 * 7 + byte % 24) as u8).collect();
        let mut with_keys = context(0, None);
        let copy = keys.clone(); // it ends before the calls do
        with_keys.idempotency_keys = copy.as_ptr();
        assert_eq!(started.send_with(name, 0, &[numbers(0..50)], &with_keys), abi::OK);
        // A host of the first version: what lies behind its struct is not read.
        with_keys.size = abi::BATCH_CONTEXT_SIZE_1;
        assert_eq!(started.send_with(name, 50, &[numbers(50..60)], &with_keys), abi::OK);
        drop(copy);
        let expected = (0..60).map(|row: usize| match keys.get(row * 24..row * 24 + 24) {
            Some(key) => hexadecimal(key),
            None => format!("{}{row:016x}", "03".repeat(16)),
        });
        let expected: Vec<Row> = expected.map(|key| Row::Value(text(&key))).collect();
        let rows: Vec<Row> = started.drain(60).into_iter().map(|(_, row)| row).collect();
        assert_eq!(rows, expected, "{name}");
    }
}

#[udf]
async fn never(_x: i64) -> i64 {
    std::future::pending().await
}

#[udf]
async fn left_ns(_x: i64) -> i64 {
    let left = call_info().deadline().map(|deadline| deadline.saturating_duration_since(std::time::Instant::now()));
    left.map_or(-1, |left| left.as_nanos() as i64)
}

#[test]
fn a_row_times_out_at_the_deadline_of_its_batch_or_of_the_options() {
    // No timeout and no deadline: without contexts this runtime would not look at the clock.
    let none = abi::Options { timeout_ns: u64::MAX, allowed_in_flight: 2, ..options() };
    let started = Started::new("never", none);
    // The second batch ends first: running, queued, and behind rows that have no deadline.
    assert_eq!(started.send_with("never", 0, &[numbers(0..4)], &context(3 * HOUR, None)), abi::OK);
    assert_eq!(started.send("never", 4, &[numbers(4..6)]), abi::OK);
    assert_eq!(started.send_with("never", 6, &[numbers(6..9)], &context(HOUR, None)), abi::OK);
    wait_for(|| started.statistics().running == 2);
    timer::advance(HOUR);
    wait_for(|| started.statistics().held == 3);
    assert_eq!(started.statistics().queued, 4);
    timer::advance(2 * HOUR);
    assert_eq!(started.drain(4), (0..4).map(|id| (id, Row::TimedOut)).collect::<Vec<_>>());
    assert_eq!(started.stop(abi::CANCEL, 60), abi::OK);

    // The earlier of both counts, and the call is told.
    let row_deadline = abi::Options { timeout_ns: 9 * HOUR, deadline_ns: 2 * HOUR, ..options() };
    let started = Started::new("left_ns", row_deadline);
    let left = |first: u64, deadline: u64| {
        let before = std::time::Instant::now();
        assert_eq!(started.send_with("left_ns", first, &[numbers(0..1)], &context(deadline, None)), abi::OK);
        match started.drain(1)[0].1 {
            Row::Value(Value::Fixed(left)) => (left, before.elapsed().as_nanos() as u64),
            ref other => panic!("{other:?}"),
        }
    };
    for (first, deadline, expected) in [(0, HOUR, HOUR), (1, 5 * HOUR, 2 * HOUR), (2, 0, 2 * HOUR), (3, u64::MAX, 2 * HOUR)] {
        let (left, passed) = left(first, deadline);
        assert!((expected - passed..=expected).contains(&left), "{left} of {expected}");
    }
}

/// The timer works in a thread of its own.
fn wait_for(condition: impl Fn() -> bool) {
    let patience = std::time::Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(std::time::Instant::now() < patience, "waited a minute");
        std::thread::yield_now();
    }
}
