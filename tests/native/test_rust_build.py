"""Building Rust plugins: mistakes are refused on the author's line with a text (F5); the contents of the library."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from symbols import exported

from arroyo_udf_plugin import BuildError, build, load

pytestmark = pytest.mark.once
USE = "use arroyo_udf_plugin::udf;\n"

# The line with the mistake and the lines after it; a part of the message.
MISTAKES = {
    "no return type": ("fn f(a: i64) {}", "a UDF returns a value for each row: write its type, such as `-> i64`"),
    "generics": ("fn f<T>(a: T) -> T { a }", "a UDF has no generics"),
    "self": ("fn f(&self) -> i64 { 1 }", "a UDF has no `self`"),
    "pattern": ("fn f((a, b): (i64, i64)) -> i64 { a + b }", "needs a name"),
    "unsafe": ("unsafe fn f(a: i64) -> i64 { a }", "cannot be `unsafe`"),
    "reference from async": ("async fn f(a: &str) -> &str { a }", "write `String` for `&str`, `Vec<u8>` for `&[u8]`"),
    "context without async": (
        "fn f(context: std::sync::Arc<i64>, a: i64) -> i64 { a }",
        "share a Context: write `async fn`",
    ),
    "argument type": ("fn f(a: char) -> i64 { 1 }", "`char` cannot be an argument of a UDF"),
    "optional of optional": ("fn f(a: i64) -> Option<Option<i64>> { None }", "cannot be the result of a UDF"),
    "result type": ("fn f(a: i64) -> usize { 1 }", "`usize` cannot be the result of a UDF"),
    "unit": ("fn f(a: i64) -> () {}", "`()` cannot be the result of a UDF"),
    "not a function": ("struct S;", "#[udf] belongs on a function"),
    "held across an await": (
        "async fn f(a: i64) -> i64 { let r = std::rc::Rc::new(a); std::future::ready(()).await; *r }",
        "hint: an async function may go on in another thread after each await: use Arc for Rc",
    ),
    "type error": ("fn f(a: i64) -> i64 { a.len() }", "no method named `len`"),
}
OPTIONS = {
    "option of a sync function": ("#[udf(ordered)]", "fn f(a: i64) -> i64 { a }", "a synchronous function has no"),
    "nothing in flight": ("#[udf(allowed_in_flight = 0)]", "async fn f(a: i64) -> i64 { a }", "from 1 to 4294967295"),
    "unknown option": ("#[udf(retries = 3)]", "async fn f(a: i64) -> i64 { a }", "unknown option `retries`: write"),
    "timeout without unit": ('#[udf(timeout = "10")]', "async fn f(a: i64) -> i64 { a }", "with a unit"),
}


def refused(folder: Path, text: str) -> BuildError:
    source = folder / "mistake.rs"
    source.write_text(text)
    with pytest.raises(BuildError) as raised:
        build(source, folder / "mistake.so")
    assert not (folder / "mistake.so").exists()
    assert raised.value.file == str(source)
    return raised.value


@pytest.mark.parametrize(("line", "says"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_refused_on_its_line(tmp_path: Path, line: str, says: str) -> None:
    error = refused(tmp_path, f"{USE}\n#[udf]\nfn good(a: i64) -> i64 {{ a }}\n\n#[udf]\n{line}\n")
    assert error.line == 7
    assert str(error).startswith(f"{tmp_path}/mistake.rs:7: ")
    assert says in str(error)
    assert "mistake.rs:7:" in str(error).partition("\n")[2], "the compiler's own words name the author's line"
    assert "hint: " in str(error)


@pytest.mark.parametrize(("attribute", "function", "says"), OPTIONS.values(), ids=OPTIONS)
def test_invalid_options_are_refused(tmp_path: Path, attribute: str, function: str, says: str) -> None:
    error = refused(tmp_path, f"{USE}\n{attribute}\n{function}\n")
    assert error.line == 3
    assert says in str(error)


def test_several_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    text = str(refused(tmp_path, f"{USE}#[udf]\nunsafe fn f(&self) {{}}\n"))
    assert "cannot be `unsafe`" in text
    assert "no `self`" in text
    assert "returns a value" in text


def test_a_file_without_functions_is_refused(tmp_path: Path) -> None:
    error = refused(tmp_path, "fn f() -> i64 { 1 }\n")
    assert "no function is marked: write `use arroyo_udf_plugin::udf;`" in str(error)


def test_a_source_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "latin.rs"
    source.write_bytes(b"#[udf] fn f() -> i64 { 1 } // \xe9\n")
    with pytest.raises(BuildError, match="a Rust source is UTF-8"):
        build(source)


@pytest.mark.parametrize("name", ["target", "sdk", "tokio", "libc", "Type", "r", "arroyo_udf_plugin"])
def test_a_plugin_may_have_any_name(tmp_path: Path, name: str) -> None:
    source = tmp_path / f"{name}.rs"
    source.write_text(f"{USE}#[udf]\nfn f(a: i64) -> i64 {{ a }}\n")
    assert load(build(source)).name == name


@pytest.mark.parametrize(
    ("text", "hint"),
    [("mod other;", "a plugin is one .rs file"), ("use serde::Serialize;", "a plugin can use std")],
    ids=["second file", "foreign crate"],
)
def test_unusable_crates_come_with_a_hint(tmp_path: Path, text: str, hint: str) -> None:
    (tmp_path / "other.rs").write_text("pub fn g() -> i64 { 1 }")
    error = refused(tmp_path, f"{USE}{text}\n#[udf]\nfn f(a: i64) -> i64 {{ a }}\n")
    assert f"hint: {hint}" in str(error)
    assert error.line == 2


def test_a_missing_cargo_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    error = refused(tmp_path, f"{USE}#[udf]\nfn f(a: i64) -> i64 {{ a }}\n")
    assert "install Rust from https://rustup.rs" in str(error)


def test_warnings_are_shown_unchanged(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / f"warned{os.getpid()}.rs"  # not in the cache: only a compiler warns
    source.write_text(f"{USE}\nfn unused() {{}}\n\n#[udf]\nfn f(a: i64) -> i64 {{ a }} // {os.times().elapsed}\n")
    build(source)
    shown = capfd.readouterr().err
    assert "warning: function `unused` is never used" in shown
    assert f"{source.name}:3:4" in shown


def test_the_library_names_no_folder_of_this_machine(tmp_path: Path) -> None:
    source = tmp_path / "lost.rs"
    source.write_text(f'{USE}#[udf]\nasync fn f(a: i64) -> i64 {{ assert!(a > 0, "positive"); a }}\n')
    library = build(source).read_bytes()
    assert b"lost.rs" in library
    for folder in {Path.home(), tmp_path, Path(__file__).parents[2]} - {Path("/")}:
        assert str(folder).encode() not in library


@pytest.mark.parametrize("is_async", ["", "async "])
def test_exactly_one_symbol_is_exported_and_the_library_stays(tmp_path: Path, is_async: str) -> None:
    source = tmp_path / "one.rs"
    function = f"#[udf]\n{is_async}fn f(a: i64) -> i64 {{ a }}\n"
    source.write_text(USE + function + function.replace("fn f", "fn g"))  # one alone would be a library for Arroyo, too
    library = build(source)
    assert exported(library) == {"arroyo_udf_plugin"}
    flags = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    assert re.search(r"FLAGS_1.*\bNODELETE\b", flags)
