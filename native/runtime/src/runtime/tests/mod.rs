//! A runtime without a real executor: failures of the toolkit, which no plugin can bring about.

use super::{samples, After, Ahead, Drained, Executor, Orders, Runtime, Seat};
use crate::abi;
use crate::arrow::Layout;
use crate::machine::{Outcome, Settings, Stop};
use crate::timer::{now, tick, Ticking};
use crate::value::Value;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::time::Duration;

mod remote;
mod stretches;
mod told;

const SOON: Duration = Duration::from_secs(60);

/// Does nothing: the test takes the turns.
struct Idle;

impl Executor for Idle {
    fn wake(&self) {}
}

fn served(returns: Layout) -> Seat {
    let seat = Seat::take(&samples::runtime(returns, 10));
    seat.serve(Box::new(Idle));
    seat
}

fn send(runtime: &Runtime, id: u64) {
    assert!(runtime.send(id, samples::batch()).is_ok());
}

/// The number of rows of a drain, which must hand out some.
fn rows(runtime: &Runtime) -> i64 {
    let Ok(Drained::Rows(mut array)) = runtime.drain(0) else { panic!("there are rows") };
    let length = array.length;
    // SAFETY: ours, released once.
    unsafe { array.release.unwrap()(&mut array) };
    length
}

#[test]
fn r17_a_drain_whose_export_panics_loses_no_row() {
    let runtime = served(Layout::Fixed(4));
    for id in 0..2 {
        send(&runtime, id);
        let attempt = runtime.next().unwrap();
        // Fewer bytes than the layout has: a mistake that only the toolkit could make.
        runtime.end(attempt.token, Outcome::Value(Value::Bytes([1].into())));
    }
    let failure = runtime.drain(0).unwrap_err();
    assert!(failure.status == abi::INTERNAL && failure.text.contains("internal error"), "{failure:?}");
    assert!(runtime.is_poisoned());
    assert_eq!(runtime.statistics().drained, 0);
    assert_eq!(rows(&runtime), 2, "they come out as errors");
    assert_eq!(runtime.statistics().drained, 2);
    assert!(matches!(runtime.drain(0), Ok(Drained::End)));
}

#[test]
fn r17_a_stop_after_a_poisoning_waits_for_calls_that_are_cancelled() {
    let runtime = served(Layout::Fixed(8));
    send(&runtime, 0);
    let attempt = runtime.next().unwrap();
    runtime.poison("a mistake");
    assert_eq!(rows(&runtime), 1, "answered at once");
    let stop = {
        let runtime = runtime.clone();
        std::thread::spawn(move || runtime.stop(Stop::Cancel, SOON))
    };
    let mut orders = Orders::default();
    runtime.begin_turn(&mut orders);
    assert_eq!(orders.cancelled, [attempt.token]);
    assert_eq!(runtime.end_turn(), After::Asleep, "not to be closed: the call runs");
    runtime.end(attempt.token, Outcome::Cancelled);
    runtime.stop_soon(Stop::Cancel);
    assert_eq!(runtime.end_turn(), After::Settled);
    runtime.closed(Ok(()));
    let failure = stop.join().unwrap().unwrap_err();
    assert_eq!((failure.status, failure.text.as_str()), (abi::INTERNAL, "plugin.function: a mistake"));
}

#[test]
fn r17_a_panic_in_an_executors_loop_poisons() {
    let runtime = served(Layout::Fixed(8));
    send(&runtime, 0);
    assert_eq!(runtime.guard(|| 7), Some(7));
    assert_eq!(runtime.guard(|| -> () { panic!("of the loop") }), None);
    let failure = runtime.send(1, samples::batch()).err().unwrap().failure.unwrap();
    assert_eq!(failure.text, "plugin.function: internal error: of the loop");
    assert_eq!(rows(&runtime), 1);
}

#[test]
fn r17_calls_of_an_executor_that_has_ended_have_ended() {
    let runtime = served(Layout::Fixed(8));
    send(&runtime, 0);
    let attempt = runtime.next().unwrap();
    runtime.poison("a mistake");
    runtime.closed(Ok(()));
    assert_eq!((runtime.counts().running, runtime.end(attempt.token, Outcome::Cancelled)), (0, false));
    assert!(runtime.stop(Stop::Cancel, SOON).is_err());
}

/// Only the stop gives up: the executor may be in a `close` that cannot be interrupted.
#[test]
fn r12_a_stop_waits_only_so_long_for_a_close() {
    let runtime = served(Layout::Fixed(8));
    send(&runtime, 0);
    let attempt = runtime.next().unwrap();
    runtime.end(attempt.token, Outcome::Cancelled);
    runtime.stop_soon(Stop::Drain);
    assert_eq!(runtime.end_turn(), After::Settled, "it closes");
    let failure = runtime.stop_within(Stop::Drain, Duration::MAX, Duration::ZERO).unwrap_err();
    let text = "plugin.function: close failed: close of the Context took more than 10 s";
    assert_eq!((failure.status, failure.text.as_str()), (abi::USER_CODE, text));
    assert_eq!(rows(&runtime), 1, "no results are lost");
    assert!(matches!(runtime.drain(0), Ok(Drained::End)));
    runtime.closed(Ok(()));
    assert!(runtime.stop(Stop::Drain, Duration::MAX).is_err(), "each stop answers the same");
}

/// Counts in `data`.
unsafe extern "C" fn ring(data: *mut c_void) {
    // SAFETY: the counter of the test below, which outlives its runtime.
    unsafe { &*data.cast::<AtomicU32>() }.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn r14_ready_withdraws_the_former_request() {
    for (withdrawn, expected) in [(false, 1), (true, 0)] {
        let rung = AtomicU32::new(0);
        let runtime = served(Layout::Fixed(8));
        let arm = |condition| runtime.arm(condition, ring, (&raw const rung).cast_mut().cast());
        assert!(!arm(abi::RESULTS));
        assert!(!withdrawn || arm(abi::ROOM), "there is room");
        send(&runtime, 0);
        let attempt = runtime.next().unwrap();
        runtime.end(attempt.token, Outcome::Value(Value::Fixed(1)));
        _ = runtime.end_turn();
        runtime.stop_soon(Stop::Cancel);
        assert_eq!(rung.load(Ordering::Relaxed), expected);
        assert_eq!(rows(&runtime), 1);
    }
}

/// Counts how often it is woken.
#[derive(Clone, Default)]
struct Counting(Arc<AtomicU32>);

impl Executor for Counting {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Counting {
    /// How often since the last look.
    fn woken(&self) -> u32 {
        self.0.swap(0, Ordering::SeqCst)
    }
}

/// A runtime with two executors, which runs that many attempts at once.
fn shared() -> [(Seat, Counting); 2] {
    let runtime = samples::runtime_of(Layout::Fixed(8), 100, 4);
    [(); 2].map(|()| {
        let (seat, executor) = (Seat::take(&runtime), Counting::default());
        seat.serve(Box::new(executor.clone()));
        (seat, executor)
    })
}

#[test]
fn a_row_wakes_one_executor_and_further_rows_the_next() {
    let [(one, first), (other, second)] = shared();
    send(&one, 0);
    assert_eq!((first.woken(), second.woken()), (1, 0));
    let attempt = one.next().unwrap();
    assert_eq!((first.woken(), second.woken()), (0, 0), "there is nothing more to start");
    send(&one, 1);
    assert_eq!((first.woken(), second.woken()), (0, 1), "the first may be in the middle of a long call");
    send(&one, 2);
    assert_eq!((first.woken(), second.woken()), (0, 0), "nobody sleeps");
    let more = [other.next().unwrap(), other.next().unwrap()];
    for seat in [&one, &other] {
        assert_eq!(seat.end_turn(), After::Asleep);
    }
    send(&one, 3);
    assert_eq!((first.woken(), second.woken()), (1, 0), "it has one attempt, the second has two");
    for attempt in more.iter().chain([&attempt]) {
        assert!(one.end(attempt.token, Outcome::Value(Value::Fixed(1))));
    }
}

#[test]
fn r6_a_cancellation_goes_to_the_executor_that_runs_the_attempt() {
    let [(one, first), (other, second)] = shared();
    send(&one, 0);
    send(&one, 1);
    let (mine, theirs) = (one.next().unwrap(), other.next().unwrap());
    for seat in [&one, &other] {
        assert_eq!(seat.end_turn(), After::Asleep);
    }
    first.woken();
    second.woken();
    one.cancel(theirs.id, 1);
    assert_eq!((first.woken(), second.woken()), (0, 1));
    let mut orders = Orders::default();
    one.begin_turn(&mut orders);
    assert!(orders.cancelled.is_empty());
    other.begin_turn(&mut orders);
    assert_eq!(orders.cancelled, [theirs.token]);
    other.end(theirs.token, Outcome::Cancelled);
    one.end(mine.token, Outcome::Value(Value::Fixed(1)));
    assert_eq!(one.counts().cancelled, 1);
}

#[test]
fn r13_a_runtime_has_ended_when_its_last_executor_has_closed() {
    let [(one, first), (other, second)] = shared();
    one.stop_soon(Stop::Cancel);
    assert_eq!((first.woken(), second.woken()), (1, 1));
    assert_eq!((one.end_turn(), other.end_turn()), (After::Settled, After::Settled));
    one.closed(Err("it would not".into()));
    assert!(matches!(one.drain(0), Ok(Drained::Nothing)));
    other.closed(Ok(()));
    assert!(matches!(one.drain(0), Ok(Drained::End)));
    let failure = one.stop(Stop::Cancel, SOON).unwrap_err();
    assert!(failure.text.contains("it would not"), "{failure:?}");
}

#[test]
fn an_executor_that_ends_takes_its_attempts_with_it() {
    let [(one, _), (other, _)] = shared();
    send(&one, 0);
    send(&one, 1);
    let (_gone, stays) = (one.next().unwrap(), other.next().unwrap());
    one.closed(Ok(()));
    assert_eq!(one.counts().cancelled, 1);
    assert!(other.end(stays.token, Outcome::Value(Value::Fixed(1))));
    send(&one, 2);
    assert!(other.next().is_some(), "the other goes on");
}

/// Two executors that take rows ahead, in a turn.
fn ahead() -> [Ahead; 2] {
    let runtime = samples::runtime_of(Layout::Fixed(8), 1000, 400);
    let seats = [(); 2].map(|()| Seat::take(&runtime));
    seats.map(|seat| {
        seat.serve(Box::new(Idle));
        let mut ahead = Ahead::new(seat);
        ahead.begin_turn(&mut Orders::default());
        ahead
    })
}

#[test]
fn an_executor_that_shares_takes_a_fair_part_of_the_rows_ahead() {
    let [mut one, mut other] = ahead();
    (0..20).for_each(|id| send(&one, id));
    one.take(now(), 16);
    assert_eq!(one.next_attempt().map(|attempt| attempt.id), Some(0));
    assert_eq!(one.counts().running, 5, "a quarter of what waits");
    assert_eq!(other.next_attempt().map(|attempt| attempt.id), Some(5));
    assert_eq!(one.end_turn(), After::Again, "it has rows");
    assert!(one.can_start());
}

#[test]
fn an_executor_that_knows_nothing_of_its_rows_takes_one() {
    let [mut one, _] = ahead();
    (0..20).for_each(|id| send(&one, id));
    assert!(one.next_attempt().is_some());
    assert_eq!(one.counts().running, 1);
}

/// An executor that takes rows ahead, in a turn, with a timeout for each attempt.
fn ahead_within(timeout: u64) -> Ahead {
    let settings = |settings| Settings { max_rows: 100, allowed_in_flight: 16, timeout: Some(timeout), max_stuck: 100, ..settings };
    let seat = Seat::take(&samples::runtime_with(Layout::Fixed(8), settings));
    seat.serve(Box::new(Idle));
    let mut ahead = Ahead::new(seat);
    ahead.begin_turn(&mut Orders::default());
    ahead
}

const HOUR: u64 = 3_600_000_000_000;

#[test]
fn r6_the_timeout_of_a_row_that_was_taken_ahead_begins_with_its_call() {
    let mut ahead = ahead_within(HOUR);
    (0..3).for_each(|id| send(&ahead, id));
    let start = now();
    ahead.take(start, 16);
    let first = ahead.next_attempt().unwrap();
    assert_eq!((ahead.counts().running, first.deadline), (3, start + HOUR));
    let over = start + HOUR + tick();
    ahead.tick(over);
    assert_eq!(ahead.counts().timed_out, 1, "the first has had its time, the others have not begun");
    let second = ahead.next_attempt().unwrap();
    assert!((start + HOUR..start + 2 * HOUR).contains(&second.deadline), "counted from its beginning");
    ahead.tick(over + HOUR - 1);
    assert_eq!(ahead.counts().timed_out, 1);
    ahead.tick(over + HOUR);
    ahead.tick(now() + 2 * HOUR);
    assert_eq!(ahead.counts().timed_out, 2, "the third has not begun");
    assert!(ahead.next_attempt().is_some());
    ahead.tick(start + 10 * HOUR);
    assert_eq!(ahead.counts().timed_out, 3);
}

#[test]
fn r6_a_call_that_goes_on_while_further_rows_are_taken_keeps_its_time() {
    let mut ahead = ahead_within(HOUR);
    (0..3).for_each(|id| send(&ahead, id));
    let start = now();
    ahead.take(start, 2);
    let begun = [ahead.next_attempt().unwrap(), ahead.next_attempt().unwrap()];
    ahead.take(start + HOUR / 2, 1);
    ahead.tick(start + HOUR - 1);
    assert_eq!(ahead.counts().timed_out, 0);
    ahead.tick(start + HOUR + tick() + HOUR / 4);
    assert_eq!(ahead.counts().timed_out, 2, "those that began first");
    begun.into_iter().for_each(|attempt| ahead.end(attempt.token, Outcome::Cancelled));
}

#[test]
fn r6_an_outcome_that_was_left_in_time_is_not_late() {
    let mut ahead = ahead_within(HOUR);
    send(&ahead, 0);
    let start = now();
    let attempt = ahead.next_attempt().unwrap();
    ahead.end(attempt.token, Outcome::Value(Value::Fixed(1)));
    ahead.tick(start + 10 * HOUR);
    assert_eq!((ahead.counts().values, ahead.counts().timed_out), (1, 0));
}

#[test]
fn the_host_is_told_of_results_although_the_executor_stays_in_a_call() {
    let runtime = samples::runtime_of(Layout::Fixed(8), 100, 4);
    let seat = Seat::take(&runtime);
    seat.serve(Box::new(Idle));
    let mut ahead = Ahead::new(seat);
    ahead.begin_turn(&mut Orders::default());
    (0..3).for_each(|id| send(&runtime, id));
    ahead.take(now(), 2);
    let first = ahead.next_attempt().unwrap();
    ahead.end(first.token, Outcome::Value(Value::Fixed(1)));
    let second = ahead.next_attempt().unwrap();
    ahead.end(second.token, Outcome::Value(Value::Fixed(1)));
    assert!(ahead.next_attempt().is_some(), "this call computes");
    assert!(runtime.wait(abi::RESULTS, SOON), "the timer has told");
    assert_eq!(rows(&runtime), 2);
}

#[test]
fn outcomes_without_room_in_the_outbox_are_handed_over() {
    let runtime = samples::runtime_of(Layout::Fixed(8), 1000, 400);
    let seat = Seat::take(&runtime);
    seat.serve(Box::new(Idle));
    let mut ahead = Ahead::new(seat);
    (0..100).for_each(|id| send(&runtime, id));
    let begun: Vec<_> = std::iter::from_fn(|| ahead.next_attempt()).collect();
    assert_eq!(begun.len(), 100);
    begun.into_iter().for_each(|attempt| ahead.end(attempt.token, Outcome::Value(Value::Fixed(1))));
    assert_eq!(rows(&runtime), 100);
}

#[test]
fn an_outcome_that_was_left_is_seen_by_all() {
    let [mut one, other] = ahead();
    send(&one, 0);
    let attempt = one.next_attempt().unwrap();
    one.end(attempt.token, Outcome::Value(Value::Fixed(1)));
    assert_eq!(other.statistics().values, 1);
    assert_eq!(rows(&other), 1, "before the turn has ended");
}

#[test]
fn r6_an_outcome_that_was_left_before_the_cancellation_counts() {
    let [mut one, other] = ahead();
    send(&one, 0);
    let attempt = one.next_attempt().unwrap();
    one.end(attempt.token, Outcome::Value(Value::Fixed(1)));
    other.stop_soon(Stop::Cancel);
    assert_eq!(other.counts().values, 1);
}

#[test]
fn a_row_that_was_taken_ahead_and_cancelled_ends_without_a_call() {
    let [mut one, other] = ahead();
    (0..8).for_each(|id| send(&one, id));
    one.take(now(), 16);
    let first = one.next_attempt().unwrap();
    other.cancel(0, 8);
    let mut orders = Orders::default();
    one.begin_turn(&mut orders);
    assert_eq!(orders.cancelled, [first.token], "the others have not started");
    assert_eq!((one.counts().running, one.counts().cancelled), (1, 8));
    assert!(one.next_attempt().is_none());
    one.end(first.token, Outcome::Cancelled);
    assert_eq!(one.end_turn(), After::Asleep);
    assert_eq!(one.counts().running, 0);
}
