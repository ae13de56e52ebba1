"""What HTTP promises for every endpoint: HEAD is GET without the body, an answer is compressed if its reader asks, and
a body is JSON that every part behind the API can hold.

Python reads more than JSON: NaN, half of a surrogate pair. PostgreSQL keeps no text with a NUL character. Such a body
is refused like any other that is no JSON.

Guarantees: event streams are never compressed, and HEAD for one does not read it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

import fastapi
import pyarrow as pa
from fastapi.routing import APIRoute

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
    accepted = b",".join(value for name, value in scope["headers"] if name.lower() == b"accept-encoding")
    for preference in accepted.decode("latin-1").lower().split(","):
        coding, _, weight = preference.replace(" ", "").partition(";q=")
        if coding == "zstd":
            return weight.strip("0.") != "" or not weight
    return False


Handler = Callable[[fastapi.Request], Coroutine[Any, Any, fastapi.Response]]


class _JsonRequest(fastapi.Request):
    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            self._json = _read(await self.body())
        return self._json


class JsonRoute(APIRoute):
    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()

        async def with_json(request: fastapi.Request) -> fastapi.Response:
            return await handle(_JsonRequest(request.scope, request.receive))

        return with_json


def _read(body: bytes) -> Any:
    """Raises JSONDecodeError."""
    try:
        read = json.loads(body.decode(), parse_constant=_no_constant, parse_int=_int, parse_float=_float)
        _check_texts(read)
        return read
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise json.JSONDecodeError("it is nested too deeply", "", 0) from None
    except UnicodeError:
        raise json.JSONDecodeError("a text is not Unicode", "", 0) from None
    except ValueError as error:
        raise json.JSONDecodeError(str(error), "", 0) from None


def _check_texts(read: Any) -> None:
    """Raises ValueError for a text that cannot be stored."""
    left = [read]
    while left:
        value = left.pop()
        if isinstance(value, str):
            value.encode()
            if "\0" in value:
                raise ValueError("a text has a NUL character")
        elif isinstance(value, dict):
            left += [*value, *value.values()]
        elif isinstance(value, list):
            left += value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _int(text: str) -> int:
    if len(text) > 40:
        raise ValueError("a number has too many digits")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text[:40]} is too large")
    return value
