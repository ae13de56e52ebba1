"""Each engine as a function: call(library, function, table) gives the values of function(*columns), in order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import daft
import duckdb
import polars
import pyarrow as pa

from arroyo_udf_plugin import load
from arroyo_udf_plugin.integrations import daft as in_daft
from arroyo_udf_plugin.integrations import duckdb as in_duckdb
from arroyo_udf_plugin.integrations import polars as in_polars
from arroyo_udf_plugin.integrations import sqlite as in_sqlite

Call = Callable[[Path, str, pa.Table], list[Any]]


def by_host(library: Path, function: str, table: pa.Table) -> list[Any]:
    return list(load(library).functions[function](*table.columns).to_pylist())


def connection(*libraries: Path, threads: int = 1) -> duckdb.DuckDBPyConnection:
    opened = duckdb.connect(config={"allow_unsigned_extensions": True, "threads": threads})
    for library in libraries:
        in_duckdb.register(opened, library)
    return opened


def by_duckdb(library: Path, function: str, table: pa.Table) -> list[Any]:
    with connection(library) as opened:
        opened.register("t", table)
        found = opened.execute(f"SELECT {function}({', '.join(table.column_names)}) FROM t").fetchall()
        return [row[0] for row in found]


def by_polars(library: Path, function: str, table: pa.Table) -> list[Any]:
    frame = polars.from_arrow(table, rechunk=False)
    assert isinstance(frame, polars.DataFrame)
    expression = getattr(in_polars.functions(library), function)(*table.column_names)
    return frame.select(expression.alias("found"))["found"].to_list()


def by_polars_streaming(library: Path, function: str, table: pa.Table) -> list[Any]:
    frame = polars.from_arrow(table, rechunk=False)
    assert isinstance(frame, polars.DataFrame)
    expression = getattr(in_polars.functions(library), function)(*table.column_names)
    return frame.lazy().select(expression.alias("found")).collect(engine="streaming")["found"].to_list()


def by_daft(library: Path, function: str, table: pa.Table) -> list[Any]:
    in_daft.register(library)
    frame = daft.from_arrow(table)  # noqa: F841 (daft.sql finds it by its name)
    query = f"SELECT {function}({', '.join(table.column_names)}) AS found FROM frame"
    return list(daft.sql(query).to_pydict()["found"])


def by_sqlite(library: Path, function: str, table: pa.Table) -> list[Any]:
    opened = apsw.Connection(":memory:")
    in_sqlite.register(opened, library)
    query = f"SELECT {function}({', '.join('?' * table.num_columns)})"
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return [next(iter(opened.execute(query, row)))[0] for row in rows]


CALLERS: dict[str, Call] = {
    "duckdb": by_duckdb,
    "polars": by_polars,
    "polars-streaming": by_polars_streaming,
    "daft": by_daft,
    "sqlite": by_sqlite,
}
