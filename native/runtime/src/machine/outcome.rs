//! How rows end, and what a drain hands out.

/// How a row ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<V> {
    Value(V),
    Error(Box<str>),
    TimedOut(Limit),
    Cancelled,
}

/// The limit that a row has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Of an attempt.
    Timeout,
    /// Of a row, in the settings.
    Deadline,
    /// Of a row, from its batch.
    BatchDeadline,
}

/// A row that has ended, as a drain hands it out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished<V> {
    pub id: u64,
    pub attempts: u16,
    pub outcome: Outcome<V>,
}

/// A function's result.
pub trait Weigh: Sized {
    /// Its bytes in buffers of variable length.
    fn bytes(&self) -> u64;

    /// The same, where several rows will get a copy.
    fn shared(self) -> Self {
        self
    }
}
