"""Sources and slices that are ahead by event time: how far they go, and what they do not wait for."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import CRASH, Crashed, Gate, Item, MemoryStore, Story, StorySource, World

from arroyo_udf_plugin.engine.datafusion.query import Select
from arroyo_udf_plugin.engine.execution import drift
from arroyo_udf_plugin.engine.execution.drift import Drift, DriftReader
from arroyo_udf_plugin.engine.execution.idleness import Idleness
from arroyo_udf_plugin.engine.execution.runner import Interval, run
from arroyo_udf_plugin.engine.execution.stopping import StopRequest
from arroyo_udf_plugin.engine.operators.blocks import Block, Given
from arroyo_udf_plugin.engine.operators.group_stage import GroupPlan
from arroyo_udf_plugin.engine.operators.grouped import GroupOperator
from arroyo_udf_plugin.engine.operators.operator import Operator
from arroyo_udf_plugin.engine.operators.queried import QueryPlan
from arroyo_udf_plugin.engine.operators.routes import Routes
from arroyo_udf_plugin.engine.operators.watermarks import DriftBound
from arroyo_udf_plugin.engine.windows.grouping import Grouping
from arroyo_udf_plugin.engine.windows.spans import Hop

SCHEMA = pa.schema([("t", pa.timestamp("ns"))])
COUNT = Grouping("t", Hop(10, 10), aggregates={"n": "count(*)"})
BOUND, STEP = 20, 5
WAIT = 20


# ---- Readers ----


@given(
    steps=st.lists(st.lists(st.integers(0, 30), max_size=12), min_size=1, max_size=4),
    bound=st.integers(0, 40),
    order=st.randoms(use_true_random=False),
)
def test_readers_end_and_none_is_ahead_by_more_than_the_bound_and_a_batch(
    steps: list[list[int]], bound: int, order: object
) -> None:
    """steps: of each reader, by how much its watermark rises with each batch."""
    shared = Drift([DriftBound([0, 1], bound), DriftBound([1], 3 * bound)], 0)
    now: dict[int, int] = {}  # of those that read, the latest watermark

    async def read(number: int, own: list[int]) -> None:
        reader = shared.reader(number % 2, is_beside=True)
        now[number] = time = 0
        with reader.reading(time):
            for step in own:
                await reader.near()
                assert time <= min(now.values()) + bound
                time += step
                now[number] = time
                reader.reached(time)
                for _ in range(order.randint(0, 3)):  # type: ignore[attr-defined]
                    await asyncio.sleep(0)
            del now[number]

    async def all_of_them() -> None:
        async with asyncio.timeout(WAIT):
            await asyncio.gather(*(read(number, own) for number, own in enumerate(steps)))

    asyncio.run(all_of_them())
    assert not now


def test_sources_that_meet_nowhere_do_not_wait_for_each_other() -> None:
    async def read() -> None:
        shared = Drift([DriftBound([0, 1], 5), DriftBound([2], 5)], 0)
        apart = shared.reader(2, is_beside=True)
        with shared.reader(0, is_beside=True).reading(0), apart.reading(1000):
            async with asyncio.timeout(WAIT):
                await apart.near()

    asyncio.run(read())


# ---- In an engine ----


def at(*times: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(times, pa.timestamp("ns"))], schema=SCHEMA)


class Counted(Story):
    """Counts the rows of all its sources in windows of ten nanoseconds. further: a second source."""

    def __init__(
        self,
        source: StorySource,
        world: World,
        further: StorySource | None = None,
        parallelism: int = 1,
        idle_seconds: float | None = None,
    ) -> None:
        super().__init__(source, world, parallelism=parallelism, time_column="t", idle_seconds=idle_seconds)
        self.further = () if further is None else (Story(further, world, time_column="t", idle_seconds=idle_seconds),)
        self.drifts = [DriftBound(range(1 + len(self.further)), BOUND)]

    @property
    def inputs(self) -> Sequence[Story]:
        return [self, *self.further]

    def operators(self) -> list[Operator]:
        query = QueryPlan("both", Select({"t": "t"}), Given(SCHEMA))
        return [Operator("both", [query]), GroupOperator(GroupPlan("windows", COUNT, Given(SCHEMA)))]

    @property
    def routes(self) -> Routes:
        return Routes([None, 0], [1], exchanging=[1], gathering=[1], beside={0: [-1] * len(self.further)})

    def left(self, block: Block, place: int | None) -> Block:
        return block


def counted(world: World) -> dict[int, int]:
    """Rows of each window, by its start."""
    windows = [batch.column("window").field("start") for batch in world.tables.get("out", [])]
    starts = [start for column in windows for start in column.cast(pa.int64()).to_pylist()]
    return dict(zip(starts, world.shown(column="n"), strict=True))


def wanted(*times: int) -> dict[int, int]:
    return dict(Counter(time // 10 * 10 for time in times))


TIMES = range(0, 400, STEP)


class Sides:
    """A source that is slow, and a fast one, which notes how far the slow one was at most when it was read."""

    def __init__(self) -> None:
        self.slow_at = 0
        self.fast_at: list[tuple[int, int]] = []

    def fast(self) -> list[Item]:
        def note(time: int) -> Callable[[], None]:
            return lambda: self.fast_at.append((time, self.slow_at))

        return [item for time in TIMES for item in (note(time), at(time))]

    def slow(self, time: int) -> list[Item]:
        def tell() -> None:
            self.slow_at = time

        return [tell, at(time)]

    def check(self) -> None:
        """A batch is read only if the one before it was within the bound."""
        assert [time for time, _ in self.fast_at] == list(TIMES)
        assert all(time - STEP <= slow_at + BOUND for time, slow_at in self.fast_at)


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set as soon as somebody waits."""
    event, puts_off = threading.Event(), Drift.puts_off

    def noted(self: Drift, reader: DriftReader) -> bool:
        does = puts_off(self, reader)
        if does:
            event.set()
        return does

    monkeypatch.setattr(Drift, "puts_off", noted)
    return event


@contextlib.contextmanager
def as_soon_as(event: threading.Event, does: Callable[[], None]) -> Iterator[None]:
    def wait() -> None:
        assert event.wait(WAIT)
        does()

    thread = threading.Thread(target=wait)
    thread.start()
    yield
    thread.join()


SLOW_TIMES = (0, 100, 101, 250, 400)


@pytest.mark.parametrize("kind", ["sources", "slices"])
def test_the_fast_one_is_ahead_by_the_bound_and_a_batch_at_most(kind: str, paused: threading.Event) -> None:
    sides, world, gate = Sides(), World(), Gate()
    first, *others = SLOW_TIMES
    slow: list[Item] = [*sides.slow(first), gate, *(item for time in others for item in sides.slow(time))]
    if kind == "sources":
        story = Counted(StorySource({"a": sides.fast()}, SCHEMA), world, StorySource({"a": slow}, SCHEMA))
    else:
        source = StorySource({"a": sides.fast(), "b": slow}, SCHEMA, side_by_side=True)
        story = Counted(source, world, parallelism=2)
    with as_soon_as(paused, gate.open):
        run(story)
    sides.check()
    assert counted(world) == wanted(*TIMES, *SLOW_TIMES)


def test_files_that_slices_read_in_turn_do_not_wait_for_each_other() -> None:
    """One of them may be a day behind the other."""
    sides, world, gate = Sides(), World(), Gate()
    source = StorySource({"a": [*sides.fast(), gate.open], "b": [at(0), gate]}, SCHEMA)
    run(Counted(source, world, parallelism=2))
    assert counted(world) == wanted(*TIMES, 0)


@pytest.mark.parametrize("how", ["has ended", "is idle", "has no rows"])
def test_who_reads_nothing_holds_nobody_back(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drift, "_PATIENCE", 0.001)
    sides, world, gate = Sides(), World(), Gate()
    slow: dict[str, list[Item]] = {
        "has ended": [at(0)],
        "is idle": [at(0), gate],
        "has no rows": [gate],
    }
    further = StorySource({"a": slow[how]}, SCHEMA)
    idle_seconds = 0.005 if how == "is idle" else None
    run(Counted(StorySource({"a": [*sides.fast(), gate.open]}, SCHEMA), world, further, idle_seconds=idle_seconds))
    assert [time for time, _ in sides.fast_at] == list(TIMES)


def test_a_source_that_waits_is_not_idle(paused: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else rows of its next batches would be late: the watermark would pass them."""
    sides, world, gate, looks = Sides(), World(), Gate(), Counter[str]()
    look_at, began = Idleness._look_at, Idleness.began

    def looked(self: Idleness, loop: asyncio.AbstractEventLoop, due: float, seconds: float) -> None:
        looks["while it waits"] += paused.is_set()
        if looks["while it waits"] == 5:
            gate.open()
        look_at(self, loop, due, seconds)

    def is_idle(self: Idleness) -> bool:
        is_new = began(self)
        if is_new:
            looks["idle"] += 1
            gate.open()
        return is_new

    monkeypatch.setattr(Idleness, "_look_at", looked)
    monkeypatch.setattr(Idleness, "began", is_idle)
    further = StorySource({"a": [at(0), gate, at(400)]}, SCHEMA)
    story = Counted(StorySource({"a": sides.fast()}, SCHEMA), world, further)
    story.idle_seconds = 0.001
    story.further[0].idle_seconds = None
    run(story)
    assert looks == {"while it waits": looks["while it waits"]}
    assert counted(world) == wanted(*TIMES, 0, 400)


@pytest.mark.parametrize("requests", [1, 2])
def test_a_stop_ends_who_waits_and_a_resume_goes_on(requests: int, paused: threading.Event) -> None:
    sides, world, store, stop = Sides(), World(), MemoryStore(), StopRequest(timeout=WAIT)
    source, further = StorySource({"a": sides.fast()}, SCHEMA), StorySource({"a": [at(0), Gate()]}, SCHEMA)

    def request() -> None:
        for _ in range(requests):
            stop.request()

    with as_soon_as(paused, request):
        summary = run(Counted(source, world, further), checkpoints=store, stop=stop, interval=Interval(None, None))
    assert summary.ended == ("resumable" if requests == 1 else "cut off")
    assert sides.fast_at[-1][0] <= BOUND + STEP
    further.items["a"] = [at(0), lambda: None, at(400)]
    run(Counted(source, world, further), checkpoints=store, resume=True)
    assert counted(world) == wanted(*TIMES, 0, 400)


def test_nothing_is_lost_if_it_crashes_while_one_waits(paused: threading.Event) -> None:
    sides, world, store, gate = Sides(), World(), MemoryStore(), Gate()
    source = StorySource({"a": sides.fast()}, SCHEMA)
    further = StorySource({"a": [at(0), gate, CRASH, at(200), at(400)]}, SCHEMA)
    with as_soon_as(paused, gate.open), pytest.raises(Crashed):
        run(Counted(source, world, further), checkpoints=store, interval=Interval(None, rows=1))
    run(Counted(source, world, further), checkpoints=store, resume=bool(store.files))
    assert counted(world) == wanted(*TIMES, 0, 200, 400)
