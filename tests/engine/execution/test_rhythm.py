"""Beats: every so many seconds, but not while nothing moves."""

import math

from arroyo_udf_plugin.engine.execution.rhythm import Rhythm


class Clock:
    def __init__(self) -> None:
        self.time, self.woken = 0.0, 0

    def __call__(self) -> float:
        return self.time

    def wake(self) -> None:
        self.woken += 1


def test_a_beat_comes_so_many_seconds_after_the_one_before() -> None:
    clock = Clock()
    rhythm = Rhythm(10.0, clock.wake, clock)
    rhythm.moved()
    clock.time = 4.0
    assert rhythm.left == 6.0
    clock.time = 12.0
    assert rhythm.left == 0.0
    rhythm.begin()
    rhythm.moved()
    assert rhythm.left == 10.0


def test_while_nothing_moves_there_is_none() -> None:
    clock = Clock()
    rhythm = Rhythm(10.0, clock.wake, clock)
    assert rhythm.left == math.inf
    clock.time = 100.0
    assert rhythm.left == math.inf
    assert clock.woken == 0


def test_whoever_waits_is_woken_by_the_first_move_only() -> None:
    clock = Clock()
    rhythm = Rhythm(10.0, clock.wake, clock)
    rhythm.moved()
    assert clock.woken == 0  # nobody waits yet
    rhythm.begin()
    assert rhythm.left == math.inf
    rhythm.moved()
    rhythm.moved()
    assert clock.woken == 1


def test_after_a_pause_beats_come_when_they_would_have_come_without_it() -> None:
    clock = Clock()
    rhythm = Rhythm(10.0, clock.wake, clock)
    assert rhythm.left == math.inf
    clock.time = 34.0
    rhythm.moved()
    assert rhythm.left == 6.0
    clock.time = 41.0
    assert rhythm.left == 0.0  # due, as long as it is not begun
    rhythm.begin()
    assert rhythm.left == math.inf


def test_a_move_during_a_beat_belongs_to_the_next_one() -> None:
    clock = Clock()
    rhythm = Rhythm(10.0, clock.wake, clock)
    rhythm.moved()
    clock.time = 10.0
    rhythm.begin()
    rhythm.moved()
    assert rhythm.left == 10.0


def test_never() -> None:
    clock = Clock()
    rhythm = Rhythm(None, clock.wake, clock)
    rhythm.moved()
    assert rhythm.left == math.inf
    rhythm.moved()
    assert clock.woken == 0
