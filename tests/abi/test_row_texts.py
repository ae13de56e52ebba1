"""The error of a row has one form in every language and kind of function: "plugin.function, row 7: text" (F4)."""

from typing import Any

import pyarrow as pa
import pytest

from arroyo_udf_plugin import Function, Plugin, build, load

SOURCES = {
    ".py": """
import pyarrow as pa
from arroyo_udf_plugin import udf
def odd(word: str) -> int:
    if word == "odd":
        raise ValueError("is odd")
    return len(word)
@udf
def sync(word: str) -> int:
    return odd(word)
@udf(vectorized=True)
def vectorized(word: pa.StringArray) -> pa.Int64Array:
    return pa.array([odd(one) for one in word.to_pylist()])
@udf
def through_pyarrow(word: str) -> list[int]:
    return [odd(word)]
@udf
async def later(word: str) -> int:
    return odd(word)
@udf(batch_size=3, allowed_in_flight=1)
async def batched(word: list[str]) -> list[int]:
    return [odd(one) for one in word]
@udf(blocking=True)
def blocking(word: str) -> int:
    return odd(word)
""",
    ".rs": """
use arroyo_udf_plugin::udf;
fn odd(word: &str) -> Result<i64, String> {
    if word == "odd" { Err("is odd".into()) } else { Ok(word.len() as i64) }
}
#[udf]
fn sync(word: &str) -> Result<i64, String> { odd(word) }
#[udf]
fn panics(word: &str) -> i64 { odd(word).unwrap() }
#[udf]
async fn later(word: String) -> Result<i64, String> { odd(&word) }
#[udf(blocking)]
fn blocking(word: String) -> Result<i64, String> { odd(&word) }
""",
    ".c": """
#include "arroyo_udf_async.h"
static bool odd(arroyo_udf_utf8 word) { return word.length == 3 && memcmp(word.data, "odd", 3) == 0; }
static const char* sync(arroyo_udf_utf8 word, int64_t* out) {
  *out = (int64_t)word.length;
  return odd(word) ? arroyo_udf_failure("is %s", "odd") : NULL;
}
ARROYO_UDF_FUNCTION(sync, int64, (utf8, word));
static const char* null(arroyo_udf_utf8 word, int64_t* out) {
  *out = (int64_t)word.length;
  return odd(word) ? arroyo_udf_null : NULL;
}
ARROYO_UDF_FUNCTION(null, int64, (utf8, word));
static void later(const arroyo_udf_call* call, arroyo_udf_utf8 word) {
  if (odd(word))
    arroyo_udf_complete_error(call->token, "is odd");
  else
    arroyo_udf_complete_int64(call->token, (int64_t)word.length);
}
ARROYO_UDF_ASYNC_FUNCTION(later, (), int64, (utf8, word));
ARROYO_UDF_PLUGIN(sync, null, later);
""",
}
WORDS = pa.StringArray.from_buffers(3, pa.py_buffer(b"\0\0\0\0\4\0\0\0\7\0\0\0\10\0\0\0"), pa.py_buffer(b"evenodd\xff"))
"""even, odd, and a text that is not UTF-8."""


@pytest.fixture(scope="module", params=SOURCES)
def plugin(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Plugin:
    source = tmp_path_factory.mktemp("row_texts") / f"one{request.param}"
    source.write_text(SOURCES[request.param])
    return load(build(source))


def errors(function: Function, first: int) -> list[Any]:
    """The errors of the words. Their rows count from `first`, if the function numbers them."""
    if function.kind == "sync":
        texts: list[Any] = function.outcomes(WORDS).field("error").to_pylist()
        return texts
    by_row: dict[int, Any] = {}
    with function.start() as runtime:
        runtime.send(first, WORDS)
        runtime.stop()
        while (batch := runtime.drain_results()) is not None:
            by_row |= {row["id"]: row["error"] for row in batch.to_pylist()}
    return [by_row[first + row] for row in range(3)]


def test_the_error_of_a_row_begins_with_plugin_function_and_row_once(plugin: Plugin) -> None:
    assert plugin.functions
    for function in plugin.functions.values():
        first = 0 if function.kind == "sync" else 70
        even, odd, unreadable = errors(function, first)
        head = f"one.{function.name}, row {first + 1}: "
        assert odd.startswith(head), odd
        assert odd.count(", row ") == 1, odd
        assert "is odd" in odd or "the function answered null" in odd
        assert unreadable.startswith(f"one.{function.name}, row {first + 2}: "), unreadable
        if not function.vectorized:  # which fails as a whole
            assert even is None
            assert ": argument word: " in unreadable
            assert "UTF-8" in unreadable
