"""Several engines over one store: only the newest commits, however they fall asleep, are killed and wake up."""

from __future__ import annotations

import random

import pytest
from engines import IDENTITY, Engine, Killed, fence_of
from worlds import MemoryStore, World, epochs_in

from arroyo_udf_plugin.engine.execution.checkpoints import Epochs
from arroyo_udf_plugin.errors import Fenced, InvalidArgument

ACTIONS = 120  # of all interleaved engines


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
    with pytest.raises(InvalidArgument, match="memory: another engine has begun this pipeline in this moment"):
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
