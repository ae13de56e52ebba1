//! The rules of the machine as simply as possible: all rows in one list, searched from its start.

use crate::machine::{Gather, Limit, Settings, Token, PATIENCE};
use std::collections::VecDeque;
use std::rc::Rc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Value,
    Error,
    TimedOut(Limit),
    Cancelled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Waiting,
    Running {
        until: u64,
    },
    /// Timed out; gets another attempt when this one has ended.
    Ending,
    BackingOff {
        until: u64,
    },
    /// The pause is over; `turn` is the order in which pauses ended.
    Due {
        turn: u64,
        since: u64,
    },
    /// In a part of a micro-batch that failed.
    Split,
    Ended(How),
    Out,
}

#[derive(Debug)]
pub struct ModelRow {
    pub id: u64,
    pub batch: usize,
    pub place: Place,
    pub attempts: u16,
    pub begun: Option<u64>,
    pub accepted: u64,
    pub deadline: u64,
    /// Where the deadline is from.
    pub limit: Limit,
}

/// An attempt that has not ended. `cancelled`: since when; `stuck`: for too long.
#[derive(Debug)]
pub struct ModelAttempt {
    pub token: Token,
    pub rows: Vec<usize>,
    pub until: u64,
    pub cancelled: Option<u64>,
    pub stuck: bool,
    /// Whether the machine has asked for its cancellation, and reported it as stuck.
    pub asked: bool,
    pub reported: bool,
    /// The batches of its rows, which its call uses until the attempt has ended, whatever became of the rows.
    pub uses: Vec<Rc<usize>>,
}

/// All that the machine must know, each fact once.
pub struct Model {
    pub settings: Settings,
    /// The machine's, if its limit adapts.
    pub limit: u32,
    pub rows: Vec<ModelRow>,
    pub batch_bytes: Vec<u64>,
    pub payloads: Vec<Rc<usize>>,
    /// Bytes of a row, by batch.
    pub row_bytes: Vec<u64>,
    pub parts: VecDeque<Vec<usize>>,
    pub open: Vec<ModelAttempt>,
    /// Attempts that have ended.
    pub closed: Vec<Token>,
    pub next_id: u64,
    pub turns: u64,
    pub retries: u64,
    /// When attempts started, and the first free place of the schedule (R22).
    pub starts: Vec<u64>,
    pub free: u64,
    /// A start waits for its place; how many have.
    pub waits: bool,
    pub paced: u64,
    pub stopped: bool,
    pub cancelled: bool,
    pub poisoned: bool,
    /// The host takes nothing any more.
    pub released: bool,
    /// Rows handed out: values, errors, timed out, cancelled.
    pub ended: [u64; 4],
    /// How long the rows took that ran and were neither cancelled nor poisoned.
    pub took: Vec<u64>,
}

impl Model {
    pub fn new(settings: Settings) -> Model {
        Model {
            settings,
            limit: settings.allowed_in_flight,
            rows: vec![],
            batch_bytes: vec![],
            payloads: vec![],
            row_bytes: vec![],
            parts: VecDeque::new(),
            open: vec![],
            closed: vec![],
            next_id: 0,
            turns: 0,
            retries: 0,
            starts: vec![],
            free: 0,
            waits: false,
            paced: 0,
            stopped: false,
            cancelled: false,
            poisoned: false,
            released: false,
            ended: [0; 4],
            took: vec![],
        }
    }

    /// How many rows that have been handed out ended so.
    pub fn ended_as(&mut self, how: How) -> &mut u64 {
        let [values, errors, timed_out, cancelled] = &mut self.ended;
        match how {
            How::Value => values,
            How::Error => errors,
            How::TimedOut(_) => timed_out,
            How::Cancelled => cancelled,
        }
    }

    pub fn held(&self) -> impl Iterator<Item = &ModelRow> {
        self.rows.iter().filter(|row| row.place != Place::Out)
    }

    /// R4: what is held before the batch decides.
    pub fn has_room(&self) -> bool {
        (self.held().count() as u64) < self.settings.max_rows && self.held_bytes() < self.settings.max_bytes
    }

    /// R4: a batch counts until its last row is handed out.
    pub fn held_bytes(&self) -> u64 {
        (0..self.batch_bytes.len()).filter(|&b| self.held().any(|row| row.batch == b)).map(|b| self.batch_bytes[b]).sum()
    }

    pub fn is_open(&self, row: usize) -> bool {
        !matches!(self.rows[row].place, Place::Ended(_) | Place::Out)
    }

    /// Ends rows, and cancels the attempts of those that run.
    pub fn end_where(&mut self, now: u64, how: How, which: impl Fn(&ModelRow) -> bool) {
        for row in 0..self.rows.len() {
            if self.is_open(row) && which(&self.rows[row]) {
                self.end(now, row, how);
            }
        }
    }

    pub fn ended(&mut self, now: u64, row: usize, how: How) {
        self.rows[row].place = Place::Ended(how);
        if let (Some(begun), false) = (self.rows[row].begun, how == How::Cancelled || self.poisoned) {
            self.took.push(now - begun);
        }
    }

    pub fn end(&mut self, now: u64, row: usize, how: How) {
        self.ended(now, row, how);
        for i in 0..self.open.len() {
            if self.open[i].cancelled.is_none() && self.running_in(i).is_empty() {
                self.open[i].cancelled = Some(now); // no row waits for it any more
            }
        }
    }

    /// The rows that wait for an attempt that has not been cancelled.
    pub fn running_in(&self, attempt: usize) -> Vec<usize> {
        let runs = |row: &usize| matches!(self.rows[*row].place, Place::Running { .. });
        self.open[attempt].rows.iter().copied().filter(runs).collect()
    }

    pub fn may_retry(&self, row: usize) -> bool {
        self.rows[row].attempts < self.settings.retry.max_attempts && !self.cancelled
    }

    pub fn back_off(&mut self, now: u64, row: usize) {
        let pause = self.settings.retry.pause(self.rows[row].id, self.rows[row].attempts);
        self.rows[row].place = Place::BackingOff { until: now + pause };
    }

    /// R23: a limit that adapts is the machine's affair, within its bounds.
    pub fn adapt(&mut self, limit: u64) {
        assert!(if self.settings.adaptive {
            (1..=u64::from(self.settings.allowed_in_flight)).contains(&limit)
        } else {
            limit == u64::from(self.limit)
        });
        self.limit = limit as u32;
    }

    pub fn has_slot(&self) -> bool {
        self.open.iter().filter(|a| !a.stuck).count() < self.limit as usize
    }

    /// R7: the first part of a micro-batch whose rows, or some of them, still wait.
    pub fn next_part(&self) -> Option<Vec<usize>> {
        let waiting = |part: &Vec<usize>| -> Vec<usize> { part.iter().copied().filter(|&r| self.rows[r].place == Place::Split).collect() };
        self.parts.iter().map(waiting).find(|part| !part.is_empty())
    }

    /// Rows that wait to be gathered, each with the time since which it does.
    pub fn waiting(&self) -> impl Iterator<Item = (&ModelRow, u64)> {
        self.rows.iter().filter_map(|row| match row.place {
            Place::Due { since, .. } => Some((row, since)),
            Place::Waiting => Some((row, row.accepted)),
            _ => None,
        })
    }

    /// R22: the schedule has a place now.
    pub fn has_place(&self, now: u64) -> bool {
        self.settings.rate.is_none() || self.free <= now
    }

    /// R22: a start takes its place.
    pub fn note_start(&mut self, now: u64) {
        let Some(rate) = self.settings.rate else { return };
        self.free = self.free.max(now - now.min(rate.slack())) + rate.interval();
        self.starts.push(now);
        self.waits = false;
    }

    /// R22: at most so many starts in each window.
    pub fn keeps_rate(&self) -> bool {
        let Some(rate) = self.settings.rate else { return true };
        self.starts.windows(rate.starts as usize + 1).all(|more| more[more.len() - 1] - more[0] >= rate.window + rate.slack())
    }

    /// R4, and the conditions of a micro-batch.
    pub fn can_start(&self, now: u64) -> bool {
        let waits = self.waiting().next().is_some();
        let gathered = self.settings.gather.is_none_or(|gather| {
            let bytes: u64 = self.waiting().map(|(row, _)| self.row_bytes[row.batch]).sum();
            let enough = self.waiting().count() as u64 >= gather.rows || bytes >= gather.bytes;
            let long = self.waiting().any(|(_, since)| since + gather.wait <= now);
            enough || long || self.stopped || !self.has_room()
        });
        self.has_slot() && (self.next_part().is_some() || waits && gathered)
    }

    /// R4, R7: the next row of an attempt. Pauses that ended at the same moment may be taken in any order: row `like`, if it
    /// is among them.
    pub fn next_row(&self, like: Option<u64>) -> Option<usize> {
        let turn = |row: &ModelRow| if let Place::Due { turn, .. } = row.place { Some(turn) } else { None };
        let Some(first) = self.rows.iter().filter_map(turn).min() else {
            return self.rows.iter().position(|row| row.place == Place::Waiting);
        };
        let same = |row: &ModelRow| turn(row) == Some(first);
        let liked = self.rows.iter().position(|row| same(row) && Some(row.id) == like);
        liked.or_else(|| self.rows.iter().position(same))
    }

    /// Starts the next attempt and returns its rows; `ids` are those that the machine has started.
    pub fn start(&mut self, ids: &[u64], until: u64) -> Vec<usize> {
        let mut group = self.next_part().unwrap_or_default();
        if group.is_empty() {
            let Gather { rows, bytes, .. } = self.settings.gather.unwrap_or(Gather { rows: 1, bytes: u64::MAX, wait: 0 });
            let mut taken = 0;
            while (group.len() as u64) < rows && (group.is_empty() || taken < bytes) {
                let Some(row) = self.next_row(ids.get(group.len()).copied()) else { break };
                self.retries += u64::from(matches!(self.rows[row].place, Place::Due { .. }));
                taken += self.row_bytes[self.rows[row].batch];
                self.rows[row].place = Place::Running { until };
                self.rows[row].attempts += 1;
                group.push(row);
            }
        }
        for &row in &group {
            self.rows[row].place = Place::Running { until };
        }
        group
    }

    /// A call begins: its timeout counts from now.
    pub fn begin(&mut self, attempt: usize, now: u64) {
        let Some(timeout) = self.settings.timeout.filter(|_| self.open[attempt].cancelled.is_none()) else { return };
        self.open[attempt].until = now + timeout;
        for row in self.running_in(attempt) {
            self.rows[row].place = Place::Running { until: now + timeout };
        }
    }

    /// R6, R7, R8: timeouts, then row deadlines, then stuck attempts, then ends of pauses.
    pub fn tick(&mut self, now: u64) {
        for attempt in 0..self.open.len() {
            if self.open[attempt].cancelled.is_some() || self.open[attempt].until > now {
                continue;
            }
            for row in self.running_in(attempt) {
                if self.settings.retry.timeouts && self.may_retry(row) {
                    self.rows[row].place = Place::Ending;
                } else {
                    self.ended(now, row, How::TimedOut(Limit::Timeout));
                }
            }
            self.open[attempt].cancelled = Some(now);
        }
        for limit in [Limit::Deadline, Limit::BatchDeadline] {
            self.end_where(now, How::TimedOut(limit), |row| row.deadline <= now && row.limit == limit);
        }
        for i in 0..self.open.len() {
            let ModelAttempt { cancelled, stuck, .. } = self.open[i];
            if cancelled.is_some_and(|at| at + PATIENCE <= now) && !stuck {
                self.open[i].stuck = true;
                for row in self.waiting_for(i) {
                    if self.settings.retry.idempotent {
                        self.back_off(now, row);
                    } else {
                        self.ended(now, row, How::TimedOut(Limit::Timeout));
                    }
                }
            }
        }
        let mut over: Vec<(u64, usize)> = vec![];
        for (r, row) in self.rows.iter().enumerate() {
            if let Place::BackingOff { until } = row.place {
                if until <= now {
                    over.push((until, r));
                }
            }
        }
        over.sort_by_key(|&(until, r)| (until, self.rows[r].id));
        self.turns += 1;
        for (until, r) in over {
            self.rows[r].place = Place::Due { turn: self.turns << 32 | until, since: now };
        }
        let stuck = self.open.iter().filter(|a| a.stuck).count();
        if stuck as u64 >= u64::from(self.settings.max_stuck) && !self.cancelled {
            self.poison(now);
        }
    }

    /// The rows that get another attempt when this one, their latest, has ended.
    pub fn waiting_for(&self, attempt: usize) -> Vec<usize> {
        let youngest = |row: usize| self.open.iter().rposition(|a| a.rows.contains(&row)) == Some(attempt);
        let waits = |&row: &usize| self.rows[row].place == Place::Ending && youngest(row);
        self.open[attempt].rows.iter().copied().filter(waits).collect()
    }

    /// R7: splits a micro-batch that failed as a whole into two parts.
    pub fn split(&mut self, rows: &[usize]) {
        for &row in rows {
            self.rows[row].place = Place::Split;
        }
        let half = rows.len().div_ceil(2);
        self.parts.push_front(rows[half..].to_vec());
        self.parts.push_front(rows[..half].to_vec());
    }

    /// R17: rows that have not ended are errors. Their attempts are cancelled like any other that no row waits for.
    pub fn poison(&mut self, now: u64) {
        if !self.poisoned {
            self.poisoned = true;
            self.end_where(now, How::Error, |_| true);
        }
    }

    /// R5: the numbers of the rows that a drain may hand out now. Unordered: in any order.
    pub fn ready(&self) -> Vec<usize> {
        let held = (0..self.rows.len()).filter(|&r| self.rows[r].place != Place::Out);
        let ended = |&r: &usize| matches!(self.rows[r].place, Place::Ended(_));
        if self.settings.ordered {
            held.take_while(ended).collect()
        } else {
            held.filter(ended).collect()
        }
    }

    pub fn count(&self, place: impl Fn(&Place) -> bool) -> u64 {
        self.rows.iter().filter(|row| place(&row.place)).count() as u64
    }
}
