//! `__send`: a future that hands over one row.
//!
//! It is pending only while the runtime is full: the allowed rows run and one more waits. It is woken when there is room,
//! once per turn of the executor. The call takes over the arguments, so a future that is never polled releases them when it
//! is dropped.
//!
//! The host's functions (a waker's clone, wake and drop) are called with no lock held.

use super::arguments;
use super::layout::{Arrays, Future, Handle, OwnedWaker, Poll, PollContext};
use super::on_error::report;
use super::started::Started;
use crate::arrow::ArgumentArray;
use crate::panics::catch_own;
use crate::retired;
use crate::runtime::{NotTaken, SPACE};
use std::ffi::c_void;
use std::sync::Arc;

/// A row that is being sent.
struct Sending {
    /// None: the handle is not valid.
    to: Option<Arc<Started>>,
    id: u64,
    /// None: refused, or handed over.
    batch: Option<ArgumentArray>,
}

/// # Safety
/// `handle` came from `start` and was not stopped; `arrays` is what the host passed.
pub unsafe extern "C" fn send(handle: Handle, id: u64, arrays: Arrays) -> Future {
    // SAFETY: as promised.
    let to = unsafe { Started::share(handle) };
    let batch = catch_own(|| {
        let Some(started) = &to else {
            // SAFETY: as promised; without a signature they are not read.
            unsafe { arrays.take() }.into_iter().for_each(|array| retired::LIBRARY.add(array.untyped()));
            return None;
        };
        // SAFETY: as promised.
        match unsafe { arguments::batch(started.signature, arrays) } {
            Ok(batch) if batch.rows() == 1 => Some(batch),
            Ok(batch) => {
                started.die(&format!("{}: a call has one row, but {} were passed", started.signature.name, batch.rows()));
                None
            }
            Err(text) => {
                started.die(&format!("{}: {text}", started.signature.name));
                None
            }
        }
    });
    let batch = batch.unwrap_or_else(|text| {
        report(&text);
        None
    });
    retired::LIBRARY.sweep();
    Future { state: Box::into_raw(Box::new(Sending { to, id, batch })).cast(), poll, drop: drop_future }
}

unsafe extern "C" fn poll(state: *mut c_void, context: *mut PollContext) -> Poll {
    // SAFETY: the state is the box of `send`, and polls do not overlap.
    let sending = unsafe { &mut *state.cast::<Sending>() };
    // SAFETY: the host's context is valid during this call.
    let answer = catch_own(|| unsafe { sending.poll(context) });
    retired::LIBRARY.sweep();
    match answer {
        Ok(Some(accepted)) => Poll { tag: Poll::READY, accepted },
        Ok(None) => Poll { tag: Poll::PENDING, accepted: false },
        Err(text) => {
            report(&text);
            Poll { tag: Poll::PANICKED, accepted: false }
        }
    }
}

unsafe extern "C" fn drop_future(state: *mut c_void) {
    // SAFETY: the box of `send`, given back.
    let sending = unsafe { Box::from_raw(state.cast::<Sending>()) };
    let dropped = catch_own(|| {
        let waker = sending.to.as_ref().and_then(|started| started.let_wait(state as usize, None));
        drop(waker);
        drop(sending);
    });
    retired::LIBRARY.sweep();
    drop(dropped);
}

impl Sending {
    /// Whether the row was accepted; None: pending.
    ///
    /// # Safety
    /// `context` was passed to the poll that runs now.
    unsafe fn poll(&mut self, context: *const PollContext) -> Option<bool> {
        let here = &raw const *self as usize;
        let Some(started) = &self.to else { return Some(false) };
        let (Some(runtime), Some(batch)) = (&started.runtime, self.batch.take()) else { return Some(false) };
        loop {
            if started.is_dead() {
                return Some(false);
            }
            if started.take_space(runtime) {
                break;
            }
            // SAFETY: as promised.
            let waker = unsafe { OwnedWaker::of(context) };
            drop(started.let_wait(here, Some(waker)));
            // SAFETY (of the call of `wake` later): `stop` disarms before it frees what the pointer points to.
            if !runtime.arm(SPACE, wake, Arc::as_ptr(started).cast_mut().cast()) {
                self.batch = Some(batch);
                return None;
            }
            drop(started.let_wait(here, None));
        }
        match runtime.send(started.number(self.id), batch) {
            Ok(()) => Some(true),
            Err(NotTaken { batch, failure }) => {
                drop(batch);
                if let Some(failure) = failure.filter(|_| !runtime.is_poisoned()) {
                    started.die(&failure.text);
                }
                Some(false)
            }
        }
    }
}

/// There is room. The runtime calls it, in any thread, with no lock held.
unsafe extern "C" fn wake(started: *mut c_void) {
    // SAFETY: the request was made with a pointer to `Started`, which lives until the request is taken back.
    let started = unsafe { &*started.cast::<Started>() };
    started.take_waiting().into_iter().for_each(|(_, waker)| waker.wake());
}
