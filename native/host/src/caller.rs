//! One runtime for many tasks: each sends batches, and gets the values of its own.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use arrow_array::{Array, ArrayRef};
use arrow_select::concat::concat;

use crate::error::broken;
use crate::{Batch, Condition, Drained, Error, ErrorKind, Function, Options, Order, Result, Rows, Runtime, Sent};

/// Calls an async function from any number of tasks, on any executor of futures.
///
/// Back-pressure holds: a call waits until the function has room for its batch. A call that is dropped cancels its rows.
pub struct Caller {
    runtime: Runtime,
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    next_id: u64,
    /// By the id of its first row.
    open: BTreeMap<u64, Call>,
}

/// A batch that was accepted.
struct Call {
    /// The id after that of its last row.
    end: u64,
    /// Rows that have not come out.
    left: usize,
    /// Those that have, in their order.
    parts: Vec<Rows>,
    waker: Option<Waker>,
}

impl Caller {
    /// Starts the function. Its results are ordered, whatever the options say.
    pub fn start(function: &Function, options: &Options) -> Result<Caller> {
        let options = Options { order: Some(Order::Ordered), ..options.clone() };
        Ok(Caller { runtime: function.start(&options)?, calls: Mutex::default() })
    }

    /// What is called.
    pub fn function(&self) -> &Function {
        self.runtime.function()
    }

    /// The results of a batch's rows, in their order, in one or more parts.
    pub async fn call(&self, batch: Batch) -> Result<Vec<Rows>> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let (rows, mut offered) = (batch.len(), Some(batch));
        let first_id = poll_fn(|context| self.poll_send(&mut offered, context)).await?;
        let call = OpenCall { caller: self, first_id, rows };
        poll_fn(|context| self.poll_results(call.first_id, context)).await
    }

    /// One value for each row; else the error of the first row that has none.
    pub async fn values(&self, batch: Batch) -> Result<ArrayRef> {
        let parts = self.call(batch).await?;
        self.joined(parts.into_iter().map(Rows::into_values).collect::<Result<_>>()?)
    }

    /// One value for each row, which is null for rows that failed.
    pub async fn values_or_null(&self, batch: Batch) -> Result<ArrayRef> {
        let parts = self.call(batch).await?;
        self.joined(parts.iter().map(|rows| rows.values().clone()).collect())
    }

    fn joined(&self, parts: Vec<ArrayRef>) -> Result<ArrayRef> {
        match parts.as_slice() {
            [] => Ok(arrow_array::new_empty_array(self.function().returns()?.data_type())),
            [all] => Ok(all.clone()),
            more => {
                let more: Vec<&dyn Array> = more.iter().map(AsRef::as_ref).collect();
                concat(&more).map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))
            }
        }
    }

    fn poll_send(&self, offered: &mut Option<Batch>, context: &mut Context<'_>) -> Poll<Result<u64>> {
        loop {
            let batch = offered.take().expect("a batch that was not accepted is offered again");
            let rows = batch.len();
            let mut calls = self.calls();
            let first_id = calls.next_id;
            match self.runtime.send(first_id, batch) {
                Err(error) => return Poll::Ready(Err(error)),
                Ok(Sent::Accepted) => {
                    calls.next_id += rows as u64;
                    let end = calls.next_id;
                    calls.open.insert(first_id, Call { end, left: rows, parts: Vec::new(), waker: None });
                    return Poll::Ready(Ok(first_id));
                }
                Ok(Sent::Full(batch)) => *offered = Some(batch),
            }
            // Results take room too, also those of others, whose tasks may be slow.
            let drained = self.drain(&mut calls);
            drop(calls);
            if !drained? {
                match self.runtime.poll_ready(Condition::ResultsOrRoom, context) {
                    Poll::Ready(ready) => ready?,
                    Poll::Pending => return Poll::Pending,
                }
            }
        }
    }

    fn poll_results(&self, first_id: u64, context: &mut Context<'_>) -> Poll<Result<Vec<Rows>>> {
        loop {
            let mut calls = self.calls();
            let drained = self.drain(&mut calls);
            let call = calls.open.get_mut(&first_id).expect("a call is open until its future ends");
            if call.left == 0 {
                return Poll::Ready(Ok(std::mem::take(&mut call.parts)));
            }
            if self.runtime.held() == 0 {
                drained?;
                return Poll::Ready(Err(broken(self.function().name(), "a row that was accepted has not come out")));
            }
            // Another task may drain these rows.
            call.waker = Some(context.waker().clone());
            drop(calls);
            if !drained? {
                match self.runtime.poll_ready(Condition::Results, context) {
                    Poll::Ready(ready) => ready?,
                    Poll::Pending => return Poll::Pending,
                }
            }
        }
    }

    /// Gives rows that have ended to their calls. False: there were none.
    fn drain(&self, calls: &mut Calls) -> Result<bool> {
        let mut found = false;
        loop {
            let rows = match self.runtime.drain(0)? {
                Drained::Rows(results) => results.into_rows()?,
                Drained::NoneYet => return Ok(found),
                Drained::End => return Err(Error::new(ErrorKind::InvalidState, "the runtime has stopped")),
            };
            found = true;
            calls.give(self.function().name(), &rows)?;
        }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Calls {
    /// Rows come out in the order of their ids, so those of a call stand together.
    fn give(&mut self, function: &str, rows: &Rows) -> Result<()> {
        let ids = rows.ids().ok_or_else(|| broken(function, "results of an async function have no ids"))?;
        let (ids, mut first) = (ids.values(), 0);
        while first < ids.len() {
            let call = self.open.range_mut(..=ids[first]).next_back().map(|(_, call)| call);
            let Some(call) = call.filter(|call| ids[first] < call.end) else {
                if ids[first] >= self.next_id {
                    return Err(broken(function, &format!("it answered row {}, which was not sent", ids[first])));
                }
                first += 1; // of a call that was dropped
                continue;
            };
            let n_rows = ids[first..].iter().take_while(|id| **id < call.end).count();
            if n_rows > call.left {
                return Err(broken(function, &format!("it answered row {} twice", ids[first])));
            }
            call.parts.push(rows.slice(first, n_rows));
            call.left -= n_rows;
            if let Some(waker) = call.waker.take_if(|_| call.left == 0) {
                waker.wake();
            }
            first += n_rows;
        }
        Ok(())
    }
}

/// Ends a call with its future: one that is dropped cancels its rows, which come out for nobody.
struct OpenCall<'a> {
    caller: &'a Caller,
    first_id: u64,
    rows: usize,
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        let call = self.caller.calls().open.remove(&self.first_id);
        if call.is_some_and(|call| call.left > 0) {
            // A runtime that has failed has no rows to cancel.
            let _ = self.caller.runtime.cancel(self.first_id, self.rows as u64);
        }
    }
}
