//! A host in a few lines: calls functions of this test binary through the C table, with values instead of buffers.
//! The arrays are real Arrow C Data, owned and released as the header says.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub mod started;

use arroyo_udf_plugin::abi;
use arroyo_udf_plugin::arrow::{build, child_schema, Column, Layout};
use arroyo_udf_plugin::exports;
use arroyo_udf_plugin::sdk::{Identity, Registered};
use arroyo_udf_plugin::value::Value;
use std::ffi::CStr;
use std::ptr::{null, null_mut};

pub struct ThisTest;

impl Identity for ThisTest {
    const NAME: &'static str = "this_test";
    const HASH: &'static str = "c0ffee";
    const TOOLKIT_VERSION: &'static str = "0.0.0";
    const OPTIONS: abi::Options = abi::Options::unset();
}

pub static TABLE: abi::Table = exports::table::<Registered<ThisTest>>();

/// How a row ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Row {
    Value(Value),
    Error(String),
    TimedOut,
    Cancelled,
}

pub fn text(text: &str) -> Value {
    Value::Bytes(text.as_bytes().into())
}

pub fn value(value: u64) -> Row {
    Row::Value(Value::Fixed(value))
}

pub const NULL: Row = Row::Value(Value::Null);

pub fn descriptor() -> &'static abi::Descriptor {
    // SAFETY: describe may be called at any time; its result lives as long as the process.
    unsafe { (TABLE.describe)().as_ref() }.expect("a descriptor")
}

pub fn functions() -> Vec<&'static abi::Function> {
    let descriptor = descriptor();
    // SAFETY: the descriptor has that many pointers to constants.
    let functions = unsafe { std::slice::from_raw_parts(descriptor.functions, descriptor.n_functions as usize) };
    // SAFETY: as above.
    functions.iter().map(|&function| unsafe { &*function }).collect()
}

pub fn string(pointer: *const std::ffi::c_char) -> &'static str {
    // SAFETY: texts of the descriptor are NUL-terminated constants.
    unsafe { CStr::from_ptr(pointer) }.to_str().expect("UTF-8")
}

/// A row that failed.
pub fn error(function: &str, row: u64, text: &str) -> Row {
    Row::Error(format!("this_test.{function}, row {row}: {text}"))
}

pub fn number(name: &str) -> u32 {
    functions().iter().position(|function| string(function.name) == name).expect(name) as u32
}

/// Name, format, flags.
pub type Argument = (&'static str, &'static str, i64);
/// Format, flags.
pub type Returned = (&'static str, i64);

pub fn declared(name: &str) -> (Vec<Argument>, Returned) {
    let function = functions()[number(name) as usize];
    // SAFETY: schemas of a descriptor are constants.
    let (arguments, returns) = unsafe { (&*function.arguments, &*function.returns) };
    let arguments = (0..arguments.n_children as usize).map(|i| {
        // SAFETY: as above.
        let child = unsafe { child_schema(arguments, i) }.expect("a child");
        (string(child.name), string(child.format), child.flags)
    });
    (arguments.collect(), (string(returns.format), returns.flags))
}

/// A batch with an offset: its columns begin with `offset` rows that do not count, and are null.
pub fn batch(name: &str, columns: &[Vec<Value>], offset: usize) -> abi::ArrowArray {
    let function = functions()[number(name) as usize];
    // SAFETY: schemas of a descriptor are constants.
    let layouts = match unsafe { Layout::of(&*function.arguments) }.expect("a layout") {
        Layout::Struct(layouts) => layouts,
        other => panic!("{other:?} is no struct"),
    };
    assert_eq!(layouts.len(), columns.len());
    let rows = columns.first().map_or(0, Vec::len);
    let children = columns.iter().zip(&layouts).map(|(column, layout)| {
        let padded: Vec<Value> = std::iter::repeat_n(Value::Null, offset).chain(column.iter().cloned()).collect();
        build(layout, padded.iter()).expect("room").export()
    });
    let children = children.collect();
    let rows_all: Vec<Value> = vec![Value::Nested(Box::default()); rows + offset];
    let mut array = build(&Layout::Struct(vec![]), rows_all.iter()).expect("room").export();
    adopt(&mut array, children);
    array.offset = offset as i64;
    array.length = rows as i64;
    array
}

/// Gives a struct array its children; they are leaked with their holder, which a test may do.
fn adopt(array: &mut abi::ArrowArray, children: Vec<abi::ArrowArray>) {
    let pointers: Vec<*mut abi::ArrowArray> = children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect();
    array.n_children = pointers.len() as i64;
    array.children = if pointers.is_empty() { null_mut() } else { Vec::leak(pointers).as_mut_ptr() };
}

/// The text of an error, which is then released.
pub fn taken(error: &mut abi::Error) -> String {
    if error.text.is_null() {
        return String::new();
    }
    // SAFETY: the text is NUL-terminated until release.
    let text = unsafe { CStr::from_ptr(error.text) }.to_string_lossy().into_owned();
    if let Some(release) = error.release {
        // SAFETY: called once, as the header says.
        unsafe { release(error) };
    }
    text
}

pub fn no_error() -> abi::Error {
    abi::Error::empty()
}

/// Reads a struct array of results by the names of its fields, then releases it.
pub fn read(mut results: abi::ArrowArray, schema: &abi::ArrowSchema) -> Vec<(Option<u64>, Row)> {
    // SAFETY: the schema and the array came from the plugin, together.
    let (layout, column) = unsafe {
        let layout = Layout::of(schema).expect("a layout");
        let column = Column::new(&results, &layout, "results").expect("an array of its schema");
        (layout, column)
    };
    // SAFETY: as above.
    let names = (0..schema.n_children as usize).map(|i| string(unsafe { child_schema(schema, i) }.expect("a child").name));
    let names: Vec<_> = names.collect();
    let rows = (0..results.length as usize).map(|row| {
        let Value::Nested(fields) = column.value(&layout, row).expect("a readable row") else { panic!("a struct") };
        let field = |name: &str| names.iter().position(|known| *known == name).map(|i| fields[i].clone());
        let id = field("id").map(|id| if let Value::Fixed(id) = id { id } else { panic!("an id is a number") });
        let error = || match field("error") {
            Some(Value::Bytes(text)) => String::from_utf8(text.into()).expect("UTF-8"),
            other => panic!("no text: {other:?}"),
        };
        let row = match field("outcome") {
            None | Some(Value::Fixed(0)) => Row::Value(field("value").expect("a value")),
            Some(Value::Fixed(1)) => Row::Error(error()),
            Some(Value::Fixed(2)) => Row::TimedOut,
            Some(Value::Fixed(3)) => Row::Cancelled,
            other => panic!("no outcome: {other:?}"),
        };
        (id, row)
    });
    let rows = rows.collect();
    if let Some(release) = results.release {
        // SAFETY: called once; nothing reads the array afterwards.
        unsafe { release(&mut results) };
    }
    rows
}

/// Calls a sync function.
pub fn run(name: &str, columns: &[Vec<Value>]) -> Vec<Row> {
    run_batch(name, batch(name, columns, 0))
}

pub fn run_batch(name: &str, mut arguments: abi::ArrowArray) -> Vec<Row> {
    let (mut results, mut schema, mut error) = (abi::ArrowArray::empty(), null(), no_error());
    // SAFETY: all pointers are valid.
    let status = unsafe { (TABLE.run)(number(name), &mut arguments, null(), &mut results, &mut schema, &mut error) };
    assert_eq!((status, taken(&mut error)), (abi::OK, String::new()));
    assert!(arguments.release.is_none(), "arguments have moved");
    // SAFETY: on OK the schema is a constant of the plugin.
    read(results, unsafe { &*schema }).into_iter().map(|(_, row)| row).collect()
}
