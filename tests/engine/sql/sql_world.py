"""A table of flights, functions for it, and two ways to run a query over them: the engine, and DataFusion alone."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import decimal
import itertools
import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from datafusion import SessionConfig, SessionContext, udf
from plain_json import plain

from arroyo_udf_plugin import failpoints
from arroyo_udf_plugin.engine.connectors.parts import Parts
from arroyo_udf_plugin.engine.datafusion.native_calls import RewrittenText, with_native
from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.pipeline import Checkpoints, Pipeline
from arroyo_udf_plugin.engine.pipeline.plan import plan
from arroyo_udf_plugin.engine.planner.script import Script
from arroyo_udf_plugin.engine.planner.text import Text

FUNCTIONS = """
import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from arroyo_udf_plugin import udaf, udf, udtf

@udf
async def plane(tail: str) -> str:
    await asyncio.sleep(0)
    return "P-" + tail

@udf
def twice(n: int) -> int:
    return 2 * n

@udf(allowed_in_flight=3)
async def add(a: int, b: int) -> int:
    await asyncio.sleep(0)
    return a + b

@udf
def is_big(n: int) -> bool:
    return n > 50

@udf
async def is_plane(tail: str) -> bool:
    await asyncio.sleep(0)
    return tail.startswith("N")

@udf
def tags_of(tail: str) -> list[str]:
    return [tail[:1], tail[1:]]

@udf
def half(x: float) -> float:
    return x / 2

@udf
def known(n: int | None) -> str:
    return "none" if n is None else str(n)

@udf(ordered=False, allowed_in_flight=4)
async def label(tail: str, n: int) -> str:
    await asyncio.sleep(0)
    return f"{tail}/{n}"

@udf(volatility="volatile")
def ticket(n: int) -> int:
    return n

@udf
def positive(n: int) -> int:
    if n < 0:
        raise ValueError(f"{n} is negative")
    return n

@udaf
@dataclass
class total:
    sum: int = 0
    count: int = 0

    def update(self, values: list[int]) -> None:
        self.sum += sum(values)
        self.count += len(values)

    def merge(self, other: "total") -> None:
        self.sum += other.sum
        self.count += other.count

    def finish(self) -> int | None:
        return self.sum if self.count else None

@udaf
@dataclass
class weighted:
    sum: float = 0.0
    weight: float = 0.0

    def update(self, values: list[float], weights: list[float]) -> None:
        self.sum += sum(value * weight for value, weight in zip(values, weights, strict=True))
        self.weight += sum(weights)

    def merge(self, other: "weighted") -> None:
        self.sum += other.sum
        self.weight += other.weight

    def finish(self) -> float | None:
        return self.sum / self.weight if self.weight else None

@udaf
@dataclass
class nulls:
    count: int = 0

    def update(self, values: list[str | None]) -> None:
        self.count += values.count(None)

    def merge(self, other: "nulls") -> None:
        self.count += other.count

    def finish(self) -> int:
        return self.count

@dataclass
class Letter:
    letter: str
    place: int

@udtf
def letters(text: str) -> Iterator[Letter]:
    for place, letter in enumerate(text, 1):
        if letter != "1":
            yield Letter(letter, place)

@udtf
def parts(text: str) -> list[str]:
    return [text[:1], text[1:]]
"""

PRELUDE = (
    "CREATE TABLE flights WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source'); "
    "CREATE TABLE timed (id BIGINT, tail TEXT, alt BIGINT, speed DOUBLE, ok BOOLEAN, day TIMESTAMP(6), "
    "cents DECIMAL(10, 2), small INT, WATERMARK FOR day AS day - INTERVAL '1 hour') "
    "WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source'); "
    "CREATE TEMPORARY TABLE planes (tail TEXT PRIMARY KEY, maker TEXT, seats INT, share DOUBLE, small INT) "
    "WITH (connector = 'sqlite', uri = 'sqlite:planes.db'); "
    "CREATE TABLE out WITH (connector = 'blackhole'); CREATE TABLE out2 WITH (connector = 'blackhole');\n"
)
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("tail", pa.string()),
        ("alt", pa.int64()),
        ("speed", pa.float64()),
        ("ok", pa.bool_()),
        ("day", pa.timestamp("us")),
        ("tags", pa.list_(pa.string())),
        ("pos", pa.struct([("lat", pa.float64()), ("lon", pa.float64())])),
        ("cents", pa.decimal128(10, 2)),
        ("small", pa.int32()),
    ]
)


def _flight(n: int) -> dict[str, Any]:
    return {
        "id": n,
        "tail": None if n % 7 == 3 else f"{'NDB'[n % 3]}{n:02}",
        "alt": None if n % 5 == 4 else n * 37 % 90 - 10,
        "speed": n * 12.5,
        "ok": None if n % 6 == 5 else n % 2 == 0,
        "day": datetime.datetime(2013, 1, 1) + datetime.timedelta(hours=7 * n),
        "tags": None if n % 8 == 7 else ["a", "b", "c"][: n % 4],
        "pos": {"lat": n / 4, "lon": -n / 8},
        "cents": decimal.Decimal(n * 125) / 100,
        "small": n % 3,
    }


FLIGHTS = pa.Table.from_pylist([_flight(n) for n in range(24)], SCHEMA)
_FILES = 6


PLANES = pa.Table.from_pylist(
    [
        {"tail": tail, "maker": maker, "seats": seats, "share": share, "small": small}
        for tail, maker, seats, share, small in (
            *(("N00", "Airbus", 100, 1, 0), ("D01", "Boeing", None, 0.5, 1), ("N06", None, 7, None, 0)),
            *(("N09", "Airbus", 20, 2.5, 0), ("N09", "Cessna", 4, 0.25, 1), ("D13", "boeing", 300, 3, 2)),
            *(("B14", "", 0, 0, 2), ("N18", "Airbus", 50, -1, 0), ("X99", "Airbus", 1, 1, 1), (None, "none", 2, 2, 2)),
        )
    ],
    pa.schema(
        [
            *(("tail", pa.string()), ("maker", pa.string()), ("seats", pa.int32())),
            *(("share", pa.float64()), ("small", pa.int32())),
        ]
    ),
)


def write_flights(folder: Path) -> None:
    """In several files, so that checkpoints and slices lie between them; and a database of planes."""
    with contextlib.closing(sqlite3.connect(folder / "planes.db")) as connection, connection:
        connection.execute("CREATE TABLE planes (tail TEXT, maker TEXT, seats INTEGER, share NUMERIC, small INTEGER)")
        rows = [tuple(row.values()) for row in PLANES.to_pylist()]
        connection.executemany("INSERT INTO planes VALUES (?, ?, ?, ?, ?)", rows)
    (folder / "flights").mkdir()
    size = len(FLIGHTS) // _FILES
    for number in range(_FILES):
        pq.write_table(FLIGHTS.slice(number * size, size), folder / "flights" / f"{number}.parquet")


# ---- The file of a query ----


@dataclasses.dataclass(frozen=True)
class Query:
    """text: of the statements. results: rows by the output's name and columns. refused: the error.

    reference: what DataFusion has instead of the text; it has no windows.
    """

    text: str
    results: dict[str, list[str]]
    refused: str | None
    reference: str

    @classmethod
    def read(cls, path: Path) -> Query:
        results: dict[str, list[str]] = {}
        refused = None
        lines = path.read_text().splitlines()
        statements = list(itertools.takewhile(lambda line: not re.match("-- (result|refused|reference)", line), lines))
        reference = ""
        for line in lines[len(statements) :]:
            if line.startswith("-- reference "):
                reference += line.removeprefix("-- reference ") + "\n"
            elif found := re.fullmatch(r"-- result (.*)", line):
                rows = results[found[1]] = []
            elif line.startswith("-- refused "):
                refused = line.removeprefix("-- refused ")
            elif refused is not None:
                refused += "\n" + line.removeprefix("-- ")
            else:
                rows.append(line.removeprefix("-- "))
        text = "\n".join(statements)
        return cls(text, results, refused, _TUMBLE.sub(_tumble, reference or text))


_TUMBLE = re.compile(r"tumble\(interval ('.*?')\)")


def _tumble(found: re.Match[str]) -> str:
    start = f"date_bin(interval {found[1]}, day)"
    return f"named_struct('start', {start}, 'end', {start} + interval {found[1]})"


def shown(table: pa.Table) -> list[str]:
    """The values of each row as JSON, sorted; times and decimals as texts."""
    return sorted(json.dumps(list(row.values()), default=str) for row in table.to_pylist())


# ---- The engine ----


class Killed(Exception):
    """The engine ends here."""


def pipeline_of(text: str, udfs: Sequence[str], **others: Any) -> Pipeline:
    """The query's pipeline, with parts as sinks, in folders of the outputs' names."""
    script = Script("query.sql", PRELUDE + text, udfs)
    names = outputs_of(text)
    sinks = [Parts(path=name, after=sink.after) for name, sink in zip(names, script.pipeline.sinks, strict=True)]
    return script.pipeline.model_copy(update={"sinks": tuple(sinks), **others})


def outputs_of(text: str) -> list[str]:
    """The names of a text's outputs: of tables that are inserted into, and "rows" of a SELECT alone."""
    return [name for statement in statements(text) if (name := _output(statement)) is not None]


def _output(statement: str) -> str | None:
    found = re.match(r"(?i)(?:explain\s+)?(?:insert into (out\w*|t)\b|select|with|\()", statement)
    return None if found is None else found[1] or "rows"


def statements(text: str) -> list[str]:
    """The texts of the statements."""
    found = Text("", text)
    return [found.cut(part) for part in found.statements()]


def run(text: str, udfs: Sequence[str], parallelism: int = 1) -> dict[str, list[str]]:
    """The results of the engine."""
    pipeline = pipeline_of(text, udfs, parallelism=parallelism)
    run_pipeline(pipeline)
    return results_of(pipeline)


def run_killed(text: str, udfs: Sequence[str], monkeypatch: Any) -> dict[str, list[str]]:
    """The same, of an engine that ends twice in the middle of its first epoch and is resumed with another parallelism:
    there is always an epoch left for the next one."""
    checkpoints = Checkpoints(place="state", every_rows=4)
    for parallelism, moment in ((1, "staged"), (2, "committed")):
        pipeline = pipeline_of(text, udfs, checkpoints=checkpoints, parallelism=parallelism)
        resume = Path("state").exists()
        with monkeypatch.context() as patch:
            patch.setattr(failpoints, "reached", killer(moment))
            with pytest.raises(Killed):
                run_pipeline(pipeline, resume=resume)
    pipeline = pipeline_of(text, udfs, checkpoints=checkpoints)
    run_pipeline(pipeline, resume=True)
    return results_of(pipeline)


def results_of(pipeline: Pipeline) -> dict[str, list[str]]:
    """What is in the parts, by their names and columns."""
    with contextlib.closing(plan(pipeline)) as planned:
        columns = [", ".join(planned.chain.schemas[place].names) for place in planned.routes.sinks]
    found = zip(pipeline.sinks, columns, strict=True)
    return {f"{sink.path} ({names})": _rows(sink.path) for sink, names in found if isinstance(sink, Parts)}


def killer(moment: str) -> Callable[[str], None]:
    """Ends the engine when it reaches a moment."""

    def reached(name: str) -> None:
        if name == moment:
            raise Killed

    return reached


def _rows(folder: str) -> list[str]:
    return shown(ds.dataset(folder).to_table()) if Path(folder).exists() and any(Path(folder).iterdir()) else []


# ---- DataFusion alone ----


def reference(text: str, functions: dict[str, Any]) -> dict[str, list[str]]:
    """The results of DataFusion by the outputs' names, with the functions as plain Python."""
    context = SessionContext(SessionConfig().with_target_partitions(1))
    for name in ("flights", "timed"):
        context.register_record_batches(name, [FLIGHTS.to_batches()])
    context.register_record_batches("planes", [PLANES.to_batches()])
    for function in functions.values():
        if function.kind in ("sync", "async"):  # for others, queries have a reference
            context.register_udf(_plain(function))
    results: dict[str, list[str]] = {}
    for statement in statements(text):
        found = re.match(r"(?is)insert into (\w+)\s*(?:\([\w\s,]*\)\s*)?(select.*|with.*|\(.*)", statement)
        if view := re.match(r"(?is)create (?:view|table) (\w+) as(.*)", statement):
            context.register_record_batches(view[1], [_collected(context, view[2]).to_batches()])
        elif found is not None:
            results[found[1]] = shown(_collected(context, found[2]))
        elif not re.match("(?i)set|create", statement):
            results["rows"] = shown(_collected(context, statement))
    return results


def _type_of_step(step: RewrittenText) -> pa.DataType:
    return pa.int64() if re.match(r"\(?(id|small|alt)\b", step.text) else pa.string()


def _collected(context: SessionContext, text: str) -> pa.Table:
    written = with_native(text, _type_of_step)
    for one in written.functions:
        context.register_udf(udf(plain(one.function), one.function.types, one.function.returns, "immutable", one.name))
    return context.sql(written.text).to_arrow_table()


def _plain(function: Any) -> Any:
    """A function of a plugin as DataFusion's own: its author's code for each row, and F3 for nulls."""
    types, returns = [field.type for field in function.arguments], function.returns

    def call(*columns: pa.Array) -> pa.Array:
        rows = pa.RecordBatch.from_arrays(list(columns), names=[str(i) for i in range(len(columns))])
        return pa.array(list(_answers(function, rows)), returns)

    return udf(call, types, returns, "volatile", name=function.name)


def _answers(function: Any, rows: pa.RecordBatch) -> Iterator[Any]:
    nullable = [field.nullable for field in function.arguments]
    for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        lacks = any(value is None and not may for value, may in zip(row, nullable, strict=True))
        yield None if lacks else PLAIN[function.name](*row)


PLAIN: dict[str, Callable[..., Any]] = {
    "plane": lambda tail: "P-" + tail,
    "twice": lambda n: 2 * n,
    "add": lambda a, b: a + b,
    "is_big": lambda n: n > 50,
    "is_plane": lambda tail: tail.startswith("N"),
    "tags_of": lambda tail: [tail[:1], tail[1:]],
    "half": lambda x: x / 2,
    "known": lambda n: "none" if n is None else str(n),
    "label": lambda tail, n: f"{tail}/{n}",
    "positive": lambda n: n,
    "ticket": lambda n: n,
}
