"""Building C plugins: the compiler's output is shown as it is, with a hint below (F5)."""

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
