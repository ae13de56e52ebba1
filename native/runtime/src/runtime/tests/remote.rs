//! Calls in a worker process: what the host's side asks, and what the worker's side answers.

use super::*;
use crate::machine::{Stuck, Token};
use crate::runtime::remote::{Ended, Wishes};
use crate::runtime::Attempt;

/// The executor of a worker process, on the host's side: a seat whose attempts do not begin at once.
fn asked_within(timeout: u64) -> Seat {
    let settings = |settings| Settings { max_rows: 100, allowed_in_flight: 16, timeout: Some(timeout), max_stuck: 100, ..settings };
    let seat = Seat::take(&samples::runtime_with(Layout::Fixed(8), settings));
    seat.serve(Box::new(Idle));
    seat.can_be_asked();
    seat
}

/// Those that the runtime asks for.
fn unsure(seat: &Seat) -> Vec<Token> {
    let mut orders = Orders::default();
    seat.begin_turn(&mut orders);
    orders.unsure
}

#[test]
fn r6_a_worker_is_asked_before_a_call_times_out_and_what_it_says_counts() {
    let seat = asked_within(HOUR);
    (0..2).for_each(|id| send(&seat, id));
    let start = now();
    let [waits, runs] = [seat.next().unwrap(), seat.next().unwrap()].map(|attempt| attempt.token);
    seat.tick(start + 2 * HOUR);
    assert_eq!(seat.counts().timed_out, 0, "nobody knows whether they have begun");
    assert_eq!(unsure(&seat), [waits, runs]);
    seat.answer(waits, None);
    seat.answer(runs, Some(start + 2 * HOUR - 1));
    seat.tick(start + 3 * HOUR - 1);
    assert_eq!(seat.counts().timed_out, 1, "an hour after its call began");
    seat.tick(start + 3 * HOUR);
    assert_eq!((seat.counts().timed_out, unsure(&seat)), (1, vec![waits]), "it is asked for again");
}

#[test]
fn r6_a_worker_that_says_nothing_does_not_put_a_timeout_off_for_ever() {
    let seat = asked_within(HOUR);
    send(&seat, 0);
    let token = seat.next().unwrap().token;
    let first = now() + HOUR;
    seat.tick(first);
    assert_eq!((seat.counts().timed_out, unsure(&seat)), (0, vec![token]));
    seat.tick(first + HOUR);
    assert_eq!(seat.counts().timed_out, 1);
}

/// A runtime in a worker, with an executor that takes rows ahead, in a turn; and attempts of a host for it.
fn in_worker(calls: u64) -> (Ahead, Vec<Attempt>) {
    let host = samples::runtime_of(Layout::Fixed(8), 100, 100);
    let seat = Seat::take(&host);
    let calls = (0..calls).map(|id| {
        send(&host, id);
        seat.next().unwrap()
    });
    let calls = calls.collect();
    let mut ahead = ahead_within(HOUR);
    ahead.become_remote();
    ahead.begin_turn(&mut Orders::default());
    (ahead, calls)
}

fn value(id: u64) -> Outcome<Value> {
    Outcome::Value(Value::Fixed(id))
}

#[test]
fn a_call_of_a_host_is_answered_once_when_it_has_ended() {
    let (mut worker, calls) = in_worker(1);
    let token = calls[0].token;
    worker.obey(Wishes { calls, ..Wishes::default() });
    assert_eq!(worker.begun(&[token]), [None]);
    let begun = worker.next_attempt().unwrap();
    assert_eq!(begun.token, token, "calls have the names that the host has given them");
    assert!(worker.begun(&[token])[0].is_some_and(|at| at <= now()));
    assert_eq!(worker.take_ended(), []);
    worker.end(token, value(7));
    assert_eq!(worker.take_ended(), [(token, Ended::Whole(value(7)))]);
    worker.end(token, value(8));
    assert_eq!(worker.take_ended(), []);
}

#[test]
fn r6_a_call_that_was_taken_ahead_has_not_begun() {
    let (mut worker, calls) = in_worker(3);
    let tokens: Vec<Token> = calls.iter().map(|call| call.token).collect();
    worker.obey(Wishes { calls, ..Wishes::default() });
    worker.take(now(), 16);
    worker.next_attempt().unwrap();
    assert_eq!(worker.begun(&tokens).iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, false]);
    worker.next_attempt().unwrap();
    assert_eq!(worker.begun(&tokens).iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, false]);
}

#[test]
fn r6_what_a_cancelled_call_returns_is_late_and_one_that_has_not_begun_is_not_made() {
    let (mut worker, calls) = in_worker(2);
    let [runs, waits] = [calls[0].token, calls[1].token];
    worker.obey(Wishes { calls, ..Wishes::default() });
    worker.take(now(), 1);
    worker.next_attempt().unwrap();
    worker.obey(Wishes { cancelled: vec![runs, waits], ..Wishes::default() });
    assert_eq!(worker.take_ended(), [(waits, Ended::Whole(Outcome::Cancelled))], "the other goes on");
    let mut orders = Orders::default();
    worker.begin_turn(&mut orders);
    assert_eq!(orders.cancelled, [runs]);
    worker.end(runs, value(1));
    assert_eq!(worker.take_ended(), [(runs, Ended::Whole(Outcome::Cancelled))]);
    assert_eq!(worker.statistics().discarded, 1);
    assert!(worker.next_attempt().is_none());
}

#[test]
fn r13_calls_that_come_after_a_stop_are_answered() {
    let (mut worker, calls) = in_worker(2);
    let tokens: Vec<Token> = calls.iter().map(|call| call.token).collect();
    let mut calls = calls.into_iter();
    worker.obey(Wishes { calls: calls.next().into_iter().collect(), ..Wishes::default() });
    worker.next_attempt().unwrap();
    worker.stop_soon(Stop::Cancel);
    worker.obey(Wishes { calls: calls.collect(), ..Wishes::default() });
    assert_eq!(worker.take_ended(), [(tokens[1], Ended::Whole(Outcome::Cancelled))]);
    worker.begin_turn(&mut Orders::default());
    assert_eq!(worker.end_turn(), After::Asleep, "a call runs");
    worker.end(tokens[0], Outcome::Cancelled);
    assert_eq!(worker.end_turn(), After::Settled);
    worker.closed(Ok(()));
    assert!(worker.stop(Stop::Cancel, SOON).is_ok());
}

#[test]
fn r8_a_stuck_call_is_reported_and_does_not_count() {
    let (mut worker, calls) = in_worker(1);
    let (token, id) = (calls[0].token, calls[0].id);
    worker.obey(Wishes { calls, ..Wishes::default() });
    worker.next_attempt().unwrap();
    worker.obey(Wishes { cancelled: vec![token], stuck: vec![Stuck { token, id }], ..Wishes::default() });
    let mut orders = Orders::default();
    worker.begin_turn(&mut orders);
    assert_eq!((orders.stuck, worker.counts().stuck), (vec![Stuck { token, id }], 1));
}
