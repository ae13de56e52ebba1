//! The messages in the lane of a started function, in both directions: attempts and orders go to the worker, and what became of
//! them comes back. And what the host keeps of an attempt meanwhile. An attempt has the number of its token.
//!
//! Guarantees: an outcome that the host reads fits the type of the function's results, whatever the worker has written.
//! Assumes, in the worker, that the host is sound.

use super::mailbox::{Reader, Writer};
use super::message::{Counts, ATTEMPTS, SAID};
use super::parcel::{self, Take};
use super::record;
use crate::abi;
use crate::arrow::{check_rows, ArgumentArray, Batch, Layout, Owned};
use crate::batch_context::{BatchContext, Key};
use crate::machine::{FurtherRow, Outcome, Stuck, Token};
use crate::results::fits;
use crate::runtime::remote::{Ended, Wishes};
use crate::runtime::{Attempt, Orders, Seat};
use crate::signature::Signature;
use crate::timer;
use crate::value::Value;
use std::ffi::{CStr, CString};
use std::io;
use std::ops::Range;
use std::sync::Arc;

const KEY: usize = size_of::<Key>();

/// A row on its way: its id, the number of its attempt, and where its arguments are: which of the message's batches, and where in
/// that.
type Row = (u64, u16, usize, usize);

/// Attempts for one message, and the rows of batches that they need.
#[derive(Default)]
pub struct Outgoing {
    batches: Vec<(Arc<Batch>, Range<usize>)>,
    pub attempts: Vec<(Attempt, Vec<Row>)>,
    /// The batch that was checked last, and whether all its rows are sound.
    checked: Option<(Arc<Batch>, bool)>,
}

impl Outgoing {
    /// Whether the rows of an attempt can be read; an error is the text of the row's.
    pub fn check(&mut self, signature: &Signature, attempt: &Attempt) -> Vec<Result<(), String>> {
        let rows = std::iter::once((&attempt.batch, attempt.row)).chain(attempt.others.iter().map(|other| (&other.batch, other.row)));
        rows.map(|(batch, row)| self.check_row(signature, batch, row)).collect()
    }

    fn check_row(&mut self, signature: &Signature, batch: &Arc<Batch>, row: usize) -> Result<(), String> {
        // SAFETY: the batch was checked when it was taken, against the types of this schema.
        let check = |rows: Range<usize>| unsafe { check_rows(batch.array(), signature.argument_schema, rows, false) };
        match &self.checked {
            Some((checked, true)) if Arc::ptr_eq(checked, batch) => Ok(()),
            Some((checked, false)) if Arc::ptr_eq(checked, batch) => check(row..row + 1),
            _ => {
                self.checked = Some((Arc::clone(batch), check(0..batch.rows()).is_ok()));
                self.check_row(signature, batch, row)
            }
        }
    }

    /// Adds an attempt with those of its rows, which can be read.
    pub fn add(&mut self, attempt: Attempt, sent: &[usize]) {
        let rows = sent.iter().map(|&i| match i.checked_sub(1).map(|i| &attempt.others[i]) {
            None => (attempt.id, attempt.attempt, &attempt.batch, attempt.row),
            Some(other) => (other.id, other.attempt, &other.batch, other.row),
        });
        let rows = rows.map(|(id, number, batch, row)| {
            match self.batches.last_mut() {
                Some((last, rows)) if Arc::ptr_eq(last, batch) && rows.end == row => rows.end += 1,
                _ => self.batches.push((Arc::clone(batch), row..row + 1)),
            }
            let place = self.batches.len() - 1;
            (id, number, place, row - self.batches[place].1.start)
        });
        let rows = rows.collect();
        self.attempts.push((attempt, rows));
    }

    pub fn write(&self, signature: &Signature, orders: &Orders, message: &mut Writer) -> io::Result<()> {
        message.byte(ATTEMPTS)?;
        write_all(&orders.cancelled, message, |token, message| message.number(token.number()))?;
        write_all(&orders.unsure, message, |token, message| message.number(token.number()))?;
        write_all(&orders.stuck, message, |stuck, message| {
            message.number(stuck.token.number())?;
            message.number(stuck.id)
        })?;
        let arguments = arguments(signature);
        write_all(&self.batches, message, |(batch, rows), message| {
            let trace = batch.context().and_then(|context| context.trace_parent.as_deref());
            message.text(trace.map_or(b"", CStr::to_bytes))?;
            let keys = batch.context().and_then(|context| context.keys.as_ref()).and_then(|keys| keys.get(rows.clone()));
            message.text(keys.unwrap_or_default().as_flattened())?;
            // SAFETY: the batch has these rows, which were checked.
            unsafe { parcel::write(batch.array(), &arguments, rows.clone(), message) }
        })?;
        write_all(&self.attempts, message, |(attempt, rows), message| {
            message.number(attempt.token.number())?;
            message.number(timer::on_system_clock(attempt.row_deadline))?;
            write_all(rows, message, |(id, number, batch, row), message| {
                [*id, u64::from(*number), *batch as u64, *row as u64].into_iter().try_for_each(|it| message.number(it))
            })
        })
    }
}

fn write_all<T>(all: &[T], message: &mut Writer, mut write: impl FnMut(&T, &mut Writer) -> io::Result<()>) -> io::Result<()> {
    message.number(all.len() as u64)?;
    all.iter().try_for_each(|one| write(one, message))
}

fn read_all<T>(message: &mut Reader, mut read: impl FnMut(&mut Reader) -> Result<T, String>) -> Result<Vec<T>, String> {
    let mut all = Vec::new();
    for _ in 0..message.number()? {
        all.push(read(message)?);
    }
    Ok(all)
}

fn read_token(message: &mut Reader) -> Result<Token, String> {
    message.number().map(Token::of_number)
}

fn arguments(signature: &Signature) -> Layout {
    Layout::Struct(signature.arguments.iter().map(|(_, layout)| layout.clone()).collect())
}

/// In the worker: what the host wants.
pub struct Wanted {
    pub wishes: Wishes,
    /// The attempts that it asks for.
    pub asked: Vec<Token>,
    /// Those for whose arguments there is no memory.
    pub unread: Vec<(Token, Ended)>,
}

impl Wanted {
    /// Follows [`ATTEMPTS`].
    pub fn read(signature: &'static Signature, message: &mut Reader) -> Result<Wanted, String> {
        let cancelled = read_all(message, read_token)?;
        let asked = read_all(message, read_token)?;
        let stuck = read_all(message, |message| Ok(Stuck { token: read_token(message)?, id: message.number()? }))?;
        let arguments = arguments(signature);
        let batches = read_all(message, |message| read_batch(signature, &arguments, message))?;
        let (mut calls, mut unread) = (Vec::new(), Vec::new());
        for _ in 0..message.number()? {
            let (token, row_deadline) = (read_token(message)?, message.number()?);
            let rows = read_all(message, |message| {
                let (id, attempt, batch, row) = (message.number()?, message.number()? as u16, message.size()?, message.size()?);
                let batch = batches.get(batch).ok_or("a row of no batch")?;
                Ok(batch.as_ref().map(|batch| FurtherRow { id, attempt, batch: Arc::clone(batch), row }))
            })?;
            match rows.into_iter().collect::<Result<Vec<_>, &String>>() {
                Ok(mut rows) => {
                    if rows.is_empty() || rows.iter().any(|row| row.row >= row.batch.rows()) {
                        return Err("an attempt without rows".into());
                    }
                    let others = rows.split_off(1).into();
                    let FurtherRow { id, attempt, batch, row } = rows.remove(0);
                    calls.push(Attempt { token, id, attempt, deadline: row_deadline, row_deadline, batch, row, others });
                }
                Err(text) => unread.push((token, Ended::Whole(Outcome::Error(text.as_str().into())))),
            }
        }
        Ok(Wanted { wishes: Wishes { cancelled, stuck, calls }, asked, unread })
    }
}

/// The outer error: the message is broken. The inner one: there is no memory for a copy.
fn read_batch(signature: &'static Signature, arguments: &Layout, message: &mut Reader) -> Result<Result<Arc<Batch>, String>, String> {
    let (trace, keys) = (message.text()?, message.text()?);
    let mut after = message.clone();
    let copied = parcel::read(arguments, Take::Copy, message);
    let mut array = match copied {
        Ok(array) => array,
        Err(why) => {
            drop(Owned(parcel::read(arguments, Take::View, &mut after)?)); // what follows it can be read
            *message = after;
            return Ok(Err(format!("no memory in its worker process for the arguments: {why}")));
        }
    };
    // SAFETY: what was read has the buffers and children of its layout, and the host has checked what is in them.
    let mut batch = unsafe { ArgumentArray::take(&mut array, &signature.arguments, signature.retired) }?;
    if !trace.is_empty() || !keys.is_empty() {
        let trace_parent = (!trace.is_empty()).then(|| CString::new(trace)).transpose().map_err(|error| error.to_string())?;
        let keys = (!keys.is_empty()).then(|| keys.chunks_exact(KEY).filter_map(|key| key.try_into().ok()).collect());
        batch.set_context(Some(Arc::new(BatchContext { deadline: None, trace_parent, keys, constants: 0 })));
    }
    Ok(Ok(Batch::of(batch, &signature.arguments)))
}

/// The text of a row whose call the worker has ended because the plugin was closed.
pub const LEFT: &str = "the plugin was closed during this call";

/// An attempt that the worker has.
pub struct Running {
    /// How its rows ended; None: not yet.
    pub ended: Vec<Option<Outcome<Value>>>,
    /// Those of them that were sent.
    pub sent: Vec<usize>,
    pub is_cancelled: bool,
    /// Out of the cap (R8).
    pub is_stuck: bool,
}

impl Running {
    /// With how it ended in the worker. An error: that makes no sense.
    pub fn end(mut self, seat: &Seat, token: Token, ended: Ended) -> Result<(), String> {
        let outcomes = match ended {
            Ended::Whole(outcome @ (Outcome::Error(_) | Outcome::Cancelled)) if self.sent.len() > 1 => {
                _ = seat.end(token, self.asked_for(outcome)); // the machine splits it
                return Ok(());
            }
            Ended::Whole(outcome) => vec![outcome],
            Ended::Rows(outcomes) => outcomes,
        };
        if outcomes.len() != self.sent.len() {
            return Err(format!("{} outcomes for {} rows", outcomes.len(), self.sent.len()));
        }
        for (row, outcome) in std::mem::take(&mut self.sent).into_iter().zip(outcomes) {
            self.ended[row] = Some(self.asked_for(outcome));
        }
        self.report(seat, token);
        Ok(())
    }

    /// Calls that the worker has cancelled by itself are errors.
    fn asked_for(&self, outcome: Outcome<Value>) -> Outcome<Value> {
        match outcome {
            Outcome::Cancelled if !self.is_cancelled => Outcome::Error(LEFT.into()),
            outcome => outcome,
        }
    }

    /// The rows that have not ended are errors.
    pub fn fail(mut self, seat: &Seat, token: Token, text: &str) {
        self.ended.iter_mut().for_each(|row| _ = row.get_or_insert_with(|| Outcome::Error(text.into())));
        self.report(seat, token);
    }

    /// Reports an attempt whose rows have all ended.
    pub fn report(self, seat: &Seat, token: Token) {
        let mut outcomes = self.ended.into_iter().flatten();
        match (outcomes.next(), outcomes.next()) {
            (Some(only), None) => drop(seat.end(token, only)),
            (first, second) => seat.end_rows(token, first.into_iter().chain(second).chain(outcomes)),
        }
    }
}

/// What a worker says of its attempts.
#[derive(Default)]
pub struct Said {
    pub counts: Counts,
    /// Why its runtime has failed by itself; empty: it has not.
    pub poison: String,
    /// Lines for the host's log.
    pub lines: Vec<Vec<u8>>,
    pub ended: Vec<(Token, Ended)>,
    /// When calls began, on the system's clock; `u64::MAX`: not yet.
    pub begun: Vec<(Token, u64)>,
}

impl Said {
    pub fn write(&self, message: &mut Writer) -> io::Result<()> {
        message.byte(SAID)?;
        self.counts.write(message)?;
        message.text(self.poison.as_bytes())?;
        write_all(&self.lines, message, |line, message| message.text(line))?;
        write_all(&self.ended, message, |(token, ended), message| {
            message.number(token.number())?;
            message.byte(u8::from(matches!(ended, Ended::Whole(_))))?;
            write_all(ended.outcomes(), message, write_outcome)
        })?;
        write_all(&self.begun, message, |(token, at), message| {
            message.number(token.number())?;
            message.number(*at)
        })
    }

    /// On the host's side. Follows [`SAID`].
    pub fn read(signature: &Signature, message: &mut Reader) -> Result<Said, String> {
        Ok(Said {
            counts: Counts::read(message)?,
            poison: String::from_utf8_lossy(&message.text()?).into_owned(),
            lines: read_all(message, |message| message.text().map(Vec::from))?,
            ended: read_all(message, |message| {
                let (token, is_whole) = (read_token(message)?, message.byte()? != 0);
                let mut outcomes = read_all(message, |message| read_outcome(signature, message))?;
                match (is_whole, outcomes.len()) {
                    (false, _) => Ok((token, Ended::Rows(outcomes))),
                    (true, 1) => Ok((token, Ended::Whole(outcomes.remove(0)))),
                    (true, count) => Err(format!("{count} outcomes of a whole call")),
                }
            })?,
            begun: read_all(message, |message| Ok((read_token(message)?, message.number()?)))?,
        })
    }
}

fn write_outcome(outcome: &Outcome<Value>, message: &mut Writer) -> io::Result<()> {
    match outcome {
        Outcome::Value(value) => {
            message.byte(abi::VALUE)?;
            record::write(Ok(value), message)
        }
        Outcome::Error(text) => {
            message.byte(abi::ERROR)?;
            record::write_error(text, message)
        }
        Outcome::TimedOut(_) | Outcome::Cancelled => message.byte(abi::CANCELLED),
    }
}

fn read_outcome(signature: &Signature, message: &mut Reader) -> Result<Outcome<Value>, String> {
    if message.byte()? == abi::CANCELLED {
        return Ok(Outcome::Cancelled);
    }
    let record = record::read(&signature.returns, message)?;
    let value = record.and_then(|value| fits(&signature.returns, &value).map(|()| value));
    Ok(value.map_or_else(|text| Outcome::Error(text.into()), Outcome::Value))
}

/// How the Context was closed: "plugin.f: close failed: text" is what the worker's runtime says.
pub fn closed(signature: &Signature, status: abi::Status, text: &str) -> Result<(), String> {
    match status {
        abi::OK | abi::STUCK => Ok(()),
        _ => Err(text.strip_prefix(&format!("{}: close failed: ", signature.name)).unwrap_or(text).to_string()),
    }
}
