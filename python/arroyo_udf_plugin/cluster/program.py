"""The programs of a cluster: what `arroyo-udf cluster`, `api` and `controller` run.

Guarantees: the database is of this program's revision before anything uses it; a stop lets jobs end with a checkpoint.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

from .configuration import Settings
from .controller import Controller
from .database.changes import Changes
from .database.opened import Database
from .schedulers.embedded import EmbeddedScheduler
from .schedulers.interface import Scheduler
from .schedulers.process import ProcessScheduler
from .serving import Server, listening
from .task import Tell


@contextlib.contextmanager
def opened(settings: Settings) -> Iterator[Database]:
    """The database, migrated."""
    make_private(settings.data)
    with contextlib.closing(Database.open(settings.database_url)) as database:
        database.migrate()
        yield database


def make_private(folder: Path) -> None:
    """A new folder is its user's alone."""
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        os.chmod(folder, 0o700)  # whatever the umask is


@contextlib.contextmanager
def controlling(
    database: Database, settings: Settings, scheduler: Literal["embedded", "process"]
) -> Iterator[Controller]:
    """A controller that runs within the block. scheduler: if the settings do not name one."""
    make: Callable[[Tell], Scheduler] = EmbeddedScheduler
    if (settings.controller.scheduler or scheduler) == "process":
        make = partial(ProcessScheduler, settings=settings)
    controller = Controller(database, settings, make)
    with contextlib.closing(Changes(database, controller.wake)):
        controller.start()
        try:
            yield controller
        finally:
            controller.stop()


@contextlib.contextmanager
def serving(database: Database, settings: Settings, wake: Callable[[], None]) -> Iterator[str]:
    """The API. Yields its address. wake: called after a wish was written."""
    own = listening(settings.api.bind_address, settings.api.http_port)
    scheme = "https" if settings.api.tls_cert is not None else "http"
    host, port = own.getsockname()[:2]
    with Server(_ping, own, settings.api.tls_cert, settings.api.tls_key):
        yield f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


async def _ping(scope: Any, receive: Any, send: Any) -> None:
    """GET /api/v1/ping, and nothing else."""
    if scope["type"] != "http":
        return
    found = scope["path"] == "/api/v1/ping"
    body = b'"Pong"' if found else b'{"error": "Not found"}'
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200 if found else 404, "headers": headers})
    await send({"type": "http.response.body", "body": body})
