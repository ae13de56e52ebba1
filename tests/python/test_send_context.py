"""What the Python host's `send` says of its rows: a deadline, and trace parent and keys of their calls. What plugins of
all languages make of it is tested in tests/abi/test_batch_context.py."""

import asyncio
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from waiting import drained

from arroyo_udf_plugin import Function, InvalidArgument, load

SOURCE = """
import asyncio
from arroyo_udf_plugin import call_info, udf
@udf
async def traced(x: int) -> str | None:
    return call_info().trace_parent
@udf
async def key(x: int) -> str:
    return call_info().idempotency_key.hex()
@udf(timeout=3600)
async def never(x: int) -> int:
    return await asyncio.Event().wait()
"""
TIMED_OUT = 2
X = pa.array([1, 2])


@pytest.fixture(scope="module")
def functions(build_plugin: Callable[..., Path]) -> Any:
    return load(build_plugin(SOURCE, name="contexts")).functions


def test_calls_see_the_trace_parent_of_their_send(functions: dict[str, Function]) -> None:
    with functions["traced"].start() as runtime:
        runtime.send(0, X, trace_parent="one")
        runtime.send_nowait(2, X, trace_parent="another", deadline=3600.0)
        asyncio.run(runtime.send_async(4, X, trace_parent="a-third"))
        runtime.send(6, X)
        runtime.send(8, pa.chunked_array([X, X]), trace_parent="chunks", deadline=math.inf)
        traces = drained(runtime, 12)["value"].to_pylist()
    assert traces == [trace for trace in ("one", "another", "a-third", None, "chunks", "chunks") for _ in X]


def test_calls_have_the_keys_of_their_send(functions: dict[str, Function]) -> None:
    """R10"""
    keys = [bytes(range(first, first + 24)) for first in range(8)]
    of = [keys[first] + keys[first + 1] for first in range(0, 8, 2)]
    with functions["key"].start() as runtime:
        runtime.send(0, X, idempotency_keys=of[0])
        runtime.send_nowait(2, X, idempotency_keys=memoryview(b"x" + of[1])[1:], deadline=3600.0)
        asyncio.run(runtime.send_async(4, pa.chunked_array([X[:1], X[1:]]), idempotency_keys=bytearray(of[2])))
        runtime.send(6, pa.chunked_array([X[:1], X[1:]]), idempotency_keys=of[3], trace_parent="one")
        assert drained(runtime, 8)["value"].to_pylist() == [key.hex() for key in keys]


@pytest.mark.parametrize("how", ["send", "send_nowait", "send_async"])
def test_rows_time_out_at_the_deadline_of_their_send_and_say_so(functions: dict[str, Function], how: str) -> None:
    """R6: the function has a timeout of its own, and the batch's deadline ends the rows."""
    with functions["never"].start() as runtime:
        sent = getattr(runtime, how)(0, X, deadline=0)
        if sent is not None:
            asyncio.run(sent)
        results = drained(runtime, 2)
    assert results["outcome"].to_pylist() == [TIMED_OUT] * 2
    for row, text in enumerate(results["error"].to_pylist()):
        assert text.startswith(f"contexts.never, row {row}: timed out (deadline of its batch)")


@pytest.mark.parametrize(
    "wrong",
    [{"deadline": -1.0}, {"deadline": math.nan}, {"trace_parent": "new\nline"}, {"trace_parent": "zero\0"}]
    + [{"idempotency_keys": keys} for keys in (b"", bytes(47), bytes(72), "x" * 48, 5)]
    + [{"trace_parent": text} for text in ("", "two words", "\u00e9", "x" * 256)],
)
def test_wrong_contexts_are_refused_and_nothing_is_sent(functions: dict[str, Function], wrong: dict[str, Any]) -> None:
    with functions["traced"].start() as runtime:
        with pytest.raises(InvalidArgument, match=rf"contexts\.traced: .*{next(iter(wrong))}"):
            runtime.send(0, X, **wrong)
        assert runtime.statistics().accepted == 0
