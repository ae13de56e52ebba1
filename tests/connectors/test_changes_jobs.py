"""Pipelines that read changes of a table: queries, and engines and servers that are killed."""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from connector_kills import KILLS, MOMENTS
from failing import ended
from published import FollowedTable, maker, replayed
from waiting import until

import postgresql as postgresql_server
from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.execution.stopping import StopRequest
from arroyo_udf_plugin.engine.pipeline.description import Pipeline, described
from arroyo_udf_plugin.engine.pipeline.document import pipeline_of
from arroyo_udf_plugin.engine.planner.script import Script

pytestmark = pytest.mark.connectors

Make = Callable[..., FollowedTable]
CHILD = Path(__file__).parents[1] / "engine" / "execution" / "kill" / "child.py"
EPOCHS = 1
PATIENCE = 120.0
LAST = 10**12
"""The key of the last row that is written."""


@pytest.fixture
def make(postgresql: str) -> Iterator[Make]:
    with maker(postgresql) as make:
        yield make


def query(
    table: FollowedTable, folder: Path, columns: str, select: str, heartbeat: str = "100 ms", **options: str
) -> Pipeline:
    """SQL over the changes, into a folder."""
    usual = {"uri": table.address, "table": table.name, "slot": table.slot, "heartbeat": heartbeat}
    written = ", ".join(f"'{name}' = '{value}'" for name, value in (usual | options).items())
    text = f"""
        CREATE TABLE t ({columns}) WITH (connector = 'postgresql_cdc', type = 'source', {written});
        CREATE TABLE out WITH (connector = 'filesystem', path = '{folder / "out"}', format = 'json');
        INSERT INTO out {select};
    """
    return Script("query.sql", text, []).pipeline


def shown(folder: Path) -> list[dict[str, Any]]:
    """The rows of all parts, in their order."""
    parts = sorted((folder / "out").glob("part-*"))
    return [json.loads(line) for part in parts for line in part.read_text().splitlines()]


def test_structs_and_metadata_in_sql(make: Make, tmp_path: Path) -> None:
    table = make()
    table.insert(1, 2)
    table.begin()
    table.sql("ALTER TABLE {t} REPLICA IDENTITY FULL")
    table.sql("UPDATE {t} SET name = 'new' WHERE id = 1")
    table.sql("DELETE FROM {t} WHERE id = 2")
    columns = """
        id BIGINT, op TEXT METADATA FROM 'op', before STRUCT<name TEXT> METADATA FROM 'before',
        after STRUCT<id BIGINT, name TEXT> METADATA FROM 'after', unsent TEXT[] METADATA FROM 'unsent',
        committed TIMESTAMP METADATA FROM 'committed', lsn BIGINT METADATA FROM 'lsn', WATERMARK FOR committed
    """
    select = "SELECT op, id, before.name AS old, after.name AS new, unsent, lsn > 0 AS has_lsn FROM t"
    pipeline = query(table, tmp_path, columns, select, snapshot="false", bounded="true")
    run_pipeline(pipeline)
    assert shown(tmp_path) == [
        {"op": "u", "id": 1, "old": "name 1", "new": "new", "unsent": [], "has_lsn": True},
        {"op": "d", "id": 2, "old": "name 2", "new": None, "unsent": [], "has_lsn": True},
    ]


def test_only_metadata_and_options_that_are_wrong(make: Make, tmp_path: Path) -> None:
    table = make()
    table.insert(1)
    after = "after STRUCT<name TEXT> METADATA FROM 'after'"
    run_pipeline(query(table, tmp_path, after, "SELECT after.name AS name FROM t", bounded="true"))
    assert shown(tmp_path) == [{"name": "name 1"}]
    for columns, options, text in (
        ("id BIGINT, x TEXT METADATA FROM 'operation'", {}, "has no metadata 'operation'"),
        ("id BIGINT", {"snapshot": "yes"}, "snapshot = 'yes' is not known"),
        ("id BIGINT", {"slot": "My-Slot"}, "slot: "),
        ("id BIGINT", {"slots": "a"}, "there is no option slots here: write 'slot'"),
        ("id BIGINT", {"uri": "sqlite:a.db"}, "changes are read from PostgreSQL"),
        ("id BIGINT, x BIGINT METADATA FROM 'op'", {}, "'x' is the op of changes: it is string, not int64"),
    ):
        with pytest.raises(Exception, match=text):
            query(table, tmp_path, columns, "SELECT * FROM t", **options)


class RunningChanges:
    """An engine in this process, which is stopped at the end of the block. errors: of it."""

    def __init__(self, description: dict[str, Any], resume: bool = False) -> None:
        self.stop, self.errors = StopRequest(timeout=60), list[BaseException]()
        self._thread = threading.Thread(target=self._run, args=(description, resume), daemon=True)

    def _run(self, description: dict[str, Any], resume: bool) -> None:
        try:
            run_pipeline(pipeline_of(description), resume=resume, stop=self.stop)
        except BaseException as error:
            self.errors.append(error)

    def __enter__(self) -> RunningChanges:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.request()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def ended(self) -> BaseException:
        until(lambda: bool(self.errors), "the error")
        return self.errors[0]


COLUMNS = "id BIGINT, name TEXT, op TEXT METADATA FROM 'op'"


def description_of(table: FollowedTable, folder: Path) -> dict[str, Any]:
    pipeline = query(table, folder, COLUMNS, "SELECT op, id, name FROM t")
    checkpoints = {"place": str(folder / "state"), "every": 0.02}
    return {**described(pipeline), "name": "changes", "checkpoints": checkpoints}


def test_a_quiet_table_lets_the_log_go(make: Make, tmp_path: Path) -> None:
    """Others write; the checkpoints go on, and the server hears of them. So it can be stopped, too."""
    table, other = make(), make()
    table.insert(1)
    with RunningChanges(description_of(table, tmp_path)) as engine:
        until(lambda: bool((tmp_path / "out").is_dir() and shown(tmp_path)) or bool(engine.errors), "the row")
        other.insert(*range(1000))
        ((end,),) = table.sql("SELECT pg_current_wal_lsn()")
        confirmed = "SELECT confirmed_flush_lsn >= %s::pg_lsn FROM pg_replication_slots WHERE slot_name = %s"
        until(lambda: table.sql(confirmed, end, table.slot)[0][0], "the confirmation")
        assert not engine.errors
    assert shown(tmp_path) == [{"op": "r", "id": 1, "name": "name 1"}]


# ---- Kills -----------------------------------------------------------------------------------------------------------


class ChangingLoad:
    """A thread that inserts, updates, moves and deletes rows until it is stopped, also while the server is away."""

    def __init__(self, table: FollowedTable, seed: int) -> None:
        self._table, self._random = table, random.Random(seed)
        self._stop, self.done = threading.Event(), 0
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._stop.wait(0.01):
            try:
                with psycopg.connect(self._table.address) as connection:
                    while not self._stop.wait(0.001):  # leaves the processors to the engine
                        self._transaction(connection)
                        self.done += 1
            except psycopg.OperationalError:
                continue

    def _transaction(self, connection: psycopg.Connection[Any]) -> None:
        name = self._table.name
        begin = self._random.randrange(10**9)
        count = self._random.choice([1, 3, 10, 200])
        connection.execute(
            f"INSERT INTO {name} SELECT n, 'new' FROM generate_series({begin}, {begin + count}) n "
            "ON CONFLICT DO NOTHING"
        )
        connection.execute(f"UPDATE {name} SET name = 'changed' WHERE id IN (SELECT id FROM {name} LIMIT {count // 2})")
        connection.execute(f"UPDATE {name} SET id = -id - 1 WHERE id = (SELECT max(id) FROM {name})")
        connection.execute(f"DELETE FROM {name} WHERE id IN (SELECT id FROM {name} OFFSET 3000 LIMIT {count})")
        (connection.rollback if self._random.random() < 0.1 else connection.commit)()

    def __enter__(self) -> ChangingLoad:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def test_kills(tmp_path: Path) -> None:
    """Engines and the server are killed again and again, also within the snapshot. In the end, what was written, change
    by change, leads to the table."""
    seed = int(os.environ.get("KILL_SEED", secrets.randbelow(10**6)))
    print(f"KILL_SEED={seed} KILLS={KILLS}")
    chosen = random.Random(seed)
    errors = tmp_path / "errors"
    with postgresql_server.server() as address, maker(address) as make:
        table = make()
        table.sql("INSERT INTO {t} SELECT n, 'name ' || n FROM generate_series(-40000, -1) n")
        path = tmp_path / "pipeline.json"
        path.write_text(json.dumps(description_of(table, tmp_path)))

        def engine(moment: str) -> subprocess.Popen[str]:
            resume = ["--resume"] if (tmp_path / "state" / "epochs").is_dir() else []
            command = [sys.executable, str(CHILD), str(path), moment, str(EPOCHS), *resume]
            with open(errors, "w") as stderr:
                return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)

        with ChangingLoad(table, seed) as load:
            for number in range(KILLS):
                moment = MOMENTS[number % len(MOMENTS)]
                with engine(moment) as process:
                    assert process.stdout is not None
                    for epochs, line in enumerate(process.stdout, 1):
                        assert line == "epoch\n", errors.read_text()
                        if epochs == 1 and number % 4 == 3:
                            postgresql_server.restart(address)
                        if moment == "any" and epochs == EPOCHS:
                            behind = load.done + chosen.randrange(5)
                            until(lambda: load.done > behind, "some load")  # noqa: B023 (called in this turn)
                            process.kill()
                    assert process.wait(PATIENCE) == -signal.SIGKILL, errors.read_text()
        table.connect_again()
        table.insert(LAST)
        parts = NewParts(tmp_path)
        with ended(engine("none")) as process:
            until(lambda: parts.have(f"name {LAST}") or process.poll() is not None, "the last row")
            # It may be one of the snapshot, before changes of others. A change of it comes behind all changes.
            table.sql("UPDATE {t} SET name = 'the last change' WHERE id = %s", LAST)
            until(lambda: parts.have("the last change") or process.poll() is not None, "the last change")
            process.send_signal(signal.SIGTERM)
            output, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors.read_text()
        assert output.splitlines()[-1] == "resumable"
        assert replayed(shown(tmp_path)) == dict(table.sql("SELECT id, name FROM {t}"))


class NewParts:
    """Of the output in a folder: each is read once."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._read = folder / "out", set[Path]()

    def have(self, text: str) -> bool:
        """Whether it is in one that was not read before. The others are left for the next text."""
        for part in sorted({*self._folder.glob("part-*")} - self._read):
            self._read.add(part)
            if text in part.read_text():
                return True
        return False
