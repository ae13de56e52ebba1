//! The executor of blocking functions: each started function has threads of its own, made on demand, at most as many as
//! attempts may run at once (R4), and one more for each that is stuck.
//!
//! A thread takes attempt after attempt. Before it runs one it sees to it that another thread looks for the next, if there
//! is one; when it finds none it sleeps. A thread cannot be interrupted: a cancelled attempt, or one that timed out, goes
//! on in its thread until it returns. Till then, or till it is found to be stuck (R8), its place is taken.
//!
//! The thread that finds the runtime settled joins the others, closes, and reports it. While the author's code runs, and
//! while a thread sleeps, it holds no reference to the runtime: one that is released with stuck attempts (R13) is freed,
//! its sleeping threads end, and a stuck one ends when its attempt returns.
//!
//! Lost wake-ups: a thread sleeps only after [`Runtime::end_turn`] has said so, and unless a look is owed (`State::owed`).
//! Whoever learns of work, from the runtime or from `end_turn`, either makes a thread or owes a look. Where no thread may be
//! made, at least one is not within an attempt, and comes to that look: the machine opens no more attempts than there may
//! be threads.

use crate::abi;
use crate::call_info::CallInfo;
use crate::failure::{panic_text, Failure};
use crate::machine::{Outcome, Token};
use crate::runtime::{self, After, Attempt, Executor, Orders, Runtime};
use crate::timer::without_signals;
use crate::value::Value;
use std::collections::HashMap;
use std::io;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// As a main thread has, and more: C libraries below a Python function count on it. Only what is used costs memory.
const STACK_BYTES: usize = 16 << 20;
/// How long [`Work::open`] may take (R12).
const OPEN_TIME: Duration = Duration::from_secs(10);

/// What the threads of a pool do.
pub trait Work: Send + Sync + 'static {
    /// Before the first attempt, in the pool's first thread.
    fn open(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Runs an attempt to its end. What the author's code does wrong is the outcome; a panic is the toolkit's (R17).
    fn run(&self, attempt: &Attempt, info: CallInfo) -> Outcome<Value>;

    /// Says that the call for a row goes on after its cancellation, and where, if its thread is known (R8).
    fn report_stuck(&self, function: &str, row: u64, _thread: Option<libc::pthread_t>) {
        runtime::report_stuck(function, row, "; it goes on in its thread");
    }

    /// After the last attempt, unless attempts are stuck.
    fn close(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Makes `runtime` work, and waits until the work is open.
pub fn start(runtime: &Arc<Runtime>, work: impl Work) -> Result<(), Failure> {
    let pool = Arc::new(Pool {
        runtime: Arc::downgrade(runtime),
        most_threads: runtime.settings().allowed_in_flight as usize,
        work: Box::new(work),
        running: Mutex::default(),
        state: Mutex::new(State::default()),
        changed: Condvar::new(),
    });
    runtime.serve(Box::new(PoolExecutor(Arc::clone(&pool))));
    let name = &runtime.signature().name;
    let mut state = pool.lock();
    if let Err(error) = pool.spawn(&mut state, Pool::open) {
        return Err(Failure::new(abi::ENVIRONMENT, format!("{name}: no thread for a blocking function: {error}")));
    }
    let opening = |state: &mut State| state.opened.is_none();
    state = pool.changed.wait_timeout_while(state, OPEN_TIME, opening).unwrap_or_else(PoisonError::into_inner).0;
    match state.opened.take() {
        Some(opened) => opened,
        None => {
            state.over = true;
            let seconds = OPEN_TIME.as_secs();
            Err(Failure::new(abi::USER_CODE, format!("{name}: start failed: init of the Context took more than {seconds} s")))
        }
    }
}

struct Pool {
    runtime: Weak<Runtime>,
    most_threads: usize,
    work: Box<dyn Work>,
    /// Which thread runs an attempt.
    running: Mutex<HashMap<Token, libc::pthread_t>>,
    state: Mutex<State>,
    /// For sleeping threads, and for `start`.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    threads: Vec<JoinHandle<()>>,
    asleep: usize,
    /// So many threads are to look for an attempt before they sleep again.
    owed: usize,
    opened: Option<Result<(), Failure>>,
    /// Threads end instead of sleeping.
    over: bool,
}

/// The runtime's end of a pool.
struct PoolExecutor(Arc<Pool>);

impl Executor for PoolExecutor {
    fn wake(&self) {
        self.0.rouse();
    }

    fn interrupts(&self) -> bool {
        false
    }
}

impl Drop for PoolExecutor {
    fn drop(&mut self) {
        self.0.lock().over = true;
        self.0.changed.notify_all();
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that panics runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(self: &Arc<Pool>, state: &mut State, body: fn(&Arc<Pool>)) -> io::Result<()> {
        let pool = Arc::clone(self);
        let thread = thread::Builder::new().name("udf-pool".into()).stack_size(STACK_BYTES);
        state.threads.push(thread.spawn(move || without_signals(|| body(&pool)))?);
        Ok(())
    }

    /// Has one more thread look for something to do.
    fn rouse(self: &Arc<Pool>) {
        // Stuck attempts keep their threads, and are out of the cap (R8).
        let stuck = self.runtime.upgrade().map_or(0, |runtime| runtime.counts().stuck as usize);
        let mut state = self.lock();
        if state.over {
            return;
        }
        let all_at_work = state.asleep <= state.owed;
        // Where the system has no more threads, those that are there do the work.
        if all_at_work && state.threads.len() < self.most_threads + stuck && self.spawn(&mut state, Pool::serve).is_ok() {
            return;
        }
        state.owed = (state.owed + 1).min(state.threads.len());
        self.changed.notify_one();
    }

    /// The first thread.
    fn open(self: &Arc<Pool>) {
        let opened = catch_unwind(AssertUnwindSafe(|| self.work.open()))
            .unwrap_or_else(|panic| Err(Failure::new(abi::INTERNAL, internal_error(&*panic))));
        let is_open = opened.is_ok();
        let mut state = self.lock();
        let too_late = state.over;
        state.opened = Some(opened);
        self.changed.notify_all();
        drop(state);
        match (is_open, too_late) {
            (true, false) => self.serve(),
            // Nobody is left to be told how it closed.
            (true, true) => drop(self.close()),
            (false, _) => {}
        }
    }

    /// A thread's life.
    fn serve(self: &Arc<Pool>) {
        let mut ended: Option<(Token, Outcome<Value>)> = None;
        while let Some(runtime) = self.runtime.upgrade() {
            let attempt = match ended.take() {
                Some((token, outcome)) => runtime.end_and_next(token, outcome),
                None => runtime.next(),
            };
            match (attempt, self.turn(&runtime)) {
                (Some(attempt), after) => {
                    if after != After::Asleep {
                        self.rouse();
                    }
                    let info = CallInfo::new(&runtime, &attempt);
                    drop(runtime);
                    ended = Some((attempt.token, self.run(&attempt, info)));
                }
                (None, After::Settled) => return self.end(&runtime),
                (None, After::Asleep) => {
                    drop(runtime);
                    if !self.sleep() {
                        return;
                    }
                }
                (None, After::Again) => {}
            }
        }
    }

    /// The turn of a thread that has just ended an attempt or looked for one. Stuck attempts are the only orders, and rare.
    fn turn(&self, runtime: &Runtime) -> After {
        let after = runtime.end_turn();
        if after != After::Again {
            return after;
        }
        let mut orders = Orders::default();
        runtime.begin_turn(&mut orders);
        for stuck in orders.stuck {
            let thread = self.running().get(&stuck.token).copied();
            let report = || self.work.report_stuck(&runtime.signature().name, stuck.id, thread);
            if let Err(panic) = catch_unwind(AssertUnwindSafe(report)) {
                runtime.poison(&internal_error(&*panic));
            }
        }
        runtime.end_turn()
    }

    fn running(&self) -> MutexGuard<'_, HashMap<Token, libc::pthread_t>> {
        // As for `lock`.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, attempt: &Attempt, info: CallInfo) -> Outcome<Value> {
        // SAFETY: it takes nothing and always succeeds.
        self.running().insert(attempt.token, unsafe { libc::pthread_self() });
        let outcome = catch_unwind(AssertUnwindSafe(|| self.work.run(attempt, info))).unwrap_or_else(|panic| {
            let text = internal_error(&*panic);
            if let Some(runtime) = self.runtime.upgrade() {
                runtime.poison(&text);
            }
            Outcome::Error(text.into())
        });
        self.running().remove(&attempt.token);
        outcome
    }

    /// False: the thread is to end.
    fn sleep(&self) -> bool {
        let mut state = self.lock();
        while !state.over {
            if state.owed > 0 {
                state.owed -= 1;
                return true;
            }
            state.asleep += 1;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.asleep -= 1;
        }
        false
    }

    /// The end of the pool, in the first thread that comes to it; the others end before it closes.
    fn end(&self, runtime: &Runtime) {
        let mut state = self.lock();
        if std::mem::replace(&mut state.over, true) {
            return;
        }
        let threads = std::mem::take(&mut state.threads);
        self.changed.notify_all();
        drop(state);
        let me = thread::current().id();
        for thread in threads.into_iter().filter(|thread| thread.thread().id() != me) {
            // A panic outside the author's code has been told to the runtime by `run`.
            drop(thread.join());
        }
        runtime.closed(if runtime.is_given_up() { Ok(()) } else { self.close() });
    }

    fn close(&self) -> Result<(), String> {
        catch_unwind(AssertUnwindSafe(|| self.work.close())).unwrap_or_else(|panic| Err(internal_error(&*panic)))
    }
}

fn internal_error(panic: &(dyn std::any::Any + Send)) -> String {
    format!("internal error: {}", panic_text(panic))
}
