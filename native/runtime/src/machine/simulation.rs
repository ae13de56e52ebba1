//! Random schedules of every event under a virtual clock, against a naive model that keeps all rows in one list. After
//! each event the machine and the model must agree; a failing schedule shrinks. Invariants are named after their rules.

use super::{Finished, Machine, Outcome, Refused, Settings, Stop, Token};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Event {
    Accept {
        rows: u64,
        bytes: u64,
        gap: u64,
    },
    Start,
    /// Ends one of the open attempts, picked by number.
    End {
        pick: usize,
        error: bool,
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
    Stop {
        cancel: bool,
    },
    Poison,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0..6u64, 0..40u64, 0..3u64).prop_map(|(rows, bytes, gap)| Event::Accept { rows, bytes, gap }),
        12 => Just(Event::Start),
        10 => (any::<usize>(), any::<bool>()).prop_map(|(pick, error)| Event::End { pick, error }),
        5 => (0..30u64).prop_map(|after| Event::Tick { after }),
        2 => (0..60u64, 0..8u64).prop_map(|(first, rows)| Event::Cancel { first, rows }),
        6 => (0..9u64).prop_map(|limit| Event::Drain { limit }),
        1 => any::<bool>().prop_map(|cancel| Event::Stop { cancel }),
        1 => Just(Event::Poison),
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    (any::<bool>(), 1..5u32, prop::option::of(1..60u64), 1..20u64, 1..100u64).prop_map(
        |(ordered, allowed_in_flight, timeout, max_rows, max_bytes)| Settings { ordered, allowed_in_flight, timeout, max_rows, max_bytes },
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
    Running { deadline: u64 },
    Ended(How),
    Out,
}

#[derive(Debug)]
struct ModelRow {
    id: u64,
    batch: usize,
    place: Place,
    attempts: u16,
}

/// The rules, told as plainly as they can be.
struct Model {
    settings: Settings,
    rows: Vec<ModelRow>,
    batch_bytes: Vec<u64>,
    open: Vec<(Token, usize)>,
    next_id: u64,
    stopped: bool,
    poisoned: bool,
}

impl Model {
    fn held(&self) -> impl Iterator<Item = &ModelRow> {
        self.rows.iter().filter(|row| row.place != Place::Out)
    }

    /// R4: the totals held before the batch decide.
    fn has_room(&self) -> bool {
        let bytes: u64 = (0..self.batch_bytes.len()).filter(|&b| self.held().any(|row| row.batch == b)).map(|b| self.batch_bytes[b]).sum();
        (self.held().count() as u64) < self.settings.max_rows && bytes < self.settings.max_bytes
    }

    fn end_where(&mut self, how: How, which: impl Fn(&ModelRow) -> bool) {
        for row in self.rows.iter_mut().filter(|row| matches!(row.place, Place::Waiting | Place::Running { .. }) && which(row)) {
            row.place = Place::Ended(how);
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
            let answer = machine.accept(first, rows, bytes, batch);
            let expected = if model.stopped || model.poisoned {
                Err(Refused::Stopped)
            } else if !model.has_room() {
                Err(Refused::WouldBlock)
            } else {
                Ok(())
            };
            prop_assert_eq!(answer, expected, "R4, R13: what send takes");
            if answer.is_ok() {
                model.batch_bytes.push(bytes);
                model.rows.extend((0..rows).map(|i| ModelRow { id: first + i, batch, place: Place::Waiting, attempts: 0 }));
                model.next_id = first + rows;
                prop_assert_eq!(machine.accept(first.wrapping_sub(1), 1, 0, 0).is_err(), true, "ids rise");
            }
        }
        Event::Start => {
            let next = model.rows.iter().position(|row| row.place == Place::Waiting);
            let free = model.open.len() < model.settings.allowed_in_flight as usize;
            let started = machine.start(*now);
            prop_assert_eq!(started.is_some(), next.is_some() && free, "R4: the cap, and no idle slot while rows wait");
            if let (Some(start), Some(row)) = (started, next) {
                prop_assert_eq!((start.id, start.batch), (model.rows[row].id, model.rows[row].batch), "rows start in order");
                model.rows[row].place = Place::Running { deadline: model.settings.timeout.map_or(u64::MAX, |t| *now + t) };
                model.rows[row].attempts = 1;
                model.open.push((start.token, row));
            }
        }
        Event::End { pick, error } => {
            if model.open.is_empty() {
                return Ok(());
            }
            let (token, row) = model.open.remove(pick % model.open.len());
            let open = matches!(model.rows[row].place, Place::Running { .. });
            prop_assert_eq!(machine.is_open(token), open);
            let outcome = if error { Outcome::Error("no".into()) } else { Outcome::Value(model.rows[row].id) };
            prop_assert_eq!(machine.end(token, outcome), open, "R6: the first event wins");
            prop_assert!(!machine.end(token, Outcome::Cancelled), "a token is good once");
            if open {
                model.rows[row].place = Place::Ended(if error { How::Error } else { How::Value });
            }
        }
        Event::Tick { after } => {
            *now += after;
            let due = model.rows.iter().filter_map(|row| if let Place::Running { deadline } = row.place { Some(deadline) } else { None });
            prop_assert_eq!(machine.next_deadline(), due.min().filter(|&d| d != u64::MAX), "R6: when to tick");
            machine.tick(*now);
            let now = *now;
            model.end_where(How::TimedOut, |row| matches!(row.place, Place::Running { deadline } if deadline <= now));
        }
        Event::Cancel { first, rows } => {
            machine.cancel(first, rows);
            model.end_where(How::Cancelled, |row| (first..first + rows).contains(&row.id));
        }
        Event::Drain { limit } => {
            let mut out = Vec::new();
            machine.drain(limit, |_| false, &mut out);
            check_out(model, limit, &out)?;
        }
        Event::Stop { cancel } => {
            machine.stop(if cancel { Stop::Cancel } else { Stop::Drain });
            model.stopped = true;
            if cancel {
                model.end_where(How::Cancelled, |_| true);
            }
        }
        Event::Poison => {
            machine.poison("broken");
            if !model.poisoned {
                model.poisoned = true;
                model.open.clear();
                model.end_where(How::Error, |_| true);
            }
        }
    }
    Ok(())
}

fn check_out(model: &mut Model, limit: u64, out: &[Finished<u64>]) -> Result<(), TestCaseError> {
    let ready = model.ready();
    prop_assert_eq!(out.len() as u64, limit.min(ready.len() as u64), "R1: all that is ready comes out");
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
    }
    Ok(())
}

/// Whatever the moment, the two agree.
fn agree(machine: &Machine<usize, u64>, model: &Model) -> Result<(), TestCaseError> {
    let counts = machine.counts();
    let ended = |place: &Place| matches!(place, Place::Ended(_));
    prop_assert_eq!(counts.accepted, model.rows.len() as u64);
    prop_assert_eq!(counts.queued, model.count(|p| *p == Place::Waiting), "R16");
    prop_assert_eq!(counts.running, model.open.len() as u64, "R16: attempts that have not ended");
    prop_assert_eq!(counts.ready, model.ready().len() as u64, "R16");
    prop_assert_eq!(counts.ready + counts.held, model.count(ended), "R16");
    prop_assert_eq!(counts.drained, model.count(|p| *p == Place::Out), "R16");
    prop_assert!(counts.running <= model.settings.allowed_in_flight.into(), "R4");
    prop_assert_eq!(machine.has_room(), model.has_room(), "R4");
    prop_assert_eq!(machine.has_results(), !model.ready().is_empty());
    prop_assert_eq!(machine.is_empty(), model.held().next().is_none());
    let idle = model.open.is_empty() && counts.queued == 0;
    prop_assert_eq!(machine.is_settled(), model.stopped && idle, "R13: when to close");
    Ok(())
}

fn run(settings: Settings, events: &[Event]) -> Result<(), TestCaseError> {
    let mut machine = Machine::new(settings);
    let mut model = Model { settings, rows: vec![], batch_bytes: vec![], open: vec![], next_id: 0, stopped: false, poisoned: false };
    let mut now = 1_000;
    let mut cancelled = Vec::new();
    for event in events {
        step(&mut machine, &mut model, &mut now, event)?;
        agree(&machine, &model)?;
        machine.take_cancellations(&mut cancelled);
        for token in cancelled.drain(..) {
            let row = model.open.iter().find(|(open, _)| *open == token).map(|(_, row)| model.rows[*row].place);
            prop_assert!(row.is_none_or(|place| !matches!(place, Place::Running { .. })), "only ended rows are cancelled");
        }
    }
    // R1 to the end: stop, end what is open, and everything comes out.
    step(&mut machine, &mut model, &mut now, &Event::Stop { cancel: true })?;
    while !model.open.is_empty() {
        step(&mut machine, &mut model, &mut now, &Event::End { pick: 0, error: false })?;
    }
    prop_assert!(machine.is_settled());
    step(&mut machine, &mut model, &mut now, &Event::Drain { limit: u64::MAX })?;
    agree(&machine, &model)?;
    prop_assert!(machine.is_empty(), "R1: nothing is left inside");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn machine_and_model_agree(settings in settings(), events in prop::collection::vec(event(), 0..120)) {
        run(settings, &events)?;
    }
}

fn machine(ordered: bool, cap: u32, timeout: Option<u64>) -> Machine<(), u64> {
    Machine::new(Settings { ordered, allowed_in_flight: cap, timeout, max_rows: 100, max_bytes: 100 })
}

fn drained(machine: &mut Machine<(), u64>) -> Vec<u64> {
    let mut out = Vec::new();
    machine.drain(u64::MAX, |_| false, &mut out);
    out.iter().map(|f| f.id).collect()
}

#[test]
fn r5_an_early_result_waits_for_the_row_before_it() {
    let mut m = machine(true, 2, None);
    m.accept(7, 2, 0, ()).unwrap();
    let (first, second) = (m.start(0).unwrap(), m.start(0).unwrap());
    m.end(second.token, Outcome::Value(1));
    assert_eq!(drained(&mut m), []);
    m.end(first.token, Outcome::Value(0));
    assert_eq!(drained(&mut m), [7, 8]);
}

#[test]
fn r5_unordered_rows_come_out_as_they_end() {
    let mut m = machine(false, 2, None);
    m.accept(0, 2, 0, ()).unwrap();
    let (first, second) = (m.start(0).unwrap(), m.start(0).unwrap());
    m.end(second.token, Outcome::Value(1));
    assert_eq!(drained(&mut m), [1]);
    m.end(first.token, Outcome::Value(0));
    assert_eq!(drained(&mut m), [0]);
}

#[test]
fn r6_a_late_value_is_discarded_and_its_slot_is_free_again() {
    let mut m = machine(true, 1, Some(10));
    m.accept(0, 2, 0, ()).unwrap();
    let late = m.start(0).unwrap();
    m.tick(9);
    assert!(m.is_open(late.token));
    m.tick(10);
    assert!(m.start(10).is_none(), "the attempt still runs");
    assert!(!m.end(late.token, Outcome::Value(0)));
    assert_eq!(m.counts().timed_out, 1);
    assert!(m.start(11).is_some());
}

#[test]
fn r4_a_batch_is_taken_whole_beyond_the_limit_but_not_at_it() {
    let mut m = machine(true, 1, None);
    m.accept(0, 1_000, 0, ()).unwrap();
    assert_eq!(m.accept(1_000, 1, 0, ()), Err(Refused::WouldBlock));
}

#[test]
fn unordered_rows_cancelled_behind_a_full_cap_come_out_at_once() {
    let mut m = machine(false, 1, None);
    m.accept(0, 3, 0, ()).unwrap();
    let _open = m.start(0).unwrap();
    m.cancel(2, 1);
    assert_eq!(drained(&mut m), [2]);
}
