//! The executor of blocking functions: each started function has its own threads, made on demand, at most one for each
//! attempt that may run at once (R4), and one more for each that is stuck.
//!
//! A thread takes attempt after attempt. Before it runs one, it makes sure that another thread looks for the next, if there
//! is one. A thread that finds none sleeps. A thread cannot be interrupted: a cancelled attempt, or one that timed out, goes
//! on in its thread until it returns, and takes up its place until then, or until it is found to be stuck (R8).
//!
//! The thread that finds the runtime settled joins the others, closes, and reports it. A thread holds no reference to the
//! runtime while it sleeps or runs the author's code. So a runtime that is released with stuck attempts (R13) is freed: its
//! sleeping threads end, and a stuck one ends when its attempt returns.
//!
//! Lost wake-ups: a thread sleeps only after [`Seat::end_turn`] has said so, and not while a look is owed
//! (`State::owed`). A thread that learns of work, from the runtime or from `end_turn`, either makes a thread or owes a look.
//! Where no more threads may be made, at least one is not within an attempt, and comes to that look: the machine opens no
//! more attempts than there may be threads.

use crate::abi;
use crate::call_info::CallInfo;
use crate::failure::Failure;
use crate::forks;
use crate::limits::{init_took_too_long, INIT_TIME};
use crate::machine::{Outcome, Token};
use crate::panics::catch_own;
use crate::runtime::{After, Attempt, Executor, Orders, Runtime, Seat, WeakSeat};
use crate::sync::Unpoisoned;
use crate::threads::{self, AUTHORS_STACK};
use crate::value::Value;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

/// The work of a pool's threads.
pub trait Work: Send + Sync + 'static {
    /// Called before the first attempt, in the pool's first thread; may take [`INIT_TIME`].
    fn open(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Runs an attempt to its end. A mistake of the author's code is its outcome; a panic is the toolkit's (R17).
    fn run(&self, attempt: &Attempt, info: CallInfo) -> Outcome<Value>;

    /// Reports that the call for a row goes on after its cancellation, in `thread` if that is known (R8).
    fn report_stuck(&self, runtime: &Runtime, row: u64, _thread: Option<libc::pthread_t>) {
        runtime.report_stuck(row, "; it goes on in its thread");
    }

    /// Called after the last attempt, unless attempts are stuck.
    fn close(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Makes a pool the executor of `runtime`, and waits until the work is open.
pub fn start(runtime: &Arc<Runtime>, work: impl Work) -> Result<(), Failure> {
    let seat = Seat::take(runtime);
    let pool = Arc::new(Pool {
        runtime: seat.downgrade(),
        most_threads: runtime.settings().allowed_in_flight as usize,
        work: Box::new(work),
        running: Mutex::default(),
        state: Mutex::new(State::default()),
        changed: Condvar::new(),
    });
    seat.serve(Box::new(PoolExecutor(Arc::clone(&pool))));
    let name = &runtime.signature().name;
    let mut state = pool.lock();
    if let Err(error) = pool.spawn(&mut state, Pool::open) {
        return Err(Failure::for_now(abi::ENVIRONMENT, format!("{name}: no thread for a blocking function: {error}")));
    }
    let opening = |state: &mut State| state.opened.is_none();
    state = pool.changed.wait_timeout_while(state, INIT_TIME, opening).unpoisoned().0;
    match state.opened.take() {
        Some(opened) => opened,
        None => {
            state.over = true;
            Err(Failure::new(abi::USER_CODE, format!("{name}: start failed: {}", init_took_too_long(INIT_TIME))))
        }
    }
}

struct Pool {
    runtime: WeakSeat,
    most_threads: usize,
    work: Box<dyn Work>,
    /// The thread of each attempt that runs.
    running: Mutex<HashMap<Token, libc::pthread_t>>,
    state: Mutex<State>,
    /// For sleeping threads, and for `start`.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    threads: Vec<JoinHandle<()>>,
    asleep: usize,
    /// How many threads must look for an attempt before they sleep again.
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
        self.state.lock().unpoisoned()
    }

    fn spawn(self: &Arc<Pool>, state: &mut State, body: fn(&Arc<Pool>)) -> io::Result<()> {
        let pool = Arc::clone(self);
        state.threads.push(threads::spawn("udf-pool", AUTHORS_STACK, move || pool.guard(body))?);
        Ok(())
    }

    /// Runs a thread's life. A panic in it is the toolkit's: it poisons the runtime, and the thread goes on, because others may
    /// rely on it. After a second one it ends.
    fn guard(self: &Arc<Pool>, body: fn(&Arc<Pool>)) {
        let once = |body: fn(&Arc<Pool>)| catch_own(|| body(self)).map_err(|text| self.poison(&text)).is_ok();
        let _ = once(body) || once(Pool::serve);
    }

    fn poison(&self, text: &str) {
        if let Some(runtime) = self.runtime.upgrade() {
            drop(catch_own(|| runtime.poison(text)));
        }
    }

    /// Makes one more thread look for something to do.
    fn rouse(self: &Arc<Pool>) {
        // Stuck attempts keep their threads, and are out of the cap (R8).
        let stuck = self.runtime.upgrade().map_or(0, |runtime| runtime.counts().stuck as usize);
        let mut state = self.lock();
        if state.over {
            return;
        }
        let all_at_work = state.asleep <= state.owed;
        // If the system has no more threads, those of the pool do the work.
        if all_at_work && state.threads.len() < self.most_threads + stuck && self.spawn(&mut state, Pool::serve).is_ok() {
            return;
        }
        state.owed = (state.owed + 1).min(state.threads.len());
        self.changed.notify_one();
    }

    /// The first thread.
    fn open(self: &Arc<Pool>) {
        let opened = catch_own(|| self.work.open()).unwrap_or_else(|text| Err(Failure::internal(text)));
        forks::end_stray(|| opened.as_ref().err().map(|failure| &*failure.text));
        let is_open = opened.is_ok();
        let mut state = self.lock();
        let too_late = state.over;
        state.opened = Some(opened);
        self.changed.notify_all();
        drop(state);
        match (is_open, too_late) {
            (true, false) => self.serve(),
            // The start has failed: nothing waits for how it closed.
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
    fn turn(&self, runtime: &Seat) -> After {
        let after = runtime.end_turn();
        if after != After::Again {
            return after;
        }
        let mut orders = Orders::default();
        runtime.begin_turn(&mut orders);
        for stuck in orders.stuck {
            let thread = self.running().get(&stuck.token).copied();
            let report = || self.work.report_stuck(runtime, stuck.id, thread);
            runtime.guard(report);
        }
        runtime.end_turn()
    }

    fn running(&self) -> MutexGuard<'_, HashMap<Token, libc::pthread_t>> {
        self.running.lock().unpoisoned()
    }

    fn run(&self, attempt: &Attempt, info: CallInfo) -> Outcome<Value> {
        // SAFETY: it takes nothing and always succeeds.
        self.running().insert(attempt.token, unsafe { libc::pthread_self() });
        let ran = catch_own(|| self.work.run(attempt, info));
        forks::end_stray(|| match &ran {
            Ok(Outcome::Error(text)) => Some(text),
            Ok(_) => None,
            Err(text) => Some(text),
        });
        let outcome = ran.unwrap_or_else(|text| {
            self.poison(&text);
            Outcome::Error(text.into())
        });
        self.running().remove(&attempt.token);
        outcome
    }

    /// False: the thread must end.
    fn sleep(&self) -> bool {
        let mut state = self.lock();
        while !state.over {
            if state.owed > 0 {
                state.owed -= 1;
                return true;
            }
            state.asleep += 1;
            state = self.changed.wait(state).unpoisoned();
            state.asleep -= 1;
        }
        false
    }

    /// Ends the pool, in the first thread that finds it settled; the others end before it closes.
    fn end(&self, runtime: &Seat) {
        let mut state = self.lock();
        if std::mem::replace(&mut state.over, true) {
            return;
        }
        let threads = std::mem::take(&mut state.threads);
        self.changed.notify_all();
        drop(state);
        let me = thread::current().id();
        for thread in threads.into_iter().filter(|thread| thread.thread().id() != me) {
            drop(thread.join()); // `guard` lets no panic out
        }
        runtime.closed(if runtime.is_given_up() { Ok(()) } else { self.close() });
    }

    fn close(&self) -> Result<(), String> {
        let closed = catch_own(|| self.work.close()).unwrap_or_else(Err);
        forks::end_stray(|| closed.as_ref().err().map(|text| &**text));
        closed
    }
}
