//! The messages in the lane of a started function, on the host's side: attempts go out, and how they ended comes back.
//!
//! Guarantees: an outcome fits the type of the function's results, whatever the worker has written.

use super::mailbox::{Reader, Writer};
use super::message::{Counts, ATTEMPTS, LOG, OUTCOMES};
use super::record;
use crate::abi;
use crate::arrow::Batch;
use crate::machine::Outcome;
use crate::runtime::{Attempt, Seat};
use crate::signature::Signature;
use crate::timer;
use crate::value::Value;
use std::io;

/// The id of a row, the number of its attempt, the values of its arguments.
pub type Row = (u64, u16, Vec<Value>);

/// The rows of an attempt. An error is the text of the row's.
pub fn rows(signature: &Signature, attempt: &Attempt) -> Vec<Result<Row, String>> {
    let read = |id: u64, number: u16, batch: &Batch, row: usize| {
        let arguments = batch.columns().iter().zip(&signature.arguments);
        let values = arguments.map(|(column, (name, layout))| column.value(layout, row).map_err(|text| format!("argument {name}: {text}")));
        values.collect::<Result<Vec<Value>, String>>().map(|values| (id, number, values))
    };
    let first = read(attempt.id, attempt.attempt, &attempt.batch, attempt.row);
    let others = attempt.others.iter().map(|other| read(other.id, other.attempt, &other.batch, other.row));
    std::iter::once(first).chain(others).collect()
}

pub fn write(untold: &[u64], stuck: &[(u64, u64)], attempts: &[(u64, Attempt, Vec<Row>)], message: &mut Writer) -> io::Result<()> {
    message.byte(ATTEMPTS)?;
    message.number(untold.len() as u64)?;
    untold.iter().try_for_each(|&key| message.number(key))?;
    message.number(stuck.len() as u64)?;
    for (key, row) in stuck {
        message.number(*key)?;
        message.number(*row)?;
    }
    message.number(attempts.len() as u64)?;
    for (key, attempt, rows) in attempts {
        message.number(*key)?;
        message.number(timer::on_system_clock(attempt.deadline))?;
        let trace = attempt.batch.context().and_then(|context| context.trace_parent.as_deref());
        message.text(trace.map_or(b"", std::ffi::CStr::to_bytes))?;
        message.number(rows.len() as u64)?;
        for (id, number, arguments) in rows {
            message.number(*id)?;
            message.number((*number).into())?;
            arguments.iter().try_for_each(|value| record::write(Ok(value), message))?;
        }
    }
    Ok(())
}

/// Reads a message of the worker: how attempts ended, by key.
pub fn read(signature: &Signature, message: &mut Reader, seat: &Seat, counted: &mut Counts) -> Result<Vec<(u64, Outcome<Value>)>, String> {
    let mut ended = Vec::new();
    let kind = message.byte()?;
    if let OUTCOMES | LOG = kind {
        count(seat, Counts::read(message)?, counted);
    }
    match kind {
        OUTCOMES => {
            for _ in 0..message.number()? {
                let (key, outcome) = (message.number()?, message.byte()?);
                let record = record::read(&signature.returns, message)?;
                let outcome = match (outcome, record) {
                    (abi::CANCELLED, _) => Outcome::Cancelled,
                    (_, Ok(value)) => match crate::results::fits(&signature.returns, &value) {
                        Ok(()) => Outcome::Value(value),
                        Err(text) => Outcome::Error(text.into()),
                    },
                    (_, Err(text)) => Outcome::Error(text.into()),
                };
                ended.push((key, outcome));
            }
        }
        LOG => write_log(seat, message)?,
        other => return Err(format!("the worker process wrote a message of kind {other}")),
    }
    Ok(ended)
}

/// Counts what the worker has counted since it has said so last.
pub fn count(seat: &Seat, counts: Counts, counted: &mut Counts) {
    let before = std::mem::replace(counted, counts);
    let new = |now: u64, before: u64| now.saturating_sub(before).min(1 << 16);
    seat.count_left_behind(new(counts.left_behind, before.left_behind));
    (0..new(counts.blocked, before.blocked)).for_each(|_| seat.count_blocked());
    (0..new(counts.discarded, before.discarded)).for_each(|_| seat.count_discarded());
}

/// Writes what the worker's runtime would have written.
pub fn write_log(seat: &Seat, message: &mut Reader) -> Result<(), String> {
    for _ in 0..message.number()? {
        seat.log().warn(&String::from_utf8_lossy(&message.text()?));
    }
    Ok(())
}

/// How the Context was closed: "plugin.f: close failed: text" is what the worker's runtime says.
pub fn closed(signature: &Signature, status: abi::Status, text: &str) -> Result<(), String> {
    match status {
        abi::OK | abi::STUCK => Ok(()),
        _ => Err(text.strip_prefix(&format!("{}: close failed: ", signature.name)).unwrap_or(text).to_string()),
    }
}
