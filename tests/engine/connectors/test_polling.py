"""An address that is asked again and again: what its answers are, and when it is asked."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from pathlib import Path
from typing import Any

import pytest
from http_server import Answer, Request, serving

from arroyo_udf_plugin.engine.connectors.http import endpoint, polling
from arroyo_udf_plugin.engine.connectors.http.bodies import objects_of
from arroyo_udf_plugin.engine.connectors.http.polling import PollingInput
from arroyo_udf_plugin.engine.connectors.interface import Json
from arroyo_udf_plugin.errors import InvalidArgument, Unreachable
from arroyo_udf_plugin.testing import check_source


def described(url: str, **keys: Any) -> PollingInput:
    return PollingInput(**{"endpoint": url, "types": {"n": "int"}, "interval": 0.001, "answers": 1, **keys})


async def rest_of(partition: Any) -> list[Any]:
    found = []
    while (rows := await partition.read()) is not None:
        found.append(rows)
    return found


def read(model: PollingInput, position: Json | None = None) -> tuple[list[dict[str, Any]], Json]:
    """The rows, and the position behind them."""
    source = model.source(1)
    (name,) = source.partitions()
    with contextlib.closing(source), contextlib.closing(source.open(name, position)) as partition:
        found = asyncio.run(rest_of(partition))
        return [row for rows in found for row in rows.batch.to_pylist()], partition.position()


def numbers(model: PollingInput, position: Json | None = None) -> list[int]:
    return [row["n"] for row in read(model, position)[0]]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'{"n": 1}', [1]),
        (b'\xef\xbb\xbf [{"n": 1, "m": [{}]},\n {"n": 2}] ', [1, 2]),
        (b'{"n": 1}\n\n{"n":\n 2}\r\n', [1, 2]),
        (b"[]", []),
        (b"", []),
    ],
)
def test_bodies(body: bytes, found: list[int]) -> None:
    with serving(lambda request: Answer(200, body)) as server:
        assert numbers(described(server.url)) == found


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"7", "it has no object of JSON at character 1"),
        (b'{"n": }', "it is not JSON: Expecting value at character 7"),
        (b'[{"n": 1}', "an array goes on with"),
        (b'[{"n": 1},]', "the array has nothing behind a comma"),
        (b'[{"n": 1} {}]', "an array goes on with"),
        (b'[{"n": 1}] 2', "something is behind the array"),
        (b'{"n": 1} {"n": 2}', "something is behind an object at character 10"),
        (b"\xff", "it is not UTF-8"),
        (b'{"a":' * 100_000, "too deep"),
        (b"[", "the array has no end"),
    ],
)
def test_bodies_that_cannot_be_read(body: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        objects_of(body)


def test_text_and_what_is_sent() -> None:
    with serving(lambda request: Answer(200, b"a\nb")) as server:
        model = described(
            server.url,
            types={},
            format="raw_string",
            method="POST",
            body="q",
            headers={"Authorization": "Bearer s3cret"},
        )
        assert read(model)[0] == [{"value": "a\nb"}]
        (request,) = server.requests
        assert (request.method, request.body, request.headers["authorization"]) == ("POST", b"q", "Bearer s3cret")
        assert "s3cret" not in repr(model)


def test_an_answer_that_has_not_changed() -> None:
    bodies = [b'{"n": 1}', b'{"n": 1}', b'{"n": 2}', b'{"n": 2}']
    for emit, found in (("all", [1, 1, 2, 2]), ("changed", [1, 2])):
        answers = iter(bodies)
        with serving(lambda request: Answer(200, next(answers))) as server:  # noqa: B023
            assert numbers(described(server.url, emit=emit, answers=4)) == found


def test_a_server_that_knows_what_we_have_seen() -> None:
    def answer(request: Request) -> Answer:
        if request.headers.get("if-none-match") == '"1"':
            return Answer(304)
        return Answer(200, b'{"n": 1}', {"ETag": '"1"', "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"})

    with serving(answer) as server:
        found, position = read(described(server.url, answers=3))
        assert found == [{"n": 1}]
        assert server.requests[1].headers["if-modified-since"] == "Thu, 01 Jan 2026 00:00:00 GMT"
        assert numbers(described(server.url, answers=5), position) == []  # after a resume
        assert len(server.requests) == 5


def test_a_large_answer_goes_on_in_its_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polling, "BATCH_ROWS", 2)
    with serving(lambda request: Answer(200, '[{"n": 1}, {"n": 2, "s": "\N{SNOWMAN}"}, {"n": 3}]'.encode())) as server:
        source = described(server.url).source(1)
        with contextlib.closing(source.open("answers", None)) as partition:
            rows = asyncio.run(partition.read())
            assert rows is not None
            assert rows.batch.to_pylist() == [{"n": 1}, {"n": 2}]
            position = partition.position()
        found, end = read(described(server.url), position)
        assert (found, end["end"], len(server.requests)) == ([{"n": 3}], True, 1)


@pytest.mark.parametrize("trouble", [Answer(503), Answer(429, headers={"Retry-After": "0"}), Answer(None)])
def test_trouble_that_passes(trouble: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "_FIRST_WAIT", 0.001)
    answers = itertools.chain([trouble, trouble], itertools.repeat(Answer(200, b'{"n": 1}')))
    with serving(lambda request: next(answers)) as server:
        assert numbers(described(server.url)) == [1]
        assert len(server.requests) == 3


def test_a_server_that_wants_to_be_left_alone() -> None:
    retries = endpoint.Retries()
    assert retries.next({"retry-after": "120"}) == 120
    assert retries.next({"retry-after": "Fri, 01 Jan 2100 00:00:00 GMT"}) > 3000
    assert retries.next({"retry-after": "soon"}) < 1


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer(404, b"no such thing"), r"/rows answers 404 \(no such thing\): correct the address"),
        (Answer(401), "refuses us with 401: check the headers"),
        (Answer(302, headers={"Location": "http://b.invalid"}), "answers 302: it has moved"),
        (Answer(200, b"?"), "the answer cannot be read: it has no object of JSON"),
    ],
)
def test_what_does_not_pass(answer: Answer, why: str) -> None:
    with serving(lambda request: answer) as server, pytest.raises(InvalidArgument, match=why):
        read(described(server.url))


def test_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polling, "_PATIENCE", 0.0)
    with pytest.raises(Unreachable, match=r"http://127.0.0.1:1/a does not answer") as error:
        read(described("http://me:secret@127.0.0.1:1/a?key=hidden"))
    assert "secret" not in str(error.value)
    assert "hidden" not in str(error.value)


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"endpoint": "ftp://a"}, "write an address such as"),
        ({"headers": {"a b": "c"}}, "cannot be the name of a header"),
        ({"headers": {"a": "b\nc"}}, "the value of 'a' has characters"),
    ],
)
def test_keys_that_do_not_fit(keys: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        described(**{"url": "http://a", **keys})


def test_the_kit(tmp_path: Path) -> None:
    with serving(lambda request: Answer(200, b'[{"n": 1}, {"n": 2}]')) as server:
        check_source(tmp_path / "kit", lambda: described(server.url, answers=3).source(1), most=0)
