//! The header and its mirror are the same: a C program that prints every size, offset and constant of
//! `native/include/arroyo_udf.h` is compiled (with `$CC`, else `cc`) and run, and its lines are compared with what Rust
//! says. The header's own text is searched for constants and structs, so that none is forgotten here.

use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};
use std::process::Command;

use arroyo_udf_abi as abi;

const TABLE: &str = "arroyo_udf_table";

/// One line of the C program's output, as C and as Rust have it: the C expression, and Rust's value.
struct Line {
    expression: String,
    value: i128,
}

fn size_of_field<T, F>(_: fn(&T) -> &F) -> usize {
    size_of::<F>()
}

/// Size of a struct, and offset and size of each field; a field that the mirror lacks does not compile.
macro_rules! layout {
    ($lines:ident, $($c:literal = $rust:ty { $($field:ident),* $(,)? })*) => {
        $(
            $lines.push(Line { expression: format!("sizeof({})", $c), value: size_of::<$rust>() as i128 });
            $(
                let field = stringify!($field);
                $lines.push(Line {
                    expression: format!("offsetof({}, {field})", $c),
                    value: offset_of!($rust, $field) as i128,
                });
                $lines.push(Line {
                    expression: format!("sizeof((({} *)0)->{field})", $c),
                    value: size_of_field(|of: &$rust| &of.$field) as i128,
                });
            )*
        )*
    };
}

macro_rules! constants {
    ($lines:ident, $($name:ident),* $(,)?) => {
        $($lines.push(Line { expression: format!("ARROYO_UDF_{}", stringify!($name)), value: abi::$name as i128 });)*
    };
}

fn mirror() -> Vec<Line> {
    let mut lines = Vec::new();
    layout! { lines,
        "struct ArrowSchema" = abi::ArrowSchema {
            format, name, metadata, flags, n_children, children, dictionary, release, private_data,
        }
        "struct ArrowArray" = abi::ArrowArray {
            length, null_count, offset, n_buffers, n_children, buffers, children, dictionary, release, private_data,
        }
        "struct arroyo_udf_error" = abi::Error { text, release, private_data }
        "struct arroyo_udf_options" = abi::Options {
            size, order, allowed_in_flight, timeout_ns, deadline_ns, max_rows, max_bytes, max_attempts, retry_on, backoff_ns,
            max_backoff_ns, seed, idempotent, max_stuck, lineage, batch_size, max_wait_ns, batch_bytes,
        }
        "struct arroyo_udf_function" = abi::Function { name, kind, vectorized, arguments, returns, options }
        "struct arroyo_udf_descriptor" = abi::Descriptor {
            size, name, language, toolkit_version, hash, n_functions, functions,
        }
        "struct arroyo_udf_statistics" = abi::Statistics {
            size, accepted, queued, running, backing_off, held, ready, drained, values, errors, timed_out, cancelled, retries,
            stuck, wake_ups, blocked, left_behind, discarded, latency, latency_max_ns,
        }
        "struct arroyo_udf_table" = abi::Table { magic, abi_version, table_size, describe }
        "arroyo_udf_status" = abi::Status {}
        "arroyo_udf_handle" = abi::Handle {}
    }
    constants! { lines,
        MAGIC, ABI_VERSION,
        OK, WOULD_BLOCK, READY, END, STUCK, INVALID_ARGUMENT, INVALID_STATE, ENVIRONMENT, USER_CODE, INTERNAL,
        NOT_IMPLEMENTED,
        VALUE, ERROR, TIMED_OUT, CANCELLED,
        RESULTS, ROOM,
        DRAIN, CANCEL,
        SYNC, ASYNC,
        ORDERED, UNORDERED, RETRY_TIMEOUTS, RETRY_ERRORS, YES, NO,
    }
    lines.push(Line { expression: "ARROW_FLAG_NULLABLE".into(), value: abi::ARROW_FLAG_NULLABLE as i128 });
    lines
}

fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../include")
}

fn header() -> String {
    std::fs::read_to_string(include().join("arroyo_udf.h")).expect("the header is beside the crate")
}

/// The part of the header that is the contract: to the end of what cffi reads.
fn contract(header: &str) -> &str {
    header.split("/* cffi: end */").next().expect("split gives at least one part")
}

/// Fields of the header's structs, by struct: the last word before each `;`, or the name in `(*name)(...)`.
fn fields(contract: &str) -> Vec<(String, Vec<String>)> {
    let mut structs = Vec::new();
    let text = without_comments(contract);
    for (brace, _) in text.match_indices(" {\n") {
        let Some((before, name)) = text[..brace].rsplit_once(' ') else { continue };
        if before.rsplit(|c: char| c.is_whitespace()).next() != Some("struct") {
            continue;
        }
        let body = text[brace + 2..].split('}').next().expect("split gives at least one part");
        let field = |declaration: &str| {
            let name = match declaration.split_once("(*") {
                Some((_, pointer)) => pointer.split(')').next(),
                None => declaration
                    .split('[')
                    .next()
                    .unwrap_or_default()
                    .split(|c: char| !c.is_alphanumeric() && c != '_')
                    .rfind(|word| !word.is_empty()),
            };
            name.map(str::to_owned)
        };
        structs.push((name.to_owned(), body.split(';').filter(|d| !d.trim().is_empty()).filter_map(field).collect()));
    }
    structs
}

fn without_comments(text: &str) -> String {
    text.split("/*").enumerate().map(|(i, part)| if i == 0 { part } else { part.split_once("*/").map_or("", |(_, code)| code) }).collect()
}

#[test]
fn c_and_rust_agree() {
    let lines = mirror();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (folder.join("layout.c"), folder.join("layout"));
    let prints: String = lines.iter().map(|line| format!("  printf(\"%lld\\n\", (long long)({}));\n", line.expression)).collect();
    let code = format!("#include <stdio.h>\n#include \"arroyo_udf.h\"\nint main(void) {{\n{prints}  return 0;\n}}\n");
    std::fs::write(&source, code).expect("cargo's folder for tests can be written to");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut words = compiler.split_whitespace();
    let compiled = Command::new(words.next().unwrap_or("cc"))
        .args(words)
        .arg("-I")
        .arg(include())
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .output()
        .expect("a C compiler");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let output = Command::new(&program).output().expect("the program runs");
    let output = String::from_utf8(output.stdout).expect("numbers are text");
    let c_values: Vec<i128> = output.lines().map(|line| line.parse().expect("a number")).collect();
    assert_eq!(c_values.len(), lines.len());
    let differences: Vec<String> = lines
        .iter()
        .zip(c_values)
        .filter(|(line, c)| line.value != *c)
        .map(|(line, c)| format!("{}: C {c}, Rust {}", line.expression, line.value))
        .collect();
    assert!(differences.is_empty(), "{differences:#?}");
}

#[test]
fn nothing_of_the_header_is_missing() {
    let header = header();
    let known: Vec<String> = mirror().into_iter().map(|line| line.expression).collect();
    let text = without_comments(contract(&header));
    let mut constants: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_once(" = ").map(|(name, _)| name.trim()))
        .filter(|name| name.starts_with("ARROYO_UDF_"))
        .collect();
    constants.extend(["ARROYO_UDF_MAGIC", "ARROYO_UDF_ABI_VERSION"]);
    assert!(constants.len() > 20, "the header is not written as this test expects: {constants:?}");
    let mut missing: Vec<String> = constants.into_iter().filter(|name| !known.iter().any(|k| k == name)).map(str::to_owned).collect();

    let structs = fields(contract(&header));
    assert_eq!(structs.len(), 8, "{structs:?}");
    for (name, fields) in structs.into_iter().filter(|(name, _)| name != TABLE) {
        assert!(!fields.is_empty(), "struct {name}");
        let offset = |field: &String| format!("offsetof(struct {name}, {field})");
        missing.extend(fields.iter().map(offset).filter(|expression| !known.contains(expression)));
    }
    assert!(missing.is_empty(), "not compared: {missing:#?}");
}

/// A slot is a pointer, so names in the same order and tables of the same size ([`mirror`]) make the same layout.
#[test]
fn the_tables_have_the_same_slots() {
    let (_, slots) = fields(contract(&header())).into_iter().find(|(name, _)| name == TABLE).expect("the header has a table");
    let (_, rest) = include_str!("../src/lib.rs").split_once("pub struct Table {\n").expect("the mirror has a table");
    let (body, _) = rest.split_once("\n}").expect("a struct ends");
    let mirrored: Vec<&str> = body.lines().filter_map(|line| line.trim().strip_prefix("pub ")).collect();
    let expected = slots.iter().enumerate().map(|(i, slot)| match i {
        0 => format!("{slot}: u64,"),
        1 | 2 => format!("{slot}: u32,"),
        _ => format!("{slot}: {}Fn,", slot.split('_').map(capitalised).collect::<String>()),
    });
    assert_eq!(mirrored, expected.collect::<Vec<_>>());
}

fn capitalised(word: &str) -> String {
    word[..1].to_uppercase() + &word[1..]
}
