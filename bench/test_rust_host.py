"""The crate arroyo-udf-host: what a call with one row costs over the same call of the plugin's table."""

from __future__ import annotations

import functools
import subprocess
from typing import Any

import pytest

from arroyo_udf_plugin import build
from conftest import HERE, OUT, note

CRATE = HERE.parent / "native" / "host"
WAYS = {"an array in, an array out": 200.0, "Arrow columns in and out": None}


@functools.cache
def _spent(language: str) -> list[float]:
    """ns of a call: of the table, by the crate with arrays, by the crate with columns (see benches/calls.rs)."""
    folder = OUT / f"rust-host-{language}"
    folder.mkdir(parents=True, exist_ok=True)
    library = build(HERE / f"udf.{language}", folder / "libudf.so")
    target = str(HERE.parent / "build" / "example_host")
    command = ["cargo", "bench", "--quiet", "--locked", "--target-dir", target, "--bench", "calls", "--"]
    done = subprocess.run([*command, str(library), "mph"], cwd=CRATE, check=True, stdout=subprocess.PIPE, text=True)
    return [float(line) for line in done.stdout.split()]


@pytest.mark.parametrize("language", ["c", "rs"])
@pytest.mark.parametrize("way", WAYS)
def test_call(benchmark: Any, language: str, way: str) -> None:
    raw, *with_crate = benchmark.pedantic(lambda: _spent(language), rounds=1)
    over = with_crate[list(WAYS).index(way)] - raw
    note(benchmark, f"Rust host over the table, {language}: {way}", over, "ns/call", None, None, WAYS[way])
