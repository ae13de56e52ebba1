//! Rows with equal arguments (R21): one of them *leads*, which means that its call is made; the others wait for its outcome, or
//! get one that was kept.
//!
//! A row is looked up when an executor asks for an attempt, in the order of acceptance, whether or not an attempt may start:
//! a row whose outcome is kept does not wait for a slot. What is looked up and new waits for its attempt as any other row.
//!
//! Guarantees: the outcome of a call, a value or an error, is that of all rows that wait for it. A leader that is cancelled, or
//! reaches its own deadline, takes none of them with it: the call goes on for the next one. A call that times out ends the
//! rows that have waited for all of its latest attempt; of the others, the next one leads a new call, also if the call went on
//! for it. So a row waits no longer than for the calls that a row without equals would make, and no less.
//!
//! Costs: a row that is looked up copies its arguments and hashes them; one that leads or waits gets a record then.

use super::calls::{Call, Found, Waiter};
use super::*;
use std::ops::Range;

/// The most rows that are looked up before an executor's turn goes on: the host waits for the lock meanwhile.
const AT_ONCE: u64 = 1024;

/// Whether a row still is in the stage in which it was put into a queue.
fn is_in<V>(rows: &Slab<Row<V>>, (row, id): RowKey, stage: impl Fn(Stage) -> bool) -> bool {
    rows.get(row).is_some_and(|row| row.id == id && stage(row.stage))
}

fn is_waiting<V>(rows: &Slab<Row<V>>, row: RowKey) -> bool {
    is_in(rows, row, |stage| matches!(stage, Stage::Waiting))
}

impl<B: Clone, V: Clone + Weigh> Machine<B, V> {
    /// What became of rows that were looked up.
    pub fn cache_counts(&self) -> CacheCounts {
        self.sharing.as_ref().map(|sharing| sharing.calls.counts()).unwrap_or_default()
    }

    pub(super) fn has_to_look_up(&self) -> bool {
        self.sharing.is_some() && !self.spans.is_empty()
    }

    /// Looks up the next rows that have not started.
    pub(super) fn look_up(&mut self, now: u64) {
        let mut left = AT_ONCE;
        while let Some(Span { batch, from, to, .. }) = self.spans.front_mut().filter(|_| left > 0) {
            let (batch, rows) = (*batch, *from..(*from + left).min(*to));
            left -= rows.end - rows.start;
            *from = rows.end;
            if *from == *to {
                self.spans.pop_front();
            }
            self.look_up_rows(now, batch, rows);
            let is_over = self.spans.front().is_none_or(|span| span.batch != batch);
            if let Some(sharing) = self.sharing.as_mut().filter(|sharing| is_over && !sharing.calls.share().across_batches) {
                sharing.calls.forget_kept();
            }
            self.pass_by();
        }
    }

    fn look_up_rows(&mut self, now: u64, batch: u32, rows: Range<u64>) {
        for index in rows {
            let Some(sharing) = &mut self.sharing else { return };
            match sharing.find(&self.batches[batch].payload, index as usize, now) {
                Some(Found::Kept(outcome)) => self.end_looked_up(now, batch, index, outcome),
                Some(Found::Made(call)) => self.wait_for(now, batch, index, call),
                Some(Found::New(call)) => self.lead(batch, index, call),
                None => self.lead(batch, index, NO_CALL),
            }
        }
    }

    /// A row ends with a kept outcome.
    fn end_looked_up(&mut self, now: u64, batch: u32, index: u64, outcome: Outcome<V>) {
        let BatchRecord { first_id, row_bytes, .. } = self.batches[batch];
        self.counts.queued -= 1;
        self.waiting_bytes -= row_bytes;
        if !self.in_order.is_empty() {
            let row = self.begin(batch, index);
            return self.end_alone(now, row, outcome);
        }
        // Nothing is before it: it needs no record.
        match outcome {
            Outcome::Value(_) => self.counts.values += 1,
            _ => self.counts.errors += 1,
        }
        self.ready.push(batch, Finished { id: first_id + index, attempts: 0, outcome });
    }

    fn wait_for(&mut self, now: u64, batch: u32, index: u64, call: u32) {
        self.counts.queued -= 1;
        self.waiting_bytes -= self.batches[batch].row_bytes;
        let row = self.begin(batch, index);
        let record = &mut self.rows[row];
        (record.stage, record.call) = (Stage::Waiting, call);
        let waiter = Waiter { row: (row, record.id), since: now };
        self.counts.waiting += 1;
        if let Some(sharing) = &mut self.sharing {
            sharing.calls.wait(call, waiter);
        }
    }

    fn lead(&mut self, batch: u32, index: u64, call: u32) {
        let row = self.begin(batch, index);
        self.be_next(row, call);
    }

    /// A row, which is counted as queued, waits for its first attempt and leads a call.
    fn be_next(&mut self, row: u32, call: u32) {
        let record = &mut self.rows[row];
        (record.stage, record.call) = (Stage::Next, call);
        let Some(sharing) = &mut self.sharing else { return };
        sharing.next.push_back((row, record.id));
        sharing.next_rows += 1;
    }

    /// Takes the first row that was looked up and whose attempt has not started.
    pub(super) fn next_looked_up(&mut self) -> Option<u32> {
        let (row, _) = self.sharing.as_mut()?.next.pop_front()?;
        self.counts.queued -= 1;
        self.rows[row].stage = Stage::Between;
        if let Some(sharing) = &mut self.sharing {
            sharing.next_rows -= 1;
        }
        self.skip_stale_next();
        Some(row)
    }

    /// A row ends before its first attempt.
    pub(super) fn no_longer_next(&mut self, row: u32) {
        self.counts.queued -= 1;
        self.waiting_bytes -= self.row_bytes(row);
        if let Some(sharing) = &mut self.sharing {
            sharing.next_rows -= 1;
        }
    }

    /// Restores that the front of `next` is not stale.
    pub(super) fn skip_stale_next(&mut self) {
        let Some(sharing) = &mut self.sharing else { return };
        let is_next = |&row: &RowKey| is_in(&self.rows, row, |stage| matches!(stage, Stage::Next));
        while sharing.next.front().is_some_and(|row| !is_next(row)) {
            sharing.next.pop_front();
        }
    }

    /// An attempt starts for these rows.
    pub(super) fn note_attempt(&mut self, now: u64, first: u32, further: &[u32]) {
        let Some(sharing) = &mut self.sharing else { return };
        for &row in std::iter::once(&first).chain(further) {
            let record = &mut self.rows[row];
            if record.attempts == 0 {
                record.begun = now;
            }
            if record.call != NO_CALL {
                sharing.calls.call(record.call).begun = now;
            }
        }
    }

    /// Ends a row that leads a call, or waits for one.
    pub(super) fn end_sharing(&mut self, now: u64, row: u32, outcome: Outcome<V>) {
        let number = std::mem::replace(&mut self.rows[row].call, NO_CALL);
        if matches!(self.rows[row].stage, Stage::Waiting) {
            self.end_alone(now, row, outcome);
            let rows = &self.rows;
            if let Some(sharing) = &mut self.sharing {
                sharing.calls.call(number).forget_one(|row| is_waiting(rows, row));
            }
            return;
        }
        match outcome {
            Outcome::Value(_) | Outcome::Error(_) => {
                let call = self.end_call(number, now, Some(&outcome));
                self.end_alone(now, row, outcome.clone());
                self.end_waiters(now, call, &outcome);
            }
            Outcome::TimedOut(_) | Outcome::Cancelled => {
                self.pass_on(now, row, number, &outcome);
                self.end_alone(now, row, outcome);
            }
        }
    }

    fn end_call(&mut self, number: u32, now: u64, outcome: Option<&Outcome<V>>) -> Option<Call> {
        let sharing = self.sharing.as_mut()?;
        let of_no_use = self.spans.is_empty() && !sharing.calls.share().across_batches;
        Some(sharing.calls.end(number, now, outcome.filter(|_| !of_no_use)))
    }

    fn end_waiters(&mut self, now: u64, call: Option<Call>, outcome: &Outcome<V>) {
        let Some(mut call) = call else { return };
        while let Some(Waiter { row: (row, _), .. }) = call.next_waiter(|row| is_waiting(&self.rows, row)) {
            self.rows[row].call = NO_CALL;
            self.end_alone(now, row, outcome.clone());
        }
    }

    /// The leader of a call ends without its outcome: the call is that of the next row that waits for it.
    fn pass_on(&mut self, now: u64, leader: u32, number: u32, outcome: &Outcome<V>) {
        let timed_out = matches!(outcome, Outcome::TimedOut(Limit::Timeout));
        loop {
            let Some(sharing) = &mut self.sharing else { return };
            let rows = &self.rows;
            let call = sharing.calls.call(number);
            let begun = call.begun;
            let Some(Waiter { row: (heir, _), since }) = call.next_waiter(|row| is_waiting(rows, row)) else {
                sharing.calls.end(number, now, None);
                return;
            };
            if timed_out && since <= begun {
                self.rows[heir].call = NO_CALL;
                self.end_alone(now, heir, outcome.clone());
                continue;
            }
            self.counts.waiting -= 1;
            if !self.pass_attempt_on(now, leader, heir, since <= begun) {
                self.lead_anew(heir, number);
            }
            return;
        }
    }

    /// A row that is in no attempt leads a new call.
    fn lead_anew(&mut self, row: u32, number: u32) {
        self.counts.queued += 1;
        self.waiting_bytes += self.row_bytes(row);
        self.be_next(row, number);
    }

    /// Whether a row is in an attempt, which has timed out, that began before the row waited for it. Such a row leads a new
    /// call then.
    pub(super) fn survives(&mut self, slot: u32, row: u32) -> bool {
        let Row { attempts: 0, call, .. } = self.rows[row] else { return false };
        self.forget(slot, row);
        self.lead_anew(row, call);
        true
    }

    /// Lets an open attempt go on for another row; false: there is none. is_its_own: the row has waited for all of it; else it
    /// is no attempt of this row.
    fn pass_attempt_on(&mut self, now: u64, from: u32, to: u32, is_its_own: bool) -> bool {
        let stage = self.rows[from].stage;
        let Stage::Running(number) = stage else { return false };
        let slot = number.get();
        if self.attempts[slot].state != AttemptState::Open {
            return false;
        }
        self.replace(slot, from, to);
        self.rows[from].stage = Stage::Between;
        let record = &mut self.rows[to];
        (record.stage, record.attempts, record.begun) = (stage, u16::from(is_its_own), now);
        true
    }

    /// No row leads a call or waits for one any more, and nothing is kept: the machine is poisoned.
    pub(super) fn end_all_sharing(&mut self) {
        let Some(sharing) = &mut self.sharing else { return };
        sharing.calls.clear();
        for row in self.rows.keys().collect::<Vec<_>>() {
            self.rows[row].call = NO_CALL;
        }
    }
}
