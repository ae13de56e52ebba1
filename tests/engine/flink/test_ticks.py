"""How often each slice of a source on Flink is permitted to read."""

from __future__ import annotations

import collections
import datetime
import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arroyo_udf_plugin.engine.connectors.file_source import FilesSource
from arroyo_udf_plugin.engine.connectors.impulse import Impulse, ImpulseSource
from arroyo_udf_plugin.engine.connectors.options import Reading
from arroyo_udf_plugin.engine.flink.reading_stage import PATIENCE, ROWS
from arroyo_udf_plugin.engine.flink.ticks import WITHOUT_END, Ticks


@given(st.lists(st.integers(0, 20), min_size=1, max_size=6))
def test_each_slice_gets_its_own_in_turn(each: list[int]) -> None:
    ticks = Ticks(each)
    slices = [ticks.slice_of(number) for number in range(ticks.total)]
    assert collections.Counter(slices) == {slice: own for slice, own in enumerate(each) if own}
    rounds = [[slice for slice, own in enumerate(each) if own > round] for round in range(max(each))]
    assert slices == [slice for round in rounds for slice in round]


def of_impulse(**described: object) -> Ticks:
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    return Ticks.of(ImpulseSource(Impulse(**{"start": start, "interval": 1.0} | described), 3), 2)  # type: ignore[arg-type]


def test_by_rows() -> None:
    """Two of three partitions are in the first slice."""
    assert of_impulse(rows=30 * ROWS).each == [21, 11]


def test_by_the_time_that_rows_take() -> None:
    """While it waits for rows, a permission lasts no longer than a barrier may wait."""
    assert of_impulse(rows=1000, rate=10.0).each == [1 + round(100 / PATIENCE) + 1] * 2


def test_without_an_end(tmp_path: Path) -> None:
    assert of_impulse(rows=None).each == [WITHOUT_END] * 2
    (tmp_path / "1.csv").write_text("a\n1\n")
    assert Ticks.of(FilesSource([str(tmp_path)], Reading(format="csv"), watch=1.0), 2).each == [WITHOUT_END] * 2


@pytest.mark.parametrize(("rows", "number"), [(1, 2), (ROWS - 1, 2), (ROWS, 3), (10 * ROWS, 12)])
def test_by_the_size_of_files(tmp_path: Path, rows: int, number: int) -> None:
    """As if each row had one character."""
    (tmp_path / "1.csv").write_text("a\n" + "1\n" * rows)
    assert Ticks.of(FilesSource([str(tmp_path / "1.csv")], Reading(format="csv")), 2).each == [number, 1]


def test_compressed_files_have_more_rows(tmp_path: Path) -> None:
    rows = 20 * ROWS
    with gzip.open(tmp_path / "1.csv.gz", "wt") as file:
        file.write("a\n" + "".join(f"{n}\n" for n in range(rows)))
    assert Ticks.of(FilesSource([str(tmp_path / "1.csv.gz")], Reading(format="csv")), 1).each[0] > rows / ROWS
