//! The host's side of a runtime: send, drain, cancel, statistics, stop.
//!
//! Guarantees: `put`, `send`, `drain` and `cancel` do not wait (R15); a refused batch comes back whole.

use super::{Runtime, State, SPACE};
use crate::arrow::ArgumentArray;
use crate::failure::Failure;
use crate::inbox::Size;
use crate::limits::{close_took_too_long, CLOSE_TIME, GRACE};
use crate::machine::{Counts, Finished, Outcome, Refused, Stop};
use crate::memory;
use crate::panics::catch_own;
use crate::results;
use crate::timer::now;
use crate::value::Value;
use arroyo_udf_abi as abi;
use std::time::{Duration, Instant};

/// How many rows may wait for an earlier row, for another row's call or for their next attempt before [`Runtime::space`] is 0.
const MOST_ASIDE: u64 = 16_384;

/// What to do with a batch that was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// Nothing: the executor will find it.
    Done,
    /// Call [`Runtime::deliver`].
    Deliver,
}

/// What a drain hands out.
#[derive(Debug)]
pub enum Drained {
    Rows(abi::ArrowArray),
    /// Nothing now.
    Nothing,
    /// Nothing now, and nothing will come.
    End,
}

/// A batch that `put` gives back; no failure means that there is no room now.
pub struct NotTaken {
    pub batch: ArgumentArray,
    pub failure: Option<Failure>,
}

impl Runtime {
    /// The first half of `send` in the header: does not wait. [`Runtime::deliver`] is the other half, if it is needed.
    #[allow(clippy::result_large_err)] // it is the batch, given back
    pub fn put(&self, first_id: u64, batch: ArgumentArray) -> Result<Put, NotTaken> {
        let size = Size { rows: batch.rows() as u64, bytes: batch.bytes() };
        let timed = self.rows_timed || batch.deadline().is_some();
        let now = || if timed { now() } else { 0 };
        match self.inbox.put(first_id, size, now, batch) {
            Ok(executor_sleeps) => Ok(if executor_sleeps || timed { Put::Deliver } else { Put::Done }),
            Err((batch, refused)) => Err(NotTaken { batch, failure: self.why_refused(first_id, refused) }),
        }
    }

    /// Both halves of `send`.
    #[allow(clippy::result_large_err)] // as for `put`
    pub fn send(&self, first_id: u64, batch: ArgumentArray) -> Result<(), NotTaken> {
        if self.put(first_id, batch)? == Put::Deliver {
            self.deliver();
        }
        Ok(())
    }

    fn why_refused(&self, first_id: u64, refused: Refused) -> Option<Failure> {
        let name = &self.signature.name;
        match refused {
            Refused::WouldBlock => None,
            Refused::Id => Some(Failure::argument(format!("{name}: id {first_id} does not rise above those sent before"))),
            Refused::Stopped => {
                let stopped = || Failure::state(format!("{name}: stopped; start it again to send more"));
                Some(self.check(&self.lock()).err().unwrap_or_else(stopped))
            }
        }
    }

    /// Passes the sent batches on to the machine, and so to the executor and the timer.
    pub fn deliver(&self) {
        let mut state = self.lock();
        self.take_in(&mut state);
        self.wake_after(state);
    }

    /// See `drain_results` in the header. A failure loses no row: they come out of a later call.
    pub fn drain(&self, max_rows: u64) -> Result<Drained, Failure> {
        let finished = match self.take(max_rows) {
            Ok(finished) => finished,
            Err(over) => return Ok(if over { Drained::End } else { Drained::Nothing }),
        };
        let (signature, settings) = (self.signature, self.settings());
        if let Err(failure) = memory::for_rows(&signature.name, &signature.returns, &finished) {
            self.put_back(finished);
            return Err(failure);
        }
        catch_own(|| results::export(&signature.returns, &finished, &signature.name, &settings)).map(Drained::Rows).map_err(|text| {
            // Their values cannot be handed out, now or later.
            let error = |row| Finished { outcome: Outcome::Error(text.as_str().into()), ..row };
            self.put_back(finished.into_iter().map(error).collect());
            self.poison(&text);
            Failure::internal(format!("{}: {text}", signature.name))
        })
    }

    /// Takes back rows that could not be handed out.
    fn put_back(&self, rows: Vec<Finished<Value>>) {
        let mut state = self.lock();
        self.inbox.take_back(Size { rows: rows.len() as u64, bytes: 0 });
        state.machine.put_back(rows);
        self.wake_after(state);
    }

    /// As [`Runtime::drain`], the rows themselves. An error means nothing now; `true`: and nothing will come.
    pub fn take(&self, max_rows: u64) -> Result<Vec<Finished<Value>>, bool> {
        let mut state = self.lock();
        state.take_outcomes();
        if !state.machine.has_results() {
            return Err(state.is_over() && state.machine.is_empty());
        }
        let limit = if max_rows == 0 { u64::MAX } else { max_rows };
        let held_before = state.machine.held_bytes();
        let finished = state.machine.drain(limit, results::DRAIN_BYTES as u64);
        self.inbox.give_back(Size { rows: finished.len() as u64, bytes: held_before - state.machine.held_bytes() });
        self.wake_after(state);
        Ok(finished)
    }

    /// Ends every row that has not been drained: for a runtime whose handle ends. Its batches are retired now, and not when
    /// the last reference to the runtime goes.
    pub fn discard(&self) {
        while self.take(0).is_ok() {}
    }

    /// For a host that sends row by row: how many more rows it may send until all attempts run and one row waits. Rows that
    /// wait for a drain do not count. Rows that wait for an earlier row, for another row's call or for their next attempt count
    /// only once there are very many. After the end and after a stop there is always space, so that sends are refused and do not wait.
    pub fn space(&self) -> u64 {
        let mut state = self.lock();
        self.take_in(&mut state);
        if self.holds(&state, SPACE) {
            state.space().max(1)
        } else {
            0
        }
    }

    /// Whether the runtime has failed by itself (R8, R17).
    pub fn is_poisoned(&self) -> bool {
        self.lock().machine.poisoned().is_some()
    }

    /// See `cancel` in the header.
    pub fn cancel(&self, first_id: u64, rows: u64) {
        let mut state = self.lock();
        state.break_off();
        self.take_in(&mut state);
        let now = state.not_back(now());
        state.machine.cancel(now, first_id, rows);
        self.wake_after(state);
    }

    /// The machine's part of the statistics.
    pub fn counts(&self) -> Counts {
        let mut state = self.lock();
        self.take_in(&mut state);
        state.counts()
    }

    pub fn statistics(&self) -> abi::Statistics {
        let mut state = self.lock();
        self.take_in(&mut state);
        let (counts, latency, cache) = (state.machine.counts(), state.machine.latency(), state.machine.cache_counts());
        abi::Statistics {
            size: size_of::<abi::Statistics>() as u64,
            accepted: counts.accepted,
            queued: counts.queued,
            running: counts.running,
            backing_off: counts.backing_off,
            held: counts.held,
            ready: counts.ready,
            drained: counts.drained,
            values: counts.values,
            errors: counts.errors,
            timed_out: counts.timed_out,
            cancelled: counts.cancelled,
            retries: counts.retries,
            stuck: counts.stuck,
            wake_ups: state.wake_ups,
            blocked: state.blocked,
            left_behind: state.left_behind,
            discarded: state.discarded,
            latency: latency.counts,
            latency_max_ns: latency.longest,
            waiting: counts.waiting,
            cache_hits: cache.hits,
            cache_shared: cache.shared,
            cache_misses: cache.misses,
            cache_evictions: cache.evictions,
            cache_entries: cache.entries,
            cache_bytes: cache.bytes,
            paced: counts.paced,
            limit: counts.limit,
            limit_most: state.machine.settings().allowed_in_flight.into(),
            overloads: counts.overloads,
        }
    }

    /// Begins to stop without waiting for the end.
    pub fn stop_soon(&self, mode: Stop) {
        let mut state = self.lock();
        self.stop_locked(&mut state, mode);
        self.wake_after(state);
    }

    fn stop_locked(&self, state: &mut State, mode: Stop) {
        let now = state.not_back(now());
        state.break_off();
        self.between_sends(state, |machine| machine.stop(now, mode));
        if mode == Stop::Cancel {
            state.remote.iter_mut().for_each(|remote| remote.cancel_all());
        }
    }

    /// See `stop_runtime` in the header (R13). A poisoned runtime is no exception: its calls are cancelled, and must end or
    /// be stuck before it is stopped. Every caller gets the same answer.
    pub fn stop(&self, mode: Stop, deadline: Duration) -> Result<abi::Status, Failure> {
        self.stop_within(mode, deadline, CLOSE_TIME + 3 * GRACE)
    }

    /// `patience`: how long the executor may take to close. It also ends what calls and `init` have left, for a second each.
    pub(super) fn stop_within(&self, mode: Stop, deadline: Duration, patience: Duration) -> Result<abi::Status, Failure> {
        let mut state = self.lock();
        self.stop_locked(&mut state, mode);
        let until = Instant::now().checked_add(deadline);
        let mut last = until;
        let mut cancelled = mode == Stop::Cancel;
        loop {
            self.wake_after(state);
            state = self.lock();
            while !state.has_ended() {
                if state.machine.is_stuck() {
                    state.stuck = true; // nothing more will happen
                    break;
                }
                let closed_by = state.closing.and_then(|since| since.checked_add(patience));
                let in_time;
                (state, in_time) = self.sleep(state, last.into_iter().chain(closed_by).min());
                if !in_time {
                    if closed_by.is_some_and(|by| by <= Instant::now()) {
                        state.closed = Some(Err(close_took_too_long(CLOSE_TIME)));
                        // it goes on in its thread
                    }
                    break;
                }
            }
            if state.has_ended() {
                self.changed.notify_all(); // others may stop it too, with a later deadline
                return self.stopped(&state);
            }
            // Time is over: cancel what still runs, and give up on it a little later.
            if cancelled && last != until {
                state.stuck = true;
            }
            if !cancelled {
                self.stop_locked(&mut state, Stop::Cancel);
                cancelled = true;
            }
            last = until.and_then(|until| until.checked_add(GRACE));
        }
    }

    /// What a stop answers in the end.
    fn stopped(&self, state: &State) -> Result<abi::Status, Failure> {
        if state.machine.is_overwhelmed() {
            return Ok(abi::STUCK);
        }
        self.check(state)?;
        match &state.closed {
            _ if state.stuck => Ok(abi::STUCK),
            Some(Err(text)) => Err(Failure::new(abi::USER_CODE, format!("{}: close failed: {text}", self.signature.name))),
            _ => Ok(abi::OK),
        }
    }
}

impl State {
    /// See [`Runtime::space`].
    pub(super) fn space(&self) -> u64 {
        let (counts, settings) = (self.machine.counts(), self.machine.settings());
        // Rows for the attempts that may still start, and for one more that waits.
        let free = u64::from(settings.allowed_in_flight).saturating_sub(counts.running - counts.stuck);
        let rows = settings.gather.map_or(1, |gather| gather.rows);
        let aside = MOST_ASIDE.saturating_sub(counts.held + counts.backing_off + counts.waiting);
        (free + 1).saturating_mul(rows).saturating_sub(counts.queued).min(aside)
    }
}
