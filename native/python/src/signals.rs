//! The end of a process that was asked to end by a signal and cannot (`cli/stopping.py`). Python's handlers run between two
//! instructions of the main thread: not while native code computes, keeps the GIL, or waits.
//!
//! Python's own C handler writes each signal's number to a descriptor at once (`signal.set_wakeup_fd`). A thread without the
//! GIL reads it. At the second signal, or some time after the first, it removes unfinished files and ends the process.
//!
//! Guarantees: one line on standard error, whoever ends the process; the exit status is 128 and the number of the first
//! signal. Assumes: only names that nobody else uses are registered as unfinished files.

use crate::object::{none, raise};
use arroyo_udf_plugin::sync::Unpoisoned;
use arroyo_udf_plugin::threads::{self, OWN_STACK};
use pyo3_ffi::*;
use std::ffi::{c_char, c_int, CStr, CString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Unfinished files with names.
static FILES: Mutex<Vec<CString>> = Mutex::new(Vec::new());
static SAID: AtomicBool = AtomicBool::new(false);

fn name(signal: c_int) -> Option<&'static str> {
    match signal {
        libc::SIGINT => Some("SIGINT"),
        libc::SIGTERM => Some("SIGTERM"),
        libc::SIGHUP => Some("SIGHUP"),
        _ => None,
    }
}

/// Says once why the process ends.
fn say(signal: c_int) {
    if SAID.swap(true, SeqCst) {
        return;
    }
    // SAFETY: it only asks. A progress bar may stand on the terminal's last line.
    let start = if unsafe { libc::isatty(2) } == 1 { "\n" } else { "" };
    let line = format!("{start}arroyo-udf: stopped by {}\n", name(signal).unwrap_or("a signal"));
    // SAFETY: the text outlives the call.
    unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
}

/// The next of the signals that end the process; None: the watch is over, or no signal came until `until`.
fn next(pipe: &mut File, until: Option<Instant>) -> Option<c_int> {
    loop {
        let patience = until.map_or(-1, |until| until.saturating_duration_since(Instant::now()).as_millis() as c_int + 1);
        let mut poll = libc::pollfd { fd: pipe.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor, for the time of the call.
        if unsafe { libc::poll(&mut poll, 1, patience) } == 0 {
            return None;
        }
        let mut signal = [0];
        match pipe.read(&mut signal) {
            Ok(1) if signal[0] == 0 => return None,
            Ok(1) if name(signal[0].into()).is_some() => return Some(signal[0].into()),
            Ok(0) => return None,
            _ => {} // a signal that somebody else handles; or nothing, in spite of the poll
        }
    }
}

fn watch(pipe: &mut File, patience: Duration) {
    let Some(signal) = next(pipe, None) else { return };
    next(pipe, Some(Instant::now() + patience));
    say(signal);
    for file in FILES.lock().unpoisoned().iter() {
        // SAFETY: the path is a C string.
        unsafe { libc::unlink(file.as_ptr()) };
    }
    // SAFETY: it takes a number, and ends the process.
    unsafe { libc::_exit(128 + signal) };
}

/// watch_signals(descriptor: int, patience: float): ends the process at the second signal whose number can be read from the
/// descriptor, or `patience` seconds after the first. The byte 0 ends the watch. The descriptor is given away.
pub unsafe extern "C" fn watch_signals(_module: *mut PyObject, arguments: *mut PyObject) -> *mut PyObject {
    let (mut descriptor, mut patience) = (0 as c_int, 0f64);
    // SAFETY: called by Python with the GIL; the format names the types of the two variables; the descriptor is ours.
    unsafe {
        if PyArg_ParseTuple(arguments, c"id:watch_signals".as_ptr(), &mut descriptor, &mut patience) == 0 {
            return null_mut();
        }
        let mut pipe = File::from_raw_fd(descriptor);
        let patience = Duration::try_from_secs_f64(patience).unwrap_or(Duration::MAX);
        match threads::spawn("udf-signals", OWN_STACK, move || watch(&mut pipe, patience)) {
            Ok(_) => none(),
            Err(error) => raise(PyExc_OSError, &format!("no thread for signals: {error}")),
        }
    }
}

/// say_stopped(signal: int): the line on standard error, unless it was said.
pub unsafe extern "C" fn say_stopped(_module: *mut PyObject, signal: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and one argument.
    unsafe {
        let signal = PyLong_AsLong(signal);
        if !PyErr_Occurred().is_null() {
            return null_mut();
        }
        say(signal as c_int);
        none()
    }
}

unsafe fn path(argument: *mut PyObject) -> Option<CString> {
    // SAFETY: the GIL is held; the bytes are copied before their object goes.
    unsafe {
        let path: *const c_char = PyBytes_AsString(argument);
        (!path.is_null()).then(|| CStr::from_ptr(path).to_owned())
    }
}

/// remove_at_exit(path: bytes): an unfinished file, which goes if the process ends by a signal.
pub unsafe extern "C" fn remove_at_exit(_module: *mut PyObject, argument: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and one argument.
    unsafe {
        let Some(path) = path(argument) else { return null_mut() };
        FILES.lock().unpoisoned().push(path);
        none()
    }
}

/// keep_at_exit(path: bytes): the reverse of `remove_at_exit`.
pub unsafe extern "C" fn keep_at_exit(_module: *mut PyObject, argument: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by Python with the GIL and one argument.
    unsafe {
        let Some(path) = path(argument) else { return null_mut() };
        FILES.lock().unpoisoned().retain(|file| *file != path);
        none()
    }
}
