"""Redis as a sink: strings, hashes, lists and streams, exactly once, and what it refuses."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import redis as redis_library
from redis_server import Server

from arroyo_udf_plugin.engine.connectors.interface import Json, Stage, TransactionalSink
from arroyo_udf_plugin.engine.connectors.redis import epochs
from arroyo_udf_plugin.engine.connectors.redis.sink import RedisOutput
from arroyo_udf_plugin.engine.execution.checkpoints import RowsStage
from arroyo_udf_plugin.engine.execution.store import open_store
from arroyo_udf_plugin.errors import Fenced, InvalidArgument, WrongCheckpoints
from arroyo_udf_plugin.testing import check_sink

pytestmark = pytest.mark.connectors

SCHEMA = pa.schema([("n", pa.int64()), ("name", pa.string())])


def rows(*numbers: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(numbers, pa.int64()), pa.array([f"row {n}" for n in numbers])], schema=SCHEMA)


class Place:
    """A list, and the sinks of a pipeline that writes to it."""

    def __init__(self, redis: Server, folder: Path) -> None:
        self.redis, self.key, self.pipeline = redis, redis.name(), redis.name()
        self._stage, self._opened = str(folder / "state"), contextlib.ExitStack()

    def model(self, **keys: Any) -> RedisOutput:
        return RedisOutput(**{"address": self.redis.address, "target": "list", "key_prefix": self.key, **keys})

    def sink(self, slice: int = 0, clear: int | None = None, history: str = "h", **keys: Any) -> TransactionalSink:
        stage = RowsStage(open_store(self._stage), history)
        sink: Any = self.model(**keys).sink(SCHEMA, slice, stage, self.pipeline, "out")
        self._opened.callback(sink.close)
        if clear is not None:
            sink.check(clear, 0, [])
            sink.clear(clear)
        return sink  # type: ignore[no-any-return]

    def numbers(self) -> list[int]:
        return [json.loads(item)["n"] for item in self.redis.client.lrange(self.key, 0, -1)]

    def note(self, slice: int = 0) -> str:
        return f"arroyo-udf:{self.pipeline}:out:{slice}"

    def close(self) -> None:
        self._opened.close()


@pytest.fixture
def place(redis: Server, tmp_path: Path) -> Iterator[Place]:
    with contextlib.closing(Place(redis, tmp_path)) as made:
        yield made


def stored(sink: TransactionalSink, epoch: int, *numbers: int) -> Json:
    """Rows of an epoch, durable."""
    sink.write(rows(*numbers))
    sealed = sink.seal(epoch)
    assert sealed is not None
    return sealed.store()


# ---- What rows become ------------------------------------------------------------------------------------------------


def write(model: RedisOutput, *batches: pa.RecordBatch) -> None:
    with contextlib.closing(model.sink(batches[0].schema, 0, None, "pipeline", "out")) as sink:
        for batch in batches:
            sink.write(batch)
        sink.finish()


def test_strings(place: Place) -> None:
    write(place.model(target="string", key_column="n", ttl=1000), rows(1, 2), rows(1))
    client = place.redis.client
    assert json.loads(client.get(f"{place.key}1")) == {"n": 1, "name": "row 1"}
    assert json.loads(client.get(f"{place.key}2")) == {"n": 2, "name": "row 2"}
    assert 990_000 < client.pttl(f"{place.key}2") <= 1_000_000


def test_hashes(place: Place) -> None:
    write(place.model(target="hash", field_column="name", columns=["n"]), rows(1, 2, 1))
    assert place.redis.client.hgetall(place.key) == {"row 1": '{"n":1}', "row 2": '{"n":2}'}


@pytest.mark.parametrize(
    ("keys", "kept"), [({}, [1, 2, 3]), ({"operation": "prepend"}, [3, 2, 1]), ({"max_length": 2}, [2, 3])]
)
def test_lists(place: Place, keys: dict[str, Any], kept: list[int]) -> None:
    write(place.model(**keys), rows(1, 2), rows(3))
    assert place.numbers() == kept


def test_streams(place: Place) -> None:
    write(place.model(target="stream", field="row", key_column="name"), rows(1, 1, 2))
    found = [fields for _, fields in place.redis.client.xrange(f"{place.key}row 1")]
    assert found == [{"row": '{"n":1,"name":"row 1"}'}] * 2


def test_a_stream_that_keeps_few_entries(place: Place) -> None:
    write(place.model(target="stream", max_length=10), rows(*range(5000)))
    assert 10 <= place.redis.client.xlen(place.key) < 500


# ---- Exactly once ----------------------------------------------------------------------------------------------------


def test_rows_are_seen_once_when_their_epoch_is_applied(place: Place) -> None:
    sink = place.sink(clear=1)
    first, second = stored(sink, 2, 1, 2, 3), stored(sink, 3, 4)
    assert place.numbers() == []
    for _ in range(2):
        sink.apply(2, first)
    sink.apply(3, second)
    assert sink.seal(4) is None
    place.sink().apply(3, second)
    assert place.numbers() == [1, 2, 3, 4]


def test_many_rows_go_on_where_the_server_was_killed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epochs, "_ROWS", 3)
    sink = place.sink(clear=1)
    found = stored(sink, 2, *range(10))
    written, write = list[int](), epochs.RedisWriting.rows

    def killed(writing: Any, *arguments: Any) -> Any:
        said = write(writing, *arguments)
        written.append(arguments[-1].num_rows)
        if len(written) == 2:  # the answer is lost, and later ones, too
            place.redis.kill()
            place.redis.start()
            raise redis_library.ConnectionError("lost")
        return said

    monkeypatch.setattr(epochs.RedisWriting, "rows", killed)
    sink.apply(2, found)
    assert (written, place.numbers()) == ([3, 3, 3, 1], list(range(10)))
    assert place.redis.client.hgetall(place.note()) | {"writer": ""} == {
        **{"history": "h", "epoch": "2", "next": "", "rows": "0", "writer": ""}
    }


def test_a_start_with_fewer_slices_applies_the_rows_of_all(place: Place) -> None:
    slices = [place.sink(slice, clear=1) for slice in range(3)]
    found = [stored(sink, 2, at) for at, sink in enumerate(slices)]
    slices[2].apply(2, found[2])
    only = place.sink()
    only.check(3, 2, found)
    for waiting in found:
        only.apply(2, waiting)
    only.clear(3)
    only.apply(4, stored(only, 4, 3))
    assert sorted(place.numbers()) == [0, 1, 2, 3]
    for epoch, rows_of_old in ((2, found[1]), (3, stored(slices[1], 3, 4))):
        with pytest.raises(Fenced, match="another process writes there"):
            slices[1].apply(epoch, rows_of_old)
    assert sorted(place.numbers()) == [0, 1, 2, 3]


def test_an_older_process_stops_between_two_scripts(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epochs, "_ROWS", 2)
    old, new = place.sink(clear=1), place.sink()
    found = stored(old, 2, 1, 2, 3, 4, 5)
    write, is_open, may_go = epochs.RedisWriting.rows, threading.Event(), threading.Event()

    def held(writing: Any, *arguments: Any) -> Any:
        said = write(writing, *arguments)
        if not is_open.is_set():
            is_open.set()
            assert may_go.wait(60)
        return said

    monkeypatch.setattr(epochs.RedisWriting, "rows", held)
    failed: list[BaseException] = []

    def apply() -> None:
        try:
            old.apply(2, found)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=apply)
    thread.start()
    assert is_open.wait(60)
    new.check(3, 2, [found])
    new.apply(2, found)
    may_go.set()
    thread.join(60)
    assert [type(error) for error in failed] == [Fenced]
    assert place.numbers() == [1, 2, 3, 4, 5]


def test_a_server_that_has_lost_the_note(place: Place) -> None:
    sink = place.sink(clear=1)
    found = stored(sink, 2, 1)
    place.redis.client.delete(place.note())
    for use in (lambda: sink.apply(2, found), lambda: place.sink().check(3, 2, [found])):
        with pytest.raises(InvalidArgument, match=rf"{place.note()} is gone, which says whether rows of epoch 2"):
            use()
    assert place.numbers() == []


def test_checkpoints_of_others(place: Place) -> None:
    sink = place.sink(clear=1)
    sink.apply(2, stored(sink, 2, 1))
    with pytest.raises(WrongCheckpoints, match=rf"other checkpoints: .* redis-cli DEL {place.note()}"):
        place.sink(history="other").check(1, 0, [])
    with pytest.raises(WrongCheckpoints, match="rows of epoch 2"):
        place.sink().check(2, 1, [])
    later = place.sink().later_rows(1, {2: None})  # type: ignore[attr-defined]
    assert later.fate == "doubled"
    assert place.sink().later_rows(2, {}).fate == "none"  # type: ignore[attr-defined]
    place.redis.client.delete(place.note())
    place.sink(history="other", clear=1)


class Keys:
    """The keys of a place."""

    name = "redis"

    def __init__(self, place: Place) -> None:
        self._client = redis_library.Redis(port=place.redis.port)
        self._keys = [place.key, place.note(0), place.note(1)]

    def clear(self) -> None:
        self._client.delete(*self._keys)

    def contents(self) -> dict[str, bytes]:
        return {key: self._client.dump(key) for key in self._keys if self._client.exists(key)}

    def delete(self, name: str) -> None:
        self._client.delete(name)

    def put(self, name: str, data: bytes) -> None:
        self._client.restore(name, 0, data, replace=True)


def test_the_kit(place: Place, tmp_path: Path) -> None:
    def made(schema: pa.Schema, slice: int, stage: Stage | None) -> Any:
        return place.model().sink(schema, slice, stage, place.pipeline, "out")

    report = check_sink(tmp_path / "kit", made, place.numbers, most=1, elsewhere=[Keys(place)])
    assert report.faults["two engines"]


# ---- What is refused -------------------------------------------------------------------------------------------------


def test_a_key_of_another_type(place: Place) -> None:
    """Nothing of its epoch is there, and it goes on when the key is gone."""
    sink = place.sink(clear=1, key_column="n")
    found = stored(sink, 2, 1, 2)
    place.redis.client.set(f"{place.key}2", "mine")
    with pytest.raises(InvalidArgument, match=rf"the key '{place.key}2' is a string, and no list: rename it") as error:
        sink.apply(2, found)
    assert error.value.__notes__ == ["epoch 2 is committed: resume when Redis takes its rows"]
    assert not place.redis.client.exists(f"{place.key}1")
    place.redis.client.delete(f"{place.key}2")
    sink.apply(2, found)
    assert place.redis.client.llen(f"{place.key}1") == 1


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"key_prefix": ""}, "rows need a key"),
        ({"target": "hash"}, 'target = "hash" needs field_column'),
        ({"ttl": 3}, "leave out ttl: it is of string targets"),
        ({"target": "string", "max_length": 3}, "leave out max_length: it is of list and stream targets"),
        ({"address": "localhost:6379"}, "write an address such as redis://localhost:6379/0"),
    ],
)
def test_keys_that_do_not_fit(place: Place, keys: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        place.model(**keys)


def test_columns_that_do_not_fit(place: Place) -> None:
    floats = pa.schema([("n", pa.float64())])
    with pytest.raises(InvalidArgument, match="key_column: column 'n' is double, and must be text or"):
        place.model(key_column="n").check(floats)
    with pytest.raises(InvalidArgument, match="there is no column 'm'"):
        place.model(key_column="m").check(floats)
    nothing = pa.record_batch([pa.array([None], pa.int64()), pa.array(["a"])], schema=SCHEMA)
    with pytest.raises(InvalidArgument, match="a row has no 'n': leave such rows out"):
        place.sink(clear=1, key_column="n").write(nothing)
