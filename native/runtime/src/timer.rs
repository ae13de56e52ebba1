//! The one native thread that serves the deadlines of all runtimes (R6): a row can be drained as timed out at its
//! deadline even while the user's event loop is blocked.
//!
//! It sleeps until the earliest request. A target has at most one request open, its [`Alarm`], and makes the next in its
//! tick, so a busy runtime wakes this thread once per timeout, not once per row.
//!
//! Guarantees: no tick before its time; none under the lock of this module. The thread exists before anything can ask for
//! its calls ([`start`]), and a tick that panics does not end it. An alarm that is dropped leaves nothing behind.

use crate::panics::catch_own;
use crate::sync::Unpoisoned;
use crate::threads;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, Weak};
use std::time::Duration;

/// What the timer calls.
pub trait Ticking: Send + Sync {
    /// The requested time has come. A target that panics here gets no further call, unless it asks for one.
    fn tick(&self, now: u64);
}

/// By time, then by alarm.
type Requests = BTreeMap<(u64, u64), Weak<dyn Ticking>>;

static REQUESTS: Mutex<Requests> = Mutex::new(BTreeMap::new());
static EARLIER: Condvar = Condvar::new();
/// By how many nanoseconds [`now`] is ahead of the monotonic clock: 0, except after [`advance`].
static AHEAD: AtomicU64 = AtomicU64::new(0);
/// Each advance: when it came, by the monotonic clock, and by how much.
static ADVANCES: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

/// Nanoseconds of the monotonic clock. Under loom no time passes.
#[cfg(all(test, loom))]
pub fn now() -> u64 {
    1
}

/// Nanoseconds of the monotonic clock.
#[cfg(not(all(test, loom)))]
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable; CLOCK_MONOTONIC always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64 + AHEAD.load(Relaxed)
}

/// A time that [`now`] has just passed: at most [`tick`] ago. For a quarter of the cost.
pub fn lately() -> u64 {
    if cfg!(all(test, loom)) {
        return now();
    }
    coarse(libc::clock_gettime) + AHEAD.load(Relaxed)
}

/// By how much [`lately`] may be late: a tick of the system, 1 to 10 ms.
pub fn tick() -> u64 {
    static TICK: AtomicU64 = AtomicU64::new(0);
    match TICK.load(Relaxed) {
        0 => {
            TICK.store(coarse(libc::clock_getres), Relaxed);
            TICK.load(Relaxed)
        }
        known => known,
    }
}

fn coarse(read: unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> libc::c_int) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable; the clock exists since Linux 2.6.32.
    unsafe { read(libc::CLOCK_MONOTONIC_COARSE, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Moves the clock of this process forward and serves the requests that become due. For tests: a long timeout expires when
/// the test says so, and no other row times out because the machine is slow.
pub fn advance(nanoseconds: u64) {
    let requests = REQUESTS.lock().unwrap_or_else(|e| e.into_inner()); // the timer's thread reads the clock under it
    let came = on_system_clock(now());
    ADVANCES.lock().unpoisoned().push((came, nanoseconds));
    AHEAD.fetch_add(nanoseconds, Relaxed);
    drop(requests);
    EARLIER.notify_one();
}

/// A time of [`now`] in nanoseconds of the monotonic clock, which others can read; u64::MAX stays.
pub fn on_system_clock(time: u64) -> u64 {
    if time == u64::MAX {
        time
    } else {
        time.saturating_sub(AHEAD.load(Relaxed))
    }
}

/// What [`now`] was at a time of the monotonic clock, which another process has read.
pub fn from_system_clock(time: u64) -> u64 {
    let advances = ADVANCES.lock().unpoisoned();
    time.saturating_add(advances.iter().filter(|(came, _)| *came <= time).map(|(_, by)| by).sum())
}

/// Makes the thread, at the first call that succeeds. Call it before the first alarm is set; a failure spoils nothing.
pub fn start() -> io::Result<()> {
    static STARTED: Mutex<bool> = Mutex::new(false);
    let mut started = STARTED.lock().unpoisoned();
    if !*started {
        threads::spawn("udf-timer", threads::OWN_STACK, serve)?;
        *started = true;
    }
    Ok(())
}

/// A target's request for a call; withdrawn when it is dropped.
#[derive(Debug)]
pub struct Alarm {
    number: u64,
    at: Option<u64>,
}

impl Alarm {
    /// An alarm that is not set.
    pub fn new() -> Alarm {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Alarm { number: LAST.fetch_add(1, Relaxed), at: None }
    }

    /// Requests a call at the time `at`, unless one at that time or earlier is requested.
    pub fn set(&mut self, at: u64, target: impl FnOnce() -> Weak<dyn Ticking>) {
        if self.at.is_some_and(|known| known <= at) {
            return;
        }
        let mut requests = requests();
        if let Some(later) = self.at.replace(at) {
            requests.remove(&(later, self.number));
        }
        requests.insert((at, self.number), target());
        let is_first = requests.keys().next() == Some(&(at, self.number));
        drop(requests);
        if is_first {
            EARLIER.notify_one();
        }
    }

    /// When the call is requested for.
    #[cfg(all(test, not(loom)))]
    pub fn at(&self) -> Option<u64> {
        self.at
    }

    /// Takes the request back, if there is one. To be called in the tick, which may come for another request than the
    /// present one: the two met.
    pub fn withdraw(&mut self) {
        if let Some(at) = self.at.take() {
            requests().remove(&(at, self.number));
        }
    }
}

impl Default for Alarm {
    fn default() -> Alarm {
        Alarm::new()
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.withdraw();
    }
}

fn requests() -> MutexGuard<'static, Requests> {
    REQUESTS.lock().unpoisoned()
}

/// The thread's life.
fn serve() {
    let mut waiting = requests();
    loop {
        let Some(first) = waiting.first_entry() else {
            waiting = EARLIER.wait(waiting).unpoisoned();
            continue;
        };
        let (at, time) = (first.key().0, now());
        if at > time {
            waiting = EARLIER.wait_timeout(waiting, Duration::from_nanos(at - time)).unpoisoned().0;
            continue;
        }
        let target = first.remove();
        drop(waiting);
        // A runtime catches its own panics. But the last reference to a target may be the one made here.
        drop(catch_own(move || target.upgrade().into_iter().for_each(|target| target.tick(time))));
        waiting = requests();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::mpsc::{channel, Sender};
    use std::sync::Arc;

    /// Tells of its ticks, or panics.
    struct Target(Option<Sender<u64>>);

    impl Ticking for Target {
        fn tick(&self, now: u64) {
            match &self.0 {
                Some(told) => told.send(now).expect("the test listens"),
                None => panic!("of a tick"),
            }
        }
    }

    fn weak(target: &Arc<Target>) -> Weak<dyn Ticking> {
        Arc::downgrade(target) as Weak<dyn Ticking>
    }

    #[test]
    fn a_tick_that_panics_does_not_end_the_timer() {
        start().expect("a thread");
        let (tell, told) = channel();
        let (broken, whole) = (Arc::new(Target(None)), Arc::new(Target(Some(tell))));
        let (mut first, mut second) = (Alarm::new(), Alarm::new());
        first.set(now(), || weak(&broken));
        second.set(now() + 1, || weak(&whole));
        assert!(told.recv().is_ok());
    }

    #[test]
    fn a_time_that_no_clock_shows_is_no_overflow() {
        advance(1);
        assert_eq!(from_system_clock(u64::MAX), u64::MAX);
    }

    #[test]
    fn a_target_that_is_gone_leaves_nothing_in_the_timer() {
        let target = Arc::new(Target(None));
        let mut alarm = Alarm::new();
        alarm.set(u64::MAX, || weak(&target));
        alarm.set(u64::MAX - 1, || weak(&target));
        assert_eq!(Arc::weak_count(&target), 1, "an earlier request replaces the later one");
        alarm.set(u64::MAX, || weak(&target));
        assert_eq!(Arc::weak_count(&target), 1, "a later request adds nothing to the earlier one");
        drop(alarm);
        assert_eq!(Arc::weak_count(&target), 0, "its memory is free although its time has not come");
    }
}
