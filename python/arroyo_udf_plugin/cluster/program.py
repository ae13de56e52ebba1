"""The programs of a cluster: what `arroyo-udf cluster`, `api` and `controller` run.

The controller has a port of its own, `controller.metrics_port`, for Prometheus, and for programs that restart it:

    GET /metrics                          the controller's own
    GET /targets                          the workers that live, as Prometheus discovers them (http_sd_configs)
    GET /workers/JOB/GENERATION/metrics   a worker's: asked of its socket
    GET /health/live                      the controller's thread runs
    GET /health/ready                     the thread runs, and the database answers; tells whether this controller leads

Guarantees: the database is of this program's revision before anything uses it; a stop lets jobs end with a checkpoint.
Who may ask the controller's port is decided as for the API (see `security.py`); /health needs no token.
"""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import logging
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ..engine.connectors.location import confined_to
from ..errors import InvalidArgument
from . import private_files
from .api import create_app
from .api.dependencies import ApiParts
from .api.health import login_path, metrics_of
from .client import ADDRESS
from .configuration import ApiSettings, Settings
from .controller.controller import Controller
from .database import places
from .database.database import Changes, Database, LogKept
from .monitoring.exposition import CONTROLLER, Exposition, Gateway
from .monitoring.metrics import Families, Measured, Source
from .monitoring.stored import by_state
from .monitoring.tracing import TracedRequests, Tracing
from .schedulers import protocol, worker_files
from .schedulers.interface import Scheduler
from .security import App, Guard, Security
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

    roots = None
    make: Callable[[Tell], Scheduler]
    # Imported here, because the engine takes a tenth of a second that a controller of processes does not need.
    if settings.controller.scheduler == "embedded":
        from .schedulers.embedded import IsolatingScheduler

        make = partial(IsolatingScheduler, settings=settings, heard=measured.note)
        roots = settings.files.roots or None
    else:
        from .schedulers.process import ProcessScheduler

        make = partial(ProcessScheduler, settings=settings)
    controller = Controller(database, settings, make, elsewhere=_elsewhere(settings))
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


def _elsewhere(settings: Settings) -> dict[str, Callable[[Tell], Scheduler]]:
    """The schedulers of other machines that are configured, by name."""
    made: dict[str, Callable[[Tell], Scheduler]] = {}
    if settings.controller.scheduler == "kubernetes":
        made["flink"] = _kubernetes(settings)
    elif settings.flink.url is not None or settings.controller.scheduler == "flink":
        from .schedulers.flink.scheduler import FlinkScheduler

        made["flink"] = partial(FlinkScheduler, settings=settings.flink)
    return made


def _kubernetes(settings: Settings) -> Callable[[Tell], Scheduler]:
    try:
        from .schedulers.kubernetes.scheduler import KubernetesScheduler
    except ImportError as error:
        raise InvalidArgument("Kubernetes needs lightkube: pip install 'arroyo_udf_plugin[kubernetes]'") from error
    return partial(KubernetesScheduler, settings=settings.kubernetes)


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
    is_controlled: see `ApiParts`."""
    parts = ApiParts.configured(database, settings, wake, sources)
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


_TIMEOUT = 5.0


def create_port(
    controller: Controller, database: Database, exposition: Exposition, data: Path, security: Security
) -> App:
    port = _Port(controller, database, data)
    routes = [
        Route("/metrics", metrics_of(exposition)),
        Route("/targets", port.targets),
        Route("/workers/{job_id}/{generation:int}/metrics", port.worker),
        Route("/health/live", port.live),
        Route("/health/ready", port.ready),
    ]
    return Guard(Starlette(routes=routes), security)


def jobs_of(controller: Controller, database: Database) -> Source:
    """Jobs are counted by the controller that leads, so that two of them are not added up."""
    count = by_state(database)

    def tell(families: Families) -> None:
        if controller.leads:
            count(families)

    return tell


class _Port:
    def __init__(self, controller: Controller, database: Database, data: Path) -> None:
        self._controller, self._database = controller, database
        self._folder = protocol.folder_of(data.absolute())

    async def targets(self, request: Request) -> JSONResponse:
        """At the address under which the controller was asked, because Prometheus can reach that."""
        host = request.headers["host"]
        return JSONResponse(
            [
                {
                    "targets": [host],
                    "labels": {
                        "__metrics_path__": f"/workers/{job_id}/{generation}/metrics",
                        "__scheme__": request.url.scheme,
                        "instance": worker_files.name_of(job_id, generation),
                    },
                }
                for job_id, generation in self._controller.workers()
            ]
        )

    async def worker(self, request: Request) -> Response:
        job_id, generation = request.path_params["job_id"], request.path_params["generation"]
        if (job_id, generation) not in self._controller.workers():
            return JSONResponse({"error": f"no worker runs generation {generation} of {job_id}"}, 404)
        try:
            accept = request.headers.get("accept", "")
            return await run_in_threadpool(self._ask, worker_files.socket_name(job_id, generation), accept)
        except (OSError, http.client.HTTPException) as error:
            return JSONResponse({"error": f"the worker of {job_id} does not answer: {error}"}, 502)

    def _ask(self, socket: str, accept: str) -> Response:
        connection = protocol.Connection(self._folder, _TIMEOUT, socket)
        try:
            connection.request("GET", "/metrics", headers={"Accept": accept})
            answer = connection.getresponse()
            return Response(answer.read(), answer.status, {"content-type": answer.headers["content-type"]})
        finally:
            connection.close()

    async def live(self, request: Request) -> JSONResponse:
        if self._controller.is_alive:
            return JSONResponse({"status": "live"})
        return JSONResponse({"error": "the controller has ended: start it again"}, 503)

    async def ready(self, request: Request) -> JSONResponse:
        if not self._controller.is_alive:
            return await self.live(request)
        try:
            await run_in_threadpool(self._database.check)
        except Exception as error:
            _log.warning("the database cannot be used: %s", error)  # who asks needs no token: addresses are not told
            return JSONResponse({"error": "the database cannot be used: the log says why"}, 503)
        return JSONResponse({"status": "leads" if self._controller.leads else "stands by"})
