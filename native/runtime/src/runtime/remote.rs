//! The calls of a runtime in a worker process. The machine that decides about them is the host's: order, timeouts, retries. Here
//! an executor takes what the host sends, carries its orders out, and says what became of the calls.
//!
//! Guarantees: each call that came in is answered once, after it has ended; a call that ended before it began, too.
//! Assumes: the host names calls by the tokens of its machine, so no two that are open have the same index.

use super::executor::{Attempt, Orders};
use super::{Runtime, State};
use crate::machine::{Outcome, Stuck, Token, Weigh};
use crate::timer::now;
use crate::value::Value;
use std::collections::{HashMap, VecDeque};

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// That of a row, or of a micro-batch that failed as a whole.
    Whole(Outcome<Value>),
    /// The rows of a micro-batch.
    Rows(Vec<Outcome<Value>>),
}

impl Ended {
    pub fn outcomes(&self) -> &[Outcome<Value>] {
        match self {
            Ended::Whole(outcome) => std::slice::from_ref(outcome),
            Ended::Rows(outcomes) => outcomes,
        }
    }

    /// Of values and texts.
    pub fn bytes(&self) -> u64 {
        self.outcomes().iter().map(bytes).sum()
    }

    /// Its largest value becomes an error with this text. False: it has none.
    pub fn lose_largest(&mut self, text: &str) -> bool {
        let outcomes = match self {
            Ended::Whole(outcome) => std::slice::from_mut(outcome),
            Ended::Rows(outcomes) => outcomes,
        };
        let values = outcomes.iter_mut().filter(|outcome| matches!(outcome, Outcome::Value(_)));
        let Some(largest) = values.max_by_key(|outcome| bytes(outcome)) else { return false };
        *largest = Outcome::Error(text.into());
        true
    }
}

fn bytes(outcome: &Outcome<Value>) -> u64 {
    match outcome {
        Outcome::Value(value) => value.bytes(),
        Outcome::Error(text) => text.len() as u64,
        Outcome::TimedOut(_) | Outcome::Cancelled => 0,
    }
}

/// A call that has not ended.
struct Open {
    begun: u64,
    /// Whatever it returns comes too late.
    is_late: bool,
    is_stuck: bool,
}

#[derive(Default)]
pub(super) struct Remote {
    waiting: VecDeque<Attempt>,
    open: HashMap<Token, Open>,
    orders: Orders,
    ended: Vec<(Token, Ended)>,
}

impl Remote {
    pub fn can_start(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub fn start(&mut self, begun: u64, timeout: Option<u64>) -> Option<Attempt> {
        let mut attempt = self.waiting.pop_front()?;
        attempt.deadline = attempt.row_deadline.min(timeout.map_or(u64::MAX, |timeout| begun.saturating_add(timeout)));
        self.open.insert(attempt.token, Open { begun, is_late: false, is_stuck: false });
        Some(attempt)
    }

    pub fn call_began(&mut self, token: Token, at: u64) {
        self.open.entry(token).and_modify(|open| open.begun = at);
    }

    /// False: it came late.
    pub fn end(&mut self, token: Token, ended: Ended) -> bool {
        let Some(open) = self.open.remove(&token) else { return false };
        self.ended.push((token, if open.is_late { Ended::Whole(Outcome::Cancelled) } else { ended }));
        !open.is_late
    }

    fn cancel(&mut self, token: Token) {
        if let Some(open) = self.open.get_mut(&token) {
            if !std::mem::replace(&mut open.is_late, true) {
                self.orders.cancelled.push(token);
            }
        } else if let Some(place) = self.waiting.iter().position(|attempt| attempt.token == token) {
            self.waiting.remove(place);
            self.ended.push((token, Ended::Whole(Outcome::Cancelled)));
        }
    }

    fn report_stuck(&mut self, stuck: Stuck) {
        if let Some(open) = self.open.get_mut(&stuck.token) {
            open.is_stuck = true;
            self.orders.stuck.push(stuck);
        }
    }

    /// Cancels all calls: the runtime ends.
    pub fn cancel_all(&mut self) {
        let open = self.open.keys().chain(self.waiting.iter().map(|attempt| &attempt.token));
        open.copied().collect::<Vec<_>>().into_iter().for_each(|token| self.cancel(token));
    }

    /// The executor has ended, and with it the calls that are left.
    pub fn end_all(&mut self) {
        self.cancel_all();
        let open: Vec<Token> = self.open.keys().copied().collect();
        open.into_iter().for_each(|token| _ = self.end(token, Ended::Whole(Outcome::Cancelled)));
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.open.is_empty()
    }

    pub fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }

    pub fn running(&self) -> u64 {
        self.open.len() as u64
    }

    pub fn stuck(&self) -> u64 {
        self.open.values().filter(|open| open.is_stuck).count() as u64
    }

    pub fn has_news(&self) -> bool {
        !self.ended.is_empty()
    }

    pub fn take_orders(&mut self, into: &mut Orders) {
        self.orders.move_to(into);
    }

    pub fn drop_cancellations(&mut self) {
        self.orders.cancelled.clear();
    }

    pub fn has_orders(&self) -> bool {
        !self.orders.is_empty()
    }
}

/// What a host asks for.
#[derive(Debug, Default)]
pub struct Wishes {
    pub cancelled: Vec<Token>,
    pub stuck: Vec<Stuck>,
    pub calls: Vec<Attempt>,
}

impl Runtime {
    /// The machine is the host's from now on. Before the first call.
    pub fn become_remote(&self) {
        self.lock().remote = Some(Box::default());
    }

    /// Carries out what the host asks for.
    pub fn obey(&self, wishes: Wishes) {
        let mut state = self.lock();
        state.take_outcomes();
        let is_over = state.machine.stopping().is_some() || state.machine.poisoned().is_some();
        let Some(remote) = &mut state.remote else { return };
        wishes.cancelled.into_iter().for_each(|token| remote.cancel(token));
        wishes.stuck.into_iter().for_each(|stuck| remote.report_stuck(stuck));
        remote.waiting.extend(wishes.calls);
        if is_over {
            remote.cancel_all();
        }
        self.wake_after(state);
    }

    /// When the calls began that the host asks for, or a tick of the system before. None: that one has not.
    pub fn begun(&self, tokens: &[Token]) -> Vec<Option<u64>> {
        let mut state = self.lock();
        state.take_outcomes();
        tokens.iter().map(|&token| state.begun(token)).collect()
    }

    /// The calls that have ended since the last time.
    pub fn take_ended(&self) -> Vec<(Token, Ended)> {
        let mut state = self.lock();
        state.take_outcomes();
        let ended = state.remote.as_mut().map(|remote| std::mem::take(&mut remote.ended)).unwrap_or_default();
        self.wake_after(state);
        ended
    }

    /// Why the runtime has failed by itself.
    pub fn why_poisoned(&self) -> Option<String> {
        self.lock().machine.poisoned().map(str::to_string)
    }
}

impl State {
    fn begun(&self, token: Token) -> Option<u64> {
        let ahead = self.taken_ahead(token).map(|(outbox, place)| outbox.begun(place));
        // One that has ended began: the answer is on its way.
        let Some(remote) = &self.remote else { return None };
        let waits = remote.waiting.iter().any(|attempt| attempt.token == token);
        ahead.unwrap_or_else(|| (!waits).then(|| remote.open.get(&token).map_or_else(now, |open| open.begun)))
    }
}
