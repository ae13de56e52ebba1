"""Streams of Redis as a source: positions, what is refused, servers that are killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from redis_server import Server
from waiting import until

from arroyo_udf_plugin.engine.connectors.interface import Json, Partition
from arroyo_udf_plugin.engine.connectors.redis import source as redis_source
from arroyo_udf_plugin.engine.connectors.redis.source import RedisInput
from arroyo_udf_plugin.engine.connectors.source import Rows
from arroyo_udf_plugin.errors import InvalidArgument, Unreachable
from arroyo_udf_plugin.testing import check_source

pytestmark = pytest.mark.connectors


def described(redis: Server, *streams: str, **keys: Any) -> RedisInput:
    """All entries that there are, with a number."""
    usual = {"address": redis.address, "offset": "earliest", "bounded": True, "types": {"n": "int"}}
    return RedisInput(streams=streams, **{**usual, **keys})


def add(redis: Server, stream: str, *numbers: int) -> list[str]:
    return [redis.client.xadd(stream, {"value": json.dumps({"n": n})}) for n in numbers]


async def rest_of(partition: Partition) -> list[Rows]:
    rows = []
    while (read := await partition.read()) is not None:
        rows.append(read)
    return rows


def read(model: RedisInput, position: Json | None = None) -> list[Rows]:
    found = []
    with contextlib.closing(model.source(1)) as source:
        for name in source.partitions():
            with contextlib.closing(source.open(name, position)) as partition:
                found += asyncio.run(rest_of(partition))
    return found


def values(model: RedisInput) -> list[dict[str, Any]]:
    return [row for rows in read(model) for row in rows.batch.to_pylist()]


def numbers(model: RedisInput) -> list[int]:
    return [row["n"] for row in values(model)]


def test_entries_with_what_is_known_about_them(redis: Server) -> None:
    stream = redis.name()
    (id_,) = add(redis, stream, 1)
    metadata = {"id": "id", "from": "stream", "at": "timestamp"}
    model = described(redis, stream, metadata=metadata, types={"n": "int", "at": "int64"})
    assert values(model) == [{"n": 1, "id": id_, "from": stream, "at": int(id_.partition("-")[0])}]


def test_several_streams_and_one_that_is_empty(redis: Server) -> None:
    first, second, third = redis.name(), redis.name(), redis.name()
    add(redis, first, 1, 2)
    add(redis, third, 3)
    assert numbers(described(redis, first, second, third)) == [1, 2, 3]


def test_where_it_begins(redis: Server) -> None:
    stream = redis.name()
    ids = add(redis, stream, 1, 2, 3)
    assert numbers(described(redis, stream, offset=ids[0])) == [2, 3]
    assert numbers(described(redis, stream, offset="latest")) == []
    redis.client.xtrim(stream, maxlen=1, approximate=False)
    assert numbers(described(redis, stream, offset=ids[0])) == [3]
    assert numbers(described(redis, stream)) == [3]


def test_a_reader_waits_and_may_be_cancelled(redis: Server) -> None:
    stream = redis.name()
    model = described(redis, stream, offset="latest", bounded=False)

    async def work() -> list[int]:
        source = model.source(1)
        with contextlib.closing(source), contextlib.closing(source.open(stream, None)) as partition:
            found = []
            for n in range(20):
                reading = asyncio.ensure_future(partition.read())
                await asyncio.sleep(0)
                add(redis, stream, n)
                if n % 2:
                    reading.cancel()
                    await asyncio.wait([reading])
                    reading = asyncio.ensure_future(partition.read())
                rows = await asyncio.wait_for(reading, 60)
                assert rows is not None
                found += rows.batch.column("n").to_pylist()
            return found

    assert asyncio.run(work()) == list(range(20))


def test_the_kit(redis: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_source, "BATCH_ROWS", 1)  # a position behind each entry
    first, second = redis.name(), redis.name()
    add(redis, first, 1, 2, 3)
    add(redis, second, 4)
    check_source(tmp_path / "kit", lambda: described(redis, first, second).source(1), most=0)


# ---- Entries that are gone -------------------------------------------------------------------------------------------


def position_behind(redis: Server, stream: str, *n: int) -> Json:
    """That of a reader who has read these."""
    add(redis, stream, *n)
    source = described(redis, stream).source(1)
    with contextlib.closing(source), contextlib.closing(source.open(stream, None)) as partition:
        assert sum(rows.batch.num_rows for rows in asyncio.run(rest_of(partition))) == len(n)
        return {name: value for name, value in partition.position().items() if name in ("id", "count")}


def refused(redis: Server, stream: str, at: Json) -> str:
    model = described(redis, stream, bounded=False)
    with contextlib.closing(model.source(1)) as source, pytest.raises(InvalidArgument) as at_start:
        source.check({stream: at})
    source = model.source(1)
    with (
        contextlib.closing(source),
        contextlib.closing(source.open(stream, at)) as partition,
        pytest.raises(InvalidArgument) as at_read,
    ):
        asyncio.run(partition.read())  # type: ignore[arg-type]
    assert str(at_start.value) == str(at_read.value)
    return str(at_read.value)


def test_entries_that_were_removed_before_they_were_read(redis: Server) -> None:
    stream = redis.name()
    at = position_behind(redis, stream, 1, 2)
    add(redis, stream, 3, 4, 5)
    redis.client.xtrim(stream, maxlen=1, approximate=False)
    assert "2 entries were removed before they were read" in refused(redis, stream, at)
    redis.client.xtrim(stream, maxlen=0, approximate=False)
    assert "the stream is empty now: 3 entries were removed" in refused(redis, stream, at)


def test_entries_that_were_removed_after_they_were_read(redis: Server) -> None:
    stream = redis.name()
    at = position_behind(redis, stream, 1, 2)
    redis.client.xtrim(stream, maxlen=0, approximate=False)
    add(redis, stream, 3)
    assert [rows.batch.to_pylist() for rows in read(described(redis, stream), at | {"until": "9" * 13})] == [[{"n": 3}]]


def test_entries_that_somebody_has_deleted(redis: Server) -> None:
    """They are counted, so that they are not missed later."""
    stream = redis.name()
    ids = add(redis, stream, 1, 2, 3)
    redis.client.xdel(stream, ids[1])
    model = described(redis, stream, bounded=False)
    source = model.source(1)
    with contextlib.closing(source), contextlib.closing(source.open(stream, None)) as partition:
        source.partitions()
        rows = asyncio.run(partition.read())  # type: ignore[arg-type]
        assert rows is not None
        assert rows.batch.to_pylist() == [{"n": 1}, {"n": 3}]
        redis.client.xtrim(stream, maxlen=0, approximate=False)
        add(redis, stream, 4)
        rows = asyncio.run(partition.read())  # type: ignore[arg-type]
        assert rows is not None
        assert rows.batch.to_pylist() == [{"n": 4}]


def test_a_stream_that_is_gone_or_new(redis: Server) -> None:
    stream = redis.name()
    at = position_behind(redis, stream, 1, 2)
    redis.client.delete(stream)
    assert "the stream is gone" in refused(redis, stream, at)
    add(redis, stream, 3)
    assert "the stream was made anew, or has lost entries" in refused(redis, stream, at)


def test_what_is_no_stream(redis: Server) -> None:
    name = redis.name()
    redis.client.set(name, "a")
    with pytest.raises(InvalidArgument, match=f"the key '{name}' is no stream: name one"):
        read(described(redis, name))
    with pytest.raises(InvalidArgument, match="the checkpoints have the stream 'other'"):
        described(redis, name).source(1).check({"other": {"id": "1-0", "count": 1}})


def test_entries_that_cannot_be_read(redis: Server) -> None:
    stream = redis.name()
    redis.client.xadd(stream, {"value": "?"})
    redis.client.xadd(stream, {"other": "{}"})
    redis.client.xadd(stream, {"value": '{"n": 1}'})
    (rows,) = read(described(redis, stream))
    assert sorted(rows.refused) == [0, 1]
    assert "the entry is not JSON" in rows.refused[0]
    assert "has no field 'value'" in rows.refused[1]


# ---- Servers ---------------------------------------------------------------------------------------------------------


def test_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_source, "_PATIENCE", 0.1)
    model = RedisInput(address="redis://me:secret@127.0.0.1:1/0", streams=["a"], types={"n": "int"})
    with pytest.raises(Unreachable, match=r"Redis at 127.0.0.1:1/0 does not answer: start it") as error:
        read(model)
    assert "secret" not in str(error.value) + repr(model)


def test_passwords_and_permissions(redis: Server) -> None:
    stream = redis.name()
    add(redis, stream, 1)
    redis.client.acl_setuser("reader", enabled=True, passwords=["+pass word"], keys=[stream], commands=["+@all"])
    redis.client.acl_setuser("other", enabled=True, passwords=["+pass"], keys=["no"], commands=["+@all"])
    assert numbers(described(redis, stream, username="reader", password="pass word")) == [1]
    with pytest.raises(InvalidArgument, match="refuses us: check username and password") as error:
        read(described(redis, stream, username="reader", password="wrong"))
    assert "wrong" not in str(error.value)
    with pytest.raises(InvalidArgument, match="the user may not do this"):
        read(described(redis, stream, username="other", password="pass"))


def test_a_server_that_is_killed_while_it_is_read(redis: Server) -> None:
    stream = redis.name()
    model = described(redis, stream, bounded=False)

    async def work() -> list[int]:
        found: list[int] = []
        source = model.source(1)
        with contextlib.closing(source), contextlib.closing(source.open(stream, None)) as partition:
            for n in range(3):
                add(redis, stream, n)
                reading = asyncio.ensure_future(partition.read())
                if n == 1:
                    redis.kill()
                    await asyncio.sleep(0)
                    redis.start()
                rows = await asyncio.wait_for(reading, 60)
                assert rows is not None
                found += rows.batch.column("n").to_pylist()
        return found

    assert asyncio.run(work()) == [0, 1, 2]
    until(lambda: redis.client.xlen(stream) == 3, "the stream")
