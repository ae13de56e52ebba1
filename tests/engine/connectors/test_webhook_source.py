"""An endpoint as a source: what it takes, what it refuses, and what of it is read."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from waiting import until

from arroyo_udf_plugin.engine.connectors.http import journal as journals
from arroyo_udf_plugin.engine.connectors.http import webhook_source
from arroyo_udf_plugin.engine.connectors.http.journal import Journal
from arroyo_udf_plugin.engine.connectors.http.webhook_source import WebhookInput, WebhookPartition
from arroyo_udf_plugin.engine.connectors.interface import Gauge, Json
from arroyo_udf_plugin.errors import InvalidArgument
from arroyo_udf_plugin.testing import check_source


def described(folder: Path, **keys: Any) -> WebhookInput:
    usual = {"listen": "127.0.0.1:0", "path": "/rows", "journal": str(folder / "journal"), "types": {"n": "int"}}
    return WebhookInput(**{**usual, **keys})


class Endpoint:
    """An open source, and a client of it."""

    def __init__(self, model: WebhookInput, position: Json | None = None) -> None:
        self.source: Any = model.source(1)
        if position is not None:
            self.source.check({"journal": position})
        self.partition: Any = self.source.open("journal", position)
        assert isinstance(self.partition, WebhookPartition)
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.partition.port}", trust_env=False)

    def send(self, body: bytes | str, path: str = "/rows", method: str = "POST", **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.request(method, path, content=body, headers=named)

    def read(self, count: int) -> list[dict[str, Any]]:
        """So many rows."""

        async def work() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = []
            while len(found) < count:
                found += (await asyncio.wait_for(self.partition.read(), 60)).batch.to_pylist()
            return found

        return asyncio.run(work())

    def close(self) -> None:
        self.client.close()
        self.partition.close()
        self.source.close()


@contextlib.contextmanager
def opened(model: WebhookInput, position: Json | None = None) -> Iterator[Endpoint]:
    with contextlib.closing(Endpoint(model, position)) as endpoint:
        yield endpoint


def waiting(folder: Path, **keys: Any) -> list[dict[str, Any]]:
    """What is in the journal."""
    source = described(folder, bounded=True, **keys).source(1)
    with contextlib.closing(source.open("journal", None)) as partition:

        async def work() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = []
            while (rows := await partition.read()) is not None:
                found += rows.batch.to_pylist()
            return found

        return asyncio.run(work())


def test_objects_arrays_and_lines(tmp_path: Path) -> None:
    with opened(described(tmp_path)) as endpoint:
        for body in ('{"n": 1}', '[{"n": 2}, {"n":\n3, "more": [1]}]', '{"n": 4}\n{"n": 5}\n', "[]", ""):
            assert endpoint.send(body).status_code == 202
        assert endpoint.read(5) == [{"n": n} for n in range(1, 6)]


def test_what_is_known_about_deliveries(tmp_path: Path) -> None:
    before = time.time_ns() // 1_000_000
    types = {"n": "int", "at": "int64"}
    with opened(described(tmp_path, metadata={"key": "key", "at": "received"}, types=types)) as endpoint:
        endpoint.send('{"n": 1}', idempotency_key="a")
        endpoint.send('{"n": 2}')
        first, second = endpoint.read(2)
    assert (first["key"], second["key"]) == ("a", None)
    assert before <= first["at"] <= second["at"] <= time.time_ns() // 1_000_000


def test_a_key_that_is_repeated_is_one_delivery(tmp_path: Path) -> None:
    """At once, later, and in a later process."""
    with opened(described(tmp_path)) as endpoint, concurrent.futures.ThreadPoolExecutor(8) as pool:
        keys = [str(n % 10) for n in range(80)]
        answers = list(pool.map(lambda key: endpoint.send(f'{{"n": {key}}}', idempotency_key=key), keys))
        assert {answer.status_code for answer in answers} == {202}
        assert endpoint.send('{"n": 3}', idempotency_key="3").status_code == 202
    with opened(described(tmp_path)) as endpoint:
        assert endpoint.send('{"n": 3}', idempotency_key="3").status_code == 202
    assert sorted(row["n"] for row in waiting(tmp_path)) == list(range(10))


@pytest.mark.parametrize(
    ("request_", "status", "why"),
    [
        ({"body": "?"}, 400, "the body cannot be read: it has no object of JSON at character 1"),
        ({"body": "{}", "path": "/other"}, 404, "there is nothing here"),
        ({"body": "{}", "method": "GET"}, 405, "rows are sent by POST"),
        ({"body": "{}", "content_encoding": "gzip"}, 415, "send the body as it is"),
        ({"body": "{}", "authorization": "Bearer wrong"}, 401, "write the header Authorization"),
        ({"body": "{}", "authorization": ""}, 401, "write the header Authorization"),
        ({"body": " " * 2000}, 413, "a body has at most 1000 bytes"),
        ({"body": "{}", "idempotency_key": "k" * 1001}, 400, "at most 1000 characters"),
    ],
)
def test_what_is_refused(request_: dict[str, Any], status: int, why: str, tmp_path: Path) -> None:
    model = described(tmp_path, token="s3cret", max_body=1000)
    assert "s3cret" not in repr(model)
    with opened(model) as endpoint:
        answer = endpoint.send(**{"authorization": "Bearer s3cret", **request_})
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
        assert why in answer.json()["error"]
        assert endpoint.send('{"n": 1}', authorization="Bearer s3cret").status_code == 202
    assert waiting(tmp_path) == [{"n": 1}]


def test_a_body_without_a_length_that_is_too_large(tmp_path: Path) -> None:
    with opened(described(tmp_path, max_body=1000)) as endpoint:
        answer = endpoint.client.post("/rows", content=iter([b" " * 900, b" " * 900]))
        assert answer.status_code == 413


def test_a_pipeline_that_does_not_keep_up(tmp_path: Path) -> None:
    with opened(described(tmp_path, max_waiting=2000, max_body=1000)) as endpoint:
        statuses = [endpoint.send(f'{{"n": {n}}}').status_code for n in range(100)]
        taken = statuses.index(429)
        (unread,) = endpoint.partition.gauges()
        assert (unread.name, unread.unit) == ("unread", "bytes")
        assert 1000 < unread.value < 3000
        assert 10 < taken < 50
        assert statuses == [202] * taken + [429] * (100 - taken)
        assert endpoint.send("{}").headers["retry-after"] == "1"
        assert [row["n"] for row in endpoint.read(taken)] == list(range(taken))
        assert endpoint.partition.gauges() == [Gauge("unread", 0, "bytes")]
        assert endpoint.send('{"n": 1000}').status_code == 202
        assert endpoint.read(1) == [{"n": 1000}]


def test_many_senders_wait_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write is for all that have come meanwhile, and nobody is answered before it."""
    may_go, sizes, add = threading.Semaphore(0), list[int](), Journal.add

    def held(journal: Journal, deliveries: Any) -> None:
        assert may_go.acquire(timeout=60)
        sizes.append(len(deliveries))
        add(journal, deliveries)

    monkeypatch.setattr(Journal, "add", held)
    with opened(described(tmp_path)) as endpoint, concurrent.futures.ThreadPoolExecutor(20) as pool:
        sent = [pool.submit(endpoint.send, f'{{"n": {n}}}') for n in range(20)]
        receiver = endpoint.partition._receiver
        until(lambda: receiver._bytes >= 20 * len('{"n": 1}'), "all requests")
        assert not any(each.done() for each in sent)
        for _ in range(20):
            may_go.release()
        assert {each.result(60).status_code for each in sent} == {202}
    assert sum(sizes) == 20
    assert len(sizes) < 10


def test_a_journal_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add = Journal.add

    def full(journal: Journal, deliveries: Any) -> None:
        raise OSError(28, "No space left on device")

    with opened(described(tmp_path)) as endpoint:
        monkeypatch.setattr(Journal, "add", full)
        answer = endpoint.send('{"n": 1}', idempotency_key="a")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        monkeypatch.setattr(Journal, "add", add)
        assert endpoint.send('{"n": 1}', idempotency_key="a").status_code == 202
        assert endpoint.read(1) == [{"n": 1}]


# ---- Positions -------------------------------------------------------------------------------------------------------


def test_a_later_process_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_source, "BATCH_ROWS", 2)
    with opened(described(tmp_path)) as endpoint:
        endpoint.send('[{"n": 1}, {"n": 2}, {"n": 3}, {"n": 4}]')
        endpoint.send('{"n": 5}')
        assert endpoint.read(2) == [{"n": 1}, {"n": 2}]
        position = json.loads(json.dumps(endpoint.partition.position()))
        endpoint.read(1)
    with opened(described(tmp_path), position) as endpoint:
        endpoint.send('{"n": 6}')
        assert endpoint.read(4) == [{"n": n} for n in range(3, 7)]
        assert endpoint.partition.position()["row"] == 6


def test_files_that_a_checkpoint_has_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "_FILE_BYTES", 1)
    folder = tmp_path / "journal"
    with opened(described(tmp_path, remember=1e-9)) as endpoint:
        for n in range(5):
            endpoint.send(f'{{"n": {n}}}')
        endpoint.read(5)
        assert len(list(folder.glob("*.journal"))) == 5
        endpoint.source.announce({"journal": endpoint.partition.position()})
        until(lambda: len(list(folder.glob("*.journal"))) == 1, "files that go")


def test_journals_that_do_not_fit(tmp_path: Path) -> None:
    with opened(described(tmp_path)) as endpoint:
        endpoint.send('{"n": 1}')
        end = endpoint.partition._journal.end
        with pytest.raises(InvalidArgument, match="is used by another process"):
            described(tmp_path).source(1).open("journal", None)
    for at in (end + 1, -1):
        with pytest.raises(InvalidArgument, match=f"has deliveries from 0 to {end}, and {at} is to be read next"):
            described(tmp_path).source(1).check({"journal": {"at": at, "skip": 0, "row": 1}})


def test_a_place_that_is_taken(tmp_path: Path) -> None:
    with opened(described(tmp_path)) as endpoint:
        other = described(tmp_path, listen=f"127.0.0.1:{endpoint.partition.port}", journal=str(tmp_path / "other"))
        with pytest.raises(InvalidArgument, match=r"nobody can listen at 127.0.0.1:\d+: Address already in use"):
            other.source(1).open("journal", None)


def test_others_need_a_token(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"others than this machine can connect to it: write a token"):
        described(tmp_path, listen="0.0.0.0:0").source(1)
    described(tmp_path, listen="0.0.0.0:0", token="t").source(1)
    with pytest.raises(ValueError, match="write HOST:PORT"):
        described(tmp_path, listen="8080")


def test_the_kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_source, "BATCH_ROWS", 2)
    with opened(described(tmp_path)) as endpoint:
        endpoint.send('[{"n": 1}, {"n": 2}, {"n": 3}]')
        endpoint.send('{"n": 4}')
    check_source(tmp_path / "kit", lambda: described(tmp_path, bounded=True).source(1), most=0)
