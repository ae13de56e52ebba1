"""Apache Flink for the tests: its Python is in an environment of its own (`make test-flink`).

All tests share one session cluster, as `arroyo-udf flink up` starts it: two TaskManagers with two slots each, a
JobManager that goes on with its jobs when it is killed, and S3.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sessions import Session, session

import object_store_server

sys.path.append(str(Path(__file__).parents[1] / "connectors"))

import kafka_broker

Described = Callable[..., dict[str, Any]]

_DESCRIBE = """
import json, sys
from arroyo_udf_plugin.engine.pipeline.description import described
from arroyo_udf_plugin.engine.planner.script import Script
text, *libraries = sys.argv[1:]
print(json.dumps(described(Script("query.sql", text, libraries).pipeline)))
"""


@pytest.fixture(scope="session")
def flink_python() -> Path:
    """The Python of Flink's workers."""
    return Path(os.environ["FLINK_PYTHON"])


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object_store_server.Server]:
    """An S3 server, which this process's environment and Flink's name. It has the bucket `flink`. Leave it running."""
    with (
        object_store_server.server(tmp_path_factory.mktemp("s3")) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in server.environment.items():
            patch.setenv(name, value)
        server.bucket("flink")
        yield server


@pytest.fixture(scope="session")
def shared_session(
    flink_python: Path, s3_server: object_store_server.Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Session]:
    s3 = {"endpoint": s3_server.address, "path-style-access": "true", "region": "us-east-1"}
    settings = [word for key, value in s3.items() for word in ("--config", f"s3.{key}={value}")]
    jars = [word for name in ("FLINK_S3", "FLINK_KAFKA") for word in ("--jar", os.environ[name])]
    options = ("--taskmanagers", 2, "--slots", 2, "--ha", *jars, *settings)
    with session(tmp_path_factory.mktemp("flink"), flink_python, *options) as cluster:
        yield cluster


@pytest.fixture
def session_cluster(shared_session: Session, request: pytest.FixtureRequest) -> Iterator[Session]:
    """The cluster of all tests, with all of its slots. Jobs of the test are cancelled at its end."""
    shared_session.await_slots(4)
    yield shared_session
    if request.session.testsfailed:
        print(shared_session.told())
    for job in shared_session.jobs:
        job.cancel()
    shared_session.jobs.clear()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kafka_broker.Broker]:
    """A broker of Kafka. Leave it running."""
    with kafka_broker.broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def build_for_flink(flink_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Builds a Python source for the Python of Flink's workers."""
    folder = tmp_path_factory.mktemp("functions")

    def build(text: str, name: str = "functions") -> Path:
        source = folder / f"{name}.py"
        source.write_text(text)
        subprocess.run([flink_python, "-m", "arroyo_udf_plugin.cli", "build", source], check=True)
        return folder / f"lib{name}.so"

    return build


@pytest.fixture(scope="session")
def described(flink_python: Path) -> Described:
    """described(query, library, ...): the description of a query, by the Python that opens its libraries."""

    def describe(query: str, *libraries: Path) -> dict[str, Any]:
        command = [flink_python, "-c", _DESCRIBE, query, *libraries]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        content: dict[str, Any] = json.loads(done.stdout)
        return content

    return describe


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("flink")
