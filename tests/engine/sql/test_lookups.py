"""Lookups of SQL in PostgreSQL, and the options of their tables."""

from __future__ import annotations

import contextlib
import json
import shutil
import uuid
from pathlib import Path

import pytest
from sql_world import PLANES, pipeline_of, run, run_killed

from arroyo_udf_plugin.engine.connectors.database import open_database
from arroyo_udf_plugin.engine.connectors.table import Table
from arroyo_udf_plugin.engine.pipeline import Join, Lookup, Sql
from arroyo_udf_plugin.engine.planner.text import InvalidQuery

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


_SIDE = "SELECT tumble(interval '2 days') AS window, small AS k, {} FROM timed GROUP BY window, k"
SIDES = f"CREATE VIEW a AS {_SIDE.format('count(*) AS n')}; CREATE VIEW b AS {_SIDE.format('max(alt) AS m')};\n"


@pytest.mark.parametrize(
    ("where", "before", "after"),
    [
        ("f.alt > 10", '"alt" > 10', None),
        ("alt > 10 AND seats > 5", "alt", "seats"),
        ("alt > 10 AND random() < 2 AND f.tail || p.maker <> ''", "alt", "random"),
        ("seats > 5 AND 100 / id > 3 AND alt > 10", "alt", "100 /"),
        ("is_big(alt) AND alt > 10", '"alt" > 10', "__r1"),
        ("is_big(alt) AND 100 / id > 3", None, "100 /"),
        ("f.small > 0 AND p.small > 0", '"small"', "p.small"),
    ],
)
def test_conditions_on_rows_come_before_lookups(where: str, before: str | None, after: str | None) -> None:
    text = f"SELECT f.id, seats FROM flights f JOIN planes p ON f.tail = p.tail WHERE {where};"
    operators = pipeline_of(text, ["functions.so"]).operators
    (place,) = (place for place, operator in enumerate(operators) if isinstance(operator, Lookup))
    for expected, some in ((before, operators[:place]), (after, operators[place:])):
        found = " ".join(one.where for one in some if isinstance(one, Sql) and one.where)
        assert (expected in found) if expected is not None else not found


@pytest.mark.parametrize(
    ("kind", "where", "left", "right"),
    [
        ("", "a.n > 1 AND m > 5", True, True),
        ("LEFT", "a.n > 1 AND m > 5", True, False),
        ("RIGHT", "a.n > 1 AND m > 5", False, True),
        ("FULL", "a.n > 1 AND m > 5", False, False),
        ("", "a.n > 1 OR m > 5", False, False),
    ],
)
def test_conditions_on_one_side_come_before_joins(kind: str, where: str, left: bool, right: bool) -> None:
    text = f"{SIDES} SELECT a.k, n, m FROM a {kind} JOIN b ON a.window = b.window AND a.k = b.k WHERE {where};"
    pipeline = pipeline_of(text, [])
    (join,) = (operator for operator in pipeline.operators if isinstance(operator, Join))
    filtered = {operator.name for operator in pipeline.operators if isinstance(operator, Sql) and operator.where}
    assert (join.left in filtered, join.right in filtered) == (left, right)


@pytest.mark.parametrize("kind", ["", "LEFT", "RIGHT", "FULL"])
def test_early_conditions_change_no_result(kind: str) -> None:
    joined = f"{SIDES} SELECT a.k, n, m FROM a {kind} JOIN b ON a.window = b.window AND a.k = b.k + 1"
    (every,) = run(joined, []).values()
    rows = [json.loads(row) for row in every]
    wanted = [row for row in rows if row[1] is not None and row[1] > 1 and row[2] is not None and row[2] > 30]
    shutil.rmtree("rows")
    (found,) = run(f"{joined} WHERE a.n > 1 AND m > 30", []).values()
    assert wanted
    assert [json.loads(row) for row in found] == wanted


def test_a_name_of_two_tables_is_refused_in_a_condition() -> None:
    with pytest.raises(InvalidQuery, match="small is a column of f and p"):
        pipeline_of("SELECT f.id FROM flights f JOIN planes p ON f.tail = p.tail WHERE small > 0;", [])


@pytest.mark.parametrize(
    "text",
    [
        "SELECT p.small AS s, {}(f.id) AS y FROM flights f JOIN planes p ON f.tail = p.tail WHERE f.id + seats > 20",
        SIDES + "SELECT b.k, {}(n) AS y FROM a LEFT JOIN b ON a.window = b.window AND m > 50 WHERE m + n > 0",
        SIDES + "SELECT b.k, {}(n) AS y FROM a LEFT JOIN b ON a.window = b.window AND m > 80 WHERE b.window IS NULL",
    ],
)
def test_a_call_beside_a_column_whose_name_two_tables_have(text: str) -> None:
    (wanted,) = run(text.format("2 * "), []).values()
    shutil.rmtree("rows")
    (found,) = run(text.format("twice"), ["functions.so"]).values()
    assert found == wanted != []
