"""Lookups of SQL in PostgreSQL, and the options of their tables."""

from __future__ import annotations

import contextlib
import uuid
from pathlib import Path

import pytest
from sql_world import PLANES, pipeline_of, run, run_killed

from arroyo_udf_plugin.connectors.database import open_database
from arroyo_udf_plugin.connectors.table import Table
from arroyo_udf_plugin.pipeline.description import Lookup

pytestmark = [pytest.mark.usefixtures("folder"), pytest.mark.once]

JOINED = """
SELECT id, f.tail, b.maker, b.seats, b.share FROM flights f LEFT JOIN {planes} b ON f.tail = b.tail AND b.seats > 10;
"""


def table(options: str) -> Lookup:
    """The lookup of a table with these options."""
    text = f"CREATE TEMPORARY TABLE p (tail TEXT) WITH (connector = 'sqlite', uri = 'sqlite:planes.db', {options});"
    pipeline = pipeline_of(f"{text} SELECT id FROM flights f JOIN p ON f.tail = p.tail;", [])
    (found,) = (operator for operator in pipeline.operators if isinstance(operator, Lookup))
    return found


@pytest.mark.parametrize(
    ("options", "size", "seconds"),
    [
        ("table = 'planes'", 8 << 20, 60.0),
        ("table = 'planes', 'lookup.cache.max_bytes' = '1 MiB', 'lookup.cache.ttl' = '90 s'", 1 << 20, 90.0),
        ("table = 'planes', lookup.cache.max_bytes = 2000, lookup.cache.ttl = INTERVAL '2 minutes'", 2000, 120.0),
        ("table = 'planes', 'lookup.cache.max_bytes' = '0', 'lookup.cache.ttl' = '90 s'", 8 << 20, 0.0),
    ],
)
def test_the_cache(options: str, size: int, seconds: float) -> None:
    found = table(options)
    assert (found.table, found.cache_bytes, found.cache_seconds) == ("planes", size, seconds)


def test_columns_that_nobody_names_are_not_read() -> None:
    text = "SELECT f.id, upper(p.maker) AS m FROM flights f JOIN planes p ON f.tail = p.tail WHERE seats > 1;"
    (found,) = (operator for operator in pipeline_of(text, []).operators if isinstance(operator, Lookup))
    assert set((found.columns or {}).values()) == {"tail", "maker", "seats"}


@pytest.mark.server
def test_a_table_in_postgresql(postgresql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its types are those of the database, and its address is in no description."""
    monkeypatch.setenv("PLANES_DB", postgresql)
    name = f"p{uuid.uuid4().hex}"
    sink = Table(uri=postgresql, table=name).sink(PLANES.schema, 0, None, "pipeline", "sink")
    with contextlib.closing(sink):
        for batch in PLANES.to_batches():
            sink.write(batch)
        sink.finish()
    options = f"connector = 'postgres', uri = '${{PLANES_DB}}', table = '{name}'"
    text = f"CREATE TEMPORARY TABLE planes2 WITH ({options});" + JOINED.format(planes="planes2")
    assert postgresql not in str(pipeline_of(text, []))
    wanted = run(JOINED.format(planes="planes"), [])
    Path("rows").rename("rows of sqlite")
    assert run(text, []) == wanted
    Path("rows").rename("rows of postgresql")
    assert run_killed(text, [], monkeypatch) == wanted
    with contextlib.closing(open_database(postgresql, "test")) as database:
        ((left,),) = database.run(
            lambda transaction: transaction.rows(
                "SELECT count(*) FROM pg_stat_activity WHERE query LIKE $1 AND state <> 'active'", f"%{name}%"
            ),
            0,
        )
    assert left == 0, "connections are closed at the end"
