//! Rows that share calls (R21), in random schedules under a virtual clock, also with a rate and a limit that adapts (R22, R23);
//! and what is kept, against a list that is searched.

use super::pace::exceeds;
use crate::machine::calls::{Calls, Found};
use crate::machine::{Gather, Limit, Machine, Outcome, Rate, Retry, Settings, Share, Stage, Start, Stop, Token, Weigh, NO_CALL, PATIENCE};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

/// What a call for these arguments returned, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Made {
    pub key: u64,
    pub at: u64,
}

impl Weigh for Made {
    fn bytes(&self) -> u64 {
        10 * (self.key % 4)
    }
}

/// Arguments that cannot be written.
pub const UNREADABLE: u64 = 99;

/// A machine whose batches are lists of arguments.
pub fn sharing(settings: Settings) -> Machine<Vec<u64>, Made> {
    let write = |batch: &Vec<u64>, row: usize, into: &mut Vec<u8>| {
        into.extend(batch[row].to_le_bytes());
        batch[row] != UNREADABLE
    };
    Machine::sharing(settings, Box::new(write))
}

#[derive(Debug, Clone)]
enum Event {
    Accept {
        keys: Vec<u64>,
        deadline: Option<u64>,
    },
    Start,
    /// As in `simulation.rs`.
    End {
        pick: usize,
        whole: bool,
        errors: u8,
    },
    Tick {
        after: u64,
    },
    Cancel {
        first: u64,
        rows: u64,
    },
    Drain {
        limit: u64,
    },
    Poison,
}

fn event() -> impl Strategy<Value = Event> {
    let key = prop_oneof![20 => 0..6u64, 1 => Just(UNREADABLE)];
    prop_oneof![
        20 => (prop::collection::vec(key, 0..7), prop_oneof![3 => Just(None), 1 => (1..200u64).prop_map(Some)])
            .prop_map(|(keys, deadline)| Event::Accept { keys, deadline }),
        30 => Just(Event::Start),
        25 => (any::<usize>(), any::<bool>(), prop_oneof![Just(0), any::<u8>()])
            .prop_map(|(pick, whole, errors)| Event::End { pick, whole, errors }),
        18 => (0..30u64).prop_map(|after| Event::Tick { after }),
        3 => Just(Event::Tick { after: PATIENCE }),
        6 => (0..60u64, 0..8u64).prop_map(|(first, rows)| Event::Cancel { first, rows }),
        12 => (0..9u64).prop_map(|limit| Event::Drain { limit }),
        1 => Just(Event::Poison),
    ]
}

fn share() -> impl Strategy<Value = Share> {
    let bytes = prop_oneof![150..900u64, Just(1 << 20)];
    (1..5u64, bytes, prop::option::of(1..100u64), any::<bool>(), any::<bool>())
        .prop_map(|(entries, bytes, ttl, errors, across_batches)| Share { entries, bytes, ttl, errors, across_batches })
}

fn settings() -> impl Strategy<Value = Settings> {
    let gather = (1..5u64, 1..60u64, 0..40u64).prop_map(|(rows, bytes, wait)| Gather { rows, bytes, wait });
    let retry = (1..4u16, any::<bool>(), any::<bool>(), 0..40u64, any::<bool>()).prop_map(
        |(max_attempts, timeouts, errors, backoff, idempotent)| Retry {
            max_attempts,
            timeouts,
            errors,
            backoff,
            max_backoff: 100,
            seed: 1,
            idempotent,
        },
    );
    let rate = (1..6u32, 1..500u64).prop_map(|(starts, window)| Rate { starts, window });
    let limits = (1..5u32, any::<bool>(), prop::option::of(rate));
    (any::<bool>(), limits, prop::option::of(1..60u64), retry, prop::option::of(gather), share()).prop_map(
        |(ordered, (allowed_in_flight, adaptive, rate), timeout, retry, gather, share)| Settings {
            ordered,
            allowed_in_flight,
            timeout,
            deadline: None,
            max_rows: 40,
            max_bytes: 1000,
            retry,
            max_stuck: 1000,
            gather,
            rate,
            adaptive,
            share: Some(share),
        },
    )
}

struct World {
    machine: Machine<Vec<u64>, Made>,
    settings: Settings,
    now: u64,
    /// By row: the arguments, and when it was accepted.
    rows: HashMap<u64, (u64, u64)>,
    next_id: u64,
    /// Attempts that have not ended, with the arguments of their rows.
    open: Vec<(Token, Vec<u64>)>,
    /// First attempts that have started.
    calls: u64,
    /// When attempts have started.
    starts: Vec<u64>,
    out: HashSet<u64>,
    poisoned: bool,
}

impl World {
    fn new(settings: Settings) -> World {
        World {
            machine: sharing(settings),
            settings,
            now: 1_000,
            rows: HashMap::new(),
            next_id: 0,
            open: vec![],
            calls: 0,
            starts: vec![],
            out: HashSet::new(),
            poisoned: false,
        }
    }

    fn started(&mut self, start: Start<Vec<u64>>) {
        self.starts.push(self.now);
        self.calls += u64::from(start.attempt == 1);
        let mut keys = vec![start.batch[start.row]];
        for other in &start.others {
            self.calls += u64::from(other.attempt == 1);
            keys.push(other.batch[other.row]);
        }
        self.open.push((start.token, keys));
    }

    fn step(&mut self, event: &Event) -> Result<(), TestCaseError> {
        let now = self.now;
        match event {
            Event::Accept { keys, deadline } => {
                let (first, rows) = (self.next_id, keys.len() as u64);
                if self.machine.accept_until(now, *deadline, first, rows, rows, keys.clone()).is_ok() {
                    self.rows.extend(keys.iter().enumerate().map(|(i, key)| (first + i as u64, (*key, now))));
                    self.next_id += rows;
                }
            }
            Event::Start => match self.machine.start(now) {
                Some(start) => self.started(start),
                None => prop_assert!(!self.machine.can_start(), "no idle slot while rows wait, and all are looked up"),
            },
            Event::End { pick, whole, errors } => {
                if self.open.is_empty() {
                    return Ok(());
                }
                let (token, keys) = self.open.remove(pick % self.open.len());
                let outcome = |i: usize, key: u64| match errors & 1 << (i % 8) {
                    0 => Outcome::Value(Made { key, at: now }),
                    _ => Outcome::Error(format!("{key} {now}").into()),
                };
                if *whole {
                    self.machine.end(now, token, outcome(0, keys[0]));
                } else {
                    let outcomes: Vec<_> = keys.iter().enumerate().map(|(i, key)| outcome(i, *key)).collect();
                    self.machine.end_rows(now, token, outcomes);
                }
            }
            Event::Tick { after } => {
                self.now += after;
                self.machine.tick(self.now);
                prop_assert!(self.machine.next_deadline().is_none_or(|at| at > self.now), "a tick does all that is due");
            }
            Event::Cancel { first, rows } => self.machine.cancel(now, *first, *rows),
            Event::Drain { limit } => self.drain(*limit)?,
            Event::Poison => {
                self.poisoned = true;
                self.machine.poison(now, "broken");
            }
        }
        self.check()
    }

    fn drain(&mut self, limit: u64) -> Result<(), TestCaseError> {
        let Share { ttl, errors, .. } = self.settings.share.unwrap();
        for row in self.machine.drain(limit, u64::MAX) {
            let (key, accepted) = self.rows[&row.id];
            prop_assert!(self.out.insert(row.id), "R1: row {} comes out once", row.id);
            match row.outcome {
                Outcome::Value(made) => {
                    prop_assert_eq!(made.key, key, "the value of its arguments");
                    prop_assert!(made.at.saturating_add(ttl.unwrap_or(u64::MAX)) > accepted, "none is found after its time");
                }
                Outcome::Error(text) if &*text != "broken" => {
                    let (of, at) = text.split_once(' ').unwrap();
                    prop_assert_eq!(of.parse(), Ok(key));
                    prop_assert!(errors || at.parse::<u64>().unwrap() >= accepted, "an error is kept only if asked");
                }
                Outcome::Error(_) => prop_assert!(self.poisoned),
                Outcome::TimedOut(Limit::Timeout) => {
                    let waited = self.now - accepted;
                    prop_assert!(waited >= self.settings.timeout.unwrap(), "R6: row {} timed out after {}", row.id, waited);
                }
                Outcome::TimedOut(_) | Outcome::Cancelled => {}
            }
        }
        Ok(())
    }

    /// What holds after each event.
    fn check(&mut self) -> Result<(), TestCaseError> {
        let machine = &self.machine;
        let mut made = HashSet::new();
        // A micro-batch goes on without a row that was cancelled, whose arguments may then be those of another call.
        for (_, keys) in self.open.iter().filter(|(token, keys)| keys.len() == 1 && machine.is_open(*token)) {
            for key in keys.iter().filter(|&&key| key != UNREADABLE) {
                prop_assert!(made.insert(*key), "one call at a time for {}", key);
            }
        }
        if let Some(rate) = self.settings.rate {
            prop_assert!(!exceeds(rate, &self.starts), "R22: {:?} of {:?}", rate, self.starts);
        }
        let running = machine.counts().running - machine.counts().stuck;
        prop_assert!(running <= self.settings.allowed_in_flight.into(), "R4, R23");
        let share = self.settings.share.unwrap();
        let cache = machine.cache_counts();
        prop_assert!(cache.entries <= share.entries && cache.bytes <= share.bytes, "{:?} of {:?}", cache, share);
        prop_assert!(cache.entries > 0 || cache.bytes == 0);
        let rows: Vec<_> = machine.rows.keys().map(|row| &machine.rows[row]).collect();
        let leaders = rows.iter().filter(|row| row.call != NO_CALL && !matches!(row.stage, Stage::Waiting));
        let (leaders, mut led) = (leaders.map(|row| row.call).collect::<Vec<_>>(), HashSet::new());
        prop_assert!(leaders.iter().all(|call| led.insert(*call)), "a call has one leader");
        let waiting: Vec<_> = rows.iter().filter(|row| matches!(row.stage, Stage::Waiting)).collect();
        prop_assert!(waiting.iter().all(|row| led.contains(&row.call)), "a row waits for a call that is made");
        let counts = machine.counts();
        prop_assert_eq!(counts.waiting, waiting.len() as u64, "R16");
        let running = rows.iter().filter(|row| matches!(row.stage, Stage::Running(_))).count() as u64;
        let inside = counts.queued + counts.waiting + running + counts.backing_off + counts.held + counts.ready;
        prop_assert_eq!(counts.accepted, inside + counts.drained, "R16: each row is in one place");
        Ok(())
    }

    /// R1: a stop that drains ends every row, if the calls end.
    fn finish(&mut self) -> Result<(), TestCaseError> {
        self.machine.stop(self.now, Stop::Drain);
        for _ in 0..10_000 {
            if self.machine.is_settled() {
                break;
            }
            self.step(&Event::Start)?;
            self.step(&Event::End { pick: 0, whole: false, errors: 0 })?;
            let due = self.machine.next_deadline().map_or(1, |at| at - self.now);
            self.step(&Event::Tick { after: due.min(1_000) })?;
        }
        prop_assert!(self.machine.is_settled(), "nothing waits for ever");
        self.drain(u64::MAX)?;
        prop_assert_eq!(self.out.len(), self.rows.len(), "R1: every row comes out");
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: super::simulation::cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_share_calls_in_any_schedule(settings in settings(), events in prop::collection::vec(event(), 0..120)) {
        let mut world = World::new(settings);
        for event in &events {
            world.step(event)?;
        }
        world.finish()?;
    }

    /// If calls succeed and nothing has to leave, there is one for each of the different arguments.
    #[test]
    fn there_are_as_many_calls_as_different_arguments(settings in settings(), events in prop::collection::vec(event(), 0..120)) {
        let share = Share { entries: u64::MAX, bytes: u64::MAX, ttl: None, errors: false, across_batches: true };
        let mut world = World::new(Settings { timeout: None, share: Some(share), ..settings });
        for event in &events {
            match event {
                Event::Accept { keys, .. } => {
                    let keys = keys.iter().copied().filter(|&key| key != UNREADABLE).collect();
                    world.step(&Event::Accept { keys, deadline: None })?;
                }
                Event::End { pick, .. } => world.step(&Event::End { pick: *pick, whole: false, errors: 0 })?,
                Event::Start | Event::Tick { .. } | Event::Drain { .. } => world.step(event)?,
                Event::Cancel { .. } | Event::Poison => {}
            }
        }
        world.finish()?;
        let different: HashSet<u64> = world.rows.values().map(|(key, _)| *key).collect();
        prop_assert_eq!(world.calls, different.len() as u64);
        prop_assert_eq!(world.machine.cache_counts().entries, different.len() as u64);
    }

    /// What is kept, found and dropped, against a list.
    #[test]
    fn outcomes_are_kept_as_in_a_list(share in share(), keys in prop::collection::vec((0..8u64, 0..20u64), 0..200)) {
        let mut calls: Calls<Made> = Calls::new(share);
        // In the order in which they leave: key, until, bytes, found.
        let mut list: Vec<(u64, u64, u64, bool)> = vec![];
        let mut now = 0;
        for (key, pause) in keys {
            now += pause;
            let made = Made { key, at: now };
            match calls.find(&u128::from(key).to_le_bytes(), now) {
                Some(Found::Kept(outcome)) => {
                    let place = list.iter_mut().find(|kept| kept.0 == key && now < kept.1);
                    prop_assert!(matches!(outcome, Outcome::Value(made) if made.key == key));
                    place.unwrap().3 = true;
                }
                Some(Found::New(call)) => {
                    prop_assert!(list.iter().all(|kept| kept.0 != key || kept.1 <= now));
                    list.retain(|kept| kept.0 != key);
                    calls.end(call, now, Some(&Outcome::Value(made)));
                    let bytes = 200 + 16 + made.bytes();
                    if bytes <= share.bytes {
                        while list.len() as u64 >= share.entries || list.iter().map(|kept| kept.2).sum::<u64>() + bytes > share.bytes {
                            let first = list.remove(0);
                            if first.3 {
                                list.push((first.0, first.1, first.2, false));
                            }
                        }
                        list.push((key, share.ttl.map_or(u64::MAX, |ttl| now + ttl), bytes, false));
                    }
                }
                Some(Found::Made(_)) | None => prop_assert!(false, "no call is left open, and these have different hashes"),
            }
            let counts = calls.counts();
            prop_assert_eq!((counts.entries, counts.bytes), (list.len() as u64, list.iter().map(|kept| kept.2).sum::<u64>()));
        }
    }
}
