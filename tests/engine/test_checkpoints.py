"""Epochs over a store, step by step (the five steps of engine/checkpoints.py), without slices or threads of them."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path

import pyarrow as pa
import pytest
from worlds import SCHEMA, MemoryStore, World, WorldSink, epochs_in

from arroyo_udf_plugin import failpoints
from arroyo_udf_plugin.connectors.interface import Json
from arroyo_udf_plugin.engine.checkpoints import Epochs, Fenced, Snapshot
from arroyo_udf_plugin.engine.manifest import Identity, Manifest
from arroyo_udf_plugin.errors import InvalidArgument

IDENTITY = Identity.of("flights", {"source": "files"}, {"speed": "abc"})
ACTIONS = 120  # of all interleaved engines
KEPT = Path(__file__).parent / "kept"


class Killed(BaseException):
    """The process ends here: nothing of the engine runs any more."""


class Counting:
    """A slice that reads the numbers 1, 2, 3, ...: `read` puts the next ones into its sink. state: of its operator."""

    def __init__(self, world: World, place: int = 0, next_row: int = 1, state: bytes = b"") -> None:
        self.sinks = [WorldSink(world, "out", place, is_staged=True)]
        self.next_row, self.state, self._place = next_row, state, place

    def read(self, rows: int) -> None:
        numbers = pa.array(range(self.next_row, self.next_row + rows), pa.int64())
        self.sinks[0].write(pa.record_batch([numbers], schema=SCHEMA))
        self.next_row += rows

    def seal(self, epoch: int) -> Future[Snapshot]:
        future: Future[Snapshot] = Future()
        rows = {sink.name: sealed for sink in self.sinks if (sealed := sink.seal(epoch)) is not None}
        positions: dict[str, Json] = {f"p{self._place}": {"next": self.next_row}}
        future.set_result(Snapshot(positions, 7, [("speed", self.state)], rows))
        return future


class Engine:
    """Begins or resumes, as runner.py does, with one slice."""

    def __init__(self, store: MemoryStore, world: World, resume: bool = False) -> None:
        self.epochs = Epochs(store, IDENTITY, resume=resume)
        fence = self.epochs.fence()
        position = fence.positions.get("p0", {"next": 1})
        self.slice = Counting(world, 0, position["next"])
        self.epochs.states(0, 1)
        self.epochs.apply([self.slice])
        self.slice.sinks[0].clear(fence.epoch)

    def go(self, rows: int = 2) -> Manifest | None:
        if rows:
            self.slice.read(rows)
        return self.epochs.take([self.slice])


def fence_of(store: MemoryStore) -> list[int]:
    return [n for n in epochs_in(store.files) if Manifest.read(store.files[f"epochs/{n:010}.json"], "").fence]


# ---- The steps -------------------------------------------------------------------------------------------------------


def test_an_epoch_takes_the_five_steps_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    store, world = MemoryStore(), World()
    engine = Engine(store, world)
    steps: list[str] = []
    monkeypatch.setattr(failpoints, "reached", steps.append)
    world.on_store = lambda: steps.append("rows")
    store.before = lambda verb, name: steps.append(f"{verb} {name}")
    engine.go()
    assert set(steps[1:3]) == {"rows", "put states/0000000002/0-0.arrow"}, "they may change places"
    assert steps[0] == "sealed"
    assert steps[3:] == [
        "staged",
        "create epochs/0000000002.json",
        "committed",
        "applied",
        "cleaned",
    ]
    steps.clear()
    engine.go()
    assert steps[-3:] == ["delete epochs/0000000002.json", "delete states/0000000002/0-0.arrow", "cleaned"]
    assert world.shown() == [1, 2, 3, 4]


def test_an_epoch_without_changes_is_not_written() -> None:
    store, world = MemoryStore(), World()
    engine = Engine(store, world)
    engine.go()
    store.log.clear()
    assert engine.go(rows=0) is None
    assert not store.log
    engine.slice.state = b"rows in flight have changed"
    assert engine.go(rows=0) is not None


@pytest.mark.parametrize("moment", ["sealed", "staged", "committed", "applied", "cleaned"])
@pytest.mark.parametrize("times", [1, 3], ids=["once", "again_and_again"])
def test_rows_are_shown_once_wherever_the_process_is_killed(
    moment: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, world = MemoryStore(), World()
    engine = Engine(store, world)
    engine.go()
    for _ in range(times):

        def reached(name: str) -> None:
            if name == moment:
                raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(failpoints, "reached", reached)
            with pytest.raises(Killed):
                engine.go()
        engine = Engine(store, world, resume=True)
    while engine.slice.next_row <= 20:
        engine.go()
    assert world.shown() == list(range(1, 21))
    assert not world.staged
    assert epochs_in(store.files)[-1] == engine.epochs.latest.epoch  # type: ignore[union-attr]


def test_rows_are_shown_once_wherever_the_store_fails() -> None:
    """Every access to the store fails once."""
    clean = MemoryStore()
    engine = Engine(clean, World())
    clean.log.clear()
    engine.go()
    engine.go()
    assert len(clean.log) > 5
    for failing in range(len(clean.log)):
        store, world = MemoryStore(), World()
        engine = Engine(store, world)
        left = iter([None] * failing)

        def fail(verb: str, name: str, left: Iterator[None] = left) -> None:
            if next(left, "none") == "none":
                raise InvalidArgument("the disk is full")

        store.before = fail
        with contextlib.suppress(InvalidArgument):  # cleaning goes on without it
            engine.go()
            engine.go()
        store.before = lambda verb, name: None
        engine = Engine(store, world, resume=True)
        while engine.slice.next_row <= 10:
            engine.go()
        assert world.shown() == list(range(1, 11)), f"access {failing} failed"


def test_a_clean_up_that_fails_is_made_up_for_at_the_next_start() -> None:
    store, world = MemoryStore(), World()
    engine = Engine(store, world)
    engine.go()

    def fail(verb: str, name: str) -> None:
        if verb == "delete":
            raise OSError("permission denied")

    store.before = fail
    engine.go()
    engine.go()
    store.before = lambda verb, name: None
    assert epochs_in(store.files) == [1, 2, 3, 4]
    Engine(store, world, resume=True)
    assert epochs_in(store.files) == [1, 5]
    assert [name for name in store.files if name.startswith("states/")] == ["states/0000000004/0-0.arrow"]


# ---- Fences ----------------------------------------------------------------------------------------------------------


def test_an_older_engine_stops_and_applies_nothing() -> None:
    store, world = MemoryStore(), World()
    older = Engine(store, world)
    older.go()
    newer = Engine(store, world, resume=True)
    with pytest.raises(Fenced, match="another engine has resumed this pipeline after epoch 2"):
        older.go()
    assert world.shown() == [1, 2]
    newer.go()
    assert world.shown() == [1, 2, 3, 4]


def test_an_older_engine_that_wakes_up_late_collides_with_the_fence() -> None:
    """Clean-up never removes the number that a sleeping engine would create."""
    store, world = MemoryStore(), World()
    older = Engine(store, world)
    older.go()
    for _ in range(3):
        newer = Engine(store, world, resume=True)
        for _ in range(4):
            newer.go()
    with pytest.raises(Fenced):
        older.go()
    assert world.shown() == list(range(1, 27))
    assert fence_of(store) == [1, 3, 8, 13]


def test_an_older_engine_that_wakes_up_between_commit_and_apply_shows_no_row_twice() -> None:
    store, world = MemoryStore(), World()
    older = Engine(store, world)

    def resume() -> None:
        world.on_apply = lambda: None
        Engine(store, world, resume=True).go()

    world.on_apply = resume
    older.go()
    assert world.shown() == [1, 2, 3, 4]
    with pytest.raises(Fenced):
        older.go()


def test_an_engine_that_falls_asleep_before_its_fence_does_not_take_a_cleaned_number() -> None:
    store, world = MemoryStore(), World()
    running = Engine(store, world)
    running.go()

    def meanwhile(verb: str, name: str) -> None:
        if verb == "create":
            store.before = lambda verb, name: None
            for _ in range(3):
                running.go()
            assert epochs_in(store.files) == [1, 5]  # 3, which the sleeping one creates now, is free again

    store.before = meanwhile
    resumed = Engine(store, world, resume=True)
    assert resumed.epochs.latest is not None
    assert resumed.epochs.latest.epoch == 6
    assert resumed.slice.next_row == 9
    with pytest.raises(Fenced):
        running.go()
    resumed.go()
    assert world.shown() == list(range(1, 11))


def test_of_two_engines_that_resume_at_once_the_later_fence_counts() -> None:
    store, world = MemoryStore(), World()
    Engine(store, world).go()
    first: list[Engine] = []

    def meanwhile(verb: str, name: str) -> None:
        if verb == "create":
            store.before = lambda verb, name: None
            first.append(Engine(store, world, resume=True))

    store.before = meanwhile
    second = Engine(store, world, resume=True)
    second.go()
    with pytest.raises(Fenced):
        first[0].go()
    assert world.shown() == [1, 2, 3, 4]


def test_of_two_engines_that_begin_at_once_the_second_is_refused() -> None:
    store, world = MemoryStore(), World()

    def meanwhile(verb: str, name: str) -> None:
        if verb == "create":
            store.before = lambda verb, name: None
            Engine(store, world).go()

    store.before = meanwhile
    with pytest.raises(InvalidArgument, match="memory has checkpoints already: go on from there with --resume"):
        Engine(store, world)


def test_a_slow_start_does_not_clean_what_a_newer_engine_has_staged() -> None:
    store, world = MemoryStore(), World()
    Engine(store, world).go()
    newer: list[Engine] = []

    def meanwhile(verb: str, name: str) -> None:
        if (verb, name) == ("names", "states/"):  # the clean-up of the slow one begins
            store.before = lambda verb, name: None
            newer.append(Engine(store, world, resume=True))
            newer[0].go()

    store.before = meanwhile
    Epochs(store, IDENTITY, resume=True).fence()
    assert newer[0].go() is not None
    Engine(store, world, resume=True).go()
    assert world.shown() == list(range(1, 9))


class Interleaved:
    """Engines over one store, of which any may fall asleep or be killed at any access, while others begin and go on."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.store, self.world = MemoryStore(), World()
        self.engines: list[Engine] = []
        self.awake: set[Engine] = set()  # in the middle of an epoch
        self.depth = 0
        self.actions = 0
        self.store.before = lambda verb, name: self.happens()
        self.world.on_store = self.world.on_apply = self.happens

    def happens(self) -> None:
        """What may happen before each access to the store or a sink."""
        if self.depth < 4 and self.actions < ACTIONS and self.random.random() < 0.08:
            self.depth += 1
            for _ in range(self.random.randint(1, 4)):
                self.go_on()
            self.depth -= 1
        if self.random.random() < 0.02:
            raise Killed

    def go_on(self) -> None:
        """An engine resumes, or one that is there takes an epoch."""
        self.actions += 1
        sleeping = [engine for engine in self.engines if engine not in self.awake]
        try:
            if not sleeping or self.random.random() < 0.2:
                self.engines.append(Engine(self.store, self.world, resume=bool(epochs_in(self.store.files))))
                return
            engine = self.random.choice(sleeping)
            self.awake.add(engine)
            engine.go(self.random.randint(0, 3))
            self.awake.remove(engine)
        except (Killed, Fenced, InvalidArgument):  # InvalidArgument: two have begun at once
            return


@pytest.mark.parametrize("seed", range(60))
def test_rows_are_shown_once_however_engines_interleave(seed: int) -> None:
    story = Interleaved(seed)
    while story.actions < ACTIONS or not epochs_in(story.store.files):
        story.go_on()
    story.store.before = lambda verb, name: None
    story.world.on_store = story.world.on_apply = lambda: None
    last = Engine(story.store, story.world, resume=True)
    last.go()
    assert story.world.shown() == list(range(1, last.slice.next_row))
    assert not story.world.staged
    for engine in story.engines:
        with pytest.raises(Fenced):
            engine.go()


# ---- What does not fit -----------------------------------------------------------------------------------------------


def test_a_place_with_checkpoints_is_not_begun_anew() -> None:
    store = MemoryStore()
    Engine(store, World())
    with pytest.raises(InvalidArgument, match="go on from there with --resume, or name another place"):
        Epochs(store, IDENTITY)


def test_a_place_without_checkpoints_is_not_resumed() -> None:
    with pytest.raises(InvalidArgument, match="memory has no checkpoints: begin without --resume"):
        Epochs(MemoryStore(), IDENTITY, resume=True)


def test_a_first_engine_that_could_not_begin_leaves_the_place_as_it_was() -> None:
    store = MemoryStore()
    epochs = Epochs(store, IDENTITY)
    epochs.fence()
    assert epochs.withdraw()
    assert not store.files
    engine = Engine(store, World())
    engine.go()
    assert not engine.epochs.withdraw()
    assert epochs_in(store.files) == [1, 2]


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"pipeline": "trains"}, "memory has checkpoints of the pipeline 'flights', not of 'trains'"),
        ({"fingerprint": {"source": "impulse"}}, 'has changed since .* source .source was "files", and is "impulse"'),
        ({"fingerprint": {"source": "files", "sinks": ["a"]}}, r'sinks .sinks was null, and is \["a"\]'),
        ({"plugins": {"speed": "xyz"}}, "the plugin of speed is not the one that ran before: .*--allow-changed-plugin"),
    ],
)
def test_another_pipeline_is_refused_by_what_differs(changed: Json, error: str) -> None:
    store = MemoryStore()
    Engine(store, World())
    with pytest.raises(InvalidArgument, match=error):
        Epochs(store, IDENTITY.model_copy(update=changed), resume=True)


def test_a_changed_plugin_is_resumed_if_it_is_allowed() -> None:
    store = MemoryStore()
    Engine(store, World())
    other = IDENTITY.model_copy(update={"plugins": {"speed": "xyz"}})
    Epochs(store, other, resume=True, allow_changed_plugin=True).fence()
    Epochs(store, other, resume=True)  # it is the plugin that ran before now


def _cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _flipped(data: bytes) -> bytes:
    return data.replace(b'"next":3', b'"next":4')


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (_cut, "epochs/0000000002.json: the epoch is damaged"),
        (_flipped, "its checksum is another one"),
        (lambda data: b"", "the epoch is damaged"),
        (lambda data: b"[]", "the epoch is damaged"),
        (lambda data: b'{"version":1}', "the epoch is damaged"),
        (lambda data: data.replace(b'"version":1', b'"version":2'), "has format version 2, and this program reads"),
    ],
)
def test_a_damaged_epoch_and_one_of_another_version_are_refused_by_name(
    damage: Callable[[bytes], bytes], error: str
) -> None:
    store = MemoryStore()
    Engine(store, World()).go()
    name = "epochs/0000000002.json"
    assert damage(store.files[name]) != store.files[name]
    store.files[name] = damage(store.files[name])
    with pytest.raises(InvalidArgument, match=error):
        Epochs(store, IDENTITY, resume=True)
    assert epochs_in(store.files) == [1, 2]


@pytest.mark.parametrize("damage", [_cut, lambda data: data[:-1] + b"!"], ids=["cut", "changed"])
def test_a_damaged_or_missing_state_is_refused_by_name(damage: Callable[[bytes], bytes]) -> None:
    store, world = MemoryStore(), World()
    engine = Engine(store, world)
    engine.slice.state = b"rows in flight"
    engine.go()
    name = "states/0000000002/0-0.arrow"
    good, store.files[name] = store.files[name], damage(store.files[name])
    resumed = Epochs(store, IDENTITY, resume=True)
    with pytest.raises(InvalidArgument, match=f"{name}, the state of speed, is damaged"):
        resumed.states(0, 1)
    del store.files[name]
    with pytest.raises(InvalidArgument, match=f"{name}, the state of speed, is missing"):
        resumed.states(0, 1)
    store.files[name] = good
    assert resumed.states(0, 1) == ([7], [(b"rows in flight",)])


def test_epochs_of_version_1_can_be_read() -> None:
    """A file of each version stays here, so that no change makes it unreadable."""
    epoch = Manifest.read((KEPT / "epoch-1.json").read_bytes(), "epoch-1.json")
    assert epoch.epoch == 2
    assert epoch.positions == {"p0": {"next": 3}}
    assert epoch.written() == (KEPT / "epoch-1.json").read_bytes()


# ---- Another parallelism ---------------------------------------------------------------------------------------------


def test_states_of_slices_are_shared_out_over_another_number_of_slices() -> None:
    """A3: no state is lost or taken twice, and positions are united."""
    store, world = MemoryStore(), World()
    epochs = Epochs(store, IDENTITY)
    epochs.fence()
    slices = [Counting(world, place, 1, f"state {place}".encode()) for place in range(3)]
    for each in slices:
        each.sinks[0].clear(1)
        each.read(2)
    epochs.take(slices)
    resumed = Epochs(store, IDENTITY, resume=True)

    def states(width: int) -> Sequence[list[tuple[bytes, ...]]]:
        return [resumed.states(place, width)[1] for place in range(width)]

    assert states(2) == [[(b"state 0", b"state 2")], [(b"state 1",)]]
    assert states(5) == [[(b"state 0",)], [(b"state 1",)], [(b"state 2",)], [], []]
    assert states(1) == [[(b"state 0", b"state 1", b"state 2")]]
    assert resumed.latest is not None
    assert resumed.latest.positions == {"p0": {"next": 3}, "p1": {"next": 3}, "p2": {"next": 3}}


def test_committed_rows_of_slices_that_are_gone_are_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    store, world = MemoryStore(), World()
    epochs = Epochs(store, IDENTITY)
    epochs.fence()
    slices = [Counting(world, place, 10 * place) for place in range(3)]
    for each in slices:
        each.sinks[0].clear(1)
        each.read(1)

    def reached(name: str) -> None:
        if name == "committed":
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "reached", reached)
        with pytest.raises(Killed):
            epochs.take(slices)
    resumed = Epochs(store, IDENTITY, resume=True)
    resumed.fence()
    resumed.apply([Counting(world)])
    assert sorted(world.shown()) == [0, 10, 20]
