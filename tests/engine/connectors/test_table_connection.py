"""Tables whose database is away, locked, or killed: no row is lost or doubled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import adbc_driver_sqlite.dbapi
import pytest
from sinks import SCHEMA, batch, execute, rows_of
from tables import with_checkpoints, written

import postgresql as postgresql_server
from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.engine.connectors import database
from arroyo_udf_plugin.engine.connectors.table import Table


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("mysql://x", "the uri of a database begins with postgresql:// or sqlite:"),
        ("rows.db", "the uri of a database begins with"),
        ("sqlite:", "name the file of the SQLite database"),
        ("sqlite://rows.db", "name the file of the SQLite database"),
        ("sqlite::memory:", "name the file of the SQLite database"),
        ("sqlite:/none/rows.db", "the folder /none does not exist"),
        ("postgresql://user:secret@127.0.0.1:1/x", "PostgreSQL: .*Connection refused"),
    ],
)
def test_databases_that_are_not_there(uri: str, text: str) -> None:
    with pytest.raises(InvalidArgument, match=rf"table \(t\): {text}") as caught:
        Table(uri=uri, table="t").check(SCHEMA)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("slashes", ["", "///"])
def test_a_database_may_be_named_by_a_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slashes: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Table(uri=f"sqlite:{slashes}rows.db", table="t").check(SCHEMA)
    assert list(tmp_path.iterdir()) == []
    written(f"sqlite:{slashes}rows.db", "t", batch(1))
    assert rows_of("sqlite:rows.db", "t") == [(1, "row 1")]


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "rows.db").write_text("no database" * 1000)
    with pytest.raises(InvalidArgument, match=r"table \(t\): SQLite: .*not a database"):
        Table(uri=f"sqlite:{tmp_path / 'rows.db'}", table="t").check(SCHEMA)


def test_another_writer_of_sqlite_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_BUSY_MS", 1)
    uri = f"sqlite:{tmp_path / 'rows.db'}"
    written(uri, "t", batch(1))
    other = adbc_driver_sqlite.dbapi.connect(str(tmp_path / "rows.db"))
    with other.cursor() as cursor:
        cursor.execute("INSERT INTO t VALUES (2, 'x')")
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            other.commit()

    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.database.time.sleep", sleep)
    written(uri, "t", batch(3))
    other.close()
    assert waited == [0.1, 0.2, 0.4]
    assert sorted(row[0] for row in rows_of(uri, "t")) == [1, 2, 3]


def test_patience_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(database, "_BUSY_MS", 1)
    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.database.time.monotonic", lambda: now[0])
    later = "arroyo_udf_plugin.engine.connectors.database.time.sleep"
    monkeypatch.setattr(later, lambda seconds: now.__setitem__(0, now[0] + seconds))
    uri = f"sqlite:{tmp_path / 'rows.db'}"
    written(uri, "t", batch(1))
    other = adbc_driver_sqlite.dbapi.connect(str(tmp_path / "rows.db"))
    with other.cursor() as cursor:
        cursor.execute("INSERT INTO t VALUES (2, 'x')")
    with pytest.raises(InvalidArgument, match=r"sink \(t\): SQLite: .*database is locked"):
        written(uri, "t", batch(3))
    other.close()
    assert database.PATIENCE - 10 < now[0] <= database.PATIENCE


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[str]:
    """A server that the test may kill."""
    with postgresql_server.server() as address:
        yield address


@pytest.mark.server
def test_connections_that_end_lose_and_double_nothing(
    postgresql: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends the sink's connection before each statement in turn, and after the commit."""
    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.database.time.sleep", lambda seconds: None)
    sink = with_checkpoints(tmp_path, Table(uri=postgresql, table=name, key=["a"]), history=name)
    sink.clear(1)
    real_rows, real_once = database.Transaction.rows, database.Connected._once
    left = 0

    def end(target: database.Transaction) -> None:
        ((backend,),) = real_rows(target, "SELECT pg_backend_pid()")
        execute(postgresql, f"SELECT pg_terminate_backend({backend}, 10000)")

    def rows(self: database.Transaction, statement: str, *parameters: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            end(self)
        return real_rows(self, statement, *parameters)

    monkeypatch.setattr(database.Transaction, "rows", rows)
    for statement in range(1, 6):
        sink.write(batch(statement))
        sealed = sink.seal(statement + 1)
        assert sealed is not None
        stored = sealed.store()
        left = statement
        sink.apply(statement + 1, stored)
    monkeypatch.setattr(database.Transaction, "rows", real_rows)

    def once(self: Any, work: Any) -> Any:
        """The answer to a commit gets lost."""
        nonlocal left
        result = real_once(self, work)
        left -= 1
        if left == 0:
            self._committing = True
            raise self._driver.OperationalError("no connection", status_code=10)
        return result

    left = 1
    monkeypatch.setattr(database.Connected, "_once", once)
    sink.write(batch(6))
    sealed = sink.seal(7)
    assert sealed is not None
    sink.apply(7, sealed.store())
    assert left == -1
    sink.close()
    assert sorted(row[0] for row in rows_of(postgresql, name)) == [1, 2, 3, 4, 5, 6]

    left = -1
    plain = Table(uri=postgresql, table=name).sink(SCHEMA, 0, None, "pipeline", "sink")
    plain.write(batch(7))
    left = 1
    with pytest.raises(InvalidArgument, match=r"lost during a commit, so nobody knows whether its rows are in the"):
        plain.write(batch(8))
    plain.close()


@pytest.mark.server
def test_a_server_that_is_killed_and_started_again(own_server: str, tmp_path: Path) -> None:
    sink = with_checkpoints(tmp_path / "stage", Table(uri=own_server, table="t"), history="h")
    sink.clear(1)
    for epoch in range(2, 5):
        sink.write(batch(epoch))
        sealed = sink.seal(epoch)
        assert sealed is not None
        stored = sealed.store()
        postgresql_server.restart(own_server)
        sink.apply(epoch, stored)
    sink.close()
    assert sorted(row[0] for row in rows_of(own_server, "t")) == [2, 3, 4]
