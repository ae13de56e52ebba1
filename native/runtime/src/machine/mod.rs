//! The rules of an async function as a state machine without I/O: rows, attempts, order, cap, budget, deadlines, retries,
//! cancel, stuck attempts, stop (R1, R4-R8, R13, R17). Time is an argument, in nanoseconds of any monotonic clock.
//! Executors and hosts tell it what happened; it answers what to do. It is proven by simulation against a naive model
//! (`simulation.rs`).
//!
//! Guarantees: every accepted row is handed out exactly once; at most `allowed_in_flight` attempts are open that are not
//! stuck; a row has at most one open attempt that is not stuck; the first event that ends a row wins, later ones for the
//! same attempt only free its slot.
//!
//! Assumes: one caller at a time (a mutex around it); `now` never goes back.
//!
//! Costs: accepting a batch is O(1) whatever its length, for rows get a record only when they start. Memory is bounded by
//! the budget. Attempt deadlines are in the order of their starts, so they are a list; back-off and row deadlines, which
//! are not, cost a logarithm, where they are used.

mod list;
#[cfg(test)]
mod simulation;
mod slab;

use list::{Link, Linked, List};
use slab::Slab;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

/// An attempt that has not ended so long after its cancellation is stuck (R8), in nanoseconds.
pub const PATIENCE: u64 = 1_000_000_000;

/// How the machine runs its rows; every field has its final value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    pub ordered: bool,
    pub allowed_in_flight: u32,
    /// For one attempt; None: no limit.
    pub timeout: Option<u64>,
    /// For a row, from its acceptance; None: no limit.
    pub deadline: Option<u64>,
    pub max_rows: u64,
    pub max_bytes: u64,
    pub retry: Retry,
    /// As many stuck attempts poison the handle.
    pub max_stuck: u32,
}

/// When a row gets another attempt, and after what pause (R7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    pub max_attempts: u16,
    pub timeouts: bool,
    pub errors: bool,
    /// Before the second attempt; doubled for each further one, up to `max_backoff`, less up to a half at random.
    pub backoff: u64,
    pub max_backoff: u64,
    /// Of the jitter.
    pub seed: u64,
    /// A further attempt may begin although the one before is stuck and may still do something.
    pub idempotent: bool,
}

impl Retry {
    pub const NEVER: Retry =
        Retry { max_attempts: 1, timeouts: false, errors: false, backoff: 0, max_backoff: 0, seed: 0, idempotent: false };

    /// The pause after attempt number `attempt` of row `id`.
    fn pause(&self, id: u64, attempt: u16) -> u64 {
        let full = self.backoff.saturating_mul(1 << u32::from(attempt - 1).min(62)).min(self.max_backoff);
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
}

/// An attempt that ignores its cancellation, and the row that it was started for.
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
    deadline: u64,
    stage: Stage<V>,
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
    /// On the way from one stage to the next.
    Between,
    Ended(Outcome<V>),
}

/// An attempt that has not ended.
#[derive(Debug)]
struct Attempt {
    generation: u32,
    /// Of the row that it was started for.
    id: u64,
    /// The row that waits for it to end. None: its row has ended, or went on without it.
    row: Option<u32>,
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
    /// Rows whose next attempt may start, with their ids: those tell whether a row's number means another one by now.
    due: VecDeque<(u32, u64)>,
    /// How many of them really are.
    due_rows: u64,
    /// (end of the pause, row, id)
    backing_off: BinaryHeap<Reverse<(u64, u32, u64)>>,
    /// Rows that have started and have a deadline.
    row_deadlines: BTreeSet<(u64, u32)>,
    /// Rows to hand out. Ordered: every started row, in order; the first `ready` have ended. Unordered: ended rows.
    out: VecDeque<u32>,
    cancellations: Vec<Token>,
    newly_stuck: Vec<Stuck>,
    next_id: u64,
    held_rows: u64,
    held_bytes: u64,
    stop: Option<Stop>,
    poison: Option<Box<str>>,
    overwhelmed: bool,
    counts: Counts,
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
            backing_off: BinaryHeap::new(),
            row_deadlines: BTreeSet::new(),
            out: VecDeque::new(),
            cancellations: Vec::new(),
            newly_stuck: Vec::new(),
            next_id: 0,
            held_rows: 0,
            held_bytes: 0,
            stop: None,
            poison: None,
            overwhelmed: false,
            counts: Counts::default(),
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
        self.counts.ready > 0
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
        if rows > 0 {
            let deadline = self.settings.deadline.map_or(u64::MAX, |deadline| now.saturating_add(deadline));
            let batch = self.batches.insert(BatchRecord { payload, first_id, held: rows, bytes, deadline });
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
        for _ in 0..limit.min(self.counts.ready) {
            let Some(row) = self.out.pop_front().map(|slot| self.rows.remove(slot)) else { break };
            let Stage::Ended(outcome) = row.stage else { unreachable!("a ready row has ended") };
            self.counts.ready -= 1;
            self.counts.drained += 1;
            self.held_rows -= 1;
            let batch = &mut self.batches[row.batch];
            batch.held -= 1;
            if batch.held == 0 {
                self.held_bytes -= batch.bytes;
                self.batches.remove(row.batch);
            }
            let finished = Finished { id: row.id, attempts: row.attempts, outcome };
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
                    self.no_longer_queued(to - from);
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
        self.backing_off.clear();
        self.cancellations.clear();
        for mut span in std::mem::take(&mut self.spans) {
            if span.fate == Fate::Start {
                span.fate = Fate::Poisoned;
                self.no_longer_queued(span.to - span.from);
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
        Counts { running: self.attempts.len() as u64, ..self.counts }
    }

    // ---- the executor's side ---------------------------------------------------------------------------------------

    /// Whether `start` would answer an attempt.
    pub fn can_start(&self) -> bool {
        (!self.spans.is_empty() || self.due_rows > 0)
            && (self.attempts.len() as u64 - self.counts.stuck) < u64::from(self.settings.allowed_in_flight)
    }

    /// Opens the next attempt, if one may run now: of a row whose pause is over, else of the first row that has not
    /// started. Its timeout counts from `now`.
    pub fn start(&mut self, now: u64) -> Option<Start<B>> {
        if !self.can_start() {
            return None;
        }
        let row = match self.next_due() {
            Some(row) => row,
            None => {
                let (batch, index) = self.next_row()?;
                self.counts.queued -= 1;
                self.begin(batch, index)
            }
        };
        self.next_generation = self.next_generation.wrapping_add(1);
        let generation = self.next_generation;
        let timeout = self.settings.timeout.map_or(u64::MAX, |timeout| now.saturating_add(timeout));
        let attempt = Attempt { generation, id: self.rows[row].id, row: Some(row), state: AttemptState::Open, link: Link::at(timeout) };
        let slot = self.attempts.insert(attempt);
        self.open.push(&mut self.attempts, slot);
        let record = &mut self.rows[row];
        record.attempts += 1;
        record.stage = Stage::Running(slot);
        let start = Start {
            token: Token { slot, generation },
            id: record.id,
            attempt: record.attempts,
            deadline: timeout.min(record.deadline),
            batch: self.batches[record.batch].payload.clone(),
            row: record.index as usize,
        };
        self.advance();
        Some(start)
    }

    /// The attempt has ended with this outcome. False: its row had ended before, or waits for another attempt, and the
    /// outcome is discarded (R6).
    pub fn end(&mut self, now: u64, token: Token, outcome: Outcome<V>) -> bool {
        let Some(attempt) = self.attempts.get(token.slot).filter(|a| a.generation == token.generation) else { return false };
        let (row, state) = (attempt.row, attempt.state);
        match state {
            AttemptState::Open => self.open.remove(&mut self.attempts, token.slot),
            AttemptState::Cancelled => self.ending.remove(&mut self.attempts, token.slot),
            AttemptState::Stuck => self.counts.stuck -= 1,
        }
        self.attempts.remove(token.slot);
        let Some(row) = row else { return false };
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
        self.advance();
        counts
    }

    /// Does what is due: timeouts, row deadlines, stuck attempts, pauses that are over.
    pub fn tick(&mut self, now: u64) {
        while let Some(slot) = self.open.first_until(&mut self.attempts, now) {
            let Some(row) = self.attempts[slot].row else { unreachable!("an open attempt has a row") };
            if self.settings.retry.timeouts && self.may_retry(row) {
                self.rows[row].stage = Stage::Ending(slot);
                self.counts.backing_off += 1;
                self.ask_to_end(now, slot);
            } else {
                self.end_row(now, row, Outcome::TimedOut);
            }
        }
        while let Some(&(_, row)) = self.row_deadlines.first().filter(|(deadline, _)| *deadline <= now) {
            self.end_row(now, row, Outcome::TimedOut);
        }
        while let Some(slot) = self.ending.first_until(&mut self.attempts, now) {
            self.ending.remove(&mut self.attempts, slot);
            self.give_up_on(now, slot);
        }
        while let Some(&Reverse((_, row, id))) = self.backing_off.peek().filter(|Reverse((at, ..))| *at <= now) {
            self.backing_off.pop();
            if let Some(record) = self.rows.get_mut(row).filter(|r| r.id == id && matches!(r.stage, Stage::BackingOff)) {
                record.stage = Stage::Due;
                self.due_rows += 1;
                self.due.push_back((row, id));
            }
        }
        let mut late = 0; // rows wait in the order of their deadlines
        for span in &mut self.spans {
            if self.batches[span.batch].deadline > now {
                break;
            }
            if span.fate == Fate::Start {
                span.fate = Fate::TimedOut;
                late += span.to - span.from;
            }
        }
        self.no_longer_queued(late);
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
        let waiting = self.spans.front().map(|span| self.batches[span.batch].deadline);
        let attempts = [self.open.first_at(&mut self.attempts), self.ending.first_at(&mut self.attempts)];
        let rows = [self.row_deadlines.first().map(|(deadline, _)| *deadline), waiting];
        let pauses = self.backing_off.peek().map(|Reverse((at, ..))| *at);
        attempts.into_iter().chain(rows).chain([pauses]).flatten().min().filter(|&at| at != u64::MAX)
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

    /// Takes the first row that has not started off its span.
    fn next_row(&mut self) -> Option<(u32, u64)> {
        let span = self.spans.front_mut()?;
        let taken = (span.batch, span.from);
        span.from += 1;
        if span.from == span.to {
            self.spans.pop_front();
        }
        Some(taken)
    }

    /// Takes the first row whose pause is over.
    fn next_due(&mut self) -> Option<u32> {
        while let Some((row, id)) = self.due.pop_front() {
            if self.rows.get(row).is_some_and(|record| record.id == id && matches!(record.stage, Stage::Due)) {
                self.due_rows -= 1;
                self.counts.backing_off -= 1;
                self.counts.retries += 1;
                return Some(row);
            }
        }
        None
    }

    /// Makes a row's record.
    fn begin(&mut self, batch: u32, index: u64) -> u32 {
        let BatchRecord { first_id, deadline, .. } = self.batches[batch];
        let row = self.rows.insert(Row { id: first_id + index, batch, index, attempts: 0, deadline, stage: Stage::Between });
        if self.settings.ordered {
            self.out.push_back(row);
        }
        if deadline != u64::MAX {
            self.row_deadlines.insert((deadline, row));
        }
        row
    }

    /// Rows that have ended before they started; where order is kept they are held until they come to the front.
    fn no_longer_queued(&mut self, rows: u64) {
        self.counts.queued -= rows;
        self.counts.held += rows;
    }

    fn may_retry(&self, row: u32) -> bool {
        self.rows[row].attempts < self.settings.retry.max_attempts && self.stop != Some(Stop::Cancel)
    }

    /// A row whose attempt has ended waits for the next one. (A timeout has counted it as backing off already.)
    fn back_off(&mut self, now: u64, row: u32) {
        let record = &mut self.rows[row];
        let at = now.saturating_add(self.settings.retry.pause(record.id, record.attempts));
        record.stage = Stage::BackingOff;
        self.backing_off.push(Reverse((at, row, record.id)));
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
        if let Some(row) = attempt.row.take() {
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
        match std::mem::replace(&mut record.stage, Stage::Ended(outcome)) {
            Stage::Running(slot) => {
                self.attempts[slot].row = None;
                self.ask_to_end(now, slot);
            }
            Stage::Ending(slot) => {
                self.attempts[slot].row = None;
                self.counts.backing_off -= 1;
            }
            Stage::BackingOff => self.counts.backing_off -= 1,
            Stage::Due => {
                self.due_rows -= 1;
                self.counts.backing_off -= 1;
            }
            Stage::Between => {}
            Stage::Ended(_) => unreachable!("a row ends once"),
        }
        if deadline != u64::MAX {
            self.row_deadlines.remove(&(deadline, row));
        }
        self.counts.held += 1;
        if !self.settings.ordered {
            self.out.push_back(row);
        }
    }

    /// Hands rows that ended before they started on when they have come to the front, then counts what became ready.
    fn advance(&mut self) {
        while let Some(fate) = self.spans.front().map(|span| span.fate).filter(|&fate| fate != Fate::Start) {
            let Some((batch, index)) = self.next_row() else { break };
            self.counts.held -= 1; // counted since it ended, and again by `end_row`
            let row = self.begin(batch, index);
            let outcome = match (fate, &self.poison) {
                (Fate::Poisoned, Some(text)) => Outcome::Error(text.clone()),
                (Fate::TimedOut, _) => Outcome::TimedOut,
                _ => Outcome::Cancelled,
            };
            self.end_row(0, row, outcome);
        }
        while self.out.get(self.counts.ready as usize).is_some_and(|&row| matches!(self.rows[row].stage, Stage::Ended(_))) {
            self.counts.ready += 1;
            self.counts.held -= 1;
        }
    }
}
