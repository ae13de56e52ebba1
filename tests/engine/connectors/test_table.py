"""Tables: those that are there, names, keys, epochs. (Beside it: test_table_types.py and test_table_connection.py)"""

from __future__ import annotations

import threading
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sinks import SCHEMA, StageIn, batch, execute, rows_of
from tables import is_sqlite, with_checkpoints, written

from arroyo_udf_plugin import InvalidArgument
from arroyo_udf_plugin.engine.connectors import staged_rows
from arroyo_udf_plugin.engine.connectors.interface import Discardable
from arroyo_udf_plugin.engine.connectors.table import Table
from arroyo_udf_plugin.engine.execution.store import open_store

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
        copy.check(3, 0, [])
    copy.check(5, 0, [])
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
    monkeypatch.setattr(staged_rows, "_CHUNK_BYTES", 100)
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


def test_the_last_rows_of_an_epoch_are_not_read_back_by_whoever_has_stored_them(
    uri: str, name: str, tmp_path: Path
) -> None:
    """Until they are discarded, or applied: then they are in no memory."""
    store = open_store(str(tmp_path / "stage"))
    sink = with_checkpoints(tmp_path, Table(uri=uri, table=name), history=name)
    sink.clear(1)
    told = []
    for epoch in (2, 3):
        sink.write(batch(epoch))
        sealed = sink.seal(epoch)
        assert sealed is not None
        told.append(sealed.store())
        (staged,) = store.names("")
        if epoch == 2:
            store.delete(staged)
            sink.apply(epoch, told[0])
    assert isinstance(sealed, Discardable)
    sealed.discard()
    with pytest.raises(InvalidArgument, match="rows of epoch 3 in the checkpoints' store are gone"):
        sink.apply(3, told[1])
    sink.close()
    assert [row[0] for row in rows_of(uri, name)] == [2]


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
