//! Names the function during whose run the process ends abnormally: by a fatal signal, or by `exit` in native code
//! (`cli/crashes.py`). Nothing of this is installed before [`name_in_crash`] is called.
//!
//! Guarantees: what runs in a signal handler only reads an address and writes. The signal then has its usual effect.

use crate::object::none;
use pyo3_ffi::*;
use std::ffi::{c_char, c_int, CStr, CString};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};
use std::sync::Once;

/// The function's name, which is never freed; null: none runs.
static NAME: AtomicPtr<c_char> = AtomicPtr::new(null_mut());

const SIGNALS: [(c_int, &str); 5] = [
    (libc::SIGSEGV, "a segmentation fault (SIGSEGV)"),
    (libc::SIGBUS, "a bus error (SIGBUS)"),
    (libc::SIGILL, "an illegal instruction (SIGILL)"),
    (libc::SIGFPE, "an arithmetic error (SIGFPE)"),
    (libc::SIGABRT, "abort (SIGABRT)"),
];

/// As in cli/crashes.py.
const INSTEAD: &[u8] = b"arroyo-udf: in a worker process it would cost the row in hand only: --isolation process, or in \
    a pipeline isolation = \"process\"\n";

/// Writes about the function that runs, if one does.
fn say(how: &str) {
    let name = NAME.swap(null_mut(), SeqCst);
    if name.is_null() {
        return;
    }
    // SAFETY: the name is a C string and is never freed.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    for part in [b"arroyo-udf: the run of ", name, b" ended by ", how.as_bytes(), b"\n", INSTEAD] {
        // SAFETY: the part outlives the call.
        unsafe { libc::write(2, part.as_ptr().cast(), part.len()) };
    }
}

/// The signal's usual effect follows, because the handler is reset before it runs.
extern "C" fn on_signal(signal: c_int) {
    if let Some((_, how)) = SIGNALS.iter().find(|(number, _)| *number == signal) {
        say(how);
    }
    // SAFETY: it takes a number.
    unsafe { libc::raise(signal) };
}

extern "C" fn at_exit() {
    say("exit, in native code");
}

/// name_in_crash(function: bytes | None): the function that runs from now on.
pub unsafe extern "C" fn name_in_crash(_module: *mut PyObject, function: *mut PyObject) -> *mut PyObject {
    static INSTALLED: Once = Once::new();
    // SAFETY: called by Python with the GIL and one argument. The handlers do only what a handler may.
    unsafe {
        if function == Py_None() {
            NAME.store(null_mut(), SeqCst);
            return none();
        }
        let name = PyBytes_AsString(function);
        if name.is_null() {
            return null_mut();
        }
        NAME.store(CString::into_raw(CStr::from_ptr(name).to_owned()), SeqCst);
        INSTALLED.call_once(|| {
            for (signal, _) in SIGNALS {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = on_signal as *const () as usize;
                action.sa_flags = libc::SA_RESETHAND | libc::SA_ONSTACK;
                libc::sigaction(signal, &action, null_mut());
            }
            libc::atexit(at_exit);
        });
        none()
    }
}
