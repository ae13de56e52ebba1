//! A limit of attempts in flight that adapts to the other side (R23): it climbs while more attempts at once bring more answers
//! in the same time, and comes down when they do not, or when attempts fail under the load.
//!
//! It works in rounds, each with one limit. A round's *speed* is its answers, divided by the time of all its attempts, times
//! the limit: by Little's law the answers in a unit of time, as long as all places are taken. After a round it tries a limit
//! that is larger or smaller by a step, and compares. A larger one is kept if the speed rises by a quarter of the step or
//! more, a smaller one if it falls by less than that; then the next step goes the same way and is twice as large. Otherwise
//! the limit goes back, and the next round measures anew. That is the gradient of the latency, as in TCP Vegas and Netflix's
//! limits, but without their least latency, which would have to be learnt again whenever calls become slower by themselves.
//! If more than a tenth of a round's attempts fail, the limit falls by a quarter, as in TCP.
//!
//! Guarantees: the limit is between 1 and `most`; a round in which it was not reached changes nothing.
//! Assumes: attempts of one round are like those of another.

/// The first limit.
const FIRST: u32 = 16;
/// A step, in parts of the limit.
const LEAST_STEP: f64 = 0.125;
const LARGEST_STEP: f64 = 0.5;
/// The part of a step that a speed must follow.
const FOLLOWS: f64 = 0.25;
/// The least attempts of a round; otherwise it has twice the limit.
const LEAST_SAMPLES: u32 = 16;
/// Once smaller limits were slower, so many times larger ones are tried before a smaller one is again.
const MOST_UPS: u32 = 4;
/// The time of an attempt that does not count.
const NEVER: u64 = u64::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

/// What is known of a limit.
#[derive(Debug, Clone, Copy)]
struct Measured {
    limit: u32,
    speed: f64,
}

/// The attempts that began and ended in this round.
#[derive(Debug, Default)]
struct Round {
    since: u64,
    answers: u32,
    failures: u32,
    /// Of all of them.
    time: u64,
    /// The limit was reached.
    is_full: bool,
}

#[derive(Debug)]
pub(super) struct Adaptive {
    most: u32,
    limit: u32,
    /// How often it has fallen because attempts failed.
    pub overloads: u64,
    /// When the attempt in each slot began.
    begun: Vec<u64>,
    round: Round,
    /// What the limit is compared with; None: with nothing, this round measures it.
    kept: Option<Measured>,
    way: Way,
    step: f64,
    /// How many times larger limits are tried before the next smaller one, and how many are left.
    ups: u32,
    ups_left: u32,
}

impl Adaptive {
    pub fn new(most: u32) -> Adaptive {
        Adaptive {
            most,
            limit: FIRST.min(most),
            overloads: 0,
            begun: Vec::new(),
            round: Round::default(),
            kept: None,
            way: Way::Up,
            step: LARGEST_STEP,
            ups: 1,
            ups_left: 1,
        }
    }

    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// An attempt has begun; now so many are in flight.
    pub fn begin(&mut self, now: u64, slot: u32, in_flight: u64) {
        if self.begun.len() <= slot as usize {
            self.begun.resize(slot as usize + 1, NEVER);
        }
        self.begun[slot as usize] = now;
        self.round.is_full |= in_flight >= u64::from(self.limit);
    }

    /// An attempt has failed, or was answered. Without this it does not count.
    pub fn end(&mut self, now: u64, slot: u32, failed: bool) {
        let begun = std::mem::replace(&mut self.begun[slot as usize], NEVER);
        if begun < self.round.since || begun == NEVER {
            return; // it has seen another limit
        }
        self.round.time += now.saturating_sub(begun).max(1);
        *(if failed { &mut self.round.failures } else { &mut self.round.answers }) += 1;
        if self.round.answers + self.round.failures >= self.limit.saturating_mul(2).max(LEAST_SAMPLES) {
            let Round { answers, failures, time, is_full, .. } =
                std::mem::replace(&mut self.round, Round { since: now, ..Round::default() });
            let speed = f64::from(self.limit) * f64::from(answers) / time as f64;
            if failures * 10 > answers + failures {
                self.fall();
            } else if is_full {
                self.judge(speed);
            } else {
                self.go_back();
            }
        }
    }

    /// An attempt will not count, whatever becomes of it.
    pub fn forget(&mut self, slot: u32) {
        self.begun[slot as usize] = NEVER;
    }

    fn fall(&mut self) {
        self.overloads += 1;
        let tried = self.kept.filter(|kept| kept.limit < self.limit);
        self.limit = tried.map_or(self.limit - self.limit.div_ceil(4).min(self.limit - 1), |kept| kept.limit);
        (self.kept, self.step) = (None, LEAST_STEP);
    }

    /// Leaves a limit that was tried.
    fn go_back(&mut self) {
        if let Some(kept) = self.kept.take() {
            self.limit = kept.limit;
        }
    }

    fn judge(&mut self, speed: f64) {
        let now = Measured { limit: self.limit, speed };
        let Some(kept) = self.kept.filter(|kept| kept.limit != self.limit) else { return self.try_next(now) };
        let change = f64::from(self.limit) / f64::from(kept.limit) - 1.0;
        if speed >= kept.speed * (1.0 + change * FOLLOWS) {
            self.step = (2.0 * self.step).min(LARGEST_STEP);
            self.ups = 1;
            return self.try_next(now);
        }
        self.limit = kept.limit;
        (self.kept, self.step) = (None, LEAST_STEP);
        (self.way, self.ups_left) = match self.way {
            Way::Up if self.ups_left > 1 => (Way::Up, self.ups_left - 1),
            Way::Up => (Way::Down, 0),
            Way::Down => {
                self.ups = (2 * self.ups).min(MOST_UPS);
                (Way::Up, self.ups)
            }
        };
    }

    /// Keeps a limit, and tries the next.
    fn try_next(&mut self, kept: Measured) {
        self.kept = Some(kept);
        let step = ((f64::from(self.limit) * self.step) as u32).max(1);
        self.limit = match self.way {
            Way::Up => self.limit.saturating_add(step).min(self.most),
            Way::Down => self.limit.saturating_sub(step).max(1),
        };
        if self.limit == kept.limit {
            // At an end: the other way next.
            self.way = if self.way == Way::Up { Way::Down } else { Way::Up };
            (self.kept, self.step, self.ups_left) = (None, LEAST_STEP, self.ups);
        }
    }
}
