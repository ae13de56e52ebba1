//! The executor of async functions in C: each started function has a thread, in which the author's four functions run, one
//! at a time: init, then calls and cancellations, then close.
//!
//! The author completes calls from any thread ([`crate::complete`]). A call that is not completed takes up its place, also
//! after its cancellation, until the machine finds it stuck (R8). If calls are open at the end, close is left out, because
//! they may use the Context (R13), and the memory that they use is kept until they are completed.
//!
//! Lost wake-ups: the thread sleeps only in `park`, which remembers one `unpark`, after [`Runtime::end_turn`].

use crate::declared::{Argument, Async, Call, Function};
use crate::started::{self, Started};
use arroyo_udf_plugin::abi;
use arroyo_udf_plugin::arrow::{Column, Layout, BAD_OFFSETS};
use arroyo_udf_plugin::call_info::key_of;
use arroyo_udf_plugin::failure::Failure;
use arroyo_udf_plugin::forks;
use arroyo_udf_plugin::limits::{init_took_too_long, INIT_TIME};
use arroyo_udf_plugin::machine::{Outcome, Stuck, Token};
use arroyo_udf_plugin::runtime::{self, After, Attempt, Orders, Runtime, Seat, TimeSlice, Turn};
use arroyo_udf_plugin::threads::{self, AUTHORS_STACK};
use arroyo_udf_plugin::value::Value;
use std::ffi::{c_char, c_void, CStr};
use std::ptr::{null, null_mut};
use std::sync::mpsc::{sync_channel, SyncSender};
use std::sync::Arc;
use std::thread::{self, Thread};

/// How long a turn may last, in nanoseconds, so that cancellations are delivered in between, even if calls are completed as soon
/// as they are made.
const TURN: u64 = 250_000;

/// The runtime's end of the thread. When the runtime is released, its tokens become stale.
struct CExecutor {
    number: u32,
    thread: Thread,
}

impl runtime::Executor for CExecutor {
    fn wake(&self) {
        self.thread.unpark();
    }
}

impl Drop for CExecutor {
    fn drop(&mut self) {
        started::leave(self.number);
    }
}

/// Starts the executor of `runtime`, and waits for the author's init.
pub fn start(function: &'static Function, runtime: &Arc<Runtime>) -> Result<(), Failure> {
    let name = &function.signature.name;
    let Some(body) = function.body else {
        return Err(Failure::new(abi::NOT_IMPLEMENTED, format!("{name}: not for this kind of function")));
    };
    if runtime.settings().gather.is_some() {
        return Err(Failure::argument(format!("{name}: a function in C takes rows one by one; leave .options.batch_size out")));
    }
    let started = started::enter(runtime);
    let number = started.number;
    // Without room, so that a send fails after the receiver has stopped waiting.
    let (opened, waiting) = sync_channel(0);
    let seat = Seat::take(runtime);
    let of_thread = seat.clone();
    let thread = threads::spawn("udf-c", AUTHORS_STACK, move || serve(body, started, of_thread, &opened)).map_err(|error| {
        started::leave(number);
        Failure::for_now(abi::ENVIRONMENT, format!("{name}: no thread for an async function: {error}"))
    })?;
    seat.serve(Box::new(CExecutor { number, thread: thread.thread().clone() }));
    let failed = |text: String| Failure::new(abi::USER_CODE, format!("{name}: start failed: {text}"));
    match waiting.recv_timeout(INIT_TIME) {
        Ok(opened) => opened.map_err(|text| failed(format!("init failed: {text}"))),
        Err(_) => Err(failed(init_took_too_long(INIT_TIME))),
    }
}

/// The thread's life.
fn serve(body: &Async, started: Arc<Started>, runtime: Seat, opened: &SyncSender<Result<(), String>>) {
    started.take_thread();
    let mut context = null_mut();
    // SAFETY: the author's init, called once with a place for the Context.
    let init = body.settings.init.map_or(Ok(()), |init| result(unsafe { init(&mut context) }));
    let is_open = init.is_ok();
    forks::end_stray(|| init.as_ref().err().map(|text| &**text));
    let is_awaited = opened.send(init).is_ok();
    if !is_open {
        return;
    }
    if is_awaited {
        let mut open = Open { body, started: &started, runtime: &runtime, context, slice: TimeSlice::new(TURN), arguments: Vec::new() };
        // After a panic, which is the toolkit's, calls are still open: their cancellations go on. After a second one nothing is
        // closed, and the runtime stays, because open calls use it.
        if runtime.guard(|| open.serve()).or_else(|| runtime.guard(|| open.serve())).is_none() {
            std::mem::forget((started, runtime));
            return;
        }
    }
    let is_used = runtime.is_given_up() || !started.calls().is_empty();
    let close = body.settings.close.filter(|_| !is_used);
    // SAFETY: the author's close, called once, after all calls.
    let closed = close.map_or(Ok(()), |close| result(unsafe { close(context) }));
    forks::end_stray(|| closed.as_ref().err().map(|text| &**text));
    runtime.closed(closed);
}

/// NULL is success, else the text of a failure.
fn result(text: *const c_char) -> Result<(), String> {
    if text.is_null() {
        return Ok(());
    }
    // SAFETY: the author's functions return NUL-terminated texts.
    Err(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// An open function, in its thread.
struct Open<'f> {
    body: &'f Async,
    started: &'f Started,
    runtime: &'f Seat,
    context: *mut c_void,
    slice: TimeSlice,
    /// The arguments of the call that is made now.
    arguments: Vec<Argument>,
}

impl Turn for Open<'_> {
    fn cancel(&mut self, attempt: Token) {
        let token = self.started.calls().cancel(attempt);
        if let (Some(token), Some(cancel)) = (token, self.body.settings.cancel) {
            // SAFETY: the author's cancel, in the thread that it is for.
            unsafe { cancel(self.context, token) };
        }
    }

    fn stuck(&mut self, attempt: &Stuck) {
        self.runtime.report_stuck(attempt.id, "; it has not been completed");
    }

    fn work(&mut self) {
        self.slice.begin();
        while self.slice.has_time() {
            let Some(attempt) = self.runtime.next() else { break };
            self.slice.count_row();
            self.call(&attempt);
        }
    }
}

impl Open<'_> {
    /// Calls and cancels until the runtime is settled.
    fn serve(&mut self) {
        let mut orders = Orders::default();
        loop {
            match self.runtime.turn(&mut orders, self) {
                After::Settled => return,
                After::Asleep => thread::park(),
                After::Again => {}
            }
        }
    }

    /// Calls the author's function for a row.
    fn call(&mut self, attempt: &Attempt) {
        match read(self.runtime, attempt, &mut self.arguments) {
            Ok(true) => {
                let call = Call {
                    token: self.started.calls().open(self.started.number, attempt),
                    row: attempt.id,
                    deadline_ns: attempt.deadline,
                    context: self.context,
                    attempt: attempt.attempt.into(),
                    reserved: 0,
                    lineage: self.runtime.lineage(),
                    trace_parent: attempt
                        .batch
                        .context()
                        .and_then(|context| context.trace_parent.as_ref())
                        .map_or(null(), |it| it.as_ptr()),
                    idempotency_key: key_of(self.runtime.lineage(), attempt.id, &attempt.batch, attempt.row),
                };
                // SAFETY: the author's function, with an argument for each that it has declared; the batch that texts and
                // the trace parent point into is kept until the call is completed.
                unsafe { (self.body.call)(&call, self.arguments.as_ptr()) };
                forks::end_stray(|| None);
            }
            Ok(false) => {
                self.runtime.end(attempt.token, Outcome::Value(Value::Null));
            }
            Err(text) => {
                self.runtime.end(attempt.token, Outcome::Error(text.into()));
            }
        }
    }
}

/// Reads the arguments of a row. False: a null keeps the function from being called (F3). An error is the row's (F4).
fn read(runtime: &Runtime, attempt: &Attempt, arguments: &mut Vec<Argument>) -> Result<bool, String> {
    let (signature, row) = (runtime.signature(), attempt.row);
    arguments.clear();
    let keeps_from_calling = |(column, nullable): (&Column, &bool)| !nullable && !column.is_valid(row);
    if attempt.batch.columns().iter().zip(&signature.nullable).any(keeps_from_calling) {
        return Ok(false);
    }
    for (column, (name, layout)) in attempt.batch.columns().iter().zip(&signature.arguments) {
        let mut argument = Argument { bits: 0, data: c"".as_ptr(), length: 0, is_null: !column.is_valid(row) };
        if !argument.is_null {
            fill(&mut argument, column, layout, row).map_err(|text| format!("argument {name}: {text}"))?;
        }
        arguments.push(argument);
    }
    Ok(true)
}

fn fill(argument: &mut Argument, column: &Column, layout: &Layout, row: usize) -> Result<(), String> {
    match layout {
        Layout::Bool => argument.bits = column.boolean(row).into(),
        Layout::Fixed(1) => argument.bits = column.fixed::<u8>(row).into(),
        Layout::Fixed(2) => argument.bits = column.fixed::<u16>(row).into(),
        Layout::Fixed(4) => argument.bits = column.fixed::<u32>(row).into(),
        Layout::Fixed(8) => argument.bits = column.fixed::<u64>(row),
        Layout::Text => {
            let bytes = column.bytes(row).ok_or(BAD_OFFSETS)?;
            let text = std::str::from_utf8(bytes).map_err(|error| format!("the text is not UTF-8: {error}"))?;
            (argument.data, argument.length) = (text.as_ptr().cast(), text.len());
        }
        other => return Err(format!("no function in C has an argument like {other:?}")),
    }
    Ok(())
}
