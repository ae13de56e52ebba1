//! What a call can ask about itself (R10), in async and blocking functions marked `#[udf]`.
#![cfg(feature = "tokio")]

mod host;

use arroyo_udf_plugin::abi;
use arroyo_udf_plugin::value::Value;
use arroyo_udf_plugin::{call_info, tokio, udf, CallInfo};
use host::started::{numbers, options, Started};
use host::{text, value, Row};
use std::fmt::Write;
use std::panic::catch_unwind;
use std::time::{Duration, Instant};

const LINEAGE: [u8; 16] = [7; 16];

fn told(info: &CallInfo) -> String {
    let key = info.idempotency_key().iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes everything");
        text
    });
    format!("{} {} {key}", info.row_id(), info.attempt())
}

/// The expected answer for attempt `attempt` of row `row`.
fn expected(row: u64, attempt: u16) -> Value {
    text(&format!("{row} {attempt} {}{row:016x}", "07".repeat(16)))
}

/// Others run on the same thread while it waits.
#[udf]
async fn says(x: i64) -> String {
    let first = call_info();
    for _ in 0..x % 4 {
        tokio::task::yield_now().await;
        assert_eq!(call_info(), first);
    }
    told(&tokio::join!(async { call_info() }).0)
}

#[udf(blocking)]
fn says_blocking(_x: i64) -> String {
    told(&call_info())
}

#[udf(max_attempts = 3, retry_on = "error", backoff = "1ms")]
async fn third(_x: i64) -> Result<String, String> {
    tokio::task::yield_now().await;
    let info = call_info();
    if info.attempt() < 3 {
        Err(told(&info))
    } else {
        Ok(told(&info))
    }
}

#[udf(blocking, max_attempts = 3, retry_on = "error", backoff = "1ms")]
fn third_blocking(_x: i64) -> Result<String, String> {
    let info = call_info();
    if info.attempt() < 3 {
        Err(told(&info))
    } else {
        Ok(told(&info))
    }
}

fn with_lineage() -> abi::Options {
    abi::Options { lineage: LINEAGE, ..options() }
}

fn answers(name: &str, options: abi::Options, first: u64, rows: u64) -> Vec<(u64, Row)> {
    let started = Started::new(name, options);
    assert_eq!(started.send(name, first, &[numbers(0..rows)]), abi::OK);
    started.drain(rows as usize)
}

/// R10
#[test]
fn each_call_sees_its_row_and_its_key() {
    for name in ["says", "says_blocking"] {
        let expected: Vec<_> = (1000..1500).map(|row| (row, Row::Value(expected(row, 1)))).collect();
        assert_eq!(answers(name, with_lineage(), 1000, 500), expected, "{name}");
    }
}

/// R10, R7: also after a restore.
#[test]
fn another_attempt_has_its_own_number_and_the_same_key() {
    for name in ["third", "third_blocking"] {
        let expected: Vec<_> = (5..25).map(|row| (row, Row::Value(expected(row, 3)))).collect();
        assert_eq!(answers(name, with_lineage(), 5, 20), expected, "{name}");
        assert_eq!(answers(name, with_lineage(), 5, 20), expected, "{name}");
    }
}

/// R10
#[test]
fn starts_without_a_lineage_have_keys_of_their_own() {
    assert_ne!(answers("says", options(), 0, 1), answers("says", options(), 0, 1));
}

/// Nanoseconds until the deadline; -1: none.
#[udf]
async fn left(_x: i64) -> i64 {
    call_info().deadline().map_or(-1, |deadline| deadline.saturating_duration_since(Instant::now()).as_nanos() as i64)
}

/// R10
#[test]
fn the_deadline_is_that_of_the_call_or_of_the_row() {
    let hour = Duration::from_secs(3600).as_nanos() as u64;
    let until = |options: abi::Options| match &answers("left", options, 0, 1)[0].1 {
        Row::Value(Value::Fixed(left)) => *left,
        other => panic!("{other:?}"),
    };
    let before = Instant::now();
    let of_the_call = until(abi::Options { timeout_ns: hour, ..options() });
    let of_the_row = until(abi::Options { timeout_ns: 2 * hour, deadline_ns: hour, ..options() });
    let passed = before.elapsed().as_nanos() as u64;
    for left in [of_the_call, of_the_row] {
        assert!((hour - passed..=hour).contains(&left), "{left} {passed}");
    }
    let none = abi::Options { timeout_ns: u64::MAX, ..options() };
    assert_eq!(answers("left", none, 0, 1), [(0, value(u64::MAX))]);
}

#[udf]
async fn spawns(_x: i64) -> Result<bool, tokio::task::JoinError> {
    let info = call_info();
    let inside = tokio::spawn(async move { catch_unwind(call_info).is_err() && info.attempt() == 1 });
    inside.await
}

/// R10: neither a task that a call spawned nor a thread where a call ran counts as inside the call.
#[test]
fn outside_of_a_call_it_panics_and_says_so() {
    assert_eq!(answers("spawns", options(), 0, 3), (0..3).map(|row| (row, value(1))).collect::<Vec<_>>());
    let panic = catch_unwind(call_info).expect_err("outside of a call");
    let said = panic.downcast_ref::<&str>().expect("a text");
    assert!(said.starts_with("call_info() outside of a call: it is for async and blocking functions"), "{said}");
}
