//! The journal of a batch: how each row ended, in shared memory, before the next one begins. So the rows before a crash are
//! not lost, although no row is called twice.
//!
//! A value for which there is no memory, or none within the worker's limit, is the error of its row.
//!
//! A worker lays it out before it calls the plugin ([`Journal::during`]). A loop over rows that knows of it takes it
//! ([`take`]) and writes to it row by row. Rows of other loops are called one by one, and the worker writes them down.

use super::mailbox::Writer;
use super::record;
use crate::value::Value;
use std::cell::Cell;
use std::ptr::null_mut;

thread_local! {
    /// Of the batch that this thread is about to run; null: none.
    static OPEN: Cell<*mut Journal<'static>> = const { Cell::new(null_mut()) };
}

pub struct Journal<'a> {
    writer: Writer<'a>,
    rows: u64,
    /// Why the rest is not written: there is no memory, not even for an error.
    broken: Option<std::io::Error>,
}

impl<'a> Journal<'a> {
    pub fn new(writer: Writer<'a>) -> Journal<'a> {
        Journal { writer, rows: 0, broken: None }
    }

    /// Says that it belongs to the host's message of this number.
    pub fn begin(&self, number: u64) {
        self.writer.begin(number);
    }

    /// How many rows are written.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    pub fn broken(&self) -> Option<&std::io::Error> {
        self.broken.as_ref()
    }

    /// Calls `body`, in which the loop over the rows may take the journal.
    pub fn during<R>(&mut self, body: impl FnOnce() -> R) -> R {
        OPEN.set(std::ptr::from_mut(self).cast());
        let answer = body();
        OPEN.set(null_mut());
        answer
    }

    fn row(&mut self, write: impl FnOnce(&mut Writer) -> std::io::Result<()>) {
        if self.broken.is_some() {
            return;
        }
        let written = self.writer.whole(write).or_else(|error| {
            let text = no_room(&error);
            self.writer.beyond_limit(|writer| record::write_error(&text, writer))
        });
        match written {
            Ok(()) => {
                self.rows += 1;
                self.writer.publish(self.rows);
            }
            Err(error) => self.broken = Some(error),
        }
    }

    pub fn null(&mut self) {
        self.row(record::write_null);
    }

    /// A value of up to 8 bytes.
    pub fn fixed(&mut self, value: u64) {
        self.row(|writer| record::write_fixed(value, writer));
    }

    pub fn bytes(&mut self, value: &[u8]) {
        self.row(|writer| record::write_bytes(value, writer));
    }

    pub fn error(&mut self, text: &str) {
        self.row(|writer| record::write_error(text, writer));
    }

    pub fn record(&mut self, record: Result<&Value, &str>) {
        self.row(|writer| record::write(record, writer));
    }
}

/// The text of a row for whose value a worker has no shared memory.
#[cold]
pub fn no_room(error: &std::io::Error) -> String {
    format!("no shared memory for its value: {error}")
}

/// The journal of the batch that this thread was called for. It is there once: calls that user code makes have none.
///
/// # Safety
/// The journal is used only during the call, by the loop over its rows.
pub unsafe fn take<'a>() -> Option<&'a mut Journal<'static>> {
    // SAFETY: set while `during` runs, which borrows the journal and called this; taken once.
    unsafe { OPEN.replace(null_mut()).as_mut() }
}
