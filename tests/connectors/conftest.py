"""Servers for all tests of this folder, which `make test-connectors` runs."""

from __future__ import annotations

from collections.abc import Iterator

import kafka_broker
import pytest
import redis_server


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kafka_broker.Broker]:
    """Leave it running."""
    with kafka_broker.broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[redis_server.Server]:
    """Leave it running."""
    with redis_server.server(tmp_path_factory.mktemp("redis")) as server:
        yield server
