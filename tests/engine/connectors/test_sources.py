"""What the engine relies on, of every source: its position is the next row, and everything follows from the position.

Each source here has partitions of several batches. Their positions go through JSON, as in a checkpoint, and to a source
that was opened anew, as after a restart.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import gzip
import itertools
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from partitions import read_all, rest, run, values

import object_store_server
from arroyo_udf_plugin.engine.connectors.files import Files
from arroyo_udf_plugin.engine.connectors.impulse import Impulse
from arroyo_udf_plugin.engine.connectors.interface import Source
from arroyo_udf_plugin.engine.connectors.object_store import open_object_store
from arroyo_udf_plugin.engine.connectors.source import Rows

ROWS = 950
Opens = Callable[[], Source]

TABLE = pa.table({"n": range(ROWS), "text": [f'{n}, "x"' if n % 7 else None for n in range(ROWS)]})


def impulse(folder: Path) -> Opens:
    start = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    return lambda: Impulse(rows=ROWS, start=start, interval=0.001).source(3)


def files(*names: str, **keys: Any) -> Callable[[Path], Opens]:
    def prepare(folder: Path) -> Opens:
        for name in names:
            (folder / name).write_bytes(content(name))
        return lambda: Files(paths=(str(folder),), **keys).source(2)

    return prepare


def content(name: str) -> bytes:
    if name.endswith(".gz"):
        return gzip.compress(content(name.removesuffix(".gz")))
    buffer = pa.BufferOutputStream()
    match name.split(".")[1]:
        case "parquet":
            pyarrow.parquet.write_table(TABLE, buffer, row_group_size=130)
        case "arrow":
            with pa.ipc.new_file(buffer, TABLE.schema) as writer:
                writer.write_table(TABLE, max_chunksize=130)
        case "arrows":
            with pa.ipc.new_stream(buffer, TABLE.schema) as writer:
                writer.write_table(TABLE, max_chunksize=130)
        case "jsonl":
            lines = (json.dumps(row) + ("\n\n" if row["n"] % 50 == 20 else "\n") for row in TABLE.to_pylist())
            return "".join(lines).encode()
        case "csv":
            lines = (f'{row["n"]},"{row["n"]}, ""x""\ny"\n' for row in TABLE.to_pylist())
            return "".join(["n,text\n", *lines]).encode()
    data: bytes = buffer.getvalue().to_pybytes()
    return data


SOURCES: dict[str, Callable[[Path], Opens]] = {
    "impulse": impulse,
    "csv": files("a.csv"),
    "csv.gz": files("a.csv", "b.csv.gz"),
    "columns": files("a.csv", columns=("text",), types={"text": "str"}),
    "jsonl": files("a.jsonl", "b.jsonl"),
    "parquet": files("a.parquet", "b.parquet"),
    "arrow": files("a.arrow"),
    "arrows": files("a.arrows"),
    "limit": files("a.csv", "b.csv", "c.csv", limit=ROWS + 333),
    "watch": files("a.csv", "b.csv", watch=0.1),
}


@pytest.fixture(params=[*SOURCES, "s3 csv.gz", "s3 jsonl", "s3 parquet", "s3 arrow", "s3 arrows"])
def opens(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opens:
    """Opens the source, in batches of at most 100 rows; text in blocks of some more."""
    for rows in ("BATCH_ROWS", "TYPED_BATCH_ROWS"):
        monkeypatch.setattr(f"arroyo_udf_plugin.engine.connectors.source.{rows}", 100)
    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.impulse.BATCH_ROWS", 100)
    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.blocks.BLOCK_BYTES", 3000)
    kind: str = request.param
    if not kind.startswith("s3 "):
        return SOURCES[kind](tmp_path)
    ending = kind.removeprefix("s3 ")
    return in_s3(
        request.getfixturevalue("object_store"), {f"{each}.{ending}": content(f"{each}.{ending}") for each in "ab"}
    )


_buckets = itertools.count()


def in_s3(server: object_store_server.Server, contents: dict[str, bytes]) -> Opens:
    url = server.bucket(f"sources-{next(_buckets)}") + "/in"
    store = open_object_store(url)
    for name, data in contents.items():
        store.put(name, data)
    return lambda: Files(paths=(url,)).source(2)


def again(position: Any) -> Any:
    return json.loads(json.dumps(position))


def test_a_position_is_the_next_row(opens: Opens) -> None:
    async def work() -> None:
        source = opens()
        for name in source.partitions():
            partition = source.open(name, None)
            while (rows := await partition.read()) is not None:
                position = partition.position()
                assert position.get("at", position)["row"] == rows.first + rows.batch.num_rows
            partition.close()
        source.close()

    run(work)


def test_every_row_comes_once(opens: Opens) -> None:
    source = opens()
    rows = read_all(source)
    source.close()
    assert len({(row["file"], row["row"]) for row in rows}) == len(rows)
    assert source.rows in (None, len(rows))
    if "counter" in rows[0]:
        assert sorted(row["counter"] for row in rows) == list(range(ROWS))
    assert len(rows) % ROWS in (0, 333)


def test_reading_from_every_position_gives_the_rest(opens: Opens) -> None:
    async def work() -> None:
        source = opens()
        for name in source.partitions():
            partition, batches, positions = source.open(name, None), list[Rows](), list[Any]()
            while True:
                positions.append(again(partition.position()))
                if (rows := await partition.read()) is None:
                    break
                batches.append(rows)
            positions.append(again(partition.position()))
            partition.close()
            assert len(batches) > 3
            other = opens()
            for at, position in enumerate(positions):
                resumed = other.open(name, position)
                assert again(resumed.position()) == position
                assert values(await rest(resumed)) == values(batches[at:]), position
                resumed.close()
            other.close()
        source.close()

    run(work)


def test_reading_in_pieces_equals_reading_at_once(opens: Opens) -> None:
    async def pieces() -> list[Rows]:
        found = []
        for name in opens().partitions():
            position, ended = None, False
            while not ended:
                source = opens()
                partition = source.open(name, position)
                for _ in range(2):
                    if (rows := await partition.read()) is None:
                        ended = True
                    else:
                        found.append(rows)
                position = again(partition.position())
                partition.close()
                source.close()
        return found

    source = opens()
    at_once = read_all(source)
    source.close()
    assert values(run(pieces)) == at_once


def files_open() -> int:
    """Without connections, which obstore keeps."""
    found = 0
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # of the listing itself
            found += not os.readlink(f"/proc/self/fd/{fd}").startswith("socket:")
    return found


def test_closing_in_the_middle_leaves_no_thread_and_no_file_open(opens: Opens) -> None:
    source = opens()
    read_all(source)  # what a process opens once, such as a connection
    before = threading.active_count(), files_open()

    async def work() -> None:
        for read in (0, 1, 3):
            open_ = [source.open(name, None) for name in source.partitions()]
            for partition in open_:
                for _ in range(read):
                    assert await partition.read() is not None
            for partition in open_:
                partition.close()

    run(work)
    source.close()
    assert (threading.active_count(), files_open()) == before


def test_two_slices_share_the_partitions(opens: Opens) -> None:
    """Read by turns, as two slices do."""

    async def work() -> list[Rows]:
        found = []
        open_ = [source.open(name, None) for name in source.partitions()]
        while open_:
            for partition in list(open_):
                if (rows := await partition.read()) is None:
                    partition.close()
                    open_.remove(partition)
                else:
                    found.append(rows)
        return found

    source = opens()
    whole = read_all(source)
    by_turns = values(run(work))
    source.close()

    def order(row: dict[str, Any]) -> Any:
        return row["file"], row["row"]

    assert sorted(by_turns, key=order) == sorted(whole, key=order)


def test_a_cancelled_read_has_lost_nothing(opens: Opens) -> None:
    async def work() -> list[Rows]:
        found = []
        for name in source.partitions():
            partition = source.open(name, None)
            while True:
                task = asyncio.ensure_future(partition.read())
                await asyncio.sleep(0)
                position = again(partition.position())
                if task.cancel():  # it waited
                    with pytest.raises(asyncio.CancelledError):
                        await task
                    assert again(partition.position()) == position
                    rows = await partition.read()
                else:
                    rows = await task
                if rows is None:
                    break
                found.append(rows)
            partition.close()
        return found

    source = opens()
    whole = read_all(source)
    cancelled = values(run(work))
    source.close()
    assert cancelled == whole
