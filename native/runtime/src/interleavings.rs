//! The real runtime under loom: every order in which two or three threads can take its locks and read its flags, up to a
//! number of preemptions (`make loom`). A lost wake-up is a deadlock, which loom reports with the order that led to it.
//!
//! Real: the inbox, the machine, turns, rows that are taken ahead or in stretches, outboxes, calls in a worker process, sleep and wake-ups, armed
//! functions, stop, poison. Not real: the executor, here a thread that ends each attempt as soon as it begins; time, which
//! stands still. Not covered: memory orders weaker than loom
//! models; handles, retired arrays, the timer's thread.

use crate::abi;
use crate::arrow::Layout;
use crate::machine::{Outcome, Stop, Stuck, Token};
use crate::runtime::remote::Wishes;
use crate::runtime::{samples, After, Ahead, Drained, Executor, Orders, Put, Runtime, Seat, Turn};
use crate::sync::{AtomicBool, Condvar, Mutex, Ordering};
use crate::timer::Ticking;
use crate::value::Value;
use loom::thread::{self, JoinHandle};
use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

const FOREVER: Duration = Duration::MAX;

/// Tries a model with at most `preemptions` places where a thread is interrupted although it could go on.
fn every_order(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// Remembers that it was rung.
struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    fn new() -> Arc<Bell> {
        Arc::new(Bell { rung: Mutex::new(false), changed: Condvar::new() })
    }

    fn ring(&self) {
        *self.rung.lock().unwrap() = true;
        self.changed.notify_all();
    }

    fn wait(&self) {
        let mut rung = self.rung.lock().unwrap();
        while !*rung {
            rung = self.changed.wait(rung).unwrap();
        }
        *rung = false;
    }
}

struct BellExecutor(Arc<Bell>);

impl Executor for BellExecutor {
    fn wake(&self) {
        self.0.ring();
    }
}

/// A runtime that holds at most `max_rows`, one attempt at a time.
fn runtime(max_rows: u64) -> Arc<Runtime> {
    samples::runtime(Layout::Fixed(8), max_rows)
}

/// Starts an executor, which runs until the runtime is settled or poisoned.
fn executor(runtime: &Arc<Runtime>) -> JoinHandle<()> {
    let bell = Bell::new();
    let seat = Seat::take(runtime);
    seat.serve(Box::new(BellExecutor(Arc::clone(&bell))));
    thread::spawn(move || {
        let mut orders = Orders::default();
        loop {
            match seat.turn(&mut orders, &mut AtOnce(&seat)) {
                After::Settled => return seat.closed(Ok(())),
                After::Asleep => bell.wait(),
                After::Again => {}
            }
        }
    })
}

/// As `executor`, one that takes rows ahead.
fn executor_ahead(runtime: &Arc<Runtime>) -> JoinHandle<()> {
    let bell = Bell::new();
    let seat = Seat::take(runtime);
    seat.serve(Box::new(BellExecutor(Arc::clone(&bell))));
    let mut ahead = Ahead::new(seat);
    thread::spawn(move || loop {
        ahead.begin_turn(&mut Orders::default());
        let mut attempt = ahead.next_attempt();
        while let Some(begun) = attempt {
            attempt = ahead.end_and_next(begun.token, Outcome::Value(Value::Fixed(begun.id)));
        }
        match ahead.end_turn() {
            After::Settled => return ahead.closed(Ok(())),
            After::Asleep => bell.wait(),
            After::Again => {}
        }
    })
}

/// As `executor`, one whose rows run in stretches. The call of each second row suspends, if `suspends`.
fn executor_in_stretches(runtime: &Arc<Runtime>, suspends: bool) -> JoinHandle<()> {
    let bell = Bell::new();
    let seat = Seat::take(runtime);
    seat.serve(Box::new(BellExecutor(Arc::clone(&bell))));
    let mut ahead = Ahead::new(seat);
    thread::spawn(move || loop {
        ahead.begin_turn(&mut Orders::default());
        work_in_stretches(&mut ahead, suspends);
        match ahead.end_turn() {
            After::Settled => return ahead.closed(Ok(())),
            After::Asleep => bell.wait(),
            After::Again => {}
        }
    })
}

fn work_in_stretches(ahead: &mut Ahead, suspends: bool) {
    loop {
        let mut suspended = None;
        if let Ok(mut stretch) = ahead.begin_stretch(0, 2) {
            while let Some(row) = stretch.row() {
                if suspends && row % 2 == 1 {
                    suspended = ahead.end_stretch(&stretch, true);
                    break;
                }
                ahead.end_in_stretch(&mut stretch, Outcome::Value(Value::Fixed(1)));
            }
            if suspended.is_none() {
                ahead.end_stretch(&stretch, false);
            }
        } else {
            suspended = ahead.next_attempt().map(|attempt| attempt.token);
            if suspended.is_none() {
                return;
            }
        }
        if let Some(token) = suspended {
            ahead.end(token, Outcome::Value(Value::Fixed(1)));
            ahead.ended_at_once();
        }
    }
}

/// Ends each attempt as soon as it begins.
struct AtOnce<'s>(&'s Seat);

impl Turn for AtOnce<'_> {
    fn cancel(&mut self, _: Token) {}

    fn stuck(&mut self, _: &Stuck) {}

    fn work(&mut self) {
        let mut attempt = self.0.next();
        while let Some(begun) = attempt {
            attempt = self.0.end_and_next(begun.token, Outcome::Value(Value::Fixed(begun.id)));
        }
    }
}

/// One row. True: it was accepted.
fn send(runtime: &Runtime, id: u64) -> bool {
    let put = runtime.put(id, samples::batch());
    if put.as_ref().is_ok_and(|put| *put == Put::Deliver) {
        runtime.deliver();
    }
    put.is_ok()
}

/// The number of rows that were ready. None: there will be no more.
fn drain(runtime: &Runtime) -> Option<u64> {
    match runtime.drain(0).unwrap() {
        Drained::Rows(mut results) => {
            let rows = results.length as u64;
            // SAFETY: the results are ours, and are released once.
            unsafe { results.release.unwrap()(&mut results) };
            Some(rows)
        }
        Drained::Nothing => Some(0),
        Drained::End => None,
    }
}

fn drain_to_the_end(runtime: &Runtime) -> u64 {
    let mut rows = 0;
    while let Some(more) = drain(runtime) {
        rows += more;
        runtime.wait(abi::RESULTS, FOREVER);
    }
    rows
}

#[test]
fn r1_a_row_that_is_sent_while_the_executor_falls_asleep_is_run() {
    every_order(4, || {
        let runtime = runtime(10);
        let executor = executor(&runtime);
        for id in 0..2 {
            assert!(send(&runtime, id));
            runtime.wait(abi::RESULTS, FOREVER);
            assert_eq!(drain(&runtime), Some(1));
        }
        runtime.stop_soon(Stop::Drain);
        executor.join().unwrap();
        let statistics = runtime.statistics();
        assert_eq!((statistics.accepted, statistics.drained, statistics.queued), (2, 2, 0));
    });
}

#[test]
fn r1_a_row_whose_outcome_is_left_in_an_outbox_comes_out() {
    every_order(2, || {
        let runtime = runtime(10);
        let executors = [executor_ahead(&runtime), executor_ahead(&runtime)];
        assert!(send(&runtime, 0));
        runtime.wait(abi::RESULTS, FOREVER);
        assert_eq!(drain(&runtime), Some(1));
        runtime.stop_soon(Stop::Drain);
        for executor in executors {
            executor.join().unwrap();
        }
        assert_eq!(drain(&runtime), None);
    });
}

#[test]
fn r1_an_outcome_that_is_left_while_a_host_drains_comes_out_once() {
    every_order(3, || {
        let runtime = runtime(10);
        let executor = executor_ahead(&runtime);
        assert!(send(&runtime, 0));
        assert!(send(&runtime, 1));
        let early = drain(&runtime).unwrap(); // whether or not one is left by now
        runtime.stop_soon(Stop::Drain);
        assert_eq!(early + drain_to_the_end(&runtime), 2);
        executor.join().unwrap();
    });
}

#[test]
fn r1_an_outcome_that_is_left_in_a_stretch_while_a_host_drains_comes_out_once() {
    for suspends in [false, true] {
        every_order(3, move || {
            let runtime = samples::runtime_of(Layout::Fixed(8), 10, 2);
            assert!(runtime.put(0, samples::batch_of(2)).is_ok());
            runtime.deliver();
            let executor = executor_in_stretches(&runtime, suspends);
            let early = drain(&runtime).unwrap(); // whether or not one is left by now
            runtime.stop_soon(Stop::Drain);
            assert_eq!(early + drain_to_the_end(&runtime), 2);
            executor.join().unwrap();
        });
    }
}

#[test]
fn r6_rows_that_are_cancelled_while_they_run_in_a_stretch_come_out_once() {
    for suspends in [false, true] {
        every_order(3, move || {
            let runtime = samples::runtime_of(Layout::Fixed(8), 10, 2);
            assert!(runtime.put(0, samples::batch_of(2)).is_ok());
            runtime.deliver();
            let executor = executor_in_stretches(&runtime, suspends);
            runtime.cancel(0, 1);
            runtime.stop_soon(Stop::Drain);
            assert_eq!(drain_to_the_end(&runtime), 2);
            executor.join().unwrap();
            let counts = runtime.counts();
            assert!(counts.cancelled <= 1 && counts.cancelled + counts.values == 2);
        });
    }
}

#[test]
fn r13_a_stop_that_cancels_ends_all_rows_of_a_stretch() {
    every_order(3, || {
        let runtime = samples::runtime_of(Layout::Fixed(8), 10, 2);
        assert!(runtime.put(0, samples::batch_of(3)).is_ok());
        runtime.deliver();
        let executor = executor_in_stretches(&runtime, false);
        assert!(runtime.stop(Stop::Cancel, FOREVER).is_ok());
        assert_eq!(drain_to_the_end(&runtime), 3);
        executor.join().unwrap();
    });
}

/// A host drains at any moment while an executor that takes rows ahead does its `work`, which ends three of four rows: the last
/// computes, so the turn goes on. The timer tells the host of the three.
fn tells_of_all_but_one(work: fn(&mut Ahead)) {
    every_order(3, move || {
        let runtime = samples::runtime_of(Layout::Fixed(8), 4, 4);
        let seat = Seat::take(&runtime);
        seat.serve(Box::new(BellExecutor(Bell::new())));
        let mut ahead = Ahead::new(seat);
        assert!(runtime.put(0, samples::batch_of(4)).is_ok());
        runtime.deliver();
        let executor = thread::spawn(move || {
            ahead.begin_turn(&mut Orders::default());
            work(&mut ahead);
            ahead
        });
        let mut drained = drain(&runtime).unwrap();
        let _in_a_call = executor.join().unwrap();
        runtime.tick(u64::MAX);
        while drained < 3 {
            runtime.wait(abi::RESULTS, FOREVER);
            drained += drain(&runtime).unwrap();
        }
    });
}

#[test]
fn r14_a_host_that_drains_between_rows_taken_together_is_told_of_the_next() {
    tells_of_all_but_one(|ahead| {
        let mut attempt = ahead.next_attempt();
        for _ in 0..3 {
            attempt = attempt.and_then(|begun| ahead.end_and_next(begun.token, Outcome::Value(Value::Fixed(1))));
        }
        assert!(attempt.is_some());
    });
}

#[test]
fn r14_a_host_that_drains_between_rows_of_a_stretch_is_told_of_the_next() {
    tells_of_all_but_one(|ahead| {
        let mut stretch = ahead.begin_stretch(0, 4).unwrap();
        (0..3).for_each(|_| ahead.end_in_stretch(&mut stretch, Outcome::Value(Value::Fixed(1))));
        assert!(stretch.row().is_some());
    });
}

#[test]
fn r14_a_host_is_told_although_all_rows_run_and_one_computes() {
    tells_of_all_but_one(|ahead| {
        let begun: Vec<_> = std::iter::from_fn(|| ahead.next_attempt()).collect();
        assert_eq!(ahead.end_turn(), After::Asleep, "they wait for something, and go on outside turns");
        begun[..3].iter().for_each(|begun| ahead.end(begun.token, Outcome::Value(Value::Fixed(1))));
    });
}

#[test]
fn r1_a_row_that_is_sent_while_the_executor_is_full_is_run() {
    every_order(3, || {
        let runtime = runtime(10);
        let bell = Bell::new();
        let seat = Seat::take(&runtime);
        seat.serve(Box::new(BellExecutor(Arc::clone(&bell))));
        // Takes one row, is full, and has room again when it has ended.
        let executor = thread::spawn(move || loop {
            if let Some(begun) = seat.next() {
                seat.set_full(true);
                assert_eq!(seat.end_turn(), After::Asleep);
                seat.end(begun.token, Outcome::Value(Value::Fixed(begun.id)));
                seat.set_full(false);
            }
            match seat.end_turn() {
                After::Settled => return seat.closed(Ok(())),
                After::Asleep => bell.wait(),
                After::Again => {}
            }
        });
        assert!(send(&runtime, 0));
        assert!(send(&runtime, 1));
        runtime.wait(abi::RESULTS, FOREVER);
        let mut rows = drain(&runtime).unwrap();
        while rows < 2 {
            runtime.wait(abi::RESULTS, FOREVER);
            rows += drain(&runtime).unwrap();
        }
        runtime.stop_soon(Stop::Drain);
        executor.join().unwrap();
    });
}

/// As the host's thread for a worker process (`isolation::process::executor`), which is full while the worker has a call. An order
/// that comes during its turn leaves it awake.
#[test]
fn r6_a_cancellation_reaches_a_worker_process_whose_executor_is_full() {
    every_order(3, || {
        let runtime = runtime(10);
        let bell = Bell::new();
        let seat = Seat::take(&runtime);
        seat.serve(Box::new(BellExecutor(Arc::clone(&bell))));
        let executor = thread::spawn(move || {
            // Which call the worker has. It ends only if the worker is told to cancel it.
            let (mut orders, mut call) = (Orders::default(), None);
            loop {
                seat.begin_turn(&mut orders);
                if let Some(token) = orders.cancelled.drain(..).find(|token| call == Some(*token)) {
                    seat.end(token, Outcome::Cancelled);
                    call = None;
                }
                call = call.or_else(|| seat.next().map(|begun| begun.token));
                seat.set_full(call.is_some());
                match seat.end_turn() {
                    After::Settled => return seat.closed(Ok(())),
                    After::Asleep => bell.wait(),
                    After::Again => {}
                }
            }
        });
        assert!(send(&runtime, 0));
        runtime.cancel(0, 1);
        runtime.wait(abi::RESULTS, FOREVER);
        assert_eq!(drain(&runtime), Some(1));
        runtime.stop_soon(Stop::Drain);
        executor.join().unwrap();
    });
}

/// The lane's thread in a worker process is the host of its runtime there.
#[test]
fn r1_a_call_that_comes_while_the_executor_of_a_worker_falls_asleep_is_answered() {
    every_order(3, || {
        let host = samples::runtime_of(Layout::Fixed(8), 10, 2);
        let seat = Seat::take(&host);
        let call = |id| {
            assert!(send(&host, id));
            seat.next().unwrap()
        };
        let calls = [call(0), call(1)];
        let runtime = runtime(1);
        runtime.become_remote();
        let executor = executor_ahead(&runtime);
        let bell = Bell::new();
        for call in calls {
            let token = call.token;
            runtime.obey(Wishes { calls: vec![call], ..Wishes::default() });
            let ended = loop {
                let ended = runtime.take_ended();
                if !ended.is_empty() {
                    break ended;
                }
                if !runtime.arm(abi::RESULTS, ring, Arc::as_ptr(&bell).cast_mut().cast()) {
                    bell.wait();
                }
            };
            assert_eq!(ended.iter().map(|(token, _)| *token).collect::<Vec<_>>(), [token]);
        }
        runtime.disarm();
        runtime.stop_soon(Stop::Cancel);
        executor.join().unwrap();
    });
}

#[test]
fn r1_a_row_that_is_sent_while_two_executors_fall_asleep_is_run() {
    every_order(2, || {
        let runtime = runtime(10);
        let executors = [executor(&runtime), executor(&runtime)];
        assert!(send(&runtime, 0));
        runtime.wait(abi::RESULTS, FOREVER);
        assert_eq!(drain(&runtime), Some(1));
        runtime.stop_soon(Stop::Drain);
        executors.into_iter().for_each(|executor| executor.join().unwrap());
    });
}

#[test]
fn r4_a_sender_that_waits_for_room_gets_it() {
    every_order(2, || {
        let runtime = runtime(1);
        let executor = executor(&runtime);
        let sender = {
            let runtime = Arc::clone(&runtime);
            thread::spawn(move || {
                for id in 0..2 {
                    while !send(&runtime, id) {
                        runtime.wait(abi::ROOM, FOREVER);
                    }
                }
            })
        };
        let mut rows = 0;
        while rows < 2 {
            runtime.wait(abi::RESULTS, FOREVER);
            let more = drain(&runtime).unwrap();
            assert!(more <= 1, "more rows than the budget");
            rows += more;
        }
        sender.join().unwrap();
        runtime.stop_soon(Stop::Drain);
        executor.join().unwrap();
    });
}

#[test]
fn r5_two_senders_lose_no_row() {
    every_order(2, || {
        let runtime = runtime(10);
        let executor = executor(&runtime);
        let other = {
            let runtime = Arc::clone(&runtime);
            thread::spawn(move || send(&runtime, 7))
        };
        // It comes second, and its id rises; or it comes first, and the other is refused.
        assert!(send(&runtime, 8));
        let accepted = 1 + u64::from(other.join().unwrap());
        runtime.stop_soon(Stop::Drain);
        assert_eq!(drain_to_the_end(&runtime), accepted);
        executor.join().unwrap();
    });
}

#[test]
fn r13_a_row_that_was_accepted_before_a_stop_comes_out() {
    for mode in [Stop::Drain, Stop::Cancel] {
        every_order(3, move || {
            let runtime = runtime(10);
            let executor = executor(&runtime);
            let sender = {
                let runtime = Arc::clone(&runtime);
                thread::spawn(move || u64::from(send(&runtime, 0)) + u64::from(send(&runtime, 1)))
            };
            assert!(runtime.stop(mode, FOREVER).is_ok());
            let drained = drain_to_the_end(&runtime);
            assert_eq!(drained, sender.join().unwrap());
            assert!(!send(&runtime, 2));
            executor.join().unwrap();
        });
    }
}

#[test]
fn r17_a_row_that_was_accepted_before_a_poisoning_comes_out() {
    every_order(3, || {
        let runtime = runtime(10);
        let sender = {
            let runtime = Arc::clone(&runtime);
            thread::spawn(move || u64::from(send(&runtime, 0)) + u64::from(send(&runtime, 1)))
        };
        runtime.poison("a mistake");
        let accepted = sender.join().unwrap();
        assert_eq!(drain_to_the_end(&runtime), accepted);
    });
}

unsafe extern "C" fn ring(bell: *mut c_void) {
    // SAFETY: the tests pass a bell that outlives the request.
    unsafe { (*bell.cast::<Bell>()).ring() };
}

#[test]
fn r14_an_armed_function_is_called_when_results_are_there() {
    every_order(3, || {
        let runtime = runtime(10);
        let executor = executor(&runtime);
        assert!(send(&runtime, 0));
        let bell = Bell::new();
        if !runtime.arm(abi::RESULTS, ring, Arc::as_ptr(&bell).cast_mut().cast()) {
            bell.wait();
        }
        assert_eq!(drain(&runtime), Some(1));
        runtime.stop_soon(Stop::Drain);
        executor.join().unwrap();
    });
}

/// Notes whether an armed function runs after it was disarmed.
#[derive(Default)]
struct Request {
    disarmed: AtomicBool,
    ran_late: AtomicBool,
}

unsafe extern "C" fn look(request: *mut c_void) {
    // SAFETY: the test passes a request that lives as long as the runtime.
    let request = unsafe { &*request.cast::<Request>() };
    request.ran_late.store(request.disarmed.load(Ordering::SeqCst), Ordering::SeqCst);
}

#[test]
fn r14_a_disarmed_function_does_not_run() {
    every_order(3, || {
        let runtime = runtime(10);
        let executor = executor(&runtime);
        let request = Request::default();
        assert!(send(&runtime, 0));
        runtime.arm(abi::RESULTS, look, (&raw const request).cast_mut().cast());
        runtime.disarm();
        request.disarmed.store(true, Ordering::SeqCst);
        runtime.stop_soon(Stop::Drain);
        executor.join().unwrap();
        assert!(!request.ran_late.load(Ordering::SeqCst));
    });
}
