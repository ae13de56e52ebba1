//! Calls by their arguments: those that are made now, with the rows that wait for them, and outcomes that are kept. What the
//! machine does with them is in `sharing.rs`.
//!
//! Guarantees: arguments are the same only if all their bytes are, and have one record at most; kept outcomes never exceed the
//! limits of [`Share`], and none is found after its time. A call that is made has a record whatever the limits are: its row is
//! held anyway, so the budget bounds it (R4). Records are found by a hash of 64 bits; where two arguments have the same, those
//! that come second get no record, and share no call.
//!
//! Outcomes leave by CLOCK: the one that was kept first goes first, but one that was found since gets another round. Outcomes
//! whose time is over leave when they are looked for, or in their turn.

use super::hash::{hash, pad, Hashed};
use super::list::{Link, Linked, List};
use super::outcome::{Outcome, Weigh};
use super::settings::Share;
use super::slab::{RowKey, Slab};
use smallvec::SmallVec;
use std::collections::hash_map::RandomState;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault};

/// What a record takes besides arguments and value, about: the record, its place in the table, two allocations.
const RECORD_BYTES: u64 = 200;

/// Few arguments are longer: a record has them inside, where they cost no further look into memory.
type Arguments = SmallVec<[u8; 32]>;

/// The list of kept outcomes has no times: each goes to its end.
const LAST: u64 = 0;

/// Writes the arguments of a row of a batch, such that those of two rows are equal bytes if, and only if, they are equal, and
/// that none begin with all of another row's. False: they cannot be read, so the row shares no call.
pub type WriteArguments<B> = Box<dyn Fn(&B, usize, &mut Vec<u8>) -> bool + Send>;

pub(super) struct Sharing<B, V> {
    write_arguments: WriteArguments<B>,
    /// Of the row that is looked up; kept, so that it costs no allocation.
    arguments: Vec<u8>,
    pub calls: Calls<V>,
    /// Rows whose first attempt may start. May hold stale entries; the front never is one.
    pub next: VecDeque<RowKey>,
    /// How many of them are not stale.
    pub next_rows: u64,
}

impl<B, V: fmt::Debug> fmt::Debug for Sharing<B, V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sharing").field("calls", &self.calls).field("next", &self.next).finish_non_exhaustive()
    }
}

impl<B, V: Clone + Weigh> Sharing<B, V> {
    pub fn new(share: Share, write_arguments: WriteArguments<B>) -> Self {
        Sharing { write_arguments, arguments: Vec::new(), calls: Calls::new(share), next: VecDeque::new(), next_rows: 0 }
    }

    /// The row whose first attempt is the next to start.
    pub fn first(&self) -> Option<u32> {
        self.next.front().map(|(row, _)| *row)
    }

    /// Looks up a row. None: it shares no call.
    #[inline]
    pub fn find(&mut self, batch: &B, row: usize, now: u64) -> Option<Found<V>> {
        self.arguments.clear();
        if (self.write_arguments)(batch, row, &mut self.arguments) {
            pad(&mut self.arguments);
            self.calls.find(&self.arguments, now)
        } else {
            None
        }
    }
}

/// What became of rows whose arguments were looked up (R21), and what is kept now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Rows that got a kept outcome.
    pub hits: u64,
    /// Rows that have waited for another row's call.
    pub shared: u64,
    /// Rows whose arguments were new.
    pub misses: u64,
    /// Kept outcomes that made room for others.
    pub evictions: u64,
    /// Outcomes kept now, and their bytes with those of their arguments.
    pub entries: u64,
    pub bytes: u64,
}

#[derive(Debug)]
pub(super) struct Calls<V> {
    share: Share,
    /// By the hash of the arguments.
    records: HashMap<u64, u32, BuildHasherDefault<Hashed>>,
    seed: [u64; 2],
    slab: Slab<Record<V>>,
    /// Records with outcomes, in the order in which they leave.
    kept: List,
    counts: CacheCounts,
}

#[derive(Debug)]
struct Record<V> {
    hash: u64,
    arguments: Arguments,
    state: State<V>,
    link: Link,
}

#[derive(Debug)]
enum State<V> {
    Made(Call),
    Kept {
        outcome: Outcome<V>,
        until: u64,
        bytes: u64,
        /// It was found since its last turn to leave.
        found: bool,
    },
}

/// A call that is made, or about to be.
#[derive(Debug)]
pub(super) struct Call {
    /// When its latest attempt began; u64::MAX: none has.
    pub begun: u64,
    /// The rows that wait for its outcome, in the order in which they came. May hold stale entries.
    waiting: VecDeque<Waiter>,
    /// How many of them are not stale.
    live: usize,
}

/// A row that waits for another row's call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiter {
    pub row: RowKey,
    pub since: u64,
}

/// What there is for a row's arguments.
#[derive(Debug)]
pub(super) enum Found<V> {
    Kept(Outcome<V>),
    /// This call is made now.
    Made(u32),
    /// Nothing: this call is made from now on, for the row.
    New(u32),
}

impl<V> Linked for Record<V> {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

impl Call {
    fn new() -> Call {
        Call { begun: u64::MAX, waiting: VecDeque::new(), live: 0 }
    }

    /// Takes the row that has waited longest. `waits` tells a stale entry.
    pub fn next_waiter(&mut self, waits: impl Fn(RowKey) -> bool) -> Option<Waiter> {
        while let Some(waiter) = self.waiting.pop_front() {
            if waits(waiter.row) {
                self.live -= 1;
                return Some(waiter);
            }
        }
        None
    }

    /// A row has ended while it waited. Stale entries never outnumber the others by much.
    pub fn forget_one(&mut self, waits: impl Fn(RowKey) -> bool) {
        self.live -= 1;
        if self.waiting.len() > 2 * self.live + 16 {
            self.waiting.retain(|waiter| waits(waiter.row));
        }
    }
}

impl<V: Clone + Weigh> Calls<V> {
    pub fn new(share: Share) -> Calls<V> {
        let random = RandomState::new();
        Calls {
            share,
            records: HashMap::default(),
            seed: [random.hash_one(0), random.hash_one(1)],
            slab: Slab::default(),
            kept: List::default(),
            counts: CacheCounts::default(),
        }
    }

    pub fn share(&self) -> &Share {
        &self.share
    }

    pub fn counts(&self) -> CacheCounts {
        self.counts
    }

    /// Looks for arguments, which are padded. None: they get no record.
    #[inline]
    pub fn find(&mut self, arguments: &[u8], now: u64) -> Option<Found<V>> {
        let hash = hash(self.seed, arguments);
        if let Some(&number) = self.records.get(&hash) {
            let record = &mut self.slab[number];
            if record.arguments[..] != *arguments {
                return None;
            }
            match &mut record.state {
                State::Made(_) => return Some(Found::Made(number)),
                State::Kept { outcome, until, found, .. } if now < *until => {
                    *found = true;
                    self.counts.hits += 1;
                    return Some(Found::Kept(outcome.clone()));
                }
                State::Kept { .. } => self.forget(number),
            }
        }
        let arguments = Arguments::from_slice(arguments);
        let number = self.slab.insert(|| Record { hash, arguments, state: State::Made(Call::new()), link: Link::at(LAST) });
        self.records.insert(hash, number);
        self.counts.misses += 1;
        Some(Found::New(number))
    }

    /// A call that is made.
    pub fn call(&mut self, number: u32) -> &mut Call {
        match &mut self.slab[number].state {
            State::Made(call) => call,
            State::Kept { .. } => unreachable!("rows belong to calls that are made"),
        }
    }

    /// A row waits for a call.
    pub fn wait(&mut self, number: u32, waiter: Waiter) {
        let call = self.call(number);
        call.waiting.push_back(waiter);
        call.live += 1;
        self.counts.shared += 1;
    }

    /// A call has ended, with an outcome or without. Keeps the outcome if it may be kept, and returns the call.
    pub fn end(&mut self, number: u32, now: u64, outcome: Option<&Outcome<V>>) -> Call {
        let until = self.share.ttl.map_or(u64::MAX, |ttl| now.saturating_add(ttl));
        let bytes = outcome.and_then(|outcome| self.may_keep(number, outcome));
        let record = &mut self.slab[number];
        let state = match (outcome, bytes) {
            (Some(outcome), Some(bytes)) => {
                let outcome = match outcome.clone() {
                    Outcome::Value(value) => Outcome::Value(value.shared()),
                    other => other,
                };
                let kept = State::Kept { outcome, until, bytes, found: false };
                let made = std::mem::replace(&mut record.state, kept);
                self.make_room(bytes);
                self.kept.push(&mut self.slab, number);
                self.counts.entries += 1;
                self.counts.bytes += bytes;
                made
            }
            _ => {
                let made = std::mem::replace(&mut record.state, State::Made(Call::new()));
                self.remove(number);
                made
            }
        };
        match state {
            State::Made(call) => call,
            State::Kept { .. } => unreachable!("a call ends once"),
        }
    }

    /// The bytes of an outcome with its arguments, if it may be kept.
    fn may_keep(&self, number: u32, outcome: &Outcome<V>) -> Option<u64> {
        let bytes = match outcome {
            Outcome::Value(value) => value.bytes(),
            Outcome::Error(text) if self.share.errors => text.len() as u64,
            _ => return None,
        };
        let bytes = bytes + self.slab[number].arguments.len() as u64 + RECORD_BYTES;
        (bytes <= self.share.bytes).then_some(bytes)
    }

    fn make_room(&mut self, bytes: u64) {
        while self.counts.entries >= self.share.entries || self.counts.bytes + bytes > self.share.bytes {
            let Some(first) = self.kept.first() else { return };
            if let State::Kept { found: found @ true, .. } = &mut self.slab[first].state {
                *found = false;
                self.kept.remove(&mut self.slab, first);
                self.kept.push(&mut self.slab, first);
                continue;
            }
            self.forget(first);
            self.counts.evictions += 1;
        }
    }

    /// Drops a kept outcome.
    fn forget(&mut self, number: u32) {
        if let State::Kept { bytes, .. } = self.slab[number].state {
            self.kept.remove(&mut self.slab, number);
            self.counts.entries -= 1;
            self.counts.bytes -= bytes;
        }
        self.remove(number);
    }

    /// Drops all kept outcomes.
    pub fn forget_kept(&mut self) {
        while let Some(first) = self.kept.first() {
            self.forget(first);
        }
    }

    /// Drops all outcomes and calls: no row belongs to one any more.
    pub fn clear(&mut self) {
        self.forget_kept();
        self.records = HashMap::default();
        self.slab = Slab::default();
    }

    fn remove(&mut self, number: u32) {
        self.records.remove(&self.slab[number].hash);
        self.slab.remove(number);
    }
}
