"""Tables: what is read back equals what was written (F2), or is refused before; names, keys, troubles on the way."""

from __future__ import annotations

import datetime
import decimal
import os
import re
import signal
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import adbc_driver_postgresql.dbapi
import adbc_driver_sqlite.dbapi
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sinks import SCHEMA, StageIn, batch, execute, rows_of

import postgresql as postgresql_server
from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.connectors import database, table
from arroyo_udf_plugin.connectors.cells import Dialect, cell_type
from arroyo_udf_plugin.connectors.interface import Sink
from arroyo_udf_plugin.connectors.table import Table
from arroyo_udf_plugin.engine.store import open_store

ON_POSTGRESQL = pytest.mark.server


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=ON_POSTGRESQL)])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'rows.db'}"
    address: str = request.getfixturevalue("postgresql")
    return address


@pytest.fixture
def name() -> str:
    return f"t{uuid.uuid4().hex}"


def written(uri: str, name: str, rows: pa.RecordBatch, **keys: Any) -> None:
    sink = Table(uri=uri, table=name, **keys).sink(rows.schema, 0, None, "pipeline", "sink")
    try:
        sink.write(rows)
        sink.finish()
    finally:
        sink.close()


def with_checkpoints(place: Path, model: Table, schema: pa.Schema = SCHEMA, history: str = "h") -> Sink:
    return model.sink(schema, 0, StageIn(open_store(str(place / "stage")), history), "pipeline", "sink")


def is_sqlite(uri: str) -> bool:
    return uri.startswith("sqlite:")


# ---- Types -----------------------------------------------------------------------------------------------------------

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
    True: {pa.uint64(), *(pa.list_(type_) for type_ in SIMPLE)},
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


def test_text_cells_and_dictionaries_are_written_as_their_values(uri: str, name: str) -> None:
    cells = pa.ExtensionArray.from_storage(cell_type(Dialect()), pa.array(["01", '"NA"', "NA"]))
    written(uri, name, pa.record_batch({"c": cells, "d": pa.array(["x", None, "x"]).dictionary_encode()}))
    assert rows_of(uri, name) == [("01", "x"), ("NA", None), (None, "x")]


# ---- Tables that are there -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("in_sqlite", "in_postgresql", "type_", "fits"),
    [
        ("BIGINT", "bigint", pa.int8(), True),
        ("INTEGER", "smallint", pa.uint16(), is_sqlite),
        ("NUMERIC", "numeric(6,2)", pa.int16(), is_sqlite),
        ("NUMERIC", "numeric(7,2)", pa.int16(), True),
        ("NUMERIC", "numeric", pa.int64(), True),
        ("REAL", "double precision", pa.int64(), False),
        ("DOUBLE", "double precision", pa.float32(), True),
        ("DECIMAL(10, 2)", "numeric(10,2)", pa.decimal128(10, 2), lambda uri: not is_sqlite(uri)),
        ("VARCHAR(10)", "varchar(10)", pa.string(), is_sqlite),
        ("TEXT", "varchar", pa.string(), True),
        ("STRING", "uuid", pa.string(), False),
        ("INTEGER", "integer", pa.string(), False),
        ("TIMESTAMP", "timestamp", pa.timestamp("ms"), True),
        ("TIMESTAMP", "timestamp(3)", pa.timestamp("ms"), is_sqlite),
        ("", "timestamptz", pa.timestamp("ms"), is_sqlite),
        ("BOOLEAN", "boolean", pa.bool_(), True),
        ("", "integer[]", pa.list_(pa.int16()), lambda uri: not is_sqlite(uri)),
    ],
)
def test_columns_that_are_there_are_checked(
    uri: str, name: str, in_sqlite: str, in_postgresql: str, type_: pa.DataType, fits: Any
) -> None:
    execute(uri, f"CREATE TABLE {name} (x {in_sqlite if is_sqlite(uri) else in_postgresql})")
    model, schema = Table(uri=uri, table=name), pa.schema([("x", type_)])
    if fits(uri) if callable(fits) else fits:
        model.check(schema)
        written(uri, name, pa.record_batch([pa.nulls(2, type_)], schema=schema))
        assert rows_of(uri, name) == [(None,), (None,)]
    else:
        with pytest.raises(InvalidArgument, match=r"column 'x' of type .*: (the table has .* there|SQLite has no)"):
            model.check(schema)


def test_a_table_that_does_not_fit_is_refused_before_any_row(uri: str, name: str) -> None:
    execute(uri, f"CREATE TABLE {name} (a bigint, c bigint NOT NULL, d bigint DEFAULT 7 NOT NULL)")
    with pytest.raises(InvalidArgument, match=r"column 'b' of type string: the table does not have it: add it"):
        Table(uri=uri, table=name).check(SCHEMA)
    with pytest.raises(InvalidArgument, match=r"the table's column 'c' may not be null and has no default"):
        Table(uri=uri, table=name, columns=["a"]).check(SCHEMA)
    execute(uri, f"ALTER TABLE {name} DROP COLUMN c")
    written(uri, name, batch(1), columns=["a"])
    assert rows_of(uri, name) == [(1, 7)]


def test_null_in_a_column_that_may_not_have_it_is_told_before_its_rows_are_committed(uri: str, name: str) -> None:
    execute(uri, f"CREATE TABLE {name} (a bigint NOT NULL, b text)")
    with pytest.raises(InvalidArgument, match=r"column 'a': the table may not have null there"):
        written(uri, name, pa.record_batch({"a": pa.array([1, None]), "b": ["x", "y"]}))
    assert rows_of(uri, name) == []


def test_a_computed_column_is_left_alone(uri: str, name: str) -> None:
    execute(uri, f"CREATE TABLE {name} (a bigint, b bigint GENERATED ALWAYS AS (a * 2) STORED)")
    with pytest.raises(InvalidArgument, match=r"column 'b' of type int64: the table computes it itself"):
        Table(uri=uri, table=name).check(pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    written(uri, name, batch(2), columns=["a"])
    assert rows_of(uri, name) == [(2, 4)]


def test_a_view_is_no_table(uri: str, name: str) -> None:
    execute(uri, f"CREATE VIEW {name} AS SELECT 1 AS a")
    with pytest.raises(InvalidArgument, match=rf"'{name}' is no table"):
        Table(uri=uri, table=name).check(SCHEMA)


def test_a_missing_table_is_made_unless_that_was_not_wished(uri: str, name: str) -> None:
    with pytest.raises(InvalidArgument, match=r"there is no such table: make it, or set create = true"):
        Table(uri=uri, table=name, create=False).check(SCHEMA)
    Table(uri=uri, table=name).check(SCHEMA)
    with pytest.raises(Exception, match=name):
        rows_of(uri, name)
    sink = Table(uri=uri, table=name).sink(SCHEMA, 0, None, "pipeline", "sink")
    sink.finish()
    sink.close()
    assert rows_of(uri, name) == []
    written(uri, name, batch(1), create=False)
    assert rows_of(uri, name) == [(1, "row 1")]


# ---- Names -----------------------------------------------------------------------------------------------------------

EVIL = ['a"b', "x'; DROP TABLE rows; --", "a b", "SELECT", "ä", 'a"); DELETE FROM rows; --', "$1", "?", "%s", "a.b"]


@pytest.mark.parametrize("key", [(), ("x'; DROP TABLE rows; --", 'a"b')])
def test_names_are_data(uri: str, key: tuple[str, ...], tmp_path: Path) -> None:
    table = f"{uuid.uuid4().hex[:8]}\"'; DROP TABLE rows; --"
    rows = pa.record_batch([pa.array([number]) for number in range(len(EVIL))], names=EVIL)
    written(uri, table, rows, key=key)
    assert rows_of(uri, table) == [tuple(range(len(EVIL)))]
    model = Table(uri=uri, table=table, key=key)
    stage = StageIn(open_store(str(tmp_path / "stage")), "h'; --")
    sink = model.sink(rows.schema, 0, stage, "p'; --", f"{table}/..")
    sink.clear(1)
    sink.write(rows)
    sealed = sink.seal(2)
    assert sealed is not None
    sink.apply(2, sealed.store())
    sink.close()
    assert rows_of(uri, table) == [tuple(range(len(EVIL)))] * (1 if key else 2)
    assert ("p'; --", "h'; --", f"{table}/..", 0, 2) in rows_of(uri, "arroyo_udf_epochs")


@pytest.mark.parametrize(
    ("table", "names", "text"),
    [
        ("t", ["a", "a"], "the columns 'a' and 'a' are one for"),
        ("t", ["a\0b"], "cannot be a name in a database"),
        ("t", [""], "cannot be a name in a database"),
        ("", ["a"], "cannot be a name in a database"),
        ("arroyo_udf_epochs", ["a"], "the engine itself uses a table of this name"),
        ("arroyo_udf_rows", ["a"], "the engine itself uses a table of this name"),
    ],
)
def test_names_that_cannot_be(uri: str, table: str, names: list[str], text: str) -> None:
    schema = pa.schema([pa.field(each, pa.int64()) for each in names])
    with pytest.raises(InvalidArgument, match=text):
        Table(uri=uri, table=table).check(schema)


def test_names_that_only_one_of_the_databases_can_tell_apart(uri: str, name: str) -> None:
    upper = pa.record_batch({"a": [1], "A": [2]})
    long = pa.record_batch({"x" * 64: [1]})
    if is_sqlite(uri):
        with pytest.raises(InvalidArgument, match="the columns 'a' and 'A' are one for SQLite"):
            written(uri, name, upper)
        written(uri, name, long)
        execute(uri, "CREATE TABLE small (a bigint)")
        written(uri, "SMALL", pa.record_batch({"A": [1]}))
        assert rows_of(uri, "small") == [(1,)]
    else:
        written(uri, name, upper)
        with pytest.raises(InvalidArgument, match=r"'x+' is longer than 63 bytes, which PostgreSQL would cut off"):
            written(uri, name, long)


# ---- Keys ------------------------------------------------------------------------------------------------------------


def keyed(*rows: tuple[int, str | None, int]) -> pa.RecordBatch:
    a, b, c = zip(*rows, strict=True)
    return pa.record_batch({"a": pa.array(a), "b": pa.array(b, pa.string()), "c": pa.array(c)})


def test_a_row_replaces_the_one_with_its_key_and_the_last_of_several_stays(uri: str, name: str) -> None:
    written(uri, name, keyed((1, "x", 1), (1, "y", 2), (1, "x", 3), (2, "x", 4), (1, "x", 5)), key=("a", "b"))
    assert sorted(rows_of(uri, name)) == [(1, "x", 5), (1, "y", 2), (2, "x", 4)]
    written(uri, name, keyed((2, "x", 6), (3, "x", 7)), key=("b", "a"))
    assert sorted(rows_of(uri, name)) == [(1, "x", 5), (1, "y", 2), (2, "x", 6), (3, "x", 7)]


def test_all_columns_may_be_the_key(uri: str, name: str) -> None:
    for _ in range(2):
        written(uri, name, batch(1, 1, 2), key=("a", "b"))
    assert sorted(rows_of(uri, name)) == [(1, "row 1"), (2, "row 2")]


def test_columns_of_the_table_that_the_rows_do_not_have_stay(uri: str, name: str) -> None:
    execute(
        uri, f"CREATE TABLE {name} (a bigint, b text, c bigint, UNIQUE (a))", f"INSERT INTO {name} VALUES (1, 'x', 7)"
    )
    written(uri, name, batch(1, 2), key=("a",))
    assert sorted(rows_of(uri, name), key=str) == [(1, "row 1", 7), (2, "row 2", None)]


def test_a_key_needs_a_unique_index(uri: str, name: str) -> None:
    execute(uri, f"CREATE TABLE {name} (a bigint, b text, PRIMARY KEY (a, b))", f"CREATE INDEX i{name} ON {name} (a)")
    with pytest.raises(InvalidArgument, match=r"no unique index on the key: CREATE UNIQUE INDEX"):
        Table(uri=uri, table=name, key=["a"]).check(SCHEMA)
    execute(uri, f"CREATE UNIQUE INDEX p{name} ON {name} (a) WHERE a > 5")
    with pytest.raises(InvalidArgument, match=r"no unique index on the key"):
        Table(uri=uri, table=name, key=["a"]).check(SCHEMA)
    execute(uri, f"CREATE UNIQUE INDEX u{name} ON {name} (a)")
    Table(uri=uri, table=name, key=["a"]).check(SCHEMA)


def test_a_key_that_is_no_column_or_null(uri: str, name: str) -> None:
    with pytest.raises(InvalidArgument, match=r"key: there is no column 'c'; the columns are a, b"):
        Table(uri=uri, table=name, key=["c"]).check(SCHEMA)
    with pytest.raises(InvalidArgument, match=r"column 'b': the table may not have null there"):
        written(uri, name, keyed((1, None, 1)), key=("a", "b"))


# ---- Epochs ----------------------------------------------------------------------------------------------------------


def test_a_pipeline_that_is_started_anew_does_not_take_its_epochs_for_those_of_the_old_one(
    uri: str, name: str, tmp_path: Path
) -> None:
    history = uuid.uuid4().hex
    for which in range(2):
        sink = with_checkpoints(tmp_path / str(which), Table(uri=uri, table=name), history=f"{history}{which}")
        sink.clear(1)
        sink.write(batch(which))
        sealed = sink.seal(2)
        assert sealed is not None
        sink.apply(2, sealed.store())
        sink.close()
    assert sorted(rows_of(uri, name)) == [(0, "row 0"), (1, "row 1")]


def test_an_older_copy_of_the_checkpoints_is_refused(uri: str, name: str, tmp_path: Path) -> None:
    """The epochs that it would take are noted already, with other rows. An engine that was overtaken sees the same."""
    model = Table(uri=uri, table=name)
    sink = with_checkpoints(tmp_path, model, history=name)
    sink.clear(1)
    for epoch in range(2, 5):
        sink.write(batch(epoch))
        sealed = sink.seal(epoch)
        assert sealed is not None
        sink.apply(epoch, sealed.store())
    sink.close()
    copy = with_checkpoints(tmp_path / "copy", model, history=name)
    with pytest.raises(
        InvalidArgument, match=r"(?i)the table has epoch 4, .*another engine .*or they are an older copy"
    ):
        copy.clear(3)
    copy.clear(5)
    copy.close()


def test_a_stray_file_in_the_store_is_left_alone(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "stage"))
    store.put("table-sink/stray", b"x")
    sink = with_checkpoints(tmp_path, Table(uri=f"sqlite:{tmp_path / 'rows.db'}", table="t"))
    sink.clear(1)
    sink.close()
    assert store.names("") == ["table-sink/stray"]


def test_an_epoch_larger_than_memory_should_hold_goes_to_the_store_meanwhile(
    uri: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "_CHUNK_BYTES", 100)
    sink = with_checkpoints(tmp_path, Table(uri=uri, table=name, key=["a"]), history=name)
    sink.clear(1)
    for number in range(20):
        sink.write(batch(number % 10, number))
    staged = open_store(str(tmp_path / "stage")).names("")
    assert 1 < len(staged) < 20
    sealed = sink.seal(2)
    assert sealed is not None
    sink.apply(2, sealed.store())
    sink.close()
    assert sorted(row[0] for row in rows_of(uri, name)) == list(range(20))
    assert open_store(str(tmp_path / "stage")).names("") == []


def test_a_failure_to_apply_says_that_the_epoch_waits_and_changes_nothing(uri: str, name: str, tmp_path: Path) -> None:
    execute(uri, f"CREATE TABLE {name} (a bigint PRIMARY KEY, b text)", f"INSERT INTO {name} VALUES (2, 'x')")
    sink = with_checkpoints(tmp_path, Table(uri=uri, table=name), history=name)
    sink.clear(1)
    sink.write(batch(1, 2))
    sealed = sink.seal(2)
    assert sealed is not None
    stored = sealed.store()
    with pytest.raises(InvalidArgument, match=r"(?i)unique") as caught:
        sink.apply(2, stored)
    assert caught.value.__notes__ == ["epoch 2 is committed: mend the table, then resume"]
    assert rows_of(uri, name) == [(2, "x")]
    execute(uri, f"DELETE FROM {name}")
    sink.apply(2, stored)
    sink.close()
    assert sorted(rows_of(uri, name)) == [(1, "row 1"), (2, "row 2")]


def test_slices_write_at_once(uri: str, name: str, tmp_path: Path) -> None:
    model, failed, all_cleared = Table(uri=uri, table=name, key=["a"]), [], threading.Barrier(4, timeout=60)

    def run(slice: int) -> None:
        try:
            sink = model.sink(SCHEMA, slice, StageIn(open_store(str(tmp_path)), name), "pipeline", "sink")
            sink.clear(1)
            all_cleared.wait()
            for epoch in range(2, 7):
                sink.write(batch(*range(slice * 100 + epoch * 10, slice * 100 + epoch * 10 + 10)))
                sealed = sink.seal(epoch)
                assert sealed is not None
                sink.apply(epoch, sealed.store())
            sink.close()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=[slice]) for slice in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failed == []
    assert len(rows_of(uri, name)) == 4 * 50


# ---- The way to the database -----------------------------------------------------------------------------------------


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

    monkeypatch.setattr("arroyo_udf_plugin.connectors.database.time.sleep", sleep)
    written(uri, "t", batch(3))
    other.close()
    assert waited == [0.1, 0.2, 0.4]
    assert sorted(row[0] for row in rows_of(uri, "t")) == [1, 2, 3]


def test_patience_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(database, "_BUSY_MS", 1)
    monkeypatch.setattr("arroyo_udf_plugin.connectors.database.time.monotonic", lambda: now[0])
    later = "arroyo_udf_plugin.connectors.database.time.sleep"
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
    monkeypatch.setattr("arroyo_udf_plugin.connectors.database.time.sleep", lambda seconds: None)
    sink = with_checkpoints(tmp_path, Table(uri=postgresql, table=name, key=["a"]), history=name)
    sink.clear(1)
    real_rows, real_once = database.Transaction.rows, database._Connected._once
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
    monkeypatch.setattr(database._Connected, "_once", once)
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
    folder = own_server.partition("host=")[2]
    sink = with_checkpoints(tmp_path / "stage", Table(uri=own_server, table="t"), history="h")
    sink.clear(1)
    for epoch in range(2, 5):
        sink.write(batch(epoch))
        sealed = sink.seal(epoch)
        assert sealed is not None
        stored = sealed.store()
        restart(folder)
        sink.apply(epoch, stored)
    sink.close()
    assert sorted(row[0] for row in rows_of(own_server, "t")) == [2, 3, 4]


def restart(folder: str) -> None:
    """Ends all connections at once, as a crash does; the server recovers by itself, and refuses meanwhile."""
    postmaster = Path(folder, "data", "postmaster.pid").read_text().split()[0]
    children = Path("/proc", postmaster, "task", postmaster, "children").read_text().split()
    os.kill(int(children[0]), signal.SIGKILL)
