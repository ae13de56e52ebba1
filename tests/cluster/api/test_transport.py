"""What every endpoint does as HTTP has it."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from asgi_client import Client
from clusters import shown

from arroyo_udf_plugin.cluster.records import Records

ZSTD = b"\x28\xb5\x2f\xfd"


@pytest.mark.parametrize("path", ["/api/v1/ping", "/api/v1/connectors", "/api/v1/pipelines", "/health/live"])
def test_head_is_get_without_the_body(api: Client, path: str) -> None:
    told, head = api.get(path), api.request("HEAD", path)
    assert (head.status_code, head.content) == (told.status_code, b"")
    for name in ("content-type", "content-length"):
        assert head.headers[name] == told.headers[name]


def test_head_of_an_unknown_address_is_not_found(api: Client) -> None:
    assert api.request("HEAD", "/api/v1/nothing").status_code == 404


def test_head_of_a_stream_that_goes_on_ends(api: Client, stored: Any) -> None:
    whole = stored("Running")
    head = api.request("HEAD", f"/api/v1/pipelines/{whole.pipeline.id}/jobs/{whole.job.id}/output")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"].startswith("text/event-stream")


def raw(api: Client, path: str, accepted: str) -> tuple[Any, bytes]:
    """An answer as it was sent."""

    async def read() -> tuple[Any, bytes]:
        async with api.http.stream("GET", path, headers={"accept-encoding": accepted}) as answer:
            return answer.headers, b"".join([part async for part in answer.aiter_raw()])

    return api.run(read())


def test_a_long_answer_is_compressed_for_who_asks(api: Client) -> None:
    plain = api.get("/api/v1/connectors").content
    for accepted in ("zstd", "gzip, zstd", "gzip;q=0.5, ZSTD;q=0.9"):
        headers, body = raw(api, "/api/v1/connectors", accepted)
        assert (headers["content-encoding"], headers["vary"]) == ("zstd", "Accept-Encoding")
        assert headers["content-length"] == str(len(body))
        assert body.startswith(ZSTD)
        assert pa.Codec("zstd").decompress(body, len(plain), asbytes=True) == plain
    for accepted in ("", "identity", "gzip", "zstd;q=0", "zstd; q=0.0"):
        headers, body = raw(api, "/api/v1/connectors", accepted)
        assert ("content-encoding" in headers, body) == (False, plain)


def test_a_short_answer_is_left_as_it_is(api: Client) -> None:
    assert raw(api, "/api/v1/ping", "zstd")[1] == b'"Pong"'
    assert api.delete("/api/v1/udfs/udf_0").json() == {"error": "UDF not found"}


def test_a_stream_is_never_compressed(api: Client, stored: Any, records: Records) -> None:
    whole = stored("Finished")
    records.show(whole.job.id, [shown(0, batch=json.dumps(["x" * 5000]))])
    path = f"/api/v1/pipelines/{whole.pipeline.id}/jobs/{whole.job.id}/output"
    headers, body = raw(api, path, "zstd")
    assert "content-encoding" not in headers
    assert body.startswith(b"id: 0\ndata: ")


def test_a_slash_at_the_end_is_another_address(api: Client) -> None:
    answer = api.get("/api/v1/ping/")
    assert (answer.status_code, list(answer.json())) == (404, ["error"])
