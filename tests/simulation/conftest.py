from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from arroyo_udf_plugin.engine.execution import runner

MEMORY = Path("/dev/shm")  # where there is one, a simulated disk needs no real one


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """An engine that has crashed closes nothing: its files and connections are collected some time later."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as made:
        yield Path(made) / "world"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice that has not ended half a second after a stop keeps its files open. No function here blocks one, so a
    machine that is busy may take longer."""
    monkeypatch.setattr(runner, "_CUT_OFF", 60.0)
