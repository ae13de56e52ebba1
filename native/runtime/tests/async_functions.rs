//! Async functions marked `#[udf]`, started and drained through the C table on the tokio executor.
//!
//! No test sleeps to let something happen: rows wait for a semaphore that the test opens, or for ever.
#![cfg(feature = "tokio")]

mod host;

use arroyo_udf_plugin::abi;
use arroyo_udf_plugin::tokio::sync::Semaphore;
use arroyo_udf_plugin::value::Value;
use arroyo_udf_plugin::{tokio, udf, UdfContext};
use host::started::{numbers, options, Started};
use host::{batch, error, functions, no_error, number, text, value, Row, NULL, TABLE};
use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{mpsc, Arc, Mutex, OnceLock};
use std::time::Duration;

#[udf]
async fn next(x: i64) -> i64 {
    x + 1
}

#[udf(unordered, timeout = "10ms", allowed_in_flight = 3)]
async fn forever(x: i64) -> i64 {
    std::future::pending::<()>().await;
    x
}

#[udf(timeout = "1h")]
async fn various(name: String, kind: Option<Vec<u8>>) -> Result<Option<String>, String> {
    tokio::task::yield_now().await;
    match (name.as_str(), kind) {
        ("panic", _) => panic!("{name} it is"),
        ("late panic", _) => {
            tokio::task::yield_now().await;
            panic!("later")
        }
        ("error", _) => Err("an error".into()),
        ("null", _) => Ok(None),
        (_, None) => Ok(Some(format!("{name}!"))),
        (_, Some(kind)) => Ok(Some(format!("{name} {}", kind.len()))),
    }
}

#[udf(unordered)]
async fn hops(x: i64) -> i64 {
    for _ in 0..x % 5 {
        tokio::task::yield_now().await;
    }
    x
}

static LOOKED_UP: AtomicUsize = AtomicUsize::new(0);

#[udf(deterministic, cache = 10, cache_ttl = "1h")]
async fn looked_up(name: String, x: Option<i64>) -> Result<String, String> {
    LOOKED_UP.fetch_add(1, Ordering::SeqCst);
    tokio::task::yield_now().await;
    x.map(|x| format!("{name} {x}")).ok_or(format!("{name}?"))
}

/// R21
#[test]
fn rows_with_equal_arguments_are_one_call() {
    let started = Started::new("looked_up", options());
    let columns =
        [["a", "b", "a", "a", "b"].map(text).into(), [1, 1, 1, 0, 1].map(|x| if x == 0 { Value::Null } else { Value::Fixed(x) }).into()];
    for first in [0, 5, 10] {
        assert_eq!(started.send("looked_up", first, &columns), abi::OK);
        let found = |place: usize| Row::Value(text(["a 1", "b 1"][place]));
        let rows = [found(0), found(1), found(0), error("looked_up", first + 3, "a?"), found(1)];
        assert_eq!(started.drain(5), (first..).zip(rows).collect::<Vec<_>>());
    }
    assert_eq!(LOOKED_UP.load(Ordering::SeqCst), 2 + 3, "a call for each value, and one in each batch for the error");
    let counts = started.statistics();
    assert_eq!((counts.cache_misses, counts.cache_hits + counts.cache_shared, counts.cache_entries), (5, 10, 2));
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("bomb");
    }
}

#[udf]
async fn explodes(x: i64) -> i64 {
    match x {
        1 => std::panic::panic_any(Bomb),
        3 => {
            tokio::task::yield_now().await;
            std::panic::panic_any(Bomb)
        }
        _ => x,
    }
}

/// R2: not the end of the dispatcher.
#[test]
fn a_panic_with_a_payload_whose_drop_panics_is_an_error_of_its_row() {
    let started = Started::new("explodes", options());
    assert_eq!(started.send("explodes", 0, &[numbers(0..5)]), abi::OK);
    let drained = started.drain(5);
    let is_error = |row: &Row| matches!(row, Row::Error(text) if text.contains(": panicked at ") && text.ends_with(": panic"));
    assert_eq!(drained.iter().map(|(_, row)| is_error(row)).collect::<Vec<_>>(), [false, true, false, true, false]);
    assert_eq!(started.stop(abi::DRAIN, 60), abi::OK);
}

#[test]
fn the_descriptor_has_the_authors_options() {
    let options = |name: &str| {
        // SAFETY: options of a descriptor are constants.
        unsafe { functions()[number(name) as usize].options.as_ref() }.copied().expect("options")
    };
    assert_eq!(options("next"), abi::Options::unset());
    let chosen = abi::Options { order: abi::UNORDERED, timeout_ns: 10_000_000, allowed_in_flight: 3, ..abi::Options::unset() };
    assert_eq!(options("forever"), chosen);
    assert!(functions().iter().all(|function| function.kind == abi::ASYNC));
}

/// R1, R5: 100 batches with more rows than may run at once, some without an await.
#[test]
fn ordered_results_come_in_order_each_once() {
    let started = Started::new("next", options());
    let (rows, mut drained) = (1000, Vec::new());
    for first in (0..100 * rows).step_by(rows as usize) {
        while started.send("next", first, &[numbers(first..first + rows)]) == abi::WOULD_BLOCK {
            drained.extend(started.drain_some());
        }
    }
    let left = 100 * rows as usize - drained.len();
    drained.extend(started.drain(left));
    let expected: Vec<_> = (0..100 * rows).map(|x| (x, value(x + 1))).collect();
    assert!(drained == expected);
}

/// R1, R5
#[test]
fn unordered_results_come_each_once() {
    let started = Started::new("hops", options());
    assert_eq!(started.send("hops", 5, &[numbers(5..5005)]), abi::OK);
    let mut drained = started.drain(5000);
    drained.sort_by_key(|(id, _)| *id);
    let expected: Vec<_> = (5..5005).map(|x| (x, value(x))).collect();
    assert!(drained == expected);
}

/// Rows that never wait take turns with rows that do.
#[test]
fn rows_that_never_wait_do_not_hold_up_one_that_does() {
    let started = Started::new("hops", options());
    let others = (1..50_000).map(|x| 5 * x);
    assert_eq!(started.send("hops", 0, &[numbers(std::iter::once(4).chain(others))]), abi::OK);
    let drained = started.drain(50_000);
    let place = drained.iter().position(|(id, _)| *id == 0).expect("each row comes");
    assert!(place < 25_000, "it came as number {place}");
}

/// R2, F3, F4
#[test]
fn a_failing_row_affects_no_other() {
    let started = Started::new("various", options());
    let mut names: Vec<Value> = ["a", "panic", "b", "error", "null", "late panic", "c"].map(text).into();
    names.extend([Value::Null, Value::Bytes([0xff].into()), text("d")]);
    let mut kinds = vec![Value::Null; 10];
    kinds[2] = text("four");
    assert_eq!(started.send("various", 70, &[names, kinds]), abi::OK);
    let rows: Vec<Row> = started.drain(10).into_iter().map(|(_, row)| row).collect();
    let says = |row: &Row, start: &str, end: &str| matches!(row, Row::Error(text) if text.starts_with(start) && text.ends_with(end));
    assert_eq!(rows[0], Row::Value(text("a!")));
    assert!(says(&rows[1], "this_test.various, row 71: panicked at ", ": panic it is"), "{rows:?}");
    assert_eq!(rows[2], Row::Value(text("b 4")));
    assert_eq!(rows[3], error("various", 73, "an error"));
    assert_eq!(rows[4], NULL);
    assert!(says(&rows[5], "this_test.various, row 75: panicked at ", ": later"), "{rows:?}");
    assert_eq!(rows[6], Row::Value(text("c!")));
    assert_eq!(rows[7], NULL);
    assert!(says(&rows[8], "this_test.various, row 78: argument name: the text is not UTF-8", ""), "{rows:?}");
    assert_eq!(rows[9], Row::Value(text("d!")));
}

/// R6: the future is dropped, and later rows start.
#[test]
fn a_timeout_ends_its_row_only() {
    let started = Started::new("forever", options());
    assert_eq!(started.send("forever", 0, &[numbers(0..10)]), abi::OK);
    let mut ids: Vec<u64> = started.drain(10).into_iter().map(|(id, row)| (assert_eq!(row, Row::TimedOut), id).1).collect();
    ids.sort_unstable();
    assert_eq!(ids, Vec::from_iter(0..10));
    assert_eq!(started.stop(abi::DRAIN, 60), abi::OK);
    assert_eq!(started.statistics().running, 0);
}

static RUNNING: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

#[udf(allowed_in_flight = 7)]
async fn crowd(x: i64) -> i64 {
    let running = RUNNING.fetch_add(1, Ordering::SeqCst) + 1;
    MOST.fetch_max(running, Ordering::SeqCst);
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    RUNNING.fetch_sub(1, Ordering::SeqCst);
    x
}

/// R4
#[test]
fn no_more_run_at_once_than_allowed() {
    let started = Started::new("crowd", options());
    assert_eq!(started.send("crowd", 0, &[numbers(0..500)]), abi::OK);
    started.drain(500);
    assert_eq!(MOST.load(Ordering::SeqCst), 7);
}

static DROPPED: AtomicUsize = AtomicUsize::new(0);

struct CountsDrops;

impl Drop for CountsDrops {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Ordering::SeqCst);
    }
}

static ENTERED: Semaphore = Semaphore::const_new(0);

#[udf(timeout = "1h")]
async fn held(x: i64) -> i64 {
    let _counted = CountsDrops;
    ENTERED.add_permits(1);
    std::future::pending::<()>().await;
    x
}

/// R13: every accepted row has a result, futures are dropped before stop returns, and a second stop returns the same.
#[test]
fn a_stop_cancels_running_and_waiting_rows() {
    let started = Started::new("held", abi::Options { allowed_in_flight: 4, ..options() });
    assert_eq!(started.send("held", 0, &[numbers(0..10)]), abi::OK);
    let four = tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(ENTERED.acquire_many(4)).map(drop);
    assert!(four.is_ok());
    assert_eq!(started.stop(abi::CANCEL, 60), abi::OK);
    assert_eq!(DROPPED.load(Ordering::SeqCst), 4);
    assert_eq!(started.send("held", 100, &[numbers(0..1)]), abi::INVALID_STATE);
    let expected: Vec<_> = (0..10).map(|id| (id, Row::Cancelled)).collect();
    assert_eq!(started.drain(10), expected);
    assert_eq!(started.state(), abi::END);
    assert_eq!(started.stop(abi::CANCEL, 60), abi::OK);
}

static ASKED: Semaphore = Semaphore::const_new(0);
static GATE: Semaphore = Semaphore::const_new(0);

#[udf(timeout = "1h", unordered)]
async fn gated(x: i64) -> Result<i64, String> {
    ASKED.add_permits(1);
    let _permit = GATE.acquire().await.map_err(|closed| closed.to_string())?;
    Ok(x)
}

/// Cancelling rows ends these rows and no other; one that waits is never started.
#[test]
fn cancel_ends_the_rows_it_names() {
    let started = Started::new("gated", abi::Options { allowed_in_flight: 5, ..options() });
    assert_eq!(started.send("gated", 0, &[numbers(0..8)]), abi::OK);
    let five = tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(ASKED.acquire_many(5)).map(drop);
    assert!(five.is_ok());
    for id in [1, 3, 7] {
        // SAFETY: all pointers are valid.
        assert_eq!(unsafe { (TABLE.cancel)(started.0, id, 1, &mut no_error()) }, abi::OK);
    }
    let mut rows = started.drain(3);
    GATE.add_permits(1);
    rows.extend(started.drain(5));
    rows.sort_by_key(|(id, _)| *id);
    let expected: Vec<_> = (0..8).map(|id| (id, if [1, 3, 7].contains(&id) { Row::Cancelled } else { value(id) })).collect();
    assert_eq!(rows, expected);
    assert_eq!(started.stop(abi::DRAIN, 60), abi::OK);
}

/// R13: DRAIN lets every accepted row end.
#[test]
fn a_draining_stop_loses_nothing() {
    let started = Started::new("hops", abi::Options { allowed_in_flight: 2, ..options() });
    assert_eq!(started.send("hops", 0, &[numbers(0..3000)]), abi::OK);
    assert_eq!(started.stop(abi::DRAIN, 60), abi::OK);
    assert!(started.drain(3000).into_iter().all(|(id, row)| row == value(id)));
    assert_eq!(started.state(), abi::END);
}

#[udf(timeout = "1h")]
async fn dropped_badly(x: i64) -> i64 {
    struct Bad;
    impl Drop for Bad {
        fn drop(&mut self) {
            panic!("dropped badly");
        }
    }
    if x == 1 {
        let _bad = Bad;
        ENTERED_BADLY.add_permits(1);
        std::future::pending::<()>().await;
    }
    x
}

static ENTERED_BADLY: Semaphore = Semaphore::const_new(0);

/// A future that panics while it is dropped affects only its own row, which is already cancelled.
#[test]
fn a_panic_in_a_drop_affects_no_other_row() {
    let started = Started::new("dropped_badly", abi::Options { allowed_in_flight: 1, ..options() });
    assert_eq!(started.send("dropped_badly", 0, &[numbers(0..4)]), abi::OK);
    let one = tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(ENTERED_BADLY.acquire()).map(drop);
    assert!(one.is_ok());
    // SAFETY: all pointers are valid.
    assert_eq!(unsafe { (TABLE.cancel)(started.0, 1, 1, &mut no_error()) }, abi::OK);
    assert_eq!(started.drain(4), [(0, value(0)), (1, Row::Cancelled), (2, value(2)), (3, value(3))]);
    assert_eq!(started.stop(abi::DRAIN, 60), abi::OK);
}

static BLOCKED: std::sync::Barrier = std::sync::Barrier::new(2);
static UNBLOCKED: std::sync::Barrier = std::sync::Barrier::new(2);

/// A function with a Context has its own tokio runtime: blocking it does not block the functions of other tests.
struct OwnThread;

impl OwnThread {
    fn new() -> Self {
        OwnThread
    }
}

impl UdfContext for OwnThread {}

#[udf(timeout = "10ms")]
async fn blocks(_own: Arc<OwnThread>, x: i64) -> i64 {
    if x == 0 {
        BLOCKED.wait();
        UNBLOCKED.wait();
    }
    x
}

/// R6: a row that blocks its thread still times out at its deadline. R13: a stop gives up on it and reports STUCK; its
/// later result is discarded.
#[test]
fn a_blocked_thread_delays_neither_timeout_nor_stop() {
    let started = Started::new("blocks", abi::Options { allowed_in_flight: 1, max_stuck: 9, ..options() });
    assert_eq!(started.send("blocks", 0, &[numbers(0..4)]), abi::OK);
    BLOCKED.wait();
    assert_eq!(started.drain(1), [(0, Row::TimedOut)]);
    assert_eq!(started.stop(abi::DRAIN, 0), abi::STUCK);
    assert_eq!(started.drain(3), [(1, Row::Cancelled), (2, Row::Cancelled), (3, Row::Cancelled)]);
    assert_eq!(started.state(), abi::END);
    UNBLOCKED.wait();
}

static BUSY: std::sync::Barrier = std::sync::Barrier::new(2);
static IDLE: std::sync::Barrier = std::sync::Barrier::new(2);

#[udf(timeout = "1h")]
async fn computes(_own: Arc<OwnThread>, x: i64) -> i64 {
    if x == 0 {
        BUSY.wait();
        IDLE.wait();
    }
    x
}

/// R1, R4, R16: batches sent while the executor is busy count at once, before it sees them: for the budget, the ids and the
/// statistics; and their rows can be cancelled.
#[test]
fn batches_that_a_busy_executor_has_not_seen_count() {
    let started = Started::new("computes", abi::Options { max_rows: 4, ..options() });
    let send = |first: u64, rows: u64| started.send("computes", first, &[numbers(first..first + rows)]);
    let counts = || {
        let now = started.statistics();
        (now.accepted, now.queued, now.running, now.held)
    };
    assert_eq!(send(0, 1), abi::OK);
    BUSY.wait();
    assert_eq!(send(10, 2), abi::OK);
    assert_eq!(counts(), (3, 2, 1, 0));
    assert_eq!(send(11, 1), abi::INVALID_ARGUMENT);
    assert_eq!(send(20, 0), abi::OK);
    assert_eq!(send(20, 2), abi::OK);
    assert_eq!(send(30, 1), abi::WOULD_BLOCK);
    // SAFETY: all pointers are valid.
    assert_eq!(unsafe { (TABLE.cancel)(started.0, 20, 1, &mut no_error()) }, abi::OK);
    assert_eq!(counts(), (5, 3, 1, 1));
    IDLE.wait();
    let expected = [(0, value(0)), (10, value(10)), (11, value(11)), (20, Row::Cancelled), (21, value(21))];
    assert_eq!(started.drain(5), expected);
    assert_eq!(send(30, 1), abi::OK);
    assert_eq!(started.stop(abi::DRAIN, 60), abi::OK);
    assert_eq!(send(31, 1), abi::INVALID_STATE);
    assert_eq!(started.drain(1), [(30, value(30))]);
}

static HALFWAY: std::sync::Barrier = std::sync::Barrier::new(2);
static ONWARD: std::sync::Barrier = std::sync::Barrier::new(2);
static CALLED: Mutex<Vec<i64>> = Mutex::new(Vec::new());

#[udf(timeout = "1h")]
async fn strides(_own: Arc<OwnThread>, x: i64) -> Result<i64, String> {
    CALLED.lock().expect("no test panics with it").push(x);
    match x % 10 {
        _ if x == 40 => {
            HALFWAY.wait();
            ONWARD.wait();
        }
        3 => panic!("a three"),
        7 => return Err("a seven".into()),
        8 if x > 40 => tokio::task::yield_now().await,
        _ => {}
    }
    Ok(x)
}

/// R1, R5, R16: while a call computes, the rows before it can be drained and those behind it cancelled, though none of them
/// needs an attempt of its own.
#[test]
fn rows_around_a_call_that_computes_can_be_drained_and_cancelled() {
    let started = Started::new("strides", options());
    assert_eq!(started.send("strides", 0, &[numbers(0..100)]), abi::OK);
    HALFWAY.wait();
    let mut drained = started.drain(40);
    let now = started.statistics();
    assert_eq!((now.accepted, now.queued + now.running, now.held), (100, 60, 0));
    // SAFETY: all pointers are valid.
    assert_eq!(unsafe { (TABLE.cancel)(started.0, 41, 5, &mut no_error()) }, abi::OK);
    ONWARD.wait();
    drained.extend(started.drain(60));
    for (expected, (id, row)) in (0..).zip(drained) {
        assert_eq!(id, expected);
        match (id % 10, row) {
            (_, row) if (41..46).contains(&id) => assert_eq!(row, Row::Cancelled),
            (3, Row::Error(text)) => assert!(text.ends_with(": a three"), "{text}"),
            (7, Row::Error(text)) => assert!(text.ends_with(": a seven"), "{text}"),
            (_, row) => assert_eq!(row, value(id)),
        }
    }
    let called = CALLED.lock().expect("no test panics with it");
    assert!(called.iter().copied().eq((0..41).chain(46..100)), "{called:?}");
    assert_eq!(started.stop(abi::DRAIN, 60), abi::OK);
}

/// Each release of a batch sends the name of its thread here.
static RELEASED: OnceLock<mpsc::Sender<Option<String>>> = OnceLock::new();

/// R19: each batch is released once, in a thread of the host: during a call of this test or of another.
#[test]
fn batches_are_released_once_by_threads_of_the_host() {
    unsafe extern "C" fn release(array: *mut abi::ArrowArray) {
        let told = RELEASED.get().expect("a channel").send(std::thread::current().name().map(str::to_string));
        assert!(told.is_ok());
        // SAFETY: the plugin passes the array that it was given; its memory is leaked, which a test may do.
        unsafe { (*array).release = None };
    }
    let (sender, released) = mpsc::channel();
    assert!(RELEASED.set(sender).is_ok());
    let started = Started::new("next", options());
    for batch_number in 0..50 {
        let first = batch_number * 100;
        let mut arguments = batch("next", &[numbers(first..first + 100)], 0);
        arguments.release = Some(release);
        // SAFETY: all pointers are valid.
        assert_eq!(unsafe { (TABLE.send)(started.0, first, &mut arguments, std::ptr::null(), &mut no_error()) }, abi::OK);
        assert!(arguments.release.is_none(), "the batch has moved");
        started.drain(100);
    }
    assert_eq!(started.stop(abi::DRAIN, 60), abi::OK);
    // Another test's call may still release some: wait for the fiftieth; a fifty-first would have come by then.
    let threads: Vec<_> = (0..50).map(|_| released.recv_timeout(Duration::from_secs(60)).expect("a release")).collect();
    assert!(threads.iter().all(|thread| thread.as_deref() != Some("udf-tokio")), "{threads:?}");
    assert!(released.try_recv().is_err());
}

/// Handles started at the same time in several threads share only the library's tokio runtime.
#[test]
fn handles_do_not_disturb_each_other() {
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            scope.spawn(move || {
                let started = Started::new("next", abi::Options { allowed_in_flight: 10, ..options() });
                for first in (0..20).map(|i| i * 100) {
                    assert_eq!(started.send("next", first, &[numbers((0..100).map(|x| x + thread))]), abi::OK);
                    let expected: Vec<_> = (0..100).map(|x| (first + x, value(x + thread + 1))).collect();
                    assert_eq!(started.drain(100), expected);
                }
            });
        }
    });
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
        let started = Started::new("hops", abi::Options { allowed_in_flight, order, ..options() });
        let mut sent = 0;
        for (rows, cancelled) in steps {
            prop_assert_eq!(started.send("hops", sent, &[numbers(sent..sent + rows)]), abi::OK);
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
            prop_assert!(row == value(id) || row == Row::Cancelled);
        }
    }
}
