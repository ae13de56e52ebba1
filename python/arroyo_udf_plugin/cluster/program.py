"""The programs of a cluster: what `arroyo-udf cluster`, `api` and `controller` run.

Guarantees: the database is of this program's revision before anything uses it; a stop lets jobs end with a checkpoint.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Literal

from .api import create_app
from .api.parts import Parts
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
    with contextlib.closing(Database.open(settings.database_url, settings.key_file)) as database:
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
    app = create_app(Parts.configured(database, settings, wake))
    own = listening(settings.api.bind_address, settings.api.http_port)
    scheme = "https" if settings.api.tls_cert is not None else "http"
    host, port = own.getsockname()[:2]
    with Server(app, own, settings.api.tls_cert, settings.api.tls_key):
        yield f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
