//! Where a runtime reports what belongs to no row: stuck calls, a blocked event loop, a Context that is not closed. The host
//! sets it (`set_log` in the header); without it nothing is reported, and nothing is ever written to standard error.
//!
//! Guarantees: one call of the host's function at a time, with no lock of the runtime held. Once [`Place::set`] has
//! returned, the former log is not used.

use crate::sized;
use crate::sync::Unpoisoned;
use arroyo_udf_abi as abi;
use std::ffi::{c_char, c_void, CString};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;

/// A host's log.
#[derive(Debug, Clone, Copy)]
pub struct Log {
    write: unsafe extern "C" fn(*mut c_void, u32, *const c_char),
    data: *mut c_void,
}

// SAFETY: the host promises that its function may be called from any thread.
unsafe impl Send for Log {}

impl Log {
    /// None: the host wants no log. The error is a text for the host.
    ///
    /// # Safety
    /// `log` is null or points to a struct of the size that it states.
    pub unsafe fn read(log: *const abi::Log) -> Result<Option<Log>, String> {
        if log.is_null() {
            return Ok(None);
        }
        // SAFETY: passed on.
        let log = unsafe { sized::read(log) }?;
        let write = log.write.ok_or("set_log: write is null")?;
        Ok(Some(Log { write, data: log.data }))
    }
}

/// The place of a runtime's log.
#[derive(Debug, Default)]
pub struct Place {
    log: Mutex<Option<Log>>,
    /// The host knows that the Context is not closed.
    told_of_context: AtomicBool,
}

impl Place {
    /// Replaces the log; waits while the former one is written to.
    pub fn set(&self, log: Option<Log>) {
        *self.log.lock().unpoisoned() = log;
    }

    /// Writes a report, if the host has set a log. The caller must not hold a lock that the host's function could need, such
    /// as the GIL.
    pub fn warn(&self, text: &str) {
        let log = self.log.lock().unpoisoned();
        if let Some(Log { write, data }) = *log {
            let text = CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default();
            // SAFETY: the host promises that the function may be called until `set` has replaced it, which the lock prevents.
            unsafe { write(data, abi::WARNING, text.as_ptr()) };
        }
    }

    /// Reports once that a stop has given up on calls of `function`, and what follows (R13).
    pub fn warn_of_context(&self, function: &str) {
        if !self.told_of_context.swap(true, Ordering::Relaxed) {
            self.warn(&format!(
                "{function}: stopped while calls ignore their cancellation: what they use stays allocated, and its Context, if it has \
                 one, is not closed"
            ));
        }
    }
}
