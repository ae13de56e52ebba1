"""The context of a batch, in plugins of three languages: its rows' deadline, and trace parent and keys of their calls.
Its rules under the clock are tested in native/runtime/tests/batch_context.rs."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from arroyo_udf_plugin import build
from arroyo_udf_plugin._cdef import ffi

OK, INVALID_ARGUMENT, RESULTS, TIMED_OUT = 0, 16, 1, 2
FOREVER_NS = 2**64 - 1
LINEAGE = bytes(range(1, 17))
TRACE = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SOURCES = {
    ".py": """
import asyncio
from arroyo_udf_plugin import call_info, call_infos, udf
@udf
async def traced(x: int) -> str | None:
    return call_info().trace_parent
@udf(blocking=True)
def traced_blocking(x: int) -> str | None:
    return call_info().trace_parent
@udf(retry_on="error", max_attempts=2, backoff=0.001)
async def key(x: int) -> str:
    if call_info().attempt == 1:
        raise ValueError("again")
    return call_info().idempotency_key.hex()
@udf(blocking=True)
def key_blocking(x: int) -> str:
    return call_info().idempotency_key.hex()
@udf(batch_size=4)
async def key_batched(x: list[int]) -> list[str]:
    return [info.idempotency_key.hex() for info in call_infos()]
@udf
async def never(x: int) -> int:
    return await asyncio.Event().wait()
""",
    ".rs": """
use arroyo_udf_plugin::{call_info, udf};
#[udf]
async fn traced(_x: i64) -> Option<String> { call_info().trace_parent().map(str::to_owned) }
#[udf]
async fn key(_x: i64) -> String { call_info().idempotency_key().iter().map(|byte| format!("{byte:02x}")).collect() }
#[udf]
async fn never(_x: i64) -> i64 { std::future::pending().await }
""",
    ".c": """
#include "arroyo_udf_async.h"
static void traced(const arroyo_udf_call* call, int64_t x) {
  if (call->trace_parent == NULL)
    arroyo_udf_complete_null(call->token);
  else
    arroyo_udf_complete_utf8(call->token, call->trace_parent, strlen(call->trace_parent));
}
ARROYO_UDF_ASYNC_FUNCTION(traced, (), nullable_utf8, (int64, x));
static void key(const arroyo_udf_call* call, int64_t x) {
  char text[49];
  for (int i = 0; i < 24; i++) snprintf(text + 2 * i, 3, "%02x", call->idempotency_key[i]);
  arroyo_udf_complete_utf8(call->token, text, 48);
}
ARROYO_UDF_ASYNC_FUNCTION(key, (), utf8, (int64, x));
static void cancel(void* context, arroyo_udf_token token) { arroyo_udf_complete_cancelled(token); }
static void never(const arroyo_udf_call* call, int64_t x) {}
ARROYO_UDF_ASYNC_FUNCTION(never, (.cancel = cancel), int64, (int64, x));
ARROYO_UDF_PLUGIN(traced, key, never);
""",
}


class Started:
    """A started function of a raw plugin."""

    def __init__(self, plugin: Any, function: str) -> None:
        self.plugin = plugin
        handle = ffi.new("arroyo_udf_handle *")
        options = {"size": ffi.sizeof("arroyo_udf_options"), "timeout_ns": FOREVER_NS, "lineage": LINEAGE}
        started = plugin.call("start", plugin.numbers[function], ffi.new("arroyo_udf_options *", options), handle)
        assert started == (OK, "")
        self.handle = handle[0]

    def send(self, first: int, rows: int, **context: Any) -> tuple[int, str]:
        arguments = ffi.new("struct ArrowArray *")
        batch = pa.StructArray.from_arrays([pa.array(range(rows))], fields=[pa.field("x", pa.int64())])
        batch._export_to_c(int(ffi.cast("uintptr_t", arguments)))
        struct = ffi.NULL
        if context:
            size = {"size": ffi.sizeof("arroyo_udf_batch_context")}
            struct = ffi.new("arroyo_udf_batch_context *", size | context)
        answer: tuple[int, str] = self.plugin.call("send", self.handle, first, arguments, struct)
        if answer[0]:
            assert arguments.release, "not taken"
            arguments.release(arguments)
        return answer

    def drain(self, rows: int) -> list[dict[str, Any]]:
        drained: list[dict[str, Any]] = []
        while len(drained) < rows:
            assert self.plugin.call("wait", self.handle, RESULTS, 60 * 10**9) == (OK, "")
            results, schema = ffi.new("struct ArrowArray *"), ffi.new("struct ArrowSchema **")
            if self.plugin.call("drain_results", self.handle, 0, results, schema)[0] == OK:
                pointer = int(ffi.cast("uintptr_t", results))
                drained += pa.Array._import_from_c(pointer, self.plugin.type(schema[0])).to_pylist()
        return drained

    def release(self) -> None:
        assert self.plugin.call("release", self.handle) == (OK, "")


@pytest.fixture(scope="module", params=SOURCES)
def plugin(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, open_plugin: Any) -> Any:
    source: Path = tmp_path_factory.mktemp("batch_context") / f"one{request.param}"
    source.write_text(SOURCES[request.param])
    return open_plugin(build(source))


def test_a_call_sees_the_trace_parent_of_its_batch(plugin) -> None:
    for function in sorted({"traced", "traced_blocking"} & plugin.numbers.keys()):
        started = Started(plugin, function)
        trace = ffi.new("char[]", TRACE)
        assert started.send(0, 2, trace_parent=trace) == (OK, "")
        trace[0] = b"X"  # it was copied
        assert started.send(2, 1) == (OK, "")
        assert started.send(3, 1, trace_parent=ffi.NULL) == (OK, "")
        assert [row["value"] for row in started.drain(4)] == [TRACE.decode()] * 2 + [None] * 2
        started.release()


@pytest.mark.parametrize("wrong", [b"", b"two words", b"new\nline", "\u00e9".encode(), b"x" * 256])
def test_a_trace_parent_that_is_not_visible_ascii_is_refused_and_nothing_is_taken(plugin, wrong) -> None:
    started = Started(plugin, "traced")
    status, text = started.send(0, 1, trace_parent=ffi.new("char[]", wrong))
    assert status == INVALID_ARGUMENT
    assert "one.traced: batch context: trace_parent is not a text of 1 to 255 visible ASCII characters" in text
    assert started.send(0, 1) == (OK, ""), "the id was not used up"
    started.drain(1)
    started.release()


def test_calls_have_the_keys_that_came_with_their_rows(plugin) -> None:
    """R10: and lineage and id where none came, as from a host of the first version, which does not know the field."""
    for function in sorted({"key", "key_blocking", "key_batched"} & plugin.numbers.keys()):
        started = Started(plugin, function)
        given = bytes(range(3 * 24))
        keys = ffi.new("uint8_t[]", given)
        assert started.send(0, 3, idempotency_keys=keys) == (OK, "")
        ffi.memmove(keys, bytes(len(given)), len(given))  # they were copied
        assert started.send(3, 1) == (OK, "")
        assert started.send(4, 1, deadline_ns=3600 * 10**9) == (OK, "")
        assert started.send(5, 1, idempotency_keys=keys, size=24) == (OK, "")
        expected = [given[row * 24 : row * 24 + 24] for row in range(3)]
        expected += [LINEAGE + row.to_bytes(8, "big") for row in (3, 4, 5)]
        found = sorted((row["id"], row["value"]) for row in started.drain(6))
        assert found == [(row, key.hex()) for row, key in enumerate(expected)]
        started.release()


def test_rows_time_out_at_the_deadline_of_their_batch(plugin) -> None:
    """Neither the function nor its options have any limit of time."""
    started = Started(plugin, "never")
    assert started.send(0, 3, deadline_ns=1_000_000) == (OK, "")
    assert [row["outcome"] for row in started.drain(3)] == [TIMED_OUT] * 3
    started.release()
