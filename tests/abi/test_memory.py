"""Memory at the boundary, under AddressSanitizer and UBSan: no byte too many read, each array released exactly once."""

from pathlib import Path

import pytest

from arroyo_udf_plugin import build

HERE = Path(__file__).parent
SANITIZED = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
LIBRARY = ["-shared", "-fPIC", "-fvisibility=hidden"]


def test_helper_span_with_exact_buffers_and_counted_releases(plain_cc, bare):
    host = plain_cc(HERE / "exact.c", *SANITIZED)
    library = plain_cc('#define FIRST_HALF 0\n#include "functions.c"\n', f"-I{HERE}", *SANITIZED, *LIBRARY)
    done = bare(host, library)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "2376 batches are right\n"


def test_exact_host_sees_what_it_looks_for(plain_cc, bare):
    """The same run must fail when a plugin reads one byte too many, or releases nothing."""
    host = plain_cc(HERE / "exact.c", *SANITIZED)
    header = (HERE.parents[1] / "native" / "include" / "arroyo_udf.h").read_text()
    for old, new in [
        ("  if (n_bytes >= 8) {", "  if (true) {"),
        ("  batch->release(batch);\n  return ARROYO_UDF_OK;", "  return ARROYO_UDF_OK;"),
    ]:
        assert header.count(old) == 1
        source = "#define FIRST_HALF 0\n" + (HERE / "functions.c").read_text()
        spoilt = source.replace('#include "arroyo_udf.h"', header.replace(old, new))
        done = bare(host, plain_cc(spoilt, *SANITIZED, *LIBRARY))
        assert done.returncode != 0
        assert "heap-buffer-overflow" in done.stderr or "struct_releases == 1" in done.stderr


PYTHON = """
from arroyo_udf_plugin import udf

@udf
def seen(a: int, b: int | None, c: str) -> str:
    return f"{a} {'null' if b is None else b} {c}"

@udf
def fussy(x: int) -> str:
    if x % 5:
        raise ValueError(x)
    return "fine"

@udf
def same_bool(x: bool) -> bool:
    return x
"""
RUST = """
use arroyo_udf_plugin::udf;

#[udf]
fn seen(a: i64, b: Option<i64>, c: &str) -> String {
    format!("{a} {} {c}", b.map_or("null".into(), |b| b.to_string()))
}

#[udf]
fn fussy(x: i64) -> Result<String, String> {
    if x % 5 == 0 { Ok("fine".into()) } else { Err(x.to_string()) }
}

#[udf]
fn same_bool(x: bool) -> bool {
    x
}
"""


@pytest.mark.parametrize(("name", "text"), [("counted.py", PYTHON), ("counted.rs", RUST)])
def test_releases_of_other_languages_are_counted(plain_cc, bare, tmp_path, name, text):
    host = plain_cc(HERE / "exact.c", "-g")
    (tmp_path / name).write_text(text)
    done = bare(host, build(tmp_path / name))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "2376 batches are right\n"


def test_example_host_with_example_plugins(plain_cc, bare, examples):
    host = plain_cc(examples / "host" / "c" / "host.c", *SANITIZED)
    for source, functions in {"flights/udf.c": ["mph", "tail"], "by_hand/udf.c": ["kilometres"]}.items():
        library = plain_cc(examples / source, *SANITIZED, *LIBRARY)
        for function in functions:
            done = bare(host, library, function)
            assert (done.returncode, done.stderr) == (0, "")
            assert done.stdout.count("value=") == 5
