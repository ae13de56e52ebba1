//! The rules of an async function as a state machine without I/O: rows, attempts, order, cap, budget, deadlines, retries,
//! cancel, stuck attempts, stop (R1, R4-R8, R13, R17, R21 to R23). Time is an argument, in nanoseconds of any monotonic clock.
//! Hosts and executors report events; it answers with what to do. Simulation against a naive model proves it (`tests/`).
//!
//! | file          | what it holds                                                             |
//! |---------------|---------------------------------------------------------------------------|
//! | `host.rs`     | what a host calls: batches in, results out, cancel, stop                  |
//! | `executor.rs` | what an executor calls: attempts to start, how they end, timeouts; which  |
//! |               | rows get another attempt                                                  |
//! | `attempts.rs` | their records, and the rows that wait for their ends                      |
//! | `rows.rs`     | how a row gets from one stage to the next; how it backs off               |
//! | `stretch.rs`  | rows without records: their calls end at once                              |
//! | `sharing.rs`  | rows with equal arguments: one call, and outcomes that are kept           |
//! | `calls.rs`    | calls and kept outcomes by their arguments; `hash.rs`: their hash         |
//! | `ready.rs`    | rows that wait for the host to take them                                  |
//! | `pace.rs`     | a budget of rate, which several machines may share                        |
//! | `adaptive.rs` | a limit of attempts that adapts                                           |
//! | `outcome.rs`  | types: the ways in which rows end                                         |
//! | `settings.rs` | limits and retries, each with its final value; the pause before a retry   |
//! | `slab.rs`, `list.rs` | records with stable numbers, and lists through them                |
//!
//! Guarantees: every accepted row is handed out exactly once; at most `allowed_in_flight` attempts are open that are not
//! stuck; a row has at most one open attempt that is not stuck; the first event that ends a row wins, later ones for the
//! same attempt only free its slot; an attempt is open until its executor says that it has ended, whatever ended its row
//! (a timeout, a stop, a poisoning).
//!
//! An attempt is for one row, or for a micro-batch: rows that were gathered. A micro-batch that fails as a whole is split in
//! two and each part starts again, until the failing row is alone; that counts as one attempt of each row (R7).
//!
//! Rows with equal arguments may share a call: one of them leads, the others wait for its outcome (R21).
//!
//! Assumes: one caller at a time (a mutex around it); `now` never goes back.
//!
//! Costs: accepting a batch is O(1) whatever its length, because rows get a record only when they start, or when their
//! arguments are looked up. The budget bounds
//! memory. Attempts time out in the order of their starts, so a list holds them; back-off and deadlines of rows and batches
//! have no such order and cost a logarithm, where they are used.

mod adaptive;
mod attempts;
mod calls;
mod executor;
mod hash;
mod host;
mod list;
mod outcome;
mod pace;
mod ready;
mod rows;
mod settings;
mod sharing;
mod slab;
mod stretch;
#[cfg(test)]
mod tests;

use crate::histogram::Histogram;
use adaptive::Adaptive;
use attempts::{AttemptRecord, AttemptState, Closed, First, FurtherRows, Number};
use calls::Sharing;
pub use calls::{CacheCounts, WriteArguments};
use list::{Link, List};
pub use outcome::{Finished, Limit, Outcome, Weigh};
use pace::Paced;
pub use pace::{Pace, Rate};
use ready::ReadyRows;
pub use settings::{Gather, Retry, Settings, Share};
use slab::{RowKey, Slab};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;
use stretch::OpenStretch;
pub use stretch::Stretch;

/// An attempt that runs on for this long after its cancellation is stuck (R8), in nanoseconds.
pub const PATIENCE: u64 = 1_000_000_000;

/// Names an open attempt; stale ones are recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token {
    slot: u32,
    generation: u32,
}

impl Token {
    /// A small number, unique among the attempts that have not ended; less than the most there ever were at once.
    pub fn index(self) -> usize {
        self.slot as usize
    }

    /// Tells it from the tokens with the same index, of attempts that have ended.
    pub fn generation(self) -> u32 {
        self.generation
    }

    /// As a number, for another process.
    pub fn number(self) -> u64 {
        (u64::from(self.generation) << 32) + u64::from(self.slot)
    }

    pub fn of_number(number: u64) -> Token {
        Token { slot: number as u32, generation: (number >> 32) as u32 }
    }
}

/// An attempt to execute: row number `row` of batch `batch`.
#[derive(Debug, Clone)]
pub struct Start<B> {
    pub token: Token,
    pub id: u64,
    pub attempt: u16,
    /// When the attempt or its row times out, whichever is first; u64::MAX: never.
    pub deadline: u64,
    /// When its row does.
    pub row_deadline: u64,
    pub batch: B,
    pub row: usize,
    /// The further rows of a micro-batch.
    pub others: Box<[FurtherRow<B>]>,
}

/// A further row of a micro-batch.
#[derive(Debug, Clone)]
pub struct FurtherRow<B> {
    pub id: u64,
    pub attempt: u16,
    pub batch: B,
    pub row: usize,
}

/// An attempt that ignores its cancellation, with the id of its (first) row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stuck {
    pub token: Token,
    pub id: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The budget is used up (R4).
    WouldBlock,
    /// Ids must rise from batch to batch.
    Id,
    Stopped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    Drain,
    Cancel,
}

/// How many rows are where now, and how many have ended how since the start.
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
    /// Rows that wait for another row's call.
    pub waiting: u64,
    /// Attempts that had to wait for the budget of rate.
    pub paced: u64,
    /// The most attempts at once, now.
    pub limit: u64,
    /// How often a limit that adapts has fallen because attempts failed.
    pub overloads: u64,
}

#[derive(Debug)]
struct BatchRecord<B> {
    payload: B,
    first_id: u64,
    /// Rows not handed out yet.
    held: u64,
    bytes: u64,
    /// The mean bytes of a row; 0 unless rows are gathered.
    row_bytes: u64,
    /// When the batch was.
    accepted: u64,
    /// Of its rows; u64::MAX: none.
    deadline: u64,
    /// Where the deadline is from.
    limit: Limit,
}

/// Consecutive rows of a batch that have not started.
#[derive(Debug)]
struct Span {
    batch: u32,
    from: u64,
    to: u64,
    fate: Fate,
}

/// What happens to rows that have not started, when their turn comes. With any fate but `Start` they have ended already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Start,
    Cancelled,
    TimedOut,
    /// An error with the text of the poison.
    Poisoned,
}

/// A row whose turn to start has come, or that ended before it.
#[derive(Debug)]
struct Row<V> {
    id: u64,
    batch: u32,
    attempts: u16,
    /// When the first attempt began.
    begun: u64,
    stage: Stage,
    /// The call that it leads or waits for; NO_CALL: none that is shared.
    call: u32,
    /// From its end until the rows before it have ended.
    outcome: Option<Outcome<V>>,
}

const NO_CALL: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
enum Stage {
    /// Its arguments were looked up and are new: its first attempt may start.
    Next,
    /// It waits for another row's call.
    Waiting,
    /// In this attempt.
    Running(Number),
    /// This attempt has timed out and must end before the next one begins.
    Ending(Number),
    BackingOff,
    /// The pause is over; the next attempt may start.
    Due,
    /// In a part of a micro-batch that failed; the attempt continues with this part.
    Split,
    /// On the way from one stage to the next.
    Between,
    Ended,
}

#[derive(Debug)]
struct DueRow {
    row: RowKey,
    since: u64,
}

#[derive(Debug)]
pub struct Machine<B, V> {
    settings: Settings,
    batches: Slab<BatchRecord<B>>,
    spans: VecDeque<Span>,
    rows: Slab<Row<V>>,
    attempts: Slab<AttemptRecord>,
    /// The further rows of micro-batches that have not ended, by attempt.
    further: HashMap<u32, FurtherRows>,
    next_generation: u32,
    /// None: starts have no budget of rate.
    paced: Option<Paced>,
    /// None: the limit of attempts is that of the settings.
    adaptive: Option<Box<Adaptive>>,
    /// Open attempts, by timeout.
    open: List,
    /// Cancelled attempts, by when they become stuck.
    ending: List,
    /// Rows whose next attempt may start, by the end of their pauses. May hold stale entries; the front never is one.
    due: VecDeque<DueRow>,
    /// How many of them are not stale.
    due_rows: u64,
    /// Parts of micro-batches that failed.
    parts: VecDeque<Vec<RowKey>>,
    /// How many of their rows still wait.
    part_rows: u64,
    /// Bytes of the rows that wait to be gathered.
    waiting_bytes: u64,
    /// The latest time that was passed in.
    now: u64,
    /// Rows in a pause, by its end. May hold stale entries.
    backing_off: BinaryHeap<Reverse<(u64, RowKey)>>,
    /// Rows that have started and have a deadline.
    row_deadlines: BTreeSet<(u64, u32)>,
    /// Batches with a deadline, until it has passed or their last row is handed out.
    batch_deadlines: BTreeSet<(u64, u32)>,
    /// Ordered: every row that has started and is not ready, in order. Unordered: empty.
    in_order: VecDeque<u32>,
    /// Rows that a drain may hand out.
    ready: ReadyRows<V>,
    /// If rows share calls.
    sharing: Option<Box<Sharing<B, V>>>,
    stretch: Option<OpenStretch>,
    cancellations: Vec<Token>,
    newly_stuck: Vec<Stuck>,
    next_id: u64,
    held_rows: u64,
    held_bytes: u64,
    stop: Option<Stop>,
    poison: Option<Box<str>>,
    /// Too many stuck attempts were the reason of the poison.
    overwhelmed: bool,
    counts: Counts,
    latency: Histogram,
}

impl<B: Clone, V: Clone + Weigh> Machine<B, V> {
    pub fn new(settings: Settings) -> Self {
        Machine {
            settings,
            batches: Slab::default(),
            spans: VecDeque::new(),
            rows: Slab::default(),
            attempts: Slab::default(),
            further: HashMap::new(),
            next_generation: 0,
            adaptive: settings.adaptive.then(|| Box::new(Adaptive::new(settings.allowed_in_flight))),
            paced: settings.rate.map(|rate| Paced::new(Arc::new(Pace::new(rate)))),
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
            batch_deadlines: BTreeSet::new(),
            in_order: VecDeque::new(),
            ready: ReadyRows::new(),
            sharing: None,
            stretch: None,
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

    /// A machine whose rows share calls, if the settings say so. `write_arguments` tells which rows have equal arguments.
    pub fn sharing(settings: Settings, write_arguments: WriteArguments<B>) -> Self {
        let sharing = settings.share.map(|share| Box::new(Sharing::new(share, write_arguments)));
        Machine { sharing, ..Machine::new(settings) }
    }

    /// Takes part in a budget of the settings' rate that others have, too. Before the first row.
    pub fn paced_by(&mut self, pace: Arc<Pace>) {
        self.paced = Some(Paced::new(pace));
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}
