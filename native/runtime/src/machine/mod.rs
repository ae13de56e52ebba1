//! The rules of an async function as a state machine without I/O: rows, attempts, order, cap, budget, deadlines, retries,
//! cancel, stuck attempts, stop (R1, R4-R8, R13, R17). Time is an argument, in nanoseconds of any monotonic clock.
//! Executors and hosts tell it what happened; it answers what to do. It is proven by simulation against a naive model
//! (`tests/`). What a host may call is in `host.rs`, what an executor may in `executor.rs`, how a row gets from one
//! stage to the next in `rows.rs`, and where it waits for the host in `ready.rs`.
//!
//! Guarantees: every accepted row is handed out exactly once; at most `allowed_in_flight` attempts are open that are not
//! stuck; a row has at most one open attempt that is not stuck; the first event that ends a row wins, later ones for the
//! same attempt only free its slot.
//!
//! An attempt is for one row, or for a micro-batch of rows that were gathered. A micro-batch that fails as a whole is split
//! in two, and each part is started by itself, until the row that fails is alone; that counts as one attempt of each row
//! (R7).
//!
//! Assumes: one caller at a time (a mutex around it); `now` never goes back.
//!
//! Costs: accepting a batch is O(1) whatever its length, for rows get a record only when they start. Memory is bounded by
//! the budget. Attempt deadlines are in the order of their starts, so they are a list; back-off and row deadlines, which
//! are not, cost a logarithm, where they are used.

mod executor;
mod host;
mod list;
mod ready;
mod rows;
mod settings;
mod slab;
#[cfg(test)]
mod tests;

use crate::histogram::Histogram;
use list::{Link, Linked, List};
use ready::ReadyRows;
pub use ready::{Finished, Outcome, Weigh};
pub use settings::{Gather, Retry, Settings};
use slab::Slab;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

/// An attempt that has not ended so long after its cancellation is stuck (R8), in nanoseconds.
pub const PATIENCE: u64 = 1_000_000_000;

/// Names an open attempt; stale ones are recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token {
    slot: u32,
    generation: u32,
}

impl Token {
    /// A small number that no other open attempt has; below the most attempts that were ever open at once.
    pub fn index(self) -> usize {
        self.slot as usize
    }
}

/// An attempt to be executed: row number `row` of batch `batch`.
#[derive(Debug, Clone)]
pub struct Start<B> {
    pub token: Token,
    pub id: u64,
    pub attempt: u16,
    /// When the attempt times out, or its row does; u64::MAX: never.
    pub deadline: u64,
    pub batch: B,
    pub row: usize,
    /// Further rows, of a micro-batch.
    pub others: Box<[Other<B>]>,
}

/// A further row of a micro-batch.
#[derive(Debug, Clone)]
pub struct Other<B> {
    pub id: u64,
    pub attempt: u16,
    pub batch: B,
    pub row: usize,
}

/// An attempt that ignores its cancellation, and the (first) row that it was started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stuck {
    pub token: Token,
    pub id: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The budget is used up (R4).
    WouldBlock,
    /// Ids must rise.
    Id,
    Stopped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    Drain,
    Cancel,
}

/// Where rows are, and how they ended so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub accepted: u64,
    pub queued: u64,
    pub running: u64,
    pub backing_off: u64,
    pub held: u64,
    pub ready: u64,
    pub drained: u64,
    pub values: u64,
    pub errors: u64,
    pub timed_out: u64,
    pub cancelled: u64,
    pub retries: u64,
    pub stuck: u64,
}

#[derive(Debug)]
struct BatchRecord<B> {
    payload: B,
    first_id: u64,
    /// Rows not handed out yet.
    held: u64,
    bytes: u64,
    /// Of one row, where rows are gathered.
    row_bytes: u64,
    accepted: u64,
    /// Of its rows.
    deadline: u64,
}

/// Consecutive rows of a batch that have not started.
#[derive(Debug)]
struct Span {
    batch: u32,
    from: u64,
    to: u64,
    fate: Fate,
}

/// What becomes of rows that have not started, when their turn comes. All but `Start` have ended already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Start,
    Cancelled,
    TimedOut,
    /// With the text of the poison.
    Poisoned,
}

/// A row that has started, or has ended before.
#[derive(Debug)]
struct Row<V> {
    id: u64,
    batch: u32,
    index: u64,
    attempts: u16,
    /// When its first attempt began.
    begun: u64,
    deadline: u64,
    stage: Stage,
    /// Once it has ended, until its turn comes.
    outcome: Option<Outcome<V>>,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    /// Its attempt runs.
    Running(u32),
    /// Its attempt has timed out and is to end before the next begins.
    Ending(u32),
    BackingOff,
    /// The pause is over; the next attempt may start.
    Due,
    /// In a part of a micro-batch that failed; the attempt goes on with this part.
    Split,
    /// On the way from one stage to the next.
    Between,
    Ended,
}

/// A row's number with its id, which tells whether the number means another row by now.
type Named = (u32, u64);

#[derive(Debug)]
struct DueRow {
    row: Named,
    since: u64,
}

/// An attempt that has not ended.
#[derive(Debug)]
struct Attempt {
    generation: u32,
    /// Of the row that it was started for.
    id: u64,
    /// The row that waits for it to end. None: its row has ended, or went on without it.
    row: Option<u32>,
    /// The same for further rows.
    others: Box<[Option<u32>]>,
    state: AttemptState,
    /// Open: when it times out. Cancelled: when it is stuck.
    link: Link,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AttemptState {
    Open,
    Cancelled,
    Stuck,
}

/// What is left of an attempt that has ended.
struct Ended {
    row: Option<u32>,
    others: Box<[Option<u32>]>,
    state: AttemptState,
}

impl Attempt {
    fn waiting(&self) -> impl Iterator<Item = u32> + '_ {
        self.row.iter().chain(self.others.iter().flatten()).copied()
    }

    /// A row waits no longer. Answers whether that was the last.
    fn forget(&mut self, row: u32) -> bool {
        let waiting = std::iter::once(&mut self.row).chain(&mut self.others);
        let mut left = 0;
        for place in waiting {
            if *place == Some(row) {
                *place = None;
            }
            left += u32::from(place.is_some());
        }
        left == 0
    }
}

impl Linked for Attempt {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

#[derive(Debug)]
pub struct Machine<B, V> {
    settings: Settings,
    batches: Slab<BatchRecord<B>>,
    spans: VecDeque<Span>,
    rows: Slab<Row<V>>,
    attempts: Slab<Attempt>,
    next_generation: u32,
    /// Open attempts, by deadline.
    open: List,
    /// Cancelled attempts, by when they are stuck.
    ending: List,
    /// Rows whose next attempt may start. The first is always one that really does.
    due: VecDeque<DueRow>,
    /// How many of them really do.
    due_rows: u64,
    /// Parts of micro-batches that failed.
    parts: VecDeque<Vec<Named>>,
    /// How many of their rows still wait.
    part_rows: u64,
    /// Of the rows that wait to be gathered.
    waiting_bytes: u64,
    /// The latest time told.
    now: u64,
    /// By the end of their pauses.
    backing_off: BinaryHeap<Reverse<(u64, Named)>>,
    /// Rows that have started and have a deadline.
    row_deadlines: BTreeSet<(u64, u32)>,
    /// Where order is kept: every row that has started and is not ready, in order.
    in_order: VecDeque<u32>,
    /// Rows to hand out.
    ready: ReadyRows<V>,
    cancellations: Vec<Token>,
    newly_stuck: Vec<Stuck>,
    next_id: u64,
    held_rows: u64,
    held_bytes: u64,
    stop: Option<Stop>,
    poison: Option<Box<str>>,
    overwhelmed: bool,
    counts: Counts,
    latency: Histogram,
}

impl<B: Clone, V: Weigh> Machine<B, V> {
    pub fn new(settings: Settings) -> Self {
        Machine {
            settings,
            batches: Slab::default(),
            spans: VecDeque::new(),
            rows: Slab::default(),
            attempts: Slab::default(),
            next_generation: 0,
            open: List::default(),
            ending: List::default(),
            due: VecDeque::new(),
            due_rows: 0,
            parts: VecDeque::new(),
            part_rows: 0,
            waiting_bytes: 0,
            now: 0,
            backing_off: BinaryHeap::new(),
            row_deadlines: BTreeSet::new(),
            in_order: VecDeque::new(),
            ready: ReadyRows::new(),
            cancellations: Vec::new(),
            newly_stuck: Vec::new(),
            next_id: 0,
            held_rows: 0,
            held_bytes: 0,
            stop: None,
            poison: None,
            overwhelmed: false,
            counts: Counts::default(),
            latency: Histogram::default(),
        }
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}
