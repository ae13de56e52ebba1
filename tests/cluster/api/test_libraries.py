"""Functions of pipelines are stored once, and go with the last one that has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from asgi_client import Client

from arroyo_udf_plugin.cluster.api import create_app
from arroyo_udf_plugin.cluster.api.dependencies import ApiParts
from arroyo_udf_plugin.cluster.database import jobs, pipelines
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.database.models import JobStatus
from arroyo_udf_plugin.cluster.functions import builder as builder_module
from arroyo_udf_plugin.cluster.functions.builder import Builder
from arroyo_udf_plugin.cluster.records import Records
from arroyo_udf_plugin.engine.execution.store import Store, open_store
from arroyo_udf_plugin.errors import InvalidArgument

pytestmark = pytest.mark.cluster

CACHE = Path(__file__).resolve().parents[3] / "build" / "cache"
ONE = "from arroyo_udf_plugin import udf\n\n@udf\ndef one(n: int) -> int:\n    return 1\n"
QUERY = "CREATE TABLE ticks (counter BIGINT) WITH (connector = 'impulse'); SELECT one(counter) AS n FROM ticks;"
BODY = {"name": "p", "query": QUERY, "parallelism": 1, "udfs": [{"definition": ONE, "language": "python"}]}


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "artifacts")


@pytest.fixture
def store(place: str) -> Store:
    return open_store(place)


@pytest.fixture
def client(database: Database, tmp_path: Path, place: str) -> Iterator[Client]:
    builder = Builder(tmp_path / "functions", cache=CACHE, artifacts=place)
    with Client(create_app(ApiParts(database, builder, Records(tmp_path), checkpoints="/state"))) as client:
        yield client
        client.run(builder.close())


def names(database: Database, pipeline_id: str) -> list[str]:
    """What its program calls its libraries."""
    with database.read() as session:
        program: dict[str, Any] = pipelines.get(session, pipeline_id).pipeline.program
    operators = [one["plugin"] for one in program["pipeline"]["operators"] if "plugin" in one]
    assert operators == list(program["artifacts"])
    return operators


def test_a_query_over_all_rows_takes_its_libraries_along(
    client: Client, database: Database, store: Store, tmp_path: Path
) -> None:
    """Its operator names one for each function."""
    (tmp_path / "trips.csv").write_text("n\n1\n")
    query = f"""CREATE TABLE trips (n BIGINT) WITH
      (connector = 'filesystem', path = '{tmp_path}/trips.csv', format = 'csv', type = 'source');
    CREATE TABLE out WITH (connector = 'filesystem', path = '{tmp_path}/out', format = 'csv');
    INSERT INTO out SELECT n, one(n) AS m FROM trips ORDER BY n DESC;"""
    made = client.post("/api/v1/pipelines", json=BODY | {"query": query})
    assert made.status_code == 200, made.text
    with database.read() as session:
        program = pipelines.get(session, made.json()["id"]).program
    (name,) = program.artifacts
    assert [f"{store.place}/{one}" for one in store.names("")] == [name]
    assert [one["functions"] for one in program.pipeline["operators"] if "functions" in one] == [{"one": name}]


def left(database: Database) -> set[str]:
    """Places that are to be removed, without those of state."""
    with database.read() as session:
        return {place for place in jobs.leftovers(session) if not place.startswith("/state/")}


def test_a_function_is_stored_once_and_goes_with_the_last_one_that_has_it(
    client: Client, database: Database, store: Store, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    udf = client.post("/api/v1/udfs", json={"prefix": "/", "definition": ONE, "language": "python"}).json()
    first, second = (client.post("/api/v1/pipelines", json=BODY).json()["id"] for _ in range(2))
    [name] = names(database, first)
    assert names(database, second) == [name]
    assert [f"{store.place}/{one}" for one in store.names("")] == [name]
    with database.begin() as session:
        session.execute(sqlalchemy.update(JobStatus).values(state="Failed"))
    for gone in (f"udfs/{udf['id']}", f"pipelines/{first}"):
        assert client.delete(f"/api/v1/{gone}").status_code == 200
        assert left(database) == set()
    assert client.delete(f"/api/v1/pipelines/{second}").status_code == 200
    assert left(database) == {name.rpartition("/")[0]}

    [other] = names(database, client.post("/api/v1/pipelines", json=BODY).json()["id"])
    assert other != name  # whoever removes the old one does not take it away
    assert len(store.names("")) == 2

    monkeypatch.setattr(builder_module, "store", refusing)
    answer = client.post("/api/v1/pipelines", json=BODY)
    assert (answer.status_code, answer.json()) == (503, {"error": "the functions cannot be stored: no answer"})


def refusing(*_: Any) -> str:
    raise InvalidArgument("no answer")
