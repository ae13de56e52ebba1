//! Rows that have ended -> the struct array {id, value, outcome, attempts, error} of `drain_results`, and that of `run`.
//!
//! Guarantees: no offset wraps ([`crate::arrow::Offsets`]): a value without room is its row's error, and texts are cut to fit.
//! `fits` bounds each value and DRAIN_BYTES a drain, so that it does not depend on its neighbours whether a value has room.

use crate::arrow::{build_with_room, narrow, ArrayData, Buffer, Layout, NoRoom, Offset, Offsets, Validity};
use crate::machine::{Finished, Limit, Outcome, Settings};
use crate::value::Value;
use arroyo_udf_abi::{ArrowArray, CANCELLED, ERROR, TIMED_OUT, VALUE};

/// A drain ends when it holds this many bytes of values: 32-bit offsets reach 2 GiB.
pub const DRAIN_BYTES: usize = 1 << 30;

/// The most bytes of a row's value with 32-bit offsets: a drain may already hold almost [`DRAIN_BYTES`] before it.
const ROW_BYTES: usize = i32::MAX as usize - DRAIN_BYTES;

/// The longest text of a row's error, in bytes; shorter if the texts of a batch would otherwise exceed 32-bit offsets.
const ERROR_BYTES: usize = 1 << 16;

/// Whether a drain can hand a value out. The error is a text for the row (F4).
pub fn fits(layout: &Layout, value: &Value) -> Result<(), String> {
    if narrow(layout, value) <= ROW_BYTES {
        return Ok(());
    }
    Err("the result has more than 1 GiB; return a type with 64-bit offsets, such as large_utf8 or large_binary".into())
}

/// Cuts a text of more than `most` bytes, between two characters.
pub fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        let end = (0..=most.saturating_sub(3)).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        text.truncate(end);
        text.push_str(&"..."[..most.min(3)]);
    }
    text
}

/// The text of a row's error, short enough to be kept for each row of a batch.
pub fn error_text(text: String) -> String {
    cut(text, ERROR_BYTES)
}

/// The struct array of a drain. `name` and `settings` go into the texts of rows that timed out or were cancelled.
pub fn export(layout: &Layout, finished: &[Finished<Value>], name: &str, settings: &Settings) -> ArrowArray {
    let ids: Vec<u64> = finished.iter().map(|f| f.id).collect();
    let attempts: Vec<u16> = finished.iter().map(|f| f.attempts).collect();
    let values = finished.iter().map(|f| if let Outcome::Value(value) = &f.outcome { value } else { &Value::Null });
    let (values, without_room) = build_with_room(layout, values);
    let mut codes: Vec<u8> = finished
        .iter()
        .map(|f| match f.outcome {
            Outcome::Value(_) => VALUE,
            Outcome::Error(_) => ERROR,
            Outcome::TimedOut(_) => TIMED_OUT,
            Outcome::Cancelled => CANCELLED,
        })
        .collect();
    without_room.iter().for_each(|&row| codes[row] = ERROR);
    let errors = if codes.iter().all(|&code| code == VALUE) {
        no_texts(finished.len())
    } else {
        texts(finished.len(), |i| match without_room.binary_search(&i) {
            Ok(_) => Some(row_text(name, finished[i].id, &NoRoom.to_string())),
            Err(_) => failure_text(&finished[i], name, settings),
        })
    };
    let plain = |buffer: Buffer| plain(finished.len(), buffer).export();
    structure(finished.len(), vec![plain(ids.into()), values.export(), plain(codes.into()), plain(attempts.into()), errors.export()])
}

/// Why a row has no value, in the one form of all languages: "plugin.function, row 7: text" (F4). None: it has one. `name`
/// and `settings` as for `export`.
pub fn failure_text(row: &Finished<Value>, name: &str, settings: &Settings) -> Option<String> {
    match &row.outcome {
        Outcome::Value(_) => None,
        Outcome::Error(text) => Some(row_text(name, row.id, text)),
        Outcome::TimedOut(limit) => {
            let seconds = |limit: Option<u64>| limit.map_or(0.0, |ns| ns as f64 / 1e9);
            let reached = match limit {
                Limit::Timeout => format!("timeout {} s", seconds(settings.timeout)),
                Limit::Deadline => format!("row deadline {} s", seconds(settings.deadline)),
                Limit::BatchDeadline => "deadline of its batch".to_string(),
            };
            let when = match (limit, row.attempts) {
                (Limit::Timeout, 0) => "in the call of a row with equal arguments".to_string(),
                (_, 0) => "before its first attempt".to_string(),
                (_, attempt) => format!("in attempt {attempt}"),
            };
            Some(row_text(name, row.id, &format!("timed out ({reached}) {when}")))
        }
        Outcome::Cancelled => Some(row_text(name, row.id, "cancelled")),
    }
}

fn row_text(name: &str, row: u64, text: &str) -> String {
    format!("{name}, row {row}: {text}")
}

/// A struct array without nulls of its own.
pub(crate) fn structure(length: usize, children: Vec<ArrowArray>) -> ArrowArray {
    ArrayData { length, null_count: 0, buffers: vec![Buffer::none()], children }.export()
}

/// A column of numbers without nulls.
fn plain(length: usize, values: Buffer) -> ArrayData {
    ArrayData { length, null_count: 0, buffers: vec![Buffer::none(), values], children: vec![] }
}

/// A utf8 column; `text` makes one text at a time, None is null. They are cut so that 32-bit offsets suffice.
fn texts(length: usize, text: impl Fn(usize) -> Option<String>) -> ArrayData {
    let mut validity = Validity::with_capacity(length);
    let mut offsets = Offsets::<i32>::with_capacity(length);
    let mut data = Vec::new();
    let most = ERROR_BYTES.min(i32::most() / length.max(1));
    for i in 0..length {
        let text = text(i).map(|text| cut(text, most)).filter(|text| offsets.push(text.len()).is_ok());
        validity.push(text.is_some());
        match text {
            Some(text) => data.extend_from_slice(text.as_bytes()),
            None => offsets.skip(1),
        }
    }
    let null_count = validity.nulls();
    ArrayData { length, null_count, buffers: vec![validity.into_buffer(), offsets.into(), data.into()], children: vec![] }
}

/// A utf8 column of nulls.
fn no_texts(length: usize) -> ArrayData {
    let validity = vec![0u64; length.div_ceil(64)];
    let offsets = vec![0i32; length + 1];
    ArrayData { length, null_count: length, buffers: vec![validity.into(), offsets.into(), Vec::<u8>::new().into()], children: vec![] }
}

/// The results of `run`: {value} if every row is a value, else {value, outcome, error} (R3a). `failed` has the texts of rows
/// that ended as errors, in rising order; they go out in the form of [`failure_text`]. The flag: whether outcome and error
/// are included.
pub fn ran(name: &str, values: ArrowArray, failed: &[(usize, String)]) -> (ArrowArray, bool) {
    ran_with_late(name, values, failed, &[])
}

/// As [`ran`]. `late`: those of the rows that failed because they timed out.
pub fn ran_with_late(name: &str, values: ArrowArray, failed: &[(usize, String)], late: &[usize]) -> (ArrowArray, bool) {
    let length = values.length as usize;
    if failed.is_empty() {
        return (structure(length, vec![values]), false);
    }
    let mut codes = vec![VALUE; length];
    failed.iter().for_each(|(row, _)| codes[*row] = ERROR);
    late.iter().for_each(|row| codes[*row] = TIMED_OUT);
    let errors = texts(length, |row| failed.binary_search_by_key(&row, |(r, _)| *r).ok().map(|i| row_text(name, row as u64, &failed[i].1)));
    (structure(length, vec![values, plain(length, codes.into()).export(), errors.export()]), true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrow::{limit, Column};
    use crate::machine::Weigh;
    use proptest::prelude::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("four".into(), 4), "four");
        assert_eq!(cut("fives".into(), 4), "f...");
        assert_eq!(cut("\u{20ac}\u{20ac}".into(), 5), "...");
        assert_eq!(cut("\u{20ac}\u{20ac}\u{20ac}".into(), 8), "\u{20ac}...");
        assert_eq!(cut("fives".into(), 2), "..");
        assert_eq!(cut("fives".into(), 0), "");
    }

    #[test]
    fn values_that_would_exceed_32_bit_offsets_do_not_fit() {
        let most = Value::Bytes(vec![0; ROW_BYTES].into());
        let more = Value::Bytes(vec![0; ROW_BYTES + 1].into());
        assert_eq!(fits(&Layout::Bytes, &most), Ok(()));
        assert!(fits(&Layout::Bytes, &more).is_err());
        assert!(fits(&Layout::Text, &more).is_err());
        assert_eq!(fits(&Layout::LargeBytes, &more), Ok(()));
        assert!(fits(&Layout::Struct(vec![Layout::Bool, Layout::Bytes]), &Value::Nested([Value::Null, more].into())).is_err());
        assert!(fits(&Layout::List(Box::new(Layout::Bytes)), &Value::Nested([most].into())).is_err());
    }

    /// A value, and a layout that it fits.
    fn typed() -> impl Strategy<Value = (Layout, Value)> {
        let bytes = || {
            let value = |(bytes, shared): (Vec<u8>, bool)| if shared { Value::Shared(bytes.into()) } else { Value::Bytes(bytes.into()) };
            (prop::collection::vec(any::<u8>(), 0..9), any::<bool>()).prop_map(value)
        };
        let leaf = prop_oneof![
            Just((Layout::Text, Value::Null)),
            Just((Layout::Bool, Value::Fixed(1))),
            bytes().prop_map(|value| (Layout::Bytes, value)),
            bytes().prop_map(|value| (Layout::LargeText, value)),
        ];
        leaf.prop_recursive(4, 64, 4, |inner| {
            let items = |value: Value, count: usize| Value::Nested(vec![value; count].into());
            prop_oneof![
                (inner.clone(), 0..5usize).prop_map(move |((layout, value), n)| (Layout::List(layout.into()), items(value, n))),
                (inner.clone(), 0..5usize).prop_map(move |((layout, value), n)| (Layout::LargeList(layout.into()), items(value, n))),
                (inner.clone(), 0..5usize).prop_map(move |((layout, value), n)| (Layout::FixedList(n, layout.into()), items(value, n))),
                prop::collection::vec(inner, 0..4).prop_map(|fields| {
                    let (layouts, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
                    (Layout::Struct(layouts), Value::Nested(values.into()))
                }),
            ]
        })
    }

    proptest! {
        /// So a drain holds at most DRAIN_BYTES of what 32-bit offsets count, and one value more, which `fits`.
        #[test]
        fn r2_what_a_drain_counts_of_a_value_is_no_less_than_its_offsets_take((layout, value) in typed()) {
            prop_assert!(narrow(&layout, &value) as u64 <= value.bytes());
        }
    }

    fn released(mut array: ArrowArray) {
        if let Some(release) = array.release {
            // SAFETY: ours, released once.
            unsafe { release(&mut array) };
        }
    }

    #[test]
    fn r2_a_drained_value_that_32_bit_offsets_do_not_reach_is_the_error_of_its_row() {
        let settings = crate::runtime::samples::runtime(Layout::Bytes, 1).settings();
        let text = |id, bytes: &[u8]| Finished { id, attempts: 1, outcome: Outcome::Value(Value::Bytes(bytes.into())) };
        let finished = [text(1, b"abc"), text(2, b"defg"), text(3, b"h")];
        let drained = limit::during(5, || export(&Layout::Bytes, &finished, "p.f", &settings));
        // SAFETY: the drained struct has these columns.
        unsafe {
            let field = |i: usize, layout: &Layout| {
                let column = Column::new(&**drained.children.add(i), layout, "drained").unwrap();
                (0..3).map(|row| column.value(layout, row).unwrap()).collect::<Vec<_>>()
            };
            let bytes = |bytes: &[u8]| Value::Bytes(bytes.into());
            assert_eq!(field(1, &Layout::Bytes), [bytes(b"abc"), Value::Null, bytes(b"h")]);
            assert_eq!(field(2, &Layout::Fixed(1)), [VALUE, ERROR, VALUE].map(|code| Value::Fixed(code.into())));
            // The text is cut: it has a third of the same limit.
            assert_eq!(field(4, &Layout::Text), [Value::Null, bytes(b"."), Value::Null]);
        }
        released(drained);
    }

    #[test]
    fn a_value_that_rows_share_goes_out_as_any_other() {
        for layout in [Layout::Text, Layout::LargeBytes, Layout::Fixed(20)] {
            let value = Value::Bytes([b'x'; 20].into());
            let both = [value.clone(), value.clone().shared()];
            assert_eq!(both[0].bytes(), both[1].bytes());
            let array = build_with_room(&layout, both.iter()).0.export();
            // SAFETY: an array of that layout, which lives as long as the column.
            let column = unsafe { Column::new(&array, &layout, "values") }.unwrap();
            assert_eq!([0, 1].map(|row| column.value(&layout, row).unwrap()), [value.clone(), value]);
            drop(column);
            released(array);
        }
    }

    #[test]
    fn r3a_the_texts_of_a_batch_stay_within_32_bit_offsets_however_many_rows_fail() {
        for most in [0, 2, 7, 40] {
            let failed: Vec<_> = (0..8).map(|row| (row, "wrong".repeat(9))).collect();
            let none = build_with_room(&Layout::Bool, std::iter::repeat_n(&Value::Null, 8)).0.export();
            let (results, _) = limit::during(most, || ran("p.f", none, &failed));
            // SAFETY: results with outcomes have three columns.
            let column = unsafe { Column::new(&**results.children.add(2), &Layout::Text, "errors") }.unwrap();
            let texts = (0..8).map(|row| column.bytes(row).unwrap().len());
            assert_eq!(texts.sum::<usize>(), most / 8 * 8);
            drop(column);
            released(results);
        }
    }

    #[test]
    fn f4_the_text_of_a_row_begins_with_function_and_row() {
        let none = crate::runtime::samples::runtime(Layout::Bool, 1).settings();
        for (outcome, text) in [
            (Outcome::Value(Value::Null), None),
            (Outcome::Error("wrong".into()), Some("p.f, row 7: wrong")),
            (Outcome::Cancelled, Some("p.f, row 7: cancelled")),
        ] {
            assert_eq!(failure_text(&Finished { id: 7, attempts: 1, outcome }, "p.f", &none).as_deref(), text);
        }
    }

    #[test]
    fn r6_the_text_of_a_row_that_timed_out_names_the_limit_that_ended_it() {
        let none = crate::runtime::samples::runtime(Layout::Bool, 1).settings();
        let settings = Settings { timeout: Some(1_000_000_000), deadline: Some(2_500_000_000), ..none };
        for (limit, attempts, text) in [
            (Limit::Timeout, 3, "(timeout 1 s) in attempt 3"),
            (Limit::Deadline, 1, "(row deadline 2.5 s) in attempt 1"),
            (Limit::BatchDeadline, 0, "(deadline of its batch) before its first attempt"),
        ] {
            let row = Finished { id: 7, attempts, outcome: Outcome::TimedOut(limit) };
            assert_eq!(failure_text(&row, "p.f", &settings), Some(format!("p.f, row 7: timed out {text}")));
        }
    }
}
