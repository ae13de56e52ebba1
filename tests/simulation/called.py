"""Pipelines with Python functions, whose calls are in flight while epochs are taken."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gates
from copies import FIRST, SECOND, bring, description, numbers_of, of_table

from arroyo_udf_plugin import build
from arroyo_udf_plugin.engine.planned import Planned
from arroyo_udf_plugin.pipeline.document import pipeline_of
from arroyo_udf_plugin.pipeline.plan import plan
from arroyo_udf_plugin.testing import Phase, Scenario


@functools.cache
def _plugin() -> str:
    return str(build(Path(__file__).with_name("functions.py")))


def calls(folder: Path, call: str, factor: int, has_keys: bool = False) -> Scenario:
    """A sync function, then an async one. factor: of its result. has_keys: whether it tells its idempotency keys."""
    sink = {"type": "table", "uri": f"sqlite:{folder / 'rows.db'}", "table": "rows"}
    operators: list[Mapping[str, Any]] = [
        {"name": "first", "plugin": _plugin(), "calls": ["more = plus(n)"]},
        {"name": "second", "plugin": _plugin(), "calls": [f"result = {call}(more)"]},
    ]

    @contextlib.contextmanager
    def opened(width: int) -> Iterator[Planned]:
        pipeline = pipeline_of(description(folder, width, str(folder / "state"), sink) | {"operators": operators})
        with contextlib.closing(plan(pipeline)) as planned:
            gates.current = gate = gates.Gate()
            (input,) = planned.inputs
            try:
                yield dataclasses.replace(
                    planned, inputs=[dataclasses.replace(input, source=gates.Gated(input.source, gate))]
                )
            finally:
                gate.open()

    def shown() -> list[Any]:
        rows = of_table(folder / "rows.db", "n, more, result")
        if has_keys:
            check_keys()
        return rows

    def phase(first: int, files: Any, numbers: list[int]) -> Phase:
        def prepare() -> None:
            gates.keys.clear()
            bring(folder, first, files)

        return Phase(prepare, [(n, n + 1, factor * (n + 1)) for n in numbers])

    return Scenario(
        name=f"calls of {call}",
        folder=folder,
        opened=opened,
        shown=shown,
        phases=[
            phase(0, FIRST, numbers_of(FIRST)),
            phase(len(FIRST), SECOND, numbers_of(FIRST, SECOND)),
        ],
        place=str(folder / "state"),
    )


def check_keys() -> None:
    """R10: a row has one key in all engines, and no other row has it."""
    several = {row: keys for row, keys in gates.keys.items() if len(keys) > 1}
    assert not several, f"rows were called with several keys: {several}"
    every = [key for keys in gates.keys.values() for key in keys]
    assert len(set(every)) == len(every), f"a key belongs to several rows: {dict(gates.keys)}"
