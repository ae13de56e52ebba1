//! The executor's side of the machine: attempts to start, how they end, and what is due at a time.

use super::*;

impl<B: Clone, V: Clone + Weigh> Machine<B, V> {
    /// Whether `start` would open an attempt, or look rows up.
    pub fn can_start(&self) -> bool {
        self.has_to_look_up() || self.wants_start() && self.paced.as_ref().is_none_or(|paced| paced.opens <= self.now)
    }

    /// Whether `start` would open an attempt, without looking rows up, whatever the budget of rate allows.
    fn wants_start(&self) -> bool {
        self.has_slot() && (self.part_rows > 0 || self.is_gathered())
    }

    /// Whether the budget of rate makes the next start wait.
    fn must_wait(&mut self, now: u64) -> bool {
        let Some(is_new) = self.paced.as_mut().and_then(|paced| paced.refuses(now)) else { return false };
        self.counts.paced += u64::from(is_new);
        true
    }

    /// Opens the next attempt, if one may run now: first for a part of a failed micro-batch, then for rows whose pause is
    /// over, then for rows that have not started. None, too: the budget of rate makes it wait. Its timeout counts from `now`,
    /// or from [`Machine::call_began`].
    ///
    /// If rows share calls, this looks rows up first: they may end, and there may be no attempt to open although
    /// `can_start` held.
    pub fn start(&mut self, now: u64) -> Option<Start<B>> {
        self.start_for(now, now)
    }

    /// As `start`, for a call that begins a little later: its timeout counts from `begins`.
    pub fn start_for(&mut self, now: u64, begins: u64) -> Option<Start<B>> {
        self.now = now;
        if self.has_to_look_up() {
            self.look_up(now);
        }
        debug_assert!(self.stretch.is_none(), "the caller has ended it");
        if !self.wants_start() || self.must_wait(now) {
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
        Some(self.open_attempt(now, begins, first, further))
    }

    /// Opens the attempt of a row, and of the further rows of a micro-batch. Its timeout counts from `begins`.
    #[inline]
    pub(super) fn open_attempt(&mut self, now: u64, begins: u64, first: u32, further: Vec<u32>) -> Start<B> {
        self.next_generation = self.next_generation.wrapping_add(1);
        let generation = self.next_generation;
        let timeout = self.settings.timeout.map_or(u64::MAX, |timeout| begins.saturating_add(timeout));
        let slot = self.attempts.insert(|| AttemptRecord {
            generation,
            first: First::Waits(Number::new(first)),
            state: AttemptState::Open,
            link: Link::at(timeout),
        });
        self.open.push(&mut self.attempts, slot);
        if self.sharing.is_some() {
            self.note_attempt(now, first, &further);
        }
        if self.adaptive.is_some() {
            let in_flight = self.in_flight();
            self.adaptive.iter_mut().for_each(|adaptive| adaptive.begin(now, slot, in_flight));
        }
        let (FurtherRow { id, attempt, batch, row }, mut deadline) = self.run(first, slot);
        let mut others = Box::default();
        if !further.is_empty() {
            self.further.insert(slot, further.iter().copied().map(Some).collect());
            let run = |row| {
                let (row, its_deadline) = self.run(row, slot);
                deadline = deadline.max(its_deadline);
                row
            };
            others = further.into_iter().map(run).collect();
        }
        let token = Token { slot, generation };
        Start { token, id, attempt, deadline: timeout.min(deadline), row_deadline: deadline, batch, row, others }
    }

    /// The open attempts that time out by `now`, unless their calls began later than they started ([`Machine::call_began`]).
    pub fn due(&mut self, now: u64) -> Vec<Token> {
        let slots = self.open.until(&mut self.attempts, now);
        slots.into_iter().map(|slot| Token { slot, generation: self.attempts[slot].generation }).collect()
    }

    /// The call of an attempt began at `at` or later: its timeout counts from there. An attempt that is not open stays as it is.
    pub fn call_began(&mut self, token: Token, at: u64) {
        let Some(timeout) = self.settings.timeout else { return };
        if self.is_open(token) {
            self.open.remove(&mut self.attempts, token.slot);
            self.attempts[token.slot].link = Link::at(at.saturating_add(timeout));
            self.open.push(&mut self.attempts, token.slot);
        }
    }

    /// An attempt has ended with this outcome. False: its row had ended before, or waits for another attempt; the outcome is
    /// discarded (R6). For a micro-batch, this means that it failed as a whole: it is split.
    pub fn end(&mut self, now: u64, token: Token, outcome: Outcome<V>) -> bool {
        self.now = now;
        let Some(Closed { first, further, state }) = self.close(token) else { return false };
        // An error that is not retried is an answer.
        let failed = self.settings.retry.errors && matches!(outcome, Outcome::Error(_));
        self.adapt(now, token.slot, state, failed);
        let outcome = if state == AttemptState::Open { outcome } else { Outcome::Cancelled };
        let mut counts = false;
        if let Some(further) = further {
            let rows: Vec<u32> = first.into_iter().chain(further.iter().copied().flatten()).collect();
            if state == AttemptState::Open {
                counts = true;
                self.split(&rows);
            } else {
                rows.into_iter().for_each(|row| self.back_off(now, row));
            }
        } else {
            counts = first.is_some_and(|row| self.settle(now, row, outcome));
        }
        self.advance();
        counts
    }

    /// The attempt of a micro-batch has ended with an outcome for each of its rows, in their order in `Start`.
    pub fn end_rows(&mut self, now: u64, token: Token, outcomes: impl IntoIterator<Item = Outcome<V>>) {
        self.now = now;
        let Some(Closed { first, further, state }) = self.close(token) else { return };
        self.adapt(now, token.slot, state, false);
        for (row, outcome) in std::iter::once(first).chain(further.into_iter().flatten()).zip(outcomes) {
            let outcome = if state == AttemptState::Open { outcome } else { Outcome::Cancelled };
            if let Some(row) = row {
                self.settle(now, row, outcome);
            }
        }
        self.advance();
    }

    /// A limit that adapts learns how an attempt has ended; one that was cancelled tells nothing.
    fn adapt(&mut self, now: u64, slot: u32, state: AttemptState, failed: bool) {
        if let Some(adaptive) = &mut self.adaptive {
            match state {
                AttemptState::Open => adaptive.end(now, slot, failed),
                _ => adaptive.forget(slot),
            }
        }
    }

    /// The executor has ended, and with it all attempts that are left.
    pub fn end_all(&mut self, now: u64) {
        let slots: Vec<u32> = self.attempts.keys().collect();
        for slot in slots {
            let generation = self.attempts[slot].generation;
            self.end(now, Token { slot, generation }, Outcome::Cancelled);
        }
    }

    /// Does what is due by `now`: timeouts, row deadlines, stuck attempts, ends of pauses.
    pub fn tick(&mut self, now: u64) {
        self.now = now;
        while let Some(slot) = self.open.first_until(&mut self.attempts, now) {
            self.ask_to_end(now, slot);
            self.adapt(now, slot, AttemptState::Open, true);
            for row in self.waiting(slot) {
                if self.survives(slot, row) {
                    continue;
                }
                if self.settings.retry.timeouts && self.may_retry(row) {
                    self.rows[row].stage = Stage::Ending(Number::new(slot));
                    self.counts.backing_off += 1;
                } else {
                    self.end_row(now, row, Outcome::TimedOut(Limit::Timeout));
                }
            }
        }
        while let Some(&(_, row)) = self.row_deadlines.first().filter(|(deadline, _)| *deadline <= now) {
            let limit = self.batches[self.rows[row].batch].limit;
            self.end_row(now, row, Outcome::TimedOut(limit));
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
        if self.batch_deadlines.first().is_some_and(|(deadline, _)| *deadline <= now) {
            self.time_out_queued(now);
        }
        // After `Stop::Cancel` all rows have ended, and the stop reports stuck attempts (R13): not a failure.
        let stopped = self.stop == Some(Stop::Cancel);
        if self.counts.stuck >= u64::from(self.settings.max_stuck) && self.poison.is_none() && !stopped {
            self.overwhelmed = true;
            let text = format!("{} calls ignore their cancellation (max_stuck)", self.counts.stuck);
            self.poison(now, &text);
        }
        self.advance();
    }

    /// When `tick` next has something to do.
    pub fn next_deadline(&mut self) -> Option<u64> {
        let mut first = u64::MAX;
        let mut consider = |at: Option<u64>| first = first.min(at.unwrap_or(u64::MAX));
        consider(self.open.first_at(&mut self.attempts));
        consider(self.ending.first_at(&mut self.attempts));
        consider(self.times_out_in_stretch());
        consider(self.row_deadlines.first().map(|(deadline, _)| *deadline));
        consider(self.batch_deadlines.first().map(|(deadline, _)| *deadline));
        consider(self.backing_off.peek().map(|Reverse((at, _))| *at));
        if self.settings.gather.is_some() && self.has_slot() && !self.wants_start() {
            consider(self.gathered_at());
        }
        consider(self.paced.as_ref().map(|paced| paced.opens).filter(|&opens| opens > self.now && self.wants_start()));
        (first != u64::MAX).then_some(first)
    }

    /// Moves out the cancellations asked for since the last call. The attempts still need their `end`.
    pub fn take_cancellations(&mut self, into: &mut Vec<Token>) {
        into.append(&mut self.cancellations);
    }

    pub fn has_cancellations(&self) -> bool {
        !self.cancellations.is_empty()
    }

    /// Moves out the attempts found stuck since the last call (R8).
    pub fn take_stuck(&mut self, into: &mut Vec<Stuck>) {
        into.append(&mut self.newly_stuck);
    }

    pub fn has_stuck(&self) -> bool {
        !self.newly_stuck.is_empty()
    }

    /// Whether a row waits for this attempt's outcome.
    pub fn is_open(&self, token: Token) -> bool {
        self.attempts.get(token.slot).is_some_and(|a| a.generation == token.generation && a.state == AttemptState::Open)
    }
}
