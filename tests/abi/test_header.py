"""The headers compile without a warning in every dialect, also when included twice; cffi can read the contract."""

import re
from pathlib import Path

import pytest

HEADER = Path(__file__).resolve().parents[2] / "native" / "include" / "arroyo_udf.h"
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
PLUGIN = """
#include "arroyo_udf_plugin.h"
#include "arroyo_udf_plugin.h"
static const char* length(arroyo_udf_utf8 text, int64_t* out) {
  *out = (int64_t)text.length;
  return text.length > 100 ? arroyo_udf_failure("%d bytes are too long", (int)text.length) : NULL;
}
ARROYO_UDF_FUNCTION(length, int64, (utf8, text));
static const char* either(bool left, arroyo_udf_nullable_bool right, bool* out) {
  *out = left || right.value;
  return !left && right.is_null ? arroyo_udf_null : NULL;
}
ARROYO_UDF_DESCRIBED_FUNCTION(either, "Left, or right.", ARROYO_UDF_IMMUTABLE, nullable_bool, (bool, left),
                              (nullable_bool, right));
typedef struct {
  int64_t longest;
  bool any;
} longest_state;
static const char* longest_update(longest_state* state, arroyo_udf_utf8 text, arroyo_udf_nullable_bool wanted) {
  const int64_t length = wanted.is_null || wanted.value ? (int64_t)text.length : 0;
  if (length > state->longest) state->longest = length;
  return NULL;
}
static const char* longest_merge(longest_state* state, const longest_state* other) {
  if (other->longest > state->longest) state->longest = other->longest;
  return NULL;
}
static const char* longest_finish(const longest_state* state, bool* out) {
  *out = state->longest > 10;
  return NULL;
}
ARROYO_UDF_AGGREGATE(longest, bool, (utf8, text), (nullable_bool, wanted));
ARROYO_UDF_TABLE_FUNCTION(halves, ((utf8, half), (bool, second), (nullable_float32, share)), (utf8, text));
static const char* halves(arroyo_udf_utf8 text, halves_rows* out) {
  const arroyo_udf_nullable_float32 share = {0.5F, text.length == 0};
  halves_emit(out, text, false, share);
  halves_emit(out, text, true, share);
  return NULL;
}
ARROYO_UDF_PLUGIN(length, longest, either, halves);
"""
ASYNC = """
#include "arroyo_udf_async.h"
#include "arroyo_udf_plugin.h"
#include "arroyo_udf_async.h"
static const char* same(int64_t x, int64_t* out) {
  *out = x;
  return NULL;
}
ARROYO_UDF_FUNCTION(same, int64, (int64, x));
static void later(const arroyo_udf_call* call, bool first, arroyo_udf_nullable_bool second, arroyo_udf_utf8 text) {
  arroyo_udf_complete_bool(call->token, first || second.value || text.length > 0);
}
ARROYO_UDF_ASYNC_FUNCTION(later, (), bool, (bool, first), (nullable_bool, second), (utf8, text));
static void slower(const arroyo_udf_call* call, float x) { arroyo_udf_complete_float32(call->token, x); }
ARROYO_UDF_DESCRIBED_ASYNC_FUNCTION(slower, "Slower.", ARROYO_UDF_VOLATILE,
                                    (.options.timeout_ns = ARROYO_UDF_SECOND), nullable_float32, (float32, x));
typedef struct {
  uint64_t rows;
} rows_state;
static const char* rows_update(rows_state* state, int64_t x) {
  (void)x;
  state->rows++;
  return NULL;
}
static const char* rows_merge(rows_state* state, const rows_state* other) {
  state->rows += other->rows;
  return NULL;
}
static const char* rows_finish(const rows_state* state, uint64_t* out) {
  *out = state->rows;
  return NULL;
}
ARROYO_UDF_AGGREGATE(rows, uint64, (int64, x));
ARROYO_UDF_PLUGIN(same, later, slower, rows);
"""


@pytest.mark.parametrize("standard", ["c11", "c17", "gnu11"])
def test_async_plugins_compile_without_a_warning(plain_cc, standard):
    plain_cc(ASYNC, f"-std={standard}", *STRICT)


@pytest.mark.parametrize("standard", ["c11", "c17", "c++17"])
@pytest.mark.parametrize(
    "source",
    [
        '#include "arroyo_udf.h"\nextern int one;',
        '#include "arroyo_udf.h"\n#include "arroyo_udf.h"\nextern int one;',
        '#include "arroyo_udf_plugin.h"\nextern int one;',
        '#include "arroyo_udf.h"\n#include "arroyo_udf_plugin.h"\nextern int one;',
        PLUGIN,
    ],
    ids=["alone", "twice", "helpers", "helpers_second", "plugin"],
)
def test_compiles_without_a_warning(plain_cc, standard, source):
    plain_cc(source, f"-std={standard}", *STRICT, cpp=standard.startswith("c++"))


def test_plugin_compiled_as_cpp_exports_the_table(plain_cc, open_plugin):
    library = plain_cc(PLUGIN, "-std=c++17", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Werror", cpp=True)
    steps = ["longest.update", "longest.merge", "longest.finish"]
    assert list(open_plugin(library).numbers) == ["length", "longest", "either", "halves", *steps]


def test_the_sample_compiles(plain_cc):
    sample = re.search(r"SAMPLE .*?\n \*\n(.*?)\n \*\n", HEADER.read_text(), re.DOTALL)
    assert sample is not None
    lines = [line.removeprefix(" *") for line in sample[1].splitlines()]
    before = """
#include <dlfcn.h>
#include "arroyo_udf.h"
int next(struct ArrowArray* batch);
int failed(arroyo_udf_error* error);
void take(struct ArrowArray* results, const struct ArrowSchema* schema);
int host(const char* path);
int host(const char* path) {
"""
    plain_cc(before + "\n".join(lines) + "\n}\n", "-std=c11", *STRICT)


def test_span_for_cffi_has_no_preprocessor_lines():
    span = re.search(r"/\* cffi: begin \*/(.*)/\* cffi: end \*/", HEADER.read_text(), re.DOTALL)
    assert span is not None
    assert [line for line in span[1].splitlines() if line.lstrip().startswith("#")] == []
