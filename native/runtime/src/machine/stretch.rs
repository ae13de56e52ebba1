//! Stretches: consecutive rows of a batch that one executor calls one after the other. As long as their calls end at once,
//! these rows have no record and no attempt, which cost more than the rest of such a row.
//!
//! Guarantees: to host and statistics its rows are as other rows that run. The order of rows holds, because no later row
//! starts meanwhile. A row of the stretch that waits for an earlier row, or for its next attempt, gets a record.
//! Assumes: the caller ends the stretch before it cancels rows, stops with [`Stop::Cancel`], poisons, or starts an attempt;
//! and before a tick at which it must end ([`Machine::stretch_must_end`]).

use super::*;

/// The rows `from .. to` of a batch.
#[derive(Debug)]
pub struct Stretch<B> {
    pub batch: B,
    pub first_id: u64,
    pub from: u64,
    pub to: u64,
}

/// What is left of a stretch. The row in hand is `next`.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenStretch {
    batch: u32,
    from: u64,
    next: u64,
    to: u64,
    /// When the row in hand began.
    since: u64,
}

impl OpenStretch {
    /// Rows that have not ended.
    pub(super) fn rows(&self) -> u64 {
        self.to - self.next
    }
}

impl<B: Clone, V: Clone + Weigh> Machine<B, V> {
    /// Takes up to `most` rows that may start. None: there are none, or they need records: rows that share calls or are
    /// gathered, that have a deadline or a budget of rate, or come after others that wait for their next attempt.
    pub fn begin_stretch(&mut self, now: u64, most: u64) -> Option<Stretch<B>> {
        let Settings { gather, share, .. } = self.settings;
        let is_plain = gather.is_none() && share.is_none() && self.paced.is_none() && self.adaptive.is_none();
        if !is_plain || self.stretch.is_some() || !self.due.is_empty() {
            return None;
        }
        let room = u64::from(self.limit()).saturating_sub(self.in_flight());
        let span = self.spans.front_mut().filter(|span| span.fate == Fate::Start && room > 0)?;
        let BatchRecord { payload, first_id, deadline, .. } = &self.batches[span.batch];
        if *deadline != u64::MAX {
            return None;
        }
        let (batch, from, to) = (span.batch, span.from, span.to.min(span.from + most.min(room)));
        let stretch = Stretch { batch: payload.clone(), first_id: *first_id, from, to };
        span.from = to;
        if span.from == span.to {
            self.spans.pop_front();
        }
        self.now = now;
        self.counts.queued -= to - from;
        self.stretch = Some(OpenStretch { batch, from, next: from, to, since: now });
        Some(stretch)
    }

    /// How many rows of the stretch have ended. None: no stretch is open.
    pub fn ended_in_stretch(&self) -> Option<usize> {
        self.stretch.map(|stretch| (stretch.next - stretch.from) as usize)
    }

    /// When the row in hand began. None: no stretch is open.
    pub fn in_hand_since(&self) -> Option<u64> {
        self.stretch.map(|stretch| stretch.since)
    }

    /// Whether the stretch must end before a tick: the row in hand may have had the time of an attempt, or an attempt is found
    /// stuck, which may be one too many.
    pub fn stretch_must_end(&mut self, now: u64) -> bool {
        let first = self.times_out_in_stretch().into_iter().chain(self.ending.first_at(&mut self.attempts)).min();
        self.stretch.is_some() && first.is_some_and(|at| at <= now)
    }

    pub(super) fn times_out_in_stretch(&self) -> Option<u64> {
        Some(self.stretch?.since.saturating_add(self.settings.timeout?))
    }

    /// The call of the row in hand has ended, at `at`, with a value or an error. The next row is in hand; after the last one
    /// the stretch is over.
    #[inline]
    pub fn end_in_stretch(&mut self, at: u64, outcome: Outcome<V>) {
        let Some(stretch) = &mut self.stretch else { return };
        let OpenStretch { batch, next, to, since, .. } = *stretch;
        let at = at.max(since);
        (stretch.next, stretch.since) = (next + 1, at);
        self.now = at;
        let is_retried = matches!(outcome, Outcome::Error(_)) && self.settings.retry.errors;
        if is_retried || !self.in_order.is_empty() {
            let row = self.begin(batch, next);
            let record = &mut self.rows[row];
            (record.attempts, record.begun) = (1, since);
            if is_retried && self.may_retry(row) {
                self.counts.backing_off += 1;
                self.back_off(at, row);
            } else {
                self.end_row(at, row, outcome);
            }
        } else {
            match outcome {
                Outcome::Error(_) => self.counts.errors += 1,
                _ => self.counts.values += 1,
            }
            if self.settings.is_timed() {
                self.latency.count(at - since);
            }
            let id = self.batches[batch].first_id + next;
            self.ready.push(batch, Finished { id, attempts: 1, outcome });
        }
        if next + 1 == to {
            self.stretch = None;
            self.advance();
        }
    }

    /// Ends the stretch: its rows that have not begun may start again. `begun`: the row in hand began at that time or
    /// earlier, and goes on: the answer is its attempt.
    pub fn end_stretch(&mut self, now: u64, begun: Option<u64>) -> Option<Start<B>> {
        let OpenStretch { batch, mut next, to, since, .. } = self.stretch.take()?;
        self.now = now;
        let start = begun.map(|begun| {
            let row = self.begin(batch, next);
            self.rows[row].begun = since;
            next += 1;
            self.open_attempt(now, begun, row, Vec::new())
        });
        self.counts.queued += to - next;
        match self.spans.front_mut() {
            Some(rest) if rest.batch == batch && rest.from == to && rest.fate == Fate::Start => rest.from = next,
            _ if next < to => self.spans.push_front(Span { batch, from: next, to, fate: Fate::Start }),
            _ => {}
        }
        self.advance();
        start
    }
}
