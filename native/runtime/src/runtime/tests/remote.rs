//! Calls in a worker process: what the host's side asks, and what the worker's side answers.

use super::*;
use crate::machine::{Stuck, Token};
use crate::runtime::remote::{Ended, Wishes};
use crate::runtime::{Attempt, NEWS};
use proptest::prelude::*;
use std::collections::{HashMap, VecDeque};
use std::ffi::c_void;

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
fn r9_calls_that_wait_in_a_worker_are_work() {
    let (mut worker, calls) = in_worker(2);
    worker.obey(Wishes { calls, ..Wishes::default() });
    assert_eq!((worker.counts().queued, worker.counts().running), (2, 0));
    worker.next_attempt().unwrap();
    assert_eq!((worker.counts().queued, worker.counts().running), (1, 1));
}

#[test]
fn r17_a_poisoned_worker_waits_for_the_calls_that_still_run() {
    unsafe extern "C" fn ring(rung: *mut c_void) {
        // SAFETY: the test's own.
        unsafe { *rung.cast::<u32>() += 1 };
    }
    let (mut worker, calls) = in_worker(1);
    let token = calls[0].token;
    worker.obey(Wishes { calls, ..Wishes::default() });
    worker.next_attempt().unwrap();
    worker.poison("internal error: a test");
    assert_eq!(worker.take_ended(), [], "the call has not ended yet");
    let mut rung = 0u32;
    assert!(!worker.arm(NEWS, ring, (&raw mut rung).cast()));
    worker.end(token, Outcome::Cancelled);
    let _ = worker.end_turn();
    assert_eq!(rung, 1);
    assert_eq!(worker.take_ended(), [(token, Ended::Whole(Outcome::Cancelled))]);
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

/// What a host and a worker do, and what is on its way between them.
#[derive(Debug, Clone)]
enum Step {
    Send,
    /// The host's executor takes an attempt, and sends it with the orders for it.
    Take,
    /// The worker gets the host's next message; the host gets the worker's.
    Arrive,
    Return,
    /// The worker's executor begins a call; ends the call `pick` (modulo their number).
    Begin,
    End {
        pick: usize,
    },
    Cancel {
        row: u64,
    },
    /// Time passes in which something is due: half a timeout.
    Wait,
    /// The worker dies with all that it has.
    Die,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Send),
        6 => Just(Step::Take),
        6 => Just(Step::Arrive),
        6 => Just(Step::Return),
        5 => Just(Step::Begin),
        4 => any::<usize>().prop_map(|pick| Step::End { pick }),
        1 => (0..20u64).prop_map(|row| Step::Cancel { row }),
        3 => Just(Step::Wait),
        1 => Just(Step::Die),
    ]
}

/// Of the worker: the calls that have ended, and the answers for those that the host asks for.
type Answer = (Vec<(Token, Ended)>, Vec<(Token, Option<u64>)>);

struct Both {
    host: Seat,
    /// The attempts that the worker has, for all that the host knows.
    given: HashMap<Token, u64>,
    there: VecDeque<(Wishes, Vec<Token>)>,
    back: VecDeque<Answer>,
    worker: Ahead,
    calls: Vec<Token>,
    time: u64,
    sent: u64,
    /// When the call of a row began; and since when the worker owes an answer.
    begun: HashMap<u64, u64>,
    taken: HashMap<u64, u64>,
}

fn worker() -> Ahead {
    let (worker, _) = in_worker(0);
    worker
}

impl Both {
    fn step(&mut self, step: &Step) {
        match *step {
            Step::Send => {
                send(&self.host, self.sent);
                self.sent += 1;
            }
            Step::Take => self.take(),
            Step::Arrive => {
                let Some((wishes, asked)) = self.there.pop_front() else { return };
                self.worker.obey(wishes);
                let mut orders = Orders::default();
                self.worker.begin_turn(&mut orders);
                let begun = self.worker.begun(&asked);
                // The clock of the worker is that of the test.
                let begun = asked.iter().zip(begun).map(|(&token, begun)| (token, begun.and(self.begun_at(token))));
                self.back.push_back((self.worker.take_ended(), begun.collect()));
            }
            Step::Return => {
                self.back.push_back((self.worker.take_ended(), Vec::new()));
                self.hear();
            }
            Step::Begin => {
                if let Some(attempt) = self.worker.next_attempt() {
                    self.begun.insert(attempt.id, self.time);
                    self.calls.push(attempt.token);
                }
            }
            Step::End { pick } => {
                if let Some(pick) = pick.checked_rem(self.calls.len()) {
                    let token = self.calls.swap_remove(pick);
                    self.worker.end(token, value(1));
                }
            }
            Step::Cancel { row } => self.host.cancel(row, 1),
            Step::Wait => {
                self.time += HOUR / 2;
                self.host.tick(self.time);
            }
            Step::Die => self.die(),
        }
    }

    fn begun_at(&self, token: Token) -> Option<u64> {
        self.given.get(&token).and_then(|id| self.begun.get(id)).copied()
    }

    fn take(&mut self) {
        let mut orders = Orders::default();
        self.host.begin_turn(&mut orders);
        let calls: Vec<Attempt> = self.host.next().into_iter().collect();
        for call in &calls {
            self.given.insert(call.token, call.id);
            self.taken.insert(call.id, self.time);
        }
        let Orders { cancelled, stuck, unsure } = orders;
        self.there.push_back((Wishes { cancelled, stuck, calls }, unsure));
        _ = self.host.end_turn();
    }

    fn hear(&mut self) {
        let Some((ended, begun)) = self.back.pop_front() else { return };
        begun.into_iter().for_each(|(token, begun)| self.host.answer(token, begun));
        for (token, ended) in ended {
            assert!(self.given.remove(&token).is_some(), "a call is answered once");
            let Ended::Whole(outcome) = ended else { panic!("no micro-batch was sent") };
            self.host.end(token, outcome);
        }
        _ = self.host.end_turn();
    }

    fn die(&mut self) {
        self.there.clear();
        self.back.clear();
        self.calls.clear();
        self.worker = worker();
        for (token, _) in std::mem::take(&mut self.given) {
            self.host.end(token, Outcome::Error("died".into()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is on its way when: R1, R6.
    #[test]
    fn each_row_that_a_worker_process_gets_comes_out_once_and_none_times_out_before_its_time(
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let host = asked_within(HOUR);
        let (worker, time) = (worker(), now());
        let (given, begun, taken) = (HashMap::new(), HashMap::new(), HashMap::new());
        let mut both =
            Both { host, given, there: VecDeque::new(), back: VecDeque::new(), worker, calls: Vec::new(), time, sent: 0, begun, taken };
        let mut out = HashMap::new();
        let drain = |both: &Both, out: &mut HashMap<u64, Outcome<Value>>| {
            for row in both.host.take(0).unwrap_or_default() {
                if matches!(row.outcome, Outcome::TimedOut(_)) {
                    let since_begun = both.begun.get(&row.id).map_or(0, |begun| both.time - begun);
                    let since_taken = both.time - both.taken[&row.id];
                    assert!(since_begun >= HOUR || since_taken >= 2 * HOUR, "row {}: {since_begun} {since_taken}", row.id);
                }
                assert!(out.insert(row.id, row.outcome).is_none(), "row {} comes out twice", row.id);
            }
        };
        for step in &steps {
            both.step(step);
            drain(&both, &mut out);
        }
        both.host.stop_soon(Stop::Cancel);
        both.die();
        drain(&both, &mut out);
        prop_assert_eq!(out.len() as u64, both.sent);
        prop_assert!(both.host.counts().running == 0);
    }
}
