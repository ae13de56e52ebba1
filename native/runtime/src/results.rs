//! Rows that ended -> the struct array {id, value, outcome, attempts, error} that `drain_results` hands out.

use crate::arrow::{build, ArrayData, Buffer, Layout, Validity};
use crate::machine::{Finished, Outcome, Settings};
use crate::value::Value;
use arroyo_udf_abi::{ArrowArray, CANCELLED, ERROR, TIMED_OUT, VALUE};

/// A drain ends when it holds so many bytes of values: 32-bit offsets reach to 2 GiB.
pub const DRAIN_BYTES: usize = 1 << 30;

/// Bytes that a finished row adds to variable-length buffers.
pub fn size(finished: &Finished<Value>) -> usize {
    fn of(value: &Value) -> usize {
        match value {
            Value::Bytes(bytes) => bytes.len(),
            Value::Nested(items) => items.iter().map(|item| of(item) + 8).sum(),
            Value::Null | Value::Fixed(_) | Value::Wide(_) => 0,
        }
    }
    match &finished.outcome {
        Outcome::Value(value) => of(value),
        Outcome::Error(text) => text.len(),
        Outcome::TimedOut | Outcome::Cancelled => 100,
    }
}

/// The struct array. `name` and the limits are for the texts of rows that did not end by themselves.
pub fn export(layout: &Layout, finished: &[Finished<Value>], name: &str, settings: &Settings) -> ArrowArray {
    let ids: Vec<u64> = finished.iter().map(|f| f.id).collect();
    let attempts: Vec<u16> = finished.iter().map(|f| f.attempts).collect();
    let values = build(layout, finished.iter().map(|f| if let Outcome::Value(value) = &f.outcome { value } else { &Value::Null }));
    let codes: Vec<u8> = finished
        .iter()
        .map(|f| match f.outcome {
            Outcome::Value(_) => VALUE,
            Outcome::Error(_) => ERROR,
            Outcome::TimedOut => TIMED_OUT,
            Outcome::Cancelled => CANCELLED,
        })
        .collect();
    let errors = texts(finished.len(), |i| {
        let f = &finished[i];
        match &f.outcome {
            Outcome::Value(_) => None,
            Outcome::Error(text) => Some(text.to_string()),
            Outcome::TimedOut => {
                let seconds = |limit: Option<u64>| limit.map(|ns| ns as f64 / 1e9);
                let limits = match (seconds(settings.timeout), seconds(settings.deadline)) {
                    (Some(timeout), None) => format!("timeout {timeout} s"),
                    (None, Some(deadline)) => format!("row deadline {deadline} s"),
                    (timeout, deadline) => format!("timeout {} s, row deadline {} s", timeout.unwrap_or(0.0), deadline.unwrap_or(0.0)),
                };
                Some(format!("{name}, row {}: timed out ({limits}) in attempt {}", f.id, f.attempts))
            }
            Outcome::Cancelled => Some(format!("{name}, row {}: cancelled", f.id)),
        }
    });
    let plain = |buffer: Buffer| plain(finished.len(), buffer).export();
    structure(finished.len(), vec![plain(ids.into()), values.export(), plain(codes.into()), plain(attempts.into()), errors.export()])
}

/// A struct array without nulls of its own.
fn structure(length: usize, children: Vec<ArrowArray>) -> ArrowArray {
    ArrayData { length, null_count: 0, buffers: vec![Buffer::none()], children }.export()
}

/// A column of numbers without nulls.
fn plain(length: usize, values: Buffer) -> ArrayData {
    ArrayData { length, null_count: 0, buffers: vec![Buffer::none(), values], children: vec![] }
}

/// A utf8 column; the texts are made one by one, None is null.
fn texts(length: usize, text: impl Fn(usize) -> Option<String>) -> ArrayData {
    let mut validity = Validity::with_capacity(length);
    let mut offsets: Vec<i32> = Vec::with_capacity(length + 1);
    let mut data = Vec::new();
    offsets.push(0);
    for i in 0..length {
        let text = text(i);
        validity.push(text.is_some());
        data.extend_from_slice(text.as_deref().unwrap_or("").as_bytes());
        offsets.push(data.len() as i32);
    }
    let null_count = validity.nulls();
    ArrayData { length, null_count, buffers: vec![validity.into_buffer(), offsets.into(), data.into()], children: vec![] }
}

/// What `run` answers: {value} when every row is a value, else {value, outcome, error} (R3a). `failed` has the texts of
/// rows that ended as errors, by rising row number. The flag says whether outcomes are there.
pub fn ran(values: ArrowArray, failed: &[(usize, String)]) -> (ArrowArray, bool) {
    let length = values.length as usize;
    if failed.is_empty() {
        return (structure(length, vec![values]), false);
    }
    let mut codes = vec![VALUE; length];
    failed.iter().for_each(|(row, _)| codes[*row] = ERROR);
    let errors = texts(length, |row| failed.binary_search_by_key(&row, |(r, _)| *r).ok().map(|i| failed[i].1.clone()));
    (structure(length, vec![values, plain(length, codes.into()).export(), errors.export()]), true)
}
