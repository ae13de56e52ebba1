"""What every source and sink promises, as a check for those of anybody.

    check_sink(folder, sink=MySink, shown=lambda: rows_of(...))
    check_source(folder, source=MySource, prepare=lambda: write_some(...))

Both raise `Broken`, or AssertionError, with what happened. They need no test framework.

A sink sees crashes between all steps that it takes through `connectors.disk`, and between those of the engine and the
checkpoints' store; of what it does past them, a crash in the middle is not tried.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..engine.connectors.interface import Json, Source, Stage, TransactionalSink
from ..engine.connectors.parts import Parts
from ..engine.connectors.source import Rows
from .elsewhere import Elsewhere
from .report import Report
from .scenario import Opened, Phase, Scenario, straight
from .simulation import Simulation

SCHEMA = pa.schema([("n", pa.int64())])
_MANY = 100_000  # reads of a source that ends


class Numbers:
    """A source of numbers. reads: for each partition, what it gives one read after the other."""

    name = "numbers"
    schema = SCHEMA
    resumable = True
    side_by_side = False
    watch: float | None = None
    rows: int | None = None

    def __init__(self, reads: Mapping[str, Sequence[Sequence[int]]]) -> None:
        self.reads = dict(reads)

    def partitions(self) -> Sequence[str]:
        return list(self.reads)

    def open(self, partition: str, position: Json | None) -> _Numbers:
        return _Numbers(partition, self.reads[partition], 0 if position is None else position["next"])

    def check(self, positions: Mapping[str, Json]) -> None: ...
    def close(self) -> None: ...


@dataclasses.dataclass
class _Numbers:
    name: str
    reads: Sequence[Sequence[int]]
    at: int

    async def read(self) -> Rows | None:
        if self.at >= len(self.reads):
            return None
        first = 1 + sum(map(len, self.reads[: self.at]))
        numbers = pa.array(self.reads[self.at], pa.int64())
        self.at += 1
        return Rows(self.name, first, pa.record_batch([numbers], schema=SCHEMA))

    def position(self) -> Json:
        return {"next": self.at}

    def close(self) -> None: ...


FIRST = {"a": [[1, 2, 3], [4]], "b": [[5, 6]]}
SECOND = FIRST | {"c": [[7], [8, 9]]}


def sink_scenario(
    folder: Path,
    sink: Callable[[pa.Schema, int, Stage | None], TransactionalSink],
    shown: Callable[[], list[int]],
    urls: Sequence[str] = (),
    elsewhere: Sequence[Elsewhere] = (),
) -> Scenario:
    """Numbers that go to a sink, then some more. See `check_sink`."""
    reads: dict[str, Sequence[Sequence[int]]] = {}

    def phase(brought: Mapping[str, Sequence[Sequence[int]]]) -> Phase:
        def prepare() -> None:
            reads.clear()
            reads.update(brought)

        return Phase(prepare, [n for partition in brought.values() for read in partition for n in read])

    return Scenario(
        name="numbers",
        folder=folder,
        opened=straight(lambda: Numbers(reads), sink),
        shown=shown,
        phases=[phase(FIRST), phase(SECOND)],
        place=str(folder / "state"),
        urls=urls,
        elsewhere=elsewhere,
    )


def check_sink(
    folder: Path,
    sink: Callable[[pa.Schema, int, Stage | None], TransactionalSink],
    shown: Callable[[], list[int]],
    urls: Sequence[str] = (),
    most: int | None = None,
    elsewhere: Sequence[Elsewhere] = (),
) -> Report:
    """Raises Broken unless a sink shows each row once, in whatever moment its engine ends; and unless, after somebody
    has gone back to an older checkpoint, it shows them once or says that it will not.

    folder: it writes below it, to object stores at `urls`, or `elsewhere`; everything there is removed again and again.
    sink: makes the sink of a slice, as `TransactionalSink` of `connectors.interface` has it, from (schema, slice,
    stage). The schema has one column, n. shown: the numbers that can be seen now. most: see `Simulation`.
    """
    report = Report()
    for width in (1, 2):
        simulation = Simulation(sink_scenario(folder, sink, shown, urls, elsewhere), report, width, most)
        simulation.stop_everywhere()
        simulation.fail_everywhere()
        simulation.two_engines()
    simulation.older()
    simulation.restore(["torn"])
    simulation.damage()
    return report


def check_source(
    folder: Path,
    source: Callable[[], Source],
    prepare: Callable[[], None] = lambda: None,
    most: int | None = None,
) -> Report:
    """Raises AssertionError unless a source goes on from each of its positions with the row that comes next.

    prepare: writes its data, below the folder or elsewhere; the folder is emptied before.
    """
    folder.mkdir(parents=True, exist_ok=True)
    prepare()
    whole = asyncio.run(_read_everything(source))
    out = Parts(path=str(folder / "out"), format="arrow")
    scenario = Scenario(
        name="a source",
        folder=folder,
        opened=_to_parts(source, out),
        shown=lambda: _of_parts(folder / "out"),
        phases=[Phase(prepare, whole)],
        place=str(folder / "state"),
    )
    report = Report()
    for width in (1, 2):
        Simulation(scenario, report, width, most).stop_everywhere()
    return report


def _to_parts(source: Callable[[], Source], out: Parts) -> Opened:
    return straight(source, lambda schema, slice, stage: out.sink(schema, slice, stage, "simulated", "parts"))


def _of_parts(folder: Path) -> list[str]:
    names = sorted(folder.glob("part-*")) if folder.is_dir() else []
    return [row for name in names for row in _texts(pa.ipc.open_file(name).read_all())]


def _texts(rows: pa.Table | pa.RecordBatch) -> list[str]:
    return [repr(row) for row in rows.to_pylist()]


async def _read_everything(source: Callable[[], Source]) -> list[str]:
    """All rows; each position is tried on the way."""
    opened, rows = source(), []
    try:
        assert opened.resumable, f"{opened.name} cannot be read again, so it has no checkpoints"
        names = list(opened.partitions())
        assert names == list(opened.partitions()), "partitions() changes its mind"
        for name in names:
            positions, own = await _read_partition(opened, name, None)
            ends = [sum(map(len, own[: at + 1])) for at in range(len(own))]
            every = [row for read in own for row in read]
            for position, row in zip(positions, [0, *ends, len(every)], strict=True):
                _, left = await _read_partition(opened, name, position)
                rest = [left_row for read in left for left_row in read]
                assert rest == every[row:], f"{name} does not go on at {position} with row {row + 1}"
            rows += every
    finally:
        opened.close()
    return rows


async def _read_partition(source: Source, name: str, position: Any) -> tuple[list[Json], list[list[str]]]:
    """Its positions before the first read and after each, and the rows of each read."""
    partition = source.open(name, position)
    try:
        positions, reads = [partition.position()], list[list[str]]()
        for _ in range(_MANY):
            rows = await partition.read()
            positions.append(partition.position())
            if rows is None:
                return positions, reads
            assert rows.batch.schema.equals(source.schema), f"{name} gives rows of another schema"
            reads.append(_texts(rows.batch))
        raise AssertionError(f"{name} does not end")
    finally:
        partition.close()
