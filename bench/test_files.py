"""Files: what a look at a large folder costs, what a resume reads, and newline JSON, in and out."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from arroyo_udf_plugin.engine.connectors.file_source import FilesSource
from arroyo_udf_plugin.engine.connectors.options import Reading
from arroyo_udf_plugin.engine.connectors.sink import FileSink
from arroyo_udf_plugin.engine.connectors.source import FileSource
from arroyo_udf_plugin.engine.execution.finished import fold
from arroyo_udf_plugin.engine.execution.manifest import Manifest, StateFile, StoredRows
from conftest import Compare, note

N_FILES = 100_000
N_ROWS = 200_000
READING = Reading(
    columns=("id", "name", "x", "ok", "at"),
    types={"id": "int64", "name": "str", "x": "float", "ok": "bool", "at": "datetime"},
    timestamps="rfc3339",
)


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("json") / "rows.jsonl"
    row = '{{"id":{0},"name":"name {0}","x":{1!r},"ok":{2},"at":"2024-01-31T12:{3:02}:00Z"}}\n'
    path.write_text("".join(row.format(n, n / 7, str(n % 2 == 0).lower(), n % 60) for n in range(N_ROWS)))
    return path


def test_a_look_at_a_large_folder(compare: Compare, tmp_path: Path) -> None:
    """All files have been read; none is new."""
    for number in range(N_FILES):
        (tmp_path / f"{number:07}.csv").touch()
    (tmp_path / "0000000.csv").write_text("a\n1\n")
    with contextlib.closing(FilesSource([str(tmp_path)], Reading(), 1.0)) as source:
        names = source.partitions()
        source.check({name: {"row": 2, **version_of(name), "end": True} for name in names})
        compare(
            "a look at 100,000 files",
            source.partitions,
            lambda: sorted(os.listdir(tmp_path)),
            n=1,
            unit="ms",
            scale=1e3,
            reference_name="their names",
            goal=5,
        )


def version_of(name: str) -> dict[str, Any]:
    status = os.stat(name)
    return {"size": status.st_size, "etag": str(status.st_mtime_ns)}


def test_the_manifest_after_many_files(benchmark: Any) -> None:
    """Its bytes, and those of the lists that are written with it, for each file of 20,000, one to a checkpoint."""
    files: dict[str, bytes] = {}

    def manifest(positions: Any, lists: tuple[StateFile, ...] = ()) -> int:
        rows = StoredRows(epoch=1, slices=())
        return len(
            Manifest(
                **{"epoch": 1, "history": "0" * 32, "engine": "0" * 32, "fence": False, "pipeline": "files"},
                **{"fingerprint": {}, "plugins": {}, "positions": positions, "slices": (), "rows": rows},
                finished=(lists,) if lists else (),
            ).written()
        )

    def work() -> tuple[float, float]:
        positions: dict[str, dict[str, Any]] = {}
        lists: tuple[StateFile, ...] = ()
        written = 0
        every = {}
        for number in range(20_000):
            name, position = f"in/{number:07}.csv", {"row": 2, "size": 8, "etag": f"17{number:017}", "end": True}
            positions[name] = every[name] = position
            folded = fold(positions, lists, f"list-{number}", "source 1", lambda file: files[file.name])
            positions, lists = folded.positions, folded.lists
            if folded.new is not None:
                files[folded.new[0].name] = folded.new[1]
                written += len(folded.new[1])
        return written / 20_000 + manifest(positions, lists), manifest(every)

    ours, each = benchmark.pedantic(work, rounds=1)
    note(benchmark, "a checkpoint after 20,000 files", ours / 1024, "KiB", "a position for each", ours / each, 0.02)


def test_reading_json(compare: Compare, lines: Path) -> None:
    def read() -> None:
        with FileSource([lines], READING) as source:
            assert sum(rows.batch.num_rows for rows in source) == N_ROWS

    compare(
        "newline JSON, five typed columns: read",
        read,
        lambda: [json.loads(line) for line in lines.read_bytes().splitlines()],
        n=N_ROWS,
        unit="ns/row",
        scale=1e9,
        reference_name="json.loads",
        goal=1,
        rounds=5,
    )


def test_writing_floats(compare: Compare, tmp_path: Path) -> None:
    chance = random.Random(0)
    values = [chance.random() * 10 ** chance.randint(-3, 8) for _ in range(N_ROWS)]
    column = pa.array(values, pa.float64())
    batch = pa.record_batch([column], ["x"])

    def write() -> None:
        with FileSink(tmp_path / "out.jsonl", batch.schema) as sink:
            sink.write(batch)

    compare(
        "floats as newline JSON",
        write,
        lambda: [json.dumps(value) for value in column.to_pylist()],
        n=N_ROWS,
        unit="ns/row",
        scale=1e9,
        reference_name="json.dumps",
        goal=0.5,
    )


def test_a_resume_within_a_text_file(compare: Compare, tmp_path: Path) -> None:
    """At nine tenths of 20 MB."""
    path = tmp_path / "rows.csv"
    path.write_text("id,name,x\n" + "".join(f"{n},name {n},{n % 1000 / 8}\n" for n in range(5 * N_ROWS)))

    def read(position: Any) -> list[Any]:
        positions = []

        async def work() -> None:
            with contextlib.closing(FilesSource([str(path)], Reading())) as source:
                (name,) = source.partitions()
                with contextlib.closing(source.open(name, position)) as partition:
                    while await partition.read() is not None:
                        positions.append(partition.position())

        asyncio.run(work())
        return positions

    positions = read(None)
    last = positions[len(positions) * 9 // 10]
    compare(
        "the last tenth of a CSV file",
        lambda: read(last),
        lambda: read(None),
        n=1,
        unit="ms",
        scale=1e3,
        reference_name="the whole file",
        goal=0.5,
        rounds=5,
    )
