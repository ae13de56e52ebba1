//! A limit that adapts, under a virtual clock against a simulated server whose capacity changes every five seconds, compared
//! with fixed limits (R23).

use crate::machine::{Machine, Outcome, Retry, Settings, Start};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

const MS: u64 = 1_000_000;
const PHASE: u64 = 5_000 * MS;
/// How long a refusal takes.
const REFUSAL: u64 = 5 * MS;

/// What the server does with more calls than it has workers.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Excess {
    /// They wait for a worker.
    Queue,
    /// They are errors after five milliseconds, if a quarter of the workers' number wait.
    Refuse,
    /// All calls are slower, and together they are worse than without the excess.
    Thrash,
}

#[derive(Debug, Clone, Copy)]
struct Server {
    excess: Excess,
    /// Workers, and the time of a call in ms, by phase.
    phases: &'static [(u64, u64)],
    /// Calls take a random time with that mean, else just that.
    random: bool,
}

fn settings(limit: u32, adaptive: bool) -> Settings {
    Settings {
        ordered: false,
        allowed_in_flight: limit,
        adaptive,
        timeout: None,
        deadline: None,
        max_rows: u64::MAX,
        max_bytes: u64::MAX,
        retry: Retry { max_attempts: u16::MAX, errors: true, ..Retry::NEVER },
        max_stuck: 9,
        gather: None,
        share: None,
        rate: None,
    }
}

/// What became of a run.
struct Run {
    rows: u64,
    /// At the end of each phase.
    limits: Vec<u64>,
    overloads: u64,
}

impl Server {
    /// Calls it for so many phases, with as many rows as it can take.
    fn run(self, settings: Settings, phases: u64) -> Run {
        let mut m: Machine<(), u64> = Machine::new(settings);
        m.accept(0, 0, 1 << 40, 0, ()).unwrap();
        let (mut now, mut seed, mut number) = (0, 1u64, 0u64);
        let mut waiting: VecDeque<Start<()>> = VecDeque::new();
        let mut busy = BinaryHeap::new();
        let mut calls = HashMap::new();
        let mut workers_busy = 0;
        let mut limits = vec![];
        while now < phases * PHASE {
            let (workers, ms) = self.phases[(now / PHASE) as usize % self.phases.len()];
            m.tick(now);
            while let Some(start) = m.start(now) {
                if self.excess == Excess::Refuse && waiting.len() as u64 >= workers.saturating_sub(workers_busy) + workers / 4 {
                    number += 1;
                    busy.push(Reverse((now + REFUSAL, number)));
                    calls.insert(number, (start, false));
                } else {
                    waiting.push_back(start);
                }
            }
            while workers_busy < workers {
                let Some(start) = waiting.pop_front() else { break };
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let uniform = ((seed >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
                let mut took = ms as f64 * MS as f64 * if self.random { -uniform.ln() } else { 1.0 };
                if self.excess == Excess::Thrash {
                    took *= 1.0 + waiting.len() as f64 / workers as f64;
                }
                number += 1;
                workers_busy += 1;
                busy.push(Reverse((now + took as u64, number)));
                calls.insert(number, (start, true));
            }
            let next = busy.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
            let end = (now / PHASE + 1) * PHASE;
            if next >= end {
                limits.push(m.counts().limit);
                now = end;
                continue;
            }
            now = next;
            while let Some(Reverse((_, number))) = busy.peek().copied().filter(|Reverse((at, _))| *at <= now) {
                busy.pop();
                let (start, good) = calls.remove(&number).unwrap();
                workers_busy -= u64::from(good);
                m.end(now, start.token, if good { Outcome::Value(0) } else { Outcome::Error("busy".into()) });
            }
            m.drain(u64::MAX, u64::MAX);
        }
        Run { rows: m.counts().values, limits, overloads: m.counts().overloads }
    }

    /// The rows of a limit that adapts, in percent of those of the best fixed one.
    fn compare(self, phases: u64) -> f64 {
        let fixed = [10, 20, 40, 50, 64, 100, 125].map(|limit| (self.run(settings(limit, false), phases).rows, limit));
        let (best, limit) = fixed.into_iter().max().unwrap();
        let own = self.run(settings(1_000, true), phases);
        let percent = own.rows as f64 * 100.0 / best as f64;
        println!("{self:?}: {percent:.1} % of the best fixed limit, {limit}; limits {:?}, {} overloads", own.limits, own.overloads);
        percent
    }
}

const CHANGING: &[(u64, u64)] = &[(20, 20), (100, 20), (40, 20), (10, 20)];
const SLOWER: &[(u64, u64)] = &[(50, 20), (50, 50), (50, 10)];

#[test]
fn r23_it_follows_a_capacity_that_changes() {
    for excess in [Excess::Queue, Excess::Refuse, Excess::Thrash] {
        let percent = Server { excess, phases: CHANGING, random: false }.compare(4);
        assert!(percent >= 95.0, "{excess:?}: {percent:.1} %");
    }
}

#[test]
fn r23_calls_that_are_slower_by_themselves_do_not_lower_it() {
    let percent = Server { excess: Excess::Queue, phases: SLOWER, random: false }.compare(3);
    assert!(percent >= 95.0, "{percent:.1} %");
}

#[test]
fn r23_calls_may_take_random_times() {
    for phases in [CHANGING, SLOWER] {
        let percent = Server { excess: Excess::Queue, phases, random: true }.compare(4);
        assert!(percent >= 88.0, "{percent:.1} %");
    }
}

#[test]
fn r23_timeouts_lower_it_and_cancelled_attempts_tell_nothing() {
    let retry = Retry::NEVER;
    let mut m: Machine<(), u64> = Machine::new(Settings { timeout: Some(10), retry, max_stuck: 1_000, ..settings(1_000, true) });
    m.accept(0, 0, 1_000, 0, ()).unwrap();
    let cancelled: Vec<_> = std::iter::from_fn(|| m.start(0)).collect();
    assert_eq!((cancelled.len(), m.counts().limit), (16, 16), "the first limit");
    m.cancel(1, 0, 16);
    cancelled.iter().for_each(|attempt| _ = m.end(1, attempt.token, Outcome::Cancelled));
    assert_eq!((m.counts().limit, m.counts().overloads), (16, 0));
    for round in 1..3 {
        let late: Vec<_> = std::iter::from_fn(|| m.start(round * 20)).collect();
        m.tick(round * 20 + 10);
        late.iter().for_each(|attempt| _ = m.end(round * 20 + 10, attempt.token, Outcome::Cancelled));
    }
    assert_eq!((m.counts().limit, m.counts().overloads), (12, 1), "a quarter less after a round of two limits");
}

#[test]
fn r23_a_limit_that_is_not_reached_stays() {
    let mut m: Machine<(), u64> = Machine::new(settings(1_000, true));
    for row in 0..1_000 {
        m.accept(row, row, 1, 0, ()).unwrap();
        let attempt = m.start(row).unwrap();
        m.end(row + 1, attempt.token, Outcome::Value(0));
    }
    assert_eq!(m.counts().limit, 16);
}
