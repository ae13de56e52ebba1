//! `__start`, `__drain_results`, `__stop_runtime`: an async function as Arroyo calls it.
//!
//! Assumes that for one handle the host never overlaps send, poll, drain and stop; it may move them between threads.
//!
//! Guarantees: `start` and `stop` wait for nothing. A thread of ours waits for the Context and for user code, and rows are
//! accepted meanwhile. A runtime that has ended by itself (a failed row under [`OnError::Fail`], an init that failed, a
//! poisoning) answers as that host expects: rows that had a value come out first, then drains are `ERROR` and sends false.

use super::arguments;
use super::layout::{Array, Arrays, DrainResult, Handle, OwnedWaker};
use super::on_error::{report, OnError};
use crate::arrow::{build, Layout};
use crate::exports::Plugin;
use crate::failure::Failure;
use crate::handles;
use crate::machine::{Finished, Outcome, Stop};
use crate::options;
use crate::panics::catch_own;
use crate::results;
use crate::retired;
use crate::runtime::Runtime;
use crate::signature::{exported, field, Signature};
use crate::sync::Unpoisoned;
use crate::threads::{self, AUTHORS_STACK, OWN_STACK};
use crate::value::Value;
use arroyo_udf_abi as abi;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

/// The function that a handle stands for.
pub struct Started {
    pub signature: &'static Signature,
    /// None: the start was refused.
    pub runtime: Option<Arc<Runtime>>,
    /// The runtime's own handle, so that it is stopped before the process ends.
    handle: abi::Handle,
    on_error: OnError,
    /// No more results come out, and the reason has been reported.
    dead: AtomicBool,
    /// The wakers of sends that wait for space, each with the address of its state. That host has only one at a time.
    waiting: Mutex<Vec<(usize, OwnedWaker)>>,
    ids: Mutex<Ids>,
    /// Cached lower bound of `Runtime::space`; valid because there is one sender.
    space: AtomicU64,
}

/// The machine needs ids that rise; this host promises only numbers.
#[derive(Default)]
struct Ids {
    next: u64,
    /// The host's id by the machine's, where the two differ.
    given: HashMap<u64, u64>,
}

/// What the host asks for at a start.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    ordered: bool,
    timeout_micros: u64,
    allowed_in_flight: u32,
}

/// `__start` of function number `function`. Returns at once; a failure shows in the calls that follow.
pub extern "C" fn start<P: Plugin>(function: u32, on_error: OnError, ordered: bool, timeout_micros: u64, allowed_in_flight: u32) -> Handle {
    let wanted = Wanted { ordered, timeout_micros, allowed_in_flight };
    let started = catch_own(|| begin::<P>(function, on_error, wanted));
    match started {
        Ok(Ok(started)) => Handle(Arc::into_raw(started).cast_mut().cast()),
        Ok(Err(failure)) => refused(&failure.text),
        Err(text) => refused(&text),
    }
}

/// The handle of a function that cannot be started: the null handle, whose drains are errors.
fn refused(text: &str) -> Handle {
    report(text);
    Handle(std::ptr::null_mut())
}

fn begin<P: Plugin>(function: u32, on_error: OnError, wanted: Wanted) -> Result<Arc<Started>, Failure> {
    let signature = P::signature(function)?;
    handles::check_process()?;
    if wanted.allowed_in_flight == 0 {
        return Err(Failure::argument(format!("{}: allowed_in_flight is 0, and no row could ever run: give 1 or more", signature.name)));
    }
    let options = abi::Options {
        order: if wanted.ordered { abi::ORDERED } else { abi::UNORDERED },
        allowed_in_flight: wanted.allowed_in_flight,
        timeout_ns: wanted.timeout_micros.saturating_mul(1_000).max(1),
        // `Runtime::space` limits this host; rows that wait for a drain never hold it back.
        max_rows: u64::MAX,
        max_bytes: u64::MAX,
        ..abi::Options::unset()
    };
    let runtime = Runtime::new(signature, options::choose(&options, &signature.options, &signature.name)?)?;
    let handle = handles::insert(Arc::clone(&runtime))?;
    let started = Arc::new(Started {
        signature,
        runtime: Some(Arc::clone(&runtime)),
        handle,
        on_error,
        dead: AtomicBool::new(false),
        waiting: Mutex::new(Vec::new()),
        ids: Mutex::new(Ids::default()),
        space: AtomicU64::new(0),
    });
    let of_thread = Arc::clone(&started);
    let thread = threads::spawn("udf-start", AUTHORS_STACK, move || {
        let failure = match catch_own(|| P::start(function, &runtime)) {
            Ok(Ok(())) => return,
            Ok(Err(failure)) => failure.text,
            Err(text) => text,
        };
        of_thread.die(&failure);
        runtime.poison(&failure);
        runtime.has_no_executor();
    });
    match thread {
        Ok(_) => Ok(started),
        Err(error) => {
            drop(handles::remove(handle));
            Err(Failure::for_now(abi::ENVIRONMENT, format!("{}: no thread to start it: {error}", signature.name)))
        }
    }
}

impl Started {
    /// The function of a handle; None: the null handle.
    ///
    /// # Safety
    /// `handle` came from [`start`] and was not stopped.
    pub unsafe fn of<'a>(handle: Handle) -> Option<&'a Started> {
        // SAFETY: as promised, it is the pointer of an Arc that `stop_runtime` takes back.
        unsafe { handle.0.cast::<Started>().as_ref() }
    }

    /// As `of`, with a share of it.
    ///
    /// # Safety
    /// As `of`.
    pub unsafe fn share(handle: Handle) -> Option<Arc<Started>> {
        let pointer: *const Started = handle.0.cast();
        if pointer.is_null() {
            return None;
        }
        // SAFETY: as promised; the count grows by one for the Arc returned here.
        unsafe {
            Arc::increment_strong_count(pointer);
            Some(Arc::from_raw(pointer))
        }
    }

    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }

    /// Ends the results. Only the first reason is reported.
    pub fn die(&self, text: &str) {
        if !self.dead.swap(true, Ordering::AcqRel) {
            report(text);
        }
    }

    /// Takes the space of one row. False: there is none.
    pub fn take_space(&self, runtime: &Runtime) -> bool {
        let left = match self.space.load(Ordering::Relaxed) {
            0 => runtime.space(),
            known => known,
        };
        self.space.store(left.saturating_sub(1), Ordering::Relaxed);
        left > 0
    }

    /// Sets the waker of the send at this address. Returns the former one: a waker is the host's code, so it must be dropped
    /// with no lock held.
    pub fn let_wait(&self, send: usize, waker: Option<OwnedWaker>) -> Option<OwnedWaker> {
        let mut waiting = self.lock_waiting();
        let known = waiting.iter().position(|(address, _)| *address == send);
        let former = known.map(|known| waiting.swap_remove(known).1);
        waiting.extend(waker.map(|waker| (send, waker)));
        former
    }

    /// Takes the wakers of all sends that wait.
    pub fn take_waiting(&self) -> Vec<(usize, OwnedWaker)> {
        std::mem::take(&mut self.lock_waiting())
    }

    fn lock_waiting(&self) -> MutexGuard<'_, Vec<(usize, OwnedWaker)>> {
        self.waiting.lock().unpoisoned()
    }

    /// The machine's id for a row: the host's, if that rises and leaves room for others.
    pub fn number(&self, id: u64) -> u64 {
        let mut ids = self.lock_ids();
        let number = if id < u64::MAX / 2 { id.max(ids.next) } else { ids.next };
        ids.next = number + 1;
        if number != id {
            ids.given.insert(number, id);
        }
        number
    }

    fn lock_ids(&self) -> MutexGuard<'_, Ids> {
        self.ids.lock().unpoisoned()
    }

    /// The drained rows that may go out. Under [`OnError::Fail`] a failed row ends the runtime: ordered rows go out up to
    /// that row, of unordered rows all that have a value go out.
    fn let_out(&self, runtime: &Runtime, mut rows: Vec<Finished<Value>>) -> Vec<Finished<Value>> {
        let is_value = |row: &Finished<Value>| matches!(row.outcome, Outcome::Value(_));
        let settings = runtime.settings();
        if let Some(failed) = rows.iter().position(|row| !is_value(row)) {
            if self.on_error == OnError::Fail || runtime.is_poisoned() {
                let row = &rows[failed];
                let text = results::failure_text(row, &self.signature.name, &settings).unwrap_or_default();
                self.die(&text);
                runtime.stop_soon(Stop::Cancel);
                if settings.ordered {
                    rows.truncate(failed);
                } else {
                    rows.retain(is_value);
                }
            }
        }
        let mut ids = self.lock_ids();
        if !ids.given.is_empty() {
            rows.iter_mut().for_each(|row| row.id = ids.given.remove(&row.id).unwrap_or(row.id));
        }
        rows
    }

    fn drain(&self) -> DrainResult {
        let Some(runtime) = self.runtime.as_ref().filter(|_| !self.is_dead()) else {
            return DrainResult::without_data(DrainResult::ERROR);
        };
        let rows = match runtime.take(0) {
            Ok(rows) => self.let_out(runtime, rows),
            Err(over) => {
                if over {
                    self.die(&format!("{}: its runtime has ended", self.signature.name));
                }
                Vec::new()
            }
        };
        if rows.is_empty() {
            return DrainResult::without_data(if self.is_dead() { DrainResult::ERROR } else { DrainResult::NONE });
        }
        static IDS: OnceLock<abi::ArrowSchema> = OnceLock::new();
        let numbers: Vec<Value> = rows.iter().map(|row| Value::Fixed(row.id)).collect();
        let values = rows.iter().map(|row| if let Outcome::Value(value) = &row.outcome { value } else { &Value::Null });
        let columns = build(&Layout::Fixed(8), numbers.iter()).and_then(|ids| Ok((ids, build(&self.signature.returns, values)?)));
        let Ok((ids, values)) = columns.map_err(|no_room| self.die(&format!("{}: {no_room}", self.signature.name))) else {
            return DrainResult::without_data(DrainResult::ERROR);
        };
        DrainResult {
            tag: DrainResult::DATA,
            data: Arrays::new(vec![
                Array { array: ids.export(), schema: exported(IDS.get_or_init(|| field(c"", c"L", 0))) },
                Array { array: values.export(), schema: exported(self.signature.return_schema) },
            ]),
        }
    }

    /// Ends the runtime. A thread waits for calls that still run.
    fn stop(&self) {
        let Some(runtime) = self.runtime.clone() else { return };
        runtime.disarm();
        drop(self.take_waiting());
        runtime.stop_soon(Stop::Cancel);
        let (handle, dead) = (self.handle, self.is_dead());
        let waiter = Arc::clone(&runtime);
        let ended = threads::spawn("udf-stop", OWN_STACK, move || {
            if let (Err(failure), false) = (waiter.stop(Stop::Cancel, Duration::ZERO), dead) {
                report(&failure.text); // `close` failed, for example
            }
            drop(handles::remove(handle));
            // The host takes no more rows and makes no more calls, and its arrays may be released in any thread.
            waiter.discard();
            arguments::sweep();
        });
        if ended.is_err() {
            drop(handles::remove(handle)); // it ends, and nothing waits for it
        }
    }
}

/// # Safety
/// `handle` came from [`start`] and was not stopped; no other call with it runs.
pub unsafe extern "C" fn drain_results(handle: Handle) -> DrainResult {
    // SAFETY: as promised.
    let started = unsafe { Started::of(handle) };
    let answer = catch_own(|| started.map(Started::drain));
    retired::LIBRARY.sweep();
    match answer {
        Ok(Some(answer)) => answer,
        Ok(None) => DrainResult::without_data(DrainResult::ERROR),
        Err(text) => {
            if let Some(started) = started {
                started.die(&format!("{}: {text}", started.signature.name));
            }
            DrainResult::without_data(DrainResult::ERROR)
        }
    }
}

/// # Safety
/// As [`drain_results`]; the handle is not used again, and no future of it is alive.
pub unsafe extern "C" fn stop_runtime(handle: Handle) {
    let pointer: *const Started = handle.0.cast();
    if pointer.is_null() {
        return;
    }
    // SAFETY: the pointer of `start`'s Arc, given back.
    let started = unsafe { Arc::from_raw(pointer) };
    if let Err(text) = catch_own(|| started.stop()) {
        report(&format!("{}: {text}", started.signature.name));
    }
    retired::LIBRARY.sweep();
}
