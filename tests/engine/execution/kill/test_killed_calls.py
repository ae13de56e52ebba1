"""R10: calls of engines that are killed have the idempotency keys that the next engine's have for the same rows."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.once

CHILD = Path(__file__).with_name("child.py")
ROWS = 3000
FUNCTIONS = """
import asyncio
import os
import random
import signal

from arroyo_udf_plugin import call_info, udf

calls = 0

@udf(ordered=False, allowed_in_flight=50)
async def slowly(n: int) -> int:
    await asyncio.sleep(random.random() / 100)
    return n

@udf(ordered=False, allowed_in_flight=50)
async def pay(n: int) -> int:
    global calls
    await asyncio.sleep(random.random() / 1000)
    with open("calls", "a") as file:
        file.write(f"{n} {call_info().idempotency_key.hex()}\\n")
    calls += 1
    if os.environ.get("DIE_AT") == str(calls):
        os.kill(os.getpid(), signal.SIGKILL)
    return n
"""


@pytest.fixture(scope="module")
def paying(build_plugin: Callable[..., Path]) -> Path:
    return build_plugin(FUNCTIONS, name="paying")


class Engines:
    def __init__(self, folder: Path, plugin: Path) -> None:
        self._folder, self._plugin = folder, plugin
        (folder / "in").mkdir()
        for number in range(3):
            numbers = pa.array(range(number * ROWS // 3, (number + 1) * ROWS // 3))
            pq.write_table(pa.table({"n": numbers}), folder / "in" / f"{number}.parquet")

    def run(self, parallelism: int = 1, moment: str = "never", **checkpoints: Any) -> int:
        """The status of one that goes on where the one before was killed."""
        described = {
            "name": "payments",
            "source": {"type": "files", "paths": [str(self._folder / "in")]},
            "operators": [{"plugin": str(self._plugin), "calls": ["m = slowly(n)", "paid = pay(m)"]}],
            "sinks": [{"type": "parts", "path": str(self._folder / "out")}],
            "checkpoints": {"place": str(self._folder / "state"), **checkpoints},
            "parallelism": parallelism,
        }
        (self._folder / "pipeline.json").write_text(json.dumps(described))
        resume = ["--resume"] if (self._folder / "state").exists() else []
        command = [sys.executable, str(CHILD), "pipeline.json", moment, "0", *resume]
        return subprocess.run(command, cwd=self._folder, stdout=subprocess.DEVNULL).returncode

    def keys(self) -> dict[int, set[str]]:
        """Of each row, in all calls."""
        found: dict[int, set[str]] = defaultdict(set)
        for line in (self._folder / "calls").read_text().splitlines():
            row, key = line.split()
            found[int(row)].add(key)
        return found


def check(keys: dict[int, set[str]]) -> None:
    assert keys.keys() == set(range(ROWS))
    assert [row for row, own in keys.items() if len(own) > 1] == [], "a row has one key"
    assert len({key for own in keys.values() for key in own}) == ROWS, "and no other row has it"


@pytest.mark.parametrize("parallelism", [1, 3])
def test_before_the_first_checkpoint(
    tmp_path: Path, paying: Path, parallelism: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines = Engines(tmp_path, paying)
    monkeypatch.setenv("DIE_AT", "1500")
    assert engines.run(parallelism, every=3600) == -signal.SIGKILL
    monkeypatch.delenv("DIE_AT")
    assert engines.run(every=3600) == 0
    check(engines.keys())


def test_after_checkpoints_behind_an_unordered_function(
    tmp_path: Path, paying: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines = Engines(tmp_path, paying)
    monkeypatch.setenv("DIE_AT", "900")
    for parallelism in (1, 2, 1):
        assert engines.run(parallelism, every=0.02) == -signal.SIGKILL
    monkeypatch.delenv("DIE_AT")
    assert engines.run(2, every=0.02) == 0
    check(engines.keys())
