"""Retained checkpoints, and going back to one (execution/epoch_files.py, checkpoints.py), without slices or threads."""

from __future__ import annotations

import pytest
from engines import IDENTITY, Engine
from worlds import MemoryStore, World, epochs_in

from arroyo_udf_plugin.engine.execution.checkpoints import Epochs
from arroyo_udf_plugin.engine.execution.manifest import Manifest
from arroyo_udf_plugin.engine.execution.restoring import checkpoints_in
from arroyo_udf_plugin.engine.execution.retention import Retention
from arroyo_udf_plugin.engine.operators.state_parts import StoredState
from arroyo_udf_plugin.errors import Fenced, InvalidArgument


def begun(epochs: int, retain: int) -> tuple[MemoryStore, World, Engine]:
    """Epochs from 2 on, each with a state."""
    store, world = MemoryStore(), World()
    engine = Engine(store, world, retain=retain)
    for number in range(epochs):
        engine.slice.state = f"state {number}".encode()
        engine.go()
    return store, world, engine


def states(store: MemoryStore) -> list[int]:
    return sorted(int(name[7:17]) for name in store.files if name.startswith("states/"))


def there(store: MemoryStore) -> dict[int, str | None]:
    return {one.epoch: one.problem for one in checkpoints_in(store)}


def name(number: int) -> str:
    return f"epochs/{number:010}.json"


@pytest.mark.parametrize("retain", [1, 2, 5])
def test_the_last_ones_are_retained_and_nothing_that_only_others_need(retain: int) -> None:
    store, _, _ = begun(7, retain)
    kept = list(range(9 - retain, 9))
    assert states(store) == kept
    assert epochs_in(store.files) == [1, *kept]
    assert there(store) == dict.fromkeys(kept)


def test_a_later_engine_retains_as_many_as_it_is_told() -> None:
    store, world, _ = begun(7, 5)
    Engine(store, world, resume=True, retain=2)
    assert there(store) == {7: None, 8: None}
    assert states(store) == [7, 8]


def test_going_back_gives_up_later_epochs_and_goes_on_from_the_former_state() -> None:
    store, world, _ = begun(5, 3)
    assert there(store) == {4: None, 5: None, 6: None}
    engine = Engine(store, world, resume=True, retain=3, restore=4)
    latest = engine.epochs.latest
    assert latest is not None
    assert (latest.epoch, latest.fence, latest.given_up) == (7, True, ((5, 6),))
    assert engine.epochs.states(0, 1)[1] == [(StoredState(b"state 2"),)]
    assert engine.slice.next_row == 7  # of rows 1 to 10
    assert there(store) == {4: None}, "those of rows that were taken back cannot be gone back to"
    assert states(store) == [4, 7]
    engine.go()
    engine.go()
    engine.go()
    assert there(store) == {8: None, 9: None, 10: None}
    assert states(store) == [8, 9, 10]


def test_going_back_twice() -> None:
    store, world, _ = begun(5, 4)
    Engine(store, world, resume=True, retain=4, restore=5).go()
    engine = Engine(store, world, resume=True, retain=4, restore=4)
    latest = engine.epochs.latest
    assert latest is not None
    assert latest.given_up == ((5, 8),)
    assert there(store) == {3: None, 4: None}
    engine.go()
    again = Engine(store, world, resume=True, retain=4, restore=10).epochs.latest
    assert again is not None
    assert again.given_up == ((5, 8),), "an earlier one is remembered"


@pytest.mark.parametrize("number", [1, 3, 5, 9])
def test_what_is_no_checkpoint_any_more_is_refused(number: int) -> None:
    """A fence, one that was cleaned, one that was given up, one that never was."""
    store, world, _ = begun(5, 3)
    Engine(store, world, resume=True, retain=3, restore=4)
    before = dict(store.files)
    with pytest.raises(InvalidArgument, match=f"memory has no checkpoint {number}: there are 4"):
        Epochs(store, IDENTITY, restore=number)
    assert store.files == before


def test_an_empty_place_has_nothing_to_go_back_to() -> None:
    with pytest.raises(InvalidArgument, match="has no checkpoints"):
        Epochs(MemoryStore(), IDENTITY, resume=True, restore=3)


# ---- Another engine --------------------------------------------------------------------------------------------------


def test_a_running_engine_is_shut_out() -> None:
    store, world, old = begun(5, 3)
    Engine(store, world, resume=True, retain=3, restore=4)
    with pytest.raises(Fenced):
        old.go()


def test_an_older_engine_that_wakes_up_and_cleans_does_not_remove_what_was_restored() -> None:
    """It sleeps in step 5, before it removes the oldest one; somebody goes back to that one."""
    store, world, old = begun(3, 3)
    restored: list[Engine] = []

    def before(verb: str, asked: str) -> None:
        if (verb, asked) == ("delete", name(2)):
            store.before = lambda verb, name: None
            restored.append(Engine(store, world, resume=True, retain=3, restore=2))

    store.before = before
    old.go()
    assert name(2) not in store.files, "it has cleaned"
    assert restored[0].epochs.states(0, 1)[1] == [(StoredState(b"state 0"),)]
    assert Engine(store, world, resume=True).epochs.states(0, 1)[1] == [(StoredState(b"state 0"),)]


def test_an_engine_that_commits_meanwhile_has_that_given_up_too() -> None:
    store, _, old = begun(3, 3)
    epochs = Epochs(store, IDENTITY, resume=True, retention=Retention(3), restore=3)
    old.go()
    fence = epochs.fence()
    assert (fence.epoch, fence.given_up) == (6, ((4, 5),))


# ---- Lost and damaged ones -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "data", "problem"),
    [
        (name(5), b"{", "memory/epochs/0000000005.json: the epoch is damaged"),
        (name(5), None, "epochs/0000000005.json is missing"),
        ("states/0000000005-0-0.arrow", b"state X", "states/0000000005-0-0.arrow, the state of speed, is damaged"),
        ("states/0000000005-0-0.arrow", None, "states/0000000005-0-0.arrow, the state of speed, is missing"),
    ],
    ids=["a damaged epoch", "a lost epoch", "a damaged state", "a lost state"],
)
def test_a_damaged_one_is_told_and_refused_and_can_be_put_back(file: str, data: bytes | None, problem: str) -> None:
    store, world, _ = begun(5, 3)
    whole = store.files[file]
    if data is None:
        del store.files[file]
    else:
        store.files[file] = data
    found = there(store)
    assert (found[4], found[6]) == (None, None)
    assert problem in (found[5] or "")
    before = dict(store.files)
    is_lost = file == name(5) and data is None
    with pytest.raises(InvalidArgument, match=r"has no checkpoint 5: there are 4, 6$" if is_lost else file):
        Engine(store, world, resume=True, retain=3, restore=5)
    assert store.files == before
    Engine(store, world, resume=True, retain=3)  # the others are not touched, and what is left of it stays
    store.files[file] = whole
    assert there(store) == {4: None, 5: None, 6: None}
    engine = Engine(store, world, resume=True, retain=3, restore=5)
    assert engine.epochs.states(0, 1)[1] == [(StoredState(b"state 3"),)]


@pytest.mark.parametrize("damaged", [name(6), "states/0000000006-0-0.arrow"])
def test_if_the_newest_is_damaged_one_can_go_back_to_the_one_before(damaged: str) -> None:
    """As the error advises."""
    store, world, _ = begun(5, 3)
    store.files[damaged] = store.files[damaged][:-3]
    with pytest.raises(InvalidArgument, match=r"go back to an older checkpoint \(--restore\)"):
        Engine(store, world, resume=True, retain=3)
    engine = Engine(store, world, resume=True, retain=3, restore=5)
    assert engine.slice.next_row == 9
    engine.go()
    assert list(there(store))[:2] == [4, 5]


def test_rows_of_the_newest_that_wait_are_applied_when_it_is_restored() -> None:
    """The engine was killed between commit and apply; another one began and was killed, too."""
    store, world, engine = begun(2, 3)

    def fail() -> None:
        raise OSError("the table is locked")

    world.on_apply = fail
    with pytest.raises(OSError, match="locked"):
        engine.go()
    with pytest.raises(OSError, match="locked"):
        Engine(store, world, resume=True, retain=3)
    world.on_apply = lambda: None
    assert world.shown() == [1, 2, 3, 4]
    Engine(store, world, resume=True, retain=3, restore=4)
    assert world.shown() == [1, 2, 3, 4, 5, 6]


def test_rows_that_wait_for_an_epoch_that_is_given_up_never_come() -> None:
    store, world, engine = begun(2, 3)

    def fail() -> None:
        raise OSError("the table is locked")

    world.on_apply = fail
    with pytest.raises(OSError, match="locked"):
        engine.go()
    world.on_apply = lambda: None
    again = Engine(store, world, resume=True, retain=3, restore=3)
    assert world.shown() == [1, 2, 3, 4]
    again.go()
    assert world.shown() == [1, 2, 3, 4, 5, 6]


def test_epochs_of_version_1_have_no_times() -> None:
    store, _, _ = begun(1, 3)
    (one,) = checkpoints_in(store)
    assert (one.time or "").endswith("+00:00")
    manifest = Manifest.read(store.files[name(2)], 2, "").model_copy(update={"time": None})
    store.files[name(2)] = manifest.written()
    assert [each.time for each in checkpoints_in(store)] == [None]
