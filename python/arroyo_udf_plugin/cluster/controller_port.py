"""The controller's port, `controller.metrics_port`: for Prometheus, and for programs that restart a controller.

    GET /metrics                          the controller's own
    GET /targets                          the workers that live, as Prometheus discovers them (http_sd_configs)
    GET /workers/JOB/GENERATION/metrics   a worker's: asked of its socket
    GET /health/live                      the controller's thread runs
    GET /health/ready                     the thread runs, and the database answers; tells whether this controller leads

Guarantees: who may ask is decided as for the API (see `security.py`); /health needs no token.
"""

from __future__ import annotations

import http.client
import logging
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .controller import Controller
from .database.opened import Database
from .monitoring.exposition import Exposition
from .monitoring.families import Families, Source
from .monitoring.serving import metrics_of
from .monitoring.stored import by_state
from .schedulers import protocol, worker_files
from .security import App, Guard, Security

_TIMEOUT = 5.0
_log = logging.getLogger(__name__)


def create_app(
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
