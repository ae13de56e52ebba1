"""Async Python functions against the same work without a plugin; async_rows.py measures."""

from __future__ import annotations

import sys
from statistics import median
from typing import Any

import pytest

from async_rows import ROWS
from conftest import HERE, LOOPS, figures, note, plugin_path

# Limits of the ratio, on asyncio's own loop: "at most 1.35 times slots", "at least 20 times faster than tasks". The
# lines for uvloop, handed and workers have no goal; they show where time goes.
GOALS = {
    ("at_once", "slots"): 1.35,
    ("at_once", "tasks"): 1 / 20,
    ("sleep_zero", "slots"): 1.2,
    ("sleep_zero", "tasks"): 1 / 4.5,
    ("sleep_ms", "slots"): 1.1,
    ("sleep_ms", "tasks"): 1 / 2.6,
}


@pytest.mark.parametrize("reference", ["slots", "handed", "workers", "tasks"])
@pytest.mark.parametrize("name", ["at_once", "sleep_zero", "sleep_ms"])
@pytest.mark.parametrize("loop", LOOPS)
def test_async(benchmark: Any, loop: str, name: str, reference: str) -> None:
    """The program runs once for all references."""
    command = (sys.executable, HERE / "async_rows.py", plugin_path(".py"), name)
    found = benchmark.pedantic(figures, command, {"loop": loop}, rounds=1)
    subject = median(found["plugin"])
    goal = GOALS.get((name, reference)) if loop == "asyncio" else None
    ratio = subject / median(found[reference])
    note(benchmark, f"{name}: async Python, {loop}", subject / ROWS * 1e9, "ns/row", reference, ratio, goal)
