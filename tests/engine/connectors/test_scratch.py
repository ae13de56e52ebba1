"""The folder of a process for files on their way into an object store."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from arroyo_udf_plugin.engine.connectors import scratch


def test_threads_that_come_at_once_have_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    scratch._made.cache_clear()
    start = threading.Barrier(8)
    found: list[Path] = []

    def ask() -> None:
        start.wait()
        found.append(scratch.scratch())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert list(tmp_path.iterdir()) == found[:1]
    scratch._made.cache_clear()
