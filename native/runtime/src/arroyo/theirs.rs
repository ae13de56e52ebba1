//! An open library that was built for the Arroyo engine: its symbols, and one started runtime of it.
//!
//! Such a library does not state its types, so its answers are checked against the types that the caller declared. It is
//! never unloaded, because its results may be released at any time.

use super::arguments::other_type;
use super::layout::{Array, Arrays, DrainResult, Future, Handle, Poll, PollContext, RunResult, Waker, WakerFunctions};
use crate::arrow::{build, child_schema, Column, Layout, Owned};
use crate::signature::{exported, Signature};
use crate::value::Value;
use arroyo_udf_abi as abi;
use std::ffi::{c_void, CStr};
use std::sync::Arc;
use std::thread::Thread;

#[derive(Clone, Copy)]
pub enum Library {
    Sync(unsafe extern "C" fn(Arrays) -> RunResult),
    Async(AsyncFunctions),
}

#[derive(Clone, Copy)]
pub struct AsyncFunctions {
    start: unsafe extern "C" fn(bool, u64, u32) -> Handle,
    send: unsafe extern "C" fn(Handle, u64, Arrays) -> Future,
    drain_results: unsafe extern "C" fn(Handle) -> DrainResult,
    stop_runtime: unsafe extern "C" fn(Handle),
}

impl Library {
    /// Opens a library. The error says what it lacks.
    pub fn open(path: &CStr) -> Result<Library, String> {
        // SAFETY: the path is a text; its author is responsible for what the library does while it loads.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_NODELETE) };
        if library.is_null() {
            // SAFETY: after a failure there is a text.
            let reason = unsafe { CStr::from_ptr(libc::dlerror()) };
            return Err(format!("cannot be opened as a shared library: {}", reason.to_string_lossy()));
        }
        // SAFETY: the library is open.
        let find = |name: &CStr| unsafe { libc::dlsym(library, name.as_ptr()) };
        let run = find(c"__run");
        if !run.is_null() {
            // SAFETY: by its name the symbol is this function of the interface.
            return Ok(Library::Sync(unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Arrays) -> RunResult>(run) }));
        }
        let names = [c"__start", c"__send", c"__drain_results", c"__stop_runtime"];
        let [start, send, drain_results, stop_runtime] = names.map(find);
        if let Some(missing) = names.iter().find(|name| find(name).is_null()) {
            return Err(format!("is no library for the Arroyo engine: it has neither __run nor {}", missing.to_string_lossy()));
        }
        // SAFETY: as above, for each of the four.
        unsafe {
            Ok(Library::Async(AsyncFunctions {
                start: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(bool, u64, u32) -> Handle>(start),
                send: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Handle, u64, Arrays) -> Future>(send),
                drain_results: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Handle) -> DrainResult>(drain_results),
                stop_runtime: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Handle)>(stop_runtime),
            }))
        }
    }
}

/// The arguments of `rows` as that interface takes them. They are copied, because arrow 51 needs aligned arrays without
/// offsets and with exact null counts. The error is a text for the rows.
pub fn arguments(signature: &Signature, columns: &[Column], rows: std::ops::Range<usize>) -> Result<Arrays, String> {
    let mut arrays = Vec::with_capacity(columns.len());
    for (i, (column, (name, layout))) in columns.iter().zip(&signature.arguments).enumerate() {
        let values: Result<Vec<Value>, String> = rows.clone().map(|row| column.value(layout, row)).collect();
        let values = values.map_err(|text| format!("argument {name}: {text}"))?;
        // SAFETY: a signature has a valid, constant schema for each argument.
        let schema = unsafe { child_schema(signature.argument_schema, i) }?;
        let array = build(layout, values.iter()).map_err(|no_room| format!("argument {name}: {no_room}"))?;
        arrays.push(Array { array: array.export(), schema: exported(schema) });
    }
    Ok(Arrays::new(arrays))
}

/// The array that a library returned, if it has the declared type and length; else why not.
pub fn checked(answer: Array, declared: &abi::ArrowSchema, layout: &Layout, rows: usize) -> Result<Owned, String> {
    // SAFETY: the declared schema is a constant; the other one is ours.
    let wrong = unsafe { other_type(declared, &answer.schema) };
    let array = Owned(answer.untyped());
    if let Some(wrong) = wrong {
        return Err(format!("the library's answer {wrong}"));
    }
    if array.0.length != rows as i64 {
        return Err(format!("the library answered {} rows for {rows}", array.0.length));
    }
    // SAFETY: the library gave us a valid array, which lives as long as the view here.
    unsafe { Column::new(&array.0, layout, "the library's answer") }?;
    Ok(array)
}

/// One started runtime of a library; used by one thread.
pub struct Theirs {
    functions: AsyncFunctions,
    handle: Handle,
    /// The row that it has not taken yet.
    sending: Option<Future>,
}

/// The runtime no longer answers.
pub struct Dead;

impl Theirs {
    pub fn start(functions: AsyncFunctions, ordered: bool, timeout_micros: u64, allowed_in_flight: u32) -> Theirs {
        // SAFETY: the interface allows any values.
        let handle = unsafe { (functions.start)(ordered, timeout_micros, allowed_in_flight) };
        Theirs { functions, handle, sending: None }
    }

    /// Whether the row that was sent last is still on its way in.
    pub fn is_sending(&self) -> bool {
        self.sending.is_some()
    }

    /// Sends a row. Allowed only if none is on its way in.
    pub fn send(&mut self, id: u64, arguments: Arrays, waker: &ThreadWaker) -> Result<(), Dead> {
        // SAFETY: the handle is open, and the arguments are given away.
        self.sending = Some(unsafe { (self.functions.send)(self.handle, id, arguments) });
        self.go_on_sending(waker)
    }

    /// Polls the row that was sent last; `waker` is woken when it is time to poll again.
    pub fn go_on_sending(&mut self, waker: &ThreadWaker) -> Result<(), Dead> {
        let Some(future) = self.sending.take() else { return Ok(()) };
        let mut context = PollContext { waker: (&raw const *waker.0).cast() };
        // SAFETY: the future is ours alone, and was not ready before.
        let poll = unsafe { (future.poll)(future.state, &mut context) };
        if poll.tag == Poll::PENDING {
            self.sending = Some(future);
            return Ok(());
        }
        // SAFETY: dropped once, and not used again.
        unsafe { (future.drop)(future.state) };
        if poll.tag == Poll::READY && poll.accepted {
            Ok(())
        } else {
            Err(Dead)
        }
    }

    /// The rows that have ended: ids and values, both unchecked.
    pub fn drain(&mut self) -> Result<Option<Vec<Array>>, Dead> {
        // SAFETY: the handle is open, and no other call runs.
        let answer = unsafe { (self.functions.drain_results)(self.handle) };
        match answer.tag {
            // SAFETY: the vector was given to us.
            DrainResult::DATA => Ok(Some(unsafe { answer.data.take() })),
            DrainResult::NONE => Ok(None),
            _ => Err(Dead),
        }
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        if let Some(future) = self.sending.take() {
            // SAFETY: dropped once, and before the handle.
            unsafe { (future.drop)(future.state) };
        }
        // SAFETY: the handle is not used again.
        unsafe { (self.functions.stop_runtime)(self.handle) };
    }
}

/// A waker, as that interface has it, which unparks a thread.
#[derive(Clone)]
pub struct ThreadWaker(Arc<SharedWaker>);

#[repr(C)]
struct SharedWaker {
    head: Waker,
    thread: Thread,
}

// SAFETY: the head points to a constant.
unsafe impl Send for SharedWaker {}
// SAFETY: as above; a thread's handle may be used anywhere.
unsafe impl Sync for SharedWaker {}

static FUNCTIONS: WakerFunctions =
    WakerFunctions { clone: clone_waker, wake: wake_waker, wake_by_ref: wake_waker_by_ref, drop: drop_waker };

impl ThreadWaker {
    /// A waker of the calling thread.
    pub fn of_this_thread() -> ThreadWaker {
        ThreadWaker(Arc::new(SharedWaker { head: Waker { functions: &FUNCTIONS }, thread: std::thread::current() }))
    }

    pub fn wake(&self) {
        self.0.thread.unpark();
    }
}

unsafe extern "C" fn clone_waker(waker: *const Waker) -> *const Waker {
    // SAFETY: the pointer is that of an Arc's content; the count grows by one for the clone.
    unsafe { Arc::increment_strong_count(waker.cast::<SharedWaker>()) };
    waker
}

unsafe extern "C" fn wake_waker(waker: *const Waker) {
    // SAFETY: an owned waker, given back.
    unsafe { Arc::from_raw(waker.cast::<SharedWaker>()) }.thread.unpark();
}

unsafe extern "C" fn wake_waker_by_ref(waker: *const Waker) {
    // SAFETY: the owner of the waker keeps it alive.
    unsafe { (*waker.cast::<SharedWaker>()).thread.unpark() };
}

unsafe extern "C" fn drop_waker(waker: *const Waker) {
    // SAFETY: an owned waker, given back.
    drop(unsafe { Arc::from_raw(waker.cast::<SharedWaker>()) });
}
