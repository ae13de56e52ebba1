//! The seats of a runtime: which executor sleeps, which one runs an attempt, and which one is woken for a row.
//!
//! Guarantees: a cancellation, and the report of a stuck attempt, go to the seat that runs it. A row that may start wakes
//! one seat, of those that sleep the one with the fewest attempts; that one wakes the next if there is more to start. With
//! one seat, which is the usual case, nothing of this is kept, unless its executor is asked when calls began.

use super::executor::{Attempt, Executor, Orders};
use super::outbox::Outbox;
use super::State;
use crate::machine::{Outcome, Token};
use std::collections::HashSet;
use std::sync::Arc;

/// One seat.
pub(super) struct SeatState {
    /// None: it is not served yet.
    pub executor: Option<Arc<dyn Executor>>,
    pub asleep: bool,
    /// It takes no further rows for now.
    pub full: bool,
    /// How the executor has ended.
    pub closed: Option<Result<(), String>>,
    /// Attempts that run here; kept only if there are several seats, or if its executor is asked.
    running: u64,
    /// For the executor's next turn; with one seat only what it is asked, the rest stays where it arises.
    orders: Orders,
    pub outbox: Arc<Outbox>,
    /// The rows that were taken ahead last, by their places in the outbox.
    pub taken: Vec<Token>,
    /// The row in hand when its stretch was broken off, until the executor takes note.
    pub in_hand: Option<Attempt>,
    /// The attempts that its executor was asked for, and that have begun for all that is known; None: it begins calls as it
    /// takes them ([`super::Seat::can_be_asked`]).
    pub asked: Option<HashSet<Token>>,
}

impl Default for SeatState {
    /// The executor sleeps until its first row.
    fn default() -> SeatState {
        SeatState {
            executor: None,
            asleep: true,
            full: false,
            closed: None,
            running: 0,
            orders: Orders::default(),
            outbox: Arc::default(),
            taken: Vec::new(),
            in_hand: None,
            asked: None,
        }
    }
}

/// Where the attempt of a token runs, by the token's index.
#[derive(Default)]
pub(super) struct Runners(Vec<Option<(Token, usize)>>);

impl Runners {
    fn add(&mut self, token: Token, seat: usize) {
        if self.0.len() <= token.index() {
            self.0.resize(token.index() + 1, None);
        }
        self.0[token.index()] = Some((token, seat));
    }

    fn seat(&self, token: Token) -> Option<usize> {
        self.0.get(token.index()).copied().flatten().filter(|(running, _)| *running == token).map(|(_, seat)| seat)
    }

    fn remove(&mut self, token: Token) -> Option<usize> {
        let seat = self.seat(token)?;
        self.0[token.index()] = None;
        Some(seat)
    }

    fn of(&self, seat: usize) -> Vec<Token> {
        self.0.iter().flatten().filter(|(_, runner)| *runner == seat).map(|(token, _)| *token).collect()
    }
}

impl State {
    /// Whether there are several seats.
    pub(super) fn is_shared(&self) -> bool {
        self.seats.len() > 1
    }

    /// Whether there is one, whose executor has the machine's rows to itself.
    pub(super) fn is_alone(&self) -> bool {
        !self.is_shared() && self.remote.is_none()
    }

    pub(super) fn any_asleep(&self) -> bool {
        self.seats.iter().any(|seat| seat.asleep)
    }

    /// An attempt starts at a seat.
    pub(super) fn note_start(&mut self, token: Token, seat: usize) {
        if self.is_shared() || self.seats[seat].asked.is_some() {
            self.runners.add(token, seat);
            self.seats[seat].running += 1;
        }
    }

    /// An attempt has ended, or had before.
    pub(super) fn note_end(&mut self, token: Token) {
        if let Some(seat) = self.runners.remove(token) {
            self.seats[seat].running -= 1;
            self.seats[seat].asked.iter_mut().for_each(|asked| _ = asked.remove(&token));
        }
    }

    /// The executor of a seat has ended, and with it all attempts that run there. True: it was the last.
    pub(super) fn close_seat(&mut self, seat: usize, now: u64, result: Result<(), String>) -> bool {
        self.break_off();
        self.seats[seat].closed.get_or_insert(result);
        let is_last = self.seats.iter().all(|seat| seat.closed.is_some());
        if is_last {
            match &mut self.remote {
                Some(remote) => remote.end_all(),
                None => self.machine.end_all(now),
            }
        } else {
            for token in self.runners.of(seat) {
                self.end(now, token, Outcome::Cancelled);
            }
        }
        is_last
    }

    /// Moves a seat's orders out.
    pub(super) fn take_orders(&mut self, seat: usize, into: &mut Orders) {
        if self.is_shared() {
            self.sort_orders();
        } else {
            self.take_all_orders(into);
        }
        self.seats[seat].orders.move_to(into);
    }

    fn take_all_orders(&mut self, into: &mut Orders) {
        match &mut self.remote {
            Some(remote) => remote.take_orders(into),
            None => {
                self.machine.take_cancellations(&mut into.cancelled);
                self.machine.take_stuck(&mut into.stuck);
            }
        }
    }

    /// Gives the orders to the seats that they are for.
    fn sort_orders(&mut self) {
        let mut orders = Orders::default();
        self.take_all_orders(&mut orders);
        for token in orders.cancelled {
            if let Some(seat) = self.runners.seat(token) {
                self.seats[seat].orders.cancelled.push(token);
            }
        }
        for stuck in orders.stuck {
            if let Some(seat) = self.runners.seat(stuck.token) {
                self.seats[seat].orders.stuck.push(stuck);
            }
        }
    }

    /// Asks the executor of an attempt whether its call has begun. False: it has, or there was no answer.
    pub(super) fn ask_for(&mut self, token: Token) -> bool {
        let Some(seat) = self.runners.seat(token) else { return false };
        let SeatState { asked, orders, .. } = &mut self.seats[seat];
        let asks = asked.as_mut().is_some_and(|asked| asked.insert(token));
        if asks {
            orders.unsure.push(token);
        }
        asks
    }

    /// Whether the executor of a seat has something to do that no other can do. Drops cancellations that none could carry
    /// out.
    fn is_needed(&mut self, seat: usize) -> bool {
        if !self.interrupts {
            match &mut self.remote {
                Some(remote) => remote.drop_cancellations(),
                None => self.machine.take_cancellations(&mut Vec::new()),
            }
        }
        let has_orders = if self.is_shared() {
            self.sort_orders();
            false
        } else {
            self.remote.as_ref().map_or_else(|| self.machine.has_cancellations() || self.machine.has_stuck(), |remote| remote.has_orders())
        };
        has_orders || !self.seats[seat].orders.is_empty() || self.is_settled() && self.closed.is_none() && self.seats[seat].closed.is_none()
    }

    /// Whether the executor of a seat has something to do.
    pub(super) fn has_work(&mut self, seat: usize) -> bool {
        self.is_needed(seat) || !self.seats[seat].full && self.can_start()
    }

    /// Marks a seat as awake. Its executor must be woken once the lock is given back.
    fn awake(&mut self, seat: usize) -> Option<Arc<dyn Executor>> {
        self.seats[seat].asleep = false;
        self.wake_ups += 1;
        self.seats[seat].executor.clone()
    }

    /// If a row may start: the sleeping executor that is to start it. (One that is awake will look by itself, but may be in
    /// the middle of a long call.)
    pub(super) fn wake_for_row(&mut self) -> Option<Arc<dyn Executor>> {
        if !self.can_start() {
            return None;
        }
        let takes_rows = |seat: &SeatState| seat.asleep && !seat.full && seat.closed.is_none();
        let sleeping = (0..self.seats.len()).filter(|&seat| takes_rows(&self.seats[seat]));
        let seat = sleeping.min_by_key(|&seat| self.seats[seat].running)?;
        self.awake(seat)
    }

    /// All sleeping executors that have something to do now.
    pub(super) fn wake_seats(&mut self, woken: &mut Woken) {
        for seat in 0..self.seats.len() {
            if self.seats[seat].asleep && self.is_needed(seat) {
                woken.extend(self.awake(seat));
            }
        }
        woken.extend(self.wake_for_row());
    }
}

/// Executors to wake; almost always one at most.
pub(super) type Woken = smallvec::SmallVec<[Arc<dyn Executor>; 1]>;
