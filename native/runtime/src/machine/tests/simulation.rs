//! Random schedules of all events under a virtual clock. After each event machine and model must agree; a failing schedule
//! shrinks. Messages name the rules.
//!
//! Hosts send, drain, cancel, stop and release; executors start and end attempts, also late, or twice, or not for so long
//! that they are stuck; the toolkit fails (poison). What a call uses is an `Rc` here, so that it is seen who keeps it.
//!
//! A schedule has 60 events on average. `PROPTEST_CASES` sets the number of schedules: `make check` runs ten million events.
//! `PROPTEST_RNG_SEED` makes a run repeatable.

use super::model::{How, Model, ModelAttempt, ModelRow, Place};
use crate::histogram::Histogram;
use crate::machine::{Finished, Gather, Limit, Machine, Outcome, Rate, Refused, Retry, Settings, Stop, Token, Weigh, PATIENCE};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::rc::Rc;

/// A batch is its number.
type Simulated = Machine<Rc<usize>, u64>;

#[derive(Debug, Clone)]
enum Event {
    Accept {
        rows: u64,
        bytes: u64,
        gap: u64,
        deadline: Option<u64>,
    },
    Start,
    /// The call of attempt `pick` (modulo their number) begins.
    Begin {
        pick: usize,
    },
    /// Ends attempt `pick` (modulo their number): as a whole with one outcome, or each row with its own. An outcome is an
    /// error where its bit is set.
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
    /// An answer for attempt `pick` (modulo their number) of those that have ended.
    Late {
        pick: usize,
    },
    /// The host stops and takes nothing any more. The executor goes on.
    Release,
    /// The executor takes up to `most` rows as a stretch. `goes_on`: the call of the row in hand then has not ended.
    Stretch {
        most: u64,
        steps: Vec<InStretch>,
        goes_on: bool,
    },
}

/// What happens while a stretch is open.
#[derive(Debug, Clone)]
enum InStretch {
    /// The row in hand ends.
    End {
        error: bool,
    },
    /// Time passes.
    Pass {
        time: u64,
    },
    Host(Event),
}

fn in_stretch() -> impl Strategy<Value = InStretch> {
    let drain = (0..9u64, prop_oneof![0..9u64, Just(u64::MAX)]).prop_map(|(limit, bytes)| Event::Drain { limit, bytes });
    let accept = (0..6u64, 0..40u64).prop_map(|(rows, bytes)| Event::Accept { rows, bytes, gap: 0, deadline: None });
    prop_oneof![
        6 => prop::bool::weighted(0.3).prop_map(|error| InStretch::End { error }),
        2 => (0..30u64).prop_map(|time| InStretch::Pass { time }),
        1 => drain.prop_map(InStretch::Host),
        1 => accept.prop_map(InStretch::Host),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        18 => (0..6u64, 0..40u64, 0..3u64, prop_oneof![3 => Just(None), 1 => (1..200u64).prop_map(Some)])
            .prop_map(|(rows, bytes, gap, deadline)| Event::Accept { rows, bytes, gap, deadline }),
        36 => Just(Event::Start),
        9 => any::<usize>().prop_map(|pick| Event::Begin { pick }),
        30 => (any::<usize>(), any::<bool>(), any::<u8>()).prop_map(|(pick, whole, errors)| Event::End { pick, whole, errors }),
        18 => (0..30u64).prop_map(|after| Event::Tick { after }),
        5 => Just(Event::Tick { after: PATIENCE }),
        6 => (0..60u64, 0..8u64).prop_map(|(first, rows)| Event::Cancel { first, rows }),
        18 => (0..9u64, prop_oneof![0..9u64, Just(u64::MAX)]).prop_map(|(limit, bytes)| Event::Drain { limit, bytes }),
        3 => any::<bool>().prop_map(|cancel| Event::Stop { cancel }),
        3 => Just(Event::Poison),
        5 => any::<usize>().prop_map(|pick| Event::Late { pick }),
        1 => Just(Event::Release),
        18 => (1..9u64, prop::collection::vec(in_stretch(), 0..12), any::<bool>())
            .prop_map(|(most, steps, goes_on)| Event::Stretch { most, steps, goes_on }),
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
    let rate = (1..6u32, 1..500u64).prop_map(|(starts, window)| Rate { starts, window });
    (
        any::<bool>(),
        (1..5u32, any::<bool>()),
        limits,
        1..20u64,
        1..100u64,
        retry(),
        1..6u32,
        (prop::option::of(gather), prop::option::of(rate)),
    )
        .prop_map(
            |(ordered, (allowed_in_flight, adaptive), (timeout, deadline), max_rows, max_bytes, retry, max_stuck, (gather, rate))| {
                Settings {
                    ordered,
                    allowed_in_flight,
                    adaptive,
                    timeout,
                    deadline,
                    max_rows,
                    max_bytes,
                    retry,
                    max_stuck,
                    gather,
                    share: None,
                    rate,
                }
            },
        )
}

impl Weigh for u64 {
    fn bytes(&self) -> u64 {
        self % 4
    }
}

/// What a row counts for a drain's limit of bytes.
fn bytes_of(row: &Finished<u64>) -> u64 {
    match &row.outcome {
        Outcome::Value(value) => value % 4,
        Outcome::Error(text) => text.len() as u64,
        Outcome::TimedOut(_) | Outcome::Cancelled => 100,
    }
}

fn how(outcome: &Outcome<u64>) -> How {
    match outcome {
        Outcome::Value(_) => How::Value,
        Outcome::Error(_) => How::Error,
        Outcome::TimedOut(limit) => How::TimedOut(*limit),
        Outcome::Cancelled => How::Cancelled,
    }
}

fn step(machine: &mut Simulated, model: &mut Model, now: &mut u64, event: &Event) -> Result<(), TestCaseError> {
    match *event {
        Event::Accept { .. } | Event::Cancel { .. } | Event::Drain { .. } | Event::Stop { .. } if model.released => {}
        Event::Accept { rows, bytes, gap, deadline } => {
            let first = model.next_id + gap;
            let batch = model.batch_bytes.len();
            let payload = Rc::new(batch);
            let answer = machine.accept_until(*now, deadline, first, rows, bytes, Rc::clone(&payload));
            let expected = if model.stopped || model.poisoned {
                Err(Refused::Stopped)
            } else if !model.has_room() {
                Err(Refused::WouldBlock)
            } else {
                Ok(())
            };
            prop_assert_eq!(answer, expected, "R4, R13: what is accepted");
            if answer.is_ok() {
                let limits = [(model.settings.deadline, Limit::Deadline), (deadline, Limit::BatchDeadline)];
                let limits = limits.into_iter().filter_map(|(limit, name)| Some((*now + limit?, name)));
                let (deadline, limit) = limits.min_by_key(|limit| limit.0).unwrap_or((u64::MAX, Limit::Deadline));
                model.batch_bytes.push(bytes);
                model.payloads.push(payload);
                model.row_bytes.push(bytes.div_ceil(rows.max(1)));
                let row =
                    |i| ModelRow { id: first + i, batch, place: Place::Waiting, attempts: 0, begun: None, accepted: *now, deadline, limit };
                model.rows.extend((0..rows).map(row));
                model.next_id = first + rows;
                if rows > 0 {
                    let again = machine.accept(*now, first, 1, 0, Rc::default());
                    prop_assert!(again == Err(Refused::Id) || again == Err(Refused::WouldBlock), "ids rise: {:?}", again);
                }
            }
        }
        Event::Start => {
            let wants = model.can_start(*now);
            let starts = wants && model.has_place(*now);
            if wants && !starts {
                model.paced += u64::from(!model.waits);
                model.waits = true;
            }
            let started = machine.start(*now);
            prop_assert_eq!(started.is_some(), starts, "R4: the cap, and no idle slot while rows wait; R22");
            if let Some(start) = started {
                model.note_start(*now);
                let mut rows = vec![(start.id, *start.batch, start.attempt)];
                rows.extend(start.others.iter().map(|other| (other.id, *other.batch, other.attempt)));
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
                    uses: std::iter::once(start.batch).chain(start.others.iter().map(|other| Rc::clone(&other.batch))).collect(),
                };
                for &row in &attempt.rows {
                    let working = model.open.iter().filter(|a| a.rows.contains(&row) && !a.stuck).count();
                    prop_assert_eq!(working, 0, "R7: one attempt of a row at a time, except stuck ones");
                }
                model.open.push(attempt);
            }
        }
        Event::Begin { pick } => {
            let Some(attempt) = pick.checked_rem(model.open.len()) else { return Ok(()) };
            machine.call_began(model.open[attempt].token, *now);
            model.begin(attempt, *now);
        }
        Event::End { pick, whole, errors } => {
            if model.open.is_empty() {
                return Ok(());
            }
            let index = pick % model.open.len();
            let (token, open) = (model.open[index].token, model.open[index].cancelled.is_none());
            let (rows, again, running) = (model.open[index].rows.clone(), model.waiting_for(index), model.running_in(index));
            model.open.remove(index);
            model.closed.push(token);
            prop_assert_eq!(machine.is_open(token), open);
            let is_error = |i: usize| errors & 1 << (i % 8) != 0;
            let outcome = |i: usize| if is_error(i) { Outcome::Error("no".into()) } else { Outcome::Value(model.rows[rows[i]].id) };
            if whole {
                prop_assert_eq!(machine.end(*now, token, outcome(0)), open, "R6: the first event wins");
            } else {
                machine.end_rows(*now, token, (0..rows.len()).map(outcome));
            }
            prop_assert!(!machine.end(*now, token, Outcome::Cancelled), "a token is valid once");
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
            let due = model.open.iter().filter(|a| a.cancelled.is_none() && a.until <= *now).map(|a| a.token.index());
            let due: BTreeSet<usize> = due.collect();
            prop_assert_eq!(machine.due(*now).into_iter().map(Token::index).collect::<BTreeSet<_>>(), due, "R6");
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
            machine.poison(*now, "broken");
            model.poison(*now);
        }
        Event::Late { pick } => {
            if let Some(&token) = model.closed.get(pick % model.closed.len().max(1)) {
                prop_assert!(!machine.end(*now, token, Outcome::Value(0)), "R6: an attempt ends once");
                prop_assert!(!machine.is_open(token));
            }
        }
        Event::Release => {
            step(machine, model, now, &Event::Stop { cancel: true })?;
            model.released = true;
        }
        Event::Stretch { most, ref steps, goes_on } => stretch(machine, model, now, most, steps, goes_on)?,
    }
    Ok(())
}

fn stretch(
    machine: &mut Simulated,
    model: &mut Model,
    now: &mut u64,
    most: u64,
    steps: &[InStretch],
    goes_on: bool,
) -> Result<(), TestCaseError> {
    let Settings { gather, rate, adaptive, retry, timeout, .. } = model.settings;
    let waits = |row: &&ModelRow| row.place == Place::Waiting;
    let first = model.rows.iter().position(|row| row.place == Place::Waiting);
    let is_plain = gather.is_none() && rate.is_none() && !adaptive && model.rows.iter().all(|row| !matches!(row.place, Place::Due { .. }));
    let first = first.filter(|&first| is_plain && model.has_slot() && model.rows[first].deadline == u64::MAX);
    let begun = machine.begin_stretch(*now, most);
    prop_assert_eq!(begun.is_some(), first.is_some(), "R4, R7: what may start without an attempt");
    let (Some(begun), Some(first)) = (begun, first) else { return Ok(()) };
    let batch = model.rows[first].batch;
    prop_assert_eq!((begun.first_id + begun.from, *begun.batch), (model.rows[first].id, batch), "R5: rows start in order");
    let room = u64::from(model.limit) - model.open.iter().filter(|attempt| !attempt.stuck).count() as u64;
    let together = model.rows[first..].iter().take_while(waits).take_while(|row| row.batch == batch).count() as u64;
    prop_assert!((1..=most.min(room).min(together)).contains(&(begun.to - begun.from)), "R4: the cap");
    let end = first + (begun.to - begun.from) as usize;
    let (mut row, mut since) = (first, *now);
    for step in steps {
        match step {
            _ if row == end => break,
            InStretch::End { error } => {
                let outcome = if *error { Outcome::Error("no".into()) } else { Outcome::Value(model.rows[row].id) };
                machine.end_in_stretch(*now, outcome);
                (model.rows[row].attempts, model.rows[row].begun) = (1, Some(since));
                if *error && retry.errors && model.may_retry(row) {
                    model.back_off(*now, row);
                } else {
                    model.ended(*now, row, if *error { How::Error } else { How::Value });
                }
                (row, since) = (row + 1, *now);
            }
            InStretch::Pass { time } => {
                *now += time;
                if machine.stretch_must_end(*now) {
                    break;
                }
                self::step(machine, model, now, &Event::Tick { after: 0 })?;
            }
            InStretch::Host(event) => self::step(machine, model, now, event)?,
        }
        let (counts, left) = (machine.counts(), (end - row) as u64);
        prop_assert_eq!(machine.ended_in_stretch(), (row < end).then_some(row - first));
        prop_assert_eq!(counts.running, model.open.len() as u64 + left, "R16: rows of the stretch run");
        prop_assert_eq!(counts.queued, model.count(|place| *place == Place::Waiting) - left, "R16");
        prop_assert!(!machine.is_settled() && !machine.is_stuck() || row == end, "R13");
    }
    let until = timeout.map_or(u64::MAX, |timeout| since + timeout);
    let attempt = machine.end_stretch(*now, goes_on.then_some(since));
    prop_assert_eq!(attempt.is_some(), goes_on && row < end);
    if let Some(attempt) = attempt {
        prop_assert_eq!((attempt.id, attempt.attempt, attempt.deadline), (model.rows[row].id, 1, until), "R10");
        (model.rows[row].attempts, model.rows[row].begun, model.rows[row].place) = (1, Some(since), Place::Running { until });
        model.open.push(ModelAttempt {
            token: attempt.token,
            rows: vec![row],
            until,
            cancelled: None,
            stuck: false,
            asked: false,
            reported: false,
            uses: vec![attempt.batch],
        });
    }
    self::step(machine, model, now, &Event::Tick { after: 0 })
}

fn check_out(model: &mut Model, limit: u64, most: u64, out: &[Finished<u64>]) -> Result<(), TestCaseError> {
    let ready = model.ready();
    let expected = limit.min(ready.len() as u64);
    if out.iter().map(bytes_of).sum::<u64>() <= most {
        prop_assert_eq!(out.len() as u64, expected, "R1: all that is ready comes out");
    } else {
        prop_assert!(out.len() as u64 <= expected);
        let but_the_last = out.iter().rev().skip(1).map(bytes_of).sum::<u64>();
        prop_assert!(but_the_last <= most, "only the last row may exceed the limit of bytes");
    }
    for (i, finished) in out.iter().enumerate() {
        let row = ready.iter().copied().find(|&r| model.rows[r].id == finished.id && model.rows[r].place != Place::Out);
        let Some(row) = row else {
            return Err(TestCaseError::fail(format!("R1: row {} comes out before it is ready, or twice", finished.id)));
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
        *model.ended_as(how(&finished.outcome)) += 1;
    }
    Ok(())
}

/// Machine and model agree; called after each event.
fn agree(machine: &mut Simulated, model: &Model, now: u64) -> Result<(), TestCaseError> {
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
    prop_assert_eq!(machine.can_start(), model.can_start(now) && model.has_place(now), "R4, R7, R22");
    prop_assert!(model.keeps_rate(), "R22: at most so many starts in any window");
    prop_assert_eq!(counts.paced, model.paced, "R16");
    prop_assert_eq!(machine.has_room(), model.has_room(), "R4");
    prop_assert_eq!(machine.has_results(), !model.ready().is_empty());
    prop_assert_eq!(machine.held_bytes(), model.held_bytes(), "R4");
    prop_assert_eq!(machine.is_empty(), model.held().next().is_none());
    for (batch, payload) in model.payloads.iter().enumerate() {
        let held = model.held().any(|row| row.batch == batch);
        let used = model.open.iter().flat_map(|attempt| &attempt.uses).filter(|used| ***used == batch).count();
        prop_assert_eq!(Rc::strong_count(payload), 1 + usize::from(held) + used, "R13: who keeps batch {}", batch);
    }
    let done = model.stopped && counts.queued == 0 && counts.backing_off == 0;
    prop_assert_eq!(machine.is_settled(), done && model.open.is_empty(), "R13: when to close");
    prop_assert_eq!(machine.is_stuck(), done && stuck > 0 && stuck == model.open.len() as u64, "R13: when to give up");
    // R6, R7, R8: the next deadline is no later than anything that is due.
    let rows = model.rows.iter().enumerate().filter(|(r, _)| model.is_open(*r)).map(|(_, row)| match row.place {
        Place::Running { until } | Place::BackingOff { until } => until.min(row.deadline),
        _ => row.deadline,
    });
    let stuck_at = model.open.iter().filter(|a| !a.stuck).filter_map(|a| a.cancelled).map(|at| at + PATIENCE);
    let wait = model.settings.gather.filter(|_| model.has_slot() && !model.can_start(now)).map(|gather| gather.wait);
    let gathered = wait.and_then(|wait| model.waiting().map(|(_, since)| since + wait).min());
    let open = Some(model.free).filter(|_| model.can_start(now) && !model.has_place(now));
    if let Some(due) = rows.chain(stuck_at).chain(gathered).chain(open).min().filter(|&due| due != u64::MAX) {
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
        model.adapt(machine.counts().limit);
        agree(&mut machine, &model, now)?;
        check_requests(&mut machine, &mut model)?;
    }
    // R1: after a stop and the end of all attempts, every row comes out.
    step(&mut machine, &mut model, &mut now, &Event::Stop { cancel: true })?;
    while !model.open.is_empty() {
        step(&mut machine, &mut model, &mut now, &Event::End { pick: 0, whole: false, errors: 0 })?;
    }
    prop_assert!(machine.is_settled());
    model.released = false; // its results are still there, and complete
    step(&mut machine, &mut model, &mut now, &Event::Drain { limit: u64::MAX, bytes: u64::MAX })?;
    agree(&mut machine, &model, now)?;
    prop_assert!(machine.is_empty(), "R1: nothing is left inside");
    let counts = machine.counts();
    let ended = [counts.values, counts.errors, counts.timed_out, counts.cancelled];
    prop_assert_eq!(ended, model.ended, "R16: rows by outcome");
    let mut latency = Histogram::default();
    if settings.timeout.or(settings.deadline).is_some()
        || settings.retry.errors
        || settings.gather.is_some()
        || settings.rate.is_some()
        || settings.adaptive
    {
        model.took.iter().for_each(|&took| latency.count(took));
    }
    prop_assert_eq!(*machine.latency(), latency, "R16: how long rows took");
    Ok(())
}

/// R6, R8: an attempt that no row waits for any more is cancelled once; a stuck one is reported once.
fn check_requests(machine: &mut Simulated, model: &mut Model) -> Result<(), TestCaseError> {
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
    prop_assert_eq!(cancelled, expected, "R6: which attempts are cancelled");
    let mut expected = Vec::new();
    for attempt in model.open.iter_mut().filter(|a| a.stuck && !a.reported) {
        attempt.reported = true;
        expected.push((attempt.token, model.rows[attempt.rows[0]].id));
    }
    let mut stuck: Vec<_> = stuck.into_iter().map(|stuck| (stuck.token, stuck.id)).collect();
    stuck.sort_by_key(|(token, _)| token.generation);
    prop_assert_eq!(stuck, expected, "R8: which attempts are reported as stuck");
    Ok(())
}

pub fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(3_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn machine_and_model_agree(settings in settings(), events in prop::collection::vec(event(), 0..120)) {
        run(settings, &events)?;
    }

    #[test]
    fn machine_and_model_agree_where_rows_run_in_stretches(
        settings in settings(),
        events in prop::collection::vec(event(), 0..120),
    ) {
        run(Settings { gather: None, rate: None, adaptive: false, deadline: None, ..settings }, &events)?;
    }
}
