"""Our web page: the files that `make web` builds from web/ and that a wheel has, in memory.

A path without a dot is a place within the page, so it is answered with index.html; one with a dot is a file.

Guarantees: what is here tells nothing about the cluster, so a browser gets it without a token, and asks its user then.
A page may load and call nothing of another host. Files below assets/ are named by what they contain, and never change.
Without the page, `/` says how to get it.
"""

from __future__ import annotations

import gzip
import mimetypes
from functools import cache
from pathlib import Path
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

BUILT = Path(__file__).resolve().parents[2] / "_page"
"""Where `make web` puts it."""

_MISSING = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>arroyo-udf</title>
<style>body { font: 16px/1.5 system-ui; max-width: 40rem; margin: 3rem auto; padding: 0 1rem }</style>
<h1>arroyo-udf</h1>
<p>This is the API of a cluster, and it works. Its web page is not part of this installation, because it was installed
from a source tree in which the page was not built.</p>
<p>To get it, install a wheel, which has it; or, in the source tree, run <code>make web</code>, which needs no node on
this machine, and start the cluster again.</p>
<ul>
<li><a href="/api/v1/pipelines">/api/v1/pipelines</a>: pipelines
<li><a href="/api/v1/jobs">/api/v1/jobs</a>: their jobs
<li><a href="/api/v1/api-docs/openapi.json">/api/v1/api-docs/openapi.json</a>: what else there is
<li><a href="/metrics">/metrics</a>: numbers, for Prometheus
</ul>
"""
_POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'self'"
)
_COMPRESSED = ("text/", "application/json", "image/svg+xml")


class _File(NamedTuple):
    """compressed: None: it would not get smaller."""

    content: bytes
    compressed: bytes | None
    media_type: str


@cache
def _files(folder: Path) -> dict[str, _File]:
    return {path.relative_to(folder).as_posix(): _file(path) for path in sorted(folder.rglob("*")) if path.is_file()}


def _file(path: Path) -> _File:
    content = path.read_bytes()
    media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    is_text = media_type.startswith(_COMPRESSED)
    return _File(content, gzip.compress(content, mtime=0) if is_text else None, media_type)


async def file(request: Request) -> Response:
    """A file of the page, or the page itself."""
    path = request.path_params.get("path", "")
    files = await run_in_threadpool(_files, BUILT)
    if "." in path.rpartition("/")[2]:
        found = files.get(path)
        if found is None:
            return PlainTextResponse("there is no such file", 404)
        is_forever = path.startswith("assets/")
        return _answer(request, found, "public, max-age=31536000, immutable" if is_forever else "no-cache")
    index = files.get("index.html") or _File(_MISSING.encode(), None, "text/html")
    return _answer(request, index, "no-cache")


def _answer(request: Request, file: _File, caching: str) -> Response:
    headers = {
        "cache-control": caching,
        "content-security-policy": _POLICY,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "vary": "accept-encoding",
    }
    if file.compressed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.compressed, headers=headers | {"content-encoding": "gzip"}, media_type=file.media_type)
    return Response(file.content, headers=headers, media_type=file.media_type)
