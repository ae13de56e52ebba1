"""An HTTP server in a thread of the tests, whose answers a test decides.

    with http_server.serving(lambda request: Answer(200, b"{}")) as server:
        server.url, server.requests

It listens on 127.0.0.1. Guarantees: requests are kept in the order in which they have come.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclasses.dataclass(frozen=True)
class Request:
    """headers: by their names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclasses.dataclass(frozen=True)
class Answer:
    """body: several parts are sent one by one, each when it comes; then the connection ends. None as the status: the
    connection ends without an answer."""

    status: int | None
    body: bytes | Iterable[bytes] = b""
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)


class Server:
    def __init__(self, answer: Callable[[Request], Answer], port: int = 0) -> None:
        self.requests: list[Request] = []
        self._answer, self._lock = answer, threading.Lock()
        handler = type("Handler", (_Handler,), {"server_of_tests": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/rows"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def answer(self, request: Request) -> Answer:
        with self._lock:
            self.requests.append(request)
        return self._answer(request)

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server_of_tests: Server
    protocol_version = "HTTP/1.1"

    def _any(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server_of_tests.answer(Request(self.command, self.path, headers, body))
        self.close_connection = True
        if answer.status is None:
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if isinstance(answer.body, bytes) and answer.status not in (204, 304):
            self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Connection", "close")
        self.end_headers()
        with contextlib.suppress(OSError):  # the client has gone
            for part in [answer.body] if isinstance(answer.body, bytes) else answer.body:
                self.wfile.write(part)
                self.wfile.flush()

    do_GET = do_POST = do_PUT = do_PATCH = _any

    def log_message(self, format: str, *args: Any) -> None:
        """Tests are quiet."""


@contextlib.contextmanager
def serving(answer: Callable[[Request], Answer], port: int = 0) -> Iterator[Server]:
    with contextlib.closing(Server(answer, port)) as server:
        yield server
