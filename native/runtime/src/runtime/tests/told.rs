//! When a host is told of rows that it can drain: at once, or by the timer, two milliseconds later at most.

use super::{samples, send, Idle, SOON};
use crate::abi;
use crate::arrow::Layout;
use crate::machine::Outcome;
use crate::runtime::wake_ups::{TOLD, TOLD_APART};
use crate::runtime::{After, Ahead, Orders, Runtime, Seat};
use crate::timer::{now, Ticking};
use crate::value::Value;
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;

/// A runtime with one executor that takes rows ahead, in a turn.
fn ahead(ordered: bool) -> (Arc<Runtime>, Ahead) {
    let (runtime, mut executors) = executors(ordered, 1);
    (runtime, executors.remove(0))
}

/// A runtime with executors that take rows ahead, all in a turn.
fn executors(ordered: bool, count: usize) -> (Arc<Runtime>, Vec<Ahead>) {
    let runtime = samples::runtime_with(Layout::Fixed(8), |settings| crate::machine::Settings {
        ordered,
        max_rows: 1000,
        max_bytes: 1000,
        allowed_in_flight: 6,
        ..settings
    });
    let seats: Vec<_> = (0..count).map(|_| Seat::take(&runtime)).collect();
    let executors = seats.into_iter().map(|seat| {
        seat.serve(Box::new(Idle));
        let mut ahead = Ahead::new(seat);
        ahead.begin_turn(&mut Orders::default());
        ahead
    });
    let executors = executors.collect();
    (runtime, executors)
}

fn one() -> Outcome<Value> {
    Outcome::Value(Value::Fixed(1))
}

/// No row that a drain would hand out waits for anything but the timer; or for the end of the turn, while no call computes.
fn check(runtime: &Runtime, executors: &[Ahead]) {
    let state = runtime.lock();
    let in_stretch = state.machine.ended_in_stretch().is_some_and(|ended| state.seats[0].outbox.left_in_stretch() > ended);
    let ended = in_stretch || state.has_results() || state.seats.iter().any(|seat| !seat.outbox.is_empty());
    let told_in_time = state.tell_by.is_some_and(|by| by <= now() + TOLD && state.alarm.at().is_some_and(|at| at <= by));
    let told_in_turn = executors.iter().any(|ahead| ahead.telling.is_untold && ahead.telling.in_turn);
    assert!(!ended || state.news || told_in_time || told_in_turn, "nobody tells the host");
}

#[derive(Debug, Clone)]
enum Step {
    Send,
    /// The executor takes rows at once.
    Take(u64),
    Begin,
    /// The executor takes rows as a stretch.
    TakeStretch(u64),
    EndInStretch,
    /// The stretch ends. True: the row in hand goes on.
    EndStretch(bool),
    /// One of the calls that run.
    End(prop::sample::Index),
    EndAndBegin(prop::sample::Index),
    Turn,
    Drain,
    Look,
    /// The timer's, that many microseconds from now.
    Tick(u64),
    Cancel(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Send),
        2 => (1..16u64).prop_map(Step::Take),
        4 => Just(Step::Begin),
        4 => (1..16u64).prop_map(Step::TakeStretch),
        6 => Just(Step::EndInStretch),
        2 => any::<bool>().prop_map(Step::EndStretch),
        4 => any::<prop::sample::Index>().prop_map(Step::End),
        4 => any::<prop::sample::Index>().prop_map(Step::EndAndBegin),
        1 => Just(Step::Turn),
        3 => Just(Step::Drain),
        1 => Just(Step::Look),
        2 => (0..4000u64).prop_map(Step::Tick),
        1 => (0..50u64).prop_map(Step::Cancel),
    ]
}

proptest! {
    #[test]
    fn r14_every_row_that_can_be_drained_is_told_in_time(
        ordered in any::<bool>(),
        count in 1..=2usize,
        steps in prop::collection::vec((0..2usize, step()), 1..60),
    ) {
        let (runtime, mut executors) = executors(ordered, count);
        let (mut id, mut running, mut stretch) = (0, [Vec::new(), Vec::new()], None);
        for (executor, step) in steps {
            let executor = executor % count;
            let (ahead, running) = (&mut executors[executor], &mut running[executor]);
            match step {
                Step::Send => {
                    send(&runtime, id);
                    id += 1;
                }
                Step::Take(rows) if !ahead.has_taken() && stretch.is_none() => ahead.take(now(), rows),
                Step::Begin if stretch.is_none() => running.extend(ahead.next_attempt().map(|begun| begun.token)),
                Step::TakeStretch(rows) if count == 1 && stretch.is_none() && !ahead.has_taken() => {
                    stretch = ahead.begin_stretch(now(), rows).ok();
                }
                Step::EndInStretch => {
                    if let Some(stretch) = stretch.as_mut().filter(|stretch| stretch.row().is_some()) {
                        ahead.end_in_stretch(stretch, one());
                    }
                }
                Step::EndStretch(goes_on) => {
                    if let Some(stretch) = stretch.take() {
                        let token = ahead.end_stretch(&stretch, goes_on);
                        running.extend(token.filter(|_| goes_on));
                    }
                }
                Step::End(index) if !running.is_empty() => ahead.end(running.swap_remove(index.index(running.len())), one()),
                Step::EndAndBegin(index) if !running.is_empty() && stretch.is_none() => {
                    let ended = running.swap_remove(index.index(running.len()));
                    running.extend(ahead.end_and_next(ended, one()).map(|begun| begun.token));
                }
                Step::Turn if stretch.is_none() => {
                    _ = ahead.end_turn();
                    ahead.begin_turn(&mut Orders::default());
                }
                Step::Drain => drop(runtime.take(0)),
                Step::Look => _ = runtime.statistics(),
                Step::Tick(microseconds) => runtime.tick(now() + microseconds * 1000),
                Step::Cancel(row) => runtime.cancel(row, 3),
                Step::Take(_) | Step::Begin | Step::TakeStretch(_) | Step::End(_) | Step::EndAndBegin(_) | Step::Turn => {}
            }
            check(&runtime, &executors);
        }
    }
}

#[test]
fn of_executors_that_share_the_rows_one_tells_the_host_at_a_time() {
    let (runtime, mut executors) = executors(true, 2);
    (0..4).for_each(|id| send(&runtime, id));
    let begun: Vec<_> = executors.iter_mut().map(|ahead| ahead.next_attempt().unwrap().token).collect();
    executors[0].end(begun[0], one());
    assert_eq!(executors[0].end_turn(), After::Again);
    assert!(runtime.wait(abi::RESULTS, Duration::ZERO));
    assert_eq!(super::rows(&runtime), 1);
    executors[1].end(begun[1], one());
    runtime.lock().told_in_turn = now() + TOLD_APART; // as if just now, however slow this thread is
    assert_eq!(executors[1].end_turn(), After::Again);
    assert!(!runtime.wait(abi::RESULTS, Duration::ZERO), "a turn of the other one tells soon");
    assert!(runtime.wait(abi::RESULTS, SOON), "the timer has told");
}

#[test]
fn the_host_is_told_of_a_row_although_all_rows_run_and_one_computes() {
    let (runtime, mut ahead) = ahead(true);
    (0..6).for_each(|id| send(&runtime, id));
    let begun: Vec<_> = std::iter::from_fn(|| ahead.next_attempt()).collect();
    assert_eq!(begun.len(), 6);
    assert_eq!(ahead.end_turn(), After::Asleep, "they wait for something");
    ahead.end(begun[0].token, one());
    assert!(runtime.wait(abi::RESULTS, SOON), "the timer has told");
}

#[test]
fn the_host_is_told_of_the_next_row_after_it_has_drained_between_rows_taken_together() {
    let (runtime, mut ahead) = ahead(true);
    (0..3).for_each(|id| send(&runtime, id));
    ahead.take(now(), 3);
    let mut begun = ahead.next_attempt().unwrap();
    for _ in 0..2 {
        ahead.end(begun.token, one());
        begun = ahead.next_attempt().expect("a call that computes");
        assert!(runtime.wait(abi::RESULTS, SOON), "the timer has told");
        assert_eq!(super::rows(&runtime), 1);
    }
}

#[test]
fn a_lone_row_needs_no_timer() {
    let (runtime, mut ahead) = ahead(true);
    for (id, in_stretch) in [(0, true), (1, false)] {
        send(&runtime, id);
        if in_stretch {
            let mut lone = ahead.begin_stretch(now(), 4).unwrap();
            ahead.end_in_stretch(&mut lone, one());
            ahead.end_stretch(&lone, false);
        } else {
            let lone = ahead.next_attempt().unwrap();
            ahead.end(lone.token, one());
        }
        assert!(ahead.take_next().is_none());
        assert!(runtime.wait(abi::RESULTS, Duration::ZERO), "before the end of the turn");
        assert_eq!(super::rows(&runtime), 1);
        assert_eq!(ahead.end_turn(), After::Asleep);
        ahead.begin_turn(&mut Orders::default());
    }
    for id in [2, 3] {
        send(&runtime, id);
        let lone = ahead.next_attempt().unwrap();
        ahead.end(lone.token, one());
        assert!(ahead.take_next().is_none());
        assert_eq!(runtime.lock().alarm.at(), None, "the turn tells, for the second one its end");
        assert_eq!(super::rows(&runtime), 1);
    }
    send(&runtime, 4);
    let lone = ahead.next_attempt().unwrap();
    ahead.end(lone.token, one());
    assert!(ahead.take_next().is_none());
    send(&runtime, 5);
    assert!(ahead.take_next().is_some(), "this call computes");
    assert!(runtime.wait(abi::RESULTS, SOON), "the timer has told");
}

/// As the test before the last one, in a stretch.
#[test]
fn the_host_is_told_of_a_row_although_the_next_one_of_its_stretch_computes() {
    let (runtime, mut ahead) = ahead(true);
    (0..2).for_each(|id| send(&runtime, id));
    assert!(runtime.put(2, samples::batch_of(2)).is_ok());
    let mut lone = ahead.begin_stretch(now(), 4).unwrap();
    ahead.end_in_stretch(&mut lone, one());
    assert_eq!(runtime.lock().alarm.at(), None, "the end of the turn tells, unless a call begins");
    let mut lone = ahead.begin_stretch(now(), 4).unwrap();
    assert!(runtime.wait(abi::RESULTS, SOON), "the timer has told");
    ahead.end_in_stretch(&mut lone, one());
    let mut two = ahead.begin_stretch(now(), 4).unwrap();
    assert!(runtime.wait(abi::RESULTS, SOON));
    assert_eq!(super::rows(&runtime), 2);
    ahead.end_in_stretch(&mut two, one());
    assert!(two.row().is_some(), "this call computes");
    assert!(runtime.wait(abi::RESULTS, SOON), "the timer has told");
    assert_eq!(super::rows(&runtime), 1);
}

/// An executor that meets the runtime's lock for each row, and whose calls share its thread.
#[test]
fn the_host_is_told_of_a_row_although_another_call_of_the_same_thread_computes() {
    let runtime = samples::runtime_of(Layout::Fixed(8), 10, 2);
    let seat = Seat::take(&runtime);
    seat.serve(Box::new(Idle));
    (0..2).for_each(|id| send(&runtime, id));
    let [first, _computes] = [(); 2].map(|()| seat.next().unwrap());
    seat.end(first.token, one());
    assert!(runtime.wait(abi::RESULTS, SOON), "the timer has told");
    assert_eq!(seat.end_turn(), After::Asleep);
}
