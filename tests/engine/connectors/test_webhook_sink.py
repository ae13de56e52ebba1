"""Rows that are sent to an address: requests and their keys, what is sent again, and what is refused."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import itertools
import json
import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from http_server import Answer, Request, serving

from arroyo_udf_plugin.engine.connectors.http import endpoint, webhook_sink
from arroyo_udf_plugin.engine.connectors.http.webhook_sink import WebhookOutput
from arroyo_udf_plugin.engine.connectors.interface import Json, Stage, TransactionalSink
from arroyo_udf_plugin.engine.execution.checkpoints import RowsStage
from arroyo_udf_plugin.engine.execution.store import open_store
from arroyo_udf_plugin.errors import InvalidArgument, Unreachable
from arroyo_udf_plugin.testing import check_sink

SCHEMA = pa.schema([("n", pa.int64())])


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "_FIRST_WAIT", 0.001)


def rows(*numbers: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(numbers, pa.int64())], schema=SCHEMA)


class Receiver:
    """Takes each key once. refuse: what to answer instead; None: it takes the request."""

    def __init__(self, refuse: Callable[[Request], Answer | None] = lambda request: None) -> None:
        self.refuse, self._lock = refuse, threading.Lock()
        self.taken: dict[str, Any] = {}

    def answer(self, request: Request) -> Answer:
        if (refusal := self.refuse(request)) is not None:
            return refusal
        with self._lock:
            self.taken.setdefault(request.headers["idempotency-key"], json.loads(request.body))
        return Answer(202)

    def numbers(self) -> list[int]:
        found = [each for taken in self.taken.values() for each in (taken if isinstance(taken, list) else [taken])]
        return sorted(row["n"] for row in found)


def write(url: str, *batches: pa.RecordBatch, **keys: Any) -> None:
    """Without checkpoints."""
    with contextlib.closing(WebhookOutput(endpoint=url, **keys).sink(SCHEMA, 0, None, "p", "out")) as sink:
        for batch in batches:
            sink.write(batch)
        sink.finish()


def test_each_row_is_a_request() -> None:
    receiver = Receiver()
    with serving(receiver.answer) as server:
        write(server.url, rows(1, 2), rows(3), headers={"Authorization": "Bearer s3cret"}, concurrency=1)
        assert [request.body for request in server.requests] == [b'{"n":1}', b'{"n":2}', b'{"n":3}']
        assert {request.headers["authorization"] for request in server.requests} == {"Bearer s3cret"}
        assert {request.headers["content-type"] for request in server.requests} == {"application/json"}
        assert len({request.headers["idempotency-key"] for request in server.requests}) == 3


def test_several_rows_are_an_array_with_a_signature() -> None:
    receiver = Receiver()
    with serving(receiver.answer) as server:
        write(server.url, rows(*range(10)), rows=4, secret="s3cret")
        assert sorted(len(json.loads(request.body)) for request in server.requests) == [2, 4, 4]
        for request in server.requests:
            digest = hmac.new(b"s3cret", request.body, hashlib.sha256).hexdigest()
            assert request.headers["x-signature-256"] == f"sha256={digest}"
    assert receiver.numbers() == list(range(10))
    assert "s3cret" not in repr(WebhookOutput(endpoint="http://a", secret="s3cret"))


@pytest.mark.parametrize("trouble", [Answer(503), Answer(408), Answer(429, headers={"Retry-After": "0"}), Answer(None)])
def test_requests_that_fail_for_a_while_are_sent_again_with_their_keys(trouble: Answer) -> None:
    failed = set[str]()

    def refuse(request: Request) -> Answer | None:
        key = request.headers["idempotency-key"]
        if key in failed:
            return None
        failed.add(key)
        return trouble

    receiver = Receiver(refuse)
    with serving(receiver.answer) as server:
        write(server.url, rows(*range(20)))
        assert len(server.requests) == 40
    assert receiver.numbers() == list(range(20))
    assert len(receiver.taken) == 20


def test_a_request_that_is_refused() -> None:
    receiver = Receiver(lambda request: Answer(422, b"no n") if request.body == b'{"n":2}' else None)
    with serving(receiver.answer) as server, pytest.raises(InvalidArgument, match=r"/rows answers 422 \(no n\)"):
        write(server.url, rows(1, 2, 3))


def test_a_request_that_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    receiver = Receiver(lambda request: Answer(422) if request.body == b'{"n":2}' else None)
    with serving(receiver.answer) as server, caplog.at_level(logging.WARNING):
        write(server.url, rows(1, 2, 3), refused="drop")
    assert receiver.numbers() == [1, 3]
    assert "with 422: it is dropped" in caplog.text


def test_no_receiver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_sink, "PATIENCE", 0.05)
    with pytest.raises(Unreachable, match=r"http://127.0.0.1:1/a does not answer") as error:
        write("http://me:secret@127.0.0.1:1/a?key=hidden", rows(1, 2, 3))
    assert "secret" not in str(error.value)
    assert "hidden" not in str(error.value)


def test_a_receiver_that_wants_to_be_left_alone_for_too_long() -> None:
    receiver = Receiver(lambda request: Answer(429, headers={"Retry-After": "100000"}))
    with serving(receiver.answer) as server, pytest.raises(Unreachable, match="does not answer: 429"):
        write(server.url, rows(1))


# ---- With checkpoints ------------------------------------------------------------------------------------------------


class Place:
    """The sinks of a pipeline."""

    def __init__(self, folder: Path, url: str) -> None:
        self._stage, self._url, self._opened = str(folder / "state"), url, contextlib.ExitStack()

    def sink(self, slice: int = 0, history: str = "h", **keys: Any) -> TransactionalSink:
        stage = RowsStage(open_store(self._stage), history)
        sink: Any = WebhookOutput(endpoint=self._url, **keys).sink(SCHEMA, slice, stage, "p", "out")
        self._opened.callback(sink.close)
        return sink  # type: ignore[no-any-return]

    def close(self) -> None:
        self._opened.close()


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@pytest.fixture
def place(receiver: Receiver, tmp_path: Path) -> Iterator[Place]:
    with serving(receiver.answer) as server, contextlib.closing(Place(tmp_path, server.url)) as made:
        yield made


def stored(sink: TransactionalSink, epoch: int, *numbers: int) -> Json:
    sink.write(rows(*numbers))
    sealed = sink.seal(epoch)
    assert sealed is not None
    return sealed.store()


def test_a_resumed_engine_sends_the_same_keys(place: Place, receiver: Receiver) -> None:
    first = place.sink()
    found = stored(first, 2, 1, 2, 3)
    assert receiver.taken == {}
    receiver.refuse = lambda request: Answer(400) if request.body == b'{"n":3}' else None
    with pytest.raises(InvalidArgument, match="answers 400") as error:
        first.apply(2, found)
    assert error.value.__notes__ == ["epoch 2 is committed: resume when the receiver takes its rows"]
    receiver.refuse = lambda request: None
    other = place.sink(slice=1)
    other.check(3, 2, [found])
    other.apply(2, found)
    assert (receiver.numbers(), len(receiver.taken)) == ([1, 2, 3], 3)


def test_what_was_sent_is_not_missed(place: Place, receiver: Receiver, tmp_path: Path) -> None:
    """The process was killed after its rows were sent and removed, before anybody knew."""
    sink = place.sink()
    found = stored(sink, 2, 1, 2)
    sink.apply(2, found)
    sent = receiver.taken.copy()
    receiver.taken.clear()
    other = place.sink()
    other.check(3, 2, [found])
    other.apply(2, found)
    assert receiver.taken == {}
    (noted,) = (tmp_path / "state").rglob("sent-000")
    noted.write_bytes(noted.read_bytes().replace(b"/2", b"/9"))
    with pytest.raises(InvalidArgument, match=r"webhook-out/sent-000 in the checkpoints' store is damaged"):
        place.sink().check(3, 2, [found])
    noted.unlink()
    with pytest.raises(InvalidArgument, match="are gone: put rows/"):
        place.sink().check(3, 2, [found])
    assert len(sent) == 2


def test_keys_differ_by_slice_epoch_and_history(place: Place, receiver: Receiver) -> None:
    for slice, epoch, history in itertools.product(range(2), range(2, 4), "ab"):
        sink = place.sink(slice=slice, history=history)
        sink.apply(epoch, stored(sink, epoch, 1))
    assert len(receiver.taken) == 8


class Taken:
    """What the receiver has taken."""

    name = "receiver"

    def __init__(self, receiver: Receiver) -> None:
        self._taken = receiver.taken

    def clear(self) -> None:
        self._taken.clear()

    def contents(self) -> dict[str, bytes]:
        return {key: json.dumps(rows).encode() for key, rows in self._taken.items()}

    def put(self, name: str, data: bytes) -> None:
        self._taken[name] = json.loads(data)

    def delete(self, name: str) -> None:
        del self._taken[name]


def test_the_kit(tmp_path: Path) -> None:
    receiver = Receiver()
    with serving(receiver.answer) as server:
        model = WebhookOutput(endpoint=server.url, rows=2)

        def made(schema: pa.Schema, slice: int, stage: Stage | None) -> Any:
            return model.sink(schema, slice, stage, "p", "out")

        check_sink(tmp_path / "kit", made, receiver.numbers, most=0, elsewhere=[Taken(receiver)])
