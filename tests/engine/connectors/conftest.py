"""A private object store and databases, for the tests of connectors."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tables import ON_POSTGRESQL

import object_store_server


@pytest.fixture(scope="session")
def object_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object_store_server.Server]:
    """An S3 server, which the process's environment names. Leave it running."""
    with (
        object_store_server.server(tmp_path_factory.mktemp("object_store")) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in server.environment.items():
            patch.setenv(name, value)
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=ON_POSTGRESQL)])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a database without tables."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'rows.db'}"
    address: str = request.getfixturevalue("postgresql")
    return address


@pytest.fixture
def name() -> str:
    """Of a table."""
    return f"t{uuid.uuid4().hex}"
