//! Sync functions marked `#[udf]`, called through the C table: types in both directions, nulls, errors, panics.

mod host;

use arroyo_udf_plugin::abi;
use arroyo_udf_plugin::sdk::types::{Date, TimestampMicrosecond, TimestampMillisecond, TimestampNanosecond, TimestampSecond};
use arroyo_udf_plugin::udf;
use arroyo_udf_plugin::value::Value;
use host::{batch, declared, descriptor, error, functions, no_error, run, run_batch, string, taken, text, value, Row, NULL, TABLE};
use proptest::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

/// For each type, a function that returns its argument, and one that also takes and returns nulls.
macro_rules! there_and_back {
    ($($plain:ident $optional:ident $type:ty;)*) => {
        $(
            #[udf]
            fn $plain(x: $type) -> $type {
                x
            }

            #[udf]
            fn $optional(x: Option<$type>) -> Option<$type> {
                x
            }
        )*
    };
}

there_and_back! {
    plain_bool optional_bool bool;
    plain_i8 optional_i8 i8;
    plain_i16 optional_i16 i16;
    plain_i32 optional_i32 i32;
    plain_i64 optional_i64 i64;
    plain_u8 optional_u8 u8;
    plain_u16 optional_u16 u16;
    plain_u32 optional_u32 u32;
    plain_u64 optional_u64 u64;
    plain_f32 optional_f32 f32;
    plain_f64 optional_f64 f64;
    plain_date optional_date Date;
    plain_second optional_second TimestampSecond;
    plain_millisecond optional_millisecond TimestampMillisecond;
    plain_microsecond optional_microsecond TimestampMicrosecond;
    plain_nanosecond optional_nanosecond TimestampNanosecond;
    plain_instant optional_instant SystemTime;
    plain_duration optional_duration Duration;
    plain_string optional_string String;
    plain_str optional_str &str;
    plain_vec optional_vec Vec<u8>;
    plain_slice optional_slice &[u8];
}

/// Name of the functions above, Arrow format, bytes of a value (0: text or bytes; bool: one byte, 0 or 1).
const TYPES: [(&str, &str, u32); 22] = [
    ("bool", "b", 1),
    ("i8", "c", 8),
    ("i16", "s", 16),
    ("i32", "i", 32),
    ("i64", "l", 64),
    ("u8", "C", 8),
    ("u16", "S", 16),
    ("u32", "I", 32),
    ("u64", "L", 64),
    ("f32", "f", 32),
    ("f64", "g", 64),
    ("date", "tdD", 32),
    ("second", "tss:", 64),
    ("millisecond", "tsm:", 64),
    ("microsecond", "tsu:", 64),
    ("nanosecond", "tsn:", 64),
    ("instant", "tsu:", 64),
    ("duration", "tDu", 63), // it has no sign
    ("string", "u", 0),
    ("str", "u", 0),
    ("vec", "z", 0),
    ("slice", "z", 0),
];

#[udf]
fn mph(distance: i64, air_time: i64) -> f64 {
    distance as f64 * 60.0 / air_time as f64
}

#[udf]
fn greeting(name: Option<&str>, r#type: Option<bool>) -> Result<Option<String>, std::fmt::Error> {
    match (name, r#type) {
        (Some("nobody"), _) => Ok(None),
        (Some(name), _) => Ok(Some(format!("hello {name}"))),
        (None, None) => Err(std::fmt::Error),
        (None, Some(_)) => Ok(Some("who?".into())),
    }
}

static CALLS: AtomicU32 = AtomicU32::new(0);

#[udf]
fn fragile(x: i64) -> i64 {
    CALLS.fetch_add(1, Ordering::Relaxed);
    assert!(x % 3 != 0, "{x} is a multiple of 3");
    x
}

#[udf]
fn fragile_text(x: i64) -> Result<String, String> {
    match x % 4 {
        0 => panic!("no"),
        1 => Err(format!("not {x}")),
        2 => Ok("ab".repeat(x as usize)),
        _ => Ok(String::new()),
    }
}

#[udf]
fn far(x: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(x as u64)
}

#[udf]
fn nothing() -> i64 {
    7
}

#[udf]
#[allow(clippy::too_many_arguments, reason = "twelve are the most")]
fn twelve(a: i8, b: i8, c: i8, d: i8, e: i8, f: i8, g: i8, h: i8, i: i8, j: i8, k: i8, l: Option<i8>) -> i64 {
    [a, b, c, d, e, f, g, h, i, j, k, l.unwrap_or(100)].iter().map(|&x| i64::from(x)).sum()
}

fn numbers(values: impl IntoIterator<Item = i64>) -> Vec<Value> {
    values.into_iter().map(|x| Value::Fixed(x as u64)).collect()
}

fn float(x: f64) -> Row {
    value(x.to_bits())
}

#[test]
fn a_function_stays_callable() {
    assert_eq!(mph(100, 60), 100.0);
    assert_eq!(plain_str("as written"), "as written");
}

#[test]
fn the_descriptor_matches_the_source() {
    let descriptor = descriptor();
    let texts = [descriptor.name, descriptor.language, descriptor.toolkit_version, descriptor.hash].map(string);
    assert_eq!(texts, ["this_test", "rust", "0.0.0", "c0ffee"]);
    let nullable = abi::ARROW_FLAG_NULLABLE;
    assert_eq!(declared("mph"), (vec![("distance", "l", 0), ("air_time", "l", 0)], ("g", 0)));
    assert_eq!(declared("greeting"), (vec![("name", "u", nullable), ("type", "b", nullable)], ("u", nullable)));
    assert_eq!(declared("nothing"), (vec![], ("l", 0)));
    for (stem, format, _) in TYPES {
        assert_eq!(declared(&format!("plain_{stem}")), (vec![("x", format, 0)], (format, 0)));
        assert_eq!(declared(&format!("optional_{stem}")), (vec![("x", format, nullable)], (format, nullable)));
    }
    assert!(functions().iter().all(|f| f.kind == abi::SYNC && f.vectorized == 0 && f.options.is_null()));
}

#[test]
fn functions_are_in_the_order_of_the_source() {
    let names: Vec<_> = functions().iter().map(|function| string(function.name)).collect();
    let after = names.iter().skip_while(|name| **name != "mph").copied().collect::<Vec<_>>();
    assert_eq!(after, ["mph", "greeting", "fragile", "fragile_text", "far", "nothing", "twelve", "explodes"]);
}

/// F3
#[test]
fn a_null_argument_that_is_no_option_gives_null() {
    let rows = run("mph", &[vec![Value::Fixed(100), Value::Null, Value::Fixed(50)], vec![Value::Fixed(60), Value::Fixed(60), Value::Null]]);
    assert_eq!(rows, [float(100.0), NULL, NULL]);
}

#[test]
fn results_are_null_or_errors_as_the_author_says() {
    let rows = run(
        "greeting",
        &[vec![text("Ada"), text("nobody"), Value::Null, Value::Null], vec![Value::Null, Value::Null, Value::Null, Value::Fixed(0)]],
    );
    let error = error("greeting", 2, &std::fmt::Error.to_string());
    assert_eq!(rows, [Row::Value(text("hello Ada")), NULL, error, Row::Value(text("who?"))]);
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("bomb");
    }
}

#[udf]
fn explodes(x: i64) -> i64 {
    if x == 1 {
        std::panic::panic_any(Bomb);
    }
    x
}

/// R2: not an error of the call.
#[test]
fn a_panic_with_a_payload_whose_drop_panics_is_an_error_of_its_row() {
    let rows = run("explodes", &[(0..3).map(Value::Fixed).collect()]);
    assert!(matches!(&rows[1], Row::Error(text) if text.starts_with("this_test.explodes, row 1: panicked at ")), "{rows:?}");
    assert_eq!((&rows[0], &rows[2]), (&value(0), &value(2)));
}

/// R2: 200 rows have boundaries of validity words, and rows that panic before, at and after them.
#[test]
fn a_panic_is_the_error_of_its_row_and_no_row_is_called_twice() {
    CALLS.store(0, Ordering::Relaxed);
    let mut column = numbers(0..200);
    column[100] = Value::Null;
    let rows = run("fragile", &[column]);
    assert_eq!(CALLS.load(Ordering::Relaxed), 199);
    for (x, row) in rows.iter().enumerate() {
        match row {
            Row::Error(error) => {
                assert_eq!(x % 3, 0);
                assert!(
                    error.starts_with(&format!("this_test.fragile, row {x}: panicked at ")) && error.contains("sync_functions.rs:"),
                    "{error}"
                );
                assert!(error.ends_with(&format!(": {x} is a multiple of 3")), "{error}");
            }
            row => assert_eq!(*row, if x == 100 { NULL } else { value(x as u64) }),
        }
    }
    assert_eq!(rows.iter().filter(|row| matches!(row, Row::Error(_))).count(), 67);
}

#[test]
fn values_of_any_length_stay_with_their_rows() {
    let rows = run("fragile_text", &[numbers(0..150)]);
    for (x, row) in rows.into_iter().enumerate() {
        match x % 4 {
            0 => assert!(matches!(row, Row::Error(text) if text.ends_with(": no")), "{x}"),
            1 => assert_eq!(row, error("fragile_text", x as u64, &format!("not {x}"))),
            2 => assert_eq!(row, Row::Value(text(&"ab".repeat(x)))),
            _ => assert_eq!(row, Row::Value(text(""))),
        }
    }
}

/// F4
#[test]
fn a_value_that_does_not_fit_is_the_error_of_its_row() {
    let rows = run("far", &[numbers([1, 10_000_000_000_000])]);
    assert_eq!(rows[0], value(1_000_000));
    assert!(
        matches!(&rows[1], Row::Error(text) if text.starts_with("this_test.far, row 1: ") && text.contains("does not fit")),
        "{rows:?}"
    );
}

/// F4
#[test]
fn text_that_is_not_utf8_is_the_error_of_its_row() {
    for function in ["plain_str", "optional_string"] {
        let rows = run(function, &[vec![text("a"), Value::Bytes([0xff].into()), text("b")]]);
        assert_eq!((&rows[0], &rows[2]), (&Row::Value(text("a")), &Row::Value(text("b"))));
        let expected = format!("this_test.{function}, row 1: argument x: the text is not UTF-8");
        assert!(matches!(&rows[1], Row::Error(text) if text.starts_with(&expected)), "{rows:?}");
    }
}

#[test]
fn twelve_arguments_and_none() {
    let mut columns: Vec<Vec<Value>> = (0..11).map(|i| numbers([i])).collect();
    columns.push(vec![Value::Null]);
    assert_eq!(run("twelve", &columns), [value(155)]);
    let mut three_rows = batch("nothing", &[], 0);
    three_rows.length = 3;
    assert_eq!(run_batch("nothing", three_rows), [value(7), value(7), value(7)]);
}

#[test]
fn zero_rows_are_zero_results() {
    for (stem, _, _) in TYPES {
        assert_eq!(run(&format!("plain_{stem}"), &[vec![]]), []);
    }
}

/// R13 and the header: after a refused call the caller still owns the arguments.
#[test]
fn a_batch_that_does_not_fit_stays_with_the_caller() {
    let mut arguments = batch("plain_i64", &[numbers([1])], 0);
    let (mut results, mut schema, mut error) = (abi::ArrowArray::empty(), std::ptr::null(), no_error());
    // SAFETY: all pointers are valid.
    let mut call =
        |function: u32| unsafe { (TABLE.run)(function, &mut arguments, std::ptr::null(), &mut results, &mut schema, &mut error) };
    assert_eq!(call(host::number("mph")), abi::INVALID_ARGUMENT);
    assert_eq!(call(9999), abi::INVALID_ARGUMENT);
    assert!(taken(&mut error).contains("no function number 9999"));
    assert!(arguments.release.is_some() && results.release.is_none() && schema.is_null());
    assert_eq!(run_batch("plain_i64", arguments), [value(1)]);
}

proptest! {
    /// F2, F3: any values and nulls, in slices with any offset.
    #[test]
    fn each_type_comes_back_as_it_went(rows in prop::collection::vec(any::<Option<(u64, String)>>(), 0..200), offset in 0usize..70) {
        for (stem, _, bits) in TYPES {
            let column: Vec<Value> = rows.iter().map(|row| match row {
                None => Value::Null,
                Some((_, string)) if bits == 0 => text(string),
                Some((number, _)) => Value::Fixed(number & (u64::MAX >> (64 - bits))),
            }).collect();
            let expected: Vec<Row> = column.iter().cloned().map(Row::Value).collect();
            for function in [format!("plain_{stem}"), format!("optional_{stem}")] {
                let found = run_batch(&function, batch(&function, std::slice::from_ref(&column), offset));
                prop_assert_eq!(&found, &expected, "{}", function);
            }
        }
    }

    /// A call through the library gives the same as a plain call.
    #[test]
    fn a_call_through_the_table_is_the_call(rows in prop::collection::vec((any::<Option<i64>>(), any::<Option<i64>>()), 0..200)) {
        let column = |x: Option<i64>| x.map_or(Value::Null, |x| Value::Fixed(x as u64));
        let (distance, air_time) = rows.iter().map(|(d, a)| (column(*d), column(*a))).unzip();
        let expected: Vec<Row> = rows.iter().map(|(d, a)| d.zip(*a).map_or(NULL, |(d, a)| float(mph(d, a)))).collect();
        prop_assert_eq!(run("mph", &[distance, air_time]), expected);
    }
}
