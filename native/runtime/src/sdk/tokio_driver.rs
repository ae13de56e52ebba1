//! The executor of async functions: one tokio runtime per library, shared by all handles; functions with a Context have
//! one for each start, so that what `init` has spawned ends with it.
//!
//! Each handle has a *dispatcher* task and any number of *slots*. A slot is a task that runs attempts one after another,
//! so a row costs no task of its own. The dispatcher opens slots while there are attempts to start, at most twice as many
//! from turn to turn, for a function that hardly waits needs few; it tells slots to give
//! up cancelled attempts (timeouts are the machine's, R6), and tells the host of results, once a turn. A slot that finds
//! nothing to do ends; whatever ends a slot, its attempt is reported.
//!
//! Lost wake-ups: the dispatcher sleeps only in `wake.notified()`, which remembers one notification. It is notified by
//! the runtime ([`Executor::wake`]), by the first result after it told the host last, and by each slot that ends.

use super::arguments::Arguments;
use super::context::{self, UdfContext};
use super::types::Return;
use super::{panics, Function};
use crate::abi;
use crate::arrow::Batch;
use crate::call_info::CallInfo;
use crate::failure::Failure;
use crate::machine::{Outcome, Token};
use crate::runtime::{Attempt, Executor, Runtime};
use crate::timer::without_signals;
use crate::value;
use std::collections::HashSet;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use tokio::sync::Notify;

/// A second thread brings no more rows a second and costs as much again: the two would pass the machine to and fro. A row
/// that computes for long belongs in tokio's `spawn_blocking` or `block_in_place`.
const THREADS: usize = 1;
/// Rows that a slot runs without leaving its thread, if none of them awaits: others want to run too, and the dispatcher to
/// tell the host. Some fifty microseconds of rows that return at once.
const ROWS_IN_A_ROW: u32 = 256;

/// Makes `runtime` work: `call` is the author's function.
pub fn start<A, R, F, C>(function: &'static Function, runtime: &Arc<Runtime>, call: C) -> Result<(), Failure>
where
    A: for<'a> Arguments<'a> + Send + 'static,
    R: Return + 'static,
    F: Future<Output = R> + Send + 'static,
    C: Fn(A) -> F + Copy + Send + Sync + 'static,
{
    let wake = Arc::new(Notify::new());
    let tokio = tokio_runtime()?;
    runtime.serve(Box::new(Wake(Arc::clone(&wake))));
    tokio.spawn(dispatch(function, Arc::clone(runtime), wake, call, async { Ok(()) }));
    Ok(())
}

/// As `start`, for a function whose calls share a Context, which `new` makes.
pub fn start_with<X, A, R, F, C>(function: &'static Function, runtime: &Arc<Runtime>, new: fn() -> X, call: C) -> Result<(), Failure>
where
    X: UdfContext,
    A: for<'a> Arguments<'a> + Send + 'static,
    R: Return + 'static,
    F: Future<Output = R> + Send + 'static,
    C: Fn(Arc<X>, A) -> F + Copy + Send + Sync + 'static,
{
    let tokio = new_tokio()?;
    let context = match context::open(&runtime.signature().name, tokio.handle(), new, context::INIT) {
        Ok(context) => context,
        Err(failure) => {
            tokio.shutdown_background(); // an `init` that blocks cannot be waited for
            return Err(failure);
        }
    };
    let wake = Arc::new(Notify::new());
    runtime.serve(Box::new(Wake(Arc::clone(&wake))));
    let handle = tokio.handle().clone();
    let shared = Arc::clone(&context);
    let stopped = Arc::clone(runtime);
    let end = async move {
        let closed = if stopped.is_given_up() {
            eprintln!("{}: its Context is not closed, for calls were stuck when it was stopped", stopped.signature().name);
            Ok(())
        } else {
            context::close(context).await
        };
        tokio.shutdown_background(); // with all that `init` has left running
        closed
    };
    let call = move |arguments: A| call(Arc::clone(&shared), arguments);
    handle.spawn(dispatch(function, Arc::clone(runtime), wake, call, end));
    Ok(())
}

/// The runtime of this library, made at the first start.
fn tokio_runtime() -> Result<&'static tokio::runtime::Runtime, Failure> {
    static MADE: Mutex<Option<(u32, &'static tokio::runtime::Runtime)>> = Mutex::new(None);
    let mut made = lock(&MADE);
    let process = std::process::id();
    match *made {
        Some((owner, tokio)) if owner == process => return Ok(tokio),
        Some(_) => {
            return Err(Failure::state(
                "async functions of this plugin were started before a fork, and threads do not survive one: start them in the parent, or in a new process",
            ));
        }
        None => {}
    }
    // A plugin is never unloaded, so its runtime is never shut down.
    let tokio: &'static _ = Box::leak(Box::new(new_tokio()?));
    *made = Some((process, tokio));
    Ok(tokio)
}

fn new_tokio() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("udf-tokio")
        .on_thread_start(|| without_signals(|| ()))
        .enable_all()
        .build()
        .map_err(|error| Failure::new(abi::ENVIRONMENT, format!("tokio does not start: {error}")))
}

struct Wake(Arc<Notify>);

impl Executor for Wake {
    fn wake(&self) {
        self.0.notify_one();
    }
}

/// What the slots of a handle share.
struct Shared {
    runtime: Arc<Runtime>,
    wake: Arc<Notify>,
    /// Results that the host has not been told of.
    news: AtomicBool,
    /// How many have not ended.
    slots: AtomicUsize,
}

/// Runs attempts until the runtime is stopped and none is left, then `end`.
async fn dispatch<A, R, F, C>(
    function: &'static Function,
    runtime: Arc<Runtime>,
    wake: Arc<Notify>,
    call: C,
    end: impl Future<Output = Result<(), String>>,
) where
    A: for<'a> Arguments<'a> + Send + 'static,
    R: Return + 'static,
    F: Future<Output = R> + Send + 'static,
    C: Fn(A) -> F + Clone + Send + Sync + 'static,
{
    let shared = Arc::new(Shared { runtime: Arc::clone(&runtime), wake, news: AtomicBool::new(false), slots: AtomicUsize::new(0) });
    let mut slots: Vec<Arc<Slot>> = Vec::new();
    let (mut cancelled, mut stuck) = (Vec::new(), Vec::new());
    loop {
        runtime.take_cancellations(&mut cancelled);
        if !cancelled.is_empty() {
            let cancelled: HashSet<Token> = cancelled.drain(..).collect();
            slots.iter().for_each(|slot| slot.cancel(&cancelled));
        }
        runtime.take_stuck(&mut stuck);
        for stuck in stuck.drain(..) {
            eprintln!("{}, row {}: a call ignores its cancellation", runtime.signature().name, stuck.id);
        }
        let mut may_open = shared.slots.load(Ordering::Relaxed).max(1);
        while may_open > 0 {
            let Some(attempt) = runtime.next() else { break };
            may_open -= 1;
            if slots.len() == slots.capacity() {
                slots.retain(|slot| !lock(&slot.state).ended);
            }
            let slot = Arc::new(Slot::new(attempt.token));
            slots.push(Arc::clone(&slot));
            shared.slots.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(serve(function, Arc::clone(&shared), slot, attempt, call.clone()));
        }
        shared.news.store(false, Ordering::SeqCst);
        runtime.notify();
        if runtime.is_settled() {
            break;
        }
        // What came up since the top of the loop has not woken us, for we were not asleep.
        if runtime.rest() {
            shared.wake.notified().await;
        } else {
            tokio::task::yield_now().await; // the slots go first
        }
    }
    // Each slot has ended, or ends without another call; what `call` holds is not to outlive `end`.
    drop(call);
    runtime.closed(end.await);
}

/// What the dispatcher and a slot know of each other.
struct Slot {
    /// The attempt that runs now is to be given up. Changed under the lock of `state`, read without it.
    cancelled: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The attempt that runs now.
    attempt: Option<Token>,
    waker: Option<Waker>,
    ended: bool,
}

impl Slot {
    fn new(attempt: Token) -> Slot {
        Slot { cancelled: AtomicBool::new(false), state: Mutex::new(State { attempt: Some(attempt), ..State::default() }) }
    }

    /// Has the slot give up its attempt, if that is among `cancelled`.
    fn cancel(&self, cancelled: &HashSet<Token>) {
        let mut state = lock(&self.state);
        if state.attempt.is_some_and(|attempt| cancelled.contains(&attempt)) {
            self.cancelled.store(true, Ordering::Release);
            let waker = state.waker.take();
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Ends the slot's attempt and begins the next. A cancellation of the next one may come as soon as the machine has
    /// started it, so the slot stays locked until it has the name of it.
    fn change(&self, end_and_next: impl FnOnce() -> Option<Attempt>) -> Option<Attempt> {
        let mut state = lock(&self.state);
        let next = end_and_next();
        state.attempt = next.as_ref().map(|next| next.token);
        self.cancelled.store(false, Ordering::Release);
        next
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Whether to give up; if not, `waker` is woken when that changes.
    fn is_cancelled_or_wakes(&self, waker: &Waker) -> bool {
        let mut state = lock(&self.state);
        let cancelled = self.is_cancelled();
        if !cancelled {
            match &mut state.waker {
                Some(known) => known.clone_from(waker),
                none => *none = Some(waker.clone()),
            }
        }
        cancelled
    }
}

/// Reports the attempt at hand when its slot ends in a way that nobody foresaw: a future that panics as it is dropped.
struct Ending {
    shared: Arc<Shared>,
    slot: Arc<Slot>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let attempt = {
            let mut state = lock(&self.slot.state);
            state.ended = true;
            state.attempt.take()
        };
        if let Some(token) = attempt {
            self.shared.runtime.end(token, Outcome::Error("panicked when its future was dropped".into()));
        }
        self.shared.slots.fetch_sub(1, Ordering::Relaxed);
        self.shared.wake.notify_one();
    }
}

/// A slot: runs attempts until there is none.
async fn serve<A, R, F, C>(function: &'static Function, shared: Arc<Shared>, slot: Arc<Slot>, mut attempt: Attempt, call: C)
where
    A: for<'a> Arguments<'a> + Send + 'static,
    R: Return + 'static,
    F: Future<Output = R> + Send + 'static,
    C: Fn(A) -> F + Send + Sync + 'static,
{
    let ending = Ending { shared, slot };
    let Ending { shared, slot } = &ending;
    let mut in_a_row = 0;
    loop {
        let token = attempt.token;
        let info = CallInfo::new(&shared.runtime, &attempt);
        let arguments = arguments::<A>(&attempt.batch, attempt.row);
        // The function owns its arguments: the batch lives no longer than its rows need it.
        drop(attempt);
        let outcome = match arguments {
            Ok(Some(arguments)) => run(function, info, slot, &call, arguments, &mut in_a_row).await,
            Ok(None) => Outcome::Value(value::Value::Null),
            Err((number, text)) => Outcome::Error(function.unreadable(info.row_id(), number, &text).into()),
        };
        let next = slot.change(|| shared.runtime.end_and_next(token, outcome));
        // Where the dispatcher has taken the flag back, it looks at the machine after that, and so after this end.
        if !shared.news.load(Ordering::SeqCst) && !shared.news.swap(true, Ordering::SeqCst) {
            shared.wake.notify_one();
        }
        let Some(next) = next else { return };
        attempt = next;
        in_a_row += 1;
        if in_a_row == ROWS_IN_A_ROW {
            in_a_row = 0;
            tokio::task::yield_now().await;
        }
    }
}

/// The arguments of a row; None where a null keeps the function from being called (F3).
fn arguments<A: for<'a> Arguments<'a>>(batch: &Batch, row: usize) -> Result<Option<A>, (usize, String)> {
    let columns = batch.columns();
    if A::callable(columns, row, row + 1) == 0 {
        return Ok(None);
    }
    // SAFETY: the machine numbers the rows of this batch, `callable` says that this one may be read, and the batch was
    // checked against the signature that `function` describes.
    unsafe { A::read(A::views(columns), row) }.map(Some)
}

/// One attempt, to its end or its cancellation. A cancelled future is dropped before the attempt is reported.
async fn run<A, R, F, C>(
    function: &Function,
    info: CallInfo,
    slot: &Slot,
    call: &C,
    arguments: A,
    in_a_row: &mut u32,
) -> Outcome<value::Value>
where
    R: Return,
    F: Future<Output = R>,
    C: Fn(A) -> F,
{
    let mut future = pin!(async move { call(arguments).await });
    std::future::poll_fn(|context| {
        if slot.is_cancelled() {
            return Poll::Ready(Outcome::Cancelled);
        }
        let poll = || future.as_mut().poll(context).map(|returned| function.outcome(info.row_id(), returned));
        match info.within(|| panics::catch(poll)) {
            Ok(Poll::Pending) => {
                *in_a_row = 0;
                // Only a future that waits needs to be told.
                if slot.is_cancelled_or_wakes(context.waker()) {
                    return Poll::Ready(Outcome::Cancelled);
                }
                Poll::Pending
            }
            Ok(ready) => ready,
            Err(text) => Poll::Ready(Outcome::Error(text.into())),
        }
    })
    .await
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing of the author's runs under these locks, so what a panic left behind is whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
