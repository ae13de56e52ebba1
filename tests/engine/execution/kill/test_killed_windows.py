"""Engines with windows and joins in several slices are killed with SIGKILL, and the next one has another number of
slices: 2, 3, 1, and so on. Each window leaves once, with all its rows.

Tumbling windows keep parts of aggregates, overlapping ones their rows; a join puts together those that end at the same
time. KILLS, KILL_SEED: see test_kill.py.
"""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_kill import KILLS, MOMENTS, Killing, Rows, rows_of_parts

pytestmark = [pytest.mark.pipelines, pytest.mark.timeout(7200)]

ROWS_OF_FILE = 400
KEYS = 13
SLIDE, WIDTH = 50, 150  # milliseconds, as event times are


class KillingWindows(Killing):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder, folder / "none", {"type": "parts", "path": str(folder / "tumbled")}, str(folder / "state"))
        self._widths = itertools.cycle((2, 3, 1))
        windows: dict[str, Any] = {"type": "windows", "time": "t", "keys": ["k"], "after": "source"}
        join = {
            "type": "join",
            "left": "tumbling",
            "right": "hopping",
            "on": "a.k = b.k",
            "time": "t",
            "select": {"k": "a.k", "n": "a.n", "m": "b.m", "ends": "a.ends"},
        }
        ended = {"k": "k", "n": "n", "s": "s", "t": "t", "ends": "CAST(w.\"end\" AS BIGINT) / 1000000"}
        del self._description["dead_letters"]
        self._description |= {
            "event_time": {"column": "t"},
            "operators": [
                windows
                | {"name": "tumbled", "width": SLIDE / 1000, "column": "w", "aggregates": {"n": "count(*)", "s": "sum(x)"}},
                {"type": "sql", "name": "tumbling", "after": "tumbled", "select": ended},
                windows
                | {"name": "hopping", "width": WIDTH / 1000, "slide": SLIDE / 1000, "aggregates": {"m": "count(DISTINCT x)"}},
                join | {"name": "joined"},
            ],
            "sinks": [
                {"type": "parts", "path": str(folder / "tumbled"), "after": "tumbling"},
                {"type": "parts", "path": str(folder / "joined"), "after": "joined"},
            ],
        }

    def width(self) -> int:
        return next(self._widths)

    def add_file(self) -> None:
        first = self._files * ROWS_OF_FILE
        numbers = range(first, first + ROWS_OF_FILE)
        columns = {
            "t": pa.array(numbers, pa.timestamp("ms")),
            "k": pa.array([n % KEYS for n in numbers]),
            "x": pa.array([n * 7919 % 1000 for n in numbers]),
        }
        aside = self._input / ".aside"
        pq.write_table(pa.table(columns), aside)
        aside.rename(self._input / f"{self._files:06}.parquet")
        self._files += 1

    def results(self) -> tuple[Rows, Rows]:
        """Of windows that a further file closes: the tumbling ones, and those that were joined."""
        tumbled, hopped = self._windows(SLIDE), self._windows(WIDTH)
        sums = Counter((end, k, len(xs), sum(xs)) for (end, k), xs in tumbled.items())
        joined = Counter((end, k, len(xs), len(set(hopped[end, k]))) for (end, k), xs in tumbled.items())
        return sums, joined

    def _windows(self, width: int) -> dict[tuple[int, int], list[int]]:
        windows: dict[tuple[int, int], list[int]] = {}
        for n in range(self._files * ROWS_OF_FILE):
            for start in range(n - n % SLIDE + SLIDE - width, n + 1, SLIDE):
                if start + width < self._files * ROWS_OF_FILE:
                    windows.setdefault((start + width, n % KEYS), []).append(n * 7919 % 1000)
        return windows

    def found(self) -> tuple[Rows, Rows]:
        tumbled = rows_of_parts(str(self._folder / "tumbled"), ("ends", "k", "n", "s"))
        joined = rows_of_parts(str(self._folder / "joined"), ("ends", "k", "n", "m"))
        return tumbled, joined


def test_windows_and_joins_in_two_slices_then_three_then_one(tmp_path: Path) -> None:
    killing = KillingWindows(tmp_path)
    moments = [MOMENTS[i % len(MOMENTS)] for i in range(KILLS)]
    killing.random.shuffle(moments)
    for moment in moments:
        killing.kill(moment)
        for found, wanted in zip(killing.found(), killing.results(), strict=True):
            assert not found - wanted, "windows came twice, or without some of their rows"
    killing.add_file()
    killing.run_until(lambda: sum(map(Rows.total, killing.found())) >= sum(map(Rows.total, killing.results())))
    assert killing.found() == killing.results()
