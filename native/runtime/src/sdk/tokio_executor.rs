//! The executor of async functions: one tokio runtime per library, shared by all handles; functions with a Context have
//! one for each start, so that what `init` has spawned ends with it.
//!
//! Each handle has one task, the *dispatcher*, and in it any number of *slots*. A slot is a future that runs attempts one
//! after another, so a row costs no task of its own, and little surrounds the author's future. The dispatcher opens slots
//! while there are attempts to start, at most doubling them from turn to turn, because a function that hardly waits needs
//! few. It makes slots give up cancelled attempts (the machine decides on timeouts, R6), and tells the host of results once
//! a turn. A slot that finds nothing to do ends. Rows that end at once need no attempts: a slot calls stretches of them.
//!
//! All slots are one task, so nothing of a handle runs while one of its functions computes. Such a function belongs in
//! `#[udf(blocking)]` or tokio's `spawn_blocking`.
//!
//! Lost wake-ups: the dispatcher sleeps only where it waits for `woken.notified()`, which remembers one notification, or for
//! a slot; and not if slots have left results since it last told the host.

use super::arguments::Arguments;
use super::context::{self, UdfContext};
use super::function::Function;
use super::types::Return;
use crate::abi;
use crate::arrow::Batch;
use crate::call_info::{CallInfo, KeptInfo};
use crate::failure::Failure;
use crate::forks;
use crate::limits::{CLOSE_TIME, INIT_TIME};
use crate::machine::{Outcome, Token};
use crate::panics::{self, catch_future};
use crate::runtime::{After, Ahead, Attempt, Executor, Next, Orders, Runtime, Seat, Stretch, TimeSlice};
use crate::sync::Unpoisoned;
use crate::threads;
use crate::value::Value;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::cell::UnsafeCell;
use std::collections::HashSet;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::{pin, Pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use tokio::sync::Notify;

/// A second thread brings no more rows a second and costs as much again: the two would pass the machine to and fro.
const THREADS: usize = 1;
/// How long a turn may last before other handles get theirs, in nanoseconds, if rows end without having waited. A turn costs
/// the dispatcher, and the host that it wakes, some ten microseconds.
const TURN: u64 = 250_000;

/// Makes tokio the executor of `runtime`; `call` is the author's function.
pub fn start<A, R, F, C>(function: &'static Function, runtime: &Arc<Runtime>, call: C) -> Result<(), Failure>
where
    A: for<'a> Arguments<'a> + Send + 'static,
    R: Return + 'static,
    F: Future<Output = R> + Send + 'static,
    C: Fn(A) -> F + Send + Sync + 'static,
{
    let woken = Arc::new(Notify::new());
    let tokio = tokio_runtime()?;
    let seat = Seat::take(runtime);
    seat.serve(Box::new(TokioExecutor(Arc::clone(&woken))));
    tokio.spawn(dispatch(seat.clone(), run(Shared::new(function, seat, call), woken), async { Ok(()) }));
    Ok(())
}

/// As `start`, for a function whose calls share a Context, made by `new`.
pub fn start_with<X, A, R, F, C>(function: &'static Function, runtime: &Arc<Runtime>, new: fn() -> X, call: C) -> Result<(), Failure>
where
    X: UdfContext,
    A: for<'a> Arguments<'a> + Send + 'static,
    R: Return + 'static,
    F: Future<Output = R> + Send + 'static,
    C: Fn(Arc<X>, A) -> F + Copy + Send + Sync + 'static,
{
    let tokio = new_tokio()?;
    let context = match context::open(&runtime.signature().name, tokio.handle(), new, INIT_TIME) {
        Ok(context) => context,
        Err(failure) => {
            tokio.shutdown_background(); // does not wait for an `init` that blocks
            return Err(failure);
        }
    };
    let woken = Arc::new(Notify::new());
    let seat = Seat::take(runtime);
    seat.serve(Box::new(TokioExecutor(Arc::clone(&woken))));
    let handle = tokio.handle().clone();
    let shared = Arc::clone(&context);
    let stopped = Arc::clone(runtime);
    let end = async move {
        let closed = if stopped.is_given_up() {
            Ok(()) // the stop has reported it
        } else {
            context::close(context, CLOSE_TIME).await
        };
        tokio.shutdown_background(); // and so all that `init` has left running
        closed
    };
    let call = move |arguments: A| call(Arc::clone(&shared), arguments);
    handle.spawn(dispatch(seat.clone(), run(Shared::new(function, seat, call), woken), end));
    Ok(())
}

/// The tokio runtime of this library, made at the first start. A start in a forked child does not come here: it is refused
/// first (`handles::check_process`).
fn tokio_runtime() -> Result<&'static tokio::runtime::Runtime, Failure> {
    static MADE: Mutex<Option<&'static tokio::runtime::Runtime>> = Mutex::new(None);
    let mut made = MADE.lock().unpoisoned();
    if let Some(tokio) = *made {
        return Ok(tokio);
    }
    // A plugin is never unloaded, so its runtime is never shut down.
    let tokio = Box::leak(Box::new(new_tokio()?));
    Ok(made.insert(tokio))
}

fn new_tokio() -> Result<tokio::runtime::Runtime, Failure> {
    let build = || {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("udf-tokio")
            .on_thread_start(threads::adopt)
            .enable_all()
            .build()
    };
    // It panics if there is no thread for it.
    let built = panics::catch(build).and_then(|built| built.map_err(|error| error.to_string()));
    built.map_err(|text| Failure::for_now(abi::ENVIRONMENT, format!("tokio does not start: {text}")))
}

/// The runtime's end of a dispatcher.
struct TokioExecutor(Arc<Notify>);

impl Executor for TokioExecutor {
    fn wake(&self) {
        self.0.notify_one();
    }
}

/// The life of a handle's task: `serving`, then `end`.
///
/// `serving` is a future of its own, so that nothing that it holds outlives it. A panic in it is the toolkit's; all its calls
/// have been dropped then.
async fn dispatch(runtime: Seat, serving: impl Future<Output = ()>, end: impl Future<Output = Result<(), String>>) {
    if let Err(text) = catch_future(serving).await {
        runtime.guard(|| runtime.poison(&format!("internal error: the dispatcher of tokio {text}")));
    }
    let closed = catch_future(end).await.unwrap_or_else(Err);
    runtime.guard(|| runtime.closed(closed));
}

/// Runs attempts until the runtime is stopped and none is left.
async fn run<A, R, F, C>(shared: Shared<A, C>, woken: Arc<Notify>)
where
    A: for<'a> Arguments<'a> + Send + 'static,
    R: Return + 'static,
    F: Future<Output = R> + Send + 'static,
    C: Fn(A) -> F + Send + Sync + 'static,
{
    let mut slots = FuturesUnordered::new();
    let mut orders = Orders::default();
    loop {
        shared.with_rows(|rows| rows.begin_turn(&mut orders));
        if !orders.cancelled.is_empty() {
            let cancelled: HashSet<Token> = orders.cancelled.drain(..).collect();
            Pin::new(&mut slots).iter_pin_mut().for_each(|slot: Pin<&mut Slot<'_, A, F, C>>| slot.cancel(&cancelled));
        }
        for stuck in orders.stuck.drain(..) {
            shared.runtime.report_stuck(stuck.id, "");
        }
        shared.slice.begin();
        let mut may_open = slots.len().max(1);
        std::future::poll_fn(|context| loop {
            while let Poll::Ready(Some(())) = slots.poll_next_unpin(context) {}
            if may_open == 0 || !shared.slice.has_time() || !shared.with_rows(|rows| rows.can_start()) {
                return Poll::Ready(());
            }
            may_open -= 1;
            slots.push(Slot::new(&shared));
        })
        .await;
        shared.news.store(false, Ordering::Relaxed);
        match shared.with_rows(Ahead::end_turn) {
            After::Settled => break,
            After::Again => tokio::task::yield_now().await, // for other handles, and tasks that calls have spawned
            After::Asleep => {
                let mut woken = pin!(woken.notified());
                std::future::poll_fn(|context| {
                    shared.with_rows(Ahead::go_on);
                    while let Poll::Ready(Some(())) = slots.poll_next_unpin(context) {}
                    if shared.news.load(Ordering::Relaxed) {
                        return Poll::Ready(());
                    }
                    woken.as_mut().poll(context)
                })
                .await;
            }
        }
    }
}

/// What the slots of a handle share. One task polls them, so one after another.
struct Shared<A, C> {
    function: &'static Function,
    runtime: Arc<Runtime>,
    rows: UnsafeCell<Ahead>,
    call: C,
    /// Rows have ended, and the host does not know yet.
    news: AtomicBool,
    slice: TimeSlice,
    arguments: PhantomData<fn(A)>,
}

// SAFETY: all but `rows` may be shared; `rows` is used by the dispatcher alone, and by its slots as it polls them.
unsafe impl<A, C: Sync> Sync for Shared<A, C> {}

impl<A, C> Shared<A, C> {
    fn new(function: &'static Function, seat: Seat, call: C) -> Self {
        let runtime = Arc::clone(seat.runtime());
        let (rows, news) = (UnsafeCell::new(Ahead::new(seat)), AtomicBool::new(false));
        Shared { function, runtime, rows, call, news, slice: TimeSlice::new(TURN), arguments: PhantomData }
    }

    /// Uses the rows of the seat. `body` runs no code of the author's, and does not come back here.
    #[inline]
    fn with_rows<T>(&self, body: impl FnOnce(&mut Ahead) -> T) -> T {
        // SAFETY: the dispatcher and its slots are one task, so nobody else comes here meanwhile, nor does `body`.
        body(unsafe { &mut *self.rows.get() })
    }
}

impl<A, R, F, C> Shared<A, C>
where
    A: for<'a> Arguments<'a>,
    R: Return,
    F: Future<Output = R>,
    C: Fn(A) -> F,
{
    /// Reports an attempt; returns the next. A slot that has waited may take one even when the time slice is over.
    fn end(&self, token: Token, outcome: Outcome<Value>, has_waited: bool) -> Option<Attempt> {
        self.news.store(true, Ordering::Relaxed);
        let takes_next = has_waited || self.slice.has_time();
        self.with_rows(|rows| {
            if !has_waited {
                rows.ended_at_once();
            }
            if takes_next {
                return rows.end_and_next(token, outcome);
            }
            rows.end(token, outcome);
            None
        })
    }

    /// Starts calls until one waits, of the attempt `next` first. None: there is none to start in this turn.
    fn go_on(&self, mut next: Option<Attempt>, mut future: Pin<&mut Option<F>>, context: &mut Context<'_>) -> Option<Waiting> {
        loop {
            while let Some(attempt) = next {
                let info = self.with_rows(|rows| rows.call_info_of(&attempt));
                match self.begin(&attempt.batch, attempt.row, &info, future.as_mut(), context) {
                    Poll::Pending => return Some(Waiting::new(attempt.token, &info, &attempt.batch)),
                    Poll::Ready(outcome) => next = self.end(attempt.token, outcome, false),
                }
            }
            if !self.slice.has_time() {
                return None;
            }
            match self.with_rows(Ahead::take_next)? {
                Next::Attempt(attempt) => next = Some(attempt),
                Next::Stretch(stretch) => {
                    let waiting = self.run_stretch(stretch, future.as_mut(), context);
                    if waiting.is_some() {
                        return waiting;
                    }
                }
            }
        }
    }

    /// Starts the calls of a stretch, until one waits or no more may start.
    fn run_stretch(&self, mut stretch: Stretch, mut future: Pin<&mut Option<F>>, context: &mut Context<'_>) -> Option<Waiting> {
        self.news.store(true, Ordering::Relaxed);
        while let Some(row) = stretch.row().filter(|_| self.slice.has_time()) {
            let info = self.with_rows(|rows| rows.call_info(&stretch));
            match self.begin(&stretch.batch, row, &info, future.as_mut(), context) {
                Poll::Pending => {
                    let token = self.with_rows(|rows| rows.end_stretch(&stretch, true));
                    return token.map(|token| Waiting::new(token, &info, &stretch.batch));
                }
                Poll::Ready(outcome) => self.with_rows(|rows| rows.end_in_stretch(&mut stretch, outcome)),
            }
        }
        self.with_rows(|rows| rows.end_stretch(&stretch, false));
        None
    }

    /// Calls the function for a row. Its future stays in `future` until it has returned.
    fn begin(
        &self,
        batch: &Batch,
        row: usize,
        info: &CallInfo,
        future: Pin<&mut Option<F>>,
        context: &mut Context<'_>,
    ) -> Poll<Outcome<Value>> {
        self.slice.count_row();
        match arguments::<A>(batch, row) {
            Ok(Some(arguments)) => self.poll(info, future, context, |future| future.set(Some((self.call)(arguments)))),
            Ok(None) => Poll::Ready(Outcome::Value(Value::Null)),
            Err((number, text)) => Poll::Ready(Outcome::Error(self.function.unreadable(number, &text).into())),
        }
    }

    /// Polls a call, after `first`, as a part of which panics count, too. Without a future it was cancelled.
    #[inline]
    fn poll(
        &self,
        info: &CallInfo,
        mut future: Pin<&mut Option<F>>,
        context: &mut Context<'_>,
        first: impl FnOnce(&mut Pin<&mut Option<F>>),
    ) -> Poll<Outcome<Value>> {
        let mut outcome = None;
        let polled = info.within(|| {
            panics::catch(|| {
                first(&mut future);
                let polled = match future.as_mut().as_pin_mut() {
                    Some(future) => future.poll(context).map(|returned| self.function.outcome(returned)),
                    None => Poll::Ready(Outcome::Cancelled),
                };
                forks::end_stray(|| match &polled {
                    Poll::Ready(Outcome::Error(text)) => Some(text),
                    _ => None,
                });
                polled.map(|returned| {
                    outcome = Some(returned);
                    // Before the attempt is reported, because the future may hold things that the Context closes.
                    future.set(None);
                })
            })
        });
        match (polled, outcome) {
            (Ok(Poll::Pending), _) => Poll::Pending,
            (Ok(Poll::Ready(())), outcome) => Poll::Ready(outcome.unwrap_or(Outcome::Cancelled)),
            (Err(text), Some(_)) => Poll::Ready(when_dropped(&text)),
            (Err(text), None) => {
                forks::end_stray(|| Some(&text));
                let dropped = info.within(|| panics::catch(|| future.set(None)));
                Poll::Ready(dropped.map_or_else(|text| when_dropped(&text), |()| Outcome::Error(text.into())))
            }
        }
    }
}

#[cold]
fn when_dropped(text: &str) -> Outcome<Value> {
    Outcome::Error(format!("{text}, when its future was dropped").into())
}

/// Runs attempts until there is none to start in this turn.
struct Slot<'s, A, F, C> {
    shared: &'s Shared<A, C>,
    /// The call that waits. Each running row has one.
    waiting: Option<Waiting>,
    /// Of that call. Pinned.
    future: Option<F>,
    /// Makes the task poll this slot.
    waker: Option<Waker>,
}

struct Waiting {
    token: Token,
    info: KeptInfo,
    attempt: u16,
    /// The slot must give it up.
    is_cancelled: bool,
}

impl Waiting {
    fn new(token: Token, info: &CallInfo, batch: &Batch) -> Waiting {
        Waiting { token, info: KeptInfo::new(info, batch), attempt: info.attempt(), is_cancelled: false }
    }
}

impl<'s, A, F, C> Slot<'s, A, F, C> {
    fn new(shared: &'s Shared<A, C>) -> Self {
        Slot { shared, waiting: None, future: None, waker: None }
    }

    /// Makes the slot give up its attempt, if that is among `cancelled`.
    fn cancel(self: Pin<&mut Self>, cancelled: &HashSet<Token>) {
        // SAFETY: the future stays where it is.
        let this = unsafe { self.get_unchecked_mut() };
        if let Some(waiting) = this.waiting.as_mut().filter(|waiting| cancelled.contains(&waiting.token)) {
            waiting.is_cancelled = true;
            this.waker.iter().for_each(Waker::wake_by_ref);
        }
    }
}

impl<A, R, F, C> Future for Slot<'_, A, F, C>
where
    A: for<'a> Arguments<'a>,
    R: Return,
    F: Future<Output = R>,
    C: Fn(A) -> F,
{
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // SAFETY: `future` is not moved out of: it is polled through a Pin, and dropped in its place. The other fields are
        // not pinned.
        let Slot { shared, waiting, future, waker } = unsafe { self.get_unchecked_mut() };
        // SAFETY: as above; this is the only reference to it.
        let mut future = unsafe { Pin::new_unchecked(future) };
        let mut next = None;
        if let Some(Waiting { token, info, attempt, is_cancelled }) = waiting {
            let first = |future: &mut Pin<&mut Option<F>>| {
                if *is_cancelled {
                    future.set(None);
                }
            };
            let polled = info.with(*attempt, shared.runtime.lineage(), |info| shared.poll(info, future.as_mut(), context, first));
            let Poll::Ready(outcome) = polled else { return wait(waker, context) };
            next = shared.end(*token, outcome, true);
        }
        *waiting = shared.go_on(next, future, context);
        match waiting {
            Some(_) => wait(waker, context),
            None => Poll::Ready(()),
        }
    }
}

fn wait(waker: &mut Option<Waker>, context: &Context<'_>) -> Poll<()> {
    match waker {
        Some(known) => known.clone_from(context.waker()),
        none => *none = Some(context.waker().clone()),
    }
    Poll::Pending
}

/// The arguments of a row; None if a null keeps the function from being called (F3).
fn arguments<A: for<'a> Arguments<'a>>(batch: &Batch, row: usize) -> Result<Option<A>, (usize, String)> {
    let columns = batch.columns();
    if A::callable(columns, row, row + 1) == 0 {
        return Ok(None);
    }
    // SAFETY: the machine numbers the rows of this batch, `callable` says that this one may be read, and the batch was
    // checked against the signature that `function` describes.
    unsafe { A::read(A::views(columns), row) }.map(Some)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::arrow::Layout;
    use crate::machine::Stop;
    use crate::runtime::samples;
    use std::time::Duration;

    /// R7: there is one of each for every row in flight.
    #[test]
    fn slots_stay_small() {
        assert_eq!(size_of::<Slot<'_, (), u64, ()>>(), 64 + size_of::<u64>());
    }

    /// R17: its rows are answered, and a stop does not wait for it.
    #[test]
    fn a_dispatcher_that_panics_poisons_its_runtime() {
        let tokio = new_tokio().expect("a runtime of tokio");
        let runtime = samples::runtime(Layout::Fixed(8), 10);
        let seat = Seat::take(&runtime);
        seat.serve(Box::new(TokioExecutor(Arc::default())));
        assert!(runtime.send(0, samples::batch()).is_ok());
        tokio.spawn(dispatch(seat, async { panic!("a mistake") }, async { Ok(()) }));
        assert!(runtime.wait(abi::RESULTS, Duration::from_secs(60)));
        assert_eq!(runtime.take(0).map(|rows| rows.len()), Ok(1));
        let failure = runtime.stop(Stop::Drain, Duration::MAX).expect_err("the stop says why");
        assert!(failure.status == abi::INTERNAL && failure.text.ends_with(": a mistake"), "{failure:?}");
    }
}
