//! Started async functions.

use std::ffi::{c_char, c_void, CStr};
use std::future::{poll_fn, Future};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use arroyo_udf_abi as abi;

use crate::described::Types;
use crate::{error, Batch, BatchContext, Function, Options, Result, Results};

/// What a host can wait for. Both hold once a runtime has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// [`Runtime::drain`] has something to say.
    Results,
    /// [`Runtime::send`] accepts a batch.
    Room,
    /// Either.
    ResultsOrRoom,
}

impl Condition {
    fn bits(self) -> u32 {
        match self {
            Condition::Results => abi::RESULTS,
            Condition::Room => abi::ROOM,
            Condition::ResultsOrRoom => abi::RESULTS | abi::ROOM,
        }
    }
}

/// What a stop does with rows that have not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopMode {
    /// Lets them end, and cancels the rest at the deadline.
    Drain,
    /// Cancels them now.
    Cancel,
}

/// How a stop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// All attempts have ended, and the Context is closed.
    Clean,
    /// An attempt ignores its cancellation. Memory that it may use stays allocated, and the Context is not closed.
    Stuck,
}

/// What became of a batch.
#[must_use = "a batch that was not accepted is to be sent again"]
pub enum Sent {
    /// Each of its rows will come out of [`Runtime::drain`] once.
    Accepted,
    /// There is no room: here it is again.
    Full(Batch),
}

/// What a drain found.
pub enum Drained {
    /// Rows that have ended.
    Rows(Results),
    /// None yet.
    NoneYet,
    /// The runtime has stopped, and every accepted row has come out.
    End,
}

/// A started async function. Any thread may call. It is stopped (rows are cancelled) and released when it is dropped.
pub struct Runtime {
    function: Function,
    types: Types,
    handle: abi::Handle,
    ledger: Ledger,
    waiting: Arc<Waiting>,
    log: Mutex<Option<Box<LogFunction>>>,
}

type LogFunction = Box<dyn Fn(&str) + Send + Sync>;

impl Function {
    /// Starts an async function. Waits until the init of its Context has returned.
    pub fn start(&self, options: &Options) -> Result<Runtime> {
        let types = self.described.types()?;
        let ((table, number), mut handle, options) = (self.place(), 0, options.raw());
        // SAFETY: the contract of `start`; all pointers are to locals.
        error::check(self.name(), &[abi::OK], |error| unsafe { ((*table.0).start)(number, &options, &mut handle, error) })?;
        if handle == 0 {
            return Err(error::broken(self.name(), "it answered no handle"));
        }
        Ok(Runtime { function: self.clone(), types, handle, ledger: Ledger::default(), waiting: Arc::default(), log: Mutex::new(None) })
    }
}

impl Runtime {
    /// What was started.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// Offers a batch, whose rows get the ids `first_id`, `first_id + 1`, ... Never waits. Ids rise from send to send.
    pub fn send(&self, first_id: u64, batch: Batch) -> Result<Sent> {
        self.send_with(first_id, batch, &BatchContext::default())
    }

    /// The same, with what is true of the batch's rows.
    pub fn send_with(&self, first_id: u64, mut batch: Batch, context: &BatchContext) -> Result<Sent> {
        batch.check_types(self.types, self.name())?;
        let n_rows = batch.len() as u64;
        self.ledger.offered.fetch_add(n_rows, Ordering::Relaxed);
        let status = context.with(batch.len(), 0, |context| {
            error::check(self.name(), &[abi::OK, abi::WOULD_BLOCK], |error| {
                // SAFETY: the contract of `send`: the batch has the function's types. On OK the plugin has taken it, and
                // its `release` is NULL.
                unsafe { ((*self.table()).send)(self.handle, first_id, batch.raw_mut(), context, error) }
            })
        });
        let is_accepted = matches!(status, Ok(abi::OK));
        let counter = if is_accepted { &self.ledger.accepted } else { &self.ledger.refused };
        counter.fetch_add(n_rows, Ordering::Relaxed);
        status?;
        if !is_accepted {
            return Ok(Sent::Full(batch));
        }
        batch.taken(self.name())?;
        Ok(Sent::Accepted)
    }

    /// Up to `max_rows` rows that have ended; 0: any number. Never waits.
    pub fn drain(&self, max_rows: u64) -> Result<Drained> {
        let mut results = Results::none(&self.function.described);
        let status = error::check(self.name(), &[abi::OK, abi::WOULD_BLOCK, abi::END], |error| {
            let (rows, schema) = results.places();
            // SAFETY: the contract of `drain_results`; all pointers are to locals.
            unsafe { ((*self.table()).drain_results)(self.handle, max_rows, rows, schema, error) }
        })?;
        match status {
            abi::OK => {
                let results = results.checked()?;
                let n_rows = results.len() as u64;
                let drained = self.ledger.drained.fetch_add(n_rows, Ordering::Relaxed) + n_rows;
                if n_rows == 0 || drained > self.ledger.in_hand() {
                    return Err(error::broken(self.name(), &format!("it answered {n_rows} rows where there are none")));
                }
                Ok(Drained::Rows(results))
            }
            abi::END => Ok(Drained::End),
            _ => Ok(Drained::NoneYet),
        }
    }

    /// Sleeps until the condition holds. False: it did not within this time.
    pub fn wait(&self, condition: Condition, timeout: Duration) -> Result<bool> {
        let timeout = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        // SAFETY: the contract of `wait`.
        let status = error::check(self.name(), &[abi::OK, abi::WOULD_BLOCK], |error| unsafe {
            ((*self.table()).wait)(self.handle, condition.bits(), timeout, error)
        })?;
        Ok(status == abi::OK)
    }

    /// Until the condition holds; for any executor of futures.
    pub fn ready(&self, condition: Condition) -> impl Future<Output = Result<()>> + Send + '_ {
        poll_fn(move |context| self.poll_ready(condition, context))
    }

    /// The same, for futures that are written by hand. Any number of tasks may wait at once.
    pub fn poll_ready(&self, condition: Condition, context: &mut Context<'_>) -> Poll<Result<()>> {
        match self.wait(condition, Duration::ZERO) {
            Ok(false) => {}
            Ok(true) => return Poll::Ready(Ok(())),
            Err(error) => return Poll::Ready(Err(error)),
        }
        // A plugin keeps one request for each runtime: it is for all that wait.
        let _arming = locked(&self.waiting.arming);
        let condition = self.waiting.add(condition.bits(), context.waker());
        let data = Arc::as_ptr(&self.waiting).cast_mut().cast::<c_void>();
        // SAFETY: the contract of `arm`: `data` lives until the drop of the runtime has withdrawn the request.
        match error::check(self.name(), &[abi::OK, abi::READY], |error| unsafe {
            ((*self.table()).arm)(self.handle, condition, Some(wake), data, error)
        }) {
            // It holds for one of them: each looks again.
            Ok(abi::READY) => self.waiting.wake(),
            Ok(_) => {}
            Err(error) => return Poll::Ready(Err(error)),
        }
        Poll::Pending
    }

    /// Cancels those of the rows `first_id ... first_id + rows - 1` that have not ended.
    pub fn cancel(&self, first_id: u64, rows: u64) -> Result<()> {
        // SAFETY: the contract of `cancel`.
        error::check(self.name(), &[abi::OK], |error| unsafe { ((*self.table()).cancel)(self.handle, first_id, rows, error) }).map(drop)
    }

    /// Counters since the start: see `arroyo_udf_statistics`.
    pub fn statistics(&self) -> Result<abi::Statistics> {
        let mut statistics = abi::Statistics { size: size_of::<abi::Statistics>() as u64, ..Default::default() };
        // SAFETY: the contract of `statistics`.
        error::check(self.name(), &[abi::OK], |error| unsafe { ((*self.table()).statistics)(self.handle, &mut statistics, error) })?;
        Ok(statistics)
    }

    /// Takes reports of what belongs to no row: stuck calls, a blocked event loop. Called from any thread; it must be short,
    /// and must not use the runtime.
    pub fn set_log(&self, write: impl Fn(&str) + Send + Sync + 'static) -> Result<()> {
        let new: Box<LogFunction> = Box::new(Box::new(write));
        let data = std::ptr::from_ref::<LogFunction>(&new).cast_mut().cast();
        let log = abi::Log { size: size_of::<abi::Log>() as u64, write: Some(write_log), data };
        let mut current = locked(&self.log);
        // SAFETY: the contract of `set_log`: the former log is not used after it returns, and `data` lives until the next
        // one, or until the drop of the runtime has released the handle.
        error::check(self.name(), &[abi::OK], |error| unsafe { ((*self.table()).set_log)(self.handle, &log, error) })?;
        *current = Some(new);
        Ok(())
    }

    /// Stops it within the deadline and one second. Rows that are left come out of [`Runtime::drain`], until its end.
    pub fn stop(&self, mode: StopMode, deadline: Duration) -> Result<Stopped> {
        let mode = match mode {
            StopMode::Drain => abi::DRAIN,
            StopMode::Cancel => abi::CANCEL,
        };
        let deadline = u64::try_from(deadline.as_nanos()).unwrap_or(u64::MAX);
        // SAFETY: the contract of `stop_runtime`.
        let status = error::check(self.name(), &[abi::OK, abi::STUCK], |error| unsafe {
            ((*self.table()).stop_runtime)(self.handle, mode, deadline, error)
        })?;
        Ok(if status == abi::STUCK { Stopped::Stuck } else { Stopped::Clean })
    }

    /// Ends it now, to learn whether its Context's close has failed.
    pub fn release(mut self) -> Result<Stopped> {
        let status = self.end()?;
        Ok(if status == abi::STUCK { Stopped::Stuck } else { Stopped::Clean })
    }

    fn end(&mut self) -> Result<abi::Status> {
        let handle = std::mem::take(&mut self.handle);
        if handle == 0 {
            return Ok(abi::OK);
        }
        // SAFETY: the contract of `disarm`: afterwards `wake` does not run, and its data is not used.
        let disarmed = error::check(self.name(), &[abi::OK], |error| unsafe { ((*self.table()).disarm)(handle, error) });
        if disarmed.is_err() {
            // The request may still be there, so its data stays.
            std::mem::forget(self.waiting.clone());
        }
        // SAFETY: the contract of `release`; the handle is not used again.
        error::check(self.name(), &[abi::OK, abi::STUCK], |error| unsafe { ((*self.table()).release)(handle, error) })
    }

    /// Accepted rows that have not been drained.
    pub fn held(&self) -> u64 {
        // In this order: a row that is drained has been accepted, or is about to be.
        let drained = self.ledger.drained.load(Ordering::Relaxed);
        self.ledger.accepted.load(Ordering::Relaxed).saturating_sub(drained)
    }

    fn name(&self) -> &'static str {
        self.function.name()
    }

    fn table(&self) -> *const abi::Table {
        self.function.place().0 .0
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // There is nobody to tell of a failure: `release` does.
        let _ = self.end();
    }
}

/// Rows, counted against a plugin that loses or invents some.
#[derive(Default)]
struct Ledger {
    /// Before a send, because another thread may drain the rows before the sender goes on.
    offered: AtomicU64,
    /// After a send; `refused` are those that were offered in vain.
    accepted: AtomicU64,
    refused: AtomicU64,
    drained: AtomicU64,
}

impl Ledger {
    /// Rows that were accepted, or are being offered.
    fn in_hand(&self) -> u64 {
        let refused = self.refused.load(Ordering::Relaxed);
        self.offered.load(Ordering::Relaxed) - refused
    }
}

/// Tasks that wait for a condition.
#[derive(Default)]
struct Waiting {
    /// Held while a request is put together and made, so that the last one made is for all. `wake` does not take it.
    arming: Mutex<()>,
    tasks: Mutex<Vec<(u32, Waker)>>,
}

impl Waiting {
    /// Returns the conditions for which all tasks wait.
    fn add(&self, condition: u32, waker: &Waker) -> u32 {
        let mut tasks = locked(&self.tasks);
        match tasks.iter_mut().find(|(_, other)| other.will_wake(waker)) {
            Some(task) => task.0 |= condition,
            None => tasks.push((condition, waker.clone())),
        }
        tasks.iter().fold(0, |all, (condition, _)| all | condition)
    }

    fn wake(&self) {
        // Woken without the lock: a waker may be anything.
        let tasks = std::mem::take(&mut *locked(&self.tasks));
        tasks.into_iter().for_each(|(_, waker)| waker.wake());
    }
}

unsafe extern "C" fn wake(data: *mut c_void) {
    // SAFETY: `data` is the Waiting of a runtime that has not been dropped.
    let waiting = unsafe { &*data.cast::<Waiting>() };
    // A waker that panics must not unwind into the plugin.
    let _ = catch_unwind(AssertUnwindSafe(|| waiting.wake()));
}

unsafe extern "C" fn write_log(data: *mut c_void, _level: u32, text: *const c_char) {
    // SAFETY: `data` is the function of a runtime that has not been released; the text is valid during the call.
    let (write, text) = unsafe { (&*data.cast::<LogFunction>(), CStr::from_ptr(text)) };
    let _ = catch_unwind(AssertUnwindSafe(|| write(&text.to_string_lossy())));
}

/// A panic in another thread leaves nothing half done here.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
