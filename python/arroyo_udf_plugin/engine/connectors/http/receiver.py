"""An endpoint that takes deliveries into a journal: a plain ASGI application, under uvicorn in a thread of its own.

    with Receiver(described, journal, taken=lambda: partition.at) as receiver:
        receiver.port

    request ──► checked ──► waits with others ──► one write and one fsync for all of them ──► 202

Guarantees: a request is answered 202 when its rows are durable. One with a key that the journal knows is answered 202,
and adds nothing. When the pipeline does not keep up, requests are answered 429, with a time after which to come again.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
import queue
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

from ....errors import InvalidArgument
from .bodies import objects_of
from .journal import Delivery, Journal

_log = logging.getLogger(__name__)

_STARTS = 10.0  # seconds
_ENDS = 5  # seconds for requests that are under way
_MOST = 512  # requests at once; further ones are answered 503
_LONGEST_KEY = 1000
_SOON = ("retry-after", "1")

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]


class Receiving(Protocol):
    """What a receiver keeps to. listen: HOST:PORT. max_body, max_waiting: bytes."""

    @property
    def listen(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def token(self) -> str | None: ...
    @property
    def max_body(self) -> int: ...
    @property
    def max_waiting(self) -> int: ...


class _Refused(Exception):
    def __init__(self, status: int, why: str, *headers: tuple[str, str]) -> None:
        super().__init__(why)
        self.status, self.headers = status, headers


@dataclass(frozen=True)
class _Waiting:
    delivery: Delivery
    loop: asyncio.AbstractEventLoop
    durable: asyncio.Future[None]


class Receiver:
    """taken: the offset in the journal up to which rows have been read. Raises InvalidArgument if nobody can listen
    there."""

    def __init__(self, described: Receiving, journal: Journal, taken: Callable[[], int]) -> None:
        self._described, self._journal, self._taken = described, journal, taken
        self._waiting: queue.SimpleQueue[_Waiting | int | None] = queue.SimpleQueue()
        self._pending: dict[str, asyncio.Future[None]] = {}  # keys on their way; of the event loop alone
        self._bytes = 0  # of bodies that are not durable yet; of the event loop alone
        self._socket = _bound(described.listen)
        self.port: int = self._socket.getsockname()[1]
        self._writer = threading.Thread(target=self._write, name="arroyo-udf-journal", daemon=True)
        self._writer.start()
        try:
            self._server, self._thread = self._served()
        except BaseException:
            self._end_writing()
            self._socket.close()
            raise

    def _served(self) -> tuple[Any, threading.Thread]:
        try:
            import uvicorn
        except ModuleNotFoundError as error:
            raise InvalidArgument("webhooks need uvicorn: pip install 'arroyo_udf_plugin[http]'") from error
        configuration = uvicorn.Config(
            self._application,
            interface="asgi3",
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            limit_concurrency=_MOST,
            timeout_graceful_shutdown=_ENDS,
        )
        server = uvicorn.Server(configuration)
        thread = threading.Thread(target=server.run, args=([self._socket],), name="arroyo-udf-webhook", daemon=True)
        thread.start()
        until = time.monotonic() + _STARTS
        while not server.started:
            if not thread.is_alive() or time.monotonic() > until:
                raise InvalidArgument(f"nobody listens at {self._described.listen}: the server has not started")
            time.sleep(0.002)
        return server, thread

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def forget(self, committed: int) -> None:
        """Rows before this offset are in a checkpoint. It does not wait."""
        self._waiting.put(committed)

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._end_writing()
        self._socket.close()

    def _end_writing(self) -> None:
        self._waiting.put(None)
        self._writer.join()

    # ---- The journal, in its thread ----

    def _write(self) -> None:
        is_over = False
        while not is_over:
            some = [self._waiting.get()]
            with contextlib.suppress(queue.Empty):
                while True:
                    some.append(self._waiting.get_nowait())
            is_over = None in some
            waiting = [each for each in some if isinstance(each, _Waiting)]
            if waiting:
                self._add(waiting)
            for committed in (each for each in some if isinstance(each, int)):
                try:
                    self._journal.forget(committed)
                except OSError as error:
                    _log.warning("a file of the journal cannot be removed: %s", error)

    def _add(self, waiting: list[_Waiting]) -> None:
        failed: OSError | None = None
        try:
            self._journal.add([each.delivery for each in waiting])
        except OSError as error:
            _log.warning("the journal takes no deliveries: %s", error)
            failed = error
        for each in waiting:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                each.loop.call_soon_threadsafe(_answer, each.durable, failed)

    # ---- Requests, in the event loop ----

    async def _application(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        status, why, headers = 202, "", list[tuple[str, str]]()
        try:
            await self._taken_in(scope, receive)
        except _Refused as refused:
            status, why, headers = refused.status, str(refused), list(refused.headers)
        body = json.dumps({"error": why} if why else {"accepted": True}).encode()
        headers += [("content-type", "application/json"), ("content-length", str(len(body)))]
        raw = [(name.encode(), value.encode()) for name, value in headers]
        await send({"type": "http.response.start", "status": status, "headers": raw})
        await send({"type": "http.response.body", "body": body})

    async def _taken_in(self, scope: _Message, receive: _Receive) -> None:
        """Returns when the rows are durable. Raises _Refused."""
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        self._check(scope, headers)
        key = headers.get("idempotency-key", "")
        if len(key) > _LONGEST_KEY or not key.isascii():
            raise _Refused(400, f"Idempotency-Key is ASCII, of at most {_LONGEST_KEY} characters")
        body = await self._body(receive, int(headers.get("content-length") or 0))
        if key and self._journal.knows(key):
            return
        if key and (durable := self._pending.get(key)) is not None:
            return await _durable(durable)
        try:
            rows = objects_of(body)
        except ValueError as error:
            raise _Refused(400, f"the body cannot be read: {error}") from None
        if not rows:
            return
        await self._add_soon(Delivery(time.time_ns() // 1_000_000, key, rows), len(body))

    def _check(self, scope: _Message, headers: MutableMapping[str, str]) -> None:
        """Raises _Refused."""
        described = self._described
        if described.token is not None:
            given = headers.get("authorization", "").encode()
            if not hmac.compare_digest(given, f"Bearer {described.token}".encode()):
                raise _Refused(401, "write the header Authorization: Bearer TOKEN", ("www-authenticate", "Bearer"))
        if scope["path"] != described.path:
            raise _Refused(404, "there is nothing here: correct the path")
        if scope["method"] not in ("POST", "PUT"):
            raise _Refused(405, "rows are sent by POST", ("allow", "POST, PUT"))
        if headers.get("content-encoding", "identity") != "identity":
            raise _Refused(415, "send the body as it is, without a Content-Encoding")
        length = headers.get("content-length", "0")
        if not length.isdecimal():
            raise _Refused(400, "Content-Length is no number")
        if int(length) > described.max_body:
            raise self._too_large()
        if self._journal.end - self._taken() + self._bytes + int(length) > described.max_waiting:
            raise _Refused(429, "the pipeline does not keep up: send it again later", _SOON)

    def _too_large(self) -> _Refused:
        return _Refused(413, f"a body has at most {self._described.max_body} bytes: send fewer rows at once")

    async def _body(self, receive: _Receive, length: int) -> bytes:
        """Raises _Refused."""
        parts, size = list[bytes](), 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Refused(400, "the connection has ended")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._described.max_body:
                raise self._too_large()
            if not message.get("more_body", False):
                return b"".join(parts)

    async def _add_soon(self, delivery: Delivery, size: int) -> None:
        loop = asyncio.get_running_loop()
        durable = loop.create_future()
        if delivery.key:
            self._pending[delivery.key] = durable
        self._bytes += size
        self._waiting.put(_Waiting(delivery, loop, durable))

        def done(_: Any) -> None:
            self._bytes -= size
            self._pending.pop(delivery.key, None)

        durable.add_done_callback(done)
        await _durable(durable)


async def _durable(durable: asyncio.Future[None]) -> None:
    """Raises _Refused."""
    try:
        await asyncio.shield(durable)
    except OSError:
        raise _Refused(503, "the journal cannot be written: send it again later", _SOON) from None


def _answer(durable: asyncio.Future[None], failed: OSError | None) -> None:
    if failed is None:
        durable.set_result(None)
    else:
        durable.set_exception(failed)
        durable.exception()  # whoever has sent it may have gone


def _bound(listen: str) -> socket.socket:
    """Raises InvalidArgument."""
    host, _, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    bound = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        if bound is not None:
            bound.close()
        raise InvalidArgument(f"nobody can listen at {listen}: {error.strerror}: choose another address") from None
    return bound


def hosts(listen: str) -> Iterator[str]:
    """The addresses of a host."""
    host = listen.rpartition(":")[0].removeprefix("[").removesuffix("]")
    for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM):
        yield str(found[4][0])
