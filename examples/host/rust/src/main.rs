//! An engine in Rust, as small as it gets: opens a plugin, prints its functions, and calls one with five example rows, the
//! third with nulls.
//!
//!     cargo run -- PLUGIN.so [FUNCTION [subinterpreter|process]]
//!
//! With a mode, in two workers. It prints integers, floats and texts; an engine would have all types of Arrow.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use arroyo_udf_host::arrow_array::cast::AsArray;
use arroyo_udf_host::arrow_array::types::{Float64Type, Int64Type};
use arroyo_udf_host::arrow_array::{Array, ArrayRef, Float64Array, Int64Array, StringArray};
use arroyo_udf_host::arrow_schema::ffi::FFI_ArrowSchema;
use arroyo_udf_host::arrow_schema::{DataType, Field};
use arroyo_udf_host::{Batch, Condition, Drained, Function, FunctionKind, Isolation, Options, Outcome, Plugin, Rows, Runtime};
use arroyo_udf_host::{Sent, StopMode, Stopped, Worker};

const ROWS: usize = 5;
const PATIENCE: Duration = Duration::from_secs(10);

type Done<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> Done {
    match *arguments {
        [path] => describe(&Plugin::open(path)?),
        [path, function] => call(&Plugin::open(path)?.function(function)?),
        [path, function, mode] => {
            let worker = match mode {
                "process" => Worker::Process { memory_limit: None, cpu_limit: None },
                _ => Worker::Subinterpreter,
            };
            call(&Plugin::open(path)?.isolated(&Isolation { worker, workers: 2 })?.function(function)?)
        }
        _ => Err("usage: host PLUGIN.so [FUNCTION [subinterpreter|process]]".into()),
    }
}

fn describe(plugin: &Plugin) -> Done {
    println!("plugin {} ({})", plugin.name(), plugin.language());
    for function in plugin.functions() {
        let kind = match function.kind() {
            FunctionKind::Sync => "sync",
            FunctionKind::Async => "async",
            FunctionKind::Unknown(_) => {
                println!("unknown {}", function.name());
                continue;
            }
        };
        let arguments = function.arguments()?.iter().map(|field| Ok(format!("{}: {}", field.name(), format_of(field)?)));
        println!("{kind} {}({}) -> {}", function.name(), arguments.collect::<Done<Vec<_>>>()?.join(", "), format_of(function.returns()?)?);
    }
    Ok(())
}

/// The type's format in the C Data Interface, as the other example hosts print it.
fn format_of(field: &Field) -> Done<String> {
    let nullable = if field.is_nullable() { "?" } else { "" };
    Ok(format!("{}{nullable}", FFI_ArrowSchema::try_from(field.data_type())?.format()))
}

fn call(function: &Function) -> Done {
    let batch = example_rows(function)?;
    if function.kind() == FunctionKind::Sync {
        return print(&function.run(batch)?.into_rows()?);
    }
    let runtime = function.start(&Options::default())?;
    let sent = send(&runtime, batch);
    // Lets running rows end; the remaining results come out until the end.
    if runtime.stop(StopMode::Drain, PATIENCE)? == Stopped::Stuck {
        eprintln!("some call ignored its cancellation");
    }
    sent?;
    drain(&runtime)?;
    runtime.release()?;
    Ok(())
}

fn send(runtime: &Runtime, batch: Batch) -> Done {
    match runtime.send(1, batch)? {
        Sent::Accepted => {}
        Sent::Full(_) => return Err("there is no room; an engine would wait for some".into()),
    }
    runtime.wait(Condition::Results, PATIENCE)?;
    drain(runtime)
}

/// Prints the rows that have ended.
fn drain(runtime: &Runtime) -> Done {
    while let Drained::Rows(results) = runtime.drain(0)? {
        print(&results.into_rows()?)?;
    }
    Ok(())
}

/// Arguments of the types that the function states.
fn example_rows(function: &Function) -> Done<Batch> {
    let texts = ["N14228", "N24211", "", "N3ALAA", "n535ua"];
    let columns = function.arguments()?.iter().enumerate().map(|(argument, field)| -> Done<ArrayRef> {
        let present = (0..ROWS).map(|row| (row != 2).then_some(row));
        Ok(match field.data_type() {
            DataType::Int64 => {
                let value = |row: usize| 1000 + 100 * row as i64 - 10 * argument as i64;
                Arc::new(present.map(|row| row.map(value)).collect::<Int64Array>())
            }
            DataType::Float64 => Arc::new(present.map(|row| row.map(|row| 0.5 * row as f64)).collect::<Float64Array>()),
            DataType::Utf8 => Arc::new(present.map(|row| row.map(|row| texts[row])).collect::<StringArray>()),
            other => return Err(format!("argument {}: this host cannot make values of type {other}", field.name()).into()),
        })
    });
    Ok(function.batch_of(&columns.collect::<Done<Vec<_>>>()?, ROWS)?)
}

fn print(rows: &Rows) -> Done {
    for row in 0..rows.len() {
        let id = rows.ids().map_or(String::new(), |ids| format!("id={} ", ids.value(row)));
        let outcome = match rows.outcome(row) {
            Outcome::Value => 0,
            Outcome::Error => 1,
            Outcome::TimedOut => 2,
            Outcome::Cancelled => 3,
        };
        let error = rows.error(row).map_or("null".into(), |text| format!("{text:?}"));
        println!("{id}value={} outcome={outcome} error={error}", value(rows.values(), row));
    }
    Ok(())
}

fn value(values: &ArrayRef, row: usize) -> String {
    if values.is_null(row) {
        return "null".into();
    }
    match values.data_type() {
        DataType::Int64 => values.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Float64 => format!("{:?}", values.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => format!("{:?}", values.as_string::<i32>().value(row)),
        other => format!("(a value of type {other})"),
    }
}
