"""Beats: every so many seconds, but not while nothing moves."""

import math

from arroyo_udf_plugin.engine.execution.ticker import Ticker


class Clock:
    def __init__(self) -> None:
        self.time, self.woken = 0.0, 0

    def __call__(self) -> float:
        return self.time

    def wake(self) -> None:
        self.woken += 1


def test_a_tick_comes_so_many_seconds_after_the_one_before() -> None:
    clock = Clock()
    ticker = Ticker(10.0, clock.wake, clock)
    ticker.moved()
    clock.time = 4.0
    assert ticker.left == 6.0
    clock.time = 12.0
    assert ticker.left == 0.0
    ticker.begin()
    ticker.moved()
    assert ticker.left == 10.0


def test_while_nothing_moves_there_is_none() -> None:
    clock = Clock()
    ticker = Ticker(10.0, clock.wake, clock)
    assert ticker.left == math.inf
    clock.time = 100.0
    assert ticker.left == math.inf
    assert clock.woken == 0


def test_whoever_waits_is_woken_by_the_first_move_only() -> None:
    clock = Clock()
    ticker = Ticker(10.0, clock.wake, clock)
    ticker.moved()
    assert clock.woken == 0  # nobody waits yet
    ticker.begin()
    assert ticker.left == math.inf
    ticker.moved()
    ticker.moved()
    assert clock.woken == 1


def test_after_a_pause_ticks_come_when_they_would_have_come_without_it() -> None:
    clock = Clock()
    ticker = Ticker(10.0, clock.wake, clock)
    assert ticker.left == math.inf
    clock.time = 34.0
    ticker.moved()
    assert ticker.left == 6.0
    clock.time = 41.0
    assert ticker.left == 0.0  # due, as long as it is not begun
    ticker.begin()
    assert ticker.left == math.inf


def test_a_move_during_a_beat_belongs_to_the_next_one() -> None:
    clock = Clock()
    ticker = Ticker(10.0, clock.wake, clock)
    ticker.moved()
    clock.time = 10.0
    ticker.begin()
    ticker.moved()
    assert ticker.left == 10.0


def test_never() -> None:
    clock = Clock()
    ticker = Ticker(None, clock.wake, clock)
    ticker.moved()
    assert ticker.left == math.inf
    ticker.moved()
    assert clock.woken == 0
