"""Changes of a table of PostgreSQL as rows: operations, types, transactions, the snapshot, and positions."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import decimal
import math
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from published import EVERYTHING, FollowedTable, maker, read_beyond, replayed
from waiting import until

from arroyo_udf_plugin.engine.connectors.changes import follower
from arroyo_udf_plugin.engine.connectors.changes.postgresql_cdc import PostgresqlChanges
from arroyo_udf_plugin.engine.connectors.interface import Json
from arroyo_udf_plugin.errors import InvalidArgument
from arroyo_udf_plugin.testing import check_source

pytestmark = pytest.mark.connectors

Make = Callable[..., FollowedTable]


@pytest.fixture
def make(postgresql: str) -> Iterator[Make]:
    with maker(postgresql) as make:
        yield make


def ops(rows: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(row["op"], row["id"]) for row in rows]


# ---- What happens to a row -------------------------------------------------------------------------------------------


def test_a_snapshot_then_changes(make: Make) -> None:
    table = make()
    table.insert(2, 1)
    rows, position = table.read()
    assert rows == [{"id": 1, "name": "name 1", "op": "r"}, {"id": 2, "name": "name 2", "op": "r"}]
    table.insert(3)
    table.sql("UPDATE {t} SET name = 'other' WHERE id = 1")
    table.sql("DELETE FROM {t} WHERE id = 2")
    table.sql("UPDATE {t} SET id = 4 WHERE id = 3")
    position = {name: value for name, value in position.items() if name not in ("end", "until")}
    rows, _ = table.read(position)
    assert [tuple(row.values()) for row in rows] == [
        (3, "name 3", "c"),
        (1, "other", "u"),
        (2, None, "d"),
        (3, None, "d"),
        (4, "name 3", "c"),
    ]


def test_what_is_known_about_a_change(make: Make) -> None:
    table = make()
    position = table.begin()
    before = datetime.datetime.now(datetime.UTC)
    with table.connection.transaction():
        ((xid,),) = table.sql("SELECT pg_current_xact_id()::text::bigint")
        table.insert(1)
        table.sql("UPDATE {t} SET name = NULL")
    table.sql("DELETE FROM {t}")
    (first, second, third), end = table.read(position, metadata=EVERYTHING)
    assert [row["before"] for row in (first, second, third)] == [None, None, {"id": 1, "name": None}]
    assert [first["after"], second["after"], third["after"]] == [
        {"id": 1, "name": "name 1"},
        {"id": 1, "name": None},
        None,
    ]
    assert first["unsent"] == second["unsent"] == third["unsent"] == []
    assert first["xid"] == second["xid"] == xid != third["xid"]
    assert position["lsn"] < first["lsn"] == second["lsn"] < third["lsn"] < end["lsn"]
    assert before <= first["committed"] == second["committed"] <= third["committed"]


def test_replica_identity_full_has_the_whole_row_before(make: Make) -> None:
    table = make("id bigint PRIMARY KEY, name text, large text")
    table.sql("ALTER TABLE {t} REPLICA IDENTITY FULL")
    table.sql("ALTER TABLE {t} ALTER large SET STORAGE EXTERNAL")
    position, large = table.begin(), "x" * 10_000
    table.sql("INSERT INTO {t} VALUES (1, 'a', %s)", large)
    table.sql("UPDATE {t} SET name = 'b'")
    table.sql("UPDATE {t} SET id = 2")
    table.sql("DELETE FROM {t}")
    rows, _ = table.read(position, metadata=EVERYTHING)
    assert [row["op"] for row in rows] == ["c", "u", "d", "c", "d"]
    assert rows[1]["before"] == {"id": 1, "name": "a", "large": large}
    assert rows[1]["after"] == {"id": 1, "name": "b", "large": large}
    assert rows[3]["after"] == rows[4]["before"] == {"id": 2, "name": "b", "large": large}
    assert all(row["unsent"] == [] for row in rows)


def test_values_that_are_stored_apart_are_named(make: Make) -> None:
    table = make("id bigint PRIMARY KEY, name text, large text")
    table.sql("ALTER TABLE {t} ALTER large SET STORAGE EXTERNAL")
    position = table.begin()
    table.sql("INSERT INTO {t} VALUES (1, 'a', %s)", "x" * 10_000)
    table.sql("UPDATE {t} SET name = 'b'")
    table.sql("UPDATE {t} SET large = 'short'")
    rows, _ = table.read(position, metadata=EVERYTHING)
    assert [(row["op"], row["unsent"], row["large"] and len(row["large"])) for row in rows] == [
        ("c", [], 10_000),
        ("u", ["large"], None),
        ("u", [], 5),
    ]
    assert rows[1]["after"] == {"id": 1, "name": "b", "large": None}
    table.sql("UPDATE {t} SET large = %s", "y" * 10_000)
    table.sql("UPDATE {t} SET id = 2")
    with pytest.raises(InvalidArgument, match=r"its column 'large', which is stored apart \(TOAST\): ALTER TABLE"):
        table.read(position)
    rows, _ = table.read(position, types={"id": "int64"})  # nobody wants that column
    assert ops(rows)[-2:] == [("d", 1), ("c", 2)]


def test_a_truncated_table(make: Make) -> None:
    table = make()
    table.insert(1)
    position = table.begin()
    table.sql("TRUNCATE {t}")
    table.insert(2)
    with pytest.raises(InvalidArgument, match="TRUNCATE has removed all rows"):
        table.read(position)
    rows, _ = table.read(position, truncate="row", metadata=EVERYTHING)
    assert ops(rows) == [("t", None), ("c", 2)]
    assert rows[0]["before"] is rows[0]["after"] is None


def test_only_what_is_committed_and_of_this_table(make: Make) -> None:
    table, other = make(), make()
    table.sql("CREATE PUBLICATION of_both FOR TABLE {t}, " + other.name)
    position = table.begin(publication="of_both")
    with contextlib.suppress(ZeroDivisionError), table.connection.transaction():
        table.insert(1)
        raise ZeroDivisionError
    other.insert(2)
    with psycopg.connect(table.address) as late, late.cursor() as cursor:
        cursor.execute(f"INSERT INTO {table.name} VALUES (3, 'late')")
        table.insert(4)
    table.sql("SELECT pg_logical_emit_message(true, 'of others', 'x')")
    rows, _ = table.read(position, publication="of_both")
    assert ops(rows) == [("c", 4), ("c", 3)]


# ---- Types -----------------------------------------------------------------------------------------------------------

TYPES: list[tuple[str, str, object]] = [
    ("smallint", "-3", -3),
    ("integer", "7", 7),
    ("bigint", "9007199254740993", 9007199254740993),
    ("real", "1.5", 1.5),
    ("double precision", "'-Infinity'", -math.inf),
    ("boolean", "true", True),
    ("numeric(10,2)", "-12.30", decimal.Decimal("-12.30")),
    ("numeric", "123456789012345678901234567890.5", "123456789012345678901234567890.5"),
    ("text", "E'ä\\n'", "ä\n"),
    ("varchar(5)", "'a b'", "a b"),
    ("char(3)", "'a'", "a  "),
    ("bytea", "'\\x00ff'", b"\x00\xff"),
    ("date", "'2026-02-28'", datetime.date(2026, 2, 28)),
    ("timestamp", "'2026-01-02 03:04:05.678'", datetime.datetime(2026, 1, 2, 3, 4, 5, 678_000)),
    (
        "timestamptz",
        "'2026-01-02 03:04:05.678901+05'",
        datetime.datetime(2026, 1, 1, 22, 4, 5, 678_901, datetime.UTC),
    ),
    ("uuid", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("jsonb", "'{\"a\": [1]}'", '{"a": [1]}'),
    ("interval", "'1 day 2 hours'", "1 day 02:00:00"),
    ("inet", "'10.0.0.1'", "10.0.0.1"),
    ("mood", "'good'", "good"),
    ("integer[]", "'{1,NULL,3}'", [1, None, 3]),
    ("text[]", r"""E'{a,"b c","q\\"q",NULL,"NULL",""}'""", ["a", "b c", 'q"q', None, "NULL", ""]),
    ("boolean[]", "'{t,f}'", [True, False]),
    ("bytea[]", "ARRAY['\\x01ff'::bytea]", [b"\x01\xff"]),
    ("integer[]", "'{}'", []),
]


def test_all_types_in_the_snapshot_and_in_changes(make: Make) -> None:
    make().sql("DROP TYPE IF EXISTS mood CASCADE; CREATE TYPE mood AS ENUM ('good', 'bad')")
    columns = [f"c{place} {type_}" for place, (type_, _, _) in enumerate(TYPES)]
    table = make(", ".join(["id bigint PRIMARY KEY", *columns]))
    values = ", ".join(value for _, value, _ in TYPES)
    table.sql(f"INSERT INTO {{t}} VALUES (1, {values})")
    table.sql("INSERT INTO {t} VALUES (2)")
    first, position = table.read()
    table.sql(f"INSERT INTO {{t}} VALUES (3, {values})")
    table.sql("INSERT INTO {t} VALUES (4)")
    position = {name: value for name, value in position.items() if name not in ("end", "until")}
    second, _ = table.read(position)
    expected = [value for _, _, value in TYPES]
    for full, empty in (first, second):
        assert list(full.values())[1:-1] == expected
        assert set(list(empty.values())[1:-1]) == {None}


def test_types_that_were_asked_for(make: Make) -> None:
    table = make("id integer PRIMARY KEY, price numeric(10,2), at timestamptz, extra text")
    table.sql("INSERT INTO {t} VALUES (1, 1.50, '2026-01-01 00:00:00+00', 'x')")
    types = {"price": "float64", "id": "int64", "at": "timestamp[ns, UTC]", "now": "timestamp[ns, UTC]"}
    model = table.described(types=types, metadata={"now": "committed"})
    assert [str(field.type) for field in model.source(1).schema] == [
        "double",
        "int64",
        "timestamp[ns, tz=UTC]",
        "timestamp[ns, tz=UTC]",
    ]
    (row,), _ = table.read(types=types, metadata={"now": "committed"})
    assert (row["price"], row["id"]) == (1.5, 1)


def test_values_that_a_type_cannot_hold_are_refused_rows(make: Make) -> None:
    table = make("id bigint PRIMARY KEY, at timestamptz, n numeric(5,2), d date")
    table.sql(
        "INSERT INTO {t} VALUES (1, 'infinity', 1, NULL), (2, NULL, 'NaN', NULL), (3, NULL, NULL, '0044-03-15 BC')"
    )
    with contextlib.closing(table.opened()) as partition:
        rows = asyncio.run(partition.read())
    assert rows is not None
    assert sorted(rows.refused) == [0, 1, 2]
    assert "column 'at': 'infinity' is not timestamp" in rows.refused[0]
    assert "column 'n': 'NaN' is not decimal128(5, 2)" in rows.refused[1]
    assert (rows.file, rows.first) == (table.partition, 1)


def test_columns_that_do_not_fit(make: Make) -> None:
    table = make("id bigint PRIMARY KEY, name text, twice bigint GENERATED ALWAYS AS (2 * id) STORED")
    for keys, text in (
        ({"types": {"nmae": "str"}}, "has no column 'nmae': write 'name'"),
        ({"types": {"name": "int64"}}, "column 'name' is text there, which is not read as int64: write string"),
        ({"types": {"id": "int32"}}, "column 'id' is bigint there, which is not read as int32: write int64"),
        ({"types": {"twice": "int64"}}, "has no column 'twice'"),
        ({"metadata": {"x": "opp"}}, "changes have no 'opp': write 'op'"),
        ({"metadata": {"x": "op"}, "types": {"id": "int64", "x": "int64"}}, "'x' is the op of changes: it is string"),
        ({"metadata": {"x": "after"}, "types": {"x": "str"}}, "'x' is the after of changes"),
        ({"metadata": {"id": "op"}}, "metadata: there is a column 'id' already"),
    ):
        with pytest.raises(InvalidArgument, match=text):
            table.read(**keys)
    assert [field.name for field in table.described(metadata={}).source(1).schema] == ["id", "name"]


# ---- Without a gap or a double ---------------------------------------------------------------------------------------


class Writers:
    """Threads that change a table until they are stopped: each row is inserted, updated, moved and perhaps deleted."""

    def __init__(self, table: FollowedTable, count: int = 3) -> None:
        self._table, self._stop, self.done = table, threading.Event(), 0
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(count)]

    def _write(self, writer: int) -> None:
        with psycopg.connect(self._table.address, autocommit=True) as connection:
            n = 0
            while not self._stop.is_set():
                n += 1
                own, name = 1_000_000 * (writer + 1) + 10 * n, self._table.name
                with connection.transaction():
                    connection.execute(f"INSERT INTO {name} VALUES ({own}, 'a'), ({own + 1}, 'b'), ({-own}, 'c')")
                connection.execute(f"UPDATE {name} SET name = name || 'x' WHERE id IN ({own}, {-own})")
                connection.execute(f"UPDATE {name} SET id = id - 500000 WHERE id = {own + 1}")
                connection.execute(f"DELETE FROM {name} WHERE id = {own if n % 2 else -own}")
                self.done += 1

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


def the_table(table: FollowedTable) -> dict[int, str]:
    return dict(table.sql("SELECT id, name FROM {t}"))  # type: ignore[arg-type]


def test_a_snapshot_beside_writers(make: Make) -> None:
    table = make()
    table.insert(*range(1, 20_000))
    with Writers(table) as writers:
        until(lambda: writers.done > 20, "the writers")
        rows, position = table.read()
        behind = writers.done
        until(lambda: writers.done > behind + 20, "the writers")
    position = {name: value for name, value in position.items() if name not in ("end", "until")}
    more, _ = table.read(position)
    assert replayed(more, replayed(rows)) == the_table(table)
    assert rows
    assert more


def test_a_snapshot_that_is_read_in_parts_beside_writers(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reader is closed after a batch or two, and the next one goes on with a snapshot of its own."""
    monkeypatch.setattr(follower, "BATCH_ROWS", 2500)
    table = make()
    table.insert(*range(-9_999, 10_000))
    rows: list[dict[str, Any]] = []
    position: Json | None = None
    parts = 0

    async def some(number: int) -> None:
        nonlocal position
        with contextlib.closing(table.opened(position)) as partition:
            partition.position()
            for _ in range(number):
                read = await partition.read()
                assert read is not None
                rows.extend(read.batch.to_pylist())
                position = partition.position()

    with Writers(table) as writers:
        while position is None or "lsn" not in position:
            behind = writers.done
            asyncio.run(some(1 + parts % 2))
            parts += 1
            until(lambda: writers.done > behind + 5, "the writers")  # noqa: B023 (called in this turn)
    assert parts > 3
    position = {name: value for name, value in position.items() if name not in ("end", "until")}
    more, end = table.read(position)
    assert replayed(rows + more) == the_table(table)
    assert "parts" not in end


def test_a_bounded_reader_ends_where_parts_fit_together(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two parts, rows of the first are changed, and one moves there from behind it. The second part is newer
    than the end that a bounded reader had at the start, and the changes lie between them. They do not come at once: the
    server looks through those of another table before."""
    monkeypatch.setattr(follower, "BATCH_ROWS", 3)
    table, other = make(), make()
    table.insert(*range(1, 10))

    async def one() -> tuple[list[dict[str, Any]], Json]:
        with contextlib.closing(table.opened(bounded=True)) as partition:
            partition.position()
            read = await partition.read()
            assert read is not None
            return read.batch.to_pylist(), partition.position()

    rows, position = asyncio.run(one())
    assert ops(rows) == [("r", 1), ("r", 2), ("r", 3)]
    assert "until" in position
    other.sql("INSERT INTO {t} SELECT n FROM generate_series(1, 100000) n")
    table.sql("UPDATE {t} SET name = 'changed' WHERE id IN (2, 5)")
    table.sql("UPDATE {t} SET id = -id WHERE id = 9")
    table.sql("DELETE FROM {t} WHERE id = 3")
    more, end = table.read(position)
    assert replayed(rows + more) == the_table(table)
    assert end["end"]
    assert "parts" not in end


UUIDS = [f"{n}0000000-0000-0000-0000-000000000000" for n in "fa39b210"]


@pytest.mark.parametrize(
    ("columns", "texts"),
    [
        ("name text PRIMARY KEY", ["B", "a", "ä", "Z", "_", "10", "9", ""]),
        ("name uuid PRIMARY KEY", UUIDS),
        ("id int DEFAULT 7, name varchar(5), PRIMARY KEY (id, name)", ["B", "a", "ä", "Z", "_", "10", "9", ""]),
    ],
)
def test_parts_by_other_keys(make: Make, monkeypatch: pytest.MonkeyPatch, columns: str, texts: list[str]) -> None:
    """Also by texts, which the server orders by its language otherwise. Between the parts, each row is updated."""
    monkeypatch.setattr(follower, "BATCH_ROWS", 3)
    table = make(f"{columns}, times int DEFAULT 0")
    for text in texts:
        table.sql("INSERT INTO {t} (name) VALUES (%s)", text)
    rows: list[dict[str, Any]] = []
    position: Json | None = None

    async def one() -> None:
        nonlocal position
        with contextlib.closing(table.opened(position)) as partition:
            partition.position()
            read = await partition.read()
            assert read is not None
            rows.extend(read.batch.to_pylist())
            position = partition.position()

    for _ in range(3):
        asyncio.run(one())
        table.sql("UPDATE {t} SET times = times + 1")
    assert position is not None
    assert len(position["parts"]) == 3
    more, _ = table.read({name: value for name, value in position.items() if name != "until"})
    times: dict[str, int] = {}
    for row in rows + more:
        if row["op"] == "r":
            assert row["name"] not in times
        else:
            assert row["times"] == times[row["name"]] + 1, "an update is missing, or came twice"
        times[row["name"]] = row["times"]
    assert times == dict.fromkeys(texts, 3)


def test_a_large_transaction_is_cut_at_any_change(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "BATCH_ROWS", 100)
    table = make()
    position = table.begin()
    table.insert(*range(1000))
    table.sql("UPDATE {t} SET id = id + 5000 WHERE id < 50")
    whole, _ = table.read(position)
    rows: list[dict[str, Any]] = []

    async def one() -> None:
        nonlocal position
        with contextlib.closing(table.opened(position)) as partition:
            read = await partition.read()
            rows.extend([] if read is None else read.batch.to_pylist())
            position = partition.position()

    turns = 0
    while not position.get("end"):
        asyncio.run(one())
        turns += 1
    assert rows == whole
    assert len(rows) == 1100
    assert turns >= 11


def test_the_kit(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over a snapshot and over changes, with few crashes, because each begins with the server."""
    monkeypatch.setattr(follower, "BATCH_ROWS", 2)
    table = make()
    table.insert(1, 2, 3)

    def of_snapshot() -> PostgresqlChanges:
        return table.described(metadata={})

    def source() -> Any:
        return of_snapshot().source(1)

    check_source(tmp_path / "snapshot", source, table.drop_slot, most=1)


# ---- The slot --------------------------------------------------------------------------------------------------------


def test_a_trial_leaves_no_slot(make: Make) -> None:
    table = make()
    table.insert(1)

    async def trial() -> None:
        with contextlib.closing(table.opened()) as partition:
            assert await partition.read() is not None
            assert table.slot in table.slots()

    asyncio.run(trial())
    assert table.slot not in table.slots()
    table.read()
    assert table.slot in table.slots()


def test_what_is_confirmed_may_go(make: Make) -> None:
    table = make()
    table.begin()
    confirmed = "SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots WHERE slot_name = %s"

    async def follow() -> None:
        source = table.described(bounded=False, snapshot=False).source(1)
        partition = source.open(table.partition, None)
        with contextlib.closing(partition):
            ((before,),) = table.sql(confirmed, table.slot)
            table.insert(1)
            at = await read_beyond(partition, before)
            assert table.sql(confirmed, table.slot) == [(before,)]
            source.announce({table.partition: at})  # type: ignore[attr-defined]
            until(lambda: table.sql(confirmed, table.slot)[0][0] >= at["lsn"], "the confirmation")
            # Others fill the log: the position moves without rows.
            other = make()
            other.insert(*range(100))
            moved = await partition.read()
            assert moved is not None
            assert moved.batch.num_rows == 0
            assert partition.position()["lsn"] > at["lsn"]

    asyncio.run(follow())
