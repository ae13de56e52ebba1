"""Pipelines with Python functions, whose calls are in flight while epochs are taken."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import inflight
from copies import FIRST, SECOND, Files, bring, description, numbers_of, of_parts, of_table

from arroyo_udf_plugin import build
from arroyo_udf_plugin.engine.execution.planned import PlannedPipeline
from arroyo_udf_plugin.engine.pipeline.document import pipeline_of
from arroyo_udf_plugin.engine.pipeline.plan import plan
from arroyo_udf_plugin.testing import Phase, Scenario
from arroyo_udf_plugin.testing.scenario import Opened

Described = Mapping[str, Any]


@functools.cache
def _plugin() -> str:
    return str(build(Path(__file__).with_name("functions.py")))


def _called(call: str, **options: Any) -> Described:
    return {"name": call.partition(" ")[0], "plugin": _plugin(), "calls": [call], **options}


def _gated(described: Callable[[int], Described]) -> Opened:
    """Opens pipelines with a gate for each. described: one with so many slices."""

    @contextlib.contextmanager
    def opened(width: int) -> Iterator[PlannedPipeline]:
        with contextlib.closing(plan(pipeline_of(described(width)))) as planned:
            inflight.current = gate = inflight.Gate()
            (input,) = planned.inputs
            try:
                yield dataclasses.replace(
                    planned, inputs=[dataclasses.replace(input, source=inflight.Gated(input.source, gate))]
                )
            finally:
                gate.open()

    return opened


def _checked(shown: Callable[[], list[Any]]) -> Callable[[], list[Any]]:
    """With a look at the idempotency keys of all calls so far."""

    def checked() -> list[Any]:
        inflight.check_keys()
        return shown()

    return checked


def calls(folder: Path, call: str, factor: int) -> Scenario:
    """A sync function, then an async one. factor: of its result."""
    sink = {"type": "table", "uri": f"sqlite:{folder / 'rows.db'}", "table": "rows"}
    operators = [_called("more = plus(n)"), _called(f"result = {call}(more)")]

    def phase(first: int, files: Files, numbers: Sequence[int]) -> Phase:
        def prepare() -> None:
            inflight.keys.clear()
            bring(folder, first, files)

        return Phase(prepare, [(n, n + 1, factor * (n + 1)) for n in numbers])

    return Scenario(
        name=f"calls of {call}",
        folder=folder,
        opened=_gated(lambda width: description(folder, width, str(folder / "state"), sink) | {"operators": operators}),
        shown=_checked(lambda: of_table(folder / "rows.db", "n, more, result")),
        phases=[
            phase(0, FIRST, numbers_of(FIRST)),
            phase(len(FIRST), SECOND, numbers_of(FIRST, SECOND)),
        ],
        place=str(folder / "state"),
    )


# Minutes. No row is late, in whichever slice: a file lags at most 2 minutes behind those before it.
MINUTES: Files = ([1, 2, 8], [11, 9, 14], [16, 21], [31])
WIDTH = 10


def calls_and_windows(folder: Path) -> Scenario:
    """An unordered function in front of windows, another one behind them, and both have calls in flight."""
    windows = {
        "type": "windows",
        "name": "windows",
        "time": "at",
        "width": f"{WIDTH}min",
        "aggregates": {"n": "count(*)", "s": "sum(tenfold)"},
    }
    start = "CAST(date_part('epoch', \"window\".start) AS BIGINT) / 60 % 1440"
    operators = [
        _called("tenfold = held(n)"),
        windows,
        _called("negative = in_order(s)"),
        {"type": "sql", "name": "shown", "select": {"start": start, "n": "n", "s": "s", "negative": "negative"}},
    ]
    sink = {"type": "table", "uri": f"sqlite:{folder / 'rows.db'}", "table": "rows", "key": ["start"]}
    source = {"types": {"n": "int64", "at": "datetime"}}

    def described(width: int) -> Described:
        found = description(folder, width, str(folder / "state"), sink, **source)
        return found | {"operators": operators, "event_time": {"column": "at", "lateness": "2min"}}

    def prepare() -> None:
        inflight.keys.clear()
        rows = [[f"{minute},2020-01-01 00:{minute:02}:00" for minute in file] for file in MINUTES]
        bring(folder, 0, rows, "n,at")

    in_windows = [
        [n for n in numbers_of(MINUTES) if start <= n < start + WIDTH]
        for start in range(0, max(numbers_of(MINUTES)) + 1, WIDTH)
    ]
    sums = [(WIDTH * place, len(own), 10 * sum(own)) for place, own in enumerate(in_windows) if own]
    return Scenario(
        name="calls and windows",
        folder=folder,
        opened=_gated(described),
        shown=_checked(lambda: of_table(folder / "rows.db", "start, n, s, negative")),
        phases=[Phase(prepare, [(start, n, s, -s) for start, n, s in sums])],
        place=str(folder / "state"),
    )


def replayed(folder: Path) -> Scenario:
    """Rows that fail; their letters are replayed when the function is mended; then there are more rows."""
    operators = [_called("tenfold = fragile(n)", on_error="dead_letter")]
    sink = {"type": "parts", "path": str(folder / "out"), "format": "jsonl"}
    letters = {"type": "parts", "path": str(folder / "dead"), "format": "csv"}

    def described(width: int) -> Described:
        found = description(folder, width, str(folder / "state"), sink)
        return found | {"operators": operators, "dead_letters": letters}

    def phase(first: int, files: Files, is_mended: bool, is_replay: bool, numbers: Sequence[int]) -> Phase:
        def prepare() -> None:
            inflight.is_mended = is_mended
            inflight.keys.clear()
            bring(folder, first, files)

        return Phase(prepare, numbers, is_replay)

    every = numbers_of(FIRST)
    return Scenario(
        name="replayed dead letters",
        folder=folder,
        opened=_gated(described),
        shown=_checked(lambda: of_parts(folder / "out")),
        phases=[
            phase(0, FIRST, False, False, [n for n in every if n % 3]),
            phase(len(FIRST), (), True, True, every),
            phase(len(FIRST), SECOND, True, False, numbers_of(FIRST, SECOND)),
        ],
        place=str(folder / "state"),
    )
