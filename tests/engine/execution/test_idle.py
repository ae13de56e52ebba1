"""An engine to which nothing comes: it does nothing, and is there as soon as something comes."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pytest
from waiting import until
from worlds import EOF, Gate, MemoryStore, Story, StorySource, World, epochs_in, epochs_of

from arroyo_udf_plugin import Function
from arroyo_udf_plugin.engine.execution.manifest import Manifest
from arroyo_udf_plugin.engine.execution.progress import PipelineSummary, Progress
from arroyo_udf_plugin.engine.execution.runner import Interval, run
from arroyo_udf_plugin.engine.execution.stopping import StopRequest

EVERY = 0.002  # seconds, of epochs and reports


class Engine(threading.Thread):
    """Runs a story, and counts what it does."""

    def __init__(self, story: Story, only_moves: bool = True) -> None:
        super().__init__(daemon=True)
        self._story, self._only_moves = story, only_moves
        self.world, self.store, self.stop = story.world, MemoryStore(), StopRequest(timeout=60)
        self.reports: list[Progress] = []
        self.summary: PipelineSummary | None = None
        self.start()

    def run(self) -> None:
        self.summary = run(
            self._story,
            checkpoints=self.store,
            interval=Interval(EVERY),
            stop=self.stop,
            progress=self.reports.append,
            progress_every=EVERY,
            only_moves=self._only_moves,
        )

    @property
    def positions(self) -> Mapping[str, Mapping[str, object]]:
        """Of the latest epoch."""
        number = epochs_in(list(self.store.files))[-1]
        return Manifest.read(self.store.files[f"epochs/{number:010}.json"], number, "").positions

    def end(self) -> PipelineSummary:
        self.stop.request()
        self.join(60)
        assert self.summary is not None
        return self.summary


@pytest.fixture
def busy(functions: dict[str, Function]) -> Iterator[Engine]:
    """One whose row is never answered, so its beats go on: the clock of a test."""
    source = StorySource({"a": [[1], Gate()]})
    engine = Engine(Story(source, World(), [(functions["never"], ["n"])], options={"timeout": math.inf}))
    until(lambda: engine.world.seals > 0, "an epoch")
    yield engine
    engine.stop.request()
    engine.stop.request()
    engine.join(60)


def beats(busy: Engine, number: int) -> None:
    """Waits so long."""
    seals, reports = busy.world.seals + number, len(busy.reports) + number
    until(lambda: busy.world.seals >= seals and len(busy.reports) >= reports, f"{number} beats")


def test_while_nothing_moves_there_are_no_epochs_and_no_reports(busy: Engine) -> None:
    gate = Gate()
    idle = Engine(Story(StorySource({"a": [[1], gate, [2], Gate()]}), World()))
    until(lambda: idle.world.shown() == [1], "the first row")
    beats(busy, 5)
    seals, reports = idle.world.seals, len(idle.reports)
    beats(busy, 30)
    assert (idle.world.seals, len(idle.reports)) == (seals, reports)
    gate.open()
    until(lambda: idle.world.shown() == [1, 2], "the row after the pause")
    until(lambda: idle.reports[-1].rows_out == 2, "a report of it")
    assert idle.end().ended == "resumable"


def test_reports_go_on_for_whoever_shows_a_clock() -> None:
    engine = Engine(Story(StorySource({"a": [Gate()]}), World()), only_moves=False)
    until(lambda: len(engine.reports) > 20, "reports")
    engine.end()


def test_while_a_sink_does_not_take_its_rows_reports_go_on() -> None:
    """They say for how long the rows have waited."""
    world, opened = World(), threading.Event()

    def wait(batch: pa.RecordBatch) -> None:
        assert opened.wait(60)

    world.on_write = wait
    engine = Engine(Story(StorySource({"a": [[1], Gate()]}), world))
    until(lambda: len(engine.reports) > 20, "reports")
    assert world.shown() == []
    opened.set()
    assert engine.end().ended == "resumable"


def test_rows_that_are_not_answered_are_looked_at_again_and_not_written_again(busy: Engine) -> None:
    """Time passes for them without a turn of their slice; an epoch that is as the one before is not written."""
    beats(busy, 10)
    assert epochs_of(busy.store) <= 2


def test_the_end_of_a_file_is_in_an_epoch() -> None:
    """Also without a row after it: else a resumed engine would open the file again."""
    gate = Gate()
    source = StorySource({"a": [[1], gate, EOF]})
    source.watch = 3600.0
    engine = Engine(Story(source, World()))
    until(lambda: engine.world.shown() == [1], "the first row")
    gate.open()
    until(lambda: engine.positions["a"]["next"] == 3, "the position after the end")
    engine.end()
