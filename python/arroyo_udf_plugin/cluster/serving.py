"""A server of an ASGI app in a thread of its own.

with Server(app, listening("127.0.0.1", 5115)) as server: ...          it answers within the block
"""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Any

import uvicorn

from ..errors import InvalidArgument, InvalidState

_PATIENCE = 5.0
"""Seconds for requests to end, at the end."""


def listening(address: str, port: int) -> socket.socket:
    """Raises InvalidArgument if nobody can listen there."""
    try:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return socket.create_server((address, port), family=family)
    except OSError as error:
        raise InvalidArgument(f"cannot listen on {address}:{port}: {error.strerror}: choose another port") from error


class Server:
    def __init__(self, app: Any, own: socket.socket, certificate: Path | None = None, key: Path | None = None) -> None:
        self._socket = own
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            interface="asgi3",
            lifespan="on",
            ssl_certfile=certificate,
            ssl_keyfile=None if key is None else str(key),
            timeout_graceful_shutdown=int(_PATIENCE),
            server_header=False,
        )
        self._server = _Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([own],), name="arroyo-udf-server", daemon=True)

    def __enter__(self) -> Server:
        self._thread.start()
        self._server.is_ready.wait()
        if not self._server.started:
            self._thread.join()
            self._socket.close()
            raise InvalidState("the server has not started: its log says why")
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


class _Server(uvicorn.Server):
    """is_ready: it answers, or has failed."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        finally:
            self.is_ready.set()
