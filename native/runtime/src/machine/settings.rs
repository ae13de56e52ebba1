//! The limits and retries of a machine, fixed when it is made.

use super::pace::Rate;

/// How the machine runs its rows. Every field has its final value: defaults are already applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    pub ordered: bool,
    pub allowed_in_flight: u32,
    /// The limit of attempts in flight adapts; `allowed_in_flight` is its largest value.
    pub adaptive: bool,
    /// For one attempt; None: no limit.
    pub timeout: Option<u64>,
    /// For a row, from its acceptance; None: no limit.
    pub deadline: Option<u64>,
    pub max_rows: u64,
    pub max_bytes: u64,
    pub retry: Retry,
    /// The number of stuck attempts that poisons the handle (R8).
    pub max_stuck: u32,
    /// None: each attempt is for one row.
    pub gather: Option<Gather>,
    /// None: each row has a call of its own.
    pub share: Option<Share>,
    /// Of starts of attempts; None: no limit.
    pub rate: Option<Rate>,
}

impl Settings {
    /// Whether the machine needs the time of starts and ends.
    pub fn is_timed(&self) -> bool {
        let expires = self.share.is_some_and(|share| share.ttl.is_some());
        let bounded = self.timeout.is_some() || self.deadline.is_some() || self.rate.is_some() || self.adaptive;
        bounded || self.retry.errors || self.gather.is_some() || expires
    }
}

/// How rows with equal arguments share a call (R21), and which outcomes are kept for later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The most outcomes that are kept, and their bytes with those of their arguments.
    pub entries: u64,
    pub bytes: u64,
    /// How long one is kept; None: as long as there is room.
    pub ttl: Option<u64>,
    /// Whether errors are kept, too.
    pub errors: bool,
    /// Outcomes are kept for later batches, too.
    pub across_batches: bool,
}

/// How rows are gathered into micro-batches: an attempt starts when the rows that wait reach one of the limits, or when no
/// more can come (no room, or a stop).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gather {
    /// The most rows of an attempt.
    pub rows: u64,
    /// An attempt takes no further row once its rows have this many bytes. A row counts as the mean of its batch.
    pub bytes: u64,
    /// The longest time that a row waits for others.
    pub wait: u64,
}

/// When a row gets another attempt, and after what pause (R7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    pub max_attempts: u16,
    pub timeouts: bool,
    pub errors: bool,
    /// Before the second attempt; doubled for each further one, up to `max_backoff`; minus random jitter of 0–50 %.
    pub backoff: u64,
    pub max_backoff: u64,
    /// Of the jitter.
    pub seed: u64,
    /// Another attempt may begin while a stuck one may still do something.
    pub idempotent: bool,
}

impl Retry {
    pub const NEVER: Retry =
        Retry { max_attempts: 1, timeouts: false, errors: false, backoff: 0, max_backoff: 0, seed: 0, idempotent: false };

    /// The pause after attempt number `attempt` of row `id`; 0: after one that another row began (R21).
    pub(super) fn pause(&self, id: u64, attempt: u16) -> u64 {
        let full = self.backoff.saturating_mul(1 << u32::from(attempt.saturating_sub(1)).min(62)).min(self.max_backoff);
        let random = scramble(self.seed ^ scramble(id ^ (u64::from(attempt) << 48)));
        full - ((u128::from(full / 2) * u128::from(random)) >> 64) as u64
    }
}

/// A number that looks random (the finaliser of SplitMix64: Steele, Lea, Flood 2014).
fn scramble(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}
