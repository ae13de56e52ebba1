"""Savepoints, checkpoints that somebody knows of, and retention by age, without slices or threads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from engines import IDENTITY, Engine
from test_retained import begun, states, there
from worlds import MemoryStore, World

from arroyo_udf_plugin.engine.execution.checkpoints import Epochs
from arroyo_udf_plugin.engine.execution.retention import Retention
from arroyo_udf_plugin.engine.execution.savepoints import Savepoints, TakenSavepoint
from arroyo_udf_plugin.engine.operators.state_parts import StoredState
from arroyo_udf_plugin.errors import InvalidArgument, WrongCheckpoints


def test_no_retention_removes_a_savepoint_and_one_goes_back_to_it() -> None:
    store, world, engine = begun(3, 1)
    taken = Savepoints(store).take("before")
    assert (taken.name, taken.epoch) == ("before", 4)
    for _ in range(5):
        engine.go()
    assert states(store) == [9]
    assert [one.epoch for one in Savepoints(store).listed()] == [4]
    again = Engine(store, world, resume=True, restore="before")
    latest = again.epochs.latest
    assert latest is not None
    assert (latest.epoch, latest.fence, latest.given_up) == (10, True, ((5, 9),))
    assert again.epochs.gone_back_to == 4
    assert again.epochs.states(0, 1)[1] == [(StoredState(b"state 2"),)]
    assert latest.positions == {"p0": {"next": 7}}


def test_a_savepoint_of_a_fence_has_the_rows_that_wait() -> None:
    store, world, _ = begun(2, 1)
    applied = "epochs/0000000003.applied"
    store.delete(applied)
    fence = Engine(store, world, resume=True).epochs.latest
    assert fence is not None
    assert (fence.epoch, fence.rows.epoch) == (4, 3)
    store.delete(applied)  # as if that engine had been killed behind its fence
    assert Savepoints(store).take("at-a-fence").epoch == 4
    waiting = Epochs(store, IDENTITY, resume=True, restore="at-a-fence").waiting
    assert waiting == fence.rows
    assert any(waiting.slices)


def test_what_rows_an_epoch_had_that_is_not_retained_is_not_known() -> None:
    store, world, engine = begun(1, 1)
    Savepoints(store).take("old")
    for _ in range(4):
        engine.go()
    again = Engine(store, world, resume=True, restore="old")
    assert {number for number, rows in again.epochs.later.items() if rows is None} == {3, 4, 5}
    assert again.epochs.later[6] is not None


def test_a_name_is_taken_once_and_freed_by_its_removal() -> None:
    store, _, engine = begun(1, 1)
    savepoints = Savepoints(store)
    savepoints.take("one")
    engine.go()
    with pytest.raises(InvalidArgument, match="has a savepoint one already: write another name, or delete it"):
        savepoints.take("one")
    savepoints.delete("one")
    assert not store.names("savepoints/")
    assert savepoints.take("one").epoch == 3


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "x" * 101])
def test_a_name_is_a_part_of_a_path(name: str) -> None:
    store, _, _ = begun(1, 1)
    with pytest.raises(InvalidArgument, match="is no name of a savepoint"):
        Savepoints(store).take(name)


def test_without_a_checkpoint_there_is_no_savepoint() -> None:
    store, world = MemoryStore(), World()
    for _ in range(2):
        with pytest.raises(WrongCheckpoints, match="has no checkpoint yet: wait for the first one"):
            Savepoints(store).take("early")
        if not store.files:
            Engine(store, world)  # a fence
    with pytest.raises(WrongCheckpoints, match="has no savepoint early"):
        Engine(store, world, resume=True, restore="early")


def test_a_savepoint_of_what_was_given_up_is_refused() -> None:
    store, world, _ = begun(3, 3)
    Savepoints(store).take("late")
    Engine(store, world, resume=True, retain=3, restore=2)
    with pytest.raises(WrongCheckpoints, match="the savepoint late is of checkpoint 4, which was given up"):
        Engine(store, world, resume=True, restore="late")


def test_a_savepoint_copies_while_an_engine_takes_the_checkpoint_away() -> None:
    store, _, engine = begun(2, 1)
    load, went_on = store.load, False

    def loaded(name: str) -> object:
        nonlocal went_on
        if not went_on:
            went_on = True
            engine.slice.state = b"later"
            engine.go()
        return load(name)

    store.load = loaded  # type: ignore[method-assign, assignment]
    assert Savepoints(store).take("meanwhile").epoch == 4


def test_a_damaged_state_becomes_no_savepoint() -> None:
    store, _, _ = begun(1, 1)
    (name,) = store.names("states/")
    store.files[name] = b"x" * len(store.files[name])
    with pytest.raises(InvalidArgument, match="is damaged"):
        Savepoints(store).take("damaged")
    assert Savepoints(store).listed() == list[TakenSavepoint]()


# ---- A checkpoint that somebody knows of ----


def test_an_empty_place_is_refused_if_there_was_a_checkpoint() -> None:
    with pytest.raises(WrongCheckpoints, match="has no checkpoints, and checkpoint 7 was taken: mount the folder"):
        Engine(store := MemoryStore(), World(), at_least=7)
    assert not store.files


def test_an_older_place_is_refused() -> None:
    store, world, _ = begun(3, 3)
    before = dict(store.files)
    with pytest.raises(WrongCheckpoints, match="ends with checkpoint 4, and checkpoint 5 was taken"):
        Engine(store, world, resume=True, at_least=5)
    assert store.files == before
    Engine(store, world, resume=True, at_least=4)


def test_going_back_is_no_older_place() -> None:
    store, world, _ = begun(3, 3)
    Engine(store, world, resume=True, retain=3, restore=2, at_least=4)
    Engine(store, world, resume=True, retain=3, at_least=5)
    assert there(store) == {2: None}


# ---- Retention ----


def test_young_checkpoints_are_kept_beyond_the_number() -> None:
    def ago(seconds: float) -> str:
        return (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat(timespec="milliseconds")

    times = {1: None, 4: ago(500), 7: ago(300), 8: ago(200), 9: ago(100)}
    assert Retention(2).kept(times) == [8, 9]
    assert Retention(2, 400).kept(times) == [7, 8, 9]
    assert Retention(1, 1000).kept(times) == [4, 7, 8, 9]
    assert Retention(9, 1).kept(times) == [1, 4, 7, 8, 9]
    with pytest.raises(InvalidArgument, match="write a number above 0"):
        Retention(0)
