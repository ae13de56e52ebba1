//! Making a subinterpreter with a GIL of its own. That needs Python 3.13: 3.12 has the function, but such an interpreter
//! corrupts memory there once it imports asyncio.

use crate::interpreter::Interpreter;
use arroyo_udf_plugin::abi;
use arroyo_udf_plugin::failure::Failure;
use arroyo_udf_plugin::sync::Unpoisoned;
use pyo3_ffi::*;
use std::ffi::{c_int, CStr};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

/// `PyInterpreterConfig` of 3.12 and later. pyo3_ffi declares it for these versions alone, and a crate without a build
/// script cannot tell the versions apart.
#[repr(C)]
struct Config {
    use_main_obmalloc: c_int,
    allow_fork: c_int,
    allow_exec: c_int,
    allow_threads: c_int,
    allow_daemon_threads: c_int,
    check_multi_interp_extensions: c_int,
    gil: c_int,
}

const OWN_GIL: c_int = 2;
const FIRST_VERSION: std::ffi::c_ulong = 0x030D_0000;

type New = unsafe extern "C" fn(*mut *mut PyThreadState, *const Config) -> PyStatus;

/// Whether this Python can.
pub fn check() -> Result<(), Failure> {
    find().map(drop)
}

fn find() -> Result<New, Failure> {
    // SAFETY: a constant of the interpreter.
    let version = unsafe { Py_Version };
    // SAFETY: the name is a C string. It is looked up because 3.11 does not have it.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"Py_NewInterpreterFromConfig".as_ptr()) };
    if version < FIRST_VERSION || found.is_null() {
        let (major, minor) = (version >> 24, version >> 16 & 0xff);
        let text = format!(
            "isolation=\"subinterpreter\" needs Python 3.13 or later, and this is {major}.{minor}: choose isolation=\"process\" or \
             \"thread\""
        );
        return Err(Failure::new(abi::NOT_IMPLEMENTED, text));
    }
    // SAFETY: the function has this type in the versions that are let through.
    Ok(unsafe { std::mem::transmute::<*mut libc::c_void, New>(found) })
}

/// The address space that a start may take, for the interpreter, its threads' stacks and the allocator's regions for them.
/// With less, CPython and the allocators abort the process at places that cannot report a failure.
const ROOM: usize = 256 << 20;

/// Refuses a start in a process whose address space is limited and nearly used up.
pub fn check_room() -> Result<(), Failure> {
    // SAFETY: a mapping of our own that nobody touches, which goes at once.
    let has_room = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let room = libc::mmap(null_mut(), ROOM, libc::PROT_NONE, flags, -1, 0);
        room != libc::MAP_FAILED && libc::munmap(room, ROOM) == 0
    };
    if has_room {
        return Ok(());
    }
    let text = "a subinterpreter needs 256 MiB of free address space for a start: raise the process's limit (RLIMIT_AS), or choose \
                isolation=\"thread\"";
    Err(Failure::for_now(abi::OUT_OF_MEMORY, text))
}

/// One interpreter of the process starts or ends at a time: the first import of some standard modules in several at once
/// crashes. Taken without a GIL.
pub fn one_at_a_time() -> MutexGuard<'static, ()> {
    STARTING.lock().unpoisoned()
}

/// Waits until then for the start or end that goes on.
pub fn settle(until: Instant) {
    while matches!(STARTING.try_lock(), Err(TryLockError::WouldBlock)) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1)); // once at the exit: a Mutex cannot be waited for until a time
    }
}

static STARTING: Mutex<()> = Mutex::new(());

/// A new one. In a thread of the toolkit that enters no other one, without a GIL.
pub fn create() -> Result<Arc<Interpreter>, Failure> {
    let new = find()?;
    let config = Config {
        use_main_obmalloc: 0,
        allow_fork: 0,
        allow_exec: 0,
        allow_threads: 1,
        allow_daemon_threads: 1,
        check_multi_interp_extensions: 1,
        gil: OWN_GIL,
    };
    let make = || {
        let mut state = null_mut();
        // SAFETY: called with the GIL of the main interpreter; both pointers are valid. The message is a constant text.
        unsafe {
            let status = new(&mut state, &config);
            if PyStatus_Exception(status) == 0 {
                return Ok(());
            }
            let why = if status.err_msg.is_null() { c"no reason given" } else { CStr::from_ptr(status.err_msg) };
            Err(Failure::for_now(abi::ENVIRONMENT, format!("a subinterpreter does not start: {}", why.to_string_lossy())))
        }
    };
    // SAFETY: `make` leaves the thread as it is told.
    unsafe { Interpreter::make(make) }
}
