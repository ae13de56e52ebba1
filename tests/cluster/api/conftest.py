"""The API over a new database, with real child processes; and pipelines as the controller would leave them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from asgi_client import Client
from clusters import Cluster, settings_in

from arroyo_udf_plugin.cluster.api import create_app
from arroyo_udf_plugin.cluster.api.dependencies import ApiParts
from arroyo_udf_plugin.cluster.database import pipelines
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.database.models import JobStatus
from arroyo_udf_plugin.cluster.database.pipelines import WholeJob
from arroyo_udf_plugin.cluster.functions.builder import Builder
from arroyo_udf_plugin.cluster.job_program import JobProgram
from arroyo_udf_plugin.cluster.records import Records
from arroyo_udf_plugin.cluster.serving import Server, listening


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests whose requests start child processes take long."""
    for item in items:
        if "shared" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.cluster)


CACHE = Path(__file__).resolve().parents[3] / "build" / "cache"


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """An API that all tests share: they use names of their own."""
    folder = tmp_path_factory.mktemp("api")
    database = Database.open(f"sqlite:///{folder / 'cluster.sqlite'}")
    database.migrate()
    builder = Builder(folder / "functions", cache=CACHE)
    with Client(create_app(ApiParts(database, builder, Records(folder)))) as client:
        client.database = database
        yield client
        client.run(builder.close())
    database.close()


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Of a whole cluster that listens, which all tests share: they use names of their own."""
    folder = tmp_path_factory.mktemp("cluster")
    settings = settings_in(folder)
    database = Database.open(settings.database_url)
    database.migrate()
    cluster = Cluster(database, settings)
    parts = ApiParts(
        database,
        Builder(folder / "functions", cache=CACHE),
        Records.configured(settings),
        wake=cluster.controller.wake,
        checkpoints=settings.checkpoints,
    )
    own = listening("127.0.0.1", 0)
    with Server(create_app(parts), own), httpx.Client(base_url=f"http://127.0.0.1:{own.getsockname()[1]}") as client:
        client.timeout = httpx.Timeout(60)
        yield client
    cluster.close()
    database.close()


@pytest.fixture
def woken() -> list[str]:
    """An entry for each time that the controller was woken."""
    return []


@pytest.fixture
def api(database: Database, records: Records, tmp_path: Path, woken: list[str]) -> Iterator[Client]:
    """An API of one test. No child process is started, unless a request needs one."""
    builder = Builder(tmp_path / "functions", cache=CACHE)
    parts = ApiParts(database, builder, records, wake=lambda: woken.append("woken"))
    with Client(create_app(parts)) as client:
        yield client
        client.run(builder.close())


Stored = Callable[..., WholeJob]


@pytest.fixture
def stored(database: Database) -> Stored:
    """Stores a pipeline whose job is in a state: stored("Running", stop="none", is_preview=False, ...)."""

    def store(state: str = "Running", stop: str = "none", facts: dict[str, Any] | None = None, **more: Any) -> WholeJob:
        with database.begin() as session:
            whole = pipelines.create(
                session,
                **{
                    "name": "flights",
                    "query": "SELECT 1",
                    "program": JobProgram({"sinks": [{}]}, {}),
                    "graph": GRAPH,
                    "checkpoint_interval_micros": 10_000_000,
                }
                | more,
            )
            status = session.get(JobStatus, whole.job.id)
            assert status is not None
            status.state = state
            for name, value in (facts or {}).items():
                setattr(status, name, value)
            whole.job.stop = stop
            return whole

    return store


GRAPH = {
    "nodes": [
        {"node_id": 0, "operator": "impulse", "description": "source impulse", "parallelism": 1, "alone": False},
        {"node_id": 1, "operator": "AsyncUdf", "description": "town", "parallelism": 1, "alone": False},
        {"node_id": 2, "operator": "preview", "description": "sink preview", "parallelism": 1, "alone": True},
    ],
    "edges": [
        {"src_id": 0, "dest_id": 1, "key_type": "()", "value_type": "()", "edge_type": "Forward"},
        {"src_id": 1, "dest_id": 2, "key_type": "()", "value_type": "()", "edge_type": "Forward"},
    ],
}
