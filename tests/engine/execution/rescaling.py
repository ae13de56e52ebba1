"""Groupings in several slices, sealed at any moment and resumed in another number of slices.

A seed decides in which order slices read, receive, close windows and are sealed. What was done behind the seals is
lost.
"""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from stored_states import stored

from arroyo_udf_plugin.engine.execution.exchange import Exchange, Exchanges
from arroyo_udf_plugin.engine.operators.blocks import Block
from arroyo_udf_plugin.engine.operators.group_stage import GroupPlan
from arroyo_udf_plugin.engine.operators.grouped import GroupOperator
from arroyo_udf_plugin.engine.operators.routes import Routes
from arroyo_udf_plugin.engine.operators.state_parts import StoredState

SOURCES = 3
_ROUNDS = 10_000  # of all slices: more than any run needs

Row = tuple[Any, ...]
"""The event time first."""


@dataclasses.dataclass(frozen=True)
class Grouped:
    """What is grouped. block: of a row. shown: the results as tuples. is_one: the first slice has all rows."""

    asked: GroupPlan
    block: Callable[[Row], Block]
    shown: Callable[[pa.RecordBatch], list[Row]]
    is_one: bool = False


class Slices:
    """Some slices, each of which reads some of the sources in turn. positions: how many rows of each source were read.
    left: the results of each slice."""

    def __init__(
        self, grouped: Grouped, sources: Sequence[Sequence[Row]], width: int, positions: Sequence[int]
    ) -> None:
        self.grouped, self.sources, self.positions = grouped, sources, list(positions)
        self.operators = [GroupOperator(grouped.asked) for _ in range(width)]
        exchanges = Exchanges(Routes([None], [0], exchanging=[0]), [lambda: None] * width)
        self.exchanges: list[Exchange] = [exchanges.of(i, [operator])[0] for i, operator in enumerate(self.operators)]
        self.left: list[list[Row]] = [[] for _ in range(width)]
        self.told: list[int | None] = [None] * width

    def start(self, states: Sequence[StoredState], bound: int | None) -> None:
        """bound: the watermark from which all of them go on."""
        for operator in self.operators:
            operator.start(states)
        for slice in range(len(self.operators)) if bound is not None else ():
            self.tell(slice, bound)

    def own(self, slice: int) -> list[int]:
        return list(range(slice, SOURCES, len(self.operators)))

    def open(self, slice: int) -> list[int]:
        """Of its own sources: those that have more rows."""
        return [source for source in self.own(slice) if self.positions[source] < len(self.sources[source])]

    def watermark(self, source: int) -> int | None:
        """Nothing comes in time that is before its latest row."""
        return max((row[0] for row in self.sources[source][: self.positions[source]]), default=None)

    def tell(self, slice: int, at_least: int | None = None) -> None:
        """The watermark of a slice."""
        times = [self.watermark(source) for source in self.open(slice)]
        known = [time for time in times if time is not None]
        time = min(known) if known and len(known) == len(times) else at_least
        told = self.told[slice]
        if time is not None and (told is None or time > told):
            self.told[slice] = time
            self.exchanges[slice].push_watermark(time)

    def read(self, slice: int, draw: random.Random) -> None:
        sources = self.open(slice)
        if not sources:
            self.exchanges[slice].end(is_last=True)
        elif self.exchanges[slice].wants_input:
            source = draw.choice(sources)
            self.exchanges[slice].push(self.grouped.block(self.sources[source][self.positions[source]]))
            self.positions[source] += 1
            self.tell(slice)

    def take(self, slice: int, is_stopping: bool = False) -> None:
        operator, exchange = self.operators[slice], self.exchanges[slice]
        if not is_stopping and not self.open(slice):
            exchange.end(is_last=True)
            if exchange.is_over:
                operator.finish()
        for item in operator.take():
            if isinstance(item, Block):
                self.left[slice] += self.grouped.shown(item.rows)

    def step(self, draw: random.Random, slice: int | None = None) -> None:
        slice = draw.randrange(len(self.operators)) if slice is None else slice
        draw.choice([lambda: self.read(slice, draw), self.exchanges[slice].receive, lambda: self.take(slice)])()

    def run(self, draw: random.Random) -> None:
        """To the end."""
        for _ in range(_ROUNDS):
            if all(operator.is_finished for operator in self.operators):
                return
            for slice in range(len(self.operators)):
                self.step(draw, slice)
        raise AssertionError("slices wait for each other")

    def stop(self, draw: random.Random) -> None:
        """Reads no more. What is on its way arrives, and windows that are over leave."""
        slices = range(len(self.operators))
        for _ in range(_ROUNDS):
            for slice in draw.sample(slices, len(slices)):
                self.exchanges[slice].end(is_last=False)
                self.exchanges[slice].receive()
                self.take(slice, is_stopping=True)
            if all(self.exchanges[slice].is_over and self.operators[slice].is_drained for slice in slices):
                return
        raise AssertionError("slices wait for each other")

    def sealed(self, draw: random.Random, has_stopped: bool) -> tuple[list[StoredState], list[int], list[Row]]:
        """States, positions and results of a checkpoint; between its seals, the others go on."""
        states: dict[int, StoredState] = {}
        positions, results = list(self.positions), []
        for slice in draw.sample(range(len(self.operators)), len(self.operators)):
            for _ in range(0 if has_stopped else draw.randrange(6)):
                self.step(draw)
            states[slice] = stored(self.exchanges[slice].snapshot())
            for source in self.own(slice):
                positions[source] = self.positions[source]
            results += self.left[slice]
        return [states[slice] for slice in sorted(states)], positions, results


def found(grouped: Grouped, sources: Sequence[Sequence[Row]], seed: int) -> Counter[Row]:
    """The results, of which each is in one checkpoint, or comes behind the last one."""
    draw = random.Random(seed)
    states: list[StoredState] = []
    positions, results, bound = [0] * SOURCES, Counter[Row](), None
    for width in [draw.randint(1, 4) for _ in range(draw.randint(1, 3))]:
        slices = Slices(grouped, sources, width, positions)
        slices.start(states, bound)
        for _ in range(draw.randrange(60)):
            slices.step(draw)
        if has_stopped := draw.random() < 0.2:
            slices.stop(draw)
        states, positions, left = slices.sealed(draw, has_stopped)
        results.update(left)
        assert not grouped.is_one or not any(slices.left[1:])
        read = [own[:n] for own, n in zip(sources, positions, strict=True) if n < len(own)]
        bound = min((max(row[0] for row in own) for own in read), default=None) if all(read) else None
    last = Slices(grouped, sources, draw.randint(1, 4), positions)
    last.start(states, bound)
    last.run(draw)
    assert not grouped.is_one or not any(last.left[1:])
    for own in last.left:
        results.update(own)
    return results
