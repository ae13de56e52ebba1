//! The executor of async functions: one tokio runtime per library, shared by all handles; functions with a Context have
//! one for each start, so that what `init` has spawned ends with it.
//!
//! Each handle has one task, the *dispatcher*, and in it any number of *slots*. A slot is a future that runs attempts one
//! after another, so a row costs no task of its own, and little surrounds the author's future. The dispatcher opens slots
//! while there are attempts to start, at most doubling them from turn to turn, because a function that hardly waits needs
//! few. It makes slots give up cancelled attempts (the machine decides on timeouts, R6), and tells the host of results once
//! a turn. A slot that finds nothing to do ends.
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
use crate::batch_context::{BatchContext, Key};
use crate::call_info::{key_of, CallInfo};
use crate::failure::Failure;
use crate::forks;
use crate::limits::{CLOSE_TIME, INIT_TIME};
use crate::machine::{Outcome, Token};
use crate::panics::{self, catch_future};
use crate::runtime::{After, Attempt, Executor, Orders, Runtime, Seat, TimeSlice};
use crate::sync::Unpoisoned;
use crate::threads;
use crate::value;
use futures_util::stream::{FuturesUnordered, StreamExt};
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
    let runtime = &shared.runtime;
    let mut slots = FuturesUnordered::new();
    let mut orders = Orders::default();
    loop {
        runtime.begin_turn(&mut orders);
        if !orders.cancelled.is_empty() {
            let cancelled: HashSet<Token> = orders.cancelled.drain(..).collect();
            Pin::new(&mut slots).iter_pin_mut().for_each(|slot: Pin<&mut Slot<'_, A, F, C>>| slot.cancel(&cancelled));
        }
        for stuck in orders.stuck.drain(..) {
            runtime.report_stuck(stuck.id, "");
        }
        shared.slice.begin();
        let mut may_open = slots.len().max(1);
        while may_open > 0 {
            let Some(attempt) = runtime.next() else { break };
            may_open -= 1;
            slots.extend(shared.begin(attempt).map(|call| Slot::new(&shared, call)));
        }
        std::future::poll_fn(|context| {
            while let Poll::Ready(Some(())) = slots.poll_next_unpin(context) {}
            Poll::Ready(())
        })
        .await;
        shared.news.store(false, Ordering::Relaxed);
        match runtime.end_turn() {
            After::Settled => break,
            After::Again => tokio::task::yield_now().await, // for other handles, and tasks that calls have spawned
            After::Asleep => {
                let mut woken = pin!(woken.notified());
                std::future::poll_fn(|context| {
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
    runtime: Seat,
    call: C,
    /// Rows have ended, and the host does not know yet.
    news: AtomicBool,
    slice: TimeSlice,
    arguments: PhantomData<fn(A)>,
}

/// The part of an attempt that its call needs. (Each running row has one.)
struct Named {
    token: Token,
    id: u64,
    attempt: u16,
    deadline: u64,
    key: Key,
    context: Option<Arc<BatchContext>>,
}

impl Named {
    fn info(&self) -> CallInfo {
        CallInfo::of(self.id, self.attempt, self.deadline, self.key, self.context.as_ref())
    }
}

impl<A, R, F, C> Shared<A, C>
where
    A: for<'a> Arguments<'a>,
    R: Return,
    F: Future<Output = R>,
    C: Fn(A) -> F,
{
    fn new(function: &'static Function, runtime: Seat, call: C) -> Self {
        let news = AtomicBool::new(false);
        Shared { function, runtime, call, news, slice: TimeSlice::new(TURN), arguments: PhantomData }
    }

    /// Reports an attempt; returns the next. A slot that has waited may take one even when the time slice is over.
    fn end(&self, token: Token, outcome: Outcome<value::Value>, has_waited: bool) -> Option<Attempt> {
        self.news.store(true, Ordering::Relaxed);
        if has_waited || self.slice.has_time() {
            self.runtime.end_and_next(token, outcome)
        } else {
            self.runtime.end(token, outcome);
            None
        }
    }

    /// Calls the function for the first attempt that needs a call: this one, or one of the next.
    fn begin(&self, mut attempt: Attempt) -> Option<(Named, F)> {
        loop {
            self.slice.count_row();
            let Attempt { token, id, attempt: number, deadline, .. } = attempt;
            let key = key_of(self.runtime.lineage(), id, &attempt.batch, attempt.row);
            let named = Named { token, id, attempt: number, deadline, key, context: attempt.batch.traced().cloned() };
            let arguments = arguments::<A>(&attempt.batch, attempt.row);
            // The function owns its arguments: the batch lives no longer than its rows need it.
            drop(attempt);
            let outcome = match arguments {
                Ok(Some(arguments)) => match named.info().within(|| panics::catch(|| (self.call)(arguments))) {
                    Ok(future) => return Some((named, future)),
                    Err(text) => Outcome::Error(text.into()),
                },
                Ok(None) => Outcome::Value(value::Value::Null),
                Err((number, text)) => Outcome::Error(self.function.unreadable(number, &text).into()),
            };
            attempt = self.end(token, outcome, false)?;
        }
    }
}

/// Runs attempts until there is none to start in this turn.
struct Slot<'s, A, F, C> {
    shared: &'s Shared<A, C>,
    attempt: Named,
    /// The attempt's call. Pinned.
    future: Option<F>,
    /// Makes the task poll this slot. None: no future of it has waited.
    waker: Option<Waker>,
    /// The future has waited.
    has_waited: bool,
    /// The slot must give the attempt up.
    cancelled: bool,
}

impl<'s, A, F, C> Slot<'s, A, F, C> {
    fn new(shared: &'s Shared<A, C>, (attempt, future): (Named, F)) -> Self {
        Slot { shared, attempt, future: Some(future), waker: None, has_waited: false, cancelled: false }
    }

    /// Makes the slot give up its attempt, if that is among `cancelled`.
    fn cancel(self: Pin<&mut Self>, cancelled: &HashSet<Token>) {
        // SAFETY: the future stays where it is.
        let this = unsafe { self.get_unchecked_mut() };
        if cancelled.contains(&this.attempt.token) {
            this.cancelled = true;
            if let Some(waker) = &this.waker {
                waker.wake_by_ref(); // without one, its first poll is still to come
            }
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
        let Slot { shared, attempt, future, waker, has_waited, cancelled } = unsafe { self.get_unchecked_mut() };
        // SAFETY: as above; this is the only reference to it.
        let mut future = unsafe { Pin::new_unchecked(future) };
        loop {
            let info = attempt.info();
            let poll = || match future.as_mut().as_pin_mut() {
                Some(future) if !*cancelled => future.poll(context).map(|returned| shared.function.outcome(returned)),
                _ => Poll::Ready(Outcome::Cancelled),
            };
            let polled = info.within(|| panics::catch(poll));
            forks::end_stray(|| match &polled {
                Ok(Poll::Ready(Outcome::Error(text))) => Some(text),
                Ok(_) => None,
                Err(text) => Some(text),
            });
            let outcome = match polled {
                Ok(Poll::Pending) => {
                    *has_waited = true;
                    match waker {
                        Some(known) => known.clone_from(context.waker()),
                        none => *none = Some(context.waker().clone()),
                    }
                    return Poll::Pending;
                }
                Ok(Poll::Ready(outcome)) => outcome,
                Err(text) => Outcome::Error(text.into()),
            };
            // Before the attempt is reported, because the future may hold things that the Context closes.
            let dropped = info.within(|| panics::catch(|| future.set(None)));
            let outcome = dropped.map_or_else(|text| Outcome::Error(format!("{text}, when its future was dropped").into()), |()| outcome);
            let next = shared.end(attempt.token, outcome, *has_waited);
            (*has_waited, *cancelled) = (false, false);
            let Some((named, call)) = next.and_then(|next| shared.begin(next)) else { return Poll::Ready(()) };
            *attempt = named;
            future.set(Some(call));
        }
    }
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
