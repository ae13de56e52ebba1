//! The one native thread that serves the deadlines of all runtimes (R6): a row can be drained as timed out at its
//! deadline even while the user's event loop is blocked.
//!
//! It sleeps until the earliest request. A runtime has at most one request open and makes the next in its tick, so a busy
//! runtime wakes this thread once per timeout, not once per row.
//!
//! Guarantees: no tick before its time; none under the lock of this module.

use crate::sync::Unpoisoned;
use crate::threads;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, Once, Weak};
use std::time::Duration;

/// What the timer calls.
pub trait Ticking: Send + Sync {
    /// The requested time has come. Answers with the time of the next request.
    fn tick(&self, now: u64) -> Option<u64>;
}

struct Request {
    at: u64,
    order: u64,
    target: Weak<dyn Ticking>,
}

impl PartialEq for Request {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}
impl Eq for Request {}
impl PartialOrd for Request {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Request {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

struct Requests {
    heap: BinaryHeap<Reverse<Request>>,
    next_order: u64,
}

static REQUESTS: Mutex<Requests> = Mutex::new(Requests { heap: BinaryHeap::new(), next_order: 0 });
static EARLIER: Condvar = Condvar::new();
/// By how many nanoseconds [`now`] is ahead of the monotonic clock: 0, except after [`advance`].
static AHEAD: AtomicU64 = AtomicU64::new(0);

/// Nanoseconds of the monotonic clock.
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable; CLOCK_MONOTONIC always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64 + AHEAD.load(Relaxed)
}

/// Moves the clock of this process forward and serves the requests that become due. For tests: a long timeout expires when
/// the test says so, and no other row times out because the machine is slow.
pub fn advance(nanoseconds: u64) {
    let requests = REQUESTS.lock().unwrap_or_else(|e| e.into_inner()); // the timer's thread reads the clock under it
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

/// Calls `target` at the time `at`, unless it is gone by then.
pub fn request(at: u64, target: Weak<dyn Ticking>) {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        threads::spawn("udf-timer", threads::OWN_STACK, serve).expect("a thread for timers");
    });
    if push(at, target) {
        EARLIER.notify_one();
    }
}

fn push(at: u64, target: Weak<dyn Ticking>) -> bool {
    let mut requests = REQUESTS.lock().unpoisoned();
    let order = requests.next_order;
    requests.next_order += 1;
    requests.heap.push(Reverse(Request { at, order, target }));
    requests.heap.peek().is_some_and(|Reverse(first)| first.order == order)
}

fn serve() {
    let mut requests = REQUESTS.lock().unpoisoned();
    loop {
        let Some(at) = requests.heap.peek().map(|Reverse(first)| first.at) else {
            requests = EARLIER.wait(requests).unpoisoned();
            continue;
        };
        let time = now();
        if at > time {
            requests = EARLIER.wait_timeout(requests, Duration::from_nanos(at - time)).unpoisoned().0;
            continue;
        }
        let Some(Reverse(due)) = requests.heap.pop() else { continue };
        drop(requests);
        if let Some(at) = due.target.upgrade().and_then(|runtime| runtime.tick(time)) {
            push(at, due.target);
        }
        requests = REQUESTS.lock().unpoisoned();
    }
}
