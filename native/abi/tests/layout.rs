//! The header and its mirror agree. The names of structs, fields and constants are read from the text of
//! `native/include/arroyo_udf.h`; a C program over the header and a Rust program over the mirror print every size, offset and
//! value, and their lines are compared. So what is added to the header needs no edit here, and what the mirror lacks, or has
//! beside the header, is a failure.
//!
//! Needs a C compiler (`$CC`, else `cc`) and `rustc` (`$RUSTC`, else `rustc`).

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the header declares.
struct Contract {
    /// Names with their fields.
    structs: Vec<(String, Vec<String>)>,
    /// Names of plain types: `typedef uint64_t arroyo_udf_handle;`.
    scalars: Vec<String>,
    constants: Vec<String>,
}

/// What both programs print: an expression of C, and the same in Rust.
struct Line {
    c: String,
    rust: String,
}

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: PathBuf) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn without_comments(text: &str) -> String {
    text.split("/*").enumerate().map(|(i, part)| if i == 0 { part } else { part.split_once("*/").map_or("", |(_, code)| code) }).collect()
}

/// Reads the header up to the mark where cffi stops reading.
fn contract() -> Contract {
    let header = read(folder().join("../include/arroyo_udf.h"));
    let text = without_comments(header.split("/* cffi: end */").next().unwrap_or_default());
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let mut constants = Vec::new();
    let mut scalars = Vec::new();
    for line in text.lines().map(words) {
        let words: Vec<&str> = line.iter().map(String::as_str).collect();
        match words[..] {
            ["#define", name, value, ..] if value.starts_with("UINT64_C") || value.parse::<i64>().is_ok() => {
                constants.push(name.to_owned())
            }
            [name, "=", ..] if name.starts_with("ARROYO_UDF_") => constants.push(name.to_owned()),
            ["typedef", _, name] => scalars.push(name.trim_end_matches(';').to_owned()),
            _ => {}
        }
    }
    // Flags of Arrow that the toolkit does not use.
    constants.retain(|name| !["ARROW_FLAG_DICTIONARY_ORDERED", "ARROW_FLAG_MAP_KEYS_SORTED"].contains(&name.as_str()));
    Contract { structs: structs(&text), scalars, constants }
}

/// Structs with their fields: the last word before each `;`, or the name in `(*name)(...)`.
fn structs(text: &str) -> Vec<(String, Vec<String>)> {
    let mut structs = Vec::new();
    for (brace, _) in text.match_indices(" {\n") {
        let Some((before, name)) = text[..brace].rsplit_once(' ') else { continue };
        if before.rsplit(|c: char| c.is_whitespace()).next() != Some("struct") {
            continue;
        }
        let body = text[brace + 2..].split('}').next().unwrap_or_default();
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

/// `arroyo_udf_error` -> `abi::Error`; Arrow's structs keep their names.
fn rust_type(c: &str) -> String {
    let Some(name) = c.strip_prefix("arroyo_udf_") else { return format!("abi::{c}") };
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    format!("abi::{}", name.split('_').map(capital).collect::<String>())
}

/// `ARROYO_UDF_OK` -> `OK`; Arrow's flags keep their names.
fn rust_constant(c: &str) -> &str {
    c.strip_prefix("ARROYO_UDF_").unwrap_or(c)
}

fn lines(contract: &Contract) -> Vec<Line> {
    let mut lines = Vec::new();
    for (name, fields) in &contract.structs {
        let (c, rust) = (format!("struct {name}"), rust_type(name));
        lines.push(Line { c: format!("sizeof({c})"), rust: format!("size_of::<{rust}>()") });
        for field in fields {
            lines.push(Line { c: format!("offsetof({c}, {field})"), rust: format!("offset_of!({rust}, {field})") });
            lines.push(Line { c: format!("sizeof((({c} *)0)->{field})"), rust: format!("size_of_field(|of: &{rust}| &of.{field})") });
        }
    }
    let scalar = |name: &String| Line { c: format!("sizeof({name})"), rust: format!("size_of::<{}>()", rust_type(name)) };
    lines.extend(contract.scalars.iter().map(scalar));
    lines.extend(contract.constants.iter().map(|name| Line { c: name.clone(), rust: format!("abi::{}", rust_constant(name)) }));
    lines
}

/// Compiles and runs a program; its lines.
fn printed(mut compiler: Command, source: &Path, code: &str, program: &Path) -> Vec<String> {
    std::fs::write(source, code).expect("cargo's folder for tests can be written to");
    let compiled = compiler.arg(source).arg("-o").arg(program).output().expect("a compiler");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let output = Command::new(program).output().expect("the program runs");
    String::from_utf8(output.stdout).expect("numbers are text").lines().map(str::to_owned).collect()
}

fn printed_by_c(lines: &[Line]) -> Vec<String> {
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut words = compiler.split_whitespace();
    let mut compiler = Command::new(words.next().unwrap_or("cc"));
    compiler.args(words).arg("-I").arg(folder().join("../include"));
    let prints: String = lines.iter().fold(String::new(), |mut prints, line| {
        let _ = writeln!(prints, "  printf(\"%lld\\n\", (long long)({}));", line.c);
        prints
    });
    let code = format!("#include <stdio.h>\n#include \"arroyo_udf.h\"\nint main(void) {{\n{prints}  return 0;\n}}\n");
    printed(compiler, &tmp.join("layout.c"), &code, &tmp.join("layout_c"))
}

/// The mirror is compiled into the program: a name that it lacks does not compile, nor does a struct with another field.
fn printed_by_rust(contract: &Contract, lines: &[Line]) -> Vec<String> {
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut compiler = Command::new(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into()));
    compiler.args(["--edition", "2021"]);
    let mut code = format!(
        "#![allow(dead_code)]\n#[path = {:?}]\nmod abi;\nuse std::mem::{{offset_of, size_of}};\n\
         fn size_of_field<T, F>(_: fn(&T) -> &F) -> usize {{\n    size_of::<F>()\n}}\n",
        folder().join("src/lib.rs")
    );
    for (i, (name, fields)) in contract.structs.iter().enumerate() {
        let (name, fields) = (rust_type(name), fields.iter().map(|field| format!("{field}: _")).collect::<Vec<_>>());
        let _ = writeln!(code, "fn no_other_fields_{i}({name} {{ {} }}: {name}) {{}}", fields.join(", "));
    }
    let _ = writeln!(code, "fn main() {{");
    for line in lines {
        let _ = writeln!(code, "    println!(\"{{}}\", ({}) as i64);", line.rust);
    }
    let _ = writeln!(code, "}}");
    printed(compiler, &tmp.join("layout.rs"), &code, &tmp.join("layout_rust"))
}

#[test]
fn c_and_rust_agree() {
    let contract = contract();
    let lines = lines(&contract);
    let (c, rust) = (printed_by_c(&lines), printed_by_rust(&contract, &lines));
    assert_eq!((c.len(), rust.len()), (lines.len(), lines.len()));
    let compared = lines.iter().zip(c.iter().zip(&rust)).filter(|(_, (c, rust))| c != rust);
    let differences: Vec<String> = compared.map(|(line, (c, rust))| format!("{}: C {c}, Rust {rust}", line.c)).collect();
    assert!(differences.is_empty(), "{differences:#?}");
}

/// Otherwise the other test would compare nothing.
#[test]
fn the_header_is_written_as_expected() {
    let Contract { structs, scalars, constants } = contract();
    let names: Vec<&str> = structs.iter().map(|(name, _)| name.as_str()).collect();
    assert!(["ArrowSchema", "ArrowArray", "arroyo_udf_options", "arroyo_udf_table"].iter().all(|name| names.contains(name)), "{names:?}");
    assert!(structs.iter().all(|(_, fields)| !fields.is_empty()), "{structs:?}");
    let slots = &structs.iter().find(|(name, _)| name == "arroyo_udf_table").expect("the table").1;
    assert!(["magic", "describe", "release"].iter().all(|slot| slots.iter().any(|s| s == slot)), "{slots:?}");
    assert!(["arroyo_udf_status", "arroyo_udf_handle"].iter().all(|name| scalars.iter().any(|s| s == name)), "{scalars:?}");
    for name in ["ARROYO_UDF_MAGIC", "ARROYO_UDF_ABI_VERSION", "ARROYO_UDF_OK", "ARROYO_UDF_NOT_IMPLEMENTED", "ARROYO_UDF_NO"] {
        assert!(constants.iter().any(|known| known == name), "{name} is not among {constants:?}");
    }
}

#[test]
fn the_mirror_has_no_other_constants() {
    let constants = contract().constants;
    let source = read(folder().join("src/lib.rs"));
    let mirrored = source.lines().filter_map(|line| line.strip_prefix("pub const ")?.split(':').next());
    let unknown: Vec<&str> = mirrored.filter(|name| !constants.iter().any(|known| rust_constant(known) == *name)).collect();
    assert!(unknown.is_empty(), "not in the header: {unknown:?}");
}
