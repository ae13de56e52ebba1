"""Rust sources in Arroyo's format: the head comment, the function without an attribute, crates and their lock file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from symbols import exported

from arroyo_udf_plugin import BuildError, UserCodeError, build, load
from arroyo_udf_plugin.build import cache, rust_source

BuildPlugin = Callable[..., Path]

pytestmark = pytest.mark.once
DEPENDENCIES = {"regex": "1", "tokio": {"version": "1", "features": ["full"]}}
OPTIONS = {"ordered": False, "allowed_in_flight": 7, "timeout": 2.5}
FUNCTION = "pub fn f(x: i64) -> i64 { x }\n"
# All of these mean the same.
HEADERS = {
    "one block": """\
/*
[dependencies]
regex = "1"
tokio = { version = "1", features = ["full"] }

[udfs]
async_results_ordered = false
async_max_concurrency = 7
async_timeout_seconds = 2.5
*/
""",
    "two blocks, other order": """\
/* Looks for names.
[udfs]
async_timeout_seconds = 2.5  # seconds
async_max_concurrency = 7
async_results_ordered = false */
use std::sync::Arc;
/*
[dependencies.tokio]
features = [
    "full",
]
version = "1"

[dependencies]
regex = "1" */
""",
    "indented, with stars": """\
  /**
   * [dependencies]
   *   regex = "1"
   *   tokio = { version = "1", features = ["full"] }
   * [ udfs ]
   *   async_results_ordered = false
   *   async_max_concurrency = 7
   *   async_timeout_seconds = 2.5
   */
""",
    "line comments": """\
// What it needs:
//
//   [dependencies]
//   regex = "1"
//   tokio.version = "1"
//   tokio.features = ["full"]

// [udfs]
// async_results_ordered = false
// async_max_concurrency = 7
// async_timeout_seconds = 2.5
""",
}


def written(folder: Path, text: str, name: str = "mine.rs") -> Path:
    source = folder / name
    source.write_bytes(text.encode())
    return source


def built(source: Path) -> Path:
    return source.with_name(f"lib{source.stem}.so")


def refused(source: Path, **how: Any) -> BuildError:
    with pytest.raises(BuildError) as raised:
        build(source, **how)
    assert raised.value.file == str(source)
    assert not built(source).exists()
    return raised.value


@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_header(tmp_path: Path, header: str, ending: str) -> None:
    read = rust_source.read(written(tmp_path, (header + FUNCTION).replace("\n", ending)))
    assert (read.dependencies, read.options) == (DEPENDENCIES, OPTIONS)
    assert header.splitlines()[read.dependencies_line - 1].strip(" */").startswith("[dependencies")
    assert read.text.replace("#[::arroyo_udf_plugin::udf]", "") == header + FUNCTION


@pytest.mark.parametrize(
    "text",
    [
        f'const HELP: &str = "\n/*\n[udfs]\nno = 1\n*/";\n{FUNCTION}',
        f"mod inner {{\n    /*\n    [udfs]\n    no = 1\n    */\n}}\n{FUNCTION}",
        f"// see [udfs] for more\n{FUNCTION}",
        FUNCTION,
    ],
)
def test_other_comments_are_no_header(tmp_path: Path, text: str) -> None:
    read = rust_source.read(written(tmp_path, text))
    assert (read.dependencies, read.options) == ({}, {})


def test_this_toolkits_crate_is_the_installed_one(tmp_path: Path) -> None:
    header = '/*\n[dependencies]\narroyo-udf-plugin = "0.2"\nregex = "1"\n*/\n'
    assert rust_source.read(written(tmp_path, header + FUNCTION)).dependencies == {"regex": "1"}


@pytest.mark.parametrize(
    ("header", "line", "says"),
    [
        ("/*\n\n[dependencies]\nregex = 1.\n*/", 4, "is not TOML"),
        (
            "// [udfs]\n// async_max_concurrency = 0",
            1,
            "[udfs] has async_max_concurrency=0; write a whole number from 1",
        ),
        ("/* \n[udfs]\nasync_timeout_seconds = 'some' */", 2, "has async_timeout_seconds='some'; write seconds"),
        ("/*\n[udfs]\nretries = 1\n*/", 2, "unknown option 'retries'; there are async_results_ordered, async_max"),
        ("/*\n[dependencies]\n[package]\n*/", 3, "'package' is not known here"),
        ("/*\n[udfs]\n*/\n/*\n[udfs]\n*/", 5, "[udfs] is written a second time"),
        ('/*\n[dependencies]\nmine = { path = "../mine" }\n*/', 2, "mine is a path: name a version"),
    ],
)
def test_mistake_in_header(tmp_path: Path, header: str, line: int, says: str) -> None:
    error = refused(written(tmp_path, f"{header}\n{FUNCTION}"))
    assert error.line == line
    assert says in str(error)


# Sources whose one public function is between two bars.
UNMARKED = {
    "alone": "|pub fn f(x: i64) -> i64 { x }|\n",
    "comments before it": "use std::fmt;\n/// What it does.\n// More.\n|pub async fn f(x: i64) -> i64 { x }|\n",
    "an attribute before it": "#![allow(dead_code)]\n#[inline] // always\n|pub fn f(x: i64) -> i64 { x }|\n",
    "words about the file": "//! pub fn g(x: i64) -> i64\n|pub fn f(x: i64) -> i64 { x }|\n",
    "in words only": '/* pub fn g() /* #[udf] */ */\nconst A: &str = "pub fn g()";\n|pub fn f(x: i64) -> i64 { x }|\n',
    "raw text": 'const A: &str = r#"" { pub fn g()"#;\nconst B: char = \'{\';\n|pub fn f(x: i64) -> i64 { x }|\n',
    "escapes": "const A: &[u8] = b\"\\\"{\";\nconst B: u8 = b'\\'';\n|pub fn f(x: i64) -> i64 { x }|\n",
    "lifetimes": "fn g<'a>(x: &'a str) -> &'a str { x }\n|pub fn f(x: i64) -> i64 { x }|\n",
    "not at the top": "struct A;\nimpl A { pub fn g() {} }\nmod m { pub fn h() {} }\n|pub fn f(x: i64) -> i64 { x }|\n",
    "others are private": "fn g() {}\npub(crate) fn h() {}\n|pub fn f(x: i64) -> i64 { x }|\nfn i() {}\n",
}


@pytest.mark.parametrize("text", UNMARKED.values(), ids=UNMARKED)
def test_the_one_public_function_is_the_udf(tmp_path: Path, text: str) -> None:
    """It gets the attribute, and its code stays on its lines."""
    before, function, after = text.split("|")
    attribute = "#[::arroyo_udf_plugin::udf]"
    marked = rust_source.read(written(tmp_path, before + function + after)).text
    assert marked.count(attribute) == 1
    assert marked.replace(attribute, "") == before + function + after
    head, tail = marked.split(attribute)
    assert len(head) <= len(before)
    assert len(tail) >= len(function + after)
    assert "fn" not in tail[: tail.index(function)].replace("//", "")


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("pub fn f(x: i64) -> i64 { x }\n\npub fn g(x: i64) -> i64 { x }\n", 3, "a second function is `pub`"),
        ("fn f(x: i64) -> i64 { x }\n", None, "or make one function `pub`"),
        ("// #[udf]\nfn f(x: i64) -> i64 { x }\n", None, "no function is marked"),
        ("mod m { pub fn f(x: i64) -> i64 { x } }\n", None, "no function is marked"),
    ],
)
def test_which_function_is_meant(tmp_path: Path, text: str, line: int | None, says: str) -> None:
    error = refused(written(tmp_path, text))
    assert error.line == line
    assert says in str(error)


def test_the_compiler_names_the_authors_lines_and_columns(tmp_path: Path) -> None:
    text = "/*\r\n[udfs]\r\nasync_max_concurrency = 3\r\n*/\r\n\r\npub async fn f(x: i64) -> i64 { x.len() }\r\n"
    error = refused(written(tmp_path, text))
    assert error.line == 6
    assert "mine.rs:6:35" in str(error)
    assert "6 | pub async fn f(x: i64) -> i64 { x.len() }" in str(error)


@pytest.mark.parametrize(
    ("member", "says"),
    [
        ("", "hint: a Context has a function `new() -> Self`"),
        ("impl Context { fn new() -> Self { Context } }", "Context` is no Context of a UDF"),
    ],
)
def test_an_invalid_context(tmp_path: Path, member: str, says: str) -> None:
    text = f"use std::sync::Arc;\n{member}\npub struct Context;\n"
    error = refused(written(tmp_path, text + "pub async fn f(context: Arc<Context>, x: i64) -> i64 { x }\n"))
    assert error.line == 4
    assert says in str(error)


@pytest.mark.parametrize(
    ("function", "symbols"),
    [
        ("/// #[udf]\npub async fn f(x: i64) -> i64 { x }", {"__start", "__send", "__drain_results", "__stop_runtime"}),
        ("#[inline]\npub fn f(x: i64) -> i64 { x }", {"__run"}),
        ("pub fn f() -> i64 { 1 }", set()),
        ("#[arroyo_udf_plugin :: udf(blocking)] // waits\n#[inline]\npub(crate) fn f() -> i64 { 1 }", {"__start"}),
    ],
)
def test_the_one_function_is_exported_for_arroyo(tmp_path: Path, function: str, symbols: set[str]) -> None:
    library = build(written(tmp_path, f'const A: &str = "#[udf] fn no(x: i64)";\n{function}\n// {{}}\n'))
    found = exported(library) - {"arroyo_udf_plugin"}
    assert symbols <= found
    assert bool(symbols) == bool(found)


def test_options_of_the_header_are_those_of_functions_that_choose_no_others(tmp_path: Path) -> None:
    text = (
        "// [udfs]\n// async_results_ordered = false\n// async_timeout_seconds = 3\n// async_max_concurrency = 9\n"
        'use arroyo_udf_plugin::udf;\n#[udf]\nasync fn f(x: i64) -> i64 { x }\n#[udf(ordered, timeout = "5 seconds")]\n'
        "async fn g(x: i64) -> i64 { x }\n#[udf]\nfn h(x: i64) -> i64 { x }\n"
    )
    functions = load(build(written(tmp_path, text))).functions
    chosen = [
        [(name, getattr(functions[function].options, name)) for name in functions[function].chosen] for function in "fg"
    ]
    both: list[Any] = [("allowed_in_flight", 9)]
    assert chosen[0] == [("ordered", False), *both, ("timeout", 3.0)]
    assert chosen[1] == [("ordered", True), *both, ("timeout", 5.0)]
    assert functions["h"].options is None


def test_null_rules_are_the_same_in_a_sync_and_an_async_function(build_plugin: BuildPlugin) -> None:
    """F3: also for arguments that are borrowed; Arroyo calls its async functions with what lies below the null."""
    functions = "".join(
        f"#[udf]\n{kind}fn {name}(a: &str, b: Option<&str>, c: i64) -> Option<String> {{\n"
        '    if c == 0 { return None; }\n    Some(format!("{a}{}{c}", b.unwrap_or("-")))\n}\n'
        for kind, name in [("", "sync"), ("async ", "later")]
    )
    plugin = load(build_plugin("use arroyo_udf_plugin::udf;\n" + functions, ".rs", "nulls"))
    columns = (
        pa.array(["a", None, "a", "a", "a"]),
        pa.array(["b", "b", None, "b", "b"]),
        pa.array([1, 1, 1, None, 0], pa.int64()),
    )
    expected = ["ab1", None, "a-1", None, None]
    assert plugin.functions["sync"](*columns).to_pylist() == expected
    with plugin.functions["later"].start() as runtime:
        runtime.send(0, *columns)
        results: list[Any] = []
        while len(results) < 5:
            assert runtime.wait(timeout=60)
            batch = runtime.drain_results()
            results += [] if batch is None else batch["value"].to_pylist()
    assert results == expected


# ---- Crates. smallvec and libc are in every plugin, so they are at hand without a network. ---------------------------

WITH_CRATE = """\
/*
[dependencies]
{dependencies}
*/
pub fn f(x: i64) -> i64 {{ // {salt}
    smallvec::SmallVec::<[i64; 4]>::from_elem(x, 3).iter().sum()
}}
"""


def with_crates(source: Path, dependencies: str = 'smallvec = "1"', salt: str = "") -> Path:
    source.write_text(WITH_CRATE.format(dependencies=dependencies, salt=salt))
    return source


def test_crates_are_locked_beside_the_source(tmp_path: Path) -> None:
    source, lock = with_crates(tmp_path / "crates.rs"), tmp_path / "crates.rs.lock"
    error = refused(source, locked=True)
    assert "--locked needs crates.rs.lock beside the source, and there is none" in str(error)
    assert not lock.exists()

    assert load(build(source)).functions["f"](pa.array([2, None])).to_pylist() == [6, None]
    text = lock.read_text()
    assert 'name = "smallvec"' in text
    sources = {line for line in text.splitlines() if line.startswith("source = ")}
    assert sources == {'source = "registry+https://github.com/rust-lang/crates.io-index"'}
    for folder in {Path.home(), cache.folder()} - {Path("/")}:
        assert str(folder) not in text

    made = lock.stat()
    built(source).unlink()
    build(with_crates(source, salt="again"), locked=True, offline=True)
    assert (lock.stat().st_ino, lock.read_text()) == (made.st_ino, text)

    built(source).unlink()
    with_crates(source, 'smallvec = "1"\nlibc = "0.2"')
    error = refused(source, locked=True)
    assert error.line == 2
    assert "crates.rs.lock is stale: [dependencies] or the toolkit has changed" in str(error)
    assert lock.read_text() == text
    build(source, offline=True)
    assert lock.read_text() != text
    build(source, locked=True)


def test_the_lock_decides_which_version(tmp_path: Path) -> None:
    """The cache never gives a library with other versions than the lock file."""
    source = with_crates(tmp_path / "decides.rs")
    first = load(build(source)).hash
    lock = tmp_path / "decides.rs.lock"
    lock.write_text(f"# kept by hand\n{lock.read_text()}")
    build(source, tmp_path / "same.so", locked=True)
    assert load(tmp_path / "same.so").hash != first


def test_a_second_function_compiles_no_crate_again(tmp_path: Path) -> None:
    def compiled() -> dict[str, int]:
        folder = cache.folder() / "rust" / "target" / "release" / "deps"
        return {path.name: path.stat().st_mtime_ns for path in folder.glob("*.rlib")}

    # Neither was built before.
    build(with_crates(tmp_path / "first.rs", salt=f"first in {tmp_path}"))
    before = compiled()
    assert any(name.startswith("libsmallvec-") for name in before)
    build(with_crates(tmp_path / "second.rs", salt=f"second in {tmp_path}"))
    assert compiled() == before


def test_a_crate_that_does_not_exist(tmp_path: Path) -> None:
    error = refused(with_crates(tmp_path / "absent.rs", 'smallvec = "1"\nno-crate-has-this-name = "1"'), offline=True)
    assert error.line == 2
    assert "no-crate-has-this-name" in str(error)
    assert "hint: --offline uses only crates that earlier builds have downloaded: build once without it" in str(error)
    assert str(error).endswith("; never downloaded: no-crate-has-this-name")
    error = refused(with_crates(tmp_path / "absent.rs", 'smallvec = "77"'), offline=True)
    assert "smallvec" in str(error)
    assert not (tmp_path / "absent.rs.lock").exists()


def test_a_context_fails_with_its_text(build_plugin: BuildPlugin) -> None:
    """R12: a panic of init is the error of start, with its location in the author's file."""
    plugin = load(
        build_plugin(
            """
            use arroyo_udf_plugin::{udf, UdfContext};
            use std::sync::Arc;

            struct Context;

            impl Context {
                fn new() -> Self {
                    panic!("no key")
                }
            }

            impl UdfContext for Context {}

            #[udf]
            async fn f(_: Arc<Context>, x: i64) -> i64 { x }
            """,
            ".rs",
            "keyless",
        )
    )
    with pytest.raises(UserCodeError, match=r"keyless\.f: init of the Context panicked at keyless\.rs:9:9: no key"):
        plugin.functions["f"].start()
