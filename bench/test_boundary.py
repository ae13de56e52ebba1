"""The boundary as an engine in C sees it: bench/c/boundary.c loads the plugins and times itself."""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest

from conftest import BATCH_ROWS, compiled, figures, note, plugin_path

RUNS = 5  # of the program; each run prints medians


@pytest.mark.parametrize(("language", "suffix"), [("C", ".c"), ("Rust", ".rs")])
def test_native_function(benchmark: Any, language: str, suffix: str) -> None:
    """`run` over 8,192 rows of mph, against a plain C loop over the same data."""
    command = (compiled("boundary"), "sync", plugin_path(suffix))
    found = benchmark.pedantic(figures, command, {"runs": RUNS}, rounds=1)
    call, ratio = median(found["call"]), median(found["ratio"])
    note(benchmark, f"mph: {language}, from a C host", call / BATCH_ROWS, "ns/row", "C loop", ratio, 1.2)


@pytest.mark.parametrize(("language", "suffix"), [("C", ".c"), ("Rust", ".rs")])
def test_checks_of_texts(benchmark: Any, language: str, suffix: str) -> None:
    """`run` over 8,192 texts, whose offsets and UTF-8 are checked, against a plain C loop that believes them."""
    command = (compiled("boundary"), "text", plugin_path(suffix))
    found = benchmark.pedantic(figures, command, {"runs": RUNS}, rounds=1)
    call, ratio = median(found["call"]), median(found["ratio"])
    note(
        benchmark,
        f"hash of a text: {language}, from a C host",
        call / BATCH_ROWS,
        "ns/row",
        "C loop, no checks",
        ratio,
        None,
    )


def test_send(benchmark: Any) -> None:
    """One `send` of one row to an async Python function."""
    command = (compiled("boundary"), "send", plugin_path(".py"), "at_once")
    found = benchmark.pedantic(figures, command, {"runs": RUNS}, rounds=1)
    note(benchmark, "one send from a C host, one row", median(found["send"]), "ns/call", None, None, 70.0)
