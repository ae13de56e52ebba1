//! Rows that run in a stretch: what a timeout, a cancellation or a stop makes of them, which come from other threads while a call
//! runs; and rows that suspend.

use super::{samples, Idle, HOUR};
use crate::arrow::Layout;
use crate::machine::{Outcome, Settings, Stop};
use crate::runtime::{After, Ahead, Next, Orders, Seat, Stretch};
use crate::timer::{now, tick, Ticking};
use crate::value::Value;

/// An executor in a turn, and a stretch of a batch of five rows: four, one of which has ended.
fn begun() -> (Ahead, Stretch, u64) {
    let settings = |settings| Settings { max_rows: 100, allowed_in_flight: 4, timeout: Some(HOUR), max_stuck: 100, ..settings };
    let seat = Seat::take(&samples::runtime_with(Layout::Fixed(8), settings));
    seat.serve(Box::new(Idle));
    let mut ahead = Ahead::new(seat);
    ahead.begin_turn(&mut Orders::default());
    assert!(ahead.put(10, samples::batch_of(5)).is_ok());
    let start = now();
    let mut stretch = ahead.begin_stretch(start, 16).unwrap();
    assert_eq!((ahead.counts().running, ahead.counts().queued), (4, 1), "R4: the cap");
    ahead.end_in_stretch(&mut stretch, value());
    assert_eq!((ahead.counts().running, ahead.counts().values), (3, 1));
    assert_eq!(stretch.row(), Some(1));
    (ahead, stretch, start)
}

fn value() -> Outcome<Value> {
    Outcome::Value(Value::Fixed(1))
}

#[test]
fn a_row_that_suspends_gets_its_attempt_and_those_behind_it_start_again() {
    let (mut ahead, stretch, _) = begun();
    let suspended = ahead.end_stretch(&stretch, true).unwrap();
    assert_eq!((ahead.counts().running, ahead.counts().queued), (1, 3));
    assert!(!ahead.takes_stretch(), "the next may suspend, too");
    ahead.ended_at_once();
    let Some(Next::Stretch(mut next)) = ahead.take_next() else { panic!("a stretch") };
    assert_eq!(next.row(), Some(2));
    ahead.end_in_stretch(&mut next, value());
    assert_eq!((ahead.counts().held, ahead.counts().ready), (1, 1), "R5: it waits for the one before");
    ahead.end(suspended, value());
    assert_eq!(ahead.counts().ready, 3);
}

#[test]
fn r6_a_row_that_computes_for_too_long_in_a_stretch_times_out_and_those_behind_it_do_not() {
    let (mut ahead, mut stretch, start) = begun();
    ahead.tick(start + HOUR - 1);
    assert_eq!((ahead.counts().timed_out, ahead.counts().running), (0, 3));
    ahead.tick(now() + HOUR + 2 * tick());
    assert_eq!((ahead.counts().timed_out, ahead.counts().running, ahead.counts().queued), (1, 1, 3));
    ahead.end_in_stretch(&mut stretch, value());
    assert_eq!((ahead.counts().values, ahead.counts().running), (1, 0), "too late");
    assert_eq!(ahead.statistics().discarded, 1);
    assert_eq!(stretch.row(), None);
    assert!(ahead.end_stretch(&stretch, false).is_none());
    assert_eq!(ahead.next_attempt().map(|attempt| attempt.id), Some(12));
}

#[test]
fn r6_a_row_that_is_cancelled_while_it_computes_in_a_stretch_is_told_when_it_suspends() {
    let (mut ahead, stretch, _) = begun();
    ahead.cancel(11, 2);
    assert_eq!((ahead.counts().cancelled, ahead.counts().running, ahead.counts().queued), (2, 1, 2));
    let suspended = ahead.end_stretch(&stretch, true).unwrap();
    let mut orders = Orders::default();
    ahead.begin_turn(&mut orders);
    assert_eq!(orders.cancelled, [suspended]);
    ahead.end(suspended, Outcome::Cancelled);
    assert_eq!(ahead.next_attempt().map(|attempt| attempt.id), Some(13));
}

#[test]
fn a_stretch_that_is_broken_off_between_two_calls_leaves_the_row_in_hand_to_the_next_slot() {
    let (mut ahead, stretch, _) = begun();
    ahead.cancel(13, 1);
    ahead.end_stretch(&stretch, false);
    assert!(ahead.can_start());
    assert_eq!(ahead.end_turn(), After::Again);
    let ids: Vec<u64> = std::iter::from_fn(|| ahead.next_attempt()).map(|attempt| attempt.id).collect();
    assert_eq!(ids, [11, 12, 14]);
}

#[test]
fn a_row_in_hand_that_is_cancelled_before_its_call_ends_without_one() {
    let (mut ahead, stretch, _) = begun();
    ahead.cancel(11, 1);
    ahead.end_stretch(&stretch, false);
    let mut orders = Orders::default();
    ahead.begin_turn(&mut orders);
    assert!(orders.cancelled.is_empty());
    assert_eq!(ahead.counts().running, 0);
    assert_eq!(ahead.next_attempt().map(|attempt| attempt.id), Some(12));
}

#[test]
fn r13_a_stop_that_cancels_counts_what_has_ended_in_a_stretch() {
    let (mut ahead, mut stretch, _) = begun();
    ahead.stop_soon(Stop::Cancel);
    assert_eq!((ahead.counts().values, ahead.counts().cancelled, ahead.counts().running), (1, 4, 1));
    ahead.end_in_stretch(&mut stretch, value());
    ahead.end_stretch(&stretch, false);
    assert_eq!(ahead.counts().running, 0);
    assert_eq!(ahead.end_turn(), After::Settled);
}

#[test]
fn a_call_that_takes_rows_itself_finds_those_behind_it() {
    let (mut ahead, mut stretch, _) = begun();
    assert!(!ahead.takes_stretch(), "a stretch is open");
    let inner = ahead.next_attempt().unwrap();
    assert_eq!(inner.id, 12);
    ahead.end(inner.token, value());
    ahead.end_in_stretch(&mut stretch, value());
    ahead.end_stretch(&stretch, false);
    assert_eq!((ahead.counts().values, ahead.counts().ready), (3, 3));
}

#[test]
fn r10_a_call_in_a_stretch_can_ask_about_itself() {
    let (ahead, stretch, _) = begun();
    let info = ahead.call_info(&stretch);
    assert_eq!((info.row_id(), info.attempt()), (11, 1));
    assert!(info.deadline().is_some());
}
