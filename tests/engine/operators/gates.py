"""Functions that wait until a test lets them go on, row by row, and operators made of them.

The plugin runs in the interpreter of the tests, and so finds this module.
"""

from __future__ import annotations

import asyncio
import collections
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from arroyo_udf_plugin.engine.connectors.source import Rows
from arroyo_udf_plugin.engine.operators.blocks import Block, Columns
from arroyo_udf_plugin.engine.operators.calls import Call, CallPlan
from arroyo_udf_plugin.engine.operators.operator import Operator
from arroyo_udf_plugin.host.policy import Action, Policy

PATIENCE = 20  # seconds; only a failing test waits so long
SCHEMA = pa.schema([("x", pa.int64()), ("tag", pa.dictionary(pa.int8(), pa.string()))])
NAMES = pa.array(["even", "odd"])

SOURCE = """
import asyncio

import gates

from arroyo_udf_plugin import udf


async def passed(x):
    await gates.GATES.passed(x)
    if x % 7 == 3:
        raise ValueError(f"no {x}")
    return 2 * x


@udf(ordered=True, allowed_in_flight=1000)
async def in_order(x: int) -> int:
    return await passed(x)


@udf(ordered=False, allowed_in_flight=1000)
async def as_done(x: int) -> int:
    return await passed(x)


@udf(allowed_in_flight=2, max_rows=4)
async def narrow(x: int) -> int:
    return await passed(x)


@udf
def plus(x: int) -> int:
    return x + 1
"""


class Gates:
    """calls: how often a row's call has begun."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[int, list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]]] = {}
        self._open: set[int] = set()
        self.calls: collections.Counter[int] = collections.Counter()

    async def passed(self, x: int) -> None:
        with self._lock:
            self.calls[x] += 1
            if x in self._open:
                return
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(x, []).append((asyncio.get_running_loop(), future))
        await future

    def open(self, rows: Iterable[int]) -> None:
        with self._lock:
            for x in rows:
                self._open.add(x)
                for loop, future in self._waiting.pop(x, []):
                    loop.call_soon_threadsafe(_let_go, future)


def _let_go(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


GATES = Gates()


def new_gates() -> Gates:
    global GATES
    GATES = Gates()
    return GATES


def block(rows: Sequence[int], first: int = 1) -> Block:
    tags = pa.DictionaryArray.from_arrays(pa.array([x % 2 for x in rows], pa.int8()), NAMES)
    batch = pa.RecordBatch.from_arrays([pa.array(rows, pa.int64()), tags], schema=SCHEMA)
    return Columns(SCHEMA).block(Rows("numbers", first, batch))


def operator(
    plugin: Any, functions: Sequence[str], action: Action = "null", key: bytes | None = None, **options: Any
) -> Operator:
    """Each function takes the result of the one before it; the first takes x."""
    names = ["x", *(f"y{i}" for i in range(len(functions)))]
    calls = [Call.of(plugin[name], [names[i]], names[i + 1]) for i, name in enumerate(functions)]
    plan = CallPlan(calls, Columns(SCHEMA), typed=True)
    return Operator("test", plan.stages, Policy(error=action, timeout=action), options, key=key)


def build(build_plugin: Any) -> Path:
    path: Path = build_plugin(SOURCE, name="gated")
    return path
