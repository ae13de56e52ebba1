"""The example hosts in C, C++ and Rust, with an empty environment: our plugins, and files that are no plugins."""

import re

import pytest

from arroyo_udf_plugin import build

ROWS = [(1000 + 100 * i, 990 + 100 * i) for i in range(5)]  # sent by the hosts; in row 2 both are null
MPH = [None if i == 2 else distance * 60.0 / air_time for i, (distance, air_time) in enumerate(ROWS)]
ASYNC_PYTHON = """
from arroyo_udf_plugin import udf

@udf(ordered=True)
async def more(x: int) -> int:
    if x == 1100:
        raise ValueError("not this one")
    return x + 1
"""


def fields(line):
    return dict(re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)', line))


def number(text):
    return None if text == "null" else float(text)


WITHOUT_EXCEPTIONS = """
#include <cstdio>
#include "arroyo_udf_host.hpp"
int main(int, char** argv) {
  const auto opened = arroyo_udf::plugin::open(argv[1]);
  if (opened.ok()) return 1;
  std::puts(opened.error().text.c_str());
  arroyo_udf::runtime none(nullptr, 0), other(std::move(none));
  other = arroyo_udf::runtime(nullptr, 0);
  arroyo_udf::array empty, moved(std::move(empty));
  return moved.is_there() ? 2 : 0;
}
"""


def test_the_header_for_cpp_does_without_exceptions(plain_cc, bare, tmp_path):
    flags = ("-std=c++17", "-fno-exceptions", "-fno-rtti", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
    program = plain_cc(WITHOUT_EXCEPTIONS, *flags, cpp=True, libraries=["-ldl"])
    done = bare(program, tmp_path / "none.so")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("cannot load: ")


def test_describes(host, bare, flights):
    language, library = flights
    done = bare(host, library)
    assert done.returncode == 0, done.stderr
    first, *functions = done.stdout.splitlines()
    assert first == f"plugin udf ({language})"
    assert "sync mph(distance: l, air_time: l) -> g" in functions


def test_sync_function(host, bare, flights):
    _, library = flights
    done = bare(host, library, "mph")
    assert done.returncode == 0, done.stderr
    assert [number(fields(line)["value"]) for line in done.stdout.splitlines()] == MPH


def test_sync_function_of_text(host, bare, c_plugin, examples):
    done = bare(host, c_plugin(examples / "flights" / "udf.c"), "tail")
    assert done.returncode == 0, done.stderr
    values = [fields(line)["value"] for line in done.stdout.splitlines()]
    assert values == ['"N14228-14228"', '"N24211-24211"', "null", '"N3ALAA-3ALAA"', '"n535ua?"']


def test_async_function_in_rust(host, bare, tmp_path, examples):
    """R1, R5: each row once, in order, then END."""
    done = bare(host, build(examples / "flights" / "udf.rs", tmp_path / "udf.so"), "mph_async")
    assert (done.returncode, done.stderr) == (0, "")
    rows = [fields(line) for line in done.stdout.splitlines()]
    assert [number(row["value"]) for row in rows] == MPH
    assert [(row["id"], row["outcome"], row["error"]) for row in rows] == [(str(i), "0", "null") for i in range(1, 6)]


def test_async_function_in_c(host, bare, tmp_path, examples):
    """R1, R2, R5, F3: the function has a thread of its own. The texts that the hosts send are names of files."""
    for lines, name in enumerate(["N14228", "N24211", "N3ALAA"]):
        (tmp_path / name).write_text("line\n" * lines + "the last")
    library = build(examples / "own_thread" / "udf.c", tmp_path / "udf.so")
    done = bare(host, library, "lines", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    rows = [fields(line) for line in done.stdout.splitlines()]
    assert [row["value"] for row in rows] == ["0", "1", "null", "2", "null"]
    assert [row["error"] for row in rows] == ["null"] * 4 + ['"udf.lines, row 5: n535ua: No such file or directory"']


def test_async_function_in_python(host, bare, tmp_path):
    """R1, R2, R5: a row that raises is an error, the others are values."""
    (tmp_path / "more.py").write_text(ASYNC_PYTHON)
    done = bare(host, build(tmp_path / "more.py"), "more")
    assert (done.returncode, done.stderr) == (0, "")
    rows = [fields(line) for line in done.stdout.splitlines()]
    assert [row["id"] for row in rows] == ["1", "2", "3", "4", "5"]
    assert [row["value"] for row in rows] == ["1001", "null", "null", "1301", "1401"]
    assert [row["outcome"] for row in rows] == ["0", "1", "0", "0", "0"]
    assert "not this one" in rows[1]["error"]


def test_row_errors_are_shown(host, bare, c_plugin):
    source = """
#include "arroyo_udf_plugin.h"
static const char* odd(int64_t x, int64_t* out) { *out = x; return x == 1300 ? "not this one" : NULL; }
ARROYO_UDF_FUNCTION(odd, int64, (int64, x));
ARROYO_UDF_PLUGIN(odd);
"""
    done = bare(host, c_plugin(source), "odd")
    assert (done.returncode, done.stderr) == (0, "")
    rows = [fields(line) for line in done.stdout.splitlines()]
    assert [row["value"] for row in rows] == ["1000", "1100", "null", "null", "1400"]
    assert [row["error"] for row in rows] == ["null", "null", "null", '"udf.odd, row 3: not this one"', "null"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ((".magic = ARROYO_UDF_MAGIC", ".magic = 1"), ["not a plugin", "magic"]),
        (("= ARROYO_UDF_ABI_VERSION", "= 7"), ["ABI version 7", "this host has 1", "build it again"]),
        (("= sizeof(arroyo_udf_table)", "= 64"), ["truncated", "64 bytes", "this host needs"]),
        (("arroyo_udf_table arroyo_udf_plugin =", "arroyo_udf_table other ="), ["not a plugin", "arroyo_udf_plugin"]),
    ],
    ids=["magic", "version", "size", "symbol"],
)
def test_load_failures_are_explained(host, bare, plain_cc, examples, change, words):
    source = (examples / "by_hand" / "udf.c").read_text()
    assert source.count(change[0]) == 1
    done = bare(host, plain_cc(source.replace(*change), "-shared", "-fPIC"))
    assert (done.returncode, done.stdout) == (1, "")
    for word in words:
        assert word in done.stderr


def test_a_file_that_is_no_library(host, bare, tmp_path):
    (tmp_path / "udf.so").write_text("def mph(distance, air_time): ...")
    done = bare(host, tmp_path / "udf.so")
    assert (done.returncode, done.stdout) == (1, "")
    assert "udf.so" in done.stderr


def test_a_file_in_the_current_folder(host, bare, c_plugin, examples):
    """Its name alone is not looked for in the system's folders."""
    library = c_plugin(examples / "flights" / "udf.c")
    done = bare(host, library.name, cwd=library.parent)
    assert (done.returncode, done.stderr) == (0, "")


def test_unknown_function(host, bare, c_plugin, examples):
    done = bare(host, c_plugin(examples / "flights" / "udf.c"), "nope")
    assert done.returncode == 1
    assert "has no function nope" in done.stderr
