//! Single rules, each in a fixed schedule.

use crate::machine::{Gather, Limit, Machine, Outcome, Refused, Retry, Settings, Start, Stop, Token, PATIENCE};

fn machine(ordered: bool, cap: u32, timeout: Option<u64>, retry: Retry) -> Machine<(), u64> {
    let settings = Settings {
        ordered,
        allowed_in_flight: cap,
        adaptive: false,
        timeout,
        deadline: None,
        max_rows: 100,
        max_bytes: 100,
        retry,
        max_stuck: 9,
        gather: None,
        share: None,
        rate: None,
    };
    Machine::new(settings)
}

fn drained(machine: &mut Machine<(), u64>) -> Vec<u64> {
    machine.drain(u64::MAX, u64::MAX).iter().map(|f| f.id).collect()
}

#[test]
fn r5_an_early_result_waits_for_the_row_before_it() {
    let mut m = machine(true, 2, None, Retry::NEVER);
    m.accept(0, 7, 2, 0, ()).unwrap();
    let (first, second) = (m.start(0).unwrap(), m.start(0).unwrap());
    m.end(0, second.token, Outcome::Value(1));
    assert_eq!(drained(&mut m), []);
    m.end(0, first.token, Outcome::Value(0));
    assert_eq!(drained(&mut m), [7, 8]);
}

#[test]
fn r5_unordered_rows_come_out_as_they_end() {
    let mut m = machine(false, 2, None, Retry::NEVER);
    m.accept(0, 0, 2, 0, ()).unwrap();
    let (first, second) = (m.start(0).unwrap(), m.start(0).unwrap());
    m.end(0, second.token, Outcome::Value(1));
    assert_eq!(drained(&mut m), [1]);
    m.end(0, first.token, Outcome::Value(0));
    assert_eq!(drained(&mut m), [0]);
}

#[test]
fn r6_a_late_value_is_discarded_and_its_slot_is_free_again() {
    let mut m = machine(true, 1, Some(10), Retry::NEVER);
    m.accept(0, 0, 2, 0, ()).unwrap();
    let late = m.start(0).unwrap();
    m.tick(9);
    assert!(m.is_open(late.token));
    m.tick(10);
    assert!(m.start(10).is_none(), "the attempt still runs");
    assert!(!m.end(11, late.token, Outcome::Value(0)));
    assert_eq!(m.counts().timed_out, 1);
    assert!(m.start(11).is_some());
}

#[test]
fn r7_a_row_keeps_its_place_while_it_backs_off_and_frees_its_slot() {
    let errors = Retry { max_attempts: 2, errors: true, backoff: 100, max_backoff: 100, ..Retry::NEVER };
    let mut m = machine(true, 1, None, errors);
    m.accept(0, 0, 2, 0, ()).unwrap();
    let first = m.start(0).unwrap();
    assert!(m.end(0, first.token, Outcome::Error("not yet".into())));
    let second = m.start(1).unwrap();
    assert_eq!((second.id, second.attempt), (1, 1));
    m.end(1, second.token, Outcome::Value(1));
    assert_eq!(drained(&mut m), []);
    let at = m.next_deadline().unwrap();
    assert!((50..=100).contains(&at), "a pause of 100, minus up to 50 %: {at}");
    m.tick(at);
    let again = m.start(at).unwrap();
    assert_eq!((again.id, again.attempt), (0, 2));
    m.end(at, again.token, Outcome::Error("no".into()));
    assert_eq!(drained(&mut m), [0, 1]);
    assert_eq!((m.counts().errors, m.counts().retries), (1, 1));
}

#[test]
fn r7_a_cancelled_row_whose_next_attempt_is_due_gets_none() {
    let errors = Retry { max_attempts: 2, errors: true, ..Retry::NEVER };
    let mut m = machine(true, 1, None, errors);
    m.accept(0, 0, 2, 0, ()).unwrap();
    let first = m.start(0).unwrap();
    m.end(0, first.token, Outcome::Error("no".into()));
    m.tick(0);
    m.cancel(0, 0, 1);
    assert_eq!(m.start(0).unwrap().id, 1);
    assert_eq!(drained(&mut m), [0]);
}

#[test]
fn r7_a_cancelled_row_does_not_cut_the_pause_of_the_row_that_takes_its_record() {
    let errors = Retry { max_attempts: 2, errors: true, backoff: 100, max_backoff: 100, ..Retry::NEVER };
    let mut m = machine(false, 1, None, errors);
    let fails = |m: &mut Machine<(), u64>, id: u64, now: u64| {
        m.accept(now, id, 1, 0, ()).unwrap();
        let attempt = m.start(now).unwrap();
        m.end(now, attempt.token, Outcome::Error("no".into()));
    };
    fails(&mut m, 0, 0);
    let ends = m.next_deadline().unwrap();
    m.cancel(1, 0, 1);
    assert_eq!(drained(&mut m), [0]);
    fails(&mut m, 1, ends - 1);
    m.tick(ends);
    assert!(!m.can_start() && m.start(ends).is_none(), "its pause has just begun");
    assert_eq!((m.counts().backing_off, m.counts().queued), (1, 0));
}

#[test]
fn r7_the_next_attempt_waits_for_the_end_of_the_one_that_timed_out() {
    let timeouts = Retry { max_attempts: 2, timeouts: true, ..Retry::NEVER };
    let mut m = machine(true, 2, Some(10), timeouts);
    m.accept(0, 0, 1, 0, ()).unwrap();
    let late = m.start(0).unwrap();
    m.tick(10);
    assert!(m.start(10).is_none());
    m.end(12, late.token, Outcome::Value(0));
    m.tick(12);
    assert_eq!(m.start(12).unwrap().attempt, 2);
}

#[test]
fn r7_r8_a_stuck_attempt_ends_its_row_unless_the_function_is_idempotent() {
    for idempotent in [false, true] {
        let timeouts = Retry { max_attempts: 2, timeouts: true, idempotent, ..Retry::NEVER };
        let mut m = machine(true, 1, Some(10), timeouts);
        m.accept(0, 0, 2, 0, ()).unwrap();
        m.start(0).unwrap();
        m.tick(10);
        m.tick(10 + PATIENCE - 1);
        assert_eq!((m.counts().stuck, m.counts().timed_out), (0, 0));
        m.tick(10 + PATIENCE);
        assert_eq!((m.counts().stuck, m.counts().timed_out), (1, u64::from(!idempotent)));
        assert_eq!(m.counts().backing_off, u64::from(idempotent));
        let next = m.start(10 + PATIENCE).expect("a stuck attempt does not count for the cap");
        assert_eq!((next.id, next.attempt), if idempotent { (0, 2) } else { (1, 1) });
    }
}

#[test]
fn r8_too_many_stuck_attempts_poison_the_handle() {
    let mut m = machine(true, 9, Some(10), Retry::NEVER);
    m.accept(0, 0, 10, 0, ()).unwrap();
    while m.start(0).is_some() {}
    m.tick(10);
    m.tick(10 + PATIENCE);
    assert!(m.poisoned().is_some() && m.is_overwhelmed());
    assert_eq!(drained(&mut m).len(), 10);
    assert_eq!((m.counts().timed_out, m.counts().errors), (9, 1));
}

#[test]
fn open_attempts_have_different_small_numbers() {
    let mut m = machine(true, 3, None, Retry::NEVER);
    m.accept(0, 0, 5, 0, ()).unwrap();
    let open = [m.start(0).unwrap().token, m.start(0).unwrap().token, m.start(0).unwrap().token];
    assert_eq!(open.map(Token::index), [0, 1, 2]);
    m.end(0, open[1], Outcome::Value(1));
    assert_eq!(m.start(0).unwrap().token.index(), 1);
}

#[test]
fn r13_a_drain_after_a_cancel_stays_a_cancel() {
    let mut m = machine(true, 3, None, Retry::NEVER);
    assert_eq!(m.stopping(), None);
    m.stop(0, Stop::Drain);
    assert_eq!(m.stopping(), Some(Stop::Drain));
    m.stop(0, Stop::Cancel);
    m.stop(0, Stop::Drain);
    assert_eq!(m.stopping(), Some(Stop::Cancel));
}

#[test]
fn r13_stuck_attempts_after_a_cancelling_stop_do_not_poison() {
    let mut m = machine(true, 9, None, Retry::NEVER);
    m.accept(0, 0, 10, 0, ()).unwrap();
    while m.start(0).is_some() {}
    m.stop(0, Stop::Cancel);
    m.tick(PATIENCE);
    assert_eq!((m.poisoned(), m.is_stuck(), m.counts().stuck), (None, true, 9));
}

#[test]
fn r17_a_failure_of_the_toolkit_is_not_reported_as_stuck_calls() {
    let mut m = machine(true, 1, None, Retry::NEVER);
    m.poison(0, "broken");
    m.tick(PATIENCE);
    assert_eq!((m.poisoned(), m.is_overwhelmed()), (Some("broken"), false));
}

#[test]
fn r17_calls_that_run_when_the_handle_is_poisoned_are_cancelled_and_stay_open_until_they_end() {
    let mut m = machine(true, 2, None, Retry::NEVER);
    m.accept(5, 0, 3, 0, ()).unwrap();
    let (first, second) = (m.start(5).unwrap(), m.start(5).unwrap());
    m.poison(7, "broken");
    assert_eq!((drained(&mut m), m.counts().errors), (vec![0, 1, 2], 3), "rows are answered at once");
    let mut cancelled = Vec::new();
    m.take_cancellations(&mut cancelled);
    cancelled.sort_by_key(|token| token.index());
    assert_eq!(cancelled, [first.token, second.token]);
    m.stop(8, Stop::Cancel);
    assert!(!m.is_settled(), "the Context must not be closed: calls use it");
    assert!(!m.end(9, first.token, Outcome::Value(0)));
    assert_eq!(m.next_deadline(), Some(7 + PATIENCE));
    m.tick(7 + PATIENCE);
    assert_eq!((m.counts().stuck, m.counts().running, m.is_stuck()), (1, 1, true));
    assert!(!m.end(8 + PATIENCE, second.token, Outcome::Value(1)));
    assert!(m.is_settled());
}

#[test]
fn r8_a_healthy_call_beside_too_many_stuck_ones_is_cancelled() {
    let mut m = machine(true, 9, Some(10), Retry::NEVER);
    m.settings.max_stuck = 1;
    m.accept(0, 0, 1, 0, ()).unwrap();
    m.start(0).unwrap();
    m.tick(10);
    m.accept(5 + PATIENCE, 1, 1, 0, ()).unwrap();
    let healthy = m.start(5 + PATIENCE).unwrap();
    m.take_cancellations(&mut Vec::new());
    m.tick(9 + PATIENCE);
    assert!(m.poisoned().is_none() && m.is_open(healthy.token));
    m.tick(10 + PATIENCE);
    assert!(m.is_overwhelmed());
    let mut cancelled = Vec::new();
    m.take_cancellations(&mut cancelled);
    assert_eq!(cancelled, [healthy.token]);
}

#[test]
fn a_row_deadline_covers_queueing_and_all_attempts() {
    let retry = Retry { max_attempts: 9, timeouts: true, ..Retry::NEVER };
    let mut m = machine(true, 1, Some(10), retry);
    m.settings.deadline = Some(15);
    m.accept(100, 0, 3, 0, ()).unwrap();
    let first = m.start(100).unwrap();
    m.tick(110);
    m.end(110, first.token, Outcome::Cancelled);
    m.tick(110);
    assert_eq!(m.start(110).unwrap().deadline, 115);
    m.tick(115);
    assert_eq!(drained(&mut m), [0, 1, 2]);
    assert_eq!(m.counts().timed_out, 3);
}

#[test]
fn r6_a_row_that_timed_out_says_which_limit_it_has_reached() {
    let mut m = machine(true, 1, Some(10), Retry::NEVER);
    m.settings.deadline = Some(15);
    m.accept_until(0, Some(5), 0, 2, 0, ()).unwrap();
    let first = m.start(0).unwrap();
    m.tick(5);
    m.end(5, first.token, Outcome::Cancelled);
    m.accept_until(20, Some(30), 2, 2, 0, ()).unwrap();
    m.start(20).unwrap();
    m.tick(30);
    m.tick(35);
    let limits = m.drain(4, u64::MAX).into_iter().map(|row| row.outcome);
    let expected = [Limit::BatchDeadline, Limit::BatchDeadline, Limit::Timeout, Limit::Deadline];
    assert!(limits.eq(expected.map(Outcome::TimedOut)), "the running row and the queued one, twice");
    m.accept_until(50, Some(15), 4, 1, 0, ()).unwrap();
    m.tick(65);
    let last = m.drain(1, u64::MAX).pop().map(|row| row.outcome);
    assert_eq!(last, Some(Outcome::TimedOut(Limit::Deadline)), "of two equal ones, the function's own");
}

#[test]
fn r7_a_row_cancelled_behind_another_gets_no_further_attempt() {
    let mut m = machine(true, 2, None, Retry { max_attempts: 2, errors: true, ..Retry::NEVER });
    m.accept(0, 0, 3, 0, ()).unwrap();
    let (_first, second) = (m.start(0).unwrap(), m.start(0).unwrap());
    m.end(0, second.token, Outcome::Error("no".into()));
    m.tick(0);
    m.cancel(0, 1, 1);
    assert_eq!(m.start(0).unwrap().id, 2, "row 1 is kept only until row 0 has ended");
}

fn gathering(rows: u64, wait: u64, cap: u32) -> Machine<(), u64> {
    let mut m = machine(true, cap, None, Retry::NEVER);
    m.settings.gather = Some(Gather { rows, bytes: 10, wait });
    m
}

fn ids(start: &Start<()>) -> Vec<u64> {
    std::iter::once(start.id).chain(start.others.iter().map(|other| other.id)).collect()
}

#[test]
fn rows_are_gathered_up_to_a_number_a_time_or_bytes_or_until_no_more_can_come() {
    let mut m = gathering(3, 50, 9);
    m.accept(100, 0, 2, 0, ()).unwrap();
    assert!(m.start(149).is_none());
    assert_eq!(m.next_deadline(), Some(150));
    assert_eq!(ids(&m.start(150).unwrap()), [0, 1]);
    m.accept(200, 2, 7, 0, ()).unwrap();
    assert_eq!(ids(&m.start(200).unwrap()), [2, 3, 4]);
    assert_eq!(ids(&m.start(200).unwrap()), [5, 6, 7]);
    assert!(m.start(200).is_none());
    m.accept(201, 9, 1, 30, ()).unwrap();
    assert_eq!(ids(&m.start(201).unwrap()), [8, 9], "bytes");
    m.accept(300, 10, 1, 0, ()).unwrap();
    assert!(m.start(300).is_none());
    m.stop(300, Stop::Drain);
    assert_eq!(ids(&m.start(300).unwrap()), [10], "a stop");
}

#[test]
fn rows_that_ended_before_their_start_count_no_bytes() {
    let mut m = gathering(9, 50, 9);
    m.accept(0, 0, 4, 8, ()).unwrap();
    m.cancel(0, 0, 3);
    m.accept(0, 4, 1, 2, ()).unwrap();
    assert!(m.start(0).is_none(), "two rows of two bytes; ten would start them");
    m.accept(0, 5, 1, 6, ()).unwrap();
    assert_eq!(ids(&m.start(0).unwrap()), [3, 4, 5]);
}

#[test]
fn a_row_that_ended_before_its_next_attempt_counts_no_bytes() {
    let mut m = gathering(9, 50, 9);
    m.settings.retry = Retry { max_attempts: 2, errors: true, backoff: 10, max_backoff: 10, ..Retry::NEVER };
    m.accept(0, 0, 1, 8, ()).unwrap();
    let start = m.start(50).unwrap();
    m.end(50, start.token, Outcome::Error("no".into()));
    m.tick(60);
    m.cancel(60, 0, 1);
    m.accept(60, 1, 1, 5, ()).unwrap();
    assert!(m.start(60).is_none(), "one row of five bytes; ten would start it");
}

#[test]
fn rows_do_not_wait_for_more_when_there_is_no_room() {
    let mut m = gathering(1_000, 50, 9);
    m.accept(0, 0, 99, 0, ()).unwrap();
    assert!(m.start(0).is_none());
    m.accept(0, 99, 1, 0, ()).unwrap();
    assert_eq!(m.start(0).unwrap().others.len(), 99);
}

#[test]
fn r7_a_micro_batch_is_split_until_the_failing_row_is_alone_and_counts_as_one_attempt() {
    let mut m = gathering(8, 0, 1);
    m.accept(0, 0, 8, 0, ()).unwrap();
    let mut calls = Vec::new();
    while let Some(start) = m.start(0) {
        let ids = ids(&start);
        if ids.contains(&5) {
            m.end(0, start.token, Outcome::Error("five".into()));
        } else {
            m.end_rows(0, start.token, ids.iter().map(|&id| Outcome::Value(id)));
        }
        calls.push(ids);
    }
    let parts: [&[u64]; 7] = [&[0, 1, 2, 3, 4, 5, 6, 7], &[0, 1, 2, 3], &[4, 5, 6, 7], &[4, 5], &[4], &[5], &[6, 7]];
    assert_eq!(calls, parts);
    let out = m.drain(u64::MAX, u64::MAX);
    assert!(out.iter().all(|row| row.attempts == 1));
    let failed: Vec<u64> = out.iter().filter(|row| row.outcome == Outcome::Error("five".into())).map(|row| row.id).collect();
    assert_eq!(failed, [5]);
}

#[test]
fn a_row_cancelled_before_its_part_starts_is_left_out() {
    let mut m = gathering(4, 0, 1);
    m.accept(0, 0, 4, 0, ()).unwrap();
    let start = m.start(0).unwrap();
    m.end(0, start.token, Outcome::Error("no".into()));
    m.cancel(0, 1, 2);
    assert_eq!(ids(&m.start(0).unwrap()), [0]);
    assert_eq!(m.counts().queued, 1, "row 3, in the other part");
}

#[test]
fn a_micro_batch_is_cancelled_with_its_last_row() {
    let mut m = gathering(2, 0, 1);
    m.accept(0, 0, 2, 0, ()).unwrap();
    let start = m.start(0).unwrap();
    m.cancel(0, 0, 1);
    assert!(!m.has_cancellations() && m.is_open(start.token));
    m.cancel(0, 1, 1);
    assert!(m.has_cancellations() && !m.is_open(start.token));
}

#[test]
fn r4_a_batch_may_exceed_the_limit_and_none_is_taken_at_it() {
    let mut m = machine(true, 1, None, Retry::NEVER);
    m.accept(0, 0, 1_000, 0, ()).unwrap();
    assert_eq!(m.accept(0, 1_000, 1, 0, ()), Err(Refused::WouldBlock));
}

#[test]
fn unordered_rows_cancelled_behind_a_full_cap_come_out_at_once() {
    let mut m = machine(false, 1, None, Retry::NEVER);
    m.accept(0, 0, 3, 0, ()).unwrap();
    let _open = m.start(0).unwrap();
    m.cancel(0, 2, 1);
    assert_eq!(drained(&mut m), [2]);
}

#[test]
fn r7_a_pause_with_jitter_is_half_to_all_of_it_and_comes_from_the_seed() {
    let retry = Retry { backoff: 1_000, max_backoff: 5_000, seed: 7, ..Retry::NEVER };
    for id in 0..100 {
        for (attempt, full) in [(1, 1_000), (2, 2_000), (3, 4_000), (4, 5_000), (60, 5_000)] {
            let pause = retry.pause(id, attempt);
            assert!((full / 2..=full).contains(&pause), "{pause} of {full}");
            assert_eq!(pause, retry.pause(id, attempt));
        }
    }
    // The same on every computer and in every version: a run replayed with its seed has the same pauses.
    let pauses: Vec<u64> = (0..4).map(|id| retry.pause(id, 1 + id as u16)).collect();
    assert_eq!(pauses, [729, 1246, 2473, 3285]);
    assert_ne!(retry.pause(1, 1), Retry { seed: 8, ..retry }.pause(1, 1));
    assert_ne!(retry.pause(1, 1), retry.pause(2, 1));
}

#[test]
fn r17_rows_that_could_not_be_handed_out_are_held_again_and_come_out_first() {
    let mut m = machine(true, 3, None, Retry::NEVER);
    m.settings.max_rows = 3;
    m.accept(0, 0, 3, 0, ()).unwrap();
    for _ in 0..3 {
        let attempt = m.start(0).unwrap();
        m.end(0, attempt.token, Outcome::Value(3)); // weighs 3
    }
    let rows = m.drain(2, u64::MAX);
    m.put_back(rows);
    assert_eq!(m.counts().drained, 0);
    assert!(matches!(m.accept(0, 3, 1, 0, ()), Err(Refused::WouldBlock)), "R4: they count as held");
    let ids: Vec<u64> = m.drain(u64::MAX, 9).iter().map(|row| row.id).collect();
    assert_eq!((ids, m.counts().drained), (vec![0, 1, 2], 3), "all 9 bytes of them");
    m.accept(0, 3, 1, 0, ()).unwrap();
}

#[test]
fn the_end_of_the_executor_ends_the_attempts_that_are_left() {
    let mut m = machine(true, 2, None, Retry::NEVER);
    m.accept(0, 0, 2, 0, ()).unwrap();
    let (first, second) = (m.start(0).unwrap(), m.start(0).unwrap());
    m.stop(1, Stop::Cancel);
    m.end_all(2);
    assert!(!m.is_open(first.token) && !m.is_open(second.token));
    assert!(m.is_settled());
    assert_eq!((m.counts().running, m.counts().cancelled), (0, 2));
}

#[test]
fn r6_the_deadline_of_a_batch_is_forgotten_with_its_last_row() {
    let mut m = machine(true, 1, None, Retry::NEVER);
    m.accept_until(0, Some(50), 0, 1, 0, ()).unwrap();
    let attempt = m.start(0).unwrap();
    assert_eq!(m.next_deadline(), Some(50));
    m.end(1, attempt.token, Outcome::Value(0));
    assert_eq!(drained(&mut m), [0]);
    assert_eq!(m.next_deadline(), None);
}

#[test]
fn r6_attempts_are_due_in_the_order_in_which_their_calls_began() {
    let mut m = machine(true, 4, Some(10), Retry::NEVER);
    m.accept(0, 0, 4, 0, ()).unwrap();
    let [a, b, c, d] = [0, 0, 5, 7].map(|now| m.start(now).unwrap().token);
    assert_eq!(m.due(10), [a, b], "those that time out at the same time in the order of their starts");
    m.call_began(a, 5);
    assert_eq!(m.due(15), [b, c, a], "behind those that began with it, before those that began later");
    assert_eq!(m.due(u64::MAX), [b, c, a, d]);
    m.tick(10);
    assert_eq!((m.counts().timed_out, m.next_deadline()), (1, Some(15)));
    m.call_began(b, 20);
    assert_eq!(m.due(u64::MAX), [c, a, d], "one that has timed out stays as it is");
}

#[test]
fn a_token_is_the_same_as_a_number() {
    let mut m = machine(true, 2, None, Retry::NEVER);
    m.accept(0, 0, 3, 0, ()).unwrap();
    let (first, second) = (m.start(0).unwrap().token, m.start(0).unwrap().token);
    m.end(0, second, Outcome::Value(0));
    let third = m.start(0).unwrap().token;
    assert_eq!([first, second, third].map(|token| Token::of_number(token.number())), [first, second, third]);
    assert_eq!(second.index(), third.index());
    assert_ne!(second.number(), third.number());
}

/// R7: there is one of each for every row in flight.
#[test]
fn r7_records_stay_small() {
    assert_eq!(size_of::<Option<crate::machine::Row<crate::value::Value>>>(), 56);
    assert_eq!(size_of::<Option<crate::machine::AttemptRecord>>(), 32);
}
