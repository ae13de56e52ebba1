"""Whole pipelines with a source that tells a story (worlds.py): what comes out, what a crash leaves, how it stops."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from waiting import until
from worlds import CRASH, EOF, Crashed, Gate, MemoryStore, Story, StorySource, World, epochs_in

from arroyo_udf_plugin import Function, failpoints, load
from arroyo_udf_plugin.engine.checkpoints import Fenced
from arroyo_udf_plugin.engine.progress import Progress, Summary
from arroyo_udf_plugin.engine.runner import Interval, run
from arroyo_udf_plugin.engine.slice import Slice
from arroyo_udf_plugin.engine.stopping import StopRequest
from arroyo_udf_plugin.errors import InvalidArgument, RowError
from arroyo_udf_plugin.host.policy import Policy

OFTEN = Interval(None, rows=1)  # an epoch after each batch, if the one before is over
NEVER = Interval(None, None)

FUNCTIONS = """
import asyncio
import random

from arroyo_udf_plugin import udf


@udf
def doubled(n: int) -> int:
    return 2 * n


@udf
def even(n: int) -> int:
    if n % 2:
        raise ValueError(f"{n} is odd")
    return n


@udf
async def late(n: int) -> int:
    await asyncio.sleep(0)
    return 10 * n


@udf(ordered=False, allowed_in_flight=50)
async def shuffled(n: int) -> int:
    await asyncio.sleep(random.random() / 1000)
    return -n


@udf
async def never(n: int) -> int:
    await asyncio.get_running_loop().create_future()
    return n


@udf(ordered=False, allowed_in_flight=20)
async def multiples_of_ten(n: int) -> int:
    if n % 10:
        await asyncio.get_running_loop().create_future()
    return n
"""


@pytest.fixture(scope="module")
def functions(build_plugin: Callable[..., Path]) -> dict[str, Function]:
    return dict(load(build_plugin(FUNCTIONS, name="story")).functions)


def batches(first: int, stop: int, size: int = 10) -> list[list[int]]:
    return [list(range(n, min(n + size, stop))) for n in range(first, stop, size)]


def epochs_of(store: MemoryStore) -> int:
    return epochs_in(store.files)[-1]


def once(stop: StopRequest) -> None:
    if not stop.requests:
        stop.request()


# ---- Rows ------------------------------------------------------------------------------------------------------------


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


def test_a_pipeline_without_functions_copies_rows() -> None:
    world = World()
    run(Story(StorySource({"a": batches(0, 25), "b": []}), world, sink_names=("out", "copy")))
    assert world.shown() == world.shown("copy") == list(range(25))
    assert world.closed == 2


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
    """B4: memory stays bounded; nothing is read while the first operator has no room."""
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


# ---- Recovery --------------------------------------------------------------------------------------------------------


def test_a_crash_loses_and_repeats_nothing(functions: dict[str, Function]) -> None:
    store, world = MemoryStore(), World()
    source = StorySource({"a": [*batches(0, 100), CRASH, *batches(100, 200), CRASH, *batches(200, 300)]})
    calls = [(functions["doubled"], ["n"]), (functions["late"], ["doubled"])]
    for resume in (False, True):
        with pytest.raises(Crashed):
            run(Story(source, world, calls), checkpoints=store, interval=OFTEN, resume=resume)
    assert run(Story(source, world, calls), checkpoints=store, interval=OFTEN, resume=True).ended == "finished"
    assert world.shown() == list(range(300))
    assert world.shown(column="late") == [20 * n for n in range(300)]
    assert not world.staged


def test_rows_in_flight_are_called_again_and_their_results_kept(functions: dict[str, Function]) -> None:
    """O3, O4: an epoch waits for no row."""
    store, world = MemoryStore(), World()
    source = StorySource({"a": [*batches(0, 30), lambda: None, Gate()]})
    stuck = Story(source, world, [(functions["multiples_of_ten"], ["n"])], options={"timeout": math.inf})
    stop = StopRequest(timeout=0.2)

    def committed(progress: Progress) -> None:
        if progress.rows_in == 30:
            once(stop)

    summary = run(stuck, checkpoints=store, interval=OFTEN, stop=stop, progress=committed, progress_every=0.01)
    assert summary.ended == "resumable"
    assert summary.in_flight + len(world.shown()) == 30
    assert summary.in_flight >= 2
    source.items["a"][-1] = EOF  # type: ignore[index]
    free = {"timeout": 0.01, "max_attempts": 1}
    again = Story(source, world, stuck.functions, options=free, policy=Policy(timeout="null"))
    assert run(again, checkpoints=store, resume=True).ended == "finished"
    assert sorted(world.shown()) == list(range(30))


def test_slices_become_more_and_fewer(functions: dict[str, Function]) -> None:
    """A3: with 3, then 5, then 1 slice every row comes out once."""
    store, world = MemoryStore(), World()
    names = [f"p{i}" for i in range(6)]
    source = StorySource(
        {
            name: [*batches(100 * i, 100 * i + 30), EOF, *batches(100 * i + 30, 100 * i + 60), EOF, [100 * i + 60]]
            for i, name in enumerate(names)
        }
    )
    for resume, width in ((False, 3), (True, 5), (True, 1)):
        story = Story(source, world, [(functions["shuffled"], ["n"])], parallelism=width)
        run(story, checkpoints=store, interval=OFTEN, resume=resume)
    assert sorted(world.shown()) == [100 * i + n for i in range(6) for n in range(61)]
    assert Counter(world.shown()).most_common(1)[0][1] == 1


def test_rows_in_flight_move_to_other_slices(functions: dict[str, Function]) -> None:
    """A3: three slices stop with rows in flight; one goes on with all of them."""
    store, world = MemoryStore(), World()
    source = StorySource({name: [batch, Gate()] for name, batch in zip("abc", batches(0, 30), strict=True)})
    source.side_by_side = True
    stop = StopRequest(timeout=0.2)

    def watch(progress: Progress) -> None:
        if progress.rows_in == 30:
            once(stop)

    calls = [(functions["never"], ["n"])]
    story = Story(source, world, calls, parallelism=3, options={"timeout": math.inf})
    summary = run(story, checkpoints=store, stop=stop, progress=watch, progress_every=0.01)
    assert (summary.ended, summary.in_flight) == ("resumable", 30)
    for name in "abc":
        source.items[name] = [*source.items[name][:1], EOF]
    story = Story(source, world, calls, options={"timeout": 0.01}, policy=Policy(timeout="null"))
    run(story, checkpoints=store, resume=True)
    assert sorted(world.shown()) == list(range(30))


def test_a_finished_pipeline_can_be_resumed_and_does_nothing() -> None:
    store, world = MemoryStore(), World()
    source = StorySource({"a": batches(0, 20)})
    run(Story(source, world), checkpoints=store)
    before = epochs_of(store)
    assert run(Story(source, world), checkpoints=store, resume=True).ended == "finished"
    assert world.shown() == list(range(20))
    assert epochs_of(store) == before + 1  # its fence


def test_epochs_without_rows_are_not_written() -> None:
    store, world, stop = MemoryStore(), World(), StopRequest()
    gate, tries = Gate(), 0

    def reached(name: str) -> None:
        nonlocal tries
        tries += name == "sealed"
        if tries == 5:
            gate.open()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(failpoints, "reached", reached)
        source = StorySource({"a": [[1], gate, [2]]})
        summary = run(Story(source, world), checkpoints=store, interval=Interval(0.005), stop=stop)
    assert tries >= 5
    assert summary.progress.checkpoint is not None
    assert summary.progress.checkpoint.epochs <= 2


def test_the_stream_goes_on_while_an_epoch_becomes_durable(functions: dict[str, Function]) -> None:
    """The store waits until rows have come out that were read after the epoch was sealed."""
    store, world, gate = MemoryStore(), World(), Gate()
    went_on = threading.Event()

    def written(batch: pa.RecordBatch) -> None:
        if batch.column(0)[0].as_py() == 2:
            went_on.set()

    def reached(name: str) -> None:
        if name == "sealed":
            gate.open()
            assert went_on.wait(60)

    world.on_write = written
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(failpoints, "reached", reached)
        source = StorySource({"a": [[1], gate, [2]]})
        run(Story(source, world, [(functions["doubled"], ["n"])]), checkpoints=store, interval=OFTEN)
    assert world.shown() == [1, 2]


# ---- Errors ----------------------------------------------------------------------------------------------------------


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


def test_what_cannot_be_resumed_is_refused_by_name() -> None:
    world = World()
    with pytest.raises(InvalidArgument, match="the source - cannot be read again"):
        run(Story(Stdin({}), world), checkpoints=MemoryStore(), resume=True)
    with pytest.raises(InvalidArgument, match="--resume needs the place of the checkpoints"):
        run(Story(StorySource({}), world), resume=True)
    story = Story(StorySource({}), world)
    (sink,) = story.sinks(0, None)
    sink.resumable = False
    story.sinks = lambda slice, stage: [sink]  # type: ignore[method-assign]
    store = MemoryStore()
    with pytest.raises(InvalidArgument, match="the sink out cannot take back rows, so it has no checkpoints"):
        run(story, checkpoints=store)
    assert not store.files


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
    seen: list[Summary | Progress] = []

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


def test_a_request_that_came_before_the_start_counts(functions: dict[str, Function]) -> None:
    stop = StopRequest()
    stop.request()
    source: Any = StorySource({"a": [Gate()]})
    assert run(Story(source, World()), checkpoints=MemoryStore(), stop=stop).ended == "resumable"


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
