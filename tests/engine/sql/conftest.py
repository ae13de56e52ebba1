from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sql_world import FUNCTIONS, write_flights


@pytest.fixture(scope="session")
def plugin(build_plugin: Callable[..., Path]) -> Path:
    return build_plugin(FUNCTIONS, name="story")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plugin: Path) -> Path:
    """With the flights, and the functions as functions.so."""
    monkeypatch.chdir(tmp_path)
    write_flights(tmp_path)
    (tmp_path / "functions.so").symlink_to(plugin)
    return tmp_path
