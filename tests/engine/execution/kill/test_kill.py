"""Engines are killed with SIGKILL, again and again: nothing is lost, and nothing comes twice.

A pipeline of a sync and an unordered async function with random latency watches a folder; some rows are dead letters,
which have a folder of their own. Each engine commits at least
three epochs and is killed: at a moment between two steps of an epoch (failpoints.py), or whenever. The next one resumes
it, with another number of slices. Meanwhile the test adds a file for each epoch, so that there is always something to
do; and where a server keeps the rows, it is killed, too, while an engine uses it. The last engine is stopped when all
rows are there.

KILLS: how often (2). KILL_SEED: of all that is random here.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import secrets
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import object_store_server
import postgresql
from arroyo_udf_plugin.engine.execution.store import open_store

KILLS = int(os.environ.get("KILLS", "2"))
EPOCHS = 3
MOMENTS = ("staged", "committed", "applied", "renamed", "sealed", "cleaned", "any", "any", "any")
ROWS_OF_FILE = 300
PATIENCE = 120.0
CHILD = Path(__file__).with_name("child.py")

FUNCTIONS = """
import asyncio
import random

from arroyo_udf_plugin import udf


@udf
def doubled(n: int) -> int:
    return 2 * n


@udf(ordered=False, allowed_in_flight=100)
async def slowly(n: int) -> str:
    await asyncio.sleep(random.random() / 50)
    if n % 50 == 7:
        raise ValueError(f"row {n} is bad")
    return f"row {n}"
"""

Rows = Counter[tuple[Any, ...]]


class Killing:
    """One pipeline, its engines, and its input."""

    def __init__(
        self,
        folder: Path,
        plugin: Path,
        sink: Mapping[str, Any],
        checkpoints: str,
        disturb: Callable[[], None] | None = None,
    ) -> None:
        """disturb: kills and restarts the server that keeps the rows."""
        self._seed = int(os.environ.get("KILL_SEED", secrets.randbelow(10**6)))
        print(f"KILL_SEED={self._seed} KILLS={KILLS}")
        self.random = random.Random(self._seed)
        self._folder, self._input = folder, folder / "input"
        self._input.mkdir()
        self._description: dict[str, Any] = {
            "name": "killed",
            "source": {"type": "files", "paths": [str(self._input)], "watch": 0.01},
            "operators": [
                {
                    "plugin": str(plugin),
                    "calls": ["doubled = doubled(n)", "text = slowly(n)"],
                    "on_error": "dead_letter",
                },
            ],
            "dead_letters": {"type": "parts", "path": str(folder / "letters")},
            "sinks": [dict(sink)],
            "checkpoints": {"place": checkpoints, "every": 0.01},
        }
        self._disturb = disturb
        self._files = 0
        self._begun = False

    def width(self) -> int:
        """How many slices the next engine has."""
        return self.random.randint(1, 3)

    @property
    def expected(self) -> Rows:
        return Counter((n, 2 * n, f"row {n}") for n in self._numbers() if n % 50 != 7)

    @property
    def expected_letters(self) -> Rows:
        return Counter((n, "error", f"ValueError: row {n} is bad") for n in self._numbers() if n % 50 == 7)

    def _numbers(self) -> range:
        return range(self._files * ROWS_OF_FILE)

    def letters(self) -> Rows:
        return rows_of_parts(str(self._folder / "letters"), ("n", "failed_outcome", "failed_error"))

    def add_file(self) -> None:
        first = self._files * ROWS_OF_FILE
        aside, path = self._input / ".aside", self._input / f"{self._files:06}.parquet"
        pq.write_table(pa.table({"n": pa.array(range(first, first + ROWS_OF_FILE))}), aside)
        aside.rename(path)
        self._files += 1

    @contextlib.contextmanager
    def engine(self, moment: str) -> Iterator[subprocess.Popen[str]]:
        """An engine, begun or resumed."""
        parallelism = self.width()
        path = self._folder / "pipeline.json"
        path.write_text(json.dumps(self._description | {"parallelism": parallelism}))
        command = [sys.executable, str(CHILD), str(path), moment, str(EPOCHS)]
        if self._begun:
            command.append("--resume")
        self._begun = True
        errors = self._folder / "errors"
        with (
            open(errors, "w") as stderr,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True) as process,
        ):
            try:
                yield process
            except BaseException:
                process.send_signal(signal.SIGABRT)
                process.wait()
                print(f"moment {moment}, {parallelism} slices", errors.read_text(), sep="\n")
                raise

    def kill(self, moment: str) -> None:
        """Lets an engine run until it is killed."""
        self.add_file()
        self.add_file()
        with self.engine(moment) as process:
            epochs = 0
            assert process.stdout is not None
            for line in process.stdout:
                assert line == "epoch\n"
                epochs += 1
                self.add_file()
                if epochs == 1 and self._disturb is not None and self.random.random() < 0.5:
                    self._disturb()
                if moment == "any" and epochs == EPOCHS:
                    time.sleep(self.random.random() / 10)  # until whenever
                    process.kill()
            assert process.wait(PATIENCE) == -signal.SIGKILL
            assert epochs >= EPOCHS

    def finish(self, found: Callable[[], Rows]) -> None:
        """Lets the last engine run until all rows are there."""
        self.add_file()
        self.run_until(lambda: found().total() + self.letters().total() >= len(self._numbers()))
        assert found() == self.expected
        letters = Counter((n, outcome, text.splitlines()[0]) for n, outcome, text in self.letters().elements())
        assert letters == self.expected_letters

    def run_until(self, is_there: Callable[[], bool]) -> None:
        """Lets an engine run until something is there, and stops it."""
        patience = time.monotonic() + PATIENCE
        with self.engine("none") as process:
            while not is_there():
                assert process.poll() is None, "the engine has ended by itself"
                assert time.monotonic() < patience, "rows are missing"
                time.sleep(0.01)  # between two looks; no result depends on its length
            process.send_signal(signal.SIGTERM)
            output, _ = process.communicate(timeout=PATIENCE)
            assert process.returncode == 0
            assert output.splitlines()[-1] == "resumable"


def killed_and_resumed(killing: Killing, found: Callable[[], Rows], has_parts: bool = False) -> None:
    moments = [MOMENTS[i % len(MOMENTS)] for i in range(KILLS)]
    killing.random.shuffle(moments)
    for moment in moments:
        killing.kill("applied" if moment == "renamed" and not has_parts else moment)
        many = {row: count for row, count in found().items() if count > 1}
        assert not many, "rows came twice"
    killing.finish(found)


def rows_of_parts(place: str, columns: Sequence[str] = ("n", "doubled", "text")) -> Rows:
    """Of all parts that can be seen, in a folder or bucket."""
    store, rows = open_store(place), Rows()
    for name in store.names("part-"):
        table = pq.read_table(pa.BufferReader(store.get(name)))
        rows.update(zip(*(table.column(column).to_pylist() for column in columns), strict=True))
    return rows


@pytest.fixture(scope="session")
def plugin(build_plugin: Callable[..., Path]) -> Path:
    return build_plugin(FUNCTIONS, name="killed")


def test_an_engine_that_is_killed_loses_and_repeats_nothing(plugin: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    killing = Killing(tmp_path, plugin, {"type": "parts", "path": str(out)}, str(tmp_path / "checkpoints"))
    killed_and_resumed(killing, lambda: rows_of_parts(str(out)), has_parts=True)
    assert not [path.name for path in out.iterdir() if path.name.startswith(".staged")]


@pytest.mark.pipelines
def test_parts_in_a_folder(plugin: Path, tmp_path: Path) -> None:
    test_an_engine_that_is_killed_loses_and_repeats_nothing(plugin, tmp_path)


@pytest.mark.pipelines
def test_parts_and_checkpoints_in_s3(plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with object_store_server.server(tmp_path / "s3") as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        bucket = server.bucket("killed")
        sink = {"type": "parts", "path": f"{bucket}/out"}
        killing = Killing(tmp_path, plugin, sink, f"{bucket}/checkpoints", server.restart)
        killed_and_resumed(killing, lambda: rows_of_parts(f"{bucket}/out"), has_parts=True)


@pytest.mark.pipelines
@pytest.mark.parametrize("key", [(), ("n",)], ids=["inserted", "upserted"])
def test_a_table_in_sqlite(key: tuple[str, ...], plugin: Path, tmp_path: Path) -> None:
    database = tmp_path / "rows.db"

    def found() -> Rows:
        with contextlib.closing(sqlite3.connect(database, timeout=60)) as connection:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE name = 'rows'").fetchall()
            return Rows(connection.execute("SELECT n, doubled, text FROM rows").fetchall() if tables else [])

    sink = {"type": "table", "uri": f"sqlite:{database}", "table": "rows", "key": list(key)}
    killed_and_resumed(Killing(tmp_path, plugin, sink, str(tmp_path / "checkpoints")), found)


@pytest.mark.pipelines
def test_a_table_in_postgresql(plugin: Path, tmp_path: Path) -> None:
    from adbc_driver_postgresql import dbapi

    with postgresql.server() as address:

        def found() -> Rows:
            with contextlib.closing(dbapi.connect(address)) as connection, connection.cursor() as cursor:
                cursor.execute("SELECT to_regclass('rows') IS NOT NULL")
                (is_there,) = cursor.fetchone()
                if not is_there:
                    return Rows()
                cursor.execute("SELECT n, doubled, text FROM rows")
                return Rows(map(tuple, cursor.fetchall()))

        sink = {"type": "table", "uri": address, "table": "rows"}
        checkpoints = str(tmp_path / "checkpoints")
        killing = Killing(tmp_path, plugin, sink, checkpoints, lambda: postgresql.restart(address))
        killed_and_resumed(killing, found)
