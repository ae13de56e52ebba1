//! Inside the machine: how rows wait, are gathered and split, begin, back off, and end.

use super::*;

impl<B: Clone, V: Clone + Weigh> Machine<B, V> {
    /// Whether another attempt may run (R4).
    pub(super) fn has_slot(&self) -> bool {
        self.in_flight() < u64::from(self.limit())
    }

    /// Attempts that have not ended and are not stuck, and the rows of a stretch.
    pub(super) fn in_flight(&self) -> u64 {
        self.attempts.len() as u64 - self.counts.stuck + self.in_stretch()
    }

    /// Rows of a stretch that have not ended.
    pub(super) fn in_stretch(&self) -> u64 {
        self.stretch.map_or(0, |stretch| stretch.rows())
    }

    /// The most attempts in flight, now.
    pub(super) fn limit(&self) -> u32 {
        self.adaptive.as_ref().map_or(self.settings.allowed_in_flight, |adaptive| adaptive.limit())
    }

    /// Whether the rows that wait, apart from parts of micro-batches, are enough to start an attempt now.
    pub(super) fn is_gathered(&self) -> bool {
        let waiting = self.due_rows + self.sharing.as_ref().map_or(self.counts.queued, |sharing| sharing.next_rows);
        let Some(gather) = self.settings.gather else { return waiting > 0 };
        let enough = waiting >= gather.rows || self.waiting_bytes >= gather.bytes;
        waiting > 0 && (enough || self.stop.is_some() || !self.has_room() || self.gathered_at().is_some_and(|at| at <= self.now))
    }

    /// When the row that has waited longest stops waiting for others.
    pub(super) fn gathered_at(&self) -> Option<u64> {
        let wait = self.settings.gather?.wait;
        let queued = match &self.sharing {
            Some(sharing) => sharing.first().map(|row| self.rows[row].batch),
            None => self.spans.front().map(|span| span.batch),
        };
        let queued = queued.map(|batch| self.batches[batch].accepted);
        let since = [queued, self.due.front().map(|due| due.since)].into_iter().flatten().min()?;
        Some(since.saturating_add(wait))
    }

    pub(super) fn row_bytes(&self, row: u32) -> u64 {
        self.batches[self.rows[row].batch].row_bytes
    }

    /// Takes the next row: one whose pause is over, else one that has not started (and, if rows share calls, has been looked
    /// up).
    #[inline]
    pub(super) fn next_row(&mut self) -> Option<u32> {
        let row = match self.due.pop_front() {
            Some(DueRow { row: (row, _), .. }) => {
                self.due_rows -= 1;
                self.counts.backing_off -= 1;
                self.counts.retries += 1;
                self.rows[row].stage = Stage::Between;
                self.skip_stale_due();
                row
            }
            None if self.sharing.is_some() => self.next_looked_up()?,
            None => {
                let (batch, index) = self.next_queued()?;
                self.counts.queued -= 1;
                let row = self.begin(batch, index);
                self.pass_by();
                row
            }
        };
        if self.settings.gather.is_some() {
            self.waiting_bytes -= self.row_bytes(row);
        }
        Some(row)
    }

    /// Ends the rows that have not started and whose deadline has passed.
    pub(super) fn time_out_queued(&mut self, now: u64) {
        while self.batch_deadlines.first().is_some_and(|(deadline, _)| *deadline <= now) {
            self.batch_deadlines.pop_first();
        }
        for mut span in std::mem::take(&mut self.spans) {
            let is_late = span.fate == Fate::Start && self.batches[span.batch].deadline <= now;
            if is_late {
                span.fate = Fate::TimedOut;
                self.no_longer_queued(span.batch, span.to - span.from);
            }
            if is_late && !self.settings.ordered {
                self.spans.push_front(span); // `advance` hands it on at once
            } else {
                self.spans.push_back(span);
            }
        }
    }

    /// Takes the first row that has not started from its span.
    #[inline]
    pub(super) fn next_queued(&mut self) -> Option<(u32, u64)> {
        let span = self.spans.front_mut()?;
        let taken = (span.batch, span.from);
        span.from += 1;
        if span.from == span.to {
            self.spans.pop_front();
        }
        Some(taken)
    }

    /// Takes the rows of the next part that still wait: returns the first and puts the others into `further`.
    #[inline]
    pub(super) fn next_part(&mut self, further: &mut Vec<u32>) -> Option<u32> {
        while let Some(part) = self.parts.pop_front() {
            let waits = |&(row, id): &RowKey| self.rows.get(row).is_some_and(|r| r.id == id && matches!(r.stage, Stage::Split));
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

    /// Takes further rows for the attempt whose first row is `first`.
    #[inline]
    pub(super) fn gather(&mut self, first: u32, further: &mut Vec<u32>) {
        let Some(gather) = self.settings.gather else { return };
        let mut bytes = self.row_bytes(first);
        while further.len() as u64 + 1 < gather.rows && bytes < gather.bytes {
            let Some(row) = self.next_row() else { break };
            bytes += self.row_bytes(row);
            further.push(row);
        }
    }

    /// Splits a failed micro-batch into two parts, which start before all other rows.
    pub(super) fn split(&mut self, rows: &[u32]) {
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

    /// Restores that the front of `due` is not stale.
    pub(super) fn skip_stale_due(&mut self) {
        let is_due = |&(row, id): &RowKey| self.rows.get(row).is_some_and(|r| r.id == id && matches!(r.stage, Stage::Due));
        while self.due.front().is_some_and(|due| !is_due(&due.row)) {
            self.due.pop_front();
        }
    }

    /// Moves a row into attempt `slot`. The answer includes when the row times out, whatever the attempt does; u64::MAX: never.
    #[inline]
    pub(super) fn run(&mut self, row: u32, slot: u32) -> (FurtherRow<B>, u64) {
        let record = &mut self.rows[row];
        record.attempts += u16::from(!matches!(record.stage, Stage::Split));
        record.stage = Stage::Running(Number::new(slot));
        let BatchRecord { payload, first_id, deadline, .. } = &self.batches[record.batch];
        let row = (record.id - first_id) as usize;
        (FurtherRow { id: record.id, attempt: record.attempts, batch: payload.clone(), row }, *deadline)
    }

    /// The attempt that a row waited for has ended. True: the outcome counts.
    #[inline]
    pub(super) fn settle(&mut self, now: u64, row: u32, outcome: Outcome<V>) -> bool {
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

    /// Makes the record of a row whose turn has come.
    #[inline]
    pub(super) fn begin(&mut self, batch: u32, index: u64) -> u32 {
        let BatchRecord { first_id, deadline, .. } = self.batches[batch];
        let row = self.rows.insert(|| Row {
            id: first_id + index,
            batch,
            attempts: 0,
            begun: self.now,
            stage: Stage::Between,
            call: NO_CALL,
            outcome: None,
        });
        if self.settings.ordered {
            self.in_order.push_back(row);
        }
        if deadline != u64::MAX {
            self.row_deadlines.insert((deadline, row));
        }
        row
    }

    /// Counts rows that have ended before they started; `pass_by` hands them on when they come to the front.
    pub(super) fn no_longer_queued(&mut self, batch: u32, rows: u64) {
        self.counts.queued -= rows;
        self.counts.held += rows;
        self.waiting_bytes -= self.batches[batch].row_bytes * rows;
    }

    pub(super) fn may_retry(&self, row: u32) -> bool {
        self.rows[row].attempts < self.settings.retry.max_attempts && self.stop != Some(Stop::Cancel)
    }

    /// Begins the pause before a row's next attempt. The caller has counted it as backing off.
    pub(super) fn back_off(&mut self, now: u64, row: u32) {
        let record = &mut self.rows[row];
        let at = now.saturating_add(self.settings.retry.pause(record.id, record.attempts));
        record.stage = Stage::BackingOff;
        self.backing_off.push(Reverse((at, (row, record.id))));
    }

    /// Asks for the cancellation of an open attempt.
    pub(super) fn ask_to_end(&mut self, now: u64, slot: u32) {
        self.open.remove(&mut self.attempts, slot);
        let attempt = &mut self.attempts[slot];
        attempt.state = AttemptState::Cancelled;
        attempt.link = Link::at(now.saturating_add(PATIENCE));
        let token = Token { slot, generation: attempt.generation };
        self.ending.push(&mut self.attempts, slot);
        self.cancellations.push(token);
    }

    /// An attempt is stuck (R8): its rows back off if the function is idempotent, else they end.
    pub(super) fn give_up_on(&mut self, now: u64, slot: u32) {
        for row in self.stuck(slot) {
            self.rows[row].stage = Stage::Between;
            if self.settings.retry.idempotent {
                self.back_off(now, row);
            } else {
                self.counts.backing_off -= 1;
                self.end_row(now, row, Outcome::TimedOut(Limit::Timeout));
            }
        }
    }

    /// Ends a row in any stage; cancels its attempt if no other row waits for it. Rows that share its call may end, too.
    #[inline]
    pub(super) fn end_row(&mut self, now: u64, row: u32, outcome: Outcome<V>) {
        if self.rows[row].call == NO_CALL {
            self.end_alone(now, row, outcome);
        } else {
            self.end_sharing(now, row, outcome);
        }
    }

    /// As `end_row`, for a row that shares no call, or no longer.
    pub(super) fn end_alone(&mut self, now: u64, row: u32, outcome: Outcome<V>) {
        match outcome {
            Outcome::Value(_) => self.counts.values += 1,
            Outcome::Error(_) => self.counts.errors += 1,
            Outcome::TimedOut(_) => self.counts.timed_out += 1,
            Outcome::Cancelled => self.counts.cancelled += 1,
        }
        let record = &mut self.rows[row];
        let deadline = self.batches[record.batch].deadline;
        let ran = record.attempts > 0 && !matches!(outcome, Outcome::Cancelled) && self.poison.is_none();
        if ran && self.settings.is_timed() {
            self.latency.count(now.saturating_sub(record.begun));
        }
        match std::mem::replace(&mut record.stage, Stage::Ended) {
            Stage::Running(number) => {
                let slot = number.get();
                if self.forget(slot, row) && self.attempts[slot].state == AttemptState::Open {
                    self.ask_to_end(now, slot);
                }
            }
            Stage::Ending(number) => {
                self.forget(number.get(), row);
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
            Stage::Next => self.no_longer_next(row),
            Stage::Waiting => self.counts.waiting -= 1,
            Stage::Between => {}
            Stage::Ended => unreachable!("a row ends once"),
        }
        if deadline != u64::MAX {
            self.row_deadlines.remove(&(deadline, row));
        }
        let waits = self.settings.ordered && self.in_order.front() != Some(&row);
        if waits {
            self.rows[row].outcome = Some(outcome);
            self.counts.held += 1;
        } else {
            if self.settings.ordered {
                self.in_order.pop_front();
            }
            self.publish(row, outcome);
        }
    }

    /// Hands on rows that ended before they started and have come to the front.
    #[inline]
    pub(super) fn pass_by(&mut self) {
        if self.spans.front().is_some_and(|span| span.fate != Fate::Start) {
            self.hand_on_not_started();
        }
    }

    #[cold]
    fn hand_on_not_started(&mut self) {
        if self.settings.ordered && self.stretch.is_some() {
            return; // its rows come first
        }
        while let Some(fate) = self.spans.front().map(|span| span.fate).filter(|&fate| fate != Fate::Start) {
            let Some((batch, index)) = self.next_queued() else { break };
            self.counts.held -= 1; // counted at its end; `end_row` counts it again if it must wait longer
            let row = self.begin(batch, index);
            let outcome = match (fate, &self.poison) {
                (Fate::Poisoned, Some(text)) => Outcome::Error(text.clone()),
                (Fate::TimedOut, _) => Outcome::TimedOut(self.batches[batch].limit),
                _ => Outcome::Cancelled,
            };
            self.end_row(0, row, outcome);
        }
    }

    /// Hands on what has come to the front. Must follow every change, except a start, which ends nothing.
    #[inline]
    pub(super) fn advance(&mut self) {
        self.skip_stale_due();
        self.skip_stale_next();
        self.pass_by();
        while let Some(&row) = self.in_order.front().filter(|&&row| matches!(self.rows[row].stage, Stage::Ended)) {
            let outcome = self.rows[row].outcome.take().expect("a row that has ended and waits has an outcome");
            self.in_order.pop_front();
            self.counts.held -= 1;
            self.publish(row, outcome);
        }
    }

    /// Makes a row that has ended ready for a drain.
    #[inline]
    fn publish(&mut self, row: u32, outcome: Outcome<V>) {
        let Row { id, batch, attempts, .. } = self.rows.remove(row);
        self.ready.push(batch, Finished { id, attempts, outcome });
    }
}
