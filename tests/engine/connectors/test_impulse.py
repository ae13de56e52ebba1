"""Rows at a rate, and rows that follow from the description alone."""

from __future__ import annotations

import asyncio
import datetime
from typing import Any

import pytest
from partitions import read_all, run

from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.engine.connectors.impulse import Impulse, ImpulseSource
from arroyo_udf_plugin.engine.connectors.options import BATCH_ROWS

START = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
NANOSECONDS = 1_704_067_200_000_000_000


def test_the_rows_do_not_depend_on_the_number_of_partitions() -> None:
    def rows(parallelism: int) -> list[Any]:
        source = Impulse(rows=20_000, start=START, interval=0.5).source(parallelism)
        assert source.rows == 20_000
        read = read_all(source)
        assert {row["subtask"] for row in read} == set(range(parallelism))
        return sorted((row["counter"], row["event_time"]) for row in read)

    assert rows(1) == rows(3) == [(n, NANOSECONDS + n * 500_000_000) for n in range(20_000)]


@pytest.mark.parametrize(("rows", "parallelism"), [(0, 2), (1, 2), (2, 3), (BATCH_ROWS * 2, 2)])
def test_few_rows_for_many_partitions(rows: int, parallelism: int) -> None:
    assert len(read_all(Impulse(rows=rows).source(parallelism))) == rows


def test_event_times_without_a_start_are_the_clock() -> None:
    source = ImpulseSource(Impulse(rows=3), 1, now=lambda: NANOSECONDS)
    assert [row["event_time"] for row in read_all(source)] == [NANOSECONDS] * 3


class Clock:
    """Moves on while someone sleeps."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now, self._sleep = 0.0, asyncio.sleep
        patch.setattr(asyncio, "sleep", self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.now += max(seconds, 1e-9)
        await self._sleep(0)


@pytest.mark.parametrize("rate", [0.5, 7.0, 1000.0, 123_456.0, 5e6])
def test_rows_come_at_their_rate_over_all_partitions(monkeypatch: pytest.MonkeyPatch, rate: float) -> None:
    clock = Clock(monkeypatch)
    source = ImpulseSource(Impulse(rate=rate), 2, clock=lambda: clock.now)
    partition = source.open("1/2", None)

    async def work() -> None:
        rows = 0
        while clock.now < 20 / rate or rows < 50_000 < rate:
            read = await partition.read()
            assert read is not None
            rows += read.batch.num_rows
            assert rows <= clock.now * rate / 2 + 0.001  # never early
            assert rows >= (clock.now - max(0.011, 2 * BATCH_ROWS / rate)) * rate / 2 - 1  # nor much later
        assert rows > 5

    run(work)


def test_rows_that_were_not_taken_in_time_come_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    partition = ImpulseSource(Impulse(rate=100.0, rows=250), 1, clock=lambda: clock.now).open("0/1", None)

    async def work() -> list[int]:
        sizes = []
        while (rows := await partition.read()) is not None:
            sizes.append(rows.batch.num_rows)
            if len(sizes) == 1:
                clock.now += 1
        return sizes

    sizes = run(work)
    assert sizes[:3] == [1, 100, 1]
    assert sum(sizes) == 250


def test_another_number_of_partitions_is_refused_at_a_resume() -> None:
    source = Impulse(rows=10).source(3)
    with pytest.raises(InvalidArgument, match="began with 2 partitions, and now has 3: resume with --parallelism 2"):
        source.open("1/2", {"row": 3})
    assert list(Impulse(rows=10, partitions=2).source(3).partitions()) == ["0/2", "1/2"]


def test_start_and_interval_belong_together() -> None:
    for half in ({"start": START}, {"interval": 1.0}):
        with pytest.raises(InvalidArgument, match="start and interval belong together"):
            Impulse.model_validate(half).source(1)


def test_event_times_beyond_nanoseconds_are_an_error() -> None:
    source = Impulse(start=START, interval=1e9).source(1)
    with pytest.raises(InvalidArgument, match="event time of row 0 is after the year 2262: shorten interval"):
        read_all(source)
