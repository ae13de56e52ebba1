"""The programs of a cluster: what `arroyo-udf cluster`, `api` and `controller` run.

Guarantees: the database is of this program's revision before anything uses it; a stop lets jobs end with a checkpoint.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ..connectors.location import confined_to
from . import private_files
from .api import create_app
from .api.health import login_path
from .api.parts import Parts
from .client import ADDRESS
from .configuration import ApiSettings, Settings
from .controller import Controller
from .controller_port import create_app as create_port
from .controller_port import jobs_of
from .database import places
from .database.changes import Changes
from .database.opened import Database, LogKept
from .monitoring.exposition import Exposition
from .monitoring.families import Source
from .monitoring.measured import Measured
from .monitoring.pushing import CONTROLLER, Gateway
from .monitoring.spans import TracedRequests
from .monitoring.tracing import Tracing
from .schedulers.interface import Scheduler
from .schedulers.isolating import IsolatingScheduler
from .schedulers.process import ProcessScheduler
from .security import App
from .security import configured as secured
from .serving import Server, listening
from .task import Tell
from .tokens import OWNER, Caller

_log = logging.getLogger(__name__)


@contextlib.contextmanager
def opened(settings: Settings) -> Iterator[Database]:
    """The database, migrated; each job in it has the place of its state."""
    make_private(settings.data)
    with contextlib.closing(Database.open(settings.database_url, settings.key_file, log_kept(settings))) as database:
        database.migrate()
        with database.begin() as session:
            places.decide(session, settings.checkpoints)
        yield database


def log_kept(settings: Settings) -> LogKept:
    return LogKept(settings.limits.log_entries, settings.limits.log_entry_bytes)


def make_private(folder: Path) -> None:
    """A new folder is its user's alone."""
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        os.chmod(folder, 0o700)  # whatever the umask is


@contextlib.contextmanager
def controlling(database: Database, settings: Settings) -> Iterator[Controller]:
    """A controller that runs within the block."""
    measured = Measured()

    is_embedded = settings.controller.scheduler == "embedded"
    threads = partial(IsolatingScheduler, settings=settings, heard=measured.note)
    make: Callable[[Tell], Scheduler] = threads if is_embedded else partial(ProcessScheduler, settings=settings)
    roots = settings.files.roots or None if is_embedded else None
    controller = Controller(database, settings, make)
    exposition = Exposition([jobs_of(controller, database), controller.tell, measured.tell])
    with (
        confined_to(roots),
        _monitored(controller, database, settings, exposition),
        contextlib.closing(Changes(database, controller.wake)),
    ):
        controller.start()
        try:
            yield controller
        finally:
            controller.stop()


@contextlib.contextmanager
def _monitored(
    controller: Controller, database: Database, settings: Settings, exposition: Exposition
) -> Iterator[None]:
    """With the controller's port, and pushes, if there are to be any."""
    port, gateway = settings.controller.metrics_port, Gateway.configured(settings)
    with contextlib.ExitStack() as stack:
        if port is not None:
            app = create_port(controller, database, exposition, settings.data, secured(settings.api, settings.data))
            address = stack.enter_context(_answering(app, settings.api, port))
            _log.info("metrics of the controller: %s/metrics", address)
        if gateway is not None:
            stack.enter_context(gateway.pushing(exposition, CONTROLLER, f"{socket.gethostname()}:{os.getpid()}"))
        yield


class Served(NamedTuple):
    """An API that answers. login: an address that logs a browser in, once; None: it asks nobody who he is."""

    address: str
    login: str | None


@contextlib.contextmanager
def serving(
    database: Database,
    settings: Settings,
    wake: Callable[[], None],
    sources: Sequence[Source] = (),
    is_controlled: Callable[[], bool] = lambda: True,
) -> Iterator[Served]:
    """The API. wake: called after a wish was written. sources: metrics of this process.
    is_controlled: see `Parts`."""
    parts = Parts.configured(database, settings, wake, sources)
    parts = dataclasses.replace(parts, is_controlled=is_controlled)
    with contextlib.closing(Tracing(settings.traces.endpoint, "api")) as tracing:
        traced = TracedRequests(create_app(parts), tracing)
        with _answering(traced, settings.api, settings.api.http_port) as address:
            private_files.replace(settings.data / ADDRESS, f"{address}\n".encode())
            login = None if settings.api.no_token else address + login_path(parts.logins.new(Caller(OWNER, "admin")))
            yield Served(address, login)


@contextlib.contextmanager
def _answering(app: App, api: ApiSettings, port: int) -> Iterator[str]:
    """Yields the address."""
    own = listening(api.bind_address, port)
    scheme = "https" if api.tls_cert is not None else "http"
    host, port = own.getsockname()[:2]
    with Server(app, own, api.tls_cert, api.tls_key):
        yield f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
