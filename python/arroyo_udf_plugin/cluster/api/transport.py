"""What HTTP promises for every endpoint: HEAD is GET without the body, and an answer is compressed if its reader asks.

Guarantees: event streams are never compressed, and HEAD for one does not read it.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ..security import App, Message, Receive, Scope, Send

_LEAST = 1024
"""Bytes of a body that is worth it."""


class Transport:
    """The layer around an app."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            if _asks_for_zstd(scope):
                send = _Compressing(send)
            if scope["method"] == "HEAD":
                scope = {**scope, "method": "GET"}
                without = _WithoutBody(receive, send)
                receive, send = without.receive, without.send
        await self._app(scope, receive, send)


class _WithoutBody:
    """Answers as they begin. Whatever would send more hears that its reader is gone."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._is_answered = False

    async def receive(self) -> Message:
        return {"type": "http.disconnect"} if self._is_answered else await self._receive()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._send(message)
            await self._send({"type": "http.response.body", "body": b""})
            self._is_answered = True


class _Compressing:
    """Holds the start of an answer back until its body is known; a body in several pieces goes as it is."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        start, self._start = self._start, None
        body = message.get("body", b"")
        if start is not None:
            if len(body) >= _LEAST and not message.get("more_body", False):
                body = pa.Codec("zstd").compress(body, asbytes=True)
                message = {**message, "body": body}
                start = {**start, "headers": _as_zstd(start.get("headers", ()), len(body))}
            await self._send(start)
        await self._send(message)


def _as_zstd(headers: Any, length: int) -> list[tuple[bytes, bytes]]:
    kept = [(name, value) for name, value in headers if name.lower() != b"content-length"]
    own = (b"content-encoding", b"zstd"), (b"vary", b"Accept-Encoding"), (b"content-length", str(length).encode())
    return [*kept, *own]


def _asks_for_zstd(scope: Scope) -> bool:
    told = b",".join(value for name, value in scope["headers"] if name.lower() == b"accept-encoding")
    for one in told.decode("latin-1").lower().split(","):
        coding, _, weight = one.replace(" ", "").partition(";q=")
        if coding == "zstd":
            return weight.strip("0.") != "" or not weight
    return False
