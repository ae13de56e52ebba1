//! Single rules of rows that share calls (R21), each in a fixed schedule.

use super::shared::{sharing, Made};
use crate::machine::{Finished, Gather, Limit, Machine, Outcome, Retry, Settings, Share, Start, Stop};

type Shared = Machine<Vec<u64>, Made>;

const CACHE: Share = Share { entries: 100, bytes: 1 << 20, ttl: None, errors: false, across_batches: true };

fn machine(change: impl FnOnce(&mut Settings)) -> Shared {
    let mut settings = Settings {
        ordered: false,
        allowed_in_flight: 1,
        timeout: None,
        deadline: None,
        max_rows: 100,
        max_bytes: 100,
        retry: Retry::NEVER,
        max_stuck: 9,
        gather: None,
        share: Some(CACHE),
        rate: None,
        adaptive: false,
    };
    change(&mut settings);
    sharing(settings)
}

/// Accepts a batch whose rows have these arguments, and ids from `first` on.
fn accept(m: &mut Shared, now: u64, first: u64, keys: &[u64]) {
    m.accept(now, first, keys.len() as u64, 0, keys.to_vec()).unwrap();
}

fn value(start: &Start<Vec<u64>>) -> Outcome<Made> {
    Outcome::Value(Made { key: start.batch[start.row], at: 0 })
}

/// Rows that a drain hands out: id, key of the value, own attempts.
fn values(m: &mut Shared) -> Vec<(u64, u64, u16)> {
    let value = |row: Finished<Made>| match row.outcome {
        Outcome::Value(made) => (row.id, made.key, row.attempts),
        other => panic!("row {}: {other:?}", row.id),
    };
    m.drain(u64::MAX, u64::MAX).into_iter().map(value).collect()
}

fn outcomes(m: &mut Shared) -> Vec<(u64, Outcome<Made>)> {
    m.drain(u64::MAX, u64::MAX).into_iter().map(|row| (row.id, row.outcome)).collect()
}

#[test]
fn equal_rows_wait_for_one_call_also_of_another_batch_and_later_ones_get_what_it_returned() {
    let mut m = machine(|_| ());
    accept(&mut m, 0, 0, &[7, 7]);
    let call = m.start(0).unwrap();
    accept(&mut m, 0, 2, &[7]);
    assert!(m.start(0).is_none());
    assert_eq!((m.counts().waiting, m.counts().running, m.counts().queued), (2, 1, 0));
    m.end(0, call.token, value(&call));
    assert_eq!(values(&mut m), [(0, 7, 1), (1, 7, 0), (2, 7, 0)]);
    accept(&mut m, 0, 3, &[7]);
    assert!(m.can_start() && m.start(0).is_none());
    assert_eq!(values(&mut m), [(3, 7, 0)]);
    let counts = m.cache_counts();
    assert_eq!((counts.misses, counts.shared, counts.hits, counts.entries), (1, 2, 1, 1));
}

#[test]
fn a_kept_value_needs_no_slot() {
    let mut m = machine(|_| ());
    accept(&mut m, 0, 0, &[1]);
    let known = m.start(0).unwrap();
    m.end(0, known.token, value(&known));
    accept(&mut m, 0, 1, &[2, 3, 1]);
    let busy = m.start(0).unwrap();
    assert_eq!((busy.id, m.counts().queued), (1, 1));
    assert_eq!(values(&mut m), [(0, 1, 1), (3, 1, 0)]);
}

#[test]
fn r5_ordered_a_kept_value_waits_for_the_rows_before_it() {
    let mut m = machine(|settings| settings.ordered = true);
    accept(&mut m, 0, 0, &[1]);
    let known = m.start(0).unwrap();
    m.end(0, known.token, value(&known));
    accept(&mut m, 0, 1, &[2, 1, 2]);
    let call = m.start(0).unwrap();
    assert_eq!((values(&mut m), m.counts().held), (vec![(0, 1, 1)], 1));
    m.end(0, call.token, value(&call));
    assert_eq!(values(&mut m), [(1, 2, 1), (2, 1, 0), (3, 2, 0)]);
}

#[test]
fn an_error_is_that_of_every_waiting_row_and_is_not_kept() {
    let mut m = machine(|_| ());
    accept(&mut m, 0, 0, &[7, 7]);
    let call = m.start(0).unwrap();
    m.end(0, call.token, Outcome::Error("no".into()));
    assert_eq!(outcomes(&mut m), [(0, Outcome::Error("no".into())), (1, Outcome::Error("no".into()))]);
    accept(&mut m, 0, 2, &[7]);
    assert_eq!(m.start(0).map(|call| call.id), Some(2));
}

#[test]
fn an_error_is_kept_if_asked() {
    let mut m = machine(|settings| settings.share = Some(Share { errors: true, ..CACHE }));
    accept(&mut m, 0, 0, &[7]);
    let call = m.start(0).unwrap();
    m.end(0, call.token, Outcome::Error("no".into()));
    accept(&mut m, 0, 1, &[7]);
    assert!(m.start(0).is_none());
    assert_eq!(outcomes(&mut m).pop(), Some((1, Outcome::Error("no".into()))));
}

#[test]
fn r7_rows_wait_for_the_retries_of_the_call() {
    let retry = Retry { max_attempts: 2, errors: true, backoff: 10, max_backoff: 10, ..Retry::NEVER };
    let mut m = machine(|settings| settings.retry = retry);
    accept(&mut m, 0, 0, &[7, 7]);
    let first = m.start(0).unwrap();
    m.end(0, first.token, Outcome::Error("not yet".into()));
    assert_eq!((m.counts().waiting, m.counts().backing_off), (1, 1));
    m.tick(10);
    let second = m.start(10).unwrap();
    assert_eq!((second.id, second.attempt), (0, 2));
    m.end(10, second.token, value(&second));
    assert_eq!(values(&mut m), [(0, 7, 2), (1, 7, 0)]);
}

#[test]
fn a_cancelled_leader_leaves_its_running_call_to_the_next_row() {
    let mut m = machine(|_| ());
    accept(&mut m, 0, 0, &[7, 7, 7]);
    let call = m.start(0).unwrap();
    m.cancel(0, 0, 1);
    assert!(m.is_open(call.token) && !m.has_cancellations(), "the call goes on");
    m.cancel(0, 2, 1);
    m.end(0, call.token, value(&call));
    let of_row_1 = Outcome::Value(Made { key: 7, at: 0 });
    assert_eq!(outcomes(&mut m), [(0, Outcome::Cancelled), (2, Outcome::Cancelled), (1, of_row_1)]);
    assert_eq!(m.cache_counts().entries, 1);
}

#[test]
fn a_call_ends_with_the_last_row_that_waits_for_it() {
    let mut m = machine(|_| ());
    accept(&mut m, 0, 0, &[7, 7]);
    let call = m.start(0).unwrap();
    m.cancel(0, 0, 2);
    assert!(m.has_cancellations());
    m.end(0, call.token, Outcome::Cancelled);
    accept(&mut m, 0, 2, &[7]);
    assert_eq!(m.start(0).map(|call| call.id), Some(2), "it is made anew");
}

#[test]
fn a_leader_that_is_cancelled_in_the_queue_is_followed_by_the_next_row() {
    let mut m = machine(|_| ());
    accept(&mut m, 0, 0, &[1, 7, 7]);
    let busy = m.start(0).unwrap();
    m.cancel(0, 1, 1);
    assert_eq!((m.counts().queued, m.counts().waiting), (1, 0));
    m.end(0, busy.token, value(&busy));
    assert_eq!(m.start(0).map(|call| call.id), Some(2));
}

#[test]
fn r6_a_timeout_ends_the_rows_that_waited_for_the_whole_attempt_and_a_later_one_leads_a_new_call() {
    let mut m = machine(|settings| (settings.timeout, settings.allowed_in_flight) = (Some(10), 2));
    accept(&mut m, 0, 0, &[7, 7]);
    let late = m.start(0).unwrap();
    accept(&mut m, 4, 2, &[7, 7]);
    assert!(m.start(4).is_none());
    m.tick(10);
    assert!(!m.is_open(late.token));
    let timed_out = |row| (row, Outcome::TimedOut(Limit::Timeout));
    let mut ended = outcomes(&mut m);
    ended.sort_by_key(|row| row.0);
    assert_eq!(ended, [timed_out(0), timed_out(1)]);
    let call = m.start(10).unwrap();
    assert_eq!((call.id, call.attempt, call.deadline, m.counts().waiting), (2, 1, 20, 1));
    m.end(11, call.token, value(&call));
    assert_eq!(values(&mut m), [(2, 7, 1), (3, 7, 0)]);
}

#[test]
fn r6_a_deadline_ends_the_row_that_has_reached_it_and_the_call_goes_on_for_the_other() {
    let mut m = machine(|_| ());
    m.accept_until(0, Some(5), 0, 1, 0, vec![7]).unwrap();
    let call = m.start(0).unwrap();
    m.accept_until(1, Some(20), 1, 2, 0, vec![7, 7]).unwrap();
    assert!(m.start(1).is_none());
    m.tick(5);
    assert!(m.is_open(call.token));
    m.tick(21);
    assert!(!m.is_open(call.token));
    let timed_out = |row| (row, Outcome::TimedOut(Limit::BatchDeadline));
    assert_eq!(outcomes(&mut m), [timed_out(0), timed_out(1), timed_out(2)]);
}

#[test]
fn r6_a_row_that_takes_over_a_call_has_its_whole_timeout() {
    let mut m = machine(|settings| settings.timeout = Some(10));
    accept(&mut m, 0, 0, &[7]);
    let call = m.start(0).unwrap();
    accept(&mut m, 4, 1, &[7, 7]);
    assert!(m.start(4).is_none());
    m.cancel(5, 0, 1);
    assert!(m.is_open(call.token), "it goes on for row 1");
    m.tick(10);
    assert!(!m.is_open(call.token));
    assert_eq!(outcomes(&mut m), [(0, Outcome::Cancelled)]);
    m.end(11, call.token, value(&call));
    let own = m.start(11).unwrap();
    assert_eq!((own.id, own.attempt, own.deadline, m.counts().waiting), (1, 1, 21, 1));
    m.end(12, own.token, value(&own));
    assert_eq!(values(&mut m), [(1, 7, 1), (2, 7, 0)]);
}

#[test]
fn r7_an_error_of_a_call_that_was_taken_over_is_retried() {
    let retry = Retry { max_attempts: 2, errors: true, backoff: 4, max_backoff: 4, ..Retry::NEVER };
    let mut m = machine(|settings| settings.retry = retry);
    accept(&mut m, 0, 0, &[7]);
    let call = m.start(0).unwrap();
    accept(&mut m, 1, 1, &[7]);
    assert!(m.start(1).is_none());
    m.cancel(2, 0, 1);
    m.end(3, call.token, Outcome::Error("no".into()));
    m.tick(7);
    let own = m.start(7).unwrap();
    assert_eq!((own.id, own.attempt), (1, 1));
}

#[test]
fn a_value_is_kept_for_its_time_from_the_end_of_its_call() {
    let mut m = machine(|settings| settings.share = Some(Share { ttl: Some(10), ..CACHE }));
    accept(&mut m, 0, 0, &[7]);
    let call = m.start(0).unwrap();
    m.end(5, call.token, value(&call));
    accept(&mut m, 14, 1, &[7]);
    assert!(m.start(14).is_none());
    accept(&mut m, 15, 2, &[7]);
    assert_eq!(m.start(15).map(|call| call.id), Some(2));
    assert_eq!((m.cache_counts().misses, m.cache_counts().evictions), (2, 0));
}

#[test]
fn without_a_cache_rows_share_calls_within_a_batch_and_nothing_is_kept_beyond() {
    let mut m = machine(|settings| settings.share = Some(Share { entries: u64::MAX, across_batches: false, ..CACHE }));
    // More rows than are looked up at once: the call ends while equal rows of the batch have not been looked up.
    let keys: Vec<u64> = (0..3000).map(|row| if row % 2 == 0 { 7 } else { 8 }).collect();
    accept(&mut m, 0, 0, &keys);
    for _ in 0..2 {
        let call = m.start(0).unwrap();
        m.end(0, call.token, value(&call));
    }
    while m.can_start() {
        assert!(m.start(0).is_none());
    }
    assert_eq!(values(&mut m).len(), 3000);
    assert_eq!((m.cache_counts().misses, m.cache_counts().entries), (2, 0));
    accept(&mut m, 0, 3000, &[7]);
    assert_eq!(m.start(0).map(|call| call.id), Some(3000));
}

#[test]
fn a_micro_batch_has_no_equal_rows_and_its_leaders_may_be_cancelled() {
    let gather = Gather { rows: 2, bytes: 100, wait: 50 };
    let mut m = machine(|settings| settings.gather = Some(gather));
    accept(&mut m, 0, 0, &[7, 7, 7, 8]);
    let call = m.start(0).unwrap();
    assert_eq!((call.id, call.others.iter().map(|other| other.id).collect::<Vec<_>>()), (0, vec![3]));
    m.cancel(0, 0, 1);
    m.end_rows(0, call.token, [7, 8].map(|key| Outcome::Value(Made { key, at: 0 })));
    let of = |key| Outcome::Value(Made { key, at: 0 });
    assert_eq!(outcomes(&mut m), [(0, Outcome::Cancelled), (1, of(7)), (2, of(7)), (3, of(8))]);
    accept(&mut m, 1, 4, &[7, 9]);
    assert!(m.start(1).is_none(), "one row waits for more");
    assert_eq!(m.next_deadline(), Some(51));
}

#[test]
fn r13_r17_waiting_rows_end_with_a_stop_and_with_a_poison() {
    for poison in [false, true] {
        let mut m = machine(|settings| settings.ordered = true);
        accept(&mut m, 0, 0, &[7, 7, 8, 8]);
        let call = m.start(0).unwrap();
        if poison {
            m.poison(0, "broken");
        } else {
            m.stop(0, Stop::Cancel);
        }
        m.end(0, call.token, Outcome::Cancelled);
        assert!(m.counts().waiting == 0 && m.counts().queued == 0);
        let expected = if poison { Outcome::Error("broken".into()) } else { Outcome::Cancelled };
        assert_eq!(outcomes(&mut m), [0, 1, 2, 3].map(|row| (row, expected.clone())));
    }
}

#[test]
fn a_drain_waits_for_rows_that_share_a_call() {
    let mut m = machine(|_| ());
    accept(&mut m, 0, 0, &[7, 7]);
    let call = m.start(0).unwrap();
    m.stop(0, Stop::Drain);
    assert!(!m.is_settled());
    m.end(0, call.token, value(&call));
    assert!(m.is_settled());
    assert_eq!(values(&mut m).len(), 2);
}

#[test]
fn rows_whose_arguments_cannot_be_read_share_no_call() {
    let mut m = machine(|settings| settings.allowed_in_flight = 2);
    accept(&mut m, 0, 0, &[super::shared::UNREADABLE; 2]);
    assert!(m.start(0).is_some() && m.start(0).is_some());
    assert_eq!(m.cache_counts().misses, 0);
}
