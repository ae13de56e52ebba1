//! One started function: the inbox, the machine under its mutex, the host's wake-ups, the timer, stop.
//!
//! Two sides meet here. The host sends batches and drains results; an [`Executor`] (tokio, asyncio) pulls attempts with
//! [`Runtime::next`] and reports them with [`Runtime::end`]. Under the mutex no user code runs, nothing of the other side
//! is released, nobody is woken: what is to be done is collected there and done after the lock is given back.
//!
//! Who sleeps says so under the mutex (`set_asleep`, `waiting`, `armed`), and is woken once by whoever makes its
//! condition true; who is awake is not woken.
//!
//! `send` takes the mutex only to wake the executor. Else it leaves its batch in the [`Inbox`], and whoever needs to know
//! of it has [`Runtime::take_in`] hand it to the machine first. Lock order: the mutex, then the inbox.

use crate::arrow::Batch;
use crate::failure::Failure;
use crate::inbox::{Inbox, Sent, Size};
use crate::machine::{Counts, Finished, Machine, Outcome, Refused, Settings, Start, Stop, Stuck, Token};
use crate::options::Chosen;
use crate::results;
use crate::signature::Signature;
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::timer::{self, now, Ticking};
use crate::value::Value;
use arroyo_udf_abi as abi;
use std::ffi::c_void;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

/// A condition of [`Runtime::arm`] that no host can ask for through the table: [`Runtime::space`] (see `arroyo`).
pub const SPACE: u32 = 4;
/// So many rows may wait for an earlier row or for their next attempt before [`Runtime::space`] says 0.
const MOST_ASIDE: u64 = 16_384;

/// What runs the attempts of a runtime.
pub trait Executor: Send + Sync {
    /// There may be something to start, to cancel or to close. Called at most once between two sleeps, with no lock held,
    /// from any thread; must not wait.
    fn wake(&self);

    /// Whether it can cancel a running attempt. Otherwise cancellations are dropped, and do not wake it.
    fn interrupts(&self) -> bool {
        true
    }
}

/// What an executor must do in a turn before it starts attempts. Kept from turn to turn, so that it costs no allocation.
#[derive(Debug, Default)]
pub struct Orders {
    /// Attempts to cancel. They stay open until [`Runtime::end`].
    pub cancelled: Vec<Token>,
    /// Attempts that ignore their cancellation: report each once (R8).
    pub stuck: Vec<Stuck>,
}

/// What an executor does after a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum After {
    /// Close the Context, then report [`Runtime::closed`]: the runtime is stopped, and no attempt runs or waits.
    Settled,
    /// Sleep until [`Executor::wake`].
    Asleep,
    /// Take another turn: more came up meanwhile.
    Again,
}

/// The executor's part of [`Runtime::turn`].
pub trait Turn {
    /// Cancels an attempt, which may have ended by now.
    fn cancel(&mut self, attempt: Token);
    /// Reports an attempt that ignores its cancellation (R8).
    fn stuck(&mut self, attempt: &Stuck);
    /// Starts attempts ([`Runtime::next`]), and reports those that have ended.
    fn work(&mut self);
}

pub type Attempt = Start<Arc<Batch>>;

/// A host's request to be called.
struct Armed {
    condition: u32,
    function: abi::Armed,
    data: *mut c_void,
}
// SAFETY: the host promises that `function(data)` may be called from any thread.
unsafe impl Send for Armed {}

/// How the executor closed: the Context's `close` may fail.
type Closed = Result<(), String>;

/// What is to become of a batch that was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// The executor will find it.
    Done,
    /// [`Runtime::deliver`] is to be called.
    Deliver,
}

/// A batch that `put` gives back; no failure means that there is no room now.
pub struct NotTaken {
    pub batch: Batch,
    pub failure: Option<Failure>,
}

struct State {
    machine: Machine<Arc<Batch>, Value>,
    /// What was taken out of the inbox, on its way to the machine; else empty.
    arrived: Vec<Sent<Batch>>,
    wake_ups: u64,
    blocked: u64,
    left_behind: u64,
    discarded: u64,
    /// There are results that the host may be told of. Those of a turn that is not over are not among them: a host that came
    /// for each would take them one by one.
    news: bool,
    /// Conditions that threads in `wait` sleep for.
    waiting: [u32; 2],
    armed: Option<Armed>,
    /// An armed function is running now.
    calling: bool,
    /// The latest time that the machine was told.
    latest: u64,
    /// When the timer will call, at the latest.
    timer_at: Option<u64>,
    closed: Option<Closed>,
    stuck: bool,
    /// See [`Executor::interrupts`].
    interrupts: bool,
}

impl State {
    /// A time that was read before the lock was taken, and not before one that another thread has told by then.
    fn not_back(&mut self, now: u64) -> u64 {
        self.latest = self.latest.max(now);
        self.latest
    }
}

pub struct Runtime {
    signature: &'static Signature,
    lineage: [u8; 16],
    /// Whether attempts need to know the time; and whether rows do when they are accepted.
    timed: bool,
    rows_timed: bool,
    inbox: Inbox<Batch>,
    state: Mutex<State>,
    /// For threads in wait, disarm and stop.
    changed: Condvar,
    executor: OnceLock<Box<dyn Executor>>,
    me: Weak<Runtime>,
}

/// What to do after the mutex is given back.
#[derive(Default)]
#[must_use]
struct Todo {
    wake_executor: bool,
    wake_waiters: bool,
    call: Option<Armed>,
}

/// Reports, to standard error, a call that ignores its cancellation; `details` are the executor's own (R8).
pub fn report_stuck(function: &str, row: u64, details: &str) {
    eprintln!("{function}, row {row}: a call ignores its cancellation{details}");
}

impl Runtime {
    /// A runtime that nobody executes yet: [`Runtime::serve`] names the executor.
    pub fn new(signature: &'static Signature, chosen: Chosen) -> Arc<Runtime> {
        let rows_timed = chosen.settings.deadline.is_some() || chosen.settings.gather.is_some();
        Arc::new_cyclic(|me| Runtime {
            signature,
            lineage: chosen.lineage,
            timed: chosen.settings.is_timed(),
            rows_timed,
            inbox: Inbox::new(Size { rows: chosen.settings.max_rows, bytes: chosen.settings.max_bytes }),
            state: Mutex::new(State {
                machine: Machine::new(chosen.settings),
                arrived: Vec::new(),
                news: false,
                wake_ups: 0,
                blocked: 0,
                left_behind: 0,
                discarded: 0,
                waiting: [0; 2],
                armed: None,
                calling: false,
                latest: 0,
                timer_at: None,
                closed: None,
                stuck: false,
                interrupts: true,
            }),
            changed: Condvar::new(),
            executor: OnceLock::new(),
            me: me.clone(),
        })
    }

    /// Names the executor. Once, before the first row.
    pub fn serve(&self, executor: Box<dyn Executor>) {
        self.lock().interrupts = executor.interrupts();
        assert!(self.executor.set(executor).is_ok(), "a runtime has one executor");
    }

    pub fn signature(&self) -> &'static Signature {
        self.signature
    }

    /// With a row's id, the idempotency key of the row's calls (R10).
    pub fn lineage(&self) -> [u8; 16] {
        self.lineage
    }

    pub fn settings(&self) -> Settings {
        *self.lock().machine.settings()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic under the lock would have been ours; the state may be half changed, so nobody may go on with it.
        self.state.lock().unwrap_or_else(|poisoned| {
            let mut state = poisoned.into_inner();
            self.between_sends(&mut state, |machine| machine.poison("internal error: the state of the runtime is broken"));
            state
        })
    }

    /// Hands the machine what has been sent.
    fn take_in(&self, state: &mut State) {
        self.inbox.take(&mut state.arrived);
        hand_over(&mut state.machine, &mut state.arrived);
    }

    /// A change that may end the acceptance of batches: those accepted before it are in the machine, and none comes after.
    fn between_sends(&self, state: &mut State, change: impl FnOnce(&mut Machine<Arc<Batch>, Value>)) {
        let State { machine, arrived, .. } = state;
        self.inbox.take_and(arrived, |arrived| {
            hand_over(machine, arrived);
            change(machine);
            machine.stopping().is_some() || machine.poisoned().is_some()
        });
    }

    fn check(&self, state: &State) -> Result<(), Failure> {
        match state.machine.poisoned() {
            Some(text) => {
                let status = if state.machine.is_overwhelmed() { abi::USER_CODE } else { abi::INTERNAL };
                Err(Failure::new(status, format!("{}: {text}", self.signature.name)))
            }
            None => Ok(()),
        }
    }

    // ---- the host's side -------------------------------------------------------------------------------------------

    /// The first half of `send` in the header: waits for no one. [`Runtime::deliver`] is the other, if it is needed.
    #[allow(clippy::result_large_err)] // it is the batch, given back
    pub fn put(&self, first_id: u64, batch: Batch) -> Result<Put, NotTaken> {
        let size = Size { rows: batch.rows() as u64, bytes: batch.bytes() };
        let now = || if self.rows_timed { now() } else { 0 };
        match self.inbox.put(first_id, size, now, batch) {
            Ok(executor_sleeps) => Ok(if executor_sleeps || self.rows_timed { Put::Deliver } else { Put::Done }),
            Err((batch, refused)) => Err(NotTaken { batch, failure: self.why_refused(first_id, refused) }),
        }
    }

    /// Both halves of `send`.
    #[allow(clippy::result_large_err)] // as for `put`
    pub fn send(&self, first_id: u64, batch: Batch) -> Result<(), NotTaken> {
        if self.put(first_id, batch)? == Put::Deliver {
            self.deliver();
        }
        Ok(())
    }

    fn why_refused(&self, first_id: u64, refused: Refused) -> Option<Failure> {
        let name = &self.signature.name;
        match refused {
            Refused::WouldBlock => None,
            Refused::Id => Some(Failure::argument(format!("{name}: id {first_id} does not rise above those sent before"))),
            Refused::Stopped => {
                let stopped = || Failure::state(format!("{name}: stopped; start it again to send more"));
                Some(self.check(&self.lock()).err().unwrap_or_else(stopped))
            }
        }
    }

    /// Has the machine, and so the executor and the timer, learn of what was sent.
    pub fn deliver(&self) {
        let mut state = self.lock();
        self.take_in(&mut state);
        self.keep_time(&mut state);
        let todo = self.todo(&mut state);
        drop(state);
        self.act(todo);
    }

    /// See `drain_results` in the header. An error is "nothing now"; the flag: nothing any more.
    pub fn drain(&self, max_rows: u64) -> Result<abi::ArrowArray, bool> {
        let finished = self.take(max_rows)?;
        Ok(results::export(&self.signature.returns, &finished, &self.signature.name, &self.settings()))
    }

    /// As [`Runtime::drain`], the rows themselves.
    pub fn take(&self, max_rows: u64) -> Result<Vec<Finished<Value>>, bool> {
        let mut state = self.lock();
        if !state.machine.has_results() {
            return Err(is_over(&state) && state.machine.is_empty());
        }
        let limit = if max_rows == 0 { u64::MAX } else { max_rows };
        let held_before = state.machine.held_bytes();
        let finished = state.machine.drain(limit, results::DRAIN_BYTES as u64);
        self.inbox.give_back(Size { rows: finished.len() as u64, bytes: held_before - state.machine.held_bytes() });
        let todo = self.todo(&mut state);
        drop(state);
        self.act(todo);
        Ok(finished)
    }

    /// For a host that sends row by row: how many more it may send before as many attempts run as may, and one waits. Rows
    /// that wait for a drain do not count; those that wait for an earlier row or for their next attempt do once there are
    /// very many. After the end and after a stop any number may come, to be refused.
    pub fn space(&self) -> u64 {
        let mut state = self.lock();
        self.take_in(&mut state);
        if self.holds(&state, SPACE) {
            space(&state).max(1)
        } else {
            0
        }
    }

    /// Whether the runtime has come to its end by itself.
    pub fn is_poisoned(&self) -> bool {
        self.lock().machine.poisoned().is_some()
    }

    /// See `wait` in the header. False: the time is over.
    pub fn wait(&self, condition: u32, timeout: Duration) -> bool {
        let until = Instant::now().checked_add(timeout);
        let mut state = self.lock();
        let bits = [abi::RESULTS, abi::ROOM];
        let count = |state: &mut State, by: i32| {
            for (waiting, bit) in state.waiting.iter_mut().zip(bits) {
                *waiting = waiting.wrapping_add_signed(if condition & bit != 0 { by } else { 0 });
            }
        };
        count(&mut state, 1);
        let held = loop {
            if self.holds(&state, condition) {
                break true;
            }
            match until.map(|until| until.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => break false,
                Some(left) => state = self.changed.wait_timeout(state, left).unwrap_or_else(|e| e.into_inner()).0,
                None => state = self.changed.wait(state).unwrap_or_else(|e| e.into_inner()),
            }
        };
        count(&mut state, -1);
        held
    }

    /// See `arm` in the header. True: the condition holds already, nothing is registered.
    pub fn arm(&self, condition: u32, function: abi::Armed, data: *mut c_void) -> bool {
        let mut state = self.lock();
        self.take_in(&mut state);
        let holds = self.holds(&state, condition);
        state.armed = (!holds).then_some(Armed { condition, function, data });
        holds
    }

    /// See `disarm` in the header.
    pub fn disarm(&self) {
        let mut state = self.lock();
        state.armed = None;
        while state.calling {
            state = self.changed.wait(state).unwrap_or_else(|e| e.into_inner());
        }
    }

    /// See `cancel` in the header.
    pub fn cancel(&self, first_id: u64, rows: u64) {
        let mut state = self.lock();
        self.take_in(&mut state);
        state.machine.cancel(now(), first_id, rows);
        self.keep_time(&mut state);
        let todo = self.todo(&mut state);
        drop(state);
        self.act(todo);
    }

    /// The part of the statistics that is the machine's.
    pub fn counts(&self) -> Counts {
        let mut state = self.lock();
        self.take_in(&mut state);
        state.machine.counts()
    }

    pub fn statistics(&self) -> abi::Statistics {
        let mut state = self.lock();
        self.take_in(&mut state);
        let (counts, latency) = (state.machine.counts(), state.machine.latency());
        abi::Statistics {
            size: size_of::<abi::Statistics>() as u64,
            accepted: counts.accepted,
            queued: counts.queued,
            running: counts.running,
            backing_off: counts.backing_off,
            held: counts.held,
            ready: counts.ready,
            drained: counts.drained,
            values: counts.values,
            errors: counts.errors,
            timed_out: counts.timed_out,
            cancelled: counts.cancelled,
            retries: counts.retries,
            stuck: counts.stuck,
            wake_ups: state.wake_ups,
            blocked: state.blocked,
            left_behind: state.left_behind,
            discarded: state.discarded,
            latency: latency.counts,
            latency_max_ns: latency.longest,
        }
    }

    /// See `stop_runtime` in the header (R13). Every caller gets the same answer.
    pub fn stop(&self, mode: Stop, deadline: Duration) -> Result<abi::Status, Failure> {
        let mut state = self.lock();
        self.between_sends(&mut state, |machine| machine.stop(now(), mode));
        self.keep_time(&mut state);
        let until = Instant::now().checked_add(deadline);
        let mut last = until;
        let mut cancelled = mode == Stop::Cancel;
        loop {
            let todo = self.todo(&mut state);
            drop(state);
            self.act(todo);
            state = self.lock();
            while !is_over(&state) {
                if state.machine.is_stuck() {
                    state.stuck = true; // nothing more will happen
                    break;
                }
                let now = Instant::now();
                match last.map(|last| last.saturating_duration_since(now)) {
                    Some(Duration::ZERO) => break,
                    Some(left) => state = self.changed.wait_timeout(state, left).unwrap_or_else(|e| e.into_inner()).0,
                    None => state = self.changed.wait(state).unwrap_or_else(|e| e.into_inner()),
                }
            }
            let name = &self.signature.name;
            match &state.closed {
                _ if state.machine.is_overwhelmed() => return Ok(abi::STUCK),
                _ if state.stuck => {
                    self.changed.notify_all(); // others may stop it too, with a later deadline
                    return Ok(abi::STUCK);
                }
                _ if state.machine.poisoned().is_some() => return self.check(&state).map(|()| abi::OK),
                Some(Ok(())) => return Ok(abi::OK),
                Some(Err(text)) => return Err(Failure::new(abi::USER_CODE, format!("{name}: close failed: {text}"))),
                None => {}
            }
            // Time is over: cancel what still runs; one second later give up on it.
            if cancelled && last != until {
                state.stuck = true;
            }
            if !cancelled {
                self.between_sends(&mut state, |machine| machine.stop(now(), Stop::Cancel));
                self.keep_time(&mut state);
                cancelled = true;
            }
            last = until.and_then(|until| until.checked_add(Duration::from_secs(1)));
        }
    }

    // ---- the executor's side ---------------------------------------------------------------------------------------

    /// The next attempt. None: there is none to start now; [`Runtime::end_turn`] says whether to sleep.
    pub fn next(&self) -> Option<Attempt> {
        let now = self.clock();
        let mut state = self.lock();
        let now = state.not_back(now);
        self.next_locked(&mut state, now)
    }

    /// Reports an attempt and asks for the next: one lock for both. A late outcome is discarded.
    pub fn end_and_next(&self, token: Token, outcome: Outcome<Value>) -> Option<Attempt> {
        let now = self.clock();
        let mut state = self.lock();
        let now = state.not_back(now);
        self.end_locked(&mut state, now, token, outcome);
        self.next_locked(&mut state, now)
    }

    /// Reports an attempt. The host learns of it at the end of the turn, or by [`Runtime::notify`]. False: it came late and is discarded.
    pub fn end(&self, token: Token, outcome: Outcome<Value>) -> bool {
        let now = self.clock();
        let mut state = self.lock();
        let now = state.not_back(now);
        let counts = self.end_locked(&mut state, now, token, outcome);
        self.keep_time(&mut state);
        counts
    }

    fn end_locked(&self, state: &mut MutexGuard<'_, State>, now: u64, token: Token, outcome: Outcome<Value>) -> bool {
        let says_something = matches!(outcome, Outcome::Value(_) | Outcome::Error(_));
        let counts = state.machine.end(now, token, outcome);
        state.discarded += u64::from(says_something && !counts);
        counts
    }

    /// Reports the attempt of a micro-batch: an outcome for each row, in the order in which they started. Late outcomes
    /// are discarded.
    pub fn end_rows(&self, token: Token, outcomes: impl IntoIterator<Item = Outcome<Value>>) {
        let now = self.clock();
        let mut state = self.lock();
        let now = state.not_back(now);
        state.discarded += u64::from(!state.machine.is_open(token));
        state.machine.end_rows(now, token, outcomes);
        self.keep_time(&mut state);
    }

    fn next_locked(&self, state: &mut MutexGuard<'_, State>, now: u64) -> Option<Attempt> {
        if !state.machine.can_start() {
            self.take_in(state);
        }
        let attempt = state.machine.start(now);
        self.keep_time(state);
        attempt
    }

    /// One turn of an executor that works in one piece.
    pub fn turn(&self, orders: &mut Orders, executor: &mut impl Turn) -> After {
        self.begin_turn(orders);
        orders.cancelled.drain(..).for_each(|attempt| executor.cancel(attempt));
        orders.stuck.drain(..).for_each(|attempt| executor.stuck(&attempt));
        executor.work();
        self.end_turn()
    }

    /// The first half of a turn: adds to `orders`.
    pub fn begin_turn(&self, orders: &mut Orders) {
        let mut state = self.lock();
        state.machine.take_cancellations(&mut orders.cancelled);
        state.machine.take_stuck(&mut orders.stuck);
    }

    /// The second half of a turn: tells the host what has ended, and puts the executor to sleep unless there is more to do.
    pub fn end_turn(&self) -> After {
        let mut state = self.lock();
        // In this order: a batch that is sent from now on wakes the executor, and one that was sent before is seen.
        self.inbox.set_asleep(true);
        self.take_in(&mut state);
        let has_work = has_work(&mut state);
        self.inbox.set_asleep(!has_work);
        let after = match has_work {
            _ if state.machine.is_settled() => After::Settled,
            true => After::Again,
            false => After::Asleep,
        };
        let todo = self.todo(&mut state);
        drop(state);
        self.act(todo);
        after
    }

    /// Tells the host what has ended, if it sleeps: for outcomes that are reported outside a turn.
    pub fn notify(&self) {
        let mut state = self.lock();
        let todo = self.todo(&mut state);
        drop(state);
        self.act(todo);
    }

    /// Whether an attempt could start now.
    pub fn can_start(&self) -> bool {
        let mut state = self.lock();
        if !state.machine.can_start() {
            self.take_in(&mut state);
        }
        state.machine.can_start()
    }

    /// The executor's thread was found blocked while rows wait or run (R9).
    pub fn count_blocked(&self) {
        self.lock().blocked += 1;
    }

    /// Tasks that calls have left running were cancelled at the stop (R11).
    pub fn count_left_behind(&self, tasks: u64) {
        self.lock().left_behind += tasks;
    }

    /// An outcome came for an attempt that had ended before.
    pub fn count_discarded(&self) {
        self.lock().discarded += 1;
    }

    /// Begins to stop without waiting for the end.
    pub fn stop_soon(&self, mode: Stop) {
        let mut state = self.lock();
        self.between_sends(&mut state, |machine| machine.stop(now(), mode));
        self.keep_time(&mut state);
        let todo = self.todo(&mut state);
        drop(state);
        self.act(todo);
    }

    /// Whether the row of this attempt still waits for it.
    pub fn is_open(&self, token: Token) -> bool {
        self.lock().machine.is_open(token)
    }

    /// Whether a stop has answered that attempts are stuck: the Context is not closed any more (R13), for the host counts
    /// on nothing of it running.
    pub fn is_given_up(&self) -> bool {
        let state = self.lock();
        state.stuck || state.machine.is_overwhelmed()
    }

    /// The executor has ended; nothing of this runtime runs any more.
    pub fn closed(&self, result: Closed) {
        let mut state = self.lock();
        state.closed.get_or_insert(result);
        let todo = self.todo(&mut state);
        drop(state);
        self.changed.notify_all();
        self.act(todo);
    }

    /// A failure of the toolkit itself: rows that have not ended are errors with this text (R17).
    pub fn poison(&self, text: &str) {
        let mut state = self.lock();
        self.between_sends(&mut state, |machine| machine.poison(text));
        let todo = self.todo(&mut state);
        drop(state);
        self.changed.notify_all();
        self.act(todo);
    }

    // ---- inside ----------------------------------------------------------------------------------------------------

    /// The time, where the machine's settings make it matter: reading the clock costs a tenth of a row that returns at
    /// once. Read before the lock is taken, so that nobody waits for it.
    fn clock(&self) -> u64 {
        if self.timed {
            now()
        } else {
            0
        }
    }

    /// Sees to it that the timer calls when the machine wants to be told the time.
    fn keep_time(&self, state: &mut State) {
        let Some(at) = state.machine.next_deadline() else { return };
        if state.timer_at.is_none_or(|known| at < known) {
            state.timer_at = Some(at);
            let me: Weak<dyn Ticking> = self.me.clone();
            timer::request(at, me);
        }
    }

    /// Who has to be woken, now that the state has changed.
    fn todo(&self, state: &mut State) -> Todo {
        state.news = state.machine.has_results();
        let wake_executor = self.inbox.is_asleep() && has_work(state);
        if wake_executor {
            self.inbox.set_asleep(false);
            state.wake_ups += 1;
        }
        let wakes = |bit: u32, waiting: u32| waiting > 0 && self.holds(state, bit);
        let wake_waiters = wakes(abi::RESULTS, state.waiting[0]) || wakes(abi::ROOM, state.waiting[1]);
        let ready = !state.calling && state.armed.as_ref().is_some_and(|armed| self.holds(state, armed.condition));
        let call = if ready { state.armed.take() } else { None };
        state.calling |= call.is_some();
        Todo { wake_executor, wake_waiters, call }
    }

    /// Whether a condition of `wait` and `arm` holds.
    fn holds(&self, state: &State, condition: u32) -> bool {
        let over = is_over(state);
        let stopping = state.machine.stopping().is_some();
        condition & abi::RESULTS != 0 && (over || state.news)
            || condition & abi::ROOM != 0 && (over || stopping || self.inbox.has_room())
            || condition & SPACE != 0 && (over || stopping || space(state) > 0)
    }

    fn act(&self, todo: Todo) {
        if todo.wake_executor {
            if let Some(executor) = self.executor.get() {
                executor.wake();
            }
        }
        if todo.wake_waiters {
            self.changed.notify_all();
        }
        if let Some(armed) = todo.call {
            // SAFETY: the host promises that the function may be called from any thread until disarm has returned, and
            // disarm waits for `calling`.
            unsafe { (armed.function)(armed.data) };
            let mut state = self.lock();
            state.calling = false;
            // A request that was made while the former one was being answered.
            let todo = self.todo(&mut state);
            drop(state);
            self.changed.notify_all();
            if todo.call.is_some() || todo.wake_executor {
                self.act(todo);
            }
        }
    }
}

fn hand_over(machine: &mut Machine<Arc<Batch>, Value>, arrived: &mut Vec<Sent<Batch>>) {
    for Sent { at, first_id, size, batch } in arrived.drain(..) {
        let taken = machine.accept(at, first_id, size.rows, size.bytes, Arc::new(batch));
        taken.expect("the machine takes what the inbox has taken: it holds no more, and stops no sooner");
    }
}

/// Whether the executor has something to do. Drops cancellations that it could not carry out.
fn has_work(state: &mut State) -> bool {
    let machine = &mut state.machine;
    if !state.interrupts {
        machine.take_cancellations(&mut Vec::new());
    }
    machine.can_start() || machine.has_cancellations() || machine.has_stuck() || machine.is_settled() && state.closed.is_none()
}

/// Whether nothing more will happen but drains.
fn is_over(state: &State) -> bool {
    state.closed.is_some() || state.stuck || state.machine.poisoned().is_some()
}

fn space(state: &State) -> u64 {
    let (counts, settings) = (state.machine.counts(), state.machine.settings());
    // What fills the attempts that may still begin, and one attempt's rows that wait.
    let free = u64::from(settings.allowed_in_flight).saturating_sub(counts.running - counts.stuck);
    let rows = settings.gather.map_or(1, |gather| gather.rows);
    let aside = MOST_ASIDE.saturating_sub(counts.held + counts.backing_off);
    (free + 1).saturating_mul(rows).saturating_sub(counts.queued).min(aside)
}

impl Ticking for Runtime {
    fn tick(&self, now: u64) -> Option<u64> {
        let mut state = self.lock();
        if state.timer_at.is_none_or(|at| at > now) {
            return None; // an earlier request than this one has been made since, and served
        }
        let now = state.not_back(now);
        self.between_sends(&mut state, |machine| machine.tick(now));
        state.timer_at = state.machine.next_deadline();
        let next = state.timer_at;
        let poisoned = state.machine.poisoned().is_some();
        let todo = self.todo(&mut state);
        let stuck_for_good = state.machine.is_stuck();
        drop(state);
        if poisoned || stuck_for_good {
            self.changed.notify_all(); // for a stop that waits
        }
        self.act(todo);
        next
    }
}
