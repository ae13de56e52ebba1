"""Values in tables: what is read back equals what was written (F2), or is refused before."""

from __future__ import annotations

import datetime
import decimal
import re
import uuid
from typing import Any

import adbc_driver_postgresql.dbapi
import adbc_driver_sqlite.dbapi
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sinks import rows_of
from tables import is_sqlite, written

from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.engine.connectors.cells import Dialect, cell_type
from arroyo_udf_plugin.engine.connectors.table import Table
from arroyo_udf_plugin.engine.connectors.table_types import PostgresqlTypes

INTEGERS = [getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


def times(unit: str) -> st.SearchStrategy[int]:
    """From the year 1 to 9999, in the unit; whole microseconds."""
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    if unit == "ns":
        return st.integers(-(2**63), 2**63 - 1)
    return st.integers(-62_135_596_800 * per_second, 253_402_300_800 * per_second - 1)


def decimals(precision: int, scale: int) -> st.SearchStrategy[decimal.Decimal]:
    numbers = st.integers(-(10**precision) + 1, 10**precision - 1)
    return numbers.map(lambda number: decimal.Decimal(number).scaleb(-scale, decimal.Context(prec=60)))


SIMPLE: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    **{
        type_: st.integers(
            -(2 ** (type_.bit_width - 1)) if pa.types.is_signed_integer(type_) else 0,
            2 ** (type_.bit_width - pa.types.is_signed_integer(type_)) - 1,
        )
        for type_ in INTEGERS
    },
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.float64(): st.floats(allow_nan=False),
    pa.string(): TEXTS,
    pa.large_string(): TEXTS,
    pa.binary(): st.binary(),
    pa.large_binary(): st.binary(),
    pa.date32(): st.dates(),
    **{pa.timestamp(unit, zone): times(unit) for unit in ("s", "ms", "us", "ns") for zone in (None, "Europe/Berlin")},
    **{pa.duration(unit): st.integers(-(10**9), 10**9) for unit in ("s", "ms", "us", "ns")},
    pa.decimal128(38, 9): decimals(38, 9),
    pa.decimal128(5, 5): decimals(5, 5),
    pa.decimal128(20, 0): decimals(20, 0),
}
TYPES = [*SIMPLE, *(pa.list_(type_) for type_ in SIMPLE)]
REFUSED = {
    True: {pa.list_(type_) for type_ in SIMPLE},
    False: {
        one_or_list
        for type_ in (pa.timestamp("ns"), pa.timestamp("ns", "Europe/Berlin"), pa.duration("ns"))
        for one_or_list in (type_, pa.list_(type_))
    },
}


def values(type_: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_list(type_):
        return st.lists(SIMPLE[type_.value_type] | st.none(), max_size=5)
    return SIMPLE[type_]


def read_back(uri: str, name: str, types: list[pa.DataType]) -> list[list[Any]]:
    """The columns as Arrow keeps them, by a way that is not the sink's."""
    driver = adbc_driver_sqlite.dbapi if is_sqlite(uri) else adbc_driver_postgresql.dbapi
    with driver.connect(uri.removeprefix("sqlite:"), autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f'SELECT * FROM "{name}" ORDER BY n')
        columns = cursor.fetch_arrow_table().columns[1:]
    return [
        [restored(value, type_) for value in column.to_pylist()] for column, type_ in zip(columns, types, strict=True)
    ]


def restored(value: Any, type_: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_list(type_):
        return [restored(each, type_.value_type) for each in value]
    if pa.types.is_timestamp(type_) or pa.types.is_date32(type_):
        return moment(value, type_)
    if pa.types.is_duration(type_):
        if isinstance(value, int):
            return value
        assert (value.months, value.days) == (0, 0)
        return value.nanoseconds // {"s": 10**9, "ms": 10**6, "us": 10**3}[type_.unit]
    if pa.types.is_decimal(type_) or pa.types.is_uint64(type_):
        return decimal.Decimal(value)
    return value


def moment(value: Any, type_: pa.DataType) -> Any:
    """A text of SQLite, or Python's time of PostgreSQL, as the number that Arrow keeps."""
    if isinstance(value, datetime.datetime):
        zone = value.tzinfo or datetime.UTC
        passed = value.replace(tzinfo=zone) - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        microseconds = passed // datetime.timedelta(microseconds=1)
        return microseconds // {"s": 10**6, "ms": 10**3, "us": 1}[type_.unit]
    if isinstance(value, datetime.date):
        return value
    if pa.types.is_date32(type_):
        return datetime.date.fromisoformat(value)
    assert value.endswith("Z") == (type_.tz is not None), value
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.(\d+))?Z?", value)
    assert found is not None, value
    passed = datetime.datetime.fromisoformat(found[1]) - datetime.datetime(1970, 1, 1)
    digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[type_.unit]
    assert len(found[2] or "") == digits
    return passed // datetime.timedelta(seconds=1) * 10**digits + int(found[2] or 0)


def test_values_are_read_back_equal(uri: str) -> None:
    types = [type_ for type_ in TYPES if type_ not in REFUSED[is_sqlite(uri)]]
    if is_sqlite(uri):
        types.remove(pa.uint64())  # not all of its values, see below
    schema = pa.schema([("n", pa.int64()), *((f"x{at}", type_) for at, type_ in enumerate(types))])
    row = st.tuples(*(values(type_) | st.none() for type_ in types))

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(st.lists(row, min_size=10, max_size=10))
    def check(rows: list[tuple[Any, ...]]) -> None:
        name = f"t{uuid.uuid4().hex}"
        columns = [list(column) for column in zip(*rows, strict=True)]
        arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
        written(uri, name, pa.record_batch([pa.array(range(len(rows))), *arrays], schema=schema))
        for type_, column, found in zip(types, columns, read_back(uri, name, types), strict=True):
            assert found == column, type_

    check()


def test_a_type_whose_values_would_change_is_refused_by_its_column_before_the_start(uri: str) -> None:
    for type_ in REFUSED[is_sqlite(uri)]:
        with pytest.raises(InvalidArgument, match=rf"column 'x' of type {re.escape(str(type_))}: .*: make it"):
            Table(uri=uri, table="t").check(pa.schema([("x", type_)]))


@pytest.mark.parametrize("type_", [pa.struct([("a", pa.int8())]), pa.list_(pa.list_(pa.int8())), pa.null()], ids=str)
def test_other_types_are_refused_by_column(uri: str, type_: pa.DataType) -> None:
    with pytest.raises(InvalidArgument, match=r"table \(t\): column 'x' of type .*: make it text"):
        Table(uri=uri, table="t").check(pa.schema([("x", type_)]))


@pytest.mark.parametrize(
    ("values", "in_sqlite", "in_postgresql"),
    [
        (pa.array([1.5, float("nan")]), "NaN would become NULL in SQLite; return None instead", None),
        (pa.array([2**63 - 1], pa.uint64()), None, None),
        (pa.array([2**63], pa.uint64()), "SQLite's integers end at 2^63 - 1: make it text", None),
        (pa.array(["a\0b"]), None, "PostgreSQL's text cannot hold the character NUL; remove it"),
        (pa.array([["a\0b"]]), "no such type", "PostgreSQL's text cannot hold the character NUL; remove it"),
        (pa.array([253_402_300_800], pa.timestamp("s")), "years 0 to 9999", None),
        (pa.array([-719_529], pa.int32()).view(pa.date32()), "years 0 to 9999", None),
        (pa.array([-719_528], pa.int32()).view(pa.date32()), None, None),
        (pa.array([2_932_896], pa.int32()).view(pa.date32()), None, None),
        (pa.array([-2_440_589], pa.int32()).view(pa.date32()), "years 0 to 9999", "times are from 4713 B.C."),
        (pa.array([-(2**62)], pa.timestamp("us")), "years 0 to 9999", "times are from 4713 B.C."),
        (pa.array([2**62], pa.timestamp("s")), "years 0 to 9999", "times are from 4713 B.C."),
        (pa.array([2**62], pa.duration("s")), None, "out of bounds"),
    ],
)
def test_a_value_that_cannot_be_held_is_told_by_its_column_before_its_rows_are_committed(
    uri: str, name: str, values: pa.Array, in_sqlite: str | None, in_postgresql: str | None
) -> None:
    text = in_sqlite if is_sqlite(uri) else in_postgresql
    rows = pa.record_batch({"x": values})
    if text is None:
        written(uri, name, rows)
        assert rows_of(uri, name, "count(*)") == [(len(values),)]
    else:
        with pytest.raises(InvalidArgument, match=rf"column 'x'.*: .*{re.escape(text)}"):
            written(uri, name, rows)


@given(
    texts=st.lists(st.none() | st.text(st.sampled_from("a\0é")), max_size=8),
    part=st.tuples(st.integers(0, 8), st.integers(0, 8)),
    type_=st.sampled_from([pa.string(), pa.large_string()]),
)
def test_the_character_nul_is_found_in_any_part_of_a_column(
    texts: list[str | None], part: tuple[int, int], type_: pa.DataType
) -> None:
    """Also below nulls, where it does no harm."""
    column = pa.array(texts, type_)
    validity = pa.array([text is not None and "é" not in text for text in texts], pa.bool_()).buffers()[1]
    hidden = pa.Array.from_buffers(type_, len(texts), [validity, *column.buffers()[1:]])
    for values, known in ((column, texts), (hidden, hidden.to_pylist())):
        start, end = part[0], sum(part)
        wanted = any("\0" in text for text in known[start:end] if text is not None)
        assert (PostgresqlTypes().trouble(values[start:end]) is not None) == wanted


def test_text_cells_and_dictionaries_are_written_as_their_values(uri: str, name: str) -> None:
    cells = pa.ExtensionArray.from_storage(cell_type(Dialect()), pa.array(["01", '"NA"', "NA"]))
    written(uri, name, pa.record_batch({"c": cells, "d": pa.array(["x", None, "x"]).dictionary_encode()}))
    assert rows_of(uri, name) == [("01", "x"), ("NA", None), (None, "x")]
