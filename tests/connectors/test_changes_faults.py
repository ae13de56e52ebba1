"""What stands in the way of changes: servers, rights, slots and tables. Each is named, or waited for."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from published import FollowedTable, maker, read_beyond
from waiting import until

import postgresql as postgresql_server
from arroyo_udf_plugin.engine.connectors.changes import follower, server_snapshot
from arroyo_udf_plugin.engine.connectors.changes.postgresql_cdc import PostgresqlChanges
from arroyo_udf_plugin.engine.connectors.interface import Json
from arroyo_udf_plugin.errors import InvalidArgument, Unreachable

pytestmark = pytest.mark.connectors

Make = Callable[..., FollowedTable]


@pytest.fixture
def make(postgresql: str) -> Iterator[Make]:
    with maker(postgresql) as make:
        yield make


def refused(published: FollowedTable, position: Json | None = None, **keys: object) -> str:
    with pytest.raises(InvalidArgument) as error:
        published.read(position, **keys)
    return str(error.value)


# ---- The server ------------------------------------------------------------------------------------------------------


def test_no_server_and_no_database(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make()
    monkeypatch.setattr(follower, "PATIENCE", 0.0)
    nowhere = "postgresql://me:secret@127.0.0.1:1/shop"
    with pytest.raises(
        Unreachable, match=r"PostgreSQL at 127\.0\.0\.1, database shop does not answer: start it"
    ) as error:
        table.read(uri=nowhere)
    assert "secret" not in str(error.value)
    with pytest.raises(Unreachable):  # asks for the columns
        table.described(uri=nowhere).source(1)
    assert "secret" not in repr(table.described(uri=nowhere))
    with pytest.raises(InvalidArgument, match='database "nowhere" does not exist'):
        table.described(uri=table.address.replace("/postgres?", "/nowhere?")).source(1)
    for uri, text in (("sqlite:a.db", "changes are read from PostgreSQL"), ("mysql://a/b", "begins with postgresql")):
        with pytest.raises(InvalidArgument, match=text):
            table.described(uri=uri).source(1)


def test_a_server_whose_log_has_no_rows(make: Make) -> None:
    with postgresql_server.server() as address, psycopg.connect(address, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET wal_level = 'replica'")
        connection.execute("CREATE TABLE a (id bigint PRIMARY KEY)")
        options = postgresql_server.OPTIONS.replace("-c wal_level=logical", "")
        folder = postgresql_server.folder_of(address)
        assert not postgresql_server.control(address, "-m", "immediate", "-o", f"-k '{folder}' {options}", "restart")
        partition = PostgresqlChanges(uri=address, table="a", types={"id": "int64"}).source(1).open("public.a", None)
        with contextlib.closing(partition), pytest.raises(InvalidArgument, match="wal_level is replica, so its log"):
            asyncio.run(partition.read())


def test_a_server_that_is_killed(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The reader waits, says so once, and goes on behind the last change."""
    with postgresql_server.server() as address, maker(address) as make:
        table = make()
        position = table.begin()
        found: list[int] = []

        async def follow() -> None:
            with contextlib.closing(table.opened(position, bounded=False)) as partition:
                while len(found) < 4:
                    rows = await partition.read()
                    assert rows is not None
                    found.extend(rows.batch.column("id").to_pylist())

        reader = threading.Thread(target=lambda: asyncio.run(follow()))
        reader.start()
        table.insert(1, 2)
        until(lambda: len(found) == 2, "the first changes")
        postgresql_server.kill(address)
        until(lambda: "waits for it" in caplog.text, "the warning")
        postgresql_server.start(address)
        table.connect_again()
        table.insert(3, 4)
        reader.join(60)
        assert found == [1, 2, 3, 4]
        assert caplog.text.count("waits for it") == 1


def test_a_snapshot_waits_for_commits_that_are_only_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The commit of `late` waits for a standby that does not exist: it is in the log, and so in a slot's snapshot, but
    the transaction is open. Nothing may be read before its end, because only then are its rows there for certain.

    The server ends a slot's snapshot in two steps: when those have ended that were open at the beginning (`first`), and
    those that were open at the first step (`second`). It has what was committed since the first step.
    """
    monkeypatch.setattr(server_snapshot, "PATIENCE", 0.0)
    with postgresql_server.server() as address, maker(address) as make:
        table = make()
        table.insert(1)
        table.sql(f"CREATE PUBLICATION {table.slot} FOR TABLE {{t}}")
        table.sql("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", table.slot)
        table.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        table.sql("ALTER SYSTEM SET synchronous_commit = 'local'")
        table.sql("SELECT pg_reload_conf()")
        read: list[tuple[list[dict[str, Any]], Json]] = []

        def is_waited_for(transaction: str) -> bool:
            waits = "SELECT 1 FROM pg_locks WHERE NOT granted AND transactionid = %s::xid"
            return bool(table.sql(waits, transaction))

        def begun(connection: psycopg.Connection[Any]) -> str:
            ((transaction,),) = connection.execute("SELECT pg_current_xact_id()::text").fetchall()
            return str(transaction)

        with contextlib.ExitStack() as stack:
            first, second, late = (stack.enter_context(psycopg.connect(address)) for _ in range(3))
            opened = begun(first)
            reader = threading.Thread(target=lambda: read.append(table.read()))
            reader.start()
            until(lambda: is_waited_for(opened), "the slot to begin")
            opened = begun(second)
            first.commit()
            until(lambda: is_waited_for(opened), "the first step")
            late.execute("SET synchronous_commit = 'on'")
            late.execute(f"UPDATE {table.name} SET name = 'changed'")
            opened = begun(late)
            commit = threading.Thread(target=late.commit)
            commit.start()
            until(lambda: bool(table.sql("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'")), "the commit")
            second.commit()
            until(lambda: bool(read) or "waiting for transactions that commit" in caplog.text, "the snapshot")
            has_waited = not read
            table.sql("ALTER SYSTEM RESET synchronous_standby_names")
            table.sql("SELECT pg_reload_conf()")
            commit.join(60)
            reader.join(60)
        assert has_waited, "rows were read while a transaction of the snapshot was open"
        assert f"waiting for transactions that commit: {opened}\n" in caplog.text
        ((rows, _),) = read
        assert rows == [{"id": 1, "name": "changed", "op": "r"}]


# ---- Rights ----------------------------------------------------------------------------------------------------------


def as_user(table: FollowedTable, name: str) -> str:
    """The address of a user who has been made."""
    host = urllib.parse.urlsplit(table.address).query
    return f"postgresql://{name}@/postgres?{host}"


def test_rights(make: Make) -> None:
    table = make()
    user = f"u_{table.name}"
    table.sql(f"CREATE ROLE {user} LOGIN")
    try:
        uri = as_user(table, user)
        keys = {"uri": uri, "types": {"id": "int64"}, "metadata": {}}
        assert "may not read changes: let an administrator run ALTER ROLE ... REPLICATION" in refused(table, **keys)
        table.sql(f"ALTER ROLE {user} REPLICATION")
        assert f'{user} may not read it: GRANT SELECT ON "public"."{table.name}"' in refused(table, **keys)
        table.sql(f"GRANT SELECT ON {{t}} TO {user}")
        assert f"the user may not make the publication {table.slot}: let the table's owner" in refused(table, **keys)
        table.sql(f"CREATE PUBLICATION {table.slot} FOR TABLE {{t}}")
        table.insert(1)
        assert table.read(**keys)[0] == [{"id": 1}]
    finally:
        table.sql(f"DROP OWNED BY {user}")
        table.sql(f"DROP ROLE {user}")


# ---- The table and its publication -----------------------------------------------------------------------------------


def test_tables_that_cannot_be_followed(make: Make) -> None:
    table, keyless = make(), make("id bigint, name text")
    types = {"types": {"id": "int64"}, "metadata": {}}
    assert "has no table public.nobody: create it" in refused(table, table="nobody", **types)
    assert "has no table other.nobody" in refused(table, table="other.nobody", **types)
    assert "is no table, but a view" in refused(table, table="pg_catalog.pg_tables", **types)
    assert "has no primary key, or REPLICA IDENTITY NOTHING" in refused(keyless)
    assert keyless.sql("SELECT 1 FROM pg_publication WHERE pubname = %s", keyless.slot) == []
    keyless.sql("ALTER TABLE {t} REPLICA IDENTITY FULL")
    keyless.insert(7)
    assert keyless.read()[0] == [{"id": 7, "name": "name 7", "op": "r"}]
    table.sql("ALTER TABLE {t} REPLICA IDENTITY NOTHING")
    assert "REPLICA IDENTITY NOTHING" in refused(table)


def test_publications_that_leave_something_out(make: Make) -> None:
    table, other = make(), make()
    name = f"p_{table.name}"
    table.sql(f"CREATE PUBLICATION {name} FOR TABLE {other.name} WITH (publish = 'insert')")
    try:
        assert "leaves out operations: ALTER PUBLICATION" in refused(table, publication=name)
        table.sql(f"ALTER PUBLICATION {name} SET (publish = 'insert, update, delete, truncate')")
        assert f"is not in the publication {name}: ALTER PUBLICATION" in refused(table, publication=name)
        table.sql(f"ALTER PUBLICATION {name} ADD TABLE {{t}}")
        position = table.begin(publication=name)
        table.insert(1)
    finally:
        table.sql(f"DROP PUBLICATION {name}")
    table.insert(2)
    assert "the publication" in refused(table, position, publication=name)


def test_a_table_that_is_changed(make: Make) -> None:
    table = make()
    position = table.begin()
    table.insert(1)
    table.sql("ALTER TABLE {t} ADD later text DEFAULT 'x'")
    table.insert(2)
    named = {"types": {"id": "int64", "name": "str"}}
    rows, _ = table.read(position, **named)
    assert [row["id"] for row in rows] == [1, 2]  # nobody asked for the new column
    table.sql("ALTER TABLE {t} ALTER id TYPE integer")
    table.insert(3)
    rows, position = table.read(position, **named)  # an integer is a bigint
    assert [row["id"] for row in rows] == [1, 2, 3]
    position = {name: value for name, value in position.items() if name not in ("end", "until")}
    table.insert(4)
    table.sql("ALTER TABLE {t} ALTER name TYPE bytea USING name::bytea")
    assert "column 'name' is bytea there, which is not read as string: write binary" in refused(
        table, position, **named
    )
    table.sql("ALTER TABLE {t} DROP name")
    assert "has no column 'name'" in refused(table, position, **named)
    table.sql(f"ALTER TABLE {{t}} RENAME TO {table.name}_other")
    try:
        assert f"has no table public.{table.name}" in refused(table, position, **named)
    finally:
        table.sql(f"ALTER TABLE {table.name}_other RENAME TO {table.name}")


def test_a_change_while_it_is_followed(make: Make) -> None:
    """The log says how the table was changed."""
    table = make()
    position = table.begin()

    async def follow() -> None:
        with contextlib.closing(table.opened(position, bounded=False)) as partition:
            table.insert(1)
            assert await partition.read() is not None
            table.sql("ALTER TABLE {t} RENAME name TO other")
            table.sql("INSERT INTO {t} VALUES (2, 'x')")
            while True:  # the position may move first
                await partition.read()

    with pytest.raises(InvalidArgument, match="has no column 'name': there are id, other"):
        asyncio.run(follow())


def test_a_table_that_was_made_anew(make: Make) -> None:
    table = make()
    position = table.begin()
    table.sql("DROP TABLE {t}")
    table.sql(f"CREATE TABLE {{t}} ({table.columns})")
    with pytest.raises(InvalidArgument, match="was made anew since the checkpoint"):
        table.described().source(1).check({table.partition: position})
    assert "was made anew since the checkpoint" in refused(table, position)


# ---- The slot --------------------------------------------------------------------------------------------------------


def test_a_slot_that_is_gone(make: Make) -> None:
    table = make()
    position = table.begin()
    until(
        lambda: not table.sql("SELECT active FROM pg_replication_slots WHERE slot_name = %s", table.slot)[0][0],
        "the end",
    )
    table.sql("SELECT pg_drop_replication_slot(%s)", table.slot)
    with pytest.raises(InvalidArgument, match=f"the slot {table.slot} is gone: it was dropped"):
        table.described().source(1).check({table.partition: position})
    assert "is gone" in refused(table, position)
    with pytest.raises(InvalidArgument, match=r"the checkpoints are of public\.other, not of"):
        table.described().source(1).check({"public.other": position})


def test_a_slot_that_another_pipeline_reads_from(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "SLOT_PATIENCE", 0.5)
    table = make()
    position = table.begin()

    async def both() -> None:
        source = table.described(bounded=False).source(1)
        with contextlib.closing(source.open(table.partition, position)) as partition:
            table.insert(1)
            at = await read_beyond(partition, position["lsn"])
            with (
                contextlib.closing(table.opened(position)) as second,
                pytest.raises(InvalidArgument, match=f"another process reads from the slot {table.slot}: stop it"),
            ):
                await second.read()
            source.announce({table.partition: at})  # type: ignore[attr-defined]
            confirmed = "SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots WHERE slot_name = %s"
            until(lambda: table.sql(confirmed, table.slot)[0][0] > position["lsn"], "the confirmation")

    asyncio.run(both())
    # What has been let go of is not there for an older checkpoint.
    assert "Changes between them are gone" in refused(table, position)
    assert "is another database cluster" in refused(table, {**position, "system": "1"})


def test_slots_of_another_kind(make: Make) -> None:
    table = make()
    table.sql("SELECT pg_create_logical_replication_slot(%s, 'test_decoding')", table.slot)
    assert f"the slot {table.slot} is of the plugin test_decoding" in refused(table)


def test_a_slot_that_the_server_has_given_up() -> None:
    with postgresql_server.server() as address, maker(address) as make:
        table = make()
        position = table.begin()
        table.sql("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
        table.sql("SELECT pg_reload_conf()")
        lost = "SELECT wal_status = 'lost' FROM pg_replication_slots WHERE slot_name = %s"

        def fill() -> bool:
            table.insert(1)
            table.sql("DELETE FROM {t}")
            table.sql("SELECT pg_switch_wal()")
            table.sql("CHECKPOINT")
            return bool(table.sql(lost, table.slot)[0][0])

        until(fill, "the end of the slot")
        assert "the server has removed the part of its log that the slot" in refused(table, position)


def test_a_snapshot_that_cannot_go_on(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "BATCH_ROWS", 2)
    table = make("id bigint, name text, at date PRIMARY KEY")
    for day in range(1, 6):
        table.sql("INSERT INTO {t} VALUES (1, 'a', make_date(2026, 1, %s::int))", day)

    async def one() -> Json:
        with contextlib.closing(table.opened()) as partition:
            assert await partition.read() is not None
            return partition.position()

    assert "the snapshot did not end before the reader did" in refused(table, asyncio.run(one()))


def test_the_log_that_is_kept(make: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(follower, "RETAINED", 1000)
    table = make()
    position = table.begin()

    async def follow() -> None:
        with contextlib.closing(table.opened(position, bounded=False)) as partition:
            table.insert(1)
            assert await partition.read() is not None
            for n in range(2, 200):  # the engine does not take them
                table.insert(n)
            until(lambda: f"GiB of its log for the slot {table.slot}" in caplog.text, "the warning")
            ((retained, unit),) = [(value, unit) for name, value, unit in partition.gauges() if name == "retained"]
            assert retained > 1000
            assert unit == "bytes"

    asyncio.run(follow())
