//! CONSTANTS in the header, and `Constant`: arguments that have one value for all rows of a batch.

mod host;

use arroyo_udf_plugin::abi;
use arroyo_udf_plugin::arrow::{build, Layout};
use arroyo_udf_plugin::sdk::types::Constant;
use arroyo_udf_plugin::udf;
use arroyo_udf_plugin::value::Value;
use host::{batch, error, functions, no_error, number, read, run, taken, text, Row, NULL, TABLE};
use std::cell::Cell;
use std::ptr::null;

thread_local! {
    static PREPARED: Cell<u32> = const { Cell::new(0) };
}

fn uppercase(word: &&str) -> Result<String, String> {
    PREPARED.set(PREPARED.get() + 1);
    match *word {
        "" => Err("an empty word".into()),
        word => Ok(word.to_uppercase()),
    }
}

/// How often `uppercase` was called by this.
fn prepared<T>(call: impl FnOnce() -> T) -> (T, u32) {
    let before = PREPARED.get();
    (call(), PREPARED.get() - before)
}

#[udf]
fn shout(text: &str, word: Constant<&str>) -> Result<String, String> {
    let word = word.try_prepared(uppercase)?;
    Ok(format!("{text} {}", *word))
}

#[udf]
fn perhaps(word: Option<Constant<String>>) -> i64 {
    word.map_or(-1, |word| word.len() as i64)
}

#[udf]
fn two_ways(word: Constant<&str>) -> Result<String, String> {
    let length = word.prepared(|word| word.len());
    Ok(format!("{} {}", *length, *word.try_prepared(uppercase)?))
}

#[udf]
fn plain(number: i64, words: Option<&str>, bytes: &[u8]) -> String {
    format!("{number} {words:?} {bytes:?}")
}

#[udf(blocking)]
fn waits(word: Constant<&str>) -> Result<String, String> {
    word.try_prepared(uppercase).map(|word| word.clone())
}

fn texts(words: &[&str]) -> Vec<Value> {
    words.iter().map(|word| text(word)).collect()
}

fn values(words: &[&str]) -> Vec<Row> {
    words.iter().map(|word| Row::Value(text(word))).collect()
}

fn constants(name: &str) -> u64 {
    functions()[number(name) as usize].constants
}

/// Calls with columns of which those with a set bit have one row; or why the plugin refuses them.
fn run_constants(name: &str, columns: &[Vec<Value>], offset: usize, bits: u64) -> Result<Vec<Row>, String> {
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
    let whole: Vec<Vec<Value>> =
        columns.iter().map(|column| if column.len() < rows { vec![Value::Null; rows] } else { column.clone() }).collect();
    let mut arguments = batch(name, &whole, offset);
    for (i, column) in columns.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1) {
        // SAFETY: a struct of our own, whose children are leaked; all constants of this test are texts or bytes.
        unsafe { **arguments.children.add(i) = build(&Layout::Bytes, column.iter()).expect("room").export() };
    }
    let context = abi::BatchContext {
        size: size_of::<abi::BatchContext>() as u64,
        deadline_ns: 0,
        trace_parent: null(),
        idempotency_keys: null(),
        constants: bits,
    };
    let (mut results, mut schema, mut error) = (abi::ArrowArray::empty(), null(), no_error());
    // SAFETY: all pointers are valid.
    let status = unsafe { (TABLE.run)(number(name), &mut arguments, &context, &mut results, &mut schema, &mut error) };
    let why = taken(&mut error);
    assert_eq!(status == abi::OK, arguments.release.is_none(), "only a call that succeeds takes its arguments");
    if status != abi::OK {
        assert_eq!(status, abi::INVALID_ARGUMENT);
        return Err(why);
    }
    // SAFETY: on OK the schema is a constant of the plugin.
    Ok(read(results, unsafe { &*schema }).into_iter().map(|(_, row)| row).collect())
}

#[test]
fn texts_and_bytes_of_sync_functions_may_be_constants() {
    let found = ["shout", "perhaps", "plain", "waits"].map(constants);
    assert_eq!(found, [0b11, 0b1, 0b110, 0]);
}

#[test]
fn a_constant_counts_for_all_rows_and_is_prepared_once() {
    let words: Vec<String> = (0..200).map(|i| format!("w{i}")).collect();
    let column: Vec<Value> = words.iter().map(|word| text(word)).collect();
    for offset in [0, 3] {
        let (rows, count) = prepared(|| run_constants("shout", &[column.clone(), texts(&["hey"])], offset, 0b10));
        assert_eq!(rows.unwrap(), words.iter().map(|word| Row::Value(text(&format!("{word} HEY")))).collect::<Vec<_>>());
        assert_eq!(count, 1);
    }
}

#[test]
fn a_column_whose_values_are_all_the_same_is_prepared_once() {
    let (rows, count) = prepared(|| run("shout", &[texts(&["a", "b", "c"]), vec![text("hey"), Value::Null, text("hey")]]));
    assert_eq!((rows, count), (vec![Row::Value(text("a HEY")), NULL, Row::Value(text("c HEY"))], 1));
}

#[test]
fn a_column_that_varies_is_prepared_for_each_row() {
    let (rows, count) = prepared(|| run("shout", &[texts(&["a"; 4]), texts(&["x", "x", "y", "x"])]));
    assert_eq!((rows, count), (values(&["a X", "a X", "a Y", "a X"]), 4));
}

#[test]
fn a_value_that_cannot_be_prepared_is_the_error_of_each_row() {
    let rows = run_constants("shout", &[texts(&["a", "b"]), texts(&[""])], 0, 0b10).unwrap();
    assert_eq!(rows, [error("shout", 0, "an empty word"), error("shout", 1, "an empty word")]);
}

#[test]
fn what_is_made_in_a_second_way_is_right_all_the_same() {
    assert_eq!(run("two_ways", &[texts(&["ab", "ab"])]), values(&["2 AB", "2 AB"]));
}

/// F3
#[test]
fn a_null_constant_is_null_in_all_rows() {
    let nulls = run_constants("shout", &[texts(&["a", "b"]), vec![Value::Null]], 0, 0b10).unwrap();
    assert_eq!(nulls, [NULL, NULL]);
    let column = vec![Value::Fixed(1), Value::Fixed(2)];
    let rows = run_constants("plain", &[column, vec![Value::Null], texts(&["x"])], 2, 0b110).unwrap();
    assert_eq!(rows, values(&["1 None [120]", "2 None [120]"]));
    assert_eq!(run("perhaps", &[vec![text("abc"), Value::Null]]), [Row::Value(Value::Fixed(3)), Row::Value(Value::Fixed(-1i64 as u64))]);
}

#[test]
fn rows_that_are_null_in_the_struct_are_null_in_a_constant_too() {
    let mut arguments = batch("shout", &[texts(&["a", "b", "c"]), texts(&["x", "x", "x"])], 0);
    let validity = [0b101u8];
    // SAFETY: buffers of our own arrays, which live as long as the test.
    unsafe {
        *arguments.buffers = validity.as_ptr().cast();
        **arguments.children.add(1) = build(&Layout::Text, texts(&["x"]).iter()).expect("room").export();
    }
    arguments.null_count = 1;
    let size = size_of::<abi::BatchContext>() as u64;
    let context = abi::BatchContext { size, deadline_ns: 0, trace_parent: null(), idempotency_keys: null(), constants: 0b10 };
    let (mut results, mut schema, mut error) = (abi::ArrowArray::empty(), null(), no_error());
    // SAFETY: all pointers are valid.
    let status = unsafe { (TABLE.run)(number("shout"), &mut arguments, &context, &mut results, &mut schema, &mut error) };
    assert_eq!((status, taken(&mut error)), (abi::OK, String::new()));
    // SAFETY: on OK the schema is a constant of the plugin.
    let rows: Vec<Row> = read(results, unsafe { &*schema }).into_iter().map(|(_, row)| row).collect();
    assert_eq!(rows, [Row::Value(text("a X")), NULL, Row::Value(text("c X"))]);
}

#[test]
fn other_constants_are_refused() {
    let one = || vec![Value::Fixed(1)];
    let refused = |columns: &[Vec<Value>], bits| run_constants("plain", columns, 0, bits).unwrap_err();
    assert_eq!(refused(&[one(), texts(&["a"]), texts(&["b"])], 0b1), "this_test.plain: constants 0b1, and it takes 0b110");
    assert_eq!(
        refused(&[one(), texts(&["a"]), texts(&["b"])], 1 << 63),
        format!("this_test.plain: constants {:#b}, and it takes 0b110", 1u64 << 63)
    );
    let two = || vec![Value::Fixed(1); 2];
    let why = "this_test.plain: argument words: a constant with 2 rows; it has 1";
    assert_eq!(refused(&[two(), texts(&["a", "b"]), texts(&["b"])], 0b110), why);
    let why = "this_test.plain: argument words: a constant with 0 rows; it has 1";
    assert_eq!(refused(&[two(), vec![], texts(&["b"])], 0b110), why);
}
