"""For how long nodes have to wait for those behind them."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest
from worlds import Story, StorySource, World, batches, once

from arroyo_udf_plugin import Function
from arroyo_udf_plugin.engine.execution import counters
from arroyo_udf_plugin.engine.execution.counters import Blocked
from arroyo_udf_plugin.engine.execution.progress import Progress
from arroyo_udf_plugin.engine.execution.runner import run
from arroyo_udf_plugin.engine.execution.stopping import StopRequest


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(counters, "time", SimpleNamespace(monotonic=lambda: self.now))

    def go(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_what_is_blocked_is_so_until_it_is_not(clock: Clock) -> None:
    blocked = Blocked()
    clock.go(1)
    blocked.note(True)
    clock.go(1)
    blocked.note(True)
    clock.go(1)
    assert blocked.seconds == 2
    blocked.note(False)
    clock.go(1)
    blocked.note(False)
    assert blocked.seconds == 2


@pytest.mark.parametrize("with_function", [False, True])
def test_a_slow_sink_blocks_what_is_before_it_and_a_slow_source_nothing(
    functions: dict[str, Function], clock: Clock, with_function: bool
) -> None:
    world, writes = World(), 0

    def write(batch: pa.RecordBatch) -> None:
        nonlocal writes
        writes += 1
        clock.go(2)

    world.on_write = write
    items = [item for batch in batches(0, 40) for item in (lambda: clock.go(5), batch)]
    story = Story(StorySource({"a": items}), world, [(functions["doubled"], ["n"])] if with_function else ())
    progress = run(story).progress
    assert clock.now == 100 + 4 * 5 + writes * 2
    blocked = [one.subtasks[0].blocked for one in (*progress.sources, *progress.operators)]
    assert blocked[-1] == writes * 2
    assert 0 < blocked[0] <= writes * 2  # it does not wait for the last ones: it has no more rows


def test_a_slow_function_blocks_its_source(functions: dict[str, Function]) -> None:
    """It has all rows that it may have, and answers none."""
    stop = StopRequest()
    rows = pa.record_batch([pa.array(range(1000), pa.int64())], names=["n"])
    story = Story(StorySource({"a": [rows] * 1000}), World(), [(functions["never"], ["n"])])
    seen: list[float] = []

    def watch(progress: Progress) -> None:
        seen.append(progress.sources[0].subtasks[0].blocked)
        assert progress.operators[0].subtasks[0].blocked == 0
        assert seen == sorted(seen)
        assert seen[-1] <= progress.seconds
        if seen[-1] > 0.05:
            once(stop)

    run(story, stop=stop, progress=watch, progress_every=0.01)
    assert seen[-1] > 0.05
