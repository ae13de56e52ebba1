"""Tables of databases that are known by their driver of ADBC alone: here, SQLite's and PostgreSQL's by their paths."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import adbc_driver_postgresql
import adbc_driver_sqlite
import pyarrow as pa
import pytest
from sinks import execute, rows_of
from tables import is_sqlite
from test_table_source import numbers, positions, read, table_of

from arroyo_udf_plugin import InvalidArgument, run_pipeline
from arroyo_udf_plugin.engine.connectors import table_partition
from arroyo_udf_plugin.engine.connectors.adbc import AdbcInput
from arroyo_udf_plugin.engine.pipeline import Checkpoints
from arroyo_udf_plugin.engine.planner.script import Script


def driver(uri: str) -> dict[str, Any]:
    module: Any = adbc_driver_sqlite if is_sqlite(uri) else adbc_driver_postgresql
    return {"driver": module._driver_path(), "uri": uri.removeprefix("sqlite:")}


def test_all_rows_and_those_behind_each_position(uri: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_partition, "BATCH_ROWS", 2)
    table_of(uri, name, 7)
    whole = AdbcInput(**driver(uri), table=name)
    assert sorted(numbers(read(whole))) == list(range(7))
    model = AdbcInput(**driver(uri), table=name, key=["id"])
    for position, row in positions(model):
        assert numbers(read(model, position)) == list(range(row, 7))


@pytest.mark.server
def test_keys_of_several_columns_and_times(postgresql: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_partition, "BATCH_ROWS", 2)
    execute(
        postgresql,
        f"CREATE TABLE {name} (id bigint, day date, at timestamp, price numeric(5, 2))",
        f"INSERT INTO {name} SELECT n, '2026-01-01'::date + n / 3, '2026-01-01'::timestamp + n * interval '1 us', 1.50 "
        "FROM generate_series(0, 8) AS n",
    )
    for key in (["day", "id"], ["at"], ["day", "at"]):
        model = AdbcInput(**driver(postgresql), query=f"SELECT * FROM {name}", key=key)
        for position, row in positions(model):
            assert numbers(read(model, position)) == list(range(row, 9))
    first = read(model)[0]
    assert (first["day"], first["price"]) == (datetime.date(2026, 1, 1), "1.50")


def test_what_is_wrong(uri: str, name: str, tmp_path: Path) -> None:
    table_of(uri, name, 1)
    with pytest.raises(InvalidArgument, match=r"table t: the database: .*Could not load `no-driver`"):
        read(AdbcInput(driver="no-driver", table="t"))
    with pytest.raises(
        InvalidArgument, match=r"column 'word' is string in the database, and rows are read in the order"
    ):
        read(AdbcInput(**driver(uri), table=name, key=["word"]))
    with pytest.raises(InvalidArgument, match=rf"no.*{name}x|{name}x.*not exist"):
        read(AdbcInput(**driver(uri), table=f"{name}x"))
    with pytest.raises(InvalidArgument, match="'word' is string in the database, which is not read as int64"):
        read(AdbcInput(**driver(uri), table=name, types={"word": "int"}))


def test_types_are_those_of_the_driver(uri: str, name: str) -> None:
    table_of(uri, name, 1)
    source = AdbcInput(**driver(uri), table=name).source(1)
    assert source.schema == pa.schema([("id", pa.int64()), ("word", pa.string())])
    source.close()


def test_sql(uri: str, name: str, tmp_path: Path) -> None:
    table_of(uri, name, 3)
    where = driver(uri)
    query = f"""
        CREATE TABLE source (id BIGINT, word TEXT, PRIMARY KEY (id))
        WITH (connector = 'adbc', driver = '{where["driver"]}', database_options = 'uri={where["uri"]}',
              'table' = '{name}');
        CREATE TABLE target (id BIGINT, word TEXT)
        WITH (connector = 'sqlite', type = 'sink', uri = 'sqlite:{tmp_path}/out.db');
        INSERT INTO target SELECT id, word FROM source;
    """
    pipeline = Script("query.sql", query, []).pipeline
    pipeline = pipeline.model_copy(update={"checkpoints": Checkpoints(place=str(tmp_path / "state"))})
    assert run_pipeline(pipeline).ended == "finished"
    assert sorted(rows_of(f"sqlite:{tmp_path}/out.db", "target")) == [(n, f"word {n}") for n in range(3)]
