//! Blocking functions marked `#[udf(blocking)]`, started and drained through the C table on a pool of threads.
//!
//! No test sleeps to let something happen: rows wait for a gate that the test opens.

mod host;

use arroyo_udf_plugin::abi;
use arroyo_udf_plugin::udf;
use arroyo_udf_plugin::value::Value;
use host::started::{numbers, options, Started};
use host::{error, functions, no_error, number, text, value, Row, NULL, TABLE};
use proptest::prelude::*;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Condvar, Mutex};
use std::thread::ThreadId;

#[udf(blocking)]
fn next(x: i64) -> i64 {
    x + 1
}

/// Arguments may point into the batch, which lives as long as the call.
#[udf(blocking, timeout = "1h")]
fn various(name: &str, kind: Option<&[u8]>) -> Result<Option<String>, String> {
    match (name, kind) {
        ("panic", _) => panic!("{name} it is"),
        ("error", _) => Err("an error".into()),
        ("null", _) => Ok(None),
        (_, None) => Ok(Some(format!("{name}!"))),
        (_, Some(kind)) => Ok(Some(format!("{name} {}", kind.len()))),
    }
}

#[udf(blocking, unordered, timeout = "10ms", allowed_in_flight = 3)]
fn chosen(x: i64) -> i64 {
    x
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("bomb");
    }
}

#[udf(blocking)]
fn explodes(x: i64) -> i64 {
    if x == 1 {
        std::panic::panic_any(Bomb);
    }
    x
}

/// R2: not a failure of the toolkit.
#[test]
fn a_panic_with_a_payload_whose_drop_panics_is_an_error_of_its_row() {
    let started = Started::new("explodes", options());
    assert_eq!(started.send("explodes", 0, &[numbers(0..3)]), abi::OK);
    let drained = started.drain(3);
    assert!(matches!(&drained[1].1, Row::Error(text) if text.starts_with("this_test.explodes, row 1: panicked at ")), "{drained:?}");
    assert_eq!((&drained[0], &drained[2]), (&(0, value(0)), &(2, value(2))));
    assert_eq!(started.stop(abi::DRAIN, 60), abi::OK);
}

/// The host sees an async function with the author's options.
#[test]
fn a_blocking_function_is_an_async_one() {
    let function = functions()[number("chosen") as usize];
    // SAFETY: options of a descriptor are constants.
    let found = unsafe { function.options.as_ref() }.copied();
    let expected = abi::Options { order: abi::UNORDERED, timeout_ns: 10_000_000, allowed_in_flight: 3, ..options() };
    assert_eq!((function.kind, found), (abi::ASYNC, Some(expected)));
}

/// R1, R5
#[test]
fn ordered_results_come_in_order_each_once() {
    let started = Started::new("next", options());
    let (rows, mut drained) = (1000, Vec::new());
    for first in (0..50 * rows).step_by(rows as usize) {
        while started.send("next", first, &[numbers(first..first + rows)]) == abi::WOULD_BLOCK {
            drained.extend(started.drain_some());
        }
    }
    let left = 50 * rows as usize - drained.len();
    drained.extend(started.drain(left));
    let expected: Vec<_> = (0..50 * rows).map(|x| (x, value(x + 1))).collect();
    assert!(drained == expected);
}

/// R2, F3, F4
#[test]
fn a_failing_row_affects_no_other() {
    let started = Started::new("various", options());
    let mut names: Vec<Value> = ["a", "panic", "b", "error", "null"].map(text).into();
    names.extend([Value::Null, Value::Bytes([0xff].into()), text("d")]);
    let mut kinds = vec![Value::Null; 8];
    kinds[2] = text("four");
    assert_eq!(started.send("various", 70, &[names, kinds]), abi::OK);
    let rows: Vec<Row> = started.drain(8).into_iter().map(|(_, row)| row).collect();
    let says = |row: &Row, start: &str, end: &str| matches!(row, Row::Error(text) if text.starts_with(start) && text.ends_with(end));
    assert_eq!(rows[0], Row::Value(text("a!")));
    assert!(says(&rows[1], "this_test.various, row 71: panicked at ", ": panic it is"), "{rows:?}");
    assert_eq!(rows[2], Row::Value(text("b 4")));
    assert_eq!(rows[3], error("various", 73, "an error"));
    assert_eq!(rows[4], NULL);
    assert_eq!(rows[5], NULL);
    assert!(says(&rows[6], "this_test.various, row 76: argument name: the text is not UTF-8", ""), "{rows:?}");
    assert_eq!(rows[7], Row::Value(text("d!")));
}

static CROWD: Barrier = Barrier::new(7);
static RUNNING: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
static CROWD_THREADS: Mutex<Option<HashSet<ThreadId>>> = Mutex::new(None);

/// Waits for seven calls at once: with fewer threads it would never end.
#[udf(blocking, allowed_in_flight = 7)]
fn crowd(x: i64) -> i64 {
    let running = RUNNING.fetch_add(1, Ordering::SeqCst) + 1;
    MOST.fetch_max(running, Ordering::SeqCst);
    CROWD_THREADS.lock().expect("no panic").get_or_insert_with(HashSet::new).insert(std::thread::current().id());
    CROWD.wait();
    RUNNING.fetch_sub(1, Ordering::SeqCst);
    x
}

/// R4: exactly `allowed_in_flight` threads.
#[test]
fn all_calls_that_are_allowed_run_at_once() {
    let started = Started::new("crowd", options());
    assert_eq!(started.send("crowd", 0, &[numbers(0..700)]), abi::OK);
    started.drain(700);
    let threads = CROWD_THREADS.lock().expect("no panic").take().map(|threads| threads.len());
    assert_eq!((MOST.load(Ordering::SeqCst), threads), (7, Some(7)));
    assert_eq!(started.stop(abi::DRAIN, 60), abi::OK);
}

/// Waiting rows, and a gate for all of them.
struct Gate {
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

impl Gate {
    const fn new() -> Gate {
        Gate { state: Mutex::new((0, false)), changed: Condvar::new() }
    }

    fn pass(&self) {
        let mut state = self.state.lock().expect("no panic");
        state.0 += 1;
        self.changed.notify_all();
        drop(self.changed.wait_while(state, |(_, open)| !*open));
    }

    fn wait_for(&self, rows: usize) {
        let state = self.state.lock().expect("no panic");
        drop(self.changed.wait_while(state, |(waiting, _)| *waiting < rows));
    }

    fn open(&self) {
        self.state.lock().expect("no panic").1 = true;
        self.changed.notify_all();
    }
}

static LATE: Gate = Gate::new();

#[udf(blocking, timeout = "10ms", allowed_in_flight = 1)]
fn late(x: i64) -> i64 {
    if x == 1 {
        LATE.pass();
    }
    x
}

/// R6: the row times out at its deadline, its thread runs on, and the result is discarded.
#[test]
fn a_late_call_keeps_its_thread_until_it_returns() {
    let started = Started::new("late", abi::Options { max_stuck: 9, ..options() });
    assert_eq!(started.send("late", 0, &[numbers(0..2)]), abi::OK);
    let rows: Vec<_> = started.drain(2);
    assert!(rows[1] == (1, Row::TimedOut), "{rows:?}");
    assert_eq!(started.send("late", 2, &[numbers(2..4)]), abi::OK);
    LATE.open();
    let ids: Vec<_> = started.drain(2).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, [2, 3]);
    assert_eq!(started.stop(abi::DRAIN, 60), abi::OK);
    assert_eq!(started.state(), abi::END);
    let counts = started.statistics();
    assert!(counts.timed_out >= 1);
    assert_eq!(counts.discarded, counts.timed_out, "every row that timed out came to something later");
}

static CANCELLED: Gate = Gate::new();

#[udf(blocking, timeout = "1h", allowed_in_flight = 2)]
fn gated(x: i64) -> i64 {
    CANCELLED.pass();
    x
}

/// A cancelled row ends at once, even before it has started; the others run when the threads are free again.
#[test]
fn cancel_ends_the_rows_it_names() {
    let started = Started::new("gated", abi::Options { max_stuck: 9, ..options() });
    assert_eq!(started.send("gated", 0, &[numbers(0..5)]), abi::OK);
    CANCELLED.wait_for(2);
    for id in [0, 3] {
        // SAFETY: all pointers are valid.
        assert_eq!(unsafe { (TABLE.cancel)(started.0, id, 1, &mut no_error()) }, abi::OK);
    }
    assert_eq!(started.drain(1), [(0, Row::Cancelled)]);
    CANCELLED.open();
    assert_eq!(started.drain(4), [(1, value(1)), (2, value(2)), (3, Row::Cancelled), (4, value(4))]);
    assert_eq!(started.stop(abi::DRAIN, 60), abi::OK);
}

static STUCK: Gate = Gate::new();

#[udf(blocking, timeout = "1h", allowed_in_flight = 2)]
fn stuck(x: i64) -> i64 {
    STUCK.pass();
    x
}

/// R1, R13: a stop gives up on calls that do not return and reports STUCK; every row has a result, and the threads end when
/// their calls return.
#[test]
fn a_stop_does_not_wait_for_stuck_calls() {
    let started = Started::new("stuck", options());
    assert_eq!(started.send("stuck", 0, &[numbers(0..5)]), abi::OK);
    STUCK.wait_for(2);
    assert_eq!(started.stop(abi::DRAIN, 0), abi::STUCK);
    assert_eq!(started.send("stuck", 5, &[numbers(5..6)]), abi::INVALID_STATE);
    let expected: Vec<_> = (0..5).map(|id| (id, Row::Cancelled)).collect();
    assert_eq!(started.drain(5), expected);
    assert_eq!(started.state(), abi::END);
    drop(started);
    STUCK.open();
}

static DEAF: Gate = Gate::new();

#[udf(blocking, timeout = "10ms", allowed_in_flight = 2)]
fn deaf(x: i64) -> i64 {
    if x < 2 {
        DEAF.pass();
    }
    x
}

/// R8: calls that run on for a second after their timeout are stuck and do not count for the cap; others get new threads.
#[test]
fn stuck_calls_make_way() {
    let started = Started::new("deaf", abi::Options { max_stuck: 9, ..options() });
    assert_eq!(started.send("deaf", 0, &[numbers(0..2)]), abi::OK);
    assert_eq!(started.drain(2), [(0, Row::TimedOut), (1, Row::TimedOut)]);
    assert_eq!(started.send("deaf", 2, &[numbers(2..50)]), abi::OK);
    started.drain(48);
    while started.statistics().stuck < 2 {
        std::thread::yield_now();
    }
    DEAF.open();
    while started.statistics().running > 0 {
        std::thread::yield_now();
    }
    assert_eq!(started.stop(abi::DRAIN, 60), abi::OK);
}

/// The threads that a function ran in, by their ids in the system.
static TASKS: Mutex<Option<HashSet<i32>>> = Mutex::new(None);
static TOGETHER: Barrier = Barrier::new(4);

#[udf(blocking, allowed_in_flight = 4)]
fn noted(x: i64) -> i64 {
    // SAFETY: it takes nothing and always succeeds.
    let task = unsafe { libc::gettid() };
    TASKS.lock().expect("no panic").get_or_insert_with(HashSet::new).insert(task);
    TOGETHER.wait();
    x
}

/// R13: threads end with their runtime, each time; idle threads as well as those that have just worked.
#[test]
fn threads_end_with_their_runtime() {
    for mode in [abi::DRAIN, abi::CANCEL].repeat(20) {
        let started = Started::new("noted", options());
        assert_eq!(started.send("noted", 0, &[numbers(0..8)]), abi::OK);
        started.drain(8);
        assert_eq!(started.stop(mode, 60), abi::OK);
        let tasks = TASKS.lock().expect("no panic").take().expect("some");
        assert_eq!(tasks.len(), 4);
        // The last thread has reported the end of the others, and is about to end.
        while tasks.iter().any(|task| std::fs::exists(format!("/proc/self/task/{task}")).expect("a /proc")) {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_runtime_without_rows_stops() {
    for _ in 0..200 {
        let started = Started::new("next", options());
        assert_eq!(started.stop(abi::DRAIN, 60), abi::OK);
        assert_eq!(started.state(), abi::END);
    }
}

proptest! {
    /// R1, R5: whatever is sent and cancelled, each row comes out once, with its value or cancelled; in order where ordered.
    #[test]
    fn each_accepted_row_comes_out_once(
        steps in prop::collection::vec((0u64..300, any::<Option<(u64, u64)>>()), 1..12),
        allowed_in_flight in 1u32..20,
        order in abi::ORDERED..=abi::UNORDERED,
        mode in abi::DRAIN..=abi::CANCEL,
    ) {
        let started = Started::new("next", abi::Options { allowed_in_flight, order, ..options() });
        let mut sent = 0;
        for (rows, cancelled) in steps {
            prop_assert_eq!(started.send("next", sent, &[numbers(sent..sent + rows)]), abi::OK);
            sent += rows;
            if let Some((first, rows)) = cancelled {
                // SAFETY: all pointers are valid.
                prop_assert_eq!(unsafe { (TABLE.cancel)(started.0, first % (sent + 1), rows % 50, &mut no_error()) }, abi::OK);
            }
        }
        prop_assert_eq!(started.stop(mode, 60), abi::OK);
        let mut drained = started.drain(sent as usize);
        prop_assert_eq!(started.state(), abi::END);
        if order == abi::UNORDERED {
            drained.sort_by_key(|(id, _)| *id);
        }
        for (expected, (id, row)) in (0..).zip(drained) {
            prop_assert_eq!(id, expected);
            prop_assert!(row == value(id + 1) || row == Row::Cancelled);
        }
    }
}
