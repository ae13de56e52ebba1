"""Tables as sources: types, keys, looks that are repeated, what is late, what is refused."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pydantic
import pytest
from sinks import execute, rows_of
from tables import is_sqlite, written

from arroyo_udf_plugin import InvalidArgument, run_pipeline
from arroyo_udf_plugin.engine.connectors import table_partition, table_position, table_source
from arroyo_udf_plugin.engine.connectors.interface import Json
from arroyo_udf_plugin.engine.connectors.table_source import TableInput, TableReading
from arroyo_udf_plugin.engine.pipeline import Checkpoints
from arroyo_udf_plugin.engine.pipeline.document import pipeline_of
from arroyo_udf_plugin.engine.planner.script import Script
from arroyo_udf_plugin.errors import Unreachable

DEADLINE = 60.0


class Following:
    """A partition of a source, read as the engine does it."""

    def __init__(self, model: TableReading, position: Json | None = None) -> None:
        self.source = model.source(1)
        if position is not None:
            position = json.loads(json.dumps(position))
            self.source.check({"rows": position})
        self.partition = self.source.open("rows", position)

    async def next(self) -> list[dict[str, Any]] | None:
        rows = await asyncio.wait_for(self.partition.read(), DEADLINE)
        return None if rows is None else rows.batch.to_pylist()

    async def until(self, count: int) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        while len(rows) < count:
            more = await self.next()
            assert more, "the source has ended"
            rows += more
        return rows

    def close(self) -> Json:
        position = self.partition.position()
        self.partition.close()
        self.source.close()
        return position


@contextlib.contextmanager
def following(model: TableReading, position: Json | None = None) -> Iterator[Following]:
    opened = Following(model, position)
    try:
        yield opened
    finally:
        opened.close()


def read(model: TableReading, position: Json | None = None) -> list[dict[str, Any]]:
    """All rows of a source that ends."""

    async def all_rows() -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        with following(model, position) as opened:
            while (more := await opened.next()) is not None:
                rows += more
            assert opened.partition.position()["end"] is True
        return rows

    return asyncio.run(all_rows())


def numbers(rows: list[dict[str, Any]], column: str = "id") -> list[int]:
    return [row[column] for row in rows]


def table_of(uri: str, name: str, count: int) -> None:
    execute(uri, f"CREATE TABLE {name} (id bigint PRIMARY KEY NOT NULL, word text)")
    ids = pa.array(range(count), pa.int64())
    written(uri, name, pa.record_batch({"id": ids, "word": pa.array([f"word {n}" for n in range(count)], pa.string())}))


# ---- Once ------------------------------------------------------------------------------------------------------------


def test_all_rows_of_a_table_with_the_types_of_the_database(uri: str, name: str) -> None:
    execute(uri, f"CREATE TABLE {name} (a bigint, b text, c double precision, d date, e timestamp)")
    execute(
        uri,
        f"INSERT INTO {name} VALUES (1, 'x', 1.5, '2026-01-02', '2026-01-02 03:04:05'), (NULL, NULL, NULL, NULL, NULL)",
    )
    with following(TableInput(uri=uri, table=name)) as opened:
        assert opened.source.schema == pa.schema(
            [("a", pa.int64()), ("b", pa.string()), ("c", pa.float64()), ("d", pa.date32()), ("e", pa.timestamp("us"))]
        )
        assert not opened.source.resumable
    first, second = read(TableInput(uri=uri, table=name))
    assert str(first) == str({"a": 1, "b": "x", "c": 1.5, "d": first["d"], "e": first["e"]})
    assert (str(first["d"]), str(first["e"])) == ("2026-01-02", "2026-01-02 03:04:05")
    assert set(second.values()) == {None}


@pytest.mark.parametrize("key", [(), ("id",)])
def test_many_rows_come_in_batches_and_each_once(uri: str, name: str, key: tuple[str, ...]) -> None:
    table_of(uri, name, 30_000)
    rows = read(TableInput(uri=uri, table=name, key=key))
    assert sorted(numbers(rows)) == list(range(30_000))
    assert all(row["word"] == f"word {row['id']}" for row in rows)


def test_columns_and_types_are_chosen(uri: str, name: str) -> None:
    table_of(uri, name, 3)
    model = TableInput(uri=uri, table=name, columns=["word"], types={"word": "str"}, key=["id"])
    assert read(model) == [{"word": f"word {n}"} for n in range(3)]
    small = TableInput(uri=uri, table=name, columns=["id"], types={"id": "int32"})
    if is_sqlite(uri):
        assert numbers(read(small)) == [0, 1, 2]
    else:
        with pytest.raises(InvalidArgument, match=r"'id' is bigint in the database, which is not read as int32"):
            read(small)
    with pytest.raises(InvalidArgument, match=r"no column 'words': it has id, word"):
        read(TableInput(uri=uri, table=name, columns=["words"]))
    with pytest.raises(InvalidArgument, match=r"(?i)column 'word' is text in the database, which is not read as int64"):
        read(TableInput(uri=uri, table=name, types={"word": "int"}))


def test_a_query(uri: str, name: str) -> None:
    table_of(uri, name, 10)
    query = f"SELECT id, word, id AS twice FROM {name} WHERE id > 4 -- the last ones"
    rows = read(TableInput(uri=uri, query=query, key=["id"]))
    assert rows == [{"id": n, "word": f"word {n}", "twice": n} for n in range(5, 10)]
    with pytest.raises(InvalidArgument, match=r"syntax error"):
        read(TableInput(uri=uri, query="SELEC 1"))
    with pytest.raises(InvalidArgument):
        read(TableInput(uri=uri, query=f"DELETE FROM {name}"))
    assert len(read(TableInput(uri=uri, table=name))) == 10


def test_a_view(uri: str, name: str) -> None:
    table_of(uri, name, 3)
    execute(uri, f"CREATE VIEW v{name} AS SELECT id AS n, word FROM {name} WHERE id <> 1")
    assert numbers(read(TableInput(uri=uri, table=f"v{name}", key=["n"])), "n") == [0, 2]


def test_a_table_that_is_not_there(uri: str, name: str) -> None:
    with pytest.raises(InvalidArgument, match=r"there is no such table"):
        read(TableInput(uri=uri, table=name))


def test_an_empty_table(uri: str, name: str) -> None:
    table_of(uri, name, 0)
    assert read(TableInput(uri=uri, table=name)) == read(TableInput(uri=uri, table=name, key=["id"])) == []


def test_what_was_added_is_read_from_a_position(uri: str, name: str) -> None:
    table_of(uri, name, 4)
    model = TableInput(uri=uri, table=name, key=["id"])

    async def first() -> Json:
        with following(model) as opened:
            await opened.next()
            return opened.partition.position()

    position = asyncio.run(first())
    execute(uri, f"INSERT INTO {name} VALUES (4, 'x'), (5, 'y')")
    assert numbers(read(model, position)) == [4, 5]


WORDS = ["b", "B", "a", "é", "", " ", "it's", "\\'", '"', "10", "9", "ab", "a b"]


@pytest.mark.parametrize("key", [("id",), ("word", "id"), ("word",)])
def test_a_source_goes_on_from_each_of_its_positions(
    uri: str, name: str, key: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_partition, "BATCH_ROWS", 3)
    monkeypatch.setattr(table_partition, "PAGE_ROWS", 5)
    execute(uri, f"CREATE TABLE {name} (id bigint PRIMARY KEY NOT NULL, word text NOT NULL UNIQUE)")
    written(uri, name, pa.record_batch({"id": pa.array(range(len(WORDS)), pa.int64()), "word": WORDS}))
    model = TableInput(uri=uri, table=name, key=key)
    whole = numbers(read(model))
    assert sorted(whole) == list(range(len(WORDS)))
    for position, row in positions(model):
        assert numbers(read(model, position)) == whole[row:]


def positions(model: TableReading) -> list[tuple[Json, int]]:
    """Of a source that ends: each with the number of rows before it."""

    async def all_positions() -> list[tuple[Json, int]]:
        with following(model) as opened:
            found = [(opened.partition.position(), 0)]
            while (rows := await opened.next()) is not None:
                found.append((opened.partition.position(), found[-1][1] + len(rows)))
            return found

    return asyncio.run(all_positions())


ORDERED = {
    "bigint": ("bigint", ["-9007199254740993", "1", "9007199254740993", "9007199254740994"]),
    "numeric": ("numeric(30,10)", ["-0.0000000001", "0.5", "12345678901234567890.0000000001"]),
    "date": ("date", ["'1969-12-31'", "'2026-01-01'"]),
    "timestamp": (
        "timestamp",
        ["'1969-12-31 23:59:59.999999'", "'2026-01-01 00:00:00'", "'2026-01-01 00:00:00.000001'"],
    ),
    "timestamptz": ("timestamptz", ["'2026-01-01 00:00:00.5+00'", "'2026-01-01 00:00:00.5-01'"]),
    "text": ("text", ["''", "'0'", "'ä''\"\\'"]),
    "uuid": ("uuid", ["'00000000-0000-0000-0000-000000000001'", "'10000000-0000-0000-0000-000000000000'"]),
}


@pytest.mark.parametrize("kind", ORDERED)
def test_positions_of_each_type_of_key(uri: str, name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if is_sqlite(uri) and kind in ("numeric", "uuid", "timestamptz"):
        kind = "text"
    declared, literals = ORDERED[kind]
    monkeypatch.setattr(table_partition, "BATCH_ROWS", 1)
    execute(uri, f"CREATE TABLE {name} (k {declared} NOT NULL UNIQUE, n bigint)")
    for number, literal in enumerate(literals):
        execute(uri, f"INSERT INTO {name} VALUES ({literal}, {number})")
    model = TableInput(uri=uri, table=name, key=["k"], columns=["n"])

    found = positions(model)
    assert len(found) == len(literals) + 1
    for position, row in found[:-1]:
        assert numbers(read(model, position), "n") == list(range(row, len(literals)))


# ---- Again every so often --------------------------------------------------------------------------------------------


def test_rows_that_are_added_are_read_and_those_before_not_again(uri: str, name: str) -> None:
    table_of(uri, name, 3)
    model = TableInput(uri=uri, table=name, key=["id"], every=0.01)
    assert not model.ends

    async def follow() -> None:
        with following(model) as opened:
            assert numbers(await opened.until(3)) == [0, 1, 2]
            execute(uri, f"INSERT INTO {name} VALUES (7, 'x')")
            assert numbers(await opened.until(1)) == [7]
            execute(uri, f"INSERT INTO {name} VALUES (5, 'late'), (8, 'y')")
            assert numbers(await opened.until(1)) == [8]

    asyncio.run(follow())


def test_late_keys_within_the_overlap_are_read_once_also_after_a_resume(uri: str, name: str) -> None:
    table_of(uri, name, 0)
    model = TableInput(uri=uri, table=name, key=["id"], every=0.01, overlap_keys=10)

    async def follow() -> None:
        execute(uri, f"INSERT INTO {name} VALUES (1, 'a'), (100, 'b')")
        with following(model) as opened:
            assert numbers(await opened.until(2)) == [1, 100]
            execute(uri, f"INSERT INTO {name} VALUES (95, 'late')")
            assert numbers(await opened.until(1)) == [95]
            position = opened.partition.position()
        execute(uri, f"INSERT INTO {name} VALUES (94, 'later'), (101, 'c')")
        with following(model, position) as opened:
            assert numbers(await opened.until(2)) == [94, 101]
            execute(uri, f"INSERT INTO {name} VALUES (93, 'x'), (102, 'd'), (0, 'too late')")
            assert numbers(await opened.until(2)) == [93, 102]
            execute(uri, f"INSERT INTO {name} VALUES (200, 'far')")
            assert numbers(await opened.until(1)) == [200]
            position = opened.partition.position()
            assert (position["since"], position["known"], position["late"]) == ([102], [[200]], [[]])

    asyncio.run(follow())


def test_rows_that_change_are_read_again(uri: str, name: str) -> None:
    execute(uri, f"CREATE TABLE {name} (id bigint PRIMARY KEY, word text, changed timestamp NOT NULL)")
    model = TableInput(uri=uri, table=name, key=["id"], updated_at="changed", every=0.01, overlap=60)

    def put(number: int, word: str, second: str) -> None:
        at = f"'2026-01-01 10:{second}'"
        execute(
            uri,
            f"INSERT INTO {name} VALUES ({number}, '{word}', {at}) "
            f"ON CONFLICT (id) DO UPDATE SET word = '{word}', changed = {at}",
        )

    async def follow() -> None:
        put(1, "a", "00:00.5")
        put(2, "b", "00:00.5")
        with following(model) as opened:
            assert numbers(await opened.until(2)) == [1, 2]
            put(1, "changed", "00:30")
            assert [row["word"] for row in await opened.until(1)] == ["changed"]
            put(3, "late", "00:10")
            assert [row["word"] for row in await opened.until(1)] == ["late"]
            position = opened.partition.position()
        put(4, "later", "00:09.999999")
        put(2, "b again", "05:00")
        with following(model, position) as opened:
            assert [row["word"] for row in await opened.until(2)] == ["later", "b again"]
            put(5, "c", "05:00")
            assert [row["word"] for row in await opened.until(1)] == ["c"]

    asyncio.run(follow())


def test_rows_of_one_time_of_change_are_told_apart_by_their_key(
    uri: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_partition, "BATCH_ROWS", 2)
    execute(uri, f"CREATE TABLE {name} (id bigint PRIMARY KEY, changed timestamp NOT NULL)")
    execute(uri, f"INSERT INTO {name} VALUES " + ", ".join(f"({n}, '2026-01-01 00:00:00')" for n in range(9)))
    model = TableInput(uri=uri, table=name, key=["id"], updated_at="changed", columns=["id"])
    assert numbers(read(model)) == list(range(9))


def test_an_overlap_with_too_many_rows_is_refused(uri: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_position, "MOST_KNOWN", 5)
    table_of(uri, name, 10)
    with (
        following(TableInput(uri=uri, table=name, key=["id"], every=1, overlap_keys=8)) as opened,
        pytest.raises(InvalidArgument, match=r"more than 5 rows are within the overlap, .* make the overlap shorter"),
    ):
        asyncio.run(opened.until(10))


def test_many_rows_in_an_overlap_are_told(
    uri: str, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(table_position, "MANY_KNOWN", 5)
    table_of(uri, name, 10)
    with following(TableInput(uri=uri, table=name, key=["id"], every=1, overlap_keys=8)) as opened:
        asyncio.run(opened.until(10))
    assert "9 rows are within the overlap" in caplog.text


def test_a_partition_that_waits_is_closed_at_once(uri: str, name: str) -> None:
    table_of(uri, name, 1)

    async def wait() -> None:
        with following(TableInput(uri=uri, table=name, key=["id"], every=3600)) as opened:
            await opened.until(1)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(opened.partition.read(), 0.05)

    asyncio.run(asyncio.wait_for(wait(), DEADLINE))


# ---- What is wrong ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({}, "write table or query, one of them"),
        ({"table": "t", "query": "SELECT 1"}, "write table or query, one of them"),
        ({"table": "t", "every": 1.0}, r"every needs key: .* key = \['id'\]"),
        ({"table": "t", "updated_at": "u"}, "updated_at needs key"),
        ({"table": "t", "key": ["id"], "every": 1.0, "overlap": 1.0}, "overlap needs updated_at"),
        ({"table": "t", "key": ["a", "b"], "every": 1.0, "overlap_keys": 1}, "overlap_keys is of one key"),
        ({"table": "t", "key": ["a"], "overlap_keys": 1}, "an overlap needs every"),
    ],
)
def test_keys_that_do_not_fit_together(keys: Mapping[str, Any], text: str) -> None:
    with pytest.raises(pydantic.ValidationError, match=text):
        TableInput(uri="sqlite:x.db", **keys)


def test_a_key_must_be_unique(uri: str, name: str) -> None:
    execute(uri, f"CREATE TABLE {name} (a bigint NOT NULL, b bigint NOT NULL, PRIMARY KEY (a, b))")
    with pytest.raises(InvalidArgument, match=r"the table has no unique index on a, so rows with equal keys might be"):
        read(TableInput(uri=uri, table=name, key=["a"]))
    execute(uri, f"INSERT INTO {name} VALUES (1, 1), (1, 2)")
    assert len(read(TableInput(uri=uri, table=name, key=["b", "a"]))) == 2
    with pytest.raises(InvalidArgument, match=r"several rows have the key a = 1, so some might be passed over"):
        read(TableInput(uri=uri, query=f"SELECT * FROM {name}", key=["a"]))


def test_equal_keys_are_seen_across_pages(uri: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_partition, "BATCH_ROWS", 2)
    execute(uri, f"CREATE TABLE {name} (a bigint NOT NULL)", f"INSERT INTO {name} VALUES (1), (2), (2), (3)")
    with pytest.raises(InvalidArgument, match=r"several rows have the key a = 2"):
        read(TableInput(uri=uri, query=f"SELECT * FROM {name}", key=["a"]))


@pytest.mark.parametrize("every", [None, 0.01])
def test_a_key_that_is_null(uri: str, name: str, every: float | None) -> None:
    execute(uri, f"CREATE TABLE {name} (a bigint UNIQUE)", f"INSERT INTO {name} VALUES (1), (2)")
    model = TableInput(uri=uri, table=name, key=["a"], every=every)

    async def follow() -> None:
        with following(model) as opened:
            assert len(await opened.until(2)) == 2
            execute(uri, f"INSERT INTO {name} VALUES (NULL)")
            with pytest.raises(InvalidArgument, match=r"'a' is null in some rows, which would never be read"):
                await opened.until(1)

    if every is None:
        execute(uri, f"INSERT INTO {name} VALUES (NULL)")
        with pytest.raises(InvalidArgument, match=r"'a' is null in some rows, which would never be read"):
            read(model)
    else:
        asyncio.run(follow())


def test_a_key_of_a_type_without_a_good_order(uri: str, name: str) -> None:
    execute(uri, f"CREATE TABLE {name} (a double precision PRIMARY KEY)")
    with pytest.raises(InvalidArgument, match=r"column 'a' is double precision in the database, and rows are read in"):
        read(TableInput(uri=uri, table=name, key=["a"]))


@pytest.mark.parametrize("change", ["DROP COLUMN word", "RENAME COLUMN word TO text"])
def test_a_column_that_goes_between_two_looks(uri: str, name: str, change: str) -> None:
    table_of(uri, name, 1)

    async def follow() -> None:
        with following(TableInput(uri=uri, table=name, key=["id"], every=0.01)) as opened:
            await opened.until(1)
            execute(uri, f"ALTER TABLE {name} ADD COLUMN other text")
            execute(uri, f"INSERT INTO {name} VALUES (2, 'x', 'y')")
            assert await opened.until(1) == [{"id": 2, "word": "x"}]
            execute(uri, f"ALTER TABLE {name} {change}")
            with pytest.raises(InvalidArgument, match=r"(?i)column 'word' was text, and is gone: start again"):
                await opened.until(1)

    asyncio.run(follow())


@pytest.mark.server
def test_a_type_that_changes_between_two_looks(postgresql: str, name: str) -> None:
    table_of(postgresql, name, 1)

    async def follow() -> None:
        with following(TableInput(uri=postgresql, table=name, key=["id"], every=0.01)) as opened:
            await opened.until(1)
            execute(postgresql, f"ALTER TABLE {name} ALTER COLUMN word TYPE bigint USING 1")
            with pytest.raises(InvalidArgument, match=r"column 'word' was text, and is bigint now"):
                await opened.until(1)

    asyncio.run(follow())


@pytest.mark.server
def test_an_error_of_a_row_is_told_and_not_waited_for(postgresql: str, name: str) -> None:
    table_of(postgresql, name, 20_000)
    query = f"SELECT id, 1 / (id - 15000) AS x FROM {name}"
    for key in ((), ("id",)):
        with pytest.raises(InvalidArgument, match="division by zero"):
            read(TableInput(uri=postgresql, query=query, key=key))


def test_an_overlap_needs_times(uri: str, name: str) -> None:
    execute(uri, f"CREATE TABLE {name} (id bigint PRIMARY KEY, u bigint)")
    with pytest.raises(InvalidArgument, match=r"the overlap: 'u' is read as int64, which is no time"):
        TableInput(uri=uri, table=name, key=["id"], updated_at="u", every=1, overlap=1).source(1)


def test_another_key_than_before(uri: str, name: str) -> None:
    execute(uri, f"CREATE TABLE {name} (id bigint PRIMARY KEY, u bigint)", f"INSERT INTO {name} VALUES (1, 2)")

    async def position() -> Json:
        with following(TableInput(uri=uri, table=name, key=["id"])) as opened:
            await opened.next()
            return opened.partition.position()

    at = asyncio.run(position())
    with pytest.raises(InvalidArgument, match="was read by 1 columns of a key, and now by 2"):
        read(TableInput(uri=uri, table=name, key=["id"], updated_at="u"), at)


def test_a_server_that_does_not_answer_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_source, "PATIENCE", 0.05)
    uri = f"postgresql://me:secret@/rows?host={tmp_path}"
    with pytest.raises(Unreachable, match="table t: PostgreSQL: ") as refused:
        TableInput(uri=uri, table="t").source(1)
    assert "secret" not in str(refused.value)


# ---- In pipelines ----------------------------------------------------------------------------------------------------


def test_without_a_key_checkpoints_are_refused_by_name(uri: str, name: str, tmp_path: Path) -> None:
    table_of(uri, name, 3)
    description = {
        "name": "p",
        "source": {"type": "table", "uri": uri, "table": name},
        "sinks": [{"type": "parts", "path": str(tmp_path / "out")}],
        "checkpoints": {"place": str(tmp_path / "state")},
    }
    with pytest.raises(InvalidArgument, match=rf"table {name}, which has no key here, cannot be read again"):
        run_pipeline(pipeline_of(description))
    description["source"]["key"] = ["id"]  # type: ignore[index]
    assert run_pipeline(pipeline_of(description)).progress.rows_out == 3


def test_sql_reads_a_table_and_writes_another_one(uri: str, name: str, tmp_path: Path) -> None:
    table_of(uri, name, 5)
    connector = "sqlite" if is_sqlite(uri) else "postgres"
    query = f"""
        CREATE TABLE source (id BIGINT, word TEXT, PRIMARY KEY (id))
        WITH (connector = '{connector}', type = 'source', uri = '{uri}', 'table' = '{name}');
        CREATE TABLE target (id BIGINT, word TEXT, PRIMARY KEY (id))
        WITH (connector = '{connector}', type = 'sink', uri = '{uri}', 'table' = 'to{name}');
        INSERT INTO target SELECT id, upper(word) AS word FROM source WHERE id > 1;
    """
    pipeline = Script("query.sql", query, []).pipeline
    pipeline = pipeline.model_copy(update={"checkpoints": Checkpoints(place=str(tmp_path / "state"))})
    assert run_pipeline(pipeline).ended == "finished"
    assert sorted(rows_of(uri, f"to{name}")) == [(n, f"WORD {n}") for n in range(2, 5)]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("every = 'soon'", "write a time such as 10 s"),
        ("key = 'id,'", "write columns, such as id, or day, number"),
        ("every = '1 s'", "every needs key"),
        ("kye = 'id'", "there is no option kye here: .*key"),
    ],
)
def test_options_of_sql_that_are_wrong(uri: str, name: str, options: str, text: str) -> None:
    table_of(uri, name, 1)
    connector = "sqlite" if is_sqlite(uri) else "postgres"
    query = f"""CREATE TABLE {name} (id BIGINT) WITH (connector = '{connector}', uri = '{uri}', {options});
                SELECT id FROM {name};"""
    with pytest.raises(InvalidArgument, match=text):
        _ = Script("query.sql", query, []).pipeline
