"""Async functions in a host in C: c/runtime.c starts them and measures. Also the GIL in a Python host."""

from __future__ import annotations

import sys
from statistics import median
from typing import Any

import pytest

from conftest import HERE, LOOPS, compiled, figures, note, plugin_path

RUNS = 3  # of a program that prints medians: a single run may meet a busy moment
# The name in the line, the plugin's suffix, the event loop.
ASYNC = [
    *(pytest.param(f"Python, {loop}", ".py", loop, id=loop) for loop in LOOPS),
    pytest.param("Rust", ".rs", None, id="rust"),
]

# Limits of p50 as a ratio, and of p99 in microseconds.
LATENCY = {"asyncio": (4.5, 60.0), "uvloop": (4.0, 60.0), "Rust": (2.5, 25.0)}


@pytest.mark.parametrize("order", ["ordered", "unordered"])
def test_rust_rows(benchmark: Any, order: str) -> None:
    """R5: the cost of a row that never waits; ordered and unordered runs take turns."""
    found = benchmark.pedantic(figures, (compiled("runtime"), "rows", plugin_path(".rs")), rounds=1)
    note(benchmark, f"at_once: async Rust, {order}", median(found[order]), "ns/row", None, None, 140.0)


def test_order_costs_nothing(benchmark: Any) -> None:
    """The difference of the medians, compared with the wider of the two ranges."""
    found = benchmark.pedantic(figures, (compiled("runtime"), "rows", plugin_path(".rs")), rounds=1)
    ordered, unordered = found["ordered"], found["unordered"]
    difference = median(ordered) - median(unordered)
    spread = max(max(values) - min(values) for values in (ordered, unordered))
    against = f"spread, {spread:.1f}"
    note(
        benchmark,
        "at_once: async Rust, ordered - unordered",
        difference,
        "ns/row",
        against,
        abs(difference) / spread,
        1.0,
    )


@pytest.mark.parametrize("part", ["p50", "p99"])
@pytest.mark.parametrize(("language", "suffix", "loop"), ASYNC)
def test_latency(benchmark: Any, language: str, suffix: str, loop: str | None, part: str) -> None:
    """One row while all threads sleep: from `send` until its result is drained."""
    command = (compiled("runtime"), "latency", plugin_path(suffix))
    found = benchmark.pedantic(figures, command, {"loop": loop, "runs": RUNS}, rounds=1)
    value, name = median(found[part]), f"latency of a row, {part}: {language}"
    p50, p99 = LATENCY[loop or language]
    if part == "p50":
        ratio = median(own / floor for own, floor in zip(found["p50"], found["floor_p50"], strict=True))
        note(benchmark, name, value, "us", "futex", ratio, p50)
    else:
        note(benchmark, name, value, "us", None, None, p99)


@pytest.mark.parametrize(("what", "unit"), [("switches", "switches"), ("cpu", "us")])
@pytest.mark.parametrize("loop", LOOPS)
def test_idle(benchmark: Any, loop: str, what: str, unit: str) -> None:
    """A Python and a Rust function, started, without rows, for 10 seconds."""
    command = (compiled("runtime"), "idle", "10", plugin_path(".py"), plugin_path(".rs"))
    found = benchmark.pedantic(figures, command, {"loop": loop}, rounds=1)
    note(benchmark, f"idle for 10 s, {what}: {loop} and Rust", median(found[what]), unit, None, None, 0.0)


@pytest.mark.parametrize(("language", "suffix", "loop"), ASYNC)
def test_native_memory(benchmark: Any, language: str, suffix: str, loop: str | None) -> None:
    """R7: 100,000 rows run at once; bytes from malloc. In Rust, this includes the author's future."""
    command = (compiled("runtime"), "memory", plugin_path(suffix))
    found = benchmark.pedantic(figures, command, {"loop": loop}, rounds=1)
    goal = 260.0 if loop is None else 220.0
    note(benchmark, f"native memory of a running row: {language}", median(found["native"]), "B/row", None, None, goal)


def test_all_memory(benchmark: Any) -> None:
    """The same with all of Python's memory: Task, coroutine and the future it awaits."""
    (held,) = figures(sys.executable, HERE / "held.py")["held"]
    command = (compiled("runtime"), "memory", plugin_path(".py"))
    found = benchmark.pedantic(figures, command, {"loop": "asyncio"}, rounds=1)
    value = median(found["resident"])
    note(benchmark, "all memory of a running row: Python, asyncio", value, "B/row", "held", value / held, 1.6)


@pytest.mark.parametrize("what", ["call", "row"])
@pytest.mark.parametrize("loop", LOOPS)
def test_gil(benchmark: Any, loop: str, what: str) -> None:
    """A sync call beside an event loop that never sleeps; a row beside an endless series of sync calls."""
    command = (compiled("runtime"), "handover", plugin_path(".py"))
    found = benchmark.pedantic(figures, command, {"loop": loop, "runs": RUNS}, rounds=1)
    assert min(found["loop_share"] + found["calls_share"]) > 0.1, "nobody held the GIL"
    name = f"GIL in a C host, a {what} beside a busy {'loop' if what == 'call' else 'call'}, p99: {loop}"
    note(benchmark, name, median(found[f"{what}_p99"]), "us", None, None, 1000.0)


@pytest.mark.parametrize(("interval", "goal"), [(0.005, 12_000.0), (0.0002, 1500.0)])
@pytest.mark.parametrize("loop", LOOPS)
def test_gil_in_python(benchmark: Any, loop: str, interval: float, goal: float) -> None:
    """The thread waits for the GIL after its sleep and in the call. interval: the switch interval, in seconds."""
    command = (sys.executable, HERE / "gil.py", plugin_path(".py"), str(interval))
    found = benchmark.pedantic(figures, command, {"loop": loop, "runs": RUNS}, rounds=1)
    name = f"GIL in a Python host, switching after {interval * 1e3:g} ms, a call beside a busy loop, p99: {loop}"
    note(benchmark, name, median(found["p99"]), "us", None, None, goal)
