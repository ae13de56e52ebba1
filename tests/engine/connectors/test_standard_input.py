"""Standard input and FIFOs: each line is handed on when it has arrived, and waiting for one holds up nothing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from partitions import read_all, rest, run, values

from arroyo_udf_plugin.engine.connectors.files import Files
from arroyo_udf_plugin.engine.connectors.interface import Partition

READER = textwrap.dedent("""
    import asyncio, sys
    from arroyo_udf_plugin.engine.connectors.cells import decoded
    from arroyo_udf_plugin.engine.connectors.standard_input import StandardInput

    async def main():
        source = StandardInput(format=sys.argv[1]).source(2)
        assert not source.resumable and source.rows is None
        (name,) = source.partitions()
        partition = source.open(name, None)
        while (rows := await partition.read()) is not None:
            column = decoded(rows.batch.column(0)).to_pylist()
            print(source.name, rows.file, rows.first, column, partition.position(), flush=True)
        partition.close()
        source.close()

    asyncio.run(main())
""")


@pytest.mark.parametrize(
    ("format", "lines", "answers"),
    [
        ("csv", ["a,b\n1,x\n", "2,y\n", '3,"z\nz"\n'], [(1, "['1']"), (2, "['2']"), (3, "['3']")]),
        ("jsonl", ['{"a":1}\n', '{"a":2}\n', '\n{"a":3}\n'], [(1, "[1]"), (2, "[2]"), (4, "[3]")]),
    ],
)
def test_each_line_is_handed_on_before_the_next_arrives(
    format: str, lines: list[str], answers: list[tuple[int, str]]
) -> None:
    command = [sys.executable, "-c", READER, format]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for line, (row, column) in zip(lines, answers, strict=True):
            child.stdin.write(line)
            child.stdin.flush()
            assert child.stdout.readline() == f"standard input - {row} {column} {{'row': {row + 1}}}\n"
        child.stdin.close()
        assert child.stdout.read() == ""
    assert child.returncode == 0


def test_a_redirected_file(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("a\n1\n2\n")
    with path.open() as file:
        done = subprocess.run([sys.executable, "-c", READER, "csv"], stdin=file, capture_output=True, text=True)
    assert done.stdout == "standard input - 1 ['1', '2'] {'row': 3}\n", done.stderr


class Pipe:
    """A FIFO with a header and one row in it, as a source."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # so that opening does not wait
        self.writer: IO[str] = path.open("w", buffering=1)
        self.writer.write("a\n1\n")
        self.source = Files(paths=(str(path),)).source(1)
        os.close(self.reader)

    def open(self) -> Partition:
        (name,) = self.source.partitions()
        return self.source.open(name, None)


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[Pipe]:
    pipe = Pipe(tmp_path / "pipe")
    yield pipe
    with contextlib.suppress(BrokenPipeError):  # what was written for nobody
        pipe.writer.close()
    pipe.source.close()


def test_waiting_for_a_line_does_not_hold_up_the_loop(pipe: Pipe) -> None:
    async def work() -> None:
        partition = pipe.open()
        assert await partition.read() is not None
        waits = asyncio.ensure_future(partition.read())
        for _ in range(3):
            await asyncio.sleep(0)
        assert not waits.done()
        pipe.writer.write("2\n")
        rows = await waits
        assert rows is not None
        assert (rows.first, rows.batch.num_rows) == (2, 1)
        partition.close()

    run(work)


def test_a_cancelled_wait_loses_no_line(pipe: Pipe) -> None:
    async def work() -> None:
        partition = pipe.open()
        await partition.read()
        waits = asyncio.ensure_future(partition.read())
        await asyncio.sleep(0)
        waits.cancel()
        pipe.writer.write("2\n3\n")
        pipe.writer.close()
        assert [row["a"] for row in values(await rest(partition))] == ["2", "3"]
        partition.close()

    run(work)


def test_closing_while_it_waits_ends_the_thread(pipe: Pipe) -> None:
    async def work() -> None:
        partition = pipe.open()
        await partition.read()
        waits = asyncio.ensure_future(partition.read())
        await asyncio.sleep(0)
        partition.close()
        waits.cancel()

    run(work)
    assert "read ahead" not in [thread.name for thread in threading.enumerate()]
    with pytest.raises(BrokenPipeError):
        pipe.writer.write("nobody reads\n")


def test_closing_without_a_read(pipe: Pipe) -> None:
    pipe.open().close()
    with pytest.raises(BrokenPipeError):
        pipe.writer.write("nobody reads\n")


def test_a_later_fifo_waits_for_its_writer_and_not_for_ever(tmp_path: Path) -> None:
    first, later = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("a\n1\n")
    os.mkfifo(later)
    source = Files(paths=(str(first), str(later))).source(1)
    assert not source.resumable

    async def closed() -> None:
        partition = source.open(str(later), None)
        waits = asyncio.ensure_future(partition.read())
        await asyncio.sleep(0)
        partition.close()
        waits.cancel()

    run(closed)
    writer = threading.Thread(target=later.write_text, args=("a\n2\n",))
    writer.start()
    assert [row["a"] for row in read_all(source)] == ["1", "2"]
    writer.join()


def test_many_rows_through_a_pipe(pipe: Pipe) -> None:
    def write() -> None:
        with pipe.writer:
            pipe.writer.writelines(f"{n}\n" for n in range(2, 100_001))

    writer = threading.Thread(target=write)
    writer.start()
    assert [row["a"] for row in read_all(pipe.source)] == [str(n) for n in range(1, 100_001)]
    writer.join()
