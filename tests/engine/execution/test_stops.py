"""How an engine ends before its source does: errors, fences, stops."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from waiting import until
from worlds import (
    Crashed,
    Gate,
    MemoryStore,
    Story,
    StorySource,
    World,
    batches,
    epochs_in,
    epochs_of,
    once,
)

from arroyo_udf_plugin import Function, load
from arroyo_udf_plugin.engine.execution.progress import PipelineSummary, Progress
from arroyo_udf_plugin.engine.execution.runner import Interval, run
from arroyo_udf_plugin.engine.execution.slice import Slice
from arroyo_udf_plugin.engine.execution.stopping import StopRequest
from arroyo_udf_plugin.errors import Fenced, InvalidArgument, RowError
from arroyo_udf_plugin.host.policy import Policy

OFTEN = Interval(None, rows=1)  # an epoch after each batch, if the one before is over
NEVER = Interval(None, None)


def test_an_error_stops_all_slices_and_says_how_to_go_on(functions: dict[str, Function]) -> None:
    store, world = MemoryStore(), World()
    source = StorySource({"a": [Gate()], "b": [[2, 4], [5]]})
    story = Story(source, world, [(functions["even"], ["n"])], parallelism=2)
    with pytest.raises(RowError, match="5 is odd") as raised:
        run(story, checkpoints=store, interval=NEVER)
    assert raised.value.__notes__ == ["Nothing was committed: begin again."]
    assert not store.files
    with pytest.raises(RowError) as raised:
        run(Story(source, world, story.functions, parallelism=2))
    assert "no checkpoints, so nothing can be resumed" in raised.value.__notes__[0]
    assert world.shown() == []


def test_an_error_after_an_epoch_names_it(functions: dict[str, Function]) -> None:
    store, world, gate = MemoryStore(), World(), Gate()
    world.on_apply = gate.open
    source = StorySource({"a": [[2], gate, [5]]})
    with pytest.raises(RowError) as raised:
        run(Story(source, world, [(functions["even"], ["n"])]), checkpoints=store, interval=OFTEN)
    (note,) = raised.value.__notes__
    assert note.startswith(f"Everything up to epoch {epochs_of(store)} is committed. To go on from there: --resume.")
    assert world.shown() == [2]


def test_a_sink_that_fails_to_store_stops_the_engine_before_the_epoch() -> None:
    store, world = MemoryStore(), World()

    def fail() -> None:
        raise OSError("no space left on device")

    world.on_store = fail
    source = StorySource({"a": batches(0, 30)})
    with pytest.raises(OSError, match="no space"):
        run(Story(source, world), checkpoints=store, interval=OFTEN)
    assert epochs_in(store.files) == [1]
    world.on_store = lambda: None
    run(Story(source, world), checkpoints=store, resume=True)
    assert world.shown() == list(range(30))


@pytest.mark.parametrize("failing", ["sink", "source", "bad record"])
def test_an_epoch_that_is_due_while_a_row_fails_does_not_lose_it(
    failing: str, functions: dict[str, Function], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slice is asked for its moment while the step is under way that fails, with rows between two stages."""
    slices: set[Slice] = set()
    seal = Slice.seal

    def noted(self: Slice, epoch: int) -> Any:
        slices.add(self)
        return seal(self, epoch)

    def is_asked() -> bool:
        for each in slices:
            each._moved()  # else no epoch would be due, if the one before has everything
        return any(each._asked for each in slices)

    def fail() -> None:
        until(is_asked, "an epoch")
        raise Crashed

    monkeypatch.setattr(Slice, "seal", noted)
    store, world = MemoryStore(), World()
    source = StorySource({"a": [[1], [2], fail if failing == "source" else lambda: None, [3]]})
    calls = [(functions["doubled"], ["n"])]
    story = Story(source, world, calls, sink_names=("out", "copy"))
    if failing == "sink":
        world.on_write = lambda batch: fail() if batch.column(0)[0].as_py() == 2 else None
    if failing == "bad record":
        admit = story.admit
        story.admit = lambda rows: fail() or [] if rows.batch[0][0].as_py() == 2 else admit(rows)  # type: ignore
    with pytest.raises(Crashed):
        run(story, checkpoints=store, interval=Interval(0.005))
    world.on_write = lambda batch: None
    source.items["a"] = [[1], [2], lambda: None, [3]]
    run(Story(source, world, calls, sink_names=("out", "copy")), checkpoints=store, resume=bool(store.files))
    assert world.shown() == world.shown("copy") == [1, 2, 3]


def test_an_older_engine_stops_with_a_clear_error_and_applies_nothing(functions: dict[str, Function]) -> None:
    store, world, gate = MemoryStore(), World(), Gate()
    source = StorySource({"a": [*batches(0, 20), gate, *batches(20, 40)]})
    raised: list[BaseException] = []

    def older() -> None:
        try:
            run(Story(source, world, [(functions["late"], ["n"])]), checkpoints=store, interval=Interval(0.005))
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=older)
    thread.start()
    assert gate.reached.wait(60)
    until(lambda: sorted(world.shown()) == list(range(20)), "the first rows")
    newer = StorySource({"a": [*batches(0, 20), *batches(20, 40)]})
    run(Story(newer, world, [(functions["late"], ["n"])]), checkpoints=store, resume=True)
    gate.open()
    thread.join(60)
    assert isinstance(raised[0], Fenced)
    assert not hasattr(raised[0], "__notes__")
    assert world.shown() == list(range(40))


class Stdin(StorySource):
    name = "-"
    resumable = False


class Printer:
    """A sink without epochs."""

    name = "out"

    def write(self, batch: object) -> None: ...
    def finish(self) -> None: ...
    def close(self) -> None: ...


def test_what_cannot_be_resumed_is_refused_by_name() -> None:
    world = World()
    for resume in (False, True):
        with pytest.raises(InvalidArgument, match="the source - cannot be read again, so it has no checkpoints"):
            run(Story(Stdin({}), world), checkpoints=MemoryStore(), resume=resume)
    with pytest.raises(InvalidArgument, match="--resume needs the place of the checkpoints"):
        run(Story(StorySource({}), world), resume=True)
    story = Story(StorySource({}), world)
    story.sinks = lambda slice, stage: [Printer()]  # type: ignore[method-assign,list-item]
    store = MemoryStore()
    with pytest.raises(InvalidArgument, match="the sink out cannot take back rows, so it has no checkpoints"):
        run(story, checkpoints=store)
    assert not store.files


@pytest.mark.parametrize("interval", [{"seconds": 0.0}, {"rows": 0}, {"seconds": -1.0}])
def test_an_interval_is_above_0(interval: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match="write a number above 0"):
        Interval(**interval)


# ---- Stops -----------------------------------------------------------------------------------------------------------


def test_a_stop_drains_and_can_be_resumed(functions: dict[str, Function]) -> None:
    store, world, stop = MemoryStore(), World(), StopRequest(timeout=60)
    source = StorySource({"a": [*batches(0, 50), stop.request, *batches(50, 100)]})
    calls = [(functions["shuffled"], ["n"])]
    summary = run(Story(source, world, calls), checkpoints=store, interval=NEVER, stop=stop)
    assert (summary.ended, summary.in_flight) == ("resumable", 0)
    assert sorted(world.shown()) == list(range(summary.progress.rows_in))
    run(Story(source, world, calls), checkpoints=store, resume=True)
    assert sorted(world.shown()) == list(range(100))


def test_a_second_stop_ends_at_once_and_can_be_resumed(functions: dict[str, Function]) -> None:
    store, world, stop = MemoryStore(), World(), StopRequest(timeout=60)
    source = StorySource({"a": [*batches(0, 50), stop.request, stop.request, Gate()]})
    calls = [(functions["never"], ["n"])]
    story = Story(source, world, calls, options={"timeout": math.inf})
    assert run(story, checkpoints=store, interval=NEVER, stop=stop).ended == "cut off"
    assert world.shown() == []
    source.items["a"] = batches(0, 50)
    again = Story(source, world, calls, options={"timeout": 0.01}, policy=Policy(timeout="null"))
    run(again, checkpoints=store, resume=True)
    assert world.shown() == list(range(50))


def test_a_stop_without_checkpoints_ends_at_once_and_shows_nothing(functions: dict[str, Function]) -> None:
    world, stop = World(), StopRequest()
    source = StorySource({"a": [*batches(0, 50), stop.request, Gate()]})
    assert run(Story(source, world, [(functions["late"], ["n"])]), stop=stop).ended == "cut off"
    assert world.shown() == []
    assert world.closed == 1


def test_a_slice_that_is_blocked_holds_up_neither_the_stop_nor_the_view() -> None:
    blocked, release, stop = threading.Event(), threading.Event(), StopRequest(timeout=0.05)
    seen: list[PipelineSummary | Progress] = []

    def block() -> None:
        blocked.set()
        release.wait(60)

    def watch(progress: Progress) -> None:
        seen.append(progress)
        if blocked.is_set():
            once(stop)

    source = StorySource({"a": [block], "b": [[1]]})
    story = Story(source, World(), parallelism=2)
    summary = run(story, checkpoints=MemoryStore(), stop=stop, progress=watch, progress_every=0.005)
    assert summary.ended == "cut off"
    assert not release.is_set()
    assert len(seen) > 2
    release.set()


def test_a_stop_after_the_last_row_changes_nothing() -> None:
    store, world, stop = MemoryStore(), World(), StopRequest()
    world.on_apply = stop.request
    assert (
        run(Story(StorySource({"a": [[1]]}), world), checkpoints=store, stop=stop, interval=NEVER).ended == "finished"
    )
    assert world.shown() == [1]


SLOW_CLOSE = """
import asyncio
import os
from pathlib import Path

from arroyo_udf_plugin import udf


class Context:
    async def close(self) -> None:
        folder = Path(os.environ["SLOW_CLOSE"])
        (folder / "closing").touch()
        while not (folder / "close").exists():
            await asyncio.sleep(0.001)


@udf
async def f(context: Context, n: int) -> int:
    return n
"""


@pytest.mark.parametrize("requests", [1, 2])
def test_a_stop_limits_the_wait_for_a_context_that_closes(
    requests: int, build_plugin: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLOW_CLOSE", str(tmp_path))
    world, stop = World(), StopRequest(timeout=0.05 if requests == 1 else 60)
    function = load(build_plugin(SLOW_CLOSE, name="slow")).functions["f"]

    def request() -> None:
        until((tmp_path / "closing").exists, "the close")
        for _ in range(requests):
            stop.request()

    threading.Thread(target=request, daemon=True).start()
    summary = run(Story(StorySource({"a": [[1]]}), world, [(function, ["n"])]), stop=stop)
    assert summary.ended == "finished"
    assert world.shown() == [1]
    (tmp_path / "close").touch()
    until(lambda: not any(each.name.startswith("arroyo-udf-slice") for each in threading.enumerate()), "the slice")


def test_a_request_that_came_before_the_start_counts(functions: dict[str, Function]) -> None:
    stop = StopRequest()
    stop.request()
    source: Any = StorySource({"a": [Gate()]})
    assert run(Story(source, World()), checkpoints=MemoryStore(), stop=stop).ended == "resumable"


def test_a_slice_that_starts_after_a_stop_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the stop waits for it as long as it may: for ever, as a replay in several slices does, of which one has done
    all before another one begins."""
    stop, asked = StopRequest(math.inf), threading.Event()
    drain, start_operators = Slice.drain, Slice._start_operators

    def drained(self: Slice) -> None:
        drain(self)
        asked.set()

    def started(self: Slice) -> None:
        start_operators(self)
        assert asked.wait(60)

    monkeypatch.setattr(Slice, "drain", drained)
    monkeypatch.setattr(Slice, "_start_operators", started)
    stop.request()
    source = StorySource({"a": [[1]]})
    source.watch = 3600.0
    assert run(Story(source, World()), checkpoints=MemoryStore(), stop=stop).ended == "resumable"
    assert not source.opened


SIGNALLED = """
import signal, sys, threading

from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.execution.stopping import StopRequest
from arroyo_udf_plugin.engine.pipeline.document import pipeline_of

def signalled():
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

stop = StopRequest()
signal.signal(signal.SIGTERM, lambda number, frame: stop.request())
described = {
    "name": "idle",
    "source": {"type": "files", "paths": [sys.argv[1] + "/in.csv"], "watch": 3600.0},
    "sinks": [{"type": "parts", "path": sys.argv[1] + "/out"}],
    "checkpoints": {"place": sys.argv[1] + "/checkpoints", "every": 0.01},
}

def seen(progress):
    if progress.checkpoint is not None and progress.checkpoint.epochs == 1:
        threading.Timer(0.2, signalled).start()  # by then the main thread most likely waits

print(run_pipeline(pipeline_of(described), stop=stop, progress=seen).ended)
"""


def test_a_signal_that_another_thread_gets_stops_an_engine_that_waits(tmp_path: Path) -> None:
    """Nothing ends the wait of the main thread, in which alone Python calls the handler."""
    (tmp_path / "in.csv").write_text("n\n1\n")
    ended = subprocess.run([sys.executable, "-c", SIGNALLED, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.returncode) == ("resumable\n", 0), ended.stderr


def test_an_interrupt_in_the_callers_thread_ends_all_slices() -> None:
    """Ctrl-C without checkpoints: the command raises it in the main thread."""

    def interrupt(progress: Progress) -> None:
        if progress.rows_in:
            raise KeyboardInterrupt

    world = World()
    source = StorySource({"a": [[1], Gate()], "b": [[2], Gate()]})
    with pytest.raises(KeyboardInterrupt):
        run(Story(source, world, parallelism=2), progress=interrupt, progress_every=0.005)
    assert world.closed == 2
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("arroyo-udf-slice")]
