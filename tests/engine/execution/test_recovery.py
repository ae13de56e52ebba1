"""What a crash leaves, and how a resumed engine goes on (O3, O4), with a source that tells a story (worlds.py)."""

from __future__ import annotations

import math
import threading
from collections import Counter

import pyarrow as pa
import pytest
from worlds import (
    CRASH,
    EOF,
    Crashed,
    Gate,
    MemoryStore,
    Story,
    StorySource,
    World,
    batches,
    epochs_of,
    once,
)

from arroyo_udf_plugin import Function, failpoints
from arroyo_udf_plugin.engine.execution import runner
from arroyo_udf_plugin.engine.execution.progress import Progress
from arroyo_udf_plugin.engine.execution.runner import Interval, run
from arroyo_udf_plugin.engine.execution.stopping import StopRequest
from arroyo_udf_plugin.errors import Fenced, InvalidArgument
from arroyo_udf_plugin.host.policy import Policy

OFTEN = Interval(None, rows=1)  # an epoch after each batch, if the one before is over
NEVER = Interval(None, None)


def test_a_crash_loses_and_repeats_nothing(functions: dict[str, Function]) -> None:
    store, world = MemoryStore(), World()
    first, second = Gate(), Gate()  # each crash comes after an epoch of its run
    source = StorySource({"a": [*batches(0, 100), first, CRASH, *batches(100, 200), second, CRASH, *batches(200, 300)]})
    calls = [(functions["doubled"], ["n"]), (functions["late"], ["doubled"])]
    for gate in (first, second):

        def committed(progress: Progress, gate: Gate = gate) -> None:
            if progress.checkpoint is not None and progress.checkpoint.epochs:
                gate.open()

        story = Story(source, world, calls)
        with pytest.raises(Crashed):
            run(story, checkpoints=store, interval=OFTEN, resume=gate is second, progress=committed)
    assert run(Story(source, world, calls), checkpoints=store, interval=OFTEN, resume=True).ended == "finished"
    assert world.shown() == list(range(300))
    assert world.shown(column="late") == [20 * n for n in range(300)]
    assert not world.staged


def test_rows_in_flight_are_called_again_and_their_results_kept(
    functions: dict[str, Function], monkeypatch: pytest.MonkeyPatch
) -> None:
    """O3, O4: an epoch waits for no row."""
    monkeypatch.setattr(runner, "_FOR_DRAINING", 0.001)  # of a minute
    store, world = MemoryStore(), World()
    source = StorySource({"a": [*batches(0, 30), lambda: None, Gate()]})
    stuck = Story(source, world, [(functions["multiples_of_ten"], ["n"])], options={"timeout": math.inf})
    stop = StopRequest(timeout=60)

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
    """With 3, then 5, then 1 slice every row comes out once."""
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


def test_rows_in_flight_move_to_other_slices(functions: dict[str, Function], monkeypatch: pytest.MonkeyPatch) -> None:
    """Three slices stop with rows in flight; one goes on with all of them."""
    monkeypatch.setattr(runner, "_FOR_DRAINING", 0.001)  # of a minute
    store, world = MemoryStore(), World()
    source = StorySource({name: [batch, Gate()] for name, batch in zip("abc", batches(0, 30), strict=True)})
    source.side_by_side = True
    stop = StopRequest(timeout=60)

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


class FailingStore(MemoryStore):
    """It fails so many times, at the first file of a folder. late: behind what was asked."""

    def __init__(self, verb: str, folder: str, times: int, late: bool = False) -> None:
        super().__init__()
        self._verb, self._folder, self._times, self._late = verb, folder, times, late

    def _fails(self, verb: str, name: str, late: bool) -> None:
        is_fence = name == "epochs/0000000001.json"
        if (verb, late) == (self._verb, self._late) and name.startswith(self._folder) and not is_fence and self._times:
            self._times -= 1
            raise InvalidArgument("the place is full")

    def put(self, name: str, data: bytes) -> None:
        self._fails("put", name, late=False)
        super().put(name, data)
        self._fails("put", name, late=True)

    def create(self, name: str, data: bytes) -> None:
        self._fails("create", name, late=False)
        super().create(name, data)
        self._fails("create", name, late=True)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(("verb", "folder"), [("put", "states/"), ("create", "epochs/"), ("put", "epochs/")])
def test_a_checkpoint_that_fails_is_reported_and_tried_again(
    verb: str,
    folder: str,
    late: bool,
    functions: dict[str, Function],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With the rows of its moment, and those that have come since."""
    monkeypatch.setattr(runner, "_PAUSES", (0.001,) * 3)
    times = 1 if verb == "create" and late else 2  # what was created is found
    store, world = FailingStore(verb, folder, times, late), World()
    story = Story(StorySource({"a": batches(0, 100)}), world, [(functions["doubled"], ["n"])])
    monkeypatch.setattr(story, "hidden", lambda text: text.replace("place", "PLACE"))
    assert run(story, checkpoints=store, interval=OFTEN).ended == "finished"
    assert world.shown() == list(range(100))
    assert not world.staged
    assert [record.getMessage() for record in caplog.records] == [
        "the checkpoint has failed, and is tried again in 0.001 s: the PLACE is full"
    ] * times
    world.tables.clear()
    run(story, checkpoints=store)
    assert world.shown() == []


def test_rows_whose_showing_fails_are_shown_later(
    functions: dict[str, Function], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(runner, "_PAUSES", (0.001,) * 3)
    world, left = World(), iter(range(2))

    def fail() -> None:
        if next(left, None) is not None:
            raise OSError("the sink does not answer")

    world.on_apply = fail
    store = MemoryStore()
    story = Story(StorySource({"a": batches(0, 100)}), world, [(functions["doubled"], ["n"])])
    assert run(story, checkpoints=store, interval=OFTEN).ended == "finished"
    assert world.shown() == list(range(100))
    assert not world.staged
    assert len(caplog.records) == 2


def test_an_engine_that_was_replaced_shows_no_rows_later(
    functions: dict[str, Function], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever goes on has shown them."""
    monkeypatch.setattr(runner, "_PAUSES", (0.001,) * 3)
    store, world = MemoryStore(), World()
    calls = []

    def fail() -> None:
        calls.append(len(calls))
        number = 1 + max(int(name[7:17]) for name in store.files if name.endswith(".json"))
        store.create(f"epochs/{number:010}.json", b"of another engine")
        raise OSError("the sink does not answer")

    world.on_apply = fail
    story = Story(StorySource({"a": batches(0, 100)}), world, [(functions["doubled"], ["n"])])
    with pytest.raises(Fenced):
        run(story, checkpoints=store, interval=OFTEN)
    assert calls == [0]


def test_a_place_that_fails_for_long_ends_the_run(
    functions: dict[str, Function], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_PAUSES", (0.001,) * 3)
    store, world = FailingStore("put", "states/", 4), World()
    story = Story(StorySource({"a": batches(0, 100)}), world, [(functions["doubled"], ["n"])])
    with pytest.raises(InvalidArgument, match="the place is full"):
        run(story, checkpoints=store, interval=OFTEN)
    assert run(story, checkpoints=store).ended == "finished"
    assert world.shown() == list(range(100))
