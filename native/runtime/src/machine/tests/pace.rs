//! A budget of rate, under a virtual clock: of one machine, and shared by several (R22).

use crate::machine::{Limit, Machine, Outcome, Pace, Rate, Retry, Settings};
use proptest::prelude::*;
use std::sync::Arc;

const SECOND: u64 = 1_000_000_000;

fn settings(rate: Rate) -> Settings {
    Settings {
        ordered: false,
        allowed_in_flight: 1_000_000,
        adaptive: false,
        timeout: None,
        deadline: None,
        max_rows: u64::MAX,
        max_bytes: u64::MAX,
        retry: Retry::NEVER,
        max_stuck: 9,
        gather: None,
        share: None,
        rate: Some(rate),
    }
}

fn machine(settings: Settings, rows: u64) -> Machine<(), u64> {
    let mut machine = Machine::new(settings);
    machine.accept(0, 0, rows, 0, ()).unwrap();
    machine
}

/// Whether there are more than `rate.starts` starts in any of its windows; `starts` rise.
pub fn exceeds(rate: Rate, starts: &[u64]) -> bool {
    starts.windows(rate.starts as usize + 1).any(|more| more[more.len() - 1] - more[0] < rate.window)
}

/// Starts all rows, each as soon as the machine asks for it or `late(i)` later, and returns when.
fn run(m: &mut Machine<(), u64>, mut late: impl FnMut(usize) -> u64) -> Vec<u64> {
    let (mut now, mut starts) = (SECOND, vec![]);
    while m.counts().queued > 0 {
        while m.start(now).is_some() {
            starts.push(now);
        }
        if let Some(at) = m.next_deadline() {
            assert!(at > now, "nobody polls");
            now = at + late(starts.len());
            m.tick(now);
        }
    }
    starts
}

#[test]
fn r22_starts_are_evenly_paced() {
    let rate = Rate { starts: 500, window: SECOND };
    let starts = run(&mut machine(settings(rate), 2_000), |_| 0);
    assert!(!exceeds(rate, &starts));
    let behind = starts.windows(2).filter(|two| two[1] - two[0] != rate.interval()).count();
    assert_eq!(behind, 5, "after the first hundredth of the budget, at once, one after the other");
    assert!(starts[1_999] - starts[0] < 4 * SECOND * 103 / 100, "98 % of the budget are used: {}", starts[1_999]);
}

#[test]
fn r22_a_late_thread_catches_up() {
    let rate = Rate { starts: 10_000, window: SECOND };
    let starts = run(&mut machine(settings(rate), 20_000), |i| (i as u64 * 7_919) % 5_000_000);
    assert!(!exceeds(rate, &starts));
    assert!(starts[19_999] - starts[0] < 2 * SECOND * 103 / 100, "late by up to 5 ms each time, and no slower: {}", starts[19_999]);
}

#[test]
fn r22_a_place_that_was_missed_is_lost_and_not_made_up_for() {
    let rate = Rate { starts: 10, window: SECOND };
    let late = SECOND / 2;
    let starts = run(&mut machine(settings(rate), 100), |_| late);
    assert!(!exceeds(rate, &starts));
    assert!(starts.windows(2).all(|two| two[1] - two[0] >= rate.interval()));
    assert!(starts[99] >= 99 * late);
}

#[test]
fn r22_retries_count() {
    let retry = Retry { max_attempts: 2, errors: true, ..Retry::NEVER };
    let rate = Rate { starts: 1, window: SECOND };
    let mut m = machine(Settings { retry, ..settings(rate) }, 1);
    let first = m.start(0).unwrap();
    m.end(1, first.token, Outcome::Error("no".into()));
    m.tick(1);
    assert!(m.start(1).is_none(), "the second attempt waits for the budget");
    let at = m.next_deadline().unwrap();
    assert_eq!(at, rate.interval());
    assert_eq!(m.start(at).unwrap().attempt, 2);
    assert_eq!((m.counts().paced, m.counts().retries), (1, 1));
}

#[test]
fn r22_a_deadline_runs_on_while_its_row_waits_for_the_budget() {
    let rate = Rate { starts: 1, window: SECOND };
    let mut m = machine(Settings { deadline: Some(10), ..settings(rate) }, 2);
    let first = m.start(0).unwrap();
    m.end(1, first.token, Outcome::Value(0));
    assert!(m.start(1).is_none());
    assert_eq!(m.next_deadline(), Some(10));
    m.tick(10);
    let late: Vec<_> = m.drain(9, u64::MAX).into_iter().filter(|row| row.outcome == Outcome::TimedOut(Limit::Deadline)).collect();
    assert_eq!(late.iter().map(|row| (row.id, row.attempts)).collect::<Vec<_>>(), [(1, 0)]);
    assert_eq!(m.next_deadline(), None, "nothing waits for the budget any more");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Machines that share a budget: their executors come when a machine asks for it, some late, some for rows that are
    /// gone; rows come at any time.
    #[test]
    fn r22_machines_that_share_a_budget_keep_it_together(
        starts in 1..400u32,
        machines in 1..6usize,
        steps in prop::collection::vec((0..6usize, 0..4u8, 0..40_000_000u64), 50..300),
    ) {
        let rate = Rate { starts, window: SECOND };
        let pace = Arc::new(Pace::new(rate));
        let mut sharing: Vec<Machine<(), u64>> = (0..machines).map(|_| Machine::new(settings(rate))).collect();
        sharing.iter_mut().for_each(|m| m.paced_by(Arc::clone(&pace)));
        let (mut now, mut begun, mut id) = (0, vec![], 0);
        for (pick, what, time) in steps {
            let m = &mut sharing[pick % machines];
            match what {
                0 => {
                    id += 100;
                    m.accept(now, id, time % 100, 0, ()).unwrap();
                }
                1 => m.cancel(now, 0, id),
                2 => now += time,
                _ => now = m.next_deadline().map_or(now, |at| at.max(now) + time % 3_000_000),
            }
            m.tick(now);
            while let Some(attempt) = m.start(now) {
                m.end(now, attempt.token, Outcome::Value(0));
                begun.push(now);
            }
        }
        let longer = Rate { window: rate.window + rate.slack(), ..rate };
        prop_assert!(!exceeds(longer, &begun));
    }

    /// If each has rows, they use the whole budget, none starves, and none is woken for nothing but the first time.
    #[test]
    fn r22_machines_that_share_a_budget_take_turns(starts in 10..500u32, machines in 1..6usize) {
        let rate = Rate { starts, window: SECOND };
        let pace = Arc::new(Pace::new(rate));
        let mut sharing: Vec<Machine<(), u64>> = (0..machines).map(|_| machine(settings(rate), 1_000_000)).collect();
        sharing.iter_mut().for_each(|m| m.paced_by(Arc::clone(&pace)));
        let (mut now, mut begun, mut idle) = (SECOND, vec![0; machines], 0);
        while now < 11 * SECOND {
            for (m, begun) in sharing.iter_mut().zip(&mut begun) {
                m.tick(now);
                let woken = m.can_start();
                let before = *begun;
                while m.start(now).is_some() {
                    *begun += 1;
                }
                idle += u64::from(woken && *begun == before);
            }
            now = sharing.iter_mut().filter_map(Machine::next_deadline).min().unwrap();
        }
        let all: u64 = begun.iter().sum();
        prop_assert!(all >= u64::from(starts) * 975 / 100, "{} starts in ten seconds", all);
        let (least, most) = (begun.iter().min().unwrap(), begun.iter().max().unwrap());
        prop_assert!(most - least <= 2 + u64::from(starts / 100), "{:?}", begun);
        prop_assert!(idle <= machines as u64, "woken {} times for nothing", idle);
    }
}
