"""Epochs over a store, step by step (the five steps of execution/checkpoints.py), without slices or threads of them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from engines import IDENTITY, SOURCE, Counting, Engine, Killed
from worlds import MemoryStore, World, epochs_in

from arroyo_udf_plugin import failpoints
from arroyo_udf_plugin.engine.connectors.interface import Json
from arroyo_udf_plugin.engine.execution.checkpoints import Epochs
from arroyo_udf_plugin.engine.execution.manifest import Manifest, PipelineIdentity
from arroyo_udf_plugin.engine.operators.state_parts import StoredState
from arroyo_udf_plugin.errors import InvalidArgument

KEPT = Path(__file__).parent / "kept"


# ---- The steps -------------------------------------------------------------------------------------------------------


def test_an_epoch_takes_the_five_steps_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    store, world = MemoryStore(), World()
    engine = Engine(store, world)
    steps: list[str] = []
    monkeypatch.setattr(failpoints, "reached", steps.append)
    world.on_store = lambda: steps.append("rows")
    store.before = lambda verb, name: steps.append(f"{verb} {name}")
    engine.go()
    assert set(steps[1:3]) == {"rows", "put states/0000000002-0-0.arrow"}, "they may change places"
    assert steps[0] == "sealed"
    assert steps[3:] == [
        "staged",
        "create epochs/0000000002.json",
        "committed",
        "applied",
        "put epochs/0000000002.applied",
        "cleaned",
    ]
    steps.clear()
    engine.go()
    assert steps[-4:] == [
        "delete epochs/0000000002.json",
        "delete epochs/0000000002.applied",
        "delete states/0000000002-0-0.arrow",
        "cleaned",
    ]
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
    assert epochs_in(store.files) == [1, 4, 5]
    assert [name for name in store.files if name.startswith("states/")] == ["states/0000000004-0-0.arrow"]


def test_rows_that_somebody_has_taken_away_are_not_asked_for_at_a_resume() -> None:
    """A consumer moves parts out of the folder."""
    store, world = MemoryStore(), World()
    Engine(store, world).go()
    world.applied.clear()  # the sink cannot know any more that they were there
    assert not world.staged
    for _ in range(2):
        engine = Engine(store, world, resume=True)
    engine.go()
    assert world.shown() == [1, 2, 3, 4]
    Engine(store, world, resume=True)
    assert [name for name in store.files if name.endswith(".applied")] == []


def test_files_of_others_in_the_place_are_left_alone() -> None:
    store, world = MemoryStore(), World()
    strays = ["epochs/README", "epochs/0000000009.json~", "epochs/old/0000000009.json", "states/notes", "states/1/2"]
    store.files |= dict.fromkeys(strays, b"hi")
    Engine(store, world).go()
    Engine(store, world, resume=True).go()
    assert [name for name in store.files if store.files[name] == b"hi"] == strays
    assert world.shown() == [1, 2, 3, 4]


# ---- What does not fit -----------------------------------------------------------------------------------------------


def test_a_place_with_checkpoints_is_not_begun_anew() -> None:
    store = MemoryStore()
    Engine(store, World())
    with pytest.raises(InvalidArgument, match="go on from there without --fresh, or name another place"):
        Epochs(store, IDENTITY, resume=False)


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
        (
            {"fingerprint": {"source": {"type": "files", "paths": ["b", "c"]}}},
            'has changed since .*: source.paths.0. was "a", and is "b": undo',
        ),
        ({"fingerprint": SOURCE | {"sinks": ["a"]}}, r'sinks was null, and is \["a"\]'),
        (
            {"fingerprint": {"source": {"type": "files", "paths": ["a", "c", "new"]}}},
            r'written: source.paths\[2\] is new, "new": undo',
        ),
        (
            {"fingerprint": {"source": {"type": "files", "paths": ["a"]}}},
            r'source.paths\[1\] is gone, which was "c": undo',
        ),
        (
            {"fingerprint": {"source": {"type": "impulse", "rate": 1}}},
            'source.type was "files", and is "impulse": undo',
        ),
        ({"plugins": {"speed": "xyz"}}, "the plugin of speed is not the one that ran before: .*--allow-changed-plugin"),
    ],
)
def test_another_pipeline_is_refused_by_what_differs(changed: Json, error: str) -> None:
    store = MemoryStore()
    Engine(store, World())
    with pytest.raises(InvalidArgument, match=error):
        Epochs(store, IDENTITY.model_copy(update=changed), resume=True)


def test_a_new_item_is_told_by_what_it_says() -> None:
    store = MemoryStore()
    Epochs(store, PipelineIdentity.of("flights", {"sinks": []}, {})).fence()
    now = PipelineIdentity.of("flights", {"sinks": [{"columns": None, "path": "out", "type": "parts"}]}, {})
    with pytest.raises(InvalidArgument, match=r'sinks\[0\] is new, \{"type": "parts", "path": "out"\}: undo'):
        Epochs(store, now, resume=True)


def test_of_long_values_the_parts_that_differ_are_told() -> None:
    """Two texts that are cut before they differ would say nothing."""
    store = MemoryStore()
    was = PipelineIdentity.of("flights", {"sinks": ["x" * 200 + "a" + "y" * 200]}, {})
    now = PipelineIdentity.of("flights", {"sinks": ["x" * 200 + "b" + "y" * 200]}, {})
    Epochs(store, was).fence()
    with pytest.raises(InvalidArgument, match=r'sinks\[0\] was "?\.\.\.x+ay+\.\.\., and is \.\.\.x+by+\.\.\.: undo'):
        Epochs(store, now, resume=True)


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
        (lambda data: b"[" * 100_000, "the epoch is damaged"),
        (lambda data: b'{"version":1}', "the epoch is damaged"),
        (lambda data: data.replace(b'"version":3', b'"version":4'), "has format version 4, and this program reads"),
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


def test_an_epoch_under_the_name_of_another_is_refused() -> None:
    store = MemoryStore()
    Engine(store, World()).go()
    store.files["epochs/0000000007.json"] = store.files["epochs/0000000002.json"]
    with pytest.raises(InvalidArgument, match=r"epochs/0000000007.json: the epoch is damaged \(it is of epoch 2\)"):
        Epochs(store, IDENTITY, resume=True)


@pytest.mark.parametrize("damage", [_cut, lambda data: data[:-1] + b"!"], ids=["cut", "changed"])
def test_a_damaged_or_missing_state_is_refused_by_name(damage: Callable[[bytes], bytes]) -> None:
    store, world = MemoryStore(), World()
    engine = Engine(store, world)
    engine.slice.state = b"rows in flight"
    engine.go()
    name = "states/0000000002-0-0.arrow"
    good, store.files[name] = store.files[name], damage(store.files[name])
    resumed = Epochs(store, IDENTITY, resume=True)
    with pytest.raises(InvalidArgument, match=f"{name}, the state of speed, is damaged"):
        resumed.states(0, 1)
    del store.files[name]
    with pytest.raises(InvalidArgument, match=f"{name}, the state of speed, is missing"):
        resumed.states(0, 1)
    store.files[name] = good
    assert resumed.states(0, 1) == ([(7,)], [(StoredState(b"rows in flight"),)])


def test_epochs_of_version_1_can_be_read() -> None:
    """A file of each version stays here, so that no change makes it unreadable."""
    epoch = Manifest.read((KEPT / "epoch-1.json").read_bytes(), 2, "epoch-1.json")
    assert epoch.epoch == 2
    assert epoch.positions == {"p0": {"next": 3}}
    kept = json.loads((KEPT / "epoch-1.json").read_bytes())
    assert json.loads(epoch.written()) == kept | {"version": 3}


# ---- Another parallelism ---------------------------------------------------------------------------------------------


def test_states_of_slices_are_shared_out_over_another_number_of_slices() -> None:
    """No state is lost or taken twice, and positions are united."""
    store, world = MemoryStore(), World()
    epochs = Epochs(store, IDENTITY)
    epochs.fence()
    slices = [Counting(world, place, 1, f"state {place}".encode()) for place in range(3)]
    for each in slices:
        each.sinks[0].clear(1)
        each.read(2)
    epochs.take(slices)
    resumed = Epochs(store, IDENTITY, resume=True)

    def states(width: int) -> Sequence[list[tuple[StoredState, ...]]]:
        return [resumed.states(place, width)[1] for place in range(width)]

    zero, one, two = every = tuple(StoredState(f"state {place}".encode()) for place in range(3))
    assert states(2) == [[(zero, two)], [(one,)]]
    assert states(5) == [[(zero,)], [(one,)], [(two,)], [()], [()]]
    assert states(1) == [[every]]
    by_keys = [resumed.states(place, 2, shared=[0]) for place in range(2)]
    assert by_keys == [([(7, 7, 7)], [every])] * 2, "each takes its key groups of all"
    assert resumed.latest is not None
    assert resumed.latest.positions == {"p0": {"next": 3}, "p1": {"next": 3}, "p2": {"next": 3}}
    assert b"others" not in resumed.latest.written(), "older programs read epochs of one source"


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
