//! A budget of rate: when attempts may start, so that at most `starts` do in any window of time, evenly paced (R22). Several
//! machines may share one.
//!
//! The budget is a schedule of places, each an interval after the one before. A start takes the next place, and happens at
//! its place or up to [`Rate::slack`] later; a place that is missed by more is lost. That is GCRA (ITU-T I.371) with a small
//! tolerance: a start that is late because its thread was does not delay those after it.
//!
//! Guarantee: at most `starts` starts in any window that is a slack longer than the rate's, so also at most that many calls in
//! any of the rate's own, if each call begins within a slack of its start. Proof: of k starts in a window of length L, the
//! places lie within L + slack, so (k - 1) intervals are less than L + slack. The interval is at least (window + 2 slack) /
//! starts, so with L = window + slack, k - 1 is less than `starts`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// At most so many starts in any window of so many nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    pub starts: u32,
    pub window: u64,
}

impl Rate {
    /// By how much a start may be late without losing its place: a hundredth of the window. So at most one start, and one
    /// in a hundred of the budget, happen at once.
    pub(super) fn slack(self) -> u64 {
        self.window / 100
    }

    /// From place to place.
    pub(super) fn interval(self) -> u64 {
        (self.window + 2 * self.slack()).div_ceil(u64::from(self.starts))
    }
}

/// The schedule of a budget.
#[derive(Debug)]
pub struct Pace {
    rate: Rate,
    /// The next place that nobody has taken. It orders nothing else, so its accesses are relaxed.
    next: AtomicU64,
}

impl Pace {
    pub fn new(rate: Rate) -> Pace {
        Pace { rate, next: AtomicU64::new(0) }
    }

    /// Takes the next place that a start at `now` or later can have.
    fn take(&self, now: u64) -> u64 {
        let place = |next: u64| next.max(now.saturating_sub(self.rate.slack()));
        let taken = self.next.fetch_update(Relaxed, Relaxed, |next| Some(place(next) + self.rate.interval()));
        taken.map_or(0, place)
    }

    /// A place that was missed is free again, unless later ones are taken.
    fn give_back(&self, place: u64) {
        let _ = self.next.compare_exchange(place + self.rate.interval(), place, Relaxed, Relaxed);
    }
}

/// A machine's part in a budget.
#[derive(Debug)]
pub(super) struct Paced {
    pace: Arc<Pace>,
    /// The place of the next start, if it has had to wait.
    place: Option<u64>,
    /// No start before this time. Others may have taken the places since; then the start takes one and waits for it.
    pub opens: u64,
}

impl Paced {
    pub fn new(pace: Arc<Pace>) -> Paced {
        Paced { pace, place: None, opens: 0 }
    }

    /// Takes a place for a start at `now`. Some: not yet; `true` if that is new.
    pub fn refuses(&mut self, now: u64) -> Option<bool> {
        let slack = self.pace.rate.slack();
        if let Some(missed) = self.place.take_if(|place| *place + slack < now) {
            self.pace.give_back(missed);
        }
        let is_new = self.place.is_none();
        let place = self.place.take().unwrap_or_else(|| self.pace.take(now));
        if place > now {
            (self.place, self.opens) = (Some(place), place);
            return Some(is_new);
        }
        self.opens = self.pace.next.load(Relaxed);
        None
    }
}
