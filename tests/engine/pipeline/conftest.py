"""A folder with rows and a plugin, in which each test runs."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

BuildPlugin = Callable[..., Path]

FUNCTIONS = """
import asyncio
import pathlib
import time

from arroyo_udf_plugin import udf

@udf
def mph(miles: int, minutes: int) -> float:
    return miles * 60 / minutes

@udf
async def plane(tail: str) -> str:
    return tail.lower()

@udf
def joined(a: str, b: str, times: int) -> str:
    return (a + b) * times

@udf
async def waits(tail: str) -> str:
    pathlib.Path("called").touch()
    await asyncio.sleep(3600)
    return tail

@udf
async def waits_for_a_file(tail: str) -> str:
    pathlib.Path("called").touch()
    while not pathlib.Path("go").exists():
        await asyncio.sleep(0.01)
    return tail

@udf
def blocks(tail: str) -> str:
    pathlib.Path("called").touch()
    time.sleep(3600)  # the case itself: native code, which no signal handler of Python interrupts
    return tail
"""

ROWS = pa.table(
    {
        "tail": ["N1", "N2", "N3"],
        "miles": pa.array([100, 200, 300], pa.int64()),
        "minutes": pa.array([60, 0, 60], pa.int64()),
        "departure": [datetime.datetime(2013, 1, day, tzinfo=datetime.UTC) for day in (1, 2, 3)],
    }
)


@pytest.fixture(scope="session")
def plugin(build_plugin: BuildPlugin) -> Path:
    return build_plugin(FUNCTIONS, name="functions")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plugin: Path) -> Path:
    """With flights.parquet, and the plugin as functions.so."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(ROWS, tmp_path / "flights.parquet")
    (tmp_path / "functions.so").symlink_to(plugin)
    return tmp_path
