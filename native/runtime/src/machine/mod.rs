//! The rules of an async function as a state machine without I/O: rows, attempts, order, cap, budget, deadlines, retries,
//! cancel, stuck attempts, stop (R1, R4-R8, R13, R17). Time is an argument, in nanoseconds of any monotonic clock.
//! Executors and hosts tell it what happened; it answers what to do. It is proven by simulation against a naive model
//! (`simulation.rs`).
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

mod list;
mod settings;
#[cfg(test)]
mod simulation;
mod slab;

use crate::histogram::Histogram;
use list::{Link, Linked, List};
pub use settings::{Gather, Retry, Settings};
use slab::Slab;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

/// An attempt that has not ended so long after its cancellation is stuck (R8), in nanoseconds.
pub const PATIENCE: u64 = 1_000_000_000;

/// How a row ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<V> {
    Value(V),
    Error(Box<str>),
    TimedOut,
    Cancelled,
}

/// A row on its way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished<V> {
    pub id: u64,
    pub attempts: u16,
    pub outcome: Outcome<V>,
}

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
    pub others: Vec<Other<B>>,
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
    stage: Stage<V>,
}

/// A row that has ended and whose turn has come.
#[derive(Debug)]
struct Ready<V> {
    batch: u32,
    finished: Finished<V>,
}

#[derive(Debug)]
enum Stage<V> {
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
    Ended(Outcome<V>),
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
    others: Vec<Option<u32>>,
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
    /// Rows to hand out. They have left `rows`, so that those are few and near, and that the host's side touches none of
    /// them.
    ready: VecDeque<Ready<V>>,
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

impl<B: Clone, V> Machine<B, V> {
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
            ready: VecDeque::new(),
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

    // ---- the host's side -------------------------------------------------------------------------------------------

    /// Whether `accept` would take a batch.
    pub fn has_room(&self) -> bool {
        self.held_rows < self.settings.max_rows && self.held_bytes < self.settings.max_bytes
    }

    /// Whether `drain` has something to hand out.
    pub fn has_results(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Takes a batch whole, or refuses it (R4). Its rows have the ids `first_id ..`; `bytes` count until its last row is
    /// handed out.
    pub fn accept(&mut self, now: u64, first_id: u64, rows: u64, bytes: u64, payload: B) -> Result<(), Refused> {
        if self.stop.is_some() || self.poison.is_some() {
            return Err(Refused::Stopped);
        }
        let Some(next_id) = first_id.checked_add(rows).filter(|_| first_id >= self.next_id) else { return Err(Refused::Id) };
        if !self.has_room() {
            return Err(Refused::WouldBlock);
        }
        self.next_id = next_id;
        self.now = self.now.max(now); // a batch may have waited to be handed over
        if rows > 0 {
            let deadline = self.settings.deadline.map_or(u64::MAX, |deadline| now.saturating_add(deadline));
            let row_bytes = if self.settings.gather.is_some() { bytes.div_ceil(rows) } else { 0 };
            let batch = self.batches.insert(BatchRecord { payload, first_id, held: rows, bytes, row_bytes, accepted: now, deadline });
            self.waiting_bytes += row_bytes * rows;
            self.spans.push_back(Span { batch, from: 0, to: rows, fate: Fate::Start });
            self.held_rows += rows;
            self.held_bytes += bytes;
            self.counts.accepted += rows;
            self.counts.queued += rows;
        }
        Ok(())
    }

    /// Hands out up to `limit` rows, until `enough` says so.
    pub fn drain(&mut self, limit: u64, mut enough: impl FnMut(&Finished<V>) -> bool, into: &mut Vec<Finished<V>>) {
        for _ in 0..limit {
            let Some(Ready { batch: number, finished }) = self.ready.pop_front() else { break };
            self.counts.drained += 1;
            self.held_rows -= 1;
            let batch = &mut self.batches[number];
            batch.held -= 1;
            if batch.held == 0 {
                self.held_bytes -= batch.bytes;
                self.batches.remove(number);
            }
            let done = enough(&finished);
            into.push(finished);
            if done {
                break;
            }
        }
    }

    /// Cancels the rows of `first_id .. first_id + rows` that have not ended.
    pub fn cancel(&mut self, now: u64, first_id: u64, rows: u64) {
        let end = first_id.saturating_add(rows);
        let begun = |row: &Row<V>| !matches!(row.stage, Stage::Ended(_)) && (first_id..end).contains(&row.id);
        let begun: Vec<u32> = self.rows.keys().filter(|&row| begun(&self.rows[row])).collect();
        for row in begun {
            self.end_row(now, row, Outcome::Cancelled);
        }
        for span in std::mem::take(&mut self.spans) {
            let base = self.batches[span.batch].first_id;
            // The part of the span that the range covers, in rows of the batch.
            let from = first_id.saturating_sub(base).clamp(span.from, span.to);
            let to = end.saturating_sub(base).clamp(from, span.to);
            let fate = if span.fate == Fate::Start { Fate::Cancelled } else { span.fate };
            for (from, to, fate) in [(span.from, from, span.fate), (from, to, fate), (to, span.to, span.fate)] {
                let part = Span { batch: span.batch, from, to, fate };
                if from == to {
                    continue;
                }
                if fate != span.fate {
                    self.no_longer_queued(span.batch, to - from);
                }
                if fate != Fate::Start && !self.settings.ordered {
                    self.spans.push_front(part); // where nothing keeps it waiting
                } else {
                    self.spans.push_back(part);
                }
            }
        }
        self.advance();
    }

    /// Refuses further batches. `Cancel` also ends every row that has not ended; it may follow `Drain`.
    pub fn stop(&mut self, now: u64, mode: Stop) {
        self.stop = Some(match self.stop {
            Some(Stop::Cancel) => Stop::Cancel,
            _ => mode,
        });
        if mode == Stop::Cancel {
            self.cancel(now, 0, u64::MAX);
        }
    }

    /// Ends the handle for a failure that leaves nothing to go on with (R8, R17): what ended stays as it is, all other
    /// rows end as errors with this text, and open attempts are forgotten.
    pub fn poison(&mut self, text: &str) {
        if self.poison.is_some() {
            return;
        }
        self.poison = Some(text.into());
        let begun: Vec<u32> = self.rows.keys().filter(|&row| !matches!(self.rows[row].stage, Stage::Ended(_))).collect();
        for row in begun {
            self.end_row(0, row, Outcome::Error(text.into()));
        }
        self.attempts = Slab::default();
        (self.open, self.ending) = (List::default(), List::default());
        self.counts.stuck = 0;
        self.due.clear();
        self.parts.clear();
        self.backing_off.clear();
        self.cancellations.clear();
        for mut span in std::mem::take(&mut self.spans) {
            if span.fate == Fate::Start {
                span.fate = Fate::Poisoned;
                self.no_longer_queued(span.batch, span.to - span.from);
            }
            self.spans.push_back(span);
        }
        self.advance();
    }

    pub fn poisoned(&self) -> Option<&str> {
        self.poison.as_deref()
    }

    /// Whether it was the number of stuck attempts that poisoned the handle (R8).
    pub fn is_overwhelmed(&self) -> bool {
        self.overwhelmed
    }

    pub fn stopping(&self) -> Option<Stop> {
        self.stop
    }

    /// Stopped, and no row waits for an attempt or its end.
    fn is_done(&self) -> bool {
        self.stop.is_some() && self.counts.queued == 0 && self.counts.backing_off == 0
    }

    /// Stopped, no row waits, and no attempt is open: the executor may close.
    pub fn is_settled(&self) -> bool {
        self.is_done() && self.attempts.is_empty()
    }

    /// Stopped, no row waits, and the only open attempts are stuck: nothing more will happen.
    pub fn is_stuck(&self) -> bool {
        self.is_done() && self.counts.stuck > 0 && self.attempts.len() as u64 == self.counts.stuck
    }

    /// No row is left inside.
    pub fn is_empty(&self) -> bool {
        self.held_rows == 0
    }

    /// Bytes of the batches of which not every row has been handed out.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    pub fn counts(&self) -> Counts {
        Counts { running: self.attempts.len() as u64, ready: self.ready.len() as u64, ..self.counts }
    }

    /// How long rows took from their first start to their end, pauses included, where the machine is told the time;
    /// without those that were cancelled or poisoned.
    pub fn latency(&self) -> &Histogram {
        &self.latency
    }

    // ---- the executor's side ---------------------------------------------------------------------------------------

    /// Whether `start` would answer an attempt.
    pub fn can_start(&self) -> bool {
        self.has_slot() && (self.part_rows > 0 || self.is_gathered())
    }

    /// Opens the next attempt, if one may run now: for a part of a micro-batch, else for rows whose pause is over, then
    /// for those that have not started. Its timeout counts from `now`.
    pub fn start(&mut self, now: u64) -> Option<Start<B>> {
        self.now = now;
        if !self.can_start() {
            return None;
        }
        let mut further = Vec::new();
        let first = match self.next_part(&mut further) {
            Some(row) => row,
            None => {
                let row = self.next_row()?;
                self.gather(row, &mut further);
                row
            }
        };
        self.next_generation = self.next_generation.wrapping_add(1);
        let generation = self.next_generation;
        let timeout = self.settings.timeout.map_or(u64::MAX, |timeout| now.saturating_add(timeout));
        let slot = self.attempts.insert(Attempt {
            generation,
            id: self.rows[first].id,
            row: Some(first),
            others: further.iter().copied().map(Some).collect(),
            state: AttemptState::Open,
            link: Link::at(timeout),
        });
        self.open.push(&mut self.attempts, slot);
        let Other { id, attempt, batch, row } = self.run(first, slot);
        let mut deadline = self.rows[first].deadline;
        let mut others = Vec::new();
        for row in further {
            deadline = deadline.max(self.rows[row].deadline);
            others.push(self.run(row, slot));
        }
        self.advance();
        Some(Start { token: Token { slot, generation }, id, attempt, deadline: timeout.min(deadline), batch, row, others })
    }

    /// The attempt has ended with this outcome. False: its row had ended before, or waits for another attempt, and the
    /// outcome is discarded (R6). A micro-batch that ends so has failed as a whole: its rows are split.
    pub fn end(&mut self, now: u64, token: Token, outcome: Outcome<V>) -> bool {
        self.now = now;
        let Some(Attempt { row, others, state, .. }) = self.close(token) else { return false };
        let mut counts = false;
        if others.is_empty() {
            counts = row.is_some_and(|row| self.settle(now, row, outcome));
        } else {
            let rows: Vec<u32> = row.into_iter().chain(others.into_iter().flatten()).collect();
            if state == AttemptState::Open {
                counts = true;
                self.split(&rows);
            } else {
                rows.into_iter().for_each(|row| self.back_off(now, row));
            }
        }
        self.advance();
        counts
    }

    /// The attempt of a micro-batch has ended with an outcome for each of its rows, in the order in which they started.
    pub fn end_rows(&mut self, now: u64, token: Token, outcomes: impl IntoIterator<Item = Outcome<V>>) {
        self.now = now;
        let Some(Attempt { row, others, .. }) = self.close(token) else { return };
        for (row, outcome) in std::iter::once(row).chain(others).zip(outcomes) {
            if let Some(row) = row {
                self.settle(now, row, outcome);
            }
        }
        self.advance();
    }

    /// Does what is due: timeouts, row deadlines, stuck attempts, pauses that are over.
    pub fn tick(&mut self, now: u64) {
        self.now = now;
        while let Some(slot) = self.open.first_until(&mut self.attempts, now) {
            self.ask_to_end(now, slot);
            let rows: Vec<u32> = self.attempts[slot].waiting().collect();
            for row in rows {
                if self.settings.retry.timeouts && self.may_retry(row) {
                    self.rows[row].stage = Stage::Ending(slot);
                    self.counts.backing_off += 1;
                } else {
                    self.end_row(now, row, Outcome::TimedOut);
                }
            }
        }
        while let Some(&(_, row)) = self.row_deadlines.first().filter(|(deadline, _)| *deadline <= now) {
            self.end_row(now, row, Outcome::TimedOut);
        }
        while let Some(slot) = self.ending.first_until(&mut self.attempts, now) {
            self.ending.remove(&mut self.attempts, slot);
            self.give_up_on(now, slot);
        }
        while let Some(&Reverse((_, (row, id)))) = self.backing_off.peek().filter(|Reverse((at, _))| *at <= now) {
            self.backing_off.pop();
            if let Some(record) = self.rows.get_mut(row).filter(|r| r.id == id && matches!(r.stage, Stage::BackingOff)) {
                record.stage = Stage::Due;
                self.due_rows += 1;
                self.waiting_bytes += self.row_bytes(row);
                self.due.push_back(DueRow { row: (row, id), since: now });
            }
        }
        for i in 0..self.spans.len() {
            let span = &mut self.spans[i];
            let Span { batch, from, to, fate } = *span;
            if self.batches[batch].deadline > now {
                break; // rows wait in the order of their deadlines
            }
            if fate == Fate::Start {
                span.fate = Fate::TimedOut;
                self.no_longer_queued(batch, to - from);
            }
        }
        // A stop with `Cancel` has ended all rows: that they are stuck is its answer (R13), not a failure.
        let stopped = self.stop == Some(Stop::Cancel);
        if self.counts.stuck >= u64::from(self.settings.max_stuck) && self.poison.is_none() && !stopped {
            self.overwhelmed = true;
            let text = format!("{} calls ignore their cancellation (max_stuck)", self.counts.stuck);
            self.poison(&text);
        }
        self.advance();
    }

    /// When `tick` has something to do next.
    pub fn next_deadline(&mut self) -> Option<u64> {
        let mut first = u64::MAX;
        let mut consider = |at: Option<u64>| first = first.min(at.unwrap_or(u64::MAX));
        consider(self.open.first_at(&mut self.attempts));
        consider(self.ending.first_at(&mut self.attempts));
        consider(self.row_deadlines.first().map(|(deadline, _)| *deadline));
        consider(self.spans.front().map(|span| self.batches[span.batch].deadline));
        consider(self.backing_off.peek().map(|Reverse((at, _))| *at));
        if self.settings.gather.is_some() && self.has_slot() && !self.can_start() {
            consider(self.gathered_at());
        }
        (first != u64::MAX).then_some(first)
    }

    /// Attempts to be cancelled since the last call. They stay open until `end`.
    pub fn take_cancellations(&mut self, into: &mut Vec<Token>) {
        into.append(&mut self.cancellations);
    }

    pub fn has_cancellations(&self) -> bool {
        !self.cancellations.is_empty()
    }

    /// Attempts found stuck since the last call (R8).
    pub fn take_stuck(&mut self, into: &mut Vec<Stuck>) {
        into.append(&mut self.newly_stuck);
    }

    pub fn has_stuck(&self) -> bool {
        !self.newly_stuck.is_empty()
    }

    /// Whether the row of this attempt waits for its outcome.
    pub fn is_open(&self, token: Token) -> bool {
        self.attempts.get(token.slot).is_some_and(|a| a.generation == token.generation && a.state == AttemptState::Open)
    }

    // ---- inside ----------------------------------------------------------------------------------------------------

    /// Whether the cap leaves room for an attempt.
    fn has_slot(&self) -> bool {
        (self.attempts.len() as u64 - self.counts.stuck) < u64::from(self.settings.allowed_in_flight)
    }

    /// Whether rows wait that an attempt is to start for now, where no part of a micro-batch does.
    fn is_gathered(&self) -> bool {
        let waiting = self.counts.queued + self.due_rows;
        let Some(gather) = self.settings.gather else { return waiting > 0 };
        let enough = waiting >= gather.rows || self.waiting_bytes >= gather.bytes;
        waiting > 0 && (enough || self.stop.is_some() || !self.has_room() || self.gathered_at().is_some_and(|at| at <= self.now))
    }

    /// When the row that has waited longest has waited for others long enough.
    fn gathered_at(&self) -> Option<u64> {
        let wait = self.settings.gather?.wait;
        let queued = self.spans.front().map(|span| self.batches[span.batch].accepted);
        let since = [queued, self.due.front().map(|due| due.since)].into_iter().flatten().min()?;
        Some(since.saturating_add(wait))
    }

    fn row_bytes(&self, row: u32) -> u64 {
        self.batches[self.rows[row].batch].row_bytes
    }

    /// Takes the first row that waits: one whose pause is over, else one that has not started.
    fn next_row(&mut self) -> Option<u32> {
        let row = match self.due.pop_front() {
            Some(DueRow { row: (row, _), .. }) => {
                self.due_rows -= 1;
                self.counts.backing_off -= 1;
                self.counts.retries += 1;
                self.rows[row].stage = Stage::Between;
                self.skip_stale_due();
                row
            }
            None => {
                let (batch, index) = self.next_queued()?;
                self.counts.queued -= 1;
                let row = self.begin(batch, index);
                self.pass_by();
                row
            }
        };
        self.waiting_bytes -= self.row_bytes(row);
        Some(row)
    }

    /// Takes the first row that has not started off its span.
    fn next_queued(&mut self) -> Option<(u32, u64)> {
        let span = self.spans.front_mut()?;
        let taken = (span.batch, span.from);
        span.from += 1;
        if span.from == span.to {
            self.spans.pop_front();
        }
        Some(taken)
    }

    /// Takes those rows of the next part that still wait: the first, and the others into `further`.
    fn next_part(&mut self, further: &mut Vec<u32>) -> Option<u32> {
        while let Some(part) = self.parts.pop_front() {
            let waits = |&(row, id): &Named| self.rows.get(row).is_some_and(|r| r.id == id && matches!(r.stage, Stage::Split));
            let mut rows = part.into_iter().filter(waits).map(|(row, _)| row);
            if let Some(first) = rows.next() {
                further.extend(rows);
                let taken = further.len() as u64 + 1;
                self.part_rows -= taken;
                self.counts.queued -= taken;
                return Some(first);
            }
        }
        None
    }

    /// Takes further rows for the attempt that begins with `first`.
    fn gather(&mut self, first: u32, further: &mut Vec<u32>) {
        let Some(gather) = self.settings.gather else { return };
        let mut bytes = self.row_bytes(first);
        while further.len() as u64 + 1 < gather.rows && bytes < gather.bytes {
            let Some(row) = self.next_row() else { break };
            bytes += self.row_bytes(row);
            further.push(row);
        }
    }

    /// Rows of a micro-batch that failed go on in two parts, before all others.
    fn split(&mut self, rows: &[u32]) {
        for &row in rows {
            self.rows[row].stage = Stage::Split;
        }
        self.part_rows += rows.len() as u64;
        self.counts.queued += rows.len() as u64;
        let (one, other) = rows.split_at(rows.len().div_ceil(2));
        for part in [other, one] {
            self.parts.push_front(part.iter().map(|&row| (row, self.rows[row].id)).collect());
        }
    }

    /// The first of the rows that are due is to be one that really is.
    fn skip_stale_due(&mut self) {
        let is_due = |&(row, id): &Named| self.rows.get(row).is_some_and(|r| r.id == id && matches!(r.stage, Stage::Due));
        while self.due.front().is_some_and(|due| !is_due(&due.row)) {
            self.due.pop_front();
        }
    }

    /// A row begins to run in the attempt `slot`.
    fn run(&mut self, row: u32, slot: u32) -> Other<B> {
        let record = &mut self.rows[row];
        record.attempts += u16::from(!matches!(record.stage, Stage::Split));
        record.stage = Stage::Running(slot);
        let batch = self.batches[record.batch].payload.clone();
        Other { id: record.id, attempt: record.attempts, batch, row: record.index as usize }
    }

    /// Takes an attempt that has ended off its lists.
    fn close(&mut self, token: Token) -> Option<Attempt> {
        let state = self.attempts.get(token.slot).filter(|a| a.generation == token.generation)?.state;
        match state {
            AttemptState::Open => self.open.remove(&mut self.attempts, token.slot),
            AttemptState::Cancelled => self.ending.remove(&mut self.attempts, token.slot),
            AttemptState::Stuck => self.counts.stuck -= 1,
        }
        Some(self.attempts.remove(token.slot))
    }

    /// The attempt that a row waited for has ended. Answers whether the outcome counts.
    fn settle(&mut self, now: u64, row: u32, outcome: Outcome<V>) -> bool {
        let counts = matches!(self.rows[row].stage, Stage::Running(_));
        self.rows[row].stage = Stage::Between;
        if !counts {
            self.back_off(now, row);
        } else if matches!(outcome, Outcome::Error(_)) && self.settings.retry.errors && self.may_retry(row) {
            self.counts.backing_off += 1;
            self.back_off(now, row);
        } else {
            self.end_row(now, row, outcome);
        }
        counts
    }

    /// Makes a row's record.
    fn begin(&mut self, batch: u32, index: u64) -> u32 {
        let BatchRecord { first_id, deadline, .. } = self.batches[batch];
        let row =
            self.rows.insert(Row { id: first_id + index, batch, index, attempts: 0, begun: self.now, deadline, stage: Stage::Between });
        if self.settings.ordered {
            self.in_order.push_back(row);
        }
        if deadline != u64::MAX {
            self.row_deadlines.insert((deadline, row));
        }
        row
    }

    /// Rows that have ended before they started; where order is kept they are held until they come to the front.
    fn no_longer_queued(&mut self, batch: u32, rows: u64) {
        self.counts.queued -= rows;
        self.counts.held += rows;
        self.waiting_bytes -= self.batches[batch].row_bytes * rows;
    }

    fn may_retry(&self, row: u32) -> bool {
        self.rows[row].attempts < self.settings.retry.max_attempts && self.stop != Some(Stop::Cancel)
    }

    /// A row whose attempt has ended waits for the next one. (A timeout has counted it as backing off already.)
    fn back_off(&mut self, now: u64, row: u32) {
        let record = &mut self.rows[row];
        let at = now.saturating_add(self.settings.retry.pause(record.id, record.attempts));
        record.stage = Stage::BackingOff;
        self.backing_off.push(Reverse((at, (row, record.id))));
    }

    /// Asks for the cancellation of an open attempt.
    fn ask_to_end(&mut self, now: u64, slot: u32) {
        self.open.remove(&mut self.attempts, slot);
        let attempt = &mut self.attempts[slot];
        attempt.state = AttemptState::Cancelled;
        attempt.link = Link::at(now.saturating_add(PATIENCE));
        let token = Token { slot, generation: attempt.generation };
        self.ending.push(&mut self.attempts, slot);
        self.cancellations.push(token);
    }

    /// An attempt is stuck (R8): its row does without it.
    fn give_up_on(&mut self, now: u64, slot: u32) {
        let attempt = &mut self.attempts[slot];
        attempt.state = AttemptState::Stuck;
        self.counts.stuck += 1;
        self.newly_stuck.push(Stuck { token: Token { slot, generation: attempt.generation }, id: attempt.id });
        let rows: Vec<u32> = attempt.waiting().collect();
        (attempt.row, attempt.others) = (None, Vec::new());
        for row in rows {
            self.rows[row].stage = Stage::Between;
            if self.settings.retry.idempotent {
                self.back_off(now, row);
            } else {
                self.counts.backing_off -= 1;
                self.end_row(now, row, Outcome::TimedOut);
            }
        }
    }

    /// Ends a row, whatever it waits for; its attempt, if one runs, is cancelled.
    fn end_row(&mut self, now: u64, row: u32, outcome: Outcome<V>) {
        match outcome {
            Outcome::Value(_) => self.counts.values += 1,
            Outcome::Error(_) => self.counts.errors += 1,
            Outcome::TimedOut => self.counts.timed_out += 1,
            Outcome::Cancelled => self.counts.cancelled += 1,
        }
        let record = &mut self.rows[row];
        let deadline = record.deadline;
        let ran = record.attempts > 0 && !matches!(outcome, Outcome::Cancelled) && self.poison.is_none();
        if ran && self.settings.is_timed() {
            self.latency.count(now.saturating_sub(record.begun));
        }
        match std::mem::replace(&mut record.stage, Stage::Ended(outcome)) {
            Stage::Running(slot) => {
                let attempt = &mut self.attempts[slot];
                if attempt.forget(row) && attempt.state == AttemptState::Open {
                    self.ask_to_end(now, slot);
                }
            }
            Stage::Ending(slot) => {
                self.attempts[slot].forget(row);
                self.counts.backing_off -= 1;
            }
            Stage::BackingOff => self.counts.backing_off -= 1,
            Stage::Due => {
                self.due_rows -= 1;
                self.counts.backing_off -= 1;
                self.waiting_bytes -= self.row_bytes(row);
            }
            Stage::Split => {
                self.part_rows -= 1;
                self.counts.queued -= 1;
            }
            Stage::Between => {}
            Stage::Ended(_) => unreachable!("a row ends once"),
        }
        if deadline != u64::MAX {
            self.row_deadlines.remove(&(deadline, row));
        }
        self.counts.held += 1;
        if !self.settings.ordered {
            self.publish(row);
        }
    }

    /// Hands on rows that ended before they started and have come to the front.
    fn pass_by(&mut self) {
        while let Some(fate) = self.spans.front().map(|span| span.fate).filter(|&fate| fate != Fate::Start) {
            let Some((batch, index)) = self.next_queued() else { break };
            self.counts.held -= 1; // counted since it ended, and again by `end_row`
            let row = self.begin(batch, index);
            let outcome = match (fate, &self.poison) {
                (Fate::Poisoned, Some(text)) => Outcome::Error(text.clone()),
                (Fate::TimedOut, _) => Outcome::TimedOut,
                _ => Outcome::Cancelled,
            };
            self.end_row(0, row, outcome);
        }
    }

    /// To be called after every change: what has come to the front is handed on.
    fn advance(&mut self) {
        self.skip_stale_due();
        self.pass_by();
        while self.in_order.front().is_some_and(|&row| matches!(self.rows[row].stage, Stage::Ended(_))) {
            let Some(row) = self.in_order.pop_front() else { break };
            self.publish(row);
        }
    }

    /// Lets a row that has ended be handed out.
    fn publish(&mut self, row: u32) {
        let Row { id, batch, attempts, stage, .. } = self.rows.remove(row);
        let Stage::Ended(outcome) = stage else { unreachable!("only ended rows are handed out") };
        self.counts.held -= 1;
        self.ready.push_back(Ready { batch, finished: Finished { id, attempts, outcome } });
    }
}
