"""The lines of docs/engines.md and the README, executed: each engine, with the function of the README. Spark's line is
executed by test_spark.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import daft as daft_engine
import datafusion as datafusion_engine
import duckdb as duckdb_engine
import pandas as pandas_engine
import polars as polars_engine
import pytest
from documented import SPEEDS, TRIPS, lines

from arroyo_udf_plugin import integrations
from arroyo_udf_plugin.integrations import daft, datafusion, duckdb, pandas, polars, sqlite


def first_column(found: Any) -> Any:
    return next(iter(found.to_pydict().values()))


def of_duckdb() -> tuple[dict[str, Any], Callable[[Any], Any]]:
    connection = duckdb_engine.connect(config={"allow_unsigned_extensions": True})
    connection.register("trips", TRIPS)
    return {"connection": connection}, lambda found: [row[0] for row in found.fetchall()]


def of_polars() -> tuple[dict[str, Any], Callable[[Any], Any]]:
    return {"trips": polars_engine.from_arrow(TRIPS)}, lambda found: found["mph"].to_list()


def of_daft() -> tuple[dict[str, Any], Callable[[Any], Any]]:
    trips = daft_engine.from_arrow(TRIPS)
    return {"sql": lambda text: daft_engine.sql(text, trips=trips)}, lambda found: next(
        iter(found.to_pydict().values())
    )


def of_sqlite() -> tuple[dict[str, Any], Callable[[Any], Any]]:
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE trips (trip, miles, minutes)")
    rows = zip(*(column.to_pylist() for column in TRIPS.columns), strict=True)
    connection.executemany("INSERT INTO trips VALUES (?, ?, ?)", list(rows))
    return {"connection": connection}, lambda found: [row[0] for row in found]


def of_datafusion() -> tuple[dict[str, Any], Callable[[Any], Any]]:
    context = datafusion_engine.SessionContext()
    context.register_record_batches("trips", [TRIPS.to_batches()])
    return {"context": context}, first_column


def of_pandas() -> tuple[dict[str, Any], Callable[[Any], Any]]:
    trips = TRIPS.to_pandas(types_mapper=pandas_engine.ArrowDtype)
    return {"trips": trips}, lambda found: [None if value is pandas_engine.NA else value for value in found]


ENGINES = {
    "DuckDB": (duckdb, of_duckdb),
    "Polars": (polars, of_polars),
    "Daft": (daft, of_daft),
    "SQLite": (sqlite, of_sqlite),
    "DataFusion": (datafusion, of_datafusion),
    "pandas": (pandas, of_pandas),
}


def test_the_documents_have_the_lines() -> None:
    assert list(lines("docs/engines.md")) == [*ENGINES, "Spark"]
    assert list(lines("README.md")) == list(ENGINES)[:4]


@pytest.mark.parametrize(
    ("document", "engine"),
    [
        (document, engine)
        for document in ("docs/engines.md", "README.md")
        for engine in lines(document)
        if engine in ENGINES
    ],
)
def test_a_line_registers_and_a_line_calls(
    speeds: Path, document: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(speeds)
    module, prepare = ENGINES[engine]
    known, values = prepare()
    known |= {module.__name__.rpartition(".")[2]: module, "integrations": integrations}
    register, call = lines(document)[engine]
    exec(register, known)
    assert values(eval(call, known)) == SPEEDS
