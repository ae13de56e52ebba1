"""Values are the same in each engine as in our own host: of one file, byte by byte the same."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
from callers import CALLERS, by_host
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import LANGUAGES, Library

WITHOUT_SQLITE = ("duckdb", "polars", "polars-streaming", "daft")
WHOLE = {
    f"{sign}int{bits}": (
        getattr(pa, f"{sign}int{bits}")(),
        (0, 2**bits - 1) if sign else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1),
    )
    for bits in (8, 16, 32, 64)
    for sign in ("", "u")
}
FLOATS: dict[str, tuple[pa.DataType, Any]] = {
    "float32": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "float64": (pa.float64(), st.floats(allow_nan=False)),
}
VALUES: dict[str, tuple[pa.DataType, Any]] = {
    "bool": (pa.bool_(), st.booleans()),
    **{name: (type_, st.integers(*bounds)) for name, (type_, bounds) in WHOLE.items()},
    **FLOATS,
}
OF_PYTHON: dict[str, tuple[pa.DataType, Any]] = {
    "binary": (pa.binary(), st.binary(max_size=40)),
    "date": (pa.date32(), st.dates()),
    "time": (pa.time64("us"), st.times()),
    "timestamp": (pa.timestamp("us"), st.datetimes(datetime.datetime(1000, 1, 1), datetime.datetime(3000, 1, 1))),
    "decimal": (pa.decimal128(20, 3), st.decimals(-(10**16), 10**16, places=3)),
    "small_decimal": (pa.decimal128(7, 2), st.decimals(-99999, 99999, places=2)),
}
EXAMPLES = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def columns(strategy: Any) -> Any:
    return st.lists(st.none() | strategy, max_size=70)


@pytest.mark.parametrize("engine", CALLERS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_flights(library: Library, flights: Path, language: str, engine: str) -> None:
    table = pa.csv.read_csv(flights).select(["distance", "air_time"]).slice(0, 20_000)
    table = table.set_column(1, "air_time", pa.compute.fill_null(table["air_time"], 1))
    rows = table if engine != "sqlite" else table.slice(0, 2000)
    assert CALLERS[engine](library(language), "mph", rows) == by_host(library(language), "mph", rows)


@pytest.mark.parametrize("engine", CALLERS)
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", VALUES)
def test_types(library: Library, language: str, engine: str, name: str) -> None:
    type_, strategy = VALUES[name]
    if engine == "sqlite" and name == "uint64":
        strategy = st.integers(0, 2**63 - 1)  # INTEGER holds no more

    @EXAMPLES
    @given(columns(strategy))
    def check(values: list[Any]) -> None:
        table = pa.table({"a": pa.array(values, type_)})
        assert CALLERS[engine](library(language), f"same_{name}", table) == table["a"].to_pylist()

    check()


@pytest.mark.parametrize("engine", WITHOUT_SQLITE)
@pytest.mark.parametrize("name", OF_PYTHON)
def test_types_of_python(library: Library, engine: str, name: str) -> None:
    type_, strategy = OF_PYTHON[name]
    if name == "time" and engine.startswith("polars"):
        type_ = pa.time64("ns")  # Polars has no other, and the function is for microseconds
        with pytest.raises(Exception, match="same_time: value is time64"):
            CALLERS[engine](library("py"), "same_time", pa.table({"a": pa.array([1], type_)}))
        return

    @EXAMPLES
    @given(columns(strategy))
    def check(values: list[Any]) -> None:
        table = pa.table({"a": pa.array(values, type_)})
        found = CALLERS[engine](library("py"), f"same_{name}", table)
        assert pa.array(found, type_).equals(table["a"].combine_chunks())

    check()


@pytest.mark.parametrize("engine", CALLERS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_texts(library: Library, language: str, engine: str) -> None:
    @EXAMPLES
    @given(columns(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)))
    def check(values: list[str | None]) -> None:
        table = pa.table({"a": pa.array(values, pa.string())})
        expected = [None if value is None else value + "!" for value in values]
        assert CALLERS[engine](library(language), "shout", table) == expected

    check()


@pytest.mark.parametrize("engine", CALLERS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_function_that_handles_nulls_gets_them(library: Library, language: str, engine: str) -> None:
    table = pa.table({"a": pa.array([1, None, 3], pa.int64())})
    assert CALLERS[engine](library(language), "or_zero", table) == [1, 0, 3]


@pytest.mark.parametrize("engine", WITHOUT_SQLITE)
@pytest.mark.parametrize("language", LANGUAGES)
def test_chunks_slices_and_no_rows(library: Library, language: str, engine: str) -> None:
    whole = pa.table({"a": pa.array([*range(5000), None], pa.int64()), "b": pa.array([2] * 5001, pa.int64())})
    uneven = pa.table(
        {
            "a": pa.chunked_array([whole["a"].chunk(0)[:7], whole["a"].chunk(0)[7:]]),
            "b": pa.chunked_array([whole["b"].chunk(0)[:3000], whole["b"].chunk(0)[3000:]]),
        }
    )
    for table in (whole, whole.slice(3, 2500), uneven, whole.slice(0, 0), pa.concat_tables([whole, whole])):
        expected = by_host(library(language), "mph", table)
        assert CALLERS[engine](library(language), "mph", table) == expected


@pytest.mark.parametrize("engine", ["polars", "polars-streaming", "daft", "duckdb"])
@pytest.mark.parametrize(
    ("given_", "wanted"),
    [
        (pa.int8(), "int64"),
        (pa.uint32(), "int64"),
        (pa.int32(), "float64"),
        (pa.float32(), "float64"),
        (pa.uint8(), "uint64"),
    ],
)
def test_narrower_numbers_are_cast(library: Library, engine: str, given_: pa.DataType, wanted: str) -> None:
    table = pa.table({"a": pa.array([1, None, 100], given_)})
    assert CALLERS[engine](library("c"), f"same_{wanted}", table) == [1, None, 100]


def test_what_a_cast_would_lose_is_refused_by_name(library: Library) -> None:
    for engine, column in (("polars", pa.array([1.5])), ("polars", pa.array(["a"])), ("daft", pa.array([1.5]))):
        with pytest.raises(Exception, match=r"same_int64.*value is int64, and the column.*cannot hold without a loss"):
            CALLERS[engine](library("c"), "same_int64", pa.table({"a": column}))
    with pytest.raises(Exception, match=r"one.same_int8: the argument value is int8, which cannot hold this INTEGER"):
        CALLERS["sqlite"](library("c"), "same_int8", pa.table({"a": [300]}))
    with pytest.raises(Exception, match=r"18446744073709551615 is more than SQLite's INTEGER can hold"):
        CALLERS["sqlite"](library("py"), "largest", pa.table({"a": [1]}))


def test_types_that_an_engine_has_not_are_refused_by_name(library: Library) -> None:
    with pytest.raises(Exception, match=r"one.total has the type list, which is not passed on to DuckDB"):
        CALLERS["duckdb"](library("py"), "total", pa.table({"a": pa.array([[1]])}))
    with pytest.raises(Exception, match=r"the argument value is date32, which SQLite has not"):
        CALLERS["sqlite"](library("py"), "same_date", pa.table({"a": ["2026-01-01"]}))


@pytest.mark.parametrize("engine", ["polars", "polars-streaming", "daft"])
def test_lists_pass_with_offsets_and_items_of_other_types(library: Library, engine: str) -> None:
    lists = pa.array([[9], [1, 2], None, [], [None]], pa.list_(pa.int64()))
    assert CALLERS[engine](library("py"), "total", pa.table({"a": lists}).slice(1)) == [3, None, 0, 0]
    narrow = pa.array([[1, 2], None], pa.list_(pa.int16()))
    assert CALLERS[engine](library("py"), "total", pa.table({"a": narrow})) == [3, None]
    texts = pa.array([["a", "more than twelve bytes"], None, [None]], pa.large_list(pa.string()))
    assert CALLERS[engine](library("py"), "joined", pa.table({"a": texts})) == ["a more than twelve bytes", None, ""]


def test_decimals_keep_their_sign(library: Library) -> None:
    values = [decimal.Decimal("-0.01"), decimal.Decimal("12345.67"), None]
    table = pa.table({"a": pa.array(values, pa.decimal128(7, 2))})
    assert CALLERS["duckdb"](library("py"), "same_small_decimal", table) == values
