//! Where `send` leaves batches, so that it rarely meets the executor, and at a lock that is held for nanoseconds: the
//! executor takes all batches at once, when it has nothing left to start.
//!
//! Guarantees: each batch is taken out once, in the order in which batches were put in. Ids rise, and the budget (R4) is
//! exact: a batch counts from `put` until `give_back`, wherever it is meanwhile.
//!
//! Lost wake-ups: the executor announces its sleep ([`Inbox::set_asleep`]), then looks into the inbox. `put` puts the batch
//! in, then looks whether the executor sleeps. So one of the two sees the other.

use crate::machine::Refused;
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering, Unpoisoned};
use std::mem::swap;

/// How many places stay allocated in an empty inbox.
const KEPT: usize = 1024;

/// What counts against the budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    pub rows: u64,
    pub bytes: u64,
}

/// A batch in the inbox.
#[derive(Debug)]
pub struct Sent<B> {
    /// When it was accepted, if that matters; else 0.
    pub at: u64,
    pub first_id: u64,
    pub size: Size,
    pub batch: B,
}

#[derive(Debug)]
struct State<B> {
    sent: Vec<Sent<B>>,
    next_id: u64,
    held: Size,
    closed: bool,
}

#[derive(Debug)]
pub struct Inbox<B> {
    /// A batch is taken while less than this is held.
    limits: Size,
    state: Mutex<State<B>>,
    asleep: AtomicBool,
}

impl<B> Inbox<B> {
    /// For an executor that sleeps.
    pub fn new(limits: Size) -> Inbox<B> {
        let state = State { sent: Vec::new(), next_id: 0, held: Size::default(), closed: false };
        Inbox { limits, state: Mutex::new(state), asleep: AtomicBool::new(true) }
    }

    fn lock(&self) -> MutexGuard<'_, State<B>> {
        // A panic in the body of `take_and` leaves a whole state.
        self.state.lock().unpoisoned()
    }

    /// Takes a batch whole, or gives it back (R4). `now` is called under the lock, so that times rise with ids. True: the
    /// executor sleeps, and the caller must wake it.
    #[allow(clippy::result_large_err)] // it is the batch, given back
    pub fn put(&self, first_id: u64, size: Size, now: impl FnOnce() -> u64, batch: B) -> Result<bool, (B, Refused)> {
        let mut state = self.lock();
        let next_id = first_id.checked_add(size.rows).filter(|_| first_id >= state.next_id);
        let refused = match next_id {
            _ if state.closed => Refused::Stopped,
            None => Refused::Id,
            Some(_) if !self.has_room_locked(&state) => Refused::WouldBlock,
            Some(next_id) => {
                state.next_id = next_id;
                if size.rows > 0 {
                    state.held.rows += size.rows;
                    state.held.bytes += size.bytes;
                    state.sent.push(Sent { at: now(), first_id, size, batch });
                }
                drop(state);
                return Ok(self.is_asleep());
            }
        };
        Err((batch, refused))
    }

    /// Takes all batches out, into an empty list.
    pub fn take(&self, into: &mut Vec<Sent<B>>) {
        into.shrink_to(KEPT);
        swap(&mut self.lock().sent, into);
    }

    /// As `take`, then calls `body` before another batch can be put in. If that answers true, no batch ever can.
    pub fn take_and(&self, into: &mut Vec<Sent<B>>, body: impl FnOnce(&mut Vec<Sent<B>>) -> bool) {
        let mut state = self.lock();
        swap(&mut state.sent, into);
        let closes = body(into);
        state.closed |= closes;
    }

    /// Rows have left for good.
    pub fn give_back(&self, size: Size) {
        let mut state = self.lock();
        state.held.rows -= size.rows;
        state.held.bytes -= size.bytes;
    }

    /// Rows that had left are held again.
    pub fn take_back(&self, size: Size) {
        let mut state = self.lock();
        state.held.rows += size.rows;
        state.held.bytes += size.bytes;
    }

    /// Whether a batch would be taken, ignoring id order and shutdown.
    pub fn has_room(&self) -> bool {
        self.has_room_locked(&self.lock())
    }

    fn has_room_locked(&self, state: &State<B>) -> bool {
        state.held.rows < self.limits.rows && state.held.bytes < self.limits.bytes
    }

    /// Whether the executor sleeps.
    pub fn is_asleep(&self) -> bool {
        // The lock of the inbox orders this: `put` reads it after its own critical section, and `take` comes after
        // `set_asleep`.
        self.asleep.load(Ordering::Relaxed)
    }

    /// The executor goes to sleep, if the `take` that follows finds nothing; or it wakes. Call it under the runtime's lock.
    pub fn set_asleep(&self, asleep: bool) {
        self.asleep.store(asleep, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn put(inbox: &Inbox<char>, first_id: u64, rows: u64, bytes: u64, name: char) -> Result<bool, (char, Refused)> {
        inbox.put(first_id, Size { rows, bytes }, || 0, name)
    }

    #[test]
    fn r4_a_batch_is_taken_whole_if_less_than_the_limits_is_held() {
        let inbox = Inbox::new(Size { rows: 3, bytes: 100 });
        assert!(put(&inbox, 0, 2, 10, 'a').is_ok());
        assert!(put(&inbox, 2, 5, 10, 'b').is_ok());
        assert_eq!(put(&inbox, 7, 1, 1, 'c'), Err(('c', Refused::WouldBlock)));
        let mut taken = Vec::new();
        inbox.take(&mut taken);
        assert_eq!(taken.iter().map(|sent| (sent.first_id, sent.batch)).collect::<Vec<_>>(), [(0, 'a'), (2, 'b')]);
        assert!(!inbox.has_room(), "what was taken out is still held");
        inbox.give_back(Size { rows: 5, bytes: 10 });
        assert!(put(&inbox, 7, 0, 1000, 'c').is_ok(), "no row, nothing to hold");
        assert!(put(&inbox, 7, 0, 1000, 'd').is_ok());
        assert!(put(&inbox, 7, 0, 1000, 'e').is_ok());
        assert!(put(&inbox, 7, 1, 1000, 'f').is_ok());
        assert_eq!(put(&inbox, 8, 0, 0, 'g'), Err(('g', Refused::WouldBlock)));
    }

    #[test]
    fn r5_ids_rise() {
        let inbox = Inbox::new(Size { rows: 100, bytes: 100 });
        assert!(put(&inbox, 5, 2, 0, 'a').is_ok());
        assert_eq!(put(&inbox, 6, 1, 0, 'b'), Err(('b', Refused::Id)));
        assert_eq!(put(&inbox, u64::MAX, 1, 0, 'c'), Err(('c', Refused::Id)));
        assert!(put(&inbox, 7, 1, 0, 'd').is_ok());
    }

    #[test]
    fn r13_nothing_comes_after_the_end() {
        let inbox = Inbox::new(Size { rows: 100, bytes: 100 });
        assert!(put(&inbox, 0, 1, 0, 'a').is_ok());
        let mut taken = Vec::new();
        inbox.take_and(&mut taken, |_| false);
        taken.clear();
        assert!(put(&inbox, 1, 1, 0, 'b').is_ok());
        inbox.take_and(&mut taken, |sent| sent.len() == 1);
        assert_eq!(put(&inbox, 2, 1, 0, 'c'), Err(('c', Refused::Stopped)));
    }

    #[test]
    fn put_says_whether_the_executor_sleeps() {
        let inbox = Inbox::new(Size { rows: 100, bytes: 100 });
        assert_eq!(put(&inbox, 0, 1, 0, 'a'), Ok(true));
        inbox.set_asleep(false);
        assert_eq!(put(&inbox, 1, 1, 0, 'b'), Ok(false));
    }
}
