"""The boundary as an engine in C sees it: bench/c/boundary.c loads the plugins and times itself."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import HERE, OUT, note, plugin_path

RUNS = 5  # of the program; each takes medians itself


@pytest.fixture(scope="session")
def boundary() -> Callable[..., dict[str, float]]:
    """Runs the program; answers its lines as a dict, each the median over RUNS runs."""
    program = OUT / "boundary"
    include = HERE.parent / "native" / "include"
    compiler = os.environ.get("CC", "cc").split()
    flags = ["-O3", "-ffp-contract=off", f"-I{include}", str(HERE / "c" / "boundary.c"), "-o", str(program), "-ldl"]
    subprocess.run([*compiler, *flags], check=True)

    def run(*arguments: str | Path) -> dict[str, float]:
        lines: dict[str, list[float]] = {}
        for _ in range(RUNS):
            done = subprocess.run([program, *arguments], check=True, stdout=subprocess.PIPE, text=True)
            for line in map(json.loads, done.stdout.splitlines()):
                lines.setdefault(line["name"], []).append(line["value"])
        return {name: sorted(values)[RUNS // 2] for name, values in lines.items()}

    return run


@pytest.mark.parametrize(("language", "suffix"), [("C", ".c"), ("Rust", ".rs")])
def test_native_function(benchmark: Any, boundary: Callable[..., dict[str, float]], language: str, suffix: str) -> None:
    """8,192 rows of mph through `run`, against a plain C loop over the same data."""
    plugin = plugin_path(suffix)
    found = benchmark.pedantic(boundary, ("sync", plugin), rounds=1)
    note(benchmark, f"mph: {language}, from a C host", found["call"] / 8192, "ns/row", "C loop", found["ratio"], 1.2)


def test_send(benchmark: Any, boundary: Callable[..., dict[str, float]]) -> None:
    """One `send` of one row to an async Python function."""
    plugin = plugin_path(".py")
    found = benchmark.pedantic(boundary, ("send", plugin, "at_once"), rounds=1)
    note(benchmark, "one send from a C host, one row", found["send"], "ns/call", None, None, 100.0)
