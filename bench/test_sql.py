"""SQL: a stage that takes batch after batch, against one bare query over all of them; windows; and a function in SQL,
against the same in a description."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pytest

from arroyo_udf_plugin import run_pipeline
from arroyo_udf_plugin.engine.connectors.source import Rows
from arroyo_udf_plugin.engine.datafusion.feed import context
from arroyo_udf_plugin.engine.datafusion.query import Query, Select
from arroyo_udf_plugin.engine.operators.blocks import Block, Columns, Given
from arroyo_udf_plugin.engine.operators.group_stage import GroupPlan
from arroyo_udf_plugin.engine.operators.grouped import GroupOperator
from arroyo_udf_plugin.engine.operators.operator import Operator
from arroyo_udf_plugin.engine.pipeline import Blackhole, Files, Functions, Lookup, Pipeline
from arroyo_udf_plugin.engine.pipeline.plan import plan
from arroyo_udf_plugin.engine.planner.script import Script
from arroyo_udf_plugin.engine.windows.grouping import Grouping
from arroyo_udf_plugin.engine.windows.opened import opened
from arroyo_udf_plugin.engine.windows.spans import Hop, Session
from conftest import BATCH_ROWS, Compare, plugin_path

BATCHES = 100

THREE = Select(
    {"id": "id", "a": "alt * 2 + 1", "b": "speed * 1.852", "c": "upper(callsign)"},
    "alt > 5000",  # of 0 to 39,999: it keeps 88 %
    "rows",
)
TEN = Select(
    {
        "id": "id",
        "a": "alt * 2 + 1",
        "b": "speed * 1.852",
        "c": "upper(callsign)",
        "d": "callsign || '-' || callsign",
        "e": "date_trunc('minute', time)",
        "f": "CASE WHEN alt > 20000 THEN 'high' ELSE 'low' END",
        "g": "substr(callsign, 1, 3)",
        "h": "regexp_like(callsign, '^DLH00')",
        "i": "abs(speed - 400)",
    },
    "alt > 5000 AND callsign LIKE 'DLH%'",
    "rows",
)


@pytest.fixture(scope="module")
def batches() -> list[pa.RecordBatch]:
    return [_batch(number * BATCH_ROWS) for number in range(16)]


def _batch(first: int) -> pa.RecordBatch:
    numbers = range(first, first + BATCH_ROWS)
    return pa.record_batch(
        {
            "id": pa.array(numbers, pa.int64()),
            "alt": pa.array([n * 7919 % 40_000 for n in numbers], pa.int64()),
            "speed": pa.array([n % 9000 / 10 for n in numbers], pa.float64()),
            "callsign": [f"DLH{n % 97:04}" for n in numbers],
            "time": pa.array([n * 1000 for n in numbers], pa.timestamp("us")),
        }
    )


@pytest.mark.parametrize(
    ("name", "select", "goal"),
    [("a filter of 88 % and three expressions", THREE, 1.25), ("ten expressions", TEN, 1.05)],
)
def test_expressions(compare: Compare, batches: list[pa.RecordBatch], name: str, select: Select, goal: float) -> None:
    asked = Query(select, batches[0].schema)
    items = ", ".join(f"{text} AS {name}" for name, text in (select.items or {}).items())
    text = f"SELECT {items} FROM rows WHERE {select.where}"

    def handed_over() -> None:
        for number in range(BATCHES):
            for _ in asked.run(batches[number % len(batches)]):
                pass

    def bare() -> None:
        own = context()
        own.register_record_batches("rows", [[batches[number % len(batches)] for number in range(BATCHES)]])
        for answer in own.sql(text).execute_stream():
            answer.to_pyarrow()

    compare(
        f"SQL: {name}", handed_over, bare, n=BATCHES, unit="us/batch", scale=1e6, reference_name="one query", goal=goal
    )


def test_columns(compare: Compare, batches: list[pa.RecordBatch]) -> None:
    asked = Query(Select({"id": "id", "callsign": "callsign"}), batches[0].schema)

    def run() -> None:
        for number in range(BATCHES):
            for _ in asked.run(batches[number % len(batches)]):
                pass

    compare("SQL: columns alone", run, None, n=BATCHES, unit="us/batch", scale=1e6, goal=5)


PLANNED = """
    SELECT id, alt * 2 + 1 AS a, speed * 1.852 AS b, upper(callsign) AS c, callsign || '-' || callsign AS d,
           date_trunc('minute', time) AS e, CASE WHEN alt > 20000 THEN 'high' ELSE 'low' END AS f,
           substr(callsign, 1, 3) AS g, regexp_like(callsign, '^DLH00') AS h, abs(speed - 400) AS i,
           coalesce(alt, 0) AS j, round(speed, 1) AS k, alt % 7 AS l, length(callsign) AS m,
           date_part('hour', time) AS n, nullif(alt, 5) AS o, CAST(speed AS BIGINT) AS p,
           mph(alt, id) AS q, plus_one(alt + 1) AS r, plus_one(plus_one(CAST(speed AS BIGINT))) AS s
    FROM rows WHERE alt > 5000"""


def test_planning(compare: Compare, batches: list[pa.RecordBatch], tmp_path: Path) -> None:
    """Twenty expressions with calls of functions, from the text to a checked pipeline."""
    file = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pa.Table.from_batches(batches[:1]), file)
    table = f"CREATE TABLE rows WITH (connector = 'filesystem', path = '{file}', format = 'parquet', type = 'source');"

    def run() -> None:
        plan(Script("query.sql", f"{table} {PLANNED}", [str(plugin_path(".py"))]).pipeline).close()

    compare("SQL: planning of 20 expressions", run, None, n=1, unit="ms", scale=1e3, goal=30)


def test_a_group_by(compare: Compare, tmp_path: Path) -> None:
    """Ten million rows of a Parquet file, with a function in C in an aggregate."""
    file = tmp_path / "rows.parquet"
    schema = pa.schema([("k", pa.int64()), ("x", pa.float64()), ("y", pa.int64())])
    with pyarrow.parquet.ParquetWriter(file, schema) as writer:
        rows = _timed(0, pa.schema([*schema, ("t", pa.timestamp("ns"))])).select(schema.names)
        for _ in range(10):
            writer.write_table(pa.Table.from_batches([rows] * 122))
    text = f"""
        CREATE TABLE rows WITH (connector = 'filesystem', path = '{file}', format = 'parquet', type = 'source');
        CREATE TABLE nothing WITH (connector = 'blackhole');
        INSERT INTO nothing SELECT k, sum(mph(y, k + 1)) AS speed FROM rows GROUP BY k"""
    pipeline = Script("query.sql", text, [str(plugin_path(".c"))]).pipeline

    def bare() -> None:
        own = datafusion.SessionContext()
        own.register_parquet("rows", str(file))
        own.sql("SELECT k, sum(y * 60.0 / (k + 1)) AS speed FROM rows GROUP BY k").collect()

    compare(
        "SQL: GROUP BY of 10 million rows, with mph",
        lambda: run_pipeline(pipeline),
        bare,
        n=10 * 122 * BATCH_ROWS,
        unit="ns/row",
        scale=1e9,
        reference_name="DataFusion alone",
        goal=1.2,
        rounds=3,
    )


WINDOWED = 1221  # ten million rows
PER_SECOND = 20_000


def test_windows(compare: Compare) -> None:
    """Tumbling windows of a minute, 1,000 keys: the operator alone, with a watermark behind each batch."""
    schema = pa.schema([("k", pa.int64()), ("x", pa.float64()), ("y", pa.int64()), ("t", pa.timestamp("ns"))])
    first = _timed(0, schema)
    given = [_later(first, number * BATCH_ROWS) for number in range(WINDOWED)]
    blocks = [Columns(schema).block(Rows("rows", 1, batch)) for batch in given]
    aggregates = {"n": "count(*)", "s": "sum(x)", "low": "min(y)", "high": "max(y)", "a": "avg(x)"}
    window = Hop(60_000_000_000, 60_000_000_000)
    plan = GroupPlan("groups", Grouping("t", window, keys=("k",), aggregates=aggregates), Given(schema))

    def gathered() -> None:
        operator = GroupOperator(plan)
        operator.start()
        results = 0
        for number, block in enumerate(blocks, 1):
            operator.push(block)
            operator.push_watermark(number * BATCH_ROWS * 1_000_000_000 // PER_SECOND + 5_000_000_000)
            results += sum(len(item) for item in operator.take() if isinstance(item, Block))
        assert results == 8 * 1_000
        state = operator.snapshot()
        assert state is not None
        assert sum(part.rows.nbytes for part in state.parts) < 5 << 20

    compare(
        "SQL: tumbling count, sum, min, max, avg of 1,000 keys",
        gathered,
        None,
        n=WINDOWED * BATCH_ROWS,
        unit="ns/row",
        scale=1e9,
        goal=1e9 / 15e6,
    )


def _timed(first: int, schema: pa.Schema) -> pa.RecordBatch:
    """Each third row is up to five seconds late."""
    numbers = range(first, first + BATCH_ROWS)
    columns = [
        [n * 7919 % 1000 for n in numbers],
        [n % 997 / 7 for n in numbers],
        [n % 100 for n in numbers],
        [n * 1_000_000_000 // PER_SECOND + (10 - (n % 5 if n % 3 == 0 else 0)) * 1_000_000_000 for n in numbers],
    ]
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _later(batch: pa.RecordBatch, rows: int) -> pa.RecordBatch:
    """The same rows, so many rows later."""
    times = pc.add(batch.column("t").view(pa.int64()), rows * 1_000_000_000 // PER_SECOND).view(pa.timestamp("ns"))
    return batch.set_column(3, batch.schema.field(3), times)


SESSIONS = 60


@pytest.mark.parametrize(
    ("name", "aggregates"),
    [
        ("count, sum, max", {"n": "count(*)", "s": "sum(x)", "high": "max(x)"}),
        ("count, median", {"n": "count(*)", "m": "median(x)"}),
    ],
)
def test_sessions(compare: Compare, name: str, aggregates: dict[str, str]) -> None:
    """Of 1,000 keys, with a gap that some of them leave: half a million rows, with a watermark behind each batch."""
    schema = pa.schema([("k", pa.int64()), ("x", pa.float64()), ("y", pa.int64()), ("t", pa.timestamp("ns"))])
    seed = random.Random(1)
    given = [_scattered(number * BATCH_ROWS, schema, seed) for number in range(SESSIONS)]
    asked = Grouping("t", Session(200_000_000), keys=("k",), aggregates=aggregates)

    def joined() -> None:
        windows, rows = opened(asked, schema), 0
        for number, batch in enumerate(given, 1):
            windows.add(batch)
            windows.watermark = number * BATCH_ROWS * 1_000_000_000 // PER_SECOND
            rows += sum(pc.sum(found.column("n")).as_py() for step in windows.close() for found in step)
        rows += sum(pc.sum(found.column("n")).as_py() for step in windows.close(all_of_them=True) for found in step)
        assert rows == SESSIONS * BATCH_ROWS

    compare(
        f"SQL: sessions of 1,000 keys, {name}",
        joined,
        None,
        n=SESSIONS * BATCH_ROWS,
        unit="ns/row",
        scale=1e9,
        goal=1e9 / 0.4e6,
    )


def _scattered(first: int, schema: pa.Schema, seed: random.Random) -> pa.RecordBatch:
    """Any key, up to a second later than the row before."""
    numbers = range(first, first + BATCH_ROWS)
    columns = [
        [seed.randrange(1000) for _ in numbers],
        [n % 997 / 7 for n in numbers],
        [n % 100 for n in numbers],
        [n * 1_000_000_000 // PER_SECOND + seed.randrange(1_000_000_000) for n in numbers],
    ]
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


KEYS = 3_000
ADDED: dict[str, Any] = {"columns": {"maker": "maker", "seats": "seats", "year": "year"}}


@contextlib.contextmanager
def planes(folder: Path, **options: Any) -> Iterator[tuple[Operator, list[tuple[Any, ...]]]]:
    """A lookup of three columns in SQLite, and the rows of the table."""
    with contextlib.closing(sqlite3.connect(folder / "planes.db")) as database, database:
        database.execute("CREATE TABLE planes (tail TEXT PRIMARY KEY, maker TEXT, seats INTEGER, year INTEGER)")
        rows = [(f"N{n:05}", f"maker {n % 50}", n % 300, 1950 + n % 70) for n in range(KEYS)]
        database.executemany("INSERT INTO planes VALUES (?, ?, ?, ?)", rows)
    lookup = Lookup(uri=f"sqlite:{folder / 'planes.db'}", table="planes", keys={"tail": "tail"}, **ADDED, **options)
    operator = Operator("planes", [lookup.plan("planes", Given(_tailed(0).schema))])
    operator.start()
    with contextlib.closing(operator):
        yield operator, rows


def looked_up(operator: Operator) -> int:
    """How many rows of a batch come out."""
    found = sum(len(item) for item in operator.take() if isinstance(item, Block))
    while operator.held_rows:
        for stage in operator.waiting:
            asyncio.run(stage.wait_results())
        found += sum(len(item) for item in operator.take() if isinstance(item, Block))
    return found


def test_lookups(compare: Compare, tmp_path: Path) -> None:
    """Rows look up three columns of a table in SQLite, all of whose keys are in the cache."""
    given = [_tailed(number) for number in range(16)]
    blocks = [Columns(batch.schema).block(Rows("rows", 1, batch)) for batch in given]
    with planes(tmp_path, cache_seconds=3600.0) as (operator, rows):
        table = {tail: found for tail, *found in rows}

        def all_of_them() -> None:
            for block in blocks:
                operator.push(block)
                assert looked_up(operator) == BATCH_ROWS

        def in_a_dict() -> None:
            for batch in given:
                found = [table[tail] for tail in batch.column("tail").to_pylist()]
                added = [pa.array(column) for column in zip(*found, strict=True)]
                pa.RecordBatch.from_arrays([*batch.columns, *added], names=["id", "tail", *ADDED["columns"]])

        name = "SQL: lookups, all in the cache"
        compare(
            name, all_of_them, in_a_dict, n=len(blocks), unit="us/batch", scale=1e6, reference_name="a dict", goal=0.6
        )


def test_lookups_of_the_database(compare: Compare, tmp_path: Path) -> None:
    """The same without a cache: the keys of each batch are one query, in another thread."""
    given = [_tailed(number) for number in range(4)]
    blocks = [Columns(batch.schema).block(Rows("rows", 1, batch)) for batch in given]
    with (
        planes(tmp_path, cache_seconds=0.0) as (operator, _),
        contextlib.closing(sqlite3.connect(tmp_path / "planes.db")) as database,
    ):

        def all_of_them() -> None:
            for block in blocks:
                operator.push(block)
                assert looked_up(operator) == BATCH_ROWS

        def key_by_key() -> None:
            for batch in given:
                tails = batch.column("tail").to_pylist()
                select = "SELECT maker, seats, year FROM planes WHERE tail = ?"
                table = {tail: database.execute(select, (tail,)).fetchone() for tail in set(tails)}
                added = [pa.array(column) for column in zip(*(table[tail] for tail in tails), strict=True)]
                pa.RecordBatch.from_arrays([*batch.columns, *added], names=["id", "tail", *ADDED["columns"]])

        name = "SQL: lookups, none in the cache"
        compare(
            name,
            all_of_them,
            key_by_key,
            n=len(blocks),
            unit="us/batch",
            scale=1e6,
            reference_name="a query a key",
            goal=0.6,
        )


def _tailed(number: int) -> pa.RecordBatch:
    numbers = range(number * BATCH_ROWS, (number + 1) * BATCH_ROWS)
    return pa.record_batch({"id": list(numbers), "tail": [f"N{n * 7919 % KEYS:05}" for n in numbers]})


def test_a_function(compare: Compare, flights: pa.Table, tmp_path: Path) -> None:
    file = tmp_path / "flights.parquet"
    pyarrow.parquet.write_table(flights, file)
    text = f"""
        CREATE TABLE flights WITH (connector = 'filesystem', path = '{file}', format = 'parquet', type = 'source');
        CREATE TABLE nothing WITH (connector = 'blackhole');
        INSERT INTO nothing SELECT *, mph(distance, air_time) AS speed FROM flights"""
    in_sql = Script("query.sql", text, [str(plugin_path(".py"))]).pipeline
    described = Pipeline(
        name="speeds",
        source=Files(paths=[str(file)]),
        operators=[Functions(plugin=str(plugin_path(".py")), calls=["speed = mph(distance, air_time)"])],
        sinks=[Blackhole()],
    )
    compare(
        "SQL: mph in a query",
        lambda: run_pipeline(in_sql),
        lambda: run_pipeline(described),
        n=len(flights),
        unit="ns/row",
        scale=1e9,
        reference_name="a description",
        goal=1.15,
    )


DOCUMENTS = [
    {
        "icao": f"a{n:05x}",
        "callsign": f"DAL{n}",
        "alt": n * 37 % 40_000,
        "speed": n * 7 % 9000 / 10,
        "on_ground": n % 3 == 0,
        "position": {"lat": n / 300, "lon": -n / 200},
        "tags": ["x", "y"],
        "note": 'a "quoted" word',
        "seen": 1_384_000_000 + n,
        "dest": f"JFK{n % 10}",
    }
    for n in range(BATCH_ROWS)
]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("the second key", "doc ->> 'callsign'", lambda found: found["callsign"]),
        ("a key in an object", "doc -> 'position' ->> 'lon'", lambda found: found["position"]["lon"]),
        ("a number", "(doc -> 'alt')::bigint", lambda found: found["alt"]),
        ("the last key", "doc ->> 'dest'", lambda found: found["dest"]),
        ("a path", "get_first_json_object(doc, '$.position.lon')", lambda found: found["position"]["lon"]),
    ],
)
def test_json(compare: Compare, name: str, text: str, value: Callable[[Any], object]) -> None:
    """Ten keys in 220 bytes."""
    texts = [json.dumps(document) for document in DOCUMENTS]
    batch = pa.record_batch({"doc": texts})
    asked = Query(Select({"x": text}), batch.schema)

    def run() -> None:
        for _ in range(10):
            for _ in asked.run(batch):
                pass

    def loads() -> None:
        for _ in range(10):
            [value(json.loads(one)) for one in texts]

    compare(
        f"SQL: JSON, {name}",
        run,
        loads,
        n=10,
        unit="ms/batch",
        scale=1e3,
        reference_name="json.loads",
        goal=0.077,  # 1 ms, where json.loads takes 13 ms
    )
