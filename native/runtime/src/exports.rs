//! The slots of the C table. Each one guards against panics, checks its input, and turns results into a status and a text.
//! The trait [`Plugin`] holds what differs between plugins; all plugins share the rest.
//!
//! The documentation of each slot is in `arroyo_udf.h`.

use crate::arrow::Batch;
use crate::batch_context::BatchContext;
use crate::failure::{guard, Failure};
use crate::isolation::process::started::{self, REMOTE};
use crate::log::Log;
use crate::machine::Stop;
use crate::options;
use crate::panics::catch_own;
use crate::retired;
use crate::runtime::{Drained, Runtime};
use crate::signature::Signature;
use crate::{handles, memory, sending, sized};
use arroyo_udf_abi as abi;
use std::ffi::{c_char, c_void, CStr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The results of `run`.
pub struct Ran {
    /// A struct array {value} or {value, outcome, error}: [`crate::results::ran`].
    pub results: abi::ArrowArray,
    /// Whether outcome and error are there.
    pub with_outcomes: bool,
}

/// What a plugin provides.
pub trait Plugin: 'static {
    /// The constant that `describe` returns. Runs no user code.
    fn describe() -> *const abi::Descriptor;

    /// Function number `function`, read once ([`Signature::read`]) and kept.
    fn signature(function: u32) -> Result<&'static Signature, Failure>;

    /// Bit i: argument number i of `run` may come as a constant.
    fn constants(signature: &Signature) -> u64 {
        signature.constants
    }

    /// Calls a sync function for a batch. An error gives the batch back to the host, so it is allowed only before the
    /// function is called, or if the host itself ends the call (Ctrl-C, R2); anything else that happens in the function is an
    /// outcome of rows.
    fn run(function: u32, batch: &Arc<Batch>) -> Result<Ran, Failure>;

    /// A further table; null: there is none by this id.
    fn extension(_id: &CStr) -> *const c_void {
        std::ptr::null()
    }

    /// Gives `runtime` its executor ([`Seat::serve`](crate::runtime::Seat::serve)), and waits for the Context's init.
    fn start(function: u32, runtime: &Arc<Runtime>) -> Result<(), Failure>;
}

/// The table of a plugin.
pub const fn table<P: Plugin>() -> abi::Table {
    abi::Table {
        magic: abi::MAGIC,
        abi_version: abi::ABI_VERSION,
        table_size: size_of::<abi::Table>() as u32,
        describe: describe::<P>,
        run: run::<P>,
        start: start::<P>,
        send,
        drain_results,
        wait,
        arm,
        disarm,
        cancel,
        statistics,
        stop_runtime,
        release,
        set_log,
        extension: extension::<P>,
    }
}

unsafe extern "C" fn describe<P: Plugin>() -> *const abi::Descriptor {
    catch_own(P::describe).unwrap_or(std::ptr::null())
}

fn of_kind(signature: &Signature, kinds: &[u32], slot: &str, instead: &str) -> Result<(), Failure> {
    if kinds.contains(&signature.kind) {
        return Ok(());
    }
    Err(Failure::new(abi::NOT_IMPLEMENTED, format!("{}: {slot} is not for this kind of function; {instead}", signature.name)))
}

unsafe extern "C" fn run<P: Plugin>(
    function: u32,
    arguments: *mut abi::ArrowArray,
    context: *const abi::BatchContext,
    results: *mut abi::ArrowArray,
    schema: *mut *const abi::ArrowSchema,
    error: *mut abi::Error,
) -> abi::Status {
    let mut retired = None;
    let body = || {
        let signature = P::signature(function)?;
        retired = Some(signature.retired);
        of_kind(signature, &[abi::SYNC, abi::TABLE, abi::STEP], "run", "start an async function, and run the steps of an aggregate")?;
        // SAFETY: the host passes a context of the size that it states, or null. No sync function asks for keys.
        let context = unsafe { BatchContext::read(context, 0) }.map_err(|text| Failure::argument(format!("{}: {text}", signature.name)))?;
        let constants = context.map_or(0, |context| context.constants);
        if constants & !P::constants(signature) != 0 {
            return Err(Failure::argument(format!(
                "{}: constants {constants:#b}, and it takes {:#b}",
                signature.name,
                P::constants(signature)
            )));
        }
        if results.is_null() || schema.is_null() {
            return Err(Failure::null("run", "results or schema"));
        }
        // SAFETY: the host passes a valid array, or null.
        let arguments = unsafe { arguments.as_mut() }.ok_or_else(|| Failure::null("run", "arguments"))?;
        // SAFETY: as above.
        let batch = unsafe { Batch::take(arguments, &signature.arguments, constants, signature.retired) };
        let batch = Arc::new(batch.map_err(|text| Failure::argument(format!("{}: {text}", signature.name)))?);
        let run = || memory::for_results(&signature.name, &signature.returns, batch.rows()).and_then(|()| P::run(function, &batch));
        // The batch goes back after a panic as well.
        match catch_own(run).unwrap_or_else(|text| Err(Failure::internal(text))) {
            Ok(ran) => {
                // SAFETY: checked for null; the host owns what it receives.
                unsafe {
                    results.write(ran.results);
                    schema.write(if ran.with_outcomes { signature.run_outcomes } else { signature.run_values });
                }
                Ok(abi::OK)
            }
            Err(failure) => {
                if let Some(batch) = Arc::into_inner(batch) {
                    *arguments = batch.into_array();
                }
                Err(failure)
            }
        }
    };
    // SAFETY: the host passes a writable error struct, or null.
    let status = unsafe { guard(error, |_| {}, body) };
    retired::sweep(retired);
    status
}

unsafe extern "C" fn start<P: Plugin>(
    function: u32,
    options: *const abi::Options,
    handle: *mut abi::Handle,
    error: *mut abi::Error,
) -> abi::Status {
    let mut retired = None;
    let body = || {
        let signature = P::signature(function)?;
        retired = Some(signature.retired);
        of_kind(signature, &[abi::ASYNC], "start", "call run for a sync function")?;
        handles::check_process()?;
        if handle.is_null() {
            return Err(Failure::null("start", "handle"));
        }
        // SAFETY: the host passes options of the size that they state, or null.
        let options = unsafe { chosen(options) }.map_err(|text| Failure::argument(format!("{}: {text}", signature.name)))?;
        let runtime = Runtime::new(signature, options::choose(&options, &signature.options, &signature.name)?)?;
        P::start(function, &runtime)?;
        let started = handles::insert(Arc::clone(&runtime)).inspect_err(|_| runtime.stop_soon(Stop::Cancel))?;
        // SAFETY: checked for null.
        unsafe { handle.write(started) };
        Ok(abi::OK)
    };
    // SAFETY: the host passes a writable error struct, or null.
    let status = unsafe { guard(error, |_| {}, body) };
    retired::sweep(retired);
    status
}

/// The options that a host passes.
///
/// # Safety
/// `options` is null or points to options of the size that they state.
unsafe fn chosen(options: *const abi::Options) -> Result<abi::Options, String> {
    if options.is_null() {
        return Ok(abi::Options::unset());
    }
    // SAFETY: passed on.
    unsafe { sized::read_options(options) }
}

unsafe extern "C" fn send(
    handle: abi::Handle,
    first_id: u64,
    arguments: *mut abi::ArrowArray,
    context: *const abi::BatchContext,
    error: *mut abi::Error,
) -> abi::Status {
    // SAFETY: passed on.
    unsafe { sending::send(handle, first_id, arguments, context, error) }
}

unsafe extern "C" fn drain_results(
    handle: abi::Handle,
    max_rows: u64,
    results: *mut abi::ArrowArray,
    schema: *mut *const abi::ArrowSchema,
    error: *mut abi::Error,
) -> abi::Status {
    let mut retired = None;
    let body = || {
        let runtime = handles::get(handle)?;
        retired = Some(runtime.signature().retired);
        if results.is_null() || schema.is_null() {
            return Err(Failure::null("drain_results", "results or schema"));
        }
        match runtime.drain(max_rows)? {
            Drained::Rows(drained) => {
                // SAFETY: checked for null; the host owns what it receives.
                unsafe {
                    results.write(drained);
                    schema.write(runtime.signature().drained);
                }
                Ok(abi::OK)
            }
            Drained::End => Ok(abi::END),
            Drained::Nothing => Ok(abi::WOULD_BLOCK),
        }
    };
    // SAFETY: the host passes a writable error struct, or null.
    let status = unsafe { guard(error, |text| handles::poison(handle, text), body) };
    retired::sweep(retired);
    status
}

fn condition(condition: u32) -> Result<u32, Failure> {
    match condition {
        1..=3 => Ok(condition),
        _ => Err(Failure::argument(format!("condition {condition}: it is ARROYO_UDF_RESULTS, ARROYO_UDF_ROOM or both"))),
    }
}

unsafe extern "C" fn wait(handle: abi::Handle, wanted: u32, timeout_ns: u64, error: *mut abi::Error) -> abi::Status {
    let body = || {
        let held = handles::get(handle)?.wait(condition(wanted)?, Duration::from_nanos(timeout_ns));
        Ok(if held { abi::OK } else { abi::WOULD_BLOCK })
    };
    // SAFETY: the host passes a writable error struct, or null.
    unsafe { guard(error, |text| handles::poison(handle, text), body) }
}

unsafe extern "C" fn arm(
    handle: abi::Handle,
    wanted: u32,
    function: Option<abi::Armed>,
    data: *mut c_void,
    error: *mut abi::Error,
) -> abi::Status {
    let body = || {
        let function = function.ok_or_else(|| Failure::null("arm", "fn"))?;
        let holds = handles::get(handle)?.arm(condition(wanted)?, function, data);
        Ok(if holds { abi::READY } else { abi::OK })
    };
    // SAFETY: the host passes a writable error struct, or null.
    unsafe { guard(error, |text| handles::poison(handle, text), body) }
}

unsafe extern "C" fn disarm(handle: abi::Handle, error: *mut abi::Error) -> abi::Status {
    let body = || {
        handles::get(handle)?.disarm();
        Ok(abi::OK)
    };
    // SAFETY: the host passes a writable error struct, or null.
    unsafe { guard(error, |text| handles::poison(handle, text), body) }
}

unsafe extern "C" fn cancel(handle: abi::Handle, first_id: u64, rows: u64, error: *mut abi::Error) -> abi::Status {
    let body = || {
        handles::get(handle)?.cancel(first_id, rows);
        Ok(abi::OK)
    };
    // SAFETY: the host passes a writable error struct, or null.
    unsafe { guard(error, |text| handles::poison(handle, text), body) }
}

unsafe extern "C" fn statistics(handle: abi::Handle, into: *mut abi::Statistics, error: *mut abi::Error) -> abi::Status {
    let body = || {
        let runtime = handles::get(handle)?;
        if into.is_null() {
            return Err(Failure::null("statistics", "statistics"));
        }
        // SAFETY: the host passes a struct of the size that it states. A struct that was filled in begins with its size.
        unsafe {
            let filled = sized::write(&runtime.statistics(), into).map_err(Failure::argument)?;
            into.cast::<u64>().write(filled);
        }
        Ok(abi::OK)
    };
    // SAFETY: the host passes a writable error struct, or null.
    unsafe { guard(error, |text| handles::poison(handle, text), body) }
}

unsafe extern "C" fn stop_runtime(handle: abi::Handle, mode: u32, deadline_ns: u64, error: *mut abi::Error) -> abi::Status {
    let mut retired = None;
    let body = || {
        let mode = match mode {
            abi::DRAIN => Stop::Drain,
            abi::CANCEL => Stop::Cancel,
            _ => return Err(Failure::argument(format!("stop mode {mode}: it is ARROYO_UDF_DRAIN or ARROYO_UDF_CANCEL"))),
        };
        let runtime = handles::get(handle)?;
        retired = Some(runtime.signature().retired);
        let status = runtime.stop(mode, Duration::from_nanos(deadline_ns));
        report_stuck_stop(&runtime, &status);
        status
    };
    // SAFETY: the host passes a writable error struct, or null.
    let status = unsafe { guard(error, |text| handles::poison(handle, text), body) };
    retired::sweep(retired);
    status
}

fn report_stuck_stop(runtime: &Runtime, status: &Result<abi::Status, Failure>) {
    if matches!(status, Ok(abi::STUCK)) {
        runtime.log().warn_of_context(&runtime.signature().name);
    }
}

unsafe extern "C" fn release(handle: abi::Handle, error: *mut abi::Error) -> abi::Status {
    let mut retired = None;
    let body = || {
        let runtime = handles::remove(handle)?;
        retired = Some(runtime.signature().retired);
        runtime.disarm();
        let status = runtime.stop(Stop::Cancel, Duration::ZERO);
        report_stuck_stop(&runtime, &status);
        runtime.log().set(None);
        runtime.discard();
        status
    };
    // SAFETY: the host passes a writable error struct, or null.
    let status = unsafe { guard(error, |text| handles::poison(handle, text), body) };
    retired::sweep(retired);
    status
}

unsafe extern "C" fn set_log(handle: abi::Handle, log: *const abi::Log, error: *mut abi::Error) -> abi::Status {
    let body = || {
        let runtime = handles::get(handle)?;
        // SAFETY: the host passes a log of the size that it states, or null.
        runtime.log().set(unsafe { Log::read(log) }.map_err(Failure::argument)?);
        Ok(abi::OK)
    };
    // SAFETY: the host passes a writable error struct, or null.
    unsafe { guard(error, |text| handles::poison(handle, text), body) }
}

unsafe extern "C" fn extension<P: Plugin>(id: *const c_char) -> *const c_void {
    if id.is_null() {
        return std::ptr::null();
    }
    // SAFETY: the host passes a text.
    let id = unsafe { CStr::from_ptr(id) };
    if id == started::ID {
        return (&raw const REMOTE).cast();
    }
    catch_own(|| P::extension(id)).unwrap_or(std::ptr::null())
}

/// Stops every runtime of this library: before an interpreter ends (R18).
pub fn stop_all(deadline: Duration) {
    let runtimes = handles::all();
    runtimes.iter().for_each(|runtime| runtime.stop_soon(Stop::Cancel));
    let until = Instant::now() + deadline;
    for runtime in runtimes {
        // Only a host that still drains could use the status.
        drop(runtime.stop(Stop::Cancel, until.saturating_duration_since(Instant::now())));
    }
}
