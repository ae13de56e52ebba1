"""Pipelines from a table of PostgreSQL to another one are killed with SIGKILL, again and again, and so is the server:
the target has each row of the source once, and the latest state of each row that has changed.

Each engine commits some epochs and is killed, between two steps of an epoch or whenever. The next one resumes it.
Meanwhile the test adds and changes rows, some of them late.

KILLS: see connector_kills.py. KILL_SEED: of all that is random here.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import adbc_driver_postgresql.dbapi as adbc
import adbc_driver_sqlite.dbapi as sqlite
import pytest
from connector_kills import KILLS, MOMENTS
from failing import ended
from waiting import until

import postgresql as postgresql_server
from arroyo_udf_plugin.engine.connectors import table_partition
from arroyo_udf_plugin.engine.connectors.interface import Partition
from arroyo_udf_plugin.engine.connectors.table_source import TableInput
from arroyo_udf_plugin.testing import check_source

pytestmark = pytest.mark.connectors

EPOCHS = 2
ROWS = 300
PATIENCE = 120.0
CHILD = Path(__file__).parents[1] / "engine" / "execution" / "kill" / "child.py"
FUNCTION = """
from arroyo_udf_plugin import udf


@udf
def shouted(word: str) -> str:
    return word.upper()
"""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """One of these tests alone, because they kill it."""
    with postgresql_server.server() as address:
        yield address


class Database:
    """What the test itself does there."""

    def __init__(self, address: str) -> None:
        self.address = address

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        with adbc.connect(self.address, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []

    def has(self, table: str) -> bool:
        return bool(self.run(f"SELECT to_regclass('{table}') IS NOT NULL")[0][0])


class Killed:
    """A pipeline and its engines. change: adds and changes rows, in the epoch with this number."""

    def __init__(self, folder: Path, database: Database, change: Callable[[int], None], description: Any) -> None:
        self._folder, self._database, self._change, self._description = folder, database, change, description
        seed = int(os.environ.get("KILL_SEED", secrets.randbelow(10**6)))
        print(f"KILL_SEED={seed} KILLS={KILLS}")
        self._random, self._epoch = random.Random(seed), 0

    def change(self) -> None:
        self._change(self._epoch)
        self._epoch += 1

    def _engine(self, moment: str, is_first: bool) -> subprocess.Popen[str]:
        path, errors = self._folder / "pipeline.json", self._folder / "errors"
        path.write_text(json.dumps(self._description | {"parallelism": self._random.randint(1, 2)}))
        command = [sys.executable, str(CHILD), str(path), moment, str(EPOCHS), *([] if is_first else ["--resume"])]
        with open(errors, "w") as stderr:
            return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)

    def _errors(self) -> str:
        return (self._folder / "errors").read_text()

    def kill(self, moment: str, is_first: bool, disturb: bool) -> None:
        """Lets an engine run until it is killed. disturb: the server is killed, too, and started again."""
        self.change()
        with self._engine(moment, is_first) as process:
            assert process.stdout is not None
            for epochs, line in enumerate(process.stdout, 1):
                assert line == "epoch\n", self._errors()
                self.change()
                if epochs == 1 and disturb:
                    postgresql_server.restart(self._database.address)
                    self.change()
                if moment == "any" and epochs == EPOCHS:
                    time.sleep(self._random.random() / 10)  # a kill at any moment: no result depends on its length
                    process.kill()
            assert process.wait(PATIENCE) == -signal.SIGKILL, self._errors()

    def run(self, expected: Callable[[], Any], found: Callable[[], Any]) -> None:
        for number in range(KILLS):
            self.kill(MOMENTS[number % len(MOMENTS)], is_first=not number, disturb=number % 3 == 1)
        self.change()
        with ended(self._engine("none", is_first=False)) as process:
            until(lambda: found() == expected() or process.poll() is not None, "all rows")
            process.send_signal(signal.SIGTERM)
            output, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, self._errors()
        assert output.splitlines()[-1] == "resumable"
        assert found() == expected()


def described(
    database: Database, folder: Path, plugin: Path, source: Mapping[str, Any], sink: Mapping[str, Any]
) -> Any:
    return {
        "name": "killed",
        "source": {"type": "table", "uri": database.address, "table": "source", "every": 0.02, **source},
        "operators": [{"plugin": str(plugin), "calls": ["shout = shouted(word)"]}],
        "sinks": [{"type": "table", "uri": database.address, "table": "target", "columns": ["id", "shout"], **sink}],
        "checkpoints": {"place": str(folder / "checkpoints"), "every": 0.02},
    }


@pytest.fixture
def database(server: str) -> Database:
    database = Database(server)
    for table in ("source", "target", "arroyo_udf_epochs"):
        database.run(f"DROP TABLE IF EXISTS {table}")
    database.run("CREATE TABLE source (id bigint PRIMARY KEY, word text NOT NULL, changed timestamptz NOT NULL)")
    return database


def test_rows_that_are_added_some_of_them_late(
    database: Database, tmp_path: Path, build_plugin: Callable[..., Path]
) -> None:
    """The target has no key, so a row that came twice would be there twice."""
    late: list[int] = []

    def change(epoch: int) -> None:
        first = 1000 * epoch
        numbers = [*range(first, first + ROWS), *late]
        late[:] = range(first + ROWS, first + ROWS + 5)  # they come after those of the next epoch
        values = ", ".join(f"({number}, 'word {number}', now())" for number in numbers)
        database.run(f"INSERT INTO source VALUES {values}")

    def target() -> list[tuple[Any, ...]]:
        return database.run("SELECT id, shout FROM target ORDER BY id") if database.has("target") else []

    plugin = build_plugin(FUNCTION, name="shouted")
    description = described(database, tmp_path, plugin, {"key": ["id"], "overlap_keys": 2000}, {})
    killed = Killed(tmp_path, database, change, description)
    killed.run(lambda: database.run("SELECT id, upper(word) FROM source ORDER BY id"), target)


def test_rows_that_change(database: Database, tmp_path: Path, build_plugin: Callable[..., Path]) -> None:
    def change(epoch: int) -> None:
        first = 100 * epoch
        values = ", ".join(f"({number}, 'word {epoch}', clock_timestamp())" for number in range(first, first + ROWS))
        database.run(
            f"INSERT INTO source VALUES {values} "
            "ON CONFLICT (id) DO UPDATE SET word = excluded.word, changed = clock_timestamp()"
        )

    def target() -> list[tuple[Any, ...]]:
        return database.run("SELECT id, shout FROM target ORDER BY id") if database.has("target") else []

    plugin = build_plugin(FUNCTION, name="shouted")
    source = {"key": ["id"], "updated_at": "changed", "overlap": 60}
    killed = Killed(tmp_path, database, change, described(database, tmp_path, plugin, source, {"key": ["id"]}))
    killed.run(lambda: database.run("SELECT id, upper(word) FROM source ORDER BY id"), target)


def test_a_server_that_is_away_is_waited_for(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    model = TableInput(uri=database.address, table="source", key=["id"], every=0.01)

    async def next_ids(partition: Partition) -> list[int]:
        rows = await asyncio.wait_for(partition.read(), PATIENCE)
        assert rows is not None
        return [int(number.as_py()) for number in rows.batch.column("id")]

    async def follow() -> None:
        database.run("INSERT INTO source VALUES (1, 'word', now())")
        source = model.source(1)
        partition = source.open("rows", None)
        try:
            assert await next_ids(partition) == [1]
            postgresql_server.kill(database.address)
            waiting = asyncio.ensure_future(next_ids(partition))
            await asyncio.to_thread(until, lambda: "table source waits for it" in caplog.text, "the warning")
            await asyncio.to_thread(postgresql_server.start, database.address)
            database.run("INSERT INTO source VALUES (2, 'word', now())")
            assert await waiting == [2]
        finally:
            partition.close()
            source.close()

    asyncio.run(follow())


def test_a_table_keeps_what_every_source_promises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In SQLite, because each of some hundred engines connects anew."""
    monkeypatch.setattr(table_partition, "BATCH_ROWS", 2)
    uri = f"sqlite:{tmp_path / 'rows.db'}"
    with sqlite.connect(uri.removeprefix("sqlite:"), autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE source (id INTEGER PRIMARY KEY)")
        cursor.execute("INSERT INTO source VALUES (1), (2), (3)")
    model = TableInput(uri=uri, table="source", key=["id"])
    check_source(tmp_path / "check", lambda: model.source(1), most=1)
