//! Random schedules of every event under a virtual clock, against a naive model that keeps all rows in one list. After
//! each event the machine and the model must agree; a failing schedule shrinks. Invariants are named after their rules.
//!
//! A schedule has 60 events on average. `PROPTEST_CASES` says how many schedules are run: `make check` runs ten million
//! events. `PROPTEST_RNG_SEED` makes a run repeatable.

use super::{Finished, Gather, Machine, Outcome, Refused, Retry, Settings, Start, Stop, Token, Weigh, PATIENCE};
use crate::histogram::Histogram;
use proptest::prelude::*;
use std::collections::VecDeque;

#[derive(Debug, Clone)]
enum Event {
    Accept {
        rows: u64,
        bytes: u64,
        gap: u64,
    },
    Start,
    /// Ends one of the open attempts, picked by number: as a whole, with an error or a value, or each row with its own,
    /// an error where its bit is set.
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
        bytes: u64,
    },
    Stop {
        cancel: bool,
    },
    Poison,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0..6u64, 0..40u64, 0..3u64).prop_map(|(rows, bytes, gap)| Event::Accept { rows, bytes, gap }),
        12 => Just(Event::Start),
        10 => (any::<usize>(), any::<bool>(), any::<u8>()).prop_map(|(pick, whole, errors)| Event::End { pick, whole, errors }),
        6 => (0..30u64).prop_map(|after| Event::Tick { after }),
        1 => Just(Event::Tick { after: PATIENCE }),
        2 => (0..60u64, 0..8u64).prop_map(|(first, rows)| Event::Cancel { first, rows }),
        6 => (0..9u64, prop_oneof![0..9u64, Just(u64::MAX)]).prop_map(|(limit, bytes)| Event::Drain { limit, bytes }),
        1 => any::<bool>().prop_map(|cancel| Event::Stop { cancel }),
        1 => Just(Event::Poison),
    ]
}

fn retry() -> impl Strategy<Value = Retry> {
    (1..4u16, any::<bool>(), any::<bool>(), 0..40u64, any::<u64>(), any::<bool>()).prop_map(
        |(max_attempts, timeouts, errors, backoff, seed, idempotent)| Retry {
            max_attempts,
            timeouts,
            errors,
            backoff,
            max_backoff: 100,
            seed,
            idempotent,
        },
    )
}

fn settings() -> impl Strategy<Value = Settings> {
    let limits = (prop::option::of(1..60u64), prop::option::of(1..200u64));
    let gather = (1..6u64, 1..60u64, 0..40u64).prop_map(|(rows, bytes, wait)| Gather { rows, bytes, wait });
    (any::<bool>(), 1..5u32, limits, 1..20u64, 1..100u64, retry(), 1..6u32, prop::option::of(gather)).prop_map(
        |(ordered, allowed_in_flight, (timeout, deadline), max_rows, max_bytes, retry, max_stuck, gather)| Settings {
            ordered,
            allowed_in_flight,
            timeout,
            deadline,
            max_rows,
            max_bytes,
            retry,
            max_stuck,
            gather,
        },
    )
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Value,
    Error,
    TimedOut,
    Cancelled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Waiting,
    Running {
        until: u64,
    },
    /// Timed out, to be tried again when its attempt has ended.
    Ending,
    BackingOff {
        until: u64,
    },
    /// In the order in which the pauses ended.
    Due {
        turn: u64,
        since: u64,
    },
    /// In a part of a micro-batch that failed.
    Split,
    Ended(How),
    Out,
}

#[derive(Debug)]
struct ModelRow {
    id: u64,
    batch: usize,
    place: Place,
    attempts: u16,
    begun: Option<u64>,
    accepted: u64,
    deadline: u64,
}

/// An attempt that has not ended. `cancelled`: when; `stuck`: it has been so for too long.
#[derive(Debug)]
struct ModelAttempt {
    token: Token,
    rows: Vec<usize>,
    until: u64,
    cancelled: Option<u64>,
    stuck: bool,
    /// The machine has asked for its cancellation, and has reported it as stuck.
    asked: bool,
    reported: bool,
}

/// The rules, told as plainly as they can be.
struct Model {
    settings: Settings,
    rows: Vec<ModelRow>,
    batch_bytes: Vec<u64>,
    /// Of a row, by batch.
    row_bytes: Vec<u64>,
    parts: VecDeque<Vec<usize>>,
    open: Vec<ModelAttempt>,
    next_id: u64,
    turns: u64,
    retries: u64,
    stopped: bool,
    cancelled: bool,
    poisoned: bool,
    /// Rows handed out: values, errors, timed out, cancelled.
    ended: [u64; 4],
    /// How long rows took that ran, and were not cancelled or poisoned.
    took: Vec<u64>,
}

impl Model {
    fn new(settings: Settings) -> Model {
        Model {
            settings,
            rows: vec![],
            batch_bytes: vec![],
            row_bytes: vec![],
            parts: VecDeque::new(),
            open: vec![],
            next_id: 0,
            turns: 0,
            retries: 0,
            stopped: false,
            cancelled: false,
            poisoned: false,
            ended: [0; 4],
            took: vec![],
        }
    }

    fn held(&self) -> impl Iterator<Item = &ModelRow> {
        self.rows.iter().filter(|row| row.place != Place::Out)
    }

    /// R4: the totals held before the batch decide.
    fn has_room(&self) -> bool {
        (self.held().count() as u64) < self.settings.max_rows && self.held_bytes() < self.settings.max_bytes
    }

    /// R4: a batch counts until its last row is handed out.
    fn held_bytes(&self) -> u64 {
        (0..self.batch_bytes.len()).filter(|&b| self.held().any(|row| row.batch == b)).map(|b| self.batch_bytes[b]).sum()
    }

    fn is_open(&self, row: usize) -> bool {
        !matches!(self.rows[row].place, Place::Ended(_) | Place::Out)
    }

    /// Ends rows; the attempts of those that ran are cancelled.
    fn end_where(&mut self, now: u64, how: How, which: impl Fn(&ModelRow) -> bool) {
        for row in 0..self.rows.len() {
            if self.is_open(row) && which(&self.rows[row]) {
                self.end(now, row, how);
            }
        }
    }

    fn ended(&mut self, now: u64, row: usize, how: How) {
        self.rows[row].place = Place::Ended(how);
        if let (Some(begun), false) = (self.rows[row].begun, how == How::Cancelled || self.poisoned) {
            self.took.push(now - begun);
        }
    }

    fn end(&mut self, now: u64, row: usize, how: How) {
        self.ended(now, row, how);
        for i in 0..self.open.len() {
            if self.open[i].cancelled.is_none() && self.running_in(i).is_empty() {
                self.open[i].cancelled = Some(now); // nobody waits for it any more
            }
        }
    }

    /// The rows that wait for an attempt that has not been cancelled.
    fn running_in(&self, attempt: usize) -> Vec<usize> {
        let runs = |row: &usize| matches!(self.rows[*row].place, Place::Running { .. });
        self.open[attempt].rows.iter().copied().filter(runs).collect()
    }

    fn may_retry(&self, row: usize) -> bool {
        self.rows[row].attempts < self.settings.retry.max_attempts && !self.cancelled
    }

    fn back_off(&mut self, now: u64, row: usize) {
        let pause = self.settings.retry.pause(self.rows[row].id, self.rows[row].attempts);
        self.rows[row].place = Place::BackingOff { until: now + pause };
    }

    fn has_slot(&self) -> bool {
        self.open.iter().filter(|a| !a.stuck).count() < self.settings.allowed_in_flight as usize
    }

    /// R7: the first part of a micro-batch whose rows, or some of them, still wait.
    fn next_part(&self) -> Option<Vec<usize>> {
        let waiting = |part: &Vec<usize>| -> Vec<usize> { part.iter().copied().filter(|&r| self.rows[r].place == Place::Split).collect() };
        self.parts.iter().map(waiting).find(|part| !part.is_empty())
    }

    /// Rows that wait to be gathered, and since when each does.
    fn waiting(&self) -> impl Iterator<Item = (&ModelRow, u64)> {
        self.rows.iter().filter_map(|row| match row.place {
            Place::Due { since, .. } => Some((row, since)),
            Place::Waiting => Some((row, row.accepted)),
            _ => None,
        })
    }

    /// R4, and when a micro-batch starts.
    fn can_start(&self, now: u64) -> bool {
        let waits = self.waiting().next().is_some();
        let gathered = self.settings.gather.is_none_or(|gather| {
            let bytes: u64 = self.waiting().map(|(row, _)| self.row_bytes[row.batch]).sum();
            let enough = self.waiting().count() as u64 >= gather.rows || bytes >= gather.bytes;
            let long = self.waiting().any(|(_, since)| since + gather.wait <= now);
            enough || long || self.stopped || !self.has_room()
        });
        self.has_slot() && (self.next_part().is_some() || waits && gathered)
    }

    /// R4, R7: the next row of an attempt. Of pauses that ended at the same moment, the one of row `like`: they may be
    /// taken in any order.
    fn next_row(&self, like: Option<u64>) -> Option<usize> {
        let turn = |row: &ModelRow| if let Place::Due { turn, .. } = row.place { Some(turn) } else { None };
        let Some(first) = self.rows.iter().filter_map(turn).min() else {
            return self.rows.iter().position(|row| row.place == Place::Waiting);
        };
        let same = |row: &ModelRow| turn(row) == Some(first);
        let liked = self.rows.iter().position(|row| same(row) && Some(row.id) == like);
        liked.or_else(|| self.rows.iter().position(same))
    }

    /// The rows of the attempt that starts now, which run from now on; `ids` are those that the machine has started.
    fn start(&mut self, ids: &[u64], until: u64) -> Vec<usize> {
        let mut group = self.next_part().unwrap_or_default();
        if group.is_empty() {
            let Gather { rows, bytes, .. } = self.settings.gather.unwrap_or(Gather { rows: 1, bytes: u64::MAX, wait: 0 });
            let mut taken = 0;
            while (group.len() as u64) < rows && (group.is_empty() || taken < bytes) {
                let Some(row) = self.next_row(ids.get(group.len()).copied()) else { break };
                self.retries += u64::from(matches!(self.rows[row].place, Place::Due { .. }));
                taken += self.row_bytes[self.rows[row].batch];
                self.rows[row].place = Place::Running { until };
                self.rows[row].attempts += 1;
                group.push(row);
            }
        }
        for &row in &group {
            self.rows[row].place = Place::Running { until };
        }
        group
    }

    /// R6, R7, R8 at a moment: timeouts, then row deadlines, then stuck attempts, then pauses that are over.
    fn tick(&mut self, now: u64) {
        for attempt in 0..self.open.len() {
            if self.open[attempt].cancelled.is_some() || self.open[attempt].until > now {
                continue;
            }
            for row in self.running_in(attempt) {
                if self.settings.retry.timeouts && self.may_retry(row) {
                    self.rows[row].place = Place::Ending;
                } else {
                    self.ended(now, row, How::TimedOut);
                }
            }
            self.open[attempt].cancelled = Some(now);
        }
        self.end_where(now, How::TimedOut, |row| row.deadline <= now);
        for i in 0..self.open.len() {
            let ModelAttempt { cancelled, stuck, .. } = self.open[i];
            if cancelled.is_some_and(|at| at + PATIENCE <= now) && !stuck {
                self.open[i].stuck = true;
                for row in self.waiting_for(i) {
                    if self.settings.retry.idempotent {
                        self.back_off(now, row);
                    } else {
                        self.ended(now, row, How::TimedOut);
                    }
                }
            }
        }
        let mut over: Vec<(u64, usize)> = vec![];
        for (r, row) in self.rows.iter().enumerate() {
            if let Place::BackingOff { until } = row.place {
                if until <= now {
                    over.push((until, r));
                }
            }
        }
        over.sort_by_key(|&(until, r)| (until, self.rows[r].id));
        self.turns += 1;
        for (until, r) in over {
            self.rows[r].place = Place::Due { turn: self.turns << 32 | until, since: now };
        }
        let stuck = self.open.iter().filter(|a| a.stuck).count();
        if stuck as u64 >= u64::from(self.settings.max_stuck) && !self.cancelled {
            self.poison(now);
        }
    }

    /// The rows that are to be tried again when this attempt, their youngest, has ended.
    fn waiting_for(&self, attempt: usize) -> Vec<usize> {
        let youngest = |row: usize| self.open.iter().rposition(|a| a.rows.contains(&row)) == Some(attempt);
        let waits = |&row: &usize| self.rows[row].place == Place::Ending && youngest(row);
        self.open[attempt].rows.iter().copied().filter(waits).collect()
    }

    /// R7: a micro-batch that failed as a whole goes on in two parts.
    fn split(&mut self, rows: &[usize]) {
        for &row in rows {
            self.rows[row].place = Place::Split;
        }
        let half = rows.len().div_ceil(2);
        self.parts.push_front(rows[half..].to_vec());
        self.parts.push_front(rows[..half].to_vec());
    }

    fn poison(&mut self, now: u64) {
        if !self.poisoned {
            self.poisoned = true;
            self.end_where(now, How::Error, |_| true);
            self.open.clear();
        }
    }

    /// R5: what a drain may hand out now, as row numbers. Unordered: in any order.
    fn ready(&self) -> Vec<usize> {
        let held = (0..self.rows.len()).filter(|&r| self.rows[r].place != Place::Out);
        let ended = |&r: &usize| matches!(self.rows[r].place, Place::Ended(_));
        if self.settings.ordered {
            held.take_while(ended).collect()
        } else {
            held.filter(ended).collect()
        }
    }

    fn count(&self, place: impl Fn(&Place) -> bool) -> u64 {
        self.rows.iter().filter(|row| place(&row.place)).count() as u64
    }
}

impl Weigh for u64 {
    fn bytes(&self) -> u64 {
        self % 4
    }
}

/// The error texts of a schedule are short, and those of the other outcomes are made by the drain.
fn bytes_of(row: &Finished<u64>) -> u64 {
    match &row.outcome {
        Outcome::Value(value) => value % 4,
        Outcome::Error(text) => text.len() as u64,
        Outcome::TimedOut | Outcome::Cancelled => 100,
    }
}

fn how(outcome: &Outcome<u64>) -> How {
    match outcome {
        Outcome::Value(_) => How::Value,
        Outcome::Error(_) => How::Error,
        Outcome::TimedOut => How::TimedOut,
        Outcome::Cancelled => How::Cancelled,
    }
}

fn step(machine: &mut Machine<usize, u64>, model: &mut Model, now: &mut u64, event: &Event) -> Result<(), TestCaseError> {
    match *event {
        Event::Accept { rows, bytes, gap } => {
            let first = model.next_id + gap;
            let batch = model.batch_bytes.len();
            let answer = machine.accept(*now, first, rows, bytes, batch);
            let expected = if model.stopped || model.poisoned {
                Err(Refused::Stopped)
            } else if !model.has_room() {
                Err(Refused::WouldBlock)
            } else {
                Ok(())
            };
            prop_assert_eq!(answer, expected, "R4, R13: what send takes");
            if answer.is_ok() {
                let deadline = model.settings.deadline.map_or(u64::MAX, |d| *now + d);
                model.batch_bytes.push(bytes);
                model.row_bytes.push(bytes.div_ceil(rows.max(1)));
                let row = |i| ModelRow { id: first + i, batch, place: Place::Waiting, attempts: 0, begun: None, accepted: *now, deadline };
                model.rows.extend((0..rows).map(row));
                model.next_id = first + rows;
                if rows > 0 {
                    let again = machine.accept(*now, first, 1, 0, 0);
                    prop_assert!(again == Err(Refused::Id) || again == Err(Refused::WouldBlock), "ids rise: {:?}", again);
                }
            }
        }
        Event::Start => {
            let starts = model.can_start(*now);
            let started = machine.start(*now);
            prop_assert_eq!(started.is_some(), starts, "R4: the cap, and no idle slot while rows wait");
            if let Some(start) = started {
                let mut rows = vec![(start.id, start.batch, start.attempt)];
                rows.extend(start.others.iter().map(|other| (other.id, other.batch, other.attempt)));
                let ids: Vec<u64> = rows.iter().map(|row| row.0).collect();
                let until = model.settings.timeout.map_or(u64::MAX, |t| *now + t);
                let expected = model.start(&ids, until);
                expected.iter().for_each(|&row| _ = model.rows[row].begun.get_or_insert(*now));
                let record = |&row: &usize| (model.rows[row].id, model.rows[row].batch, model.rows[row].attempts);
                prop_assert_eq!(rows, expected.iter().map(record).collect::<Vec<_>>(), "rows start in order, retries first; R10");
                let latest = expected.iter().map(|&row| model.rows[row].deadline).max();
                prop_assert_eq!(Some(start.deadline), latest.map(|latest| latest.min(until)), "R10");
                let attempt = ModelAttempt {
                    token: start.token,
                    rows: expected,
                    until,
                    cancelled: None,
                    stuck: false,
                    asked: false,
                    reported: false,
                };
                for &row in &attempt.rows {
                    let working = model.open.iter().filter(|a| a.rows.contains(&row) && !a.stuck).count();
                    prop_assert_eq!(working, 0, "R7: one attempt of a row at a time, but for stuck ones");
                }
                model.open.push(attempt);
            }
        }
        Event::End { pick, whole, errors } => {
            if model.open.is_empty() {
                return Ok(());
            }
            let index = pick % model.open.len();
            let (token, open) = (model.open[index].token, model.open[index].cancelled.is_none());
            let (rows, again, running) = (model.open[index].rows.clone(), model.waiting_for(index), model.running_in(index));
            model.open.remove(index);
            prop_assert_eq!(machine.is_open(token), open);
            let is_error = |i: usize| errors & 1 << (i % 8) != 0;
            let outcome = |i: usize| if is_error(i) { Outcome::Error("no".into()) } else { Outcome::Value(model.rows[rows[i]].id) };
            if whole {
                prop_assert_eq!(machine.end(*now, token, outcome(0)), open, "R6: the first event wins");
            } else {
                machine.end_rows(*now, token, (0..rows.len()).map(outcome));
            }
            prop_assert!(!machine.end(*now, token, Outcome::Cancelled), "a token is good once");
            again.into_iter().for_each(|row| model.back_off(*now, row));
            if open && whole && rows.len() > 1 {
                model.split(&running);
            } else if open {
                for (i, row) in rows.into_iter().enumerate().filter(|(_, row)| running.contains(row)) {
                    if is_error(i) && model.settings.retry.errors && model.may_retry(row) {
                        model.back_off(*now, row);
                    } else {
                        model.ended(*now, row, if is_error(i) { How::Error } else { How::Value });
                    }
                }
            }
        }
        Event::Tick { after } => {
            *now += after;
            machine.tick(*now);
            model.tick(*now);
            prop_assert!(machine.next_deadline().is_none_or(|at| at > *now), "a tick does all that is due");
        }
        Event::Cancel { first, rows } => {
            machine.cancel(*now, first, rows);
            model.end_where(*now, How::Cancelled, |row| (first..first + rows).contains(&row.id));
        }
        Event::Drain { limit, bytes } => check_out(model, limit, bytes, &machine.drain(limit, bytes))?,
        Event::Stop { cancel } => {
            machine.stop(*now, if cancel { Stop::Cancel } else { Stop::Drain });
            model.stopped = true;
            if cancel {
                model.cancelled = true;
                model.end_where(*now, How::Cancelled, |_| true);
            }
        }
        Event::Poison => {
            machine.poison("broken");
            model.poison(*now);
        }
    }
    Ok(())
}

fn check_out(model: &mut Model, limit: u64, most: u64, out: &[Finished<u64>]) -> Result<(), TestCaseError> {
    let ready = model.ready();
    let expected = limit.min(ready.len() as u64);
    if out.iter().map(bytes_of).sum::<u64>() <= most {
        prop_assert_eq!(out.len() as u64, expected, "R1: all that is ready comes out");
    } else {
        prop_assert!(out.len() as u64 <= expected);
        let but_the_last = out.iter().rev().skip(1).map(bytes_of).sum::<u64>();
        prop_assert!(but_the_last <= most, "only the last row may exceed the bytes that were asked for");
    }
    for (i, finished) in out.iter().enumerate() {
        let row = ready.iter().copied().find(|&r| model.rows[r].id == finished.id && model.rows[r].place != Place::Out);
        let Some(row) = row else {
            return Err(TestCaseError::fail(format!("R1: row {} comes out although it is not ready, or again", finished.id)));
        };
        if model.settings.ordered {
            prop_assert_eq!(row, ready[i], "R5: in the order accepted");
        }
        let expected = &mut model.rows[row];
        prop_assert_eq!(Place::Ended(how(&finished.outcome)), expected.place, "R1, R6: the outcome of row {}", expected.id);
        prop_assert_eq!(finished.attempts, expected.attempts, "R1: the number of attempts");
        if let Outcome::Value(value) = finished.outcome {
            prop_assert_eq!(value, expected.id, "a value belongs to its row");
        }
        expected.place = Place::Out;
        model.ended[how(&finished.outcome) as usize] += 1;
    }
    Ok(())
}

/// Whatever the moment, the two agree.
fn agree(machine: &mut Machine<usize, u64>, model: &Model, now: u64) -> Result<(), TestCaseError> {
    let counts = machine.counts();
    let stuck = model.open.iter().filter(|a| a.stuck).count() as u64;
    let waits = |place: &Place| matches!(place, Place::Ending | Place::BackingOff { .. } | Place::Due { .. });
    prop_assert_eq!(counts.accepted, model.rows.len() as u64);
    prop_assert_eq!(counts.queued, model.count(|p| matches!(p, Place::Waiting | Place::Split)), "R16");
    prop_assert_eq!(counts.running, model.open.len() as u64, "R16: attempts that have not ended");
    prop_assert_eq!(counts.backing_off, model.count(waits), "R16");
    prop_assert_eq!(counts.stuck, stuck, "R8, R16");
    prop_assert_eq!(counts.retries, model.retries, "R16");
    prop_assert_eq!(counts.ready, model.ready().len() as u64, "R16");
    prop_assert_eq!(counts.ready + counts.held, model.count(|p| matches!(p, Place::Ended(_))), "R16");
    prop_assert_eq!(counts.drained, model.count(|p| *p == Place::Out), "R16");
    prop_assert!(counts.running - counts.stuck <= model.settings.allowed_in_flight.into(), "R4");
    prop_assert_eq!(machine.can_start(), model.can_start(now), "R4, R7");
    prop_assert_eq!(machine.has_room(), model.has_room(), "R4");
    prop_assert_eq!(machine.has_results(), !model.ready().is_empty());
    prop_assert_eq!(machine.held_bytes(), model.held_bytes(), "R4");
    prop_assert_eq!(machine.is_empty(), model.held().next().is_none());
    let done = model.stopped && counts.queued == 0 && counts.backing_off == 0;
    prop_assert_eq!(machine.is_settled(), done && model.open.is_empty(), "R13: when to close");
    prop_assert_eq!(machine.is_stuck(), done && stuck > 0 && stuck == model.open.len() as u64, "R13: when to give up");
    // R6, R7, R8: the machine asks to be told the time no later than something is due.
    let rows = model.rows.iter().enumerate().filter(|(r, _)| model.is_open(*r)).map(|(_, row)| match row.place {
        Place::Running { until } | Place::BackingOff { until } => until.min(row.deadline),
        _ => row.deadline,
    });
    let stuck_at = model.open.iter().filter(|a| !a.stuck).filter_map(|a| a.cancelled).map(|at| at + PATIENCE);
    let wait = model.settings.gather.filter(|_| model.has_slot() && !machine.can_start()).map(|gather| gather.wait);
    let gathered = wait.and_then(|wait| model.waiting().map(|(_, since)| since + wait).min());
    if let Some(due) = rows.chain(stuck_at).chain(gathered).min().filter(|&due| due != u64::MAX) {
        prop_assert!(machine.next_deadline().is_some_and(|at| at <= due.max(now)), "something is due at {}", due);
    }
    Ok(())
}

fn run(settings: Settings, events: &[Event]) -> Result<(), TestCaseError> {
    let mut machine = Machine::new(settings);
    let mut model = Model::new(settings);
    let mut now = 1_000;
    for event in events {
        step(&mut machine, &mut model, &mut now, event)?;
        agree(&mut machine, &model, now)?;
        check_requests(&mut machine, &mut model)?;
    }
    // R1 to the end: stop, end what is open, and everything comes out.
    step(&mut machine, &mut model, &mut now, &Event::Stop { cancel: true })?;
    while !model.open.is_empty() {
        step(&mut machine, &mut model, &mut now, &Event::End { pick: 0, whole: false, errors: 0 })?;
    }
    prop_assert!(machine.is_settled());
    step(&mut machine, &mut model, &mut now, &Event::Drain { limit: u64::MAX, bytes: u64::MAX })?;
    agree(&mut machine, &model, now)?;
    prop_assert!(machine.is_empty(), "R1: nothing is left inside");
    let counts = machine.counts();
    let ended = [counts.values, counts.errors, counts.timed_out, counts.cancelled];
    prop_assert_eq!(ended, model.ended, "R16: rows by outcome");
    let mut latency = Histogram::default();
    if settings.timeout.or(settings.deadline).is_some() || settings.retry.errors || settings.gather.is_some() {
        model.took.iter().for_each(|&took| latency.count(took));
    }
    prop_assert_eq!(*machine.latency(), latency, "R16: how long rows took");
    Ok(())
}

/// R6, R8: each attempt that nobody waits for any more is to be cancelled, once; each that is stuck is reported, once.
fn check_requests(machine: &mut Machine<usize, u64>, model: &mut Model) -> Result<(), TestCaseError> {
    let (mut cancelled, mut stuck) = (Vec::new(), Vec::new());
    prop_assert_eq!(machine.poisoned().is_some(), model.poisoned, "R17");
    prop_assert_eq!(machine.stopping().is_some(), model.stopped);
    let announced = (machine.has_cancellations(), machine.has_stuck());
    machine.take_cancellations(&mut cancelled);
    machine.take_stuck(&mut stuck);
    prop_assert_eq!(announced, (!cancelled.is_empty(), !stuck.is_empty()));
    prop_assert!(!machine.has_cancellations() && !machine.has_stuck(), "what is taken is gone");
    let mut expected = Vec::new();
    for attempt in model.open.iter_mut().filter(|a| a.cancelled.is_some() && !a.asked) {
        attempt.asked = true;
        expected.push(attempt.token);
    }
    cancelled.sort_by_key(|token| token.generation);
    prop_assert_eq!(cancelled, expected, "R6: what is to be cancelled");
    if !model.poisoned {
        let mut expected = Vec::new();
        for attempt in model.open.iter_mut().filter(|a| a.stuck && !a.reported) {
            attempt.reported = true;
            expected.push((attempt.token, model.rows[attempt.rows[0]].id));
        }
        let mut stuck: Vec<_> = stuck.into_iter().map(|stuck| (stuck.token, stuck.id)).collect();
        stuck.sort_by_key(|(token, _)| token.generation);
        prop_assert_eq!(stuck, expected, "R8: what is reported as stuck");
    }
    Ok(())
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(3_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn machine_and_model_agree(settings in settings(), events in prop::collection::vec(event(), 0..120)) {
        run(settings, &events)?;
    }
}

fn machine(ordered: bool, cap: u32, timeout: Option<u64>, retry: Retry) -> Machine<(), u64> {
    let settings = Settings {
        ordered,
        allowed_in_flight: cap,
        timeout,
        deadline: None,
        max_rows: 100,
        max_bytes: 100,
        retry,
        max_stuck: 9,
        gather: None,
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
    assert!((50..=100).contains(&at), "a pause of 100, less up to a half: {at}");
    m.tick(at);
    let again = m.start(at).unwrap();
    assert_eq!((again.id, again.attempt), (0, 2));
    m.end(at, again.token, Outcome::Error("no".into()));
    assert_eq!(drained(&mut m), [0, 1]);
    assert_eq!((m.counts().errors, m.counts().retries), (1, 1));
}

#[test]
fn r7_a_row_that_is_cancelled_while_its_next_attempt_is_due_gets_none() {
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
        let next = m.start(10 + PATIENCE).expect("a stuck attempt is out of the cap");
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
fn attempts_that_are_open_together_have_different_small_numbers() {
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
fn r13_a_stop_that_cancels_is_answered_and_not_poisoned() {
    let mut m = machine(true, 9, None, Retry::NEVER);
    m.accept(0, 0, 10, 0, ()).unwrap();
    while m.start(0).is_some() {}
    m.stop(0, Stop::Cancel);
    m.tick(PATIENCE);
    assert_eq!((m.poisoned(), m.is_stuck(), m.counts().stuck), (None, true, 9));
}

#[test]
fn r17_a_failure_of_the_toolkit_is_not_put_on_the_user() {
    let mut m = machine(true, 1, None, Retry::NEVER);
    m.poison("broken");
    m.tick(PATIENCE);
    assert_eq!((m.poisoned(), m.is_overwhelmed()), (Some("broken"), false));
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
fn r7_a_row_that_was_cancelled_before_its_next_attempt_gets_none() {
    let mut m = machine(true, 2, None, Retry { max_attempts: 2, errors: true, ..Retry::NEVER });
    m.accept(0, 0, 3, 0, ()).unwrap();
    let (_first, second) = (m.start(0).unwrap(), m.start(0).unwrap());
    m.end(0, second.token, Outcome::Error("no".into()));
    m.tick(0);
    m.cancel(0, 1, 1);
    assert_eq!(m.start(0).unwrap().id, 2, "row 1 is kept only because row 0 comes before it");
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
fn rows_are_gathered_until_they_are_enough_or_have_waited_or_weigh_or_no_more_can_come() {
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
fn rows_that_ended_while_they_waited_weigh_nothing() {
    let mut m = gathering(9, 50, 9);
    m.accept(0, 0, 4, 8, ()).unwrap();
    m.cancel(0, 0, 3);
    m.accept(0, 4, 1, 2, ()).unwrap();
    assert!(m.start(0).is_none(), "two rows of two bytes, and ten are wanted");
    m.accept(0, 5, 1, 6, ()).unwrap();
    assert_eq!(ids(&m.start(0).unwrap()), [3, 4, 5]);
}

#[test]
fn a_row_that_ended_before_its_next_attempt_weighs_nothing() {
    let mut m = gathering(9, 50, 9);
    m.settings.retry = Retry { max_attempts: 2, errors: true, backoff: 10, max_backoff: 10, ..Retry::NEVER };
    m.accept(0, 0, 1, 8, ()).unwrap();
    let start = m.start(50).unwrap();
    m.end(50, start.token, Outcome::Error("no".into()));
    m.tick(60);
    m.cancel(60, 0, 1);
    m.accept(60, 1, 1, 5, ()).unwrap();
    assert!(m.start(60).is_none(), "one row of five bytes, and ten are wanted");
}

#[test]
fn rows_do_not_wait_for_more_than_there_is_room_for() {
    let mut m = gathering(1_000, 50, 9);
    m.accept(0, 0, 99, 0, ()).unwrap();
    assert!(m.start(0).is_none());
    m.accept(0, 99, 1, 0, ()).unwrap();
    assert_eq!(m.start(0).unwrap().others.len(), 99);
}

#[test]
fn r7_a_micro_batch_is_split_until_the_row_that_fails_is_alone_and_each_had_one_attempt() {
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
fn a_row_that_is_cancelled_before_its_part_starts_is_not_part_of_it() {
    let mut m = gathering(4, 0, 1);
    m.accept(0, 0, 4, 0, ()).unwrap();
    let start = m.start(0).unwrap();
    m.end(0, start.token, Outcome::Error("no".into()));
    m.cancel(0, 1, 2);
    assert_eq!(ids(&m.start(0).unwrap()), [0]);
    assert_eq!(m.counts().queued, 1, "row 3, in the other part");
}

#[test]
fn a_micro_batch_is_cancelled_when_its_last_row_is() {
    let mut m = gathering(2, 0, 1);
    m.accept(0, 0, 2, 0, ()).unwrap();
    let start = m.start(0).unwrap();
    m.cancel(0, 0, 1);
    assert!(!m.has_cancellations() && m.is_open(start.token));
    m.cancel(0, 1, 1);
    assert!(m.has_cancellations() && !m.is_open(start.token));
}

#[test]
fn r4_a_batch_is_taken_whole_beyond_the_limit_but_not_at_it() {
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
fn r7_the_jitter_is_between_half_and_the_whole_pause_and_comes_from_the_seed() {
    let retry = Retry { backoff: 1_000, max_backoff: 5_000, seed: 7, ..Retry::NEVER };
    for id in 0..100 {
        for (attempt, full) in [(1, 1_000), (2, 2_000), (3, 4_000), (4, 5_000), (60, 5_000)] {
            let pause = retry.pause(id, attempt);
            assert!((full / 2..=full).contains(&pause), "{pause} of {full}");
            assert_eq!(pause, retry.pause(id, attempt));
        }
    }
    // The same on every machine and in every version: who replays a run with its seed sees the same pauses.
    let pauses: Vec<u64> = (0..4).map(|id| retry.pause(id, 1 + id as u16)).collect();
    assert_eq!(pauses, [729, 1246, 2473, 3285]);
    assert_ne!(retry.pause(1, 1), Retry { seed: 8, ..retry }.pause(1, 1));
    assert_ne!(retry.pause(1, 1), retry.pause(2, 1));
}
