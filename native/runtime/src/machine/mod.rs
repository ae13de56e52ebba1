//! The rules of an async function as a state machine without I/O: rows, attempts, order, cap, budget, deadlines, cancel,
//! stop (R1, R4-R6, R13, R17). Time is an argument, in nanoseconds of any monotonic clock. Executors and hosts tell it
//! what happened; it answers what to do. It is proven by simulation against a naive model (`simulation.rs`).
//!
//! Guarantees: every accepted row is handed out exactly once; at most `allowed_in_flight` attempts are open; the first
//! event that ends a row wins, later ones for the same attempt only free its slot.
//!
//! Assumes: one caller at a time (a mutex around it); `now` never goes back.
//!
//! Costs: accepting a batch is O(1) whatever its length, for rows get a record only when they start. Memory is bounded by
//! the budget.

#[cfg(test)]
mod simulation;
mod slab;

use slab::Slab;
use std::collections::VecDeque;

/// How the machine runs its rows; every field has its final value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    pub ordered: bool,
    pub allowed_in_flight: u32,
    /// For one attempt; None: no limit.
    pub timeout: Option<u64>,
    pub max_rows: u64,
    pub max_bytes: u64,
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
    pub batch: B,
    pub row: usize,
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
    pub held: u64,
    pub ready: u64,
    pub drained: u64,
    pub values: u64,
    pub errors: u64,
    pub timed_out: u64,
    pub cancelled: u64,
}

#[derive(Debug)]
struct BatchRecord<B> {
    payload: B,
    first_id: u64,
    /// Rows not handed out yet.
    held: u64,
    bytes: u64,
}

/// Consecutive rows of a batch that have not started.
#[derive(Debug)]
struct Span {
    batch: u32,
    from: u64,
    to: u64,
    fate: Fate,
}

/// What becomes of rows that have not started, when their turn comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Start,
    /// They have ended already, as cancelled.
    Cancelled,
    /// They have ended already, with the text of the poison.
    Poisoned,
}

#[derive(Debug)]
struct Row<V> {
    id: u64,
    batch: u32,
    attempts: u16,
    ended: Option<Outcome<V>>,
}

/// An attempt that has not ended. Those with a deadline are linked in the order of their starts, which is the order of
/// their deadlines, for the timeout is the same for all.
#[derive(Debug)]
struct Attempt {
    generation: u32,
    /// None once the row has ended without it: the attempt is cancelled and only occupies its slot.
    row: Option<u32>,
    deadline: u64,
    earlier: Option<u32>,
    later: Option<u32>,
}

#[derive(Debug)]
pub struct Machine<B, V> {
    settings: Settings,
    batches: Slab<BatchRecord<B>>,
    spans: VecDeque<Span>,
    rows: Slab<Row<V>>,
    attempts: Slab<Attempt>,
    next_generation: u32,
    first_deadline: Option<u32>,
    last_deadline: Option<u32>,
    /// Rows to hand out. Ordered: every started row, in order; the first `ready` have ended. Unordered: ended rows.
    out: VecDeque<u32>,
    cancellations: Vec<Token>,
    next_id: u64,
    held_rows: u64,
    held_bytes: u64,
    stop: Option<Stop>,
    poison: Option<Box<str>>,
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
            first_deadline: None,
            last_deadline: None,
            out: VecDeque::new(),
            cancellations: Vec::new(),
            next_id: 0,
            held_rows: 0,
            held_bytes: 0,
            stop: None,
            poison: None,
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
    pub fn accept(&mut self, first_id: u64, rows: u64, bytes: u64, payload: B) -> Result<(), Refused> {
        if self.stop.is_some() || self.poison.is_some() {
            return Err(Refused::Stopped);
        }
        let Some(next_id) = first_id.checked_add(rows).filter(|_| first_id >= self.next_id) else { return Err(Refused::Id) };
        if !self.has_room() {
            return Err(Refused::WouldBlock);
        }
        self.next_id = next_id;
        if rows > 0 {
            let batch = self.batches.insert(BatchRecord { payload, first_id, held: rows, bytes });
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
            let Some(outcome) = row.ended else { unreachable!("a ready row has ended") };
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
            self.advance();
            if done {
                break;
            }
        }
    }

    /// Cancels the rows of `first_id .. first_id + rows` that have not ended.
    pub fn cancel(&mut self, first_id: u64, rows: u64) {
        let end = first_id.saturating_add(rows);
        let open: Vec<u32> =
            self.attempts.keys().filter(|&a| self.attempts[a].row.is_some_and(|r| (first_id..end).contains(&self.rows[r].id))).collect();
        for attempt in open {
            self.abandon(attempt, Outcome::Cancelled);
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
    pub fn stop(&mut self, mode: Stop) {
        self.stop = Some(match self.stop {
            Some(Stop::Cancel) => Stop::Cancel,
            _ => mode,
        });
        if mode == Stop::Cancel {
            self.cancel(0, u64::MAX);
        }
    }

    /// The toolkit's own failure (R17): what ended stays as it is, all other rows end as errors with this text, and open
    /// attempts are forgotten.
    pub fn poison(&mut self, text: &str) {
        if self.poison.is_some() {
            return;
        }
        self.poison = Some(text.into());
        let open: Vec<u32> = self.attempts.keys().collect();
        for attempt in open {
            self.abandon(attempt, Outcome::Error(text.into()));
            self.close(attempt);
        }
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

    pub fn stopping(&self) -> Option<Stop> {
        self.stop
    }

    /// Stopped, and no row waits and no attempt is open: the executor may close.
    pub fn is_settled(&self) -> bool {
        self.stop.is_some() && self.counts.queued == 0 && self.attempts.is_empty()
    }

    /// No row is left inside.
    pub fn is_empty(&self) -> bool {
        self.held_rows == 0
    }

    pub fn counts(&self) -> Counts {
        Counts { running: self.attempts.len() as u64, ..self.counts }
    }

    // ---- the executor's side ---------------------------------------------------------------------------------------

    /// Whether `start` would answer an attempt.
    pub fn can_start(&self) -> bool {
        !self.spans.is_empty() && self.attempts.len() < self.settings.allowed_in_flight as usize
    }

    /// Opens the next attempt, if one may run now. Its deadline counts from `now`.
    pub fn start(&mut self, now: u64) -> Option<Start<B>> {
        if !self.can_start() {
            return None;
        }
        let (batch, index) = self.next_row()?;
        self.counts.queued -= 1;
        let record = &self.batches[batch];
        let (id, payload) = (record.first_id + index, record.payload.clone());
        let row = self.rows.insert(Row { id, batch, attempts: 1, ended: None });
        if self.settings.ordered {
            self.out.push_back(row);
        }
        self.next_generation = self.next_generation.wrapping_add(1);
        let generation = self.next_generation;
        let deadline = self.settings.timeout.map_or(u64::MAX, |timeout| now.saturating_add(timeout));
        let slot = self.attempts.insert(Attempt { generation, row: Some(row), deadline, earlier: self.last_deadline, later: None });
        match self.last_deadline.replace(slot) {
            Some(last) => self.attempts[last].later = Some(slot),
            None => self.first_deadline = Some(slot),
        }
        self.advance();
        Some(Start { token: Token { slot, generation }, id, attempt: 1, batch: payload, row: index as usize })
    }

    /// The attempt has ended with this outcome. False: its row had ended before, and the outcome is discarded (R6).
    pub fn end(&mut self, token: Token, outcome: Outcome<V>) -> bool {
        let Some(attempt) = self.attempts.get(token.slot).filter(|a| a.generation == token.generation) else { return false };
        let counts = attempt.row.is_some();
        if counts {
            self.abandon_quietly(token.slot, outcome);
        }
        self.close(token.slot);
        self.advance();
        counts
    }

    /// Ends rows whose attempt is past its deadline.
    pub fn tick(&mut self, now: u64) {
        while let Some(slot) = self.first_deadline.filter(|&slot| self.attempts[slot].deadline <= now) {
            self.abandon(slot, Outcome::TimedOut);
        }
        self.advance();
    }

    /// When `tick` has something to do next.
    pub fn next_deadline(&self) -> Option<u64> {
        self.first_deadline.map(|slot| self.attempts[slot].deadline).filter(|&deadline| deadline != u64::MAX)
    }

    /// Attempts to be cancelled since the last call. They stay open until `end`.
    pub fn take_cancellations(&mut self, into: &mut Vec<Token>) {
        into.append(&mut self.cancellations);
    }

    pub fn has_cancellations(&self) -> bool {
        !self.cancellations.is_empty()
    }

    /// Whether the row of this attempt has not ended.
    pub fn is_open(&self, token: Token) -> bool {
        self.attempts.get(token.slot).is_some_and(|a| a.generation == token.generation && a.row.is_some())
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

    /// Rows that have ended before they started; where order is kept they are held until they come to the front.
    fn no_longer_queued(&mut self, rows: u64) {
        self.counts.queued -= rows;
        self.counts.held += rows;
    }

    /// Ends the row of an open attempt and asks for the attempt's cancellation.
    fn abandon(&mut self, slot: u32, outcome: Outcome<V>) {
        let generation = self.attempts[slot].generation;
        self.abandon_quietly(slot, outcome);
        self.cancellations.push(Token { slot, generation });
    }

    /// Ends the row of an open attempt; the attempt has no deadline any more.
    fn abandon_quietly(&mut self, slot: u32, outcome: Outcome<V>) {
        let attempt = &mut self.attempts[slot];
        let Some(row) = attempt.row.take() else { return };
        let (earlier, later) = (attempt.earlier.take(), attempt.later.take());
        match earlier {
            Some(earlier) => self.attempts[earlier].later = later,
            None => self.first_deadline = later,
        }
        match later {
            Some(later) => self.attempts[later].earlier = earlier,
            None => self.last_deadline = earlier,
        }
        self.end_row(row, outcome);
    }

    fn close(&mut self, slot: u32) {
        self.attempts.remove(slot);
    }

    fn end_row(&mut self, slot: u32, outcome: Outcome<V>) {
        match outcome {
            Outcome::Value(_) => self.counts.values += 1,
            Outcome::Error(_) => self.counts.errors += 1,
            Outcome::TimedOut => self.counts.timed_out += 1,
            Outcome::Cancelled => self.counts.cancelled += 1,
        }
        self.rows[slot].ended = Some(outcome);
        self.counts.held += 1;
        if !self.settings.ordered {
            self.out.push_back(slot);
        }
    }

    /// Hands rows that ended before they started on when they have come to the front, then counts what became ready.
    fn advance(&mut self) {
        while let Some(fate) = self.spans.front().map(|span| span.fate).filter(|&fate| fate != Fate::Start) {
            let Some((batch, index)) = self.next_row() else { break };
            let id = self.batches[batch].first_id + index;
            let row = self.rows.insert(Row { id, batch, attempts: 0, ended: None });
            if self.settings.ordered {
                self.out.push_back(row);
            }
            self.counts.held -= 1; // counted since it was cancelled, and again by `end_row`
            let outcome = match &self.poison {
                Some(text) if fate == Fate::Poisoned => Outcome::Error(text.clone()),
                _ => Outcome::Cancelled,
            };
            self.end_row(row, outcome);
        }
        while self.out.get(self.counts.ready as usize).is_some_and(|&row| self.rows[row].ended.is_some()) {
            self.counts.ready += 1;
            self.counts.held -= 1;
        }
    }
}
