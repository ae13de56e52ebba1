"""Building C plugins: the compiler's output is shown as it is, with a hint below (F5)."""

import subprocess

import pytest

from arroyo_udf_plugin import BuildError, build
from arroyo_udf_plugin.build import c
from arroyo_udf_plugin.build.cache import Resolution

GOOD = """#include "arroyo_udf_plugin.h"
static const char* f(int64_t x, int64_t* out) {
  *out = x;
  return NULL;
}
ARROYO_UDF_FUNCTION(f, int64, (int64, x));
ARROYO_UDF_PLUGIN(f);
"""


def error_of(tmp_path, text):
    source = tmp_path / "udf.c"
    source.write_text(text)
    with pytest.raises(BuildError) as caught:
        build(source)
    assert not (tmp_path / "udf.so").exists()
    assert caught.value.file == str(source)
    return caught.value


@pytest.mark.parametrize(
    ("old", "new", "line", "said", "hint"),
    [
        ("f(int64_t x", "f(int32_t x", 6, "conflicting types for", "the types in ARROYO_UDF_FUNCTION must be those"),
        ("(int64, x)", "(int65, x)", 6, "arroyo_udf_c_parameter_int65", "each type one of bool, int8 ... int64"),
        ("*out = x", "*out = y", 3, "undeclared", "at the top of"),
        ("*out = x", "*out = half(x)", 3, "implicit declaration", "at the top of"),
        ("ARROYO_UDF_PLUGIN(f);", "", None, "arroyo_udf_plugin", "end it with ARROYO_UDF_PLUGIN(function, ...);"),
        ("static const", "extern int64_t half(int64_t);\nint64_t (*h)(int64_t) = half;\nstatic const", None,
         "undefined reference to", "one .c file"),
        ('_plugin.h"', '_plugin.h"\n#include "nowhere.h"', 2, "nowhere.h", "hint: "),
    ],
)  # fmt: skip
def test_mistakes_are_refused_with_line_and_hint(tmp_path, old, new, line, said, hint):
    assert GOOD.count(old) == 1
    error = error_of(tmp_path, GOOD.replace(old, new))
    assert error.line == line
    assert said in str(error)
    before, after = str(error).rsplit("hint: ", 1)
    assert said in before, "the compiler's own words come first"
    assert hint in "hint: " + after


AGGREGATE = """#include "arroyo_udf_plugin.h"
typedef struct { int64_t sum; } total_state;
static const char* total_update(total_state* state, int64_t x) { state->sum += x; return NULL; }
static const char* total_merge(total_state* state, const total_state* other) { state->sum += other->sum; return NULL; }
static const char* total_finish(const total_state* state, int64_t* out) { *out = state->sum; return NULL; }
ARROYO_UDF_AGGREGATE(total, int64, (int64, x));
ARROYO_UDF_TABLE_FUNCTION(twice, ((int64, x)), (int64, x));
static const char* twice(int64_t x, twice_rows* out) { twice_emit(out, x); twice_emit(out, x); return NULL; }
ARROYO_UDF_PLUGIN(total, twice);
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "said", "hint"),
    [
        ("state, int64_t x)", "state, double x)", 6, "conflicting types for", "NAME_update has a state first"),
        ("const total_state* other)", "total_state* other)", 6, "conflicting types for", "NAME_merge two"),
        ("total_finish(const total_state* state, int64_t* out)", "ended(const total_state* state, int64_t* out)", None,
         "total_finish", "an aggregate NAME has the functions NAME_update, NAME_merge and NAME_finish"),
        ("} total_state;", "} totals;", 3, "total_state", "an aggregate NAME has a struct NAME_state"),
        ("ARROYO_UDF_TABLE_FUNCTION(twice, ((int64, x)), (int64, x));", "", 8, "twice_rows",
         "ARROYO_UDF_TABLE_FUNCTION comes before the function"),
        ("static const char* twice(int64_t x,", "static const char* twice(int32_t x,", 8, "conflicting types for",
         "a table function has NAME_rows* last"),
    ],
)  # fmt: skip
def test_mistakes_in_aggregates_and_table_functions(tmp_path, old, new, line, said, hint):
    assert AGGREGATE.count(old) == 1
    error = error_of(tmp_path, AGGREGATE.replace(old, new))
    assert error.line == line
    before, after = str(error).rsplit("hint: ", 1)
    assert said in before
    assert hint in after


def test_engines_of_rows_get_entry_points_of_functions_of_rows_alone(tmp_path):
    (tmp_path / "udf.c").write_text(
        AGGREGATE.replace(
            "ARROYO_UDF_PLUGIN(", GOOD.split("\n", 1)[1].replace("ARROYO_UDF_PLUGIN(f);\n", "ARROYO_UDF_PLUGIN(f, ")
        )
    )
    symbols = subprocess.run(["nm", "-D", build(tmp_path / "udf.c")], capture_output=True, text=True, check=True).stdout
    called = {line.split()[-1] for line in symbols.splitlines() if "_polars_plugin_field_" in line}
    assert called == {"_polars_plugin_field_f"}


def test_missing_compiler_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler -m64")
    assert "the C compiler no-such-compiler cannot be run" in str(error_of(tmp_path, GOOD))


def test_warnings_are_shown_and_do_not_stop_the_build(tmp_path, capfd, c_plugin):
    c_plugin(GOOD.replace("*out = x;", "*out = x; int unused;"))
    assert "unused variable" in capfd.readouterr().err


def test_library_depends_on_headers_and_compiler(tmp_path, monkeypatch):
    source, header = tmp_path / "udf.c", tmp_path / "mine.h"
    source.write_text('#include "mine.h"\n' + GOOD)
    header.write_text("#define ONE 1\n")
    before = c.inputs(source, Resolution())
    assert c.inputs(source, Resolution()) == before
    header.write_text("#define ONE 2\n")
    after = c.inputs(source, Resolution())
    assert [a.split()[0] for a, b in zip(after, before, strict=True) if a != b] == ["mine.h"]
    monkeypatch.setenv("CC", "cc -DTWO=2")
    assert c.inputs(source, Resolution()) != after
