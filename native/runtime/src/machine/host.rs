//! The host's side of the machine: batches in, results out, cancel, stop; and its state and counters.

use super::ready::NO_BATCH;
use super::*;

impl<B: Clone, V: Clone + Weigh> Machine<B, V> {
    /// Whether `accept` would take a batch.
    pub fn has_room(&self) -> bool {
        self.held_rows < self.settings.max_rows && self.held_bytes < self.settings.max_bytes
    }

    /// Whether `drain` has something to hand out.
    pub fn has_results(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Takes a whole batch, or refuses it (R4). Its rows have the ids `first_id ..`; its `bytes` count until its last row is
    /// handed out.
    pub fn accept(&mut self, now: u64, first_id: u64, rows: u64, bytes: u64, payload: B) -> Result<(), Refused> {
        self.accept_until(now, None, first_id, rows, bytes, payload)
    }

    /// As `accept`, for rows that have a `deadline` of their own, from now. If the settings have one too, the earlier counts.
    pub fn accept_until(
        &mut self,
        now: u64,
        deadline: Option<u64>,
        first_id: u64,
        rows: u64,
        bytes: u64,
        payload: B,
    ) -> Result<(), Refused> {
        if self.stop.is_some() || self.poison.is_some() {
            return Err(Refused::Stopped);
        }
        let Some(next_id) = first_id.checked_add(rows).filter(|_| first_id >= self.next_id) else { return Err(Refused::Id) };
        if !self.has_room() {
            return Err(Refused::WouldBlock);
        }
        self.next_id = next_id;
        self.now = self.now.max(now); // a batch may have waited in the inbox
        if rows > 0 {
            let (deadline, limit) = match (self.settings.deadline, deadline) {
                (of_rows, Some(own)) if of_rows.is_none_or(|of_rows| own < of_rows) => (Some(own), Limit::BatchDeadline),
                (of_rows, _) => (of_rows, Limit::Deadline),
            };
            let deadline = deadline.map_or(u64::MAX, |deadline| now.saturating_add(deadline));
            let row_bytes = if self.settings.gather.is_some() { bytes.div_ceil(rows) } else { 0 };
            let batch =
                self.batches.insert(|| BatchRecord { payload, first_id, held: rows, bytes, row_bytes, accepted: now, deadline, limit });
            self.waiting_bytes += row_bytes * rows;
            if deadline != u64::MAX {
                self.batch_deadlines.insert((deadline, batch));
            }
            self.spans.push_back(Span { batch, from: 0, to: rows, fate: Fate::Start });
            self.held_rows += rows;
            self.held_bytes += bytes;
            self.counts.accepted += rows;
            self.counts.queued += rows;
        }
        Ok(())
    }

    /// Hands out up to `limit` rows, until they hold more than `most_bytes` bytes of variable length.
    pub fn drain(&mut self, limit: u64, most_bytes: u64) -> Vec<Finished<V>> {
        let (batches, batch_deadlines, held_bytes) = (&mut self.batches, &mut self.batch_deadlines, &mut self.held_bytes);
        let drained = self.ready.take(limit, most_bytes, |number, rows| {
            if number == NO_BATCH {
                return;
            }
            let batch = &mut batches[number];
            batch.held -= rows;
            if batch.held == 0 {
                *held_bytes -= batch.bytes;
                if batch.deadline != u64::MAX {
                    batch_deadlines.remove(&(batch.deadline, number));
                }
                batches.remove(number);
            }
        });
        self.counts.drained += drained.len() as u64;
        self.held_rows -= drained.len() as u64;
        drained
    }

    /// Takes back rows that a drain handed out: they come out of the next one, first. Only the rows count as held again, not
    /// the bytes of their batches. An outcome may have changed.
    pub fn put_back(&mut self, rows: Vec<Finished<V>>) {
        self.counts.drained -= rows.len() as u64;
        self.held_rows += rows.len() as u64;
        self.ready.put_back(rows);
    }

    /// Cancels the rows of `first_id .. first_id + rows` that have not ended.
    pub fn cancel(&mut self, now: u64, first_id: u64, rows: u64) {
        debug_assert!(self.stretch.is_none(), "the caller has ended it");
        let end = first_id.saturating_add(rows);
        let begun = |row: &Row<V>| !matches!(row.stage, Stage::Ended) && (first_id..end).contains(&row.id);
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
                    self.spans.push_front(part); // `advance` hands it on at once
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

    /// Ends all rows after a failure that cannot be recovered from (R8, R17): rows that have ended stay as they are, all
    /// others are errors with this text. Attempts are cancelled, as by a stop: they stay open until they end or are stuck.
    pub fn poison(&mut self, now: u64, text: &str) {
        if self.poison.is_some() {
            return;
        }
        debug_assert!(self.stretch.is_none(), "the caller has ended it");
        self.poison = Some(text.into());
        self.end_all_sharing();
        let begun: Vec<u32> = self.rows.keys().filter(|&row| !matches!(self.rows[row].stage, Stage::Ended)).collect();
        for row in begun {
            self.end_row(now, row, Outcome::Error(text.into()));
        }
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

    /// Whether too many stuck attempts were the reason of the poison (R8).
    pub fn is_overwhelmed(&self) -> bool {
        self.overwhelmed
    }

    pub fn stopping(&self) -> Option<Stop> {
        self.stop
    }

    /// Stopped, and no row waits for an attempt or its end.
    fn is_done(&self) -> bool {
        self.stop.is_some() && self.counts.queued == 0 && self.counts.backing_off == 0 && self.stretch.is_none()
    }

    /// Stopped, no row waits, and no attempt is left: the executor may close.
    pub fn is_settled(&self) -> bool {
        self.is_done() && self.attempts.is_empty()
    }

    /// Stopped, no row waits, and the only attempts left are stuck: nothing more will happen.
    pub fn is_stuck(&self) -> bool {
        self.is_done() && self.counts.stuck > 0 && self.attempts.len() as u64 == self.counts.stuck
    }

    /// Every accepted row has been handed out.
    pub fn is_empty(&self) -> bool {
        self.held_rows == 0
    }

    /// Bytes of the batches that still have a row inside.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Rows that have not started.
    pub fn queued(&self) -> u64 {
        self.counts.queued
    }

    pub fn counts(&self) -> Counts {
        Counts {
            running: self.attempts.len() as u64 + self.in_stretch(),
            ready: self.ready.len() as u64,
            limit: self.limit().into(),
            overloads: self.adaptive.as_ref().map_or(0, |adaptive| adaptive.overloads),
            ..self.counts
        }
    }

    /// How long rows took from their first start to their end, including pauses; without cancelled and poisoned rows. Empty
    /// unless the settings are timed.
    pub fn latency(&self) -> &Histogram {
        &self.latency
    }
}
