"""Whole pipelines with a source that tells a story (worlds.py): what comes out, and how it is held back."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
from collections.abc import Sequence

import pyarrow as pa
import pytest
from worlds import (
    Gate,
    MemoryStore,
    Story,
    StorySource,
    World,
    batches,
    once,
)

from arroyo_udf_plugin import Function, failpoints
from arroyo_udf_plugin.engine.connectors.source import Rows
from arroyo_udf_plugin.engine.execution.progress import Progress
from arroyo_udf_plugin.engine.execution.runner import Interval, run
from arroyo_udf_plugin.engine.execution.slice import Slice
from arroyo_udf_plugin.engine.execution.stopping import StopRequest
from arroyo_udf_plugin.engine.operators.blocks import Block
from arroyo_udf_plugin.engine.operators.stages import Dead
from arroyo_udf_plugin.host.policy import Policy

OFTEN = Interval(None, rows=1)  # an epoch after each batch, if the one before is over
NEVER = Interval(None, None)


def test_rows_pass_functions_in_order(functions: dict[str, Function]) -> None:
    world = World()
    calls = [(functions["doubled"], ["n"]), (functions["late"], ["doubled"])]
    summary = run(Story(StorySource({"a": batches(0, 100)}), world, calls))
    assert world.shown() == list(range(100))
    assert world.shown(column="late") == [20 * n for n in range(100)]
    assert summary.ended == "finished"
    assert (summary.progress.rows_in, summary.progress.rows_out) == (100, 100)
    first, second = summary.progress.operators
    assert (first.name, first.rows_in, first.rows_out, first.counts.values) == ("doubled", 100, 100, 100)
    assert (second.name, second.rows_in, second.rows_out, second.held) == ("late", 100, 100, 0)


def test_a_plain_function_may_run_an_event_loop(functions: dict[str, Function]) -> None:
    """F7: it sees none, although the slice has one."""
    world = World()
    run(Story(StorySource({"a": batches(0, 25)}), world, [(functions["through_asyncio"], ["n"])]))
    assert world.shown(column="through_asyncio") == list(range(1, 26))


def test_a_pipeline_without_functions_copies_rows() -> None:
    world = World()
    run(Story(StorySource({"a": batches(0, 25), "b": []}), world, sink_names=("out", "copy")))
    assert world.shown() == world.shown("copy") == list(range(25))
    assert world.closed == 2


def test_sinks_are_closed_although_a_slice_is_slow_to_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread has said that it has ended, and waits for somebody who waits for it."""
    world, waited_for = World(), threading.Event()
    work, join = Slice._run, Slice.join

    def run_slowly(self: Slice) -> None:
        work(self)
        waited_for.wait(60)

    def noted(self: Slice, seconds: float | None) -> bool:
        if seconds != 0:
            waited_for.set()
        return join(self, seconds)

    monkeypatch.setattr(Slice, "_run", run_slowly)
    monkeypatch.setattr(Slice, "join", noted)
    run(Story(StorySource({"a": batches(0, 25)}), world))
    waited_for.set()
    assert world.closed == 1


def test_a_look_for_new_partitions_that_takes_long_holds_up_neither_rows_nor_the_stop() -> None:
    """Two slices; one asks a store that does not answer, until the engine has ended."""
    world, stop, asked, ended = World(), StopRequest(timeout=60), threading.Event(), threading.Event()
    source = StorySource({"a": [[1], lambda: asked.wait(60), [2], stop.request, Gate()], "b": []})
    source.watch = 0.001
    partitions = source.partitions

    def slow() -> Sequence[str]:
        if threading.current_thread().name == "arroyo-udf-look":
            asked.set()
            assert ended.wait(60)
        return partitions()

    source.partitions = slow  # type: ignore[method-assign]
    summary = run(Story(source, world, parallelism=2), checkpoints=MemoryStore(), stop=stop)
    assert summary.ended == "resumable"
    assert world.shown() == [1, 2]
    ended.set()


@pytest.mark.parametrize("side_by_side", [False, True])
def test_slices_share_the_partitions(functions: dict[str, Function], side_by_side: bool) -> None:
    world = World()
    source = StorySource({name: batches(n, n + 50) for n, name in ((0, "a"), (100, "b"), (200, "c"))})
    source.side_by_side = side_by_side
    run(Story(source, world, [(functions["shuffled"], ["n"])], parallelism=2))
    assert sorted(world.shown()) == [*range(50), *range(100, 150), *range(200, 250)]
    assert sorted(name for name, _ in source.opened) == ["a", "b", "c"]


def test_a_slice_that_waits_does_not_keep_others_from_reading() -> None:
    """One slice waits in partition a; the other one reads all that is left."""
    gate, world = Gate(), World()
    source = StorySource({"a": [gate, [1]], "b": [[2]], "c": [[3]], "d": [[4], gate.open]})
    run(Story(source, world, parallelism=2))
    assert sorted(world.shown()) == [1, 2, 3, 4]


def test_a_slow_function_holds_the_source_back(functions: dict[str, Function]) -> None:
    """Memory stays bounded; nothing is read while the first operator has no room."""
    stop = StopRequest()
    rows = pa.record_batch([pa.array(range(1000), pa.int64())], names=["n"])
    source = StorySource({"a": [rows] * 1000})
    story = Story(source, World(), [(functions["never"], ["n"])], options={"timeout": math.inf})
    operators = story.operators()
    story.operators = lambda: operators  # type: ignore[method-assign]

    def watch(progress: Progress) -> None:
        if progress.rows_in and not operators[0].wants_input:
            once(stop)

    summary = run(story, stop=stop, progress=watch, progress_every=0.01)
    assert summary.ended == "cut off"
    assert summary.progress.rows_in <= 2_000  # of a million


def test_dead_letters_go_to_their_sink(functions: dict[str, Function]) -> None:
    world, policy = World(), Policy(error="dead_letter")
    run(Story(StorySource({"a": [[1, 2, 3, 4]]}), world, [(functions["even"], ["n"])], policy=policy))
    assert world.shown() == [2, 4]
    assert world.shown("letters", "failed_row") == [1, 3]


def test_rows_that_could_not_be_read_are_counted(functions: dict[str, Function]) -> None:
    world, policy = World(), Policy(error="dead_letter")
    story = Story(StorySource({"a": [[1, 2, 3, 4]]}), world, [(functions["doubled"], ["n"])], policy=policy)
    admit = story.admit

    def admitted(rows: Rows) -> list[Block | Dead]:
        """The first row is a dead letter, the second one is dropped."""
        (block,) = admit(rows)
        assert isinstance(block, Block)
        return [Dead(block.slice(0, 1), pa.RecordBatch.from_pylist([{"failed_row": 1}])), block.slice(2, 2)]

    story.admit = admitted  # type: ignore[method-assign]
    progress = run(story).progress
    assert (progress.rows_in, progress.rows_out, progress.dropped, progress.dead_letters) == (4, 2, 1, 1)
    assert world.shown("letters") == [1]


def test_watermarks_pass_and_are_behind_by_what_is_in_flight(functions: dict[str, Function]) -> None:
    times = pa.record_batch({"n": pa.array([0, 0]), "at": pa.array([0, 3_000], pa.timestamp("ms"))})
    waiting = pa.record_batch({"n": pa.array([1]), "at": pa.array([10_000], pa.timestamp("ms"))})
    last = pa.record_batch({"n": pa.array([0]), "at": pa.array([20_000], pa.timestamp("ms"))})
    stop = StopRequest()
    source = StorySource({"a": [times, waiting, last, Gate()]}, times.schema)
    seen: list[float | None] = []

    def watch(progress: Progress) -> None:
        seen.append(progress.operators[0].lag)
        if progress.operators[0].rows_out == 3:
            once(stop)

    functions_ = [(functions["multiples_of_ten"], ["n"])]
    story = Story(source, World(), functions_, time_column="at", options={"timeout": math.inf})
    run(story, stop=stop, progress=watch, progress_every=0.01)
    assert seen[-1] == 17.0  # the row of second 10 is in flight: the watermark of second 3 is the latest to have left


def test_an_idle_source_holds_no_watermark_back(functions: dict[str, Function]) -> None:
    rows = pa.record_batch({"n": pa.array([0]), "at": pa.array([5_000], pa.timestamp("ms"))})
    stop = StopRequest()
    source = StorySource({"a": [rows, Gate()]}, rows.schema)
    story = Story(source, World(), [(functions["late"], ["n"])], time_column="at", idle_seconds=0.01)
    operators = story.operators()
    story.operators = lambda: operators  # type: ignore[method-assign]
    idle = threading.Event()
    push = operators[0].push_watermark

    def pushed(time: int | None) -> None:
        push(time)
        if time is None:
            idle.set()
            stop.request()

    operators[0].push_watermark = pushed  # type: ignore[method-assign]
    run(story, stop=stop)
    assert idle.is_set()


def test_a_source_that_waits_for_room_is_not_idle(functions: dict[str, Function]) -> None:
    """Its rows would become late, although nobody else is to blame but the function."""
    times = pa.array(range(1000), pa.timestamp("ms"))
    rows, stop, looks = pa.record_batch({"n": pa.array(range(1000)), "at": times}), StopRequest(), 0
    story = Story(
        StorySource({"a": [rows] * 100}, rows.schema),
        World(),
        [(functions["never"], ["n"])],
        options={"timeout": math.inf},
        time_column="at",
        idle_seconds=0.002,
    )
    operators = story.operators()
    story.operators = lambda: operators  # type: ignore[method-assign]
    pushed: list[int | None] = []
    push = operators[0].push_watermark
    operators[0].push_watermark = lambda time: (push(time), pushed.append(time))[0]  # type: ignore

    def watch(progress: Progress) -> None:
        nonlocal looks
        looks += bool(progress.rows_in) and not operators[0].wants_input
        if looks == 20:
            once(stop)

    run(story, stop=stop, progress=watch, progress_every=0.002)
    assert pushed
    assert None not in pushed


def test_new_partitions_are_found_while_the_engine_runs() -> None:
    world, stop = World(), StopRequest()
    source = StorySource({"b": [[1]]})
    source.watch = 0.001

    def written(batch: pa.RecordBatch) -> None:
        if batch.column(0)[0].as_py() == 1:
            source.items["a"] = [[2]]
        else:
            stop.request()

    world.on_write = written
    store = MemoryStore()
    assert run(Story(source, world), checkpoints=store, stop=stop).ended == "resumable"
    assert world.shown() == [1, 2]


def test_a_slice_without_rows_takes_no_turns(functions: dict[str, Function], monkeypatch: pytest.MonkeyPatch) -> None:
    """O6: nothing polls, not even while rows are in flight and checkpoints are due."""
    turns, stop, tries = 0, StopRequest(timeout=0.1), 0
    turn = Slice._turn

    def counted(self: Slice) -> bool:
        nonlocal turns
        turns += 1
        return turn(self)

    def reached(name: str) -> None:
        nonlocal tries
        tries += 1
        if tries == 50:
            once(stop)

    monkeypatch.setattr(Slice, "_turn", counted)
    monkeypatch.setattr(failpoints, "reached", reached)
    source = StorySource({"a": [[1, 2], Gate()]})
    story = Story(source, World(), [(functions["never"], ["n"])], options={"timeout": math.inf})
    run(story, checkpoints=MemoryStore(), interval=Interval(0.001), stop=stop)
    assert tries >= 50
    assert turns < 10


def test_an_engine_without_checkpoints_needs_no_pydantic() -> None:
    """It is the larger part of what a short run would load."""
    code = "import sys, arroyo_udf_plugin.engine.execution.runner; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
