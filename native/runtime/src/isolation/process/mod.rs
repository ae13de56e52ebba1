//! Workers that are processes: a plugin's functions run in them, and a crash costs the row in hand.
//!
//! | module     | what it is for                                                                          |
//! |------------|-----------------------------------------------------------------------------------------|
//! | `memory`   | memory that two processes share                                                         |
//! | `mailbox`  | one message at a time through such memory, and the bell that wakes the other process    |
//! | `lane`     | a mailbox in each direction, and how the other process gets it                          |
//! | `message`  | what the first byte of a message says                                                   |
//! | `parcel`   | Arrow arrays in a message                                                               |
//! | `record`   | how a row ended, in a message                                                           |
//! | [`journal`]| how each row of a batch ended, before the next one begins                               |
//! | [`child`]  | a process, how it starts and ends                                                       |
//! | `worker`   | the host's side of a worker                                                             |
//! | `place`    | the place of a worker: restarts it                                                      |
//! | `call`     | a call of a sync function: rows in the workers of places                                |
//! | `executor` | a runtime of the host whose calls run in one worker                                     |
//! | `attempts` | what the two say to each other                                                          |
//! | [`serve`]  | the worker's side: its life                                                             |
//! | `plugin`   | the worker's side: the plugin, called for batches                                       |
//! | `started`  | the worker's side of a started function                                                 |
//!
//! Guarantees: each row is called at most once. What a worker has written is copied before it is checked, and checked before
//! it is used. A worker never outlives its host, also if the host is killed (`serve`). In a process that was forked from the
//! host, calls answer INVALID_STATE (R13).
//!
//! Death. Functions called row by row write each row's end into shared memory before the next row begins. So the row in hand
//! is the one after those: it is the error, with what the process's end says, and later rows run in the next worker. What a
//! vectorised function returns is there at once or not at all: it loses its batch. A worker that takes longer than the
//! function's timeout is killed, which is such a death: the row in hand has timed out.

mod attempts;
mod call;
pub mod child;
mod executor;
pub mod journal;
mod lane;
mod mailbox;
mod memory;
mod message;
mod parcel;
mod place;
mod plugin;
mod record;
pub mod serve;
pub mod started;
mod worker;

pub use message::Limits;
pub use worker::{Interrupted, Spec, Stopped};

use super::{shares, Instance};
use crate::arrow::{build_with_room, check_rows, Batch, NoRoom};
use crate::exports::Ran;
use crate::failure::Failure;
use crate::machine::Stop;
use crate::results;
use crate::runtime::Runtime;
use crate::signature::Signature;
use crate::sync::Unpoisoned;
use crate::value::Value;
use call::{Call, NoResults, Share};
use place::{Seat, Seated};
use std::cell::RefCell;
use std::ops::Range;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};
use worker::Worker;

/// How long runtimes may take to end when the plugin is closed; one whose worker hangs takes [`GRACE`] more. Then workers are
/// killed.
const STOP_TIME: Duration = Duration::from_millis(300);
/// How long workers may take to end after that.
const LEAVE_TIME: Duration = Duration::from_millis(500);

thread_local! {
    /// The instances with a sync call in this thread. While it waits, a handler of a signal may call that instance again.
    static CALLED: RefCell<Vec<*const Processes>> = const { RefCell::new(Vec::new()) };
}

/// A sync call in this thread.
struct CallHere;

impl CallHere {
    fn of(instance: &Processes) -> CallHere {
        CALLED.with_borrow_mut(|called| called.push(instance));
        CallHere
    }
}

impl Drop for CallHere {
    fn drop(&mut self) {
        CALLED.with_borrow_mut(Vec::pop);
    }
}

/// A plugin whose functions run in worker processes.
pub struct Processes {
    spec: Arc<Spec>,
    seats: Vec<Arc<Seat>>,
    /// That its functions serve.
    runtimes: Mutex<Vec<Weak<Runtime>>>,
}

impl Processes {
    /// Workers start when they are first needed.
    pub fn new(spec: Spec, workers: usize) -> Processes {
        let spec = Arc::new(spec);
        let seats = (0..workers.max(1)).map(|_| Arc::new(Seat::new(Arc::clone(&spec)))).collect();
        Processes { spec, seats, runtimes: Mutex::default() }
    }

    /// The places for so many shares: those that are free; if none is, the one that fewest wait for.
    fn seats(&self, wanted: usize, name: &str) -> Result<Vec<Seated<'_>>, Failure> {
        let mut seats: Vec<_> = self.seats.iter().filter_map(|seat| seat.try_take()).take(wanted).collect();
        if seats.is_empty() {
            self.check_thread(name)?;
            let fewest = self.seats.iter().min_by_key(|seat| seat.waiting());
            let taken = fewest.map(|seat| seat.take_unless(|| self.spec.stopped())).transpose();
            seats.extend(taken.map_err(|why| why.failure(name))?);
        }
        Ok(seats)
    }

    /// Whether a sync call waits in this thread, which uses places.
    fn is_called_here(&self) -> bool {
        CALLED.with_borrow(|called| called.contains(&(self as *const Processes)))
    }

    /// Refuses to wait for a call that could go on only after the wait.
    fn check_thread(&self, name: &str) -> Result<(), Failure> {
        if !self.is_called_here() {
            return Ok(());
        }
        let text = "a call of this plugin waits in this thread, and this one would wait for it: make it in another thread";
        Err(Failure::state(format!("{name}: {text}")))
    }

    /// Whether this process may use the workers.
    fn is_here(&self) -> bool {
        std::process::id() == self.spec.host()
    }

    fn check_process(&self, name: &str) -> Result<(), Failure> {
        if self.is_here() {
            return Ok(());
        }
        Err(Failure::state(format!("{name}: this process was forked from the one that opened the plugin: load the plugin here")))
    }
}

impl Instance for Processes {
    fn run(&self, function: u32, signature: &'static Signature, batch: &Arc<Batch>) -> Result<Ran, Failure> {
        self.check_process(&signature.name)?;
        let call = Call { function, signature, batch, timeout: signature.run_timeout };
        let (good, mut failed) = readable(signature, batch);
        let wanted = if signature.vectorized { 1 } else { shares::worth_waking(batch.rows(), self.seats.len()) };
        let mut seats = self.seats(wanted, &signature.name)?;
        let _here = CallHere::of(self);
        let mut values = vec![Value::Null; batch.rows()];
        let mut late = Vec::new();
        let mut none_called = true;
        for rows in good {
            let mut shares: Vec<Share> = shares::cut(rows, seats.len()).into_iter().map(Share::new).collect();
            match call.run(&mut seats, &mut shares) {
                Ok(None) => {}
                Ok(Some(ran)) => return Ok(ran),
                Err(NoResults::Stopped(why)) => return Err(why.failure(&signature.name)),
                Err(NoResults::NotCalled(failure)) if none_called => return Err(failure),
                Err(NoResults::NotCalled(failure)) => shares.iter_mut().for_each(|share| share.fail(&failure.text)),
            }
            none_called = false;
            for share in shares {
                let first = share.first();
                share.values.into_iter().enumerate().for_each(|(i, value)| values[first + i] = value);
                failed.extend(share.failed);
                late.extend(share.late);
            }
        }
        let (column, without_room) = build_with_room(&signature.returns, values.iter());
        failed.extend(NoRoom::errors(without_room));
        failed.sort_unstable_by_key(|(row, _)| *row);
        let (results, with_outcomes) = results::ran_with_late(&signature.name, column.export(), &failed, &late);
        Ok(Ran { results, with_outcomes })
    }

    fn start(&self, function: u32, runtime: &Arc<Runtime>) -> Result<(), Failure> {
        self.check_process(&runtime.signature().name)?;
        self.check_thread(&runtime.signature().name)?;
        let mut runtimes = self.runtimes.lock().unpoisoned();
        runtimes.retain(|runtime| runtime.strong_count() > 0);
        runtimes.push(Arc::downgrade(runtime));
        drop(runtimes);
        executor::start(&self.seats, self.spec.interrupted(), function, runtime)
    }

    /// Within two seconds, whatever workers do.
    fn close(&self) {
        if !self.is_here() {
            return;
        }
        self.spec.close(); // whoever waits in a place leaves it
        let runtimes: Vec<_> = self.runtimes.lock().unpoisoned().iter().filter_map(Weak::upgrade).collect();
        runtimes.iter().for_each(|runtime| runtime.stop_soon(Stop::Cancel));
        if self.is_called_here() {
            return; // a handler of a signal: that call ends next, and the workers leave when the instance is dropped
        }
        let until = Instant::now() + STOP_TIME;
        for runtime in &runtimes {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break; // their workers end now, and so do they
            }
            drop(runtime.stop(Stop::Cancel, left)); // only a host that still drains could use the status
        }
        let workers = self.seats.iter().filter_map(|seat| seat.take().close()).collect();
        Worker::leave(workers, Instant::now() + LEAVE_TIME);
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        if self.is_here() {
            self.close();
        } else {
            std::mem::take(&mut self.seats).into_iter().for_each(std::mem::forget);
            // the workers are the parent's
        }
    }
}

/// The rows whose offsets can be followed, in ranges, and the errors of the others.
fn readable(signature: &Signature, batch: &Batch) -> (Vec<Range<usize>>, Vec<(usize, String)>) {
    // SAFETY: the batch was checked when it was taken, against the types of this schema.
    let check = |rows: Range<usize>| unsafe { check_rows(batch.array(), signature.argument_schema, rows, false) };
    let all = 0..batch.rows();
    let Err(text) = check(all.clone()) else { return (vec![all], Vec::new()) };
    if signature.vectorized {
        return (Vec::new(), all.map(|row| (row, text.clone())).collect());
    }
    let (mut good, mut bad): (Vec<Range<usize>>, Vec<(usize, String)>) = (Vec::new(), Vec::new());
    for row in all {
        match (check(row..row + 1), good.last_mut()) {
            (Err(text), _) => bad.push((row, text)),
            (Ok(()), Some(last)) if last.end == row => last.end += 1,
            (Ok(()), _) => good.push(row..row + 1),
        }
    }
    (good, bad)
}
