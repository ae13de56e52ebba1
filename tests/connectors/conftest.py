"""A private object store for the tests of connectors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

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
