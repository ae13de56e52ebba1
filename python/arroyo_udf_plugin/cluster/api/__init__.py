"""The REST API: Arroyo's endpoints, over the database. It writes wishes and reads facts; it holds nothing by itself.

__init__.py       the app
dependencies.py   what endpoints work with; limits that all users share, pages of lists
shapes/           what requests and answers look like
pipelines.py, jobs.py, checkpoints.py, output.py, udfs.py, connectors.py, profiles.py, tables.py, health.py
                  the endpoints, one file for each thing; pipelines.py also knows idempotency keys of requests
own/              what our web page needs beyond that; page.py: its files
placing.py        on which scheduler a job runs, and its move to another
queries.py        a query with the functions and tables that it may use
create_table.py   a saved table as a CREATE TABLE
responses.py      rows of the database as answers
failures.py       answers of requests that fail
streams.py        streams of rows wait for something new, together
transport.py      what HTTP promises: HEAD, compression, bodies that can be stored

Guarantees: two processes of it on one database give the same answers. What it has answered is committed. It runs no
code of users, but imports the connectors of installed packages.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from functools import partial

import fastapi
from starlette.applications import Starlette
from starlette.routing import Mount, Route

from ...version import __version__
from ..functions.fair_queue import Busy
from ..monitoring.exposition import Exposition
from ..monitoring.stored import by_state, from_database
from ..security import App, Guard
from . import failures, health, own, page
from .checkpoints import router as checkpoints
from .connectors import router as connectors
from .dependencies import ApiParts
from .health import metrics_of
from .health import router as ping
from .jobs import router as jobs
from .output import router as output
from .pipelines import router as pipelines
from .profiles import router as profiles
from .tables import router as tables
from .transport import Transport
from .udfs import router as udfs

_ORGANIZATION = "/v1/admin/organizations/{organization_id}"


def create_app(parts: ApiParts) -> App:
    """The API as an ASGI app, below /api, with /metrics and /health beside it."""
    api = fastapi.FastAPI(
        title="Arroyo UDF",
        version=__version__,
        openapi_url="/v1/api-docs/openapi.json",
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        servers=[{"url": "/api/"}],
        root_path_in_servers=False,
        responses=failures.RESPONSES,
        redirect_slashes=False,
    )
    api.state.parts = parts
    failures.install(api)
    api.add_exception_handler(Busy, _busy)
    api.openapi = partial(failures.document, api)  # type: ignore[method-assign]
    for router in (ping, connectors, profiles, tables, udfs, pipelines, jobs, checkpoints, output):
        api.include_router(router, prefix="/v1")
    api.include_router(own.router, prefix="/v1")
    for router in (pipelines, jobs, checkpoints, output):
        organization = [fastapi.Depends(_our_organization)]
        api.include_router(router, prefix=_ORGANIZATION, dependencies=organization, include_in_schema=False)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        parts.builder.prepare()
        yield
        await parts.builder.close()

    known = [from_database(parts.database, parts.records), by_state(parts.database), parts.quotas.tell, *parts.sources]
    routes = [
        Route("/health/live", health.live),
        Route("/health/ready", health.ready),
        Route("/metrics", metrics_of(Exposition(known))),
        Mount("/api", api),
        Route("/{path:path}", page.file),
    ]
    outer = Starlette(routes=routes, lifespan=lifespan)
    outer.state.parts = parts
    app = Transport(outer)
    return app if parts.security is None else Guard(app, parts.security)


async def _busy(request: fastapi.Request, error: Exception) -> fastapi.Response:
    assert isinstance(error, Busy)
    return await failures.refused(request, request.app.state.parts.quotas.refusal_of(error))


async def _our_organization(organization_id: str) -> None:
    """There is one."""
    if organization_id != "org":
        raise failures.Refusal(404, "Organization not found")
