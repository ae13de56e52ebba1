"""Apache Flink for the tests: its Python is in an environment of its own (`make test-flink`)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def flink_python() -> Path:
    """The Python of Flink's workers."""
    return Path(os.environ["FLINK_PYTHON"])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("flink")
