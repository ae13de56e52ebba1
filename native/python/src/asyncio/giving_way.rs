//! A busy event loop hands the GIL to threads that wait for it.
//!
//! CPython makes the holder of the GIL switch once somebody has waited for the switch interval *and* the GIL was not released
//! meanwhile. An event loop releases it in each of its turns, for a microsecond: a waiting thread is woken, comes too late, and
//! waits for the interval anew. With turns a little shorter than the interval that takes seconds. So the loop stays away for
//! longer, if somebody waits.
//!
//! Nobody can be asked who waits. But the release of a GIL that a thread waits for wakes this thread by a system call, and
//! takes some microseconds; any other takes some 50 nanoseconds. A wrong guess costs one pause of a loop, or one more wait.
//!
//! Assumes: only the loop's thread uses it.

use crate::gil;
use crate::object::Owned;
use arroyo_udf_plugin::sync::Unpoisoned;
use pyo3_ffi::*;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A release of the GIL that takes longer has woken a thread.
const WAKES: Duration = Duration::from_micros(1);
/// What a thread that was woken needs until it has the GIL.
const PAUSE: Duration = Duration::from_micros(100);
/// The part of the time that a busy loop computes. Low, because it may share its processor.
const BUSY_PART: u32 = 4;

/// A moment, and what the thread had computed until then.
#[derive(Clone, Copy)]
struct Usage {
    at: Instant,
    computed: Duration,
}

impl Usage {
    fn now() -> Usage {
        let mut computed = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: it writes to the variable only.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut computed) };
        Usage { at: Instant::now(), computed: Duration::new(computed.tv_sec as u64, computed.tv_nsec as u32) }
    }

    fn is_busy_since(&self, before: Usage) -> bool {
        self.computed.saturating_sub(before.computed) * BUSY_PART >= self.at - before.at
    }
}

#[derive(Default)]
pub struct GivingWay {
    last: Mutex<Option<Usage>>,
}

impl GivingWay {
    /// Gives way if the loop is busy and somebody waits. Answers whether it is busy.
    ///
    /// # Safety
    /// The GIL is held, on the loop's thread.
    pub unsafe fn turn(&self) -> bool {
        let now = Usage::now();
        let is_busy = self.last.lock().unpoisoned().replace(now).is_some_and(|before| now.is_busy_since(before));
        if is_busy {
            // SAFETY: passed on.
            unsafe { give_way() };
        }
        is_busy
    }
}

/// # Safety
/// The GIL is held.
unsafe fn give_way() {
    let start = Instant::now();
    // SAFETY: passed on; nothing here touches an object.
    unsafe {
        gil::without(|| {
            if start.elapsed() > WAKES {
                std::thread::sleep(PAUSE);
            }
        });
    }
}

/// How long a thread waits for the GIL until CPython makes the holder switch, in nanoseconds; 0 if Python does not say.
///
/// # Safety
/// The GIL is held; no exception is set.
pub unsafe fn switch_interval() -> u64 {
    // SAFETY: passed on. What `sys` has is borrowed, and stays while nothing else runs.
    unsafe {
        let ask = PySys_GetObject(c"getswitchinterval".as_ptr());
        let seconds = if ask.is_null() { None } else { Owned::new(PyObject_CallNoArgs(ask)) };
        let seconds = seconds.map_or(0.0, |seconds| PyFloat_AsDouble(seconds.ptr()));
        PyErr_Clear(); // of a function that somebody has put in its place
        (seconds * 1e9) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_busy_if_it_computed_for_a_quarter_of_the_time() {
        let at = Instant::now();
        let usage =
            |milliseconds, computed| Usage { at: at + Duration::from_millis(milliseconds), computed: Duration::from_millis(computed) };
        assert!(usage(8, 102).is_busy_since(usage(0, 100)));
        assert!(!usage(8, 101).is_busy_since(usage(0, 100)));
    }
}
