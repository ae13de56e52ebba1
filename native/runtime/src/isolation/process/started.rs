//! The worker's side of a started function: the attempts of the host's runtime are rows of a runtime here, which decides
//! nothing ([`relay`](crate::isolation::relay)). What the host calls a key is a row's id here.
//!
//! Guarantees: never waits for user code, except at the start and at the end. An answer waits until the host has taken the one
//! before.

use super::lane::Lane;
use super::mailbox::{Reader, Writer};
use super::message::{write_failure, Counts, Start, ATTEMPTS, FORGET, LEAVE, LOG, OUTCOMES, READY};
use super::plugin::{failure, Function, Plugin, Results};
use super::record;
use crate::arrow::{build, ArrayData};
use crate::failure::Failure;
use crate::isolation::relay::{Origin, Relay};
use crate::limits::{CLOSE_TIME, GRACE};
use crate::signature::text;
use crate::sync::Unpoisoned;
use crate::value::Value;
use arroyo_udf_abi as abi;
use std::ffi::{c_char, c_void, CString};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;

/// This process is about to end, and its runtimes take nothing more.
static LEAVING: AtomicBool = AtomicBool::new(false);

/// Says that this process is about to end.
pub fn leave() {
    LEAVING.store(true, Ordering::Release);
}

/// More rows than a host has at once.
const NO_LIMIT: u64 = 1 << 40;

/// The life of a started function.
pub fn serve(plugin: &'static Plugin, mut lane: Lane, message: &[u8]) {
    let log = Box::new(Log { bell: lane.ours.as_raw_fd(), lines: Mutex::default() });
    let said = match Started::new(plugin, message, &log) {
        Ok(started) => match lane.post(|message| message.byte(READY)) {
            Ok(()) => started.serve(&mut lane, &log),
            Err(error) => Err(error),
        },
        Err(failure) => {
            let said = write_failure(&mut lane.sent, failure.status, &failure.text);
            lane.post_written();
            said
        }
    };
    if let Err(error) = said {
        // Nothing can be said to the host, so it must learn from the end of this process.
        eprintln!("arroyo-udf: a worker process ends, because it cannot answer its host: {error}");
        std::process::abort();
    }
}

struct Started {
    table: &'static abi::Table,
    relay: &'static Relay,
    function: &'static Function,
    handle: abi::Handle,
    /// Each call is a batch of its own.
    in_batches: bool,
}

/// Lines for the host's log.
struct Log {
    bell: RawFd,
    lines: Mutex<Vec<Vec<u8>>>,
}

unsafe extern "C" fn write_log(data: *mut c_void, _level: u32, line: *const c_char) {
    // SAFETY: the log outlives the runtime; the text ends with a zero.
    let (log, line) = unsafe { (&*data.cast::<Log>(), text(line)) };
    log.lines.lock().unpoisoned().push(line.into_bytes());
    // SAFETY: the lane lives as long as the runtime.
    unsafe { ring(log.bell as usize as *mut c_void) };
}

/// Rings the bell with this descriptor.
unsafe extern "C" fn ring(bell: *mut c_void) {
    let one = 1u64;
    // SAFETY: eight bytes, as an eventfd wants them.
    unsafe { libc::write(bell as usize as RawFd, (&raw const one).cast(), 8) };
}

impl Started {
    fn new(plugin: &'static Plugin, message: &[u8], log: &Log) -> Result<Started, Failure> {
        let broken = || Failure::internal("the host sends a broken start");
        let start = Start::read(message).ok_or_else(broken)?;
        let function = plugin.functions.get(start.function as usize).ok_or_else(broken)?;
        let options = abi::Options {
            size: size_of::<abi::Options>() as u64,
            order: abi::UNORDERED,
            allowed_in_flight: start.allowed_in_flight,
            timeout_ns: u64::MAX,
            deadline_ns: u64::MAX,
            max_rows: NO_LIMIT,
            max_bytes: NO_LIMIT,
            max_attempts: 1,
            max_stuck: u32::MAX,
            batch_size: start.batch_size,
            batch_bytes: if start.batch_size > 0 { NO_LIMIT } else { 0 },
            lineage: start.lineage,
            ..abi::Options::unset()
        };
        let (mut handle, mut error) = (0, abi::Error::empty());
        // SAFETY: the structs are ours; the log outlives the runtime.
        unsafe {
            let status = (plugin.table.start)(start.function, &options, &mut handle, &mut error);
            if status != abi::OK {
                return Err(failure(status, error));
            }
            let Some(relay) = Relay::of(plugin.table) else {
                (plugin.table.release)(handle, std::ptr::null_mut());
                let text = format!("{}: was built before its functions could run in a process: build it again", function.signature.name);
                return Err(Failure::new(abi::NOT_IMPLEMENTED, text));
            };
            let log =
                abi::Log { size: size_of::<abi::Log>() as u64, write: Some(write_log), data: std::ptr::from_ref(log).cast_mut().cast() };
            if start.batch_size > 0 {
                (relay.keep_batches_apart)(handle, std::ptr::null_mut());
            }
            (plugin.table.set_log)(handle, &log, std::ptr::null_mut());
            Ok(Started { table: plugin.table, relay, function, handle, in_batches: start.batch_size > 0 })
        }
    }

    /// Passes on what comes, in both directions, until the host asks to leave. An error: there is no memory for an answer.
    fn serve(self, lane: &mut Lane, log: &Log) -> io::Result<()> {
        loop {
            let mut worked = false;
            if !lane.received.is_free() {
                let taken = self.take(&mut lane.received.read()?).map_err(io::Error::other)?;
                lane.take();
                match taken {
                    ATTEMPTS => worked = true,
                    LEAVE => return self.leave(lane, log),
                    _ => return self.forget(),
                }
            }
            if lane.sent.is_free() {
                worked |= self.answer(lane, log)?;
            }
            if !worked {
                lane.wait(None, None);
            }
        }
    }

    /// Passes a message of the host on, and answers its kind.
    fn take(&self, message: &mut Reader) -> Result<u8, String> {
        match message.byte()? {
            ATTEMPTS => {
                for _ in 0..message.number()? {
                    // SAFETY: the handle is ours. It may fail only for a row that has ended.
                    unsafe { (self.relay.cancel)(self.handle, message.number()?, std::ptr::null_mut()) };
                }
                for _ in 0..message.number()? {
                    let (key, row) = (message.number()?, message.number()?);
                    // SAFETY: as above.
                    unsafe { (self.relay.report_stuck)(self.handle, key, row, std::ptr::null_mut()) };
                }
                self.call(message).map(|()| ATTEMPTS)
            }
            kind @ (LEAVE | FORGET) => Ok(kind),
            other => Err(format!("the host sends a message of kind {other}")),
        }
    }

    /// Makes the calls of a message: those with the same trace parent together, unless each is a batch.
    fn call(&self, message: &mut Reader) -> Result<(), String> {
        let mut rows = Rows::default();
        for _ in 0..message.number()? {
            let (key, deadline_ns, trace) = (message.number()?, message.number()?, message.text()?);
            if rows.trace != trace || self.in_batches {
                self.send(std::mem::take(&mut rows))?;
                rows.trace = trace;
            }
            if rows.origins.is_empty() {
                rows.first = key;
            }
            for _ in 0..message.number()? {
                let (row_id, attempt) = (message.number()?, message.number()? as u32);
                rows.origins.push(Origin { row_id, deadline_ns, attempt, reserved: 0 });
                let arguments = &self.function.signature.arguments;
                rows.columns.resize_with(arguments.len(), Vec::new);
                for (column, (_, layout)) in rows.columns.iter_mut().zip(arguments) {
                    column.push(record::read(layout, message)??);
                }
            }
        }
        self.send(rows)
    }

    fn send(&self, rows: Rows) -> Result<(), String> {
        let length = rows.origins.len();
        if length == 0 {
            return Ok(());
        }
        let arguments = self.function.signature.arguments.iter().zip(&rows.columns);
        let children = arguments.map(|((_, layout), column)| build(layout, column.iter()).map(ArrayData::export));
        let children = children.collect::<Result<_, _>>().map_err(|no_room| format!("the arguments of {length} rows: {no_room}"))?;
        let mut batch = crate::results::structure(length, children);
        let trace = CString::new(rows.trace).map_err(|error| error.to_string())?;
        let context = abi::BatchContext {
            size: size_of::<abi::BatchContext>() as u64,
            deadline_ns: 0,
            trace_parent: if trace.is_empty() { std::ptr::null() } else { trace.as_ptr() },
        };
        let mut error = abi::Error::empty();
        // SAFETY: the batch is of the declared types, with an origin for each row.
        unsafe {
            let status = (self.relay.send)(self.handle, rows.first, &mut batch, &context, rows.origins.as_ptr(), &mut error);
            if status != abi::OK {
                if let Some(release) = batch.release {
                    release(&mut batch);
                }
                if LEAVING.load(Ordering::Acquire) {
                    return Ok(()); // the host says how rows end for which it gets no answer
                }
                return Err(format!("status {status}: {}", failure(status, error).text));
            }
        }
        Ok(())
    }

    /// Sends what there is to say. False: nothing; it will ring.
    fn answer(&self, lane: &mut Lane, log: &Log) -> io::Result<bool> {
        let lines = std::mem::take(&mut *log.lines.lock().unpoisoned());
        if !lines.is_empty() {
            let counts = self.counts();
            lane.post(|message| {
                message.byte(LOG)?;
                counts.write(message)?;
                write_lines(&lines, message)
            })?;
            return Ok(true);
        }
        let mut error = abi::Error::empty();
        let mut results = Results { array: abi::ArrowArray::empty(), schema: std::ptr::null() };
        // SAFETY: the handle is ours; the other structs are filled in.
        let status = unsafe { (self.table.drain_results)(self.handle, 0, &mut results.array, &mut results.schema, &mut error) };
        match status {
            abi::OK => lane.post(|message| self.write(&results, message)).map(|()| true),
            abi::WOULD_BLOCK => {
                let bell = lane.ours.as_raw_fd() as usize as *mut c_void;
                // SAFETY: the bell lives until the runtime has ended.
                let armed = unsafe { (self.table.arm)(self.handle, abi::RESULTS, Some(ring), bell, std::ptr::null_mut()) };
                Ok(armed == abi::READY)
            }
            abi::END => Ok(false),
            status => Err(io::Error::other(failure(status, error).text)),
        }
    }

    fn counts(&self) -> Counts {
        let mut statistics = abi::Statistics { size: size_of::<abi::Statistics>() as u64, ..abi::Statistics::default() };
        // SAFETY: the handle is ours; the struct is to be filled in.
        unsafe { (self.table.statistics)(self.handle, &mut statistics, std::ptr::null_mut()) };
        Counts { blocked: statistics.blocked, left_behind: statistics.left_behind, discarded: statistics.discarded }
    }

    fn write(&self, results: &Results, message: &mut Writer) -> io::Result<()> {
        use crate::arrow::Layout;
        let signature = &self.function.signature;
        message.byte(OUTCOMES)?;
        self.counts().write(message)?;
        message.number(results.array.length as u64)?;
        for row in 0..results.array.length as usize {
            let number = |name, layout: &Layout| match results.read(name, layout, row) {
                Ok(Value::Fixed(number)) => Ok(number),
                _ => Err(io::Error::other("results without an id or an outcome")),
            };
            let key = number(c"id", &Layout::Fixed(8))?;
            message.number(key)?;
            message.byte(number(c"outcome", &Layout::Fixed(1))? as u8)?;
            let ended = results.row(signature, row, key);
            record::write(ended.as_ref().map_err(|text| &**text), message)?;
        }
        Ok(())
    }

    /// Leaves the runtime to its calls, which are stuck: its Context is not closed (R13).
    fn forget(self) -> io::Result<()> {
        // SAFETY: the handle is ours, and used no more; nothing rings or writes from now on.
        unsafe {
            (self.table.disarm)(self.handle, std::ptr::null_mut());
            (self.table.set_log)(self.handle, std::ptr::null(), std::ptr::null_mut());
        }
        Ok(())
    }

    /// Ends the runtime, and says how that went.
    fn leave(self, lane: &mut Lane, log: &Log) -> io::Result<()> {
        let (mut error, within) = (abi::Error::empty(), (CLOSE_TIME + 3 * GRACE).as_nanos() as u64);
        // SAFETY: the handle is ours; it ends here, and the log with it.
        let (failure, counts) = unsafe {
            let status = (self.table.stop_runtime)(self.handle, abi::CANCEL, within, &mut error);
            let (failure, counts) = (failure(status, error), self.counts());
            (self.table.release)(self.handle, std::ptr::null_mut());
            (failure, counts)
        };
        let lines = std::mem::take(&mut *log.lines.lock().unpoisoned());
        while !lane.sent.is_free() {
            lane.wait(None, None);
        }
        lane.post(|message| {
            message.byte(LEAVE)?;
            message.number(failure.status as u64)?;
            message.text(failure.text.as_bytes())?;
            counts.write(message)?;
            write_lines(&lines, message)
        })
    }
}

fn write_lines(lines: &[Vec<u8>], message: &mut Writer) -> io::Result<()> {
    message.number(lines.len() as u64)?;
    lines.iter().try_for_each(|line| message.text(line))
}

/// Rows with the same trace parent.
#[derive(Default)]
struct Rows {
    trace: Box<[u8]>,
    first: u64,
    origins: Vec<Origin>,
    columns: Vec<Vec<Value>>,
}
