"""Server-sent events: their syntax, and what is read again when connections end."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from http_server import Answer, Request, serving

from arroyo_udf_plugin.engine.connectors.http import endpoint, events
from arroyo_udf_plugin.engine.connectors.http.event_stream import EventStream
from arroyo_udf_plugin.engine.connectors.http.events import EventsInput
from arroyo_udf_plugin.engine.connectors.interface import Json
from arroyo_udf_plugin.errors import InvalidArgument, Unreachable
from arroyo_udf_plugin.testing import check_source

KIND = {"Content-Type": "text/event-stream; charset=utf-8"}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "_FIRST_WAIT", 0.001)


# ---- Syntax ----------------------------------------------------------------------------------------------------------


STREAM = (
    b"\xef\xbb\xbf: hello\n\ndata: a\n\nid: 1\r\ndata:b\r\ndata:  c\r\n\r\nevent: x\rdata\rid\r\r"
    b"retry: 250\nretry: soon\nid: a\0b\nother: y\ndata: d\n\nevent: none\n\ndata: cut"
)
EVENTS = [("", "message", b"a"), ("1", "message", b"b\n c"), ("", "x", b""), ("", "message", b"d")]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_the_syntax(size: int) -> None:
    stream = EventStream("")
    found = [event for at in range(0, len(STREAM), size) for event in stream.feed(STREAM[at : at + size])]
    assert [(event.id, event.name, event.data) for event in found] == EVENTS
    assert stream.retry == 0.25


# ---- Reading ---------------------------------------------------------------------------------------------------------


def described(url: str, **keys: Any) -> EventsInput:
    return EventsInput(**{"endpoint": url, "types": {"n": "int"}, **keys})


def numbered(first: int, last: int) -> bytes:
    return b"".join(b'id: %d\ndata: {"n": %d}\n\n' % (n, n) for n in range(first, last + 1))


def feed(request: Request, last: int, most: int) -> Answer:
    """Events from 1 to `last`, of which a connection has no more than `most`; then there are none."""
    first = int(request.headers.get("last-event-id", "0")) + 1
    if first > last:
        return Answer(204)
    return Answer(200, [numbered(first, min(last, first + most - 1)), b'id: 1000\ndata: {"n": 10'], KIND)


async def rest_of(partition: Any) -> list[Any]:
    found = []
    while (rows := await partition.read()) is not None:
        found.append(rows)
    return found


def read(model: EventsInput, position: Json | None = None) -> tuple[list[dict[str, Any]], Json]:
    source = model.source(1)
    (name,) = source.partitions()
    with contextlib.closing(source), contextlib.closing(source.open(name, position)) as partition:
        found = asyncio.run(rest_of(partition))
        return [row for rows in found for row in rows.batch.to_pylist()], partition.position()


def test_connections_that_end_are_made_again() -> None:
    with serving(lambda request: feed(request, 10, 3)) as server:
        model = described(server.url, metadata={"id": "id", "name": "event"})
        found, position = read(model)
        assert found == [{"n": n, "id": str(n), "name": "message"} for n in range(1, 11)]
        assert position == {"id": "10", "row": 10, "end": True}
        assert [request.headers.get("last-event-id") for request in server.requests] == [None, "3", "6", "9", "10"]
        assert server.requests[0].headers["accept"] == "text/event-stream"
        assert read(model, {"id": "8", "row": 8})[0] == found[8:]


def test_events_by_name() -> None:
    body = b"event: a\ndata: 1\n\nevent: b\ndata: 2\n\ndata: 3\n\n"
    answers = iter([Answer(200, body, KIND), Answer(204)])
    with serving(lambda request: next(answers)) as server:
        model = described(server.url, events=["b", "message"], format="raw_string", types={})
        assert read(model)[0] == [{"value": "2"}, {"value": "3"}]


def test_rows_come_before_the_connection_ends_and_reading_may_be_cancelled() -> None:
    may_go = threading.Semaphore(0)

    def parts() -> Iterator[bytes]:
        for n in range(1, 7):
            assert may_go.acquire(timeout=60)
            yield numbered(n, n)
        assert may_go.acquire(timeout=60)

    async def work(url: str) -> list[int]:
        found = []
        with contextlib.closing(described(url).source(1).open("events", None)) as partition:
            for n in range(6):
                reading = asyncio.ensure_future(partition.read())
                await asyncio.sleep(0)
                if n % 2:
                    reading.cancel()
                    await asyncio.wait([reading])
                    reading = asyncio.ensure_future(partition.read())
                may_go.release()
                rows = await asyncio.wait_for(reading, 60)
                assert rows is not None
                found += rows.batch.column("n").to_pylist()
            waiting = asyncio.ensure_future(partition.read())
            await asyncio.sleep(0)
            waiting.cancel()
        return found

    with serving(lambda request: Answer(200, parts(), KIND)) as server:
        assert asyncio.run(work(server.url)) == [1, 2, 3, 4, 5, 6]
        may_go.release()


@pytest.mark.parametrize("trouble", [Answer(503), Answer(None)])
def test_trouble_that_passes(trouble: Answer) -> None:
    answers = iter([trouble, Answer(200, numbered(1, 2), KIND), trouble, Answer(204)])
    with serving(lambda request: next(answers)) as server:
        assert [row["n"] for row in read(described(server.url))[0]] == [1, 2]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer(403, b"go away"), r"refuses us with 403: check the headers \(go away\)"),
        (
            Answer(200, b"{}", {"Content-Type": "application/json"}),
            "answers application/json, and no text",
        ),
        (Answer(307), "answers 307: it has moved"),
    ],
)
def test_what_does_not_pass(answer: Answer, why: str) -> None:
    with serving(lambda request: answer) as server, pytest.raises(InvalidArgument, match=why):
        read(described(server.url))


def test_an_event_that_cannot_be_read() -> None:
    answers = iter([Answer(200, b"data: ?\n\n", KIND), Answer(204)])
    with serving(lambda request: next(answers)) as server:
        source = described(server.url).source(1)
        with contextlib.closing(source.open("events", None)) as partition:
            (rows,) = asyncio.run(rest_of(partition))
    assert "the event is not JSON" in rows.refused[0]


def test_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_PATIENCE", 0.0)
    with pytest.raises(Unreachable, match=r"http://127.0.0.1:1/a does not answer"):
        read(described("http://127.0.0.1:1/a"))


def test_the_kit(tmp_path: Path) -> None:
    with serving(lambda request: feed(request, 5, 2)) as server:
        check_source(tmp_path / "kit", lambda: described(server.url).source(1), most=0)
