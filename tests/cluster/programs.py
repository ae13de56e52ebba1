"""Programs of a cluster as processes, and a query whose rows show what was lost."""

import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds

TWICE = """
import asyncio

from arroyo_udf_plugin import udf

@udf
async def twice(value: int) -> int:
    await asyncio.sleep(0.001)
    return 2 * value
"""
SQL = """
CREATE TABLE counts (counter BIGINT) WITH (connector = 'impulse', event_rate = '2000');
CREATE TABLE out (counter BIGINT, double BIGINT) WITH (
    connector = 'filesystem', path = '{out}', format = 'parquet', type = 'sink'
);
INSERT INTO out SELECT counter, twice(counter) AS double FROM counts;
"""


def parts(folder: Path) -> list[str]:
    """The files that the query has written below `folder`: one for each checkpoint with rows."""
    return [str(path) for path in (folder / "out").glob("part-*.parquet")]


def doubles(folder: Path) -> list[tuple[int, int]]:
    """What the query has written below `folder`, in order."""
    found = parts(folder)
    table = ds.dataset(found).to_table() if found else None
    return [] if table is None else sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


def expected(rows: int) -> list[tuple[int, int]]:
    return [(n, 2 * n) for n in range(rows)]


class Program:
    """address: what it has said when it was ready. said: before that."""

    def __init__(self, name: str, folder: str, *arguments: str) -> None:
        command = [sys.executable, "-m", "arroyo_udf_plugin.cli", name, "--data", folder, *arguments]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        self.said: list[str] = []
        for line in self.process.stderr:
            self.said.append(line)
            if line.startswith(f"arroyo-udf {name}: "):
                self.address = line.strip().removeprefix(f"arroyo-udf {name}: ")
                return
        raise AssertionError(f"{name} did not start")

    def end(self, how: signal.Signals) -> int:
        self.process.send_signal(how)
        assert self.process.stderr is not None
        with self.process.stderr as told:
            told.read()
        return self.process.wait(60)
