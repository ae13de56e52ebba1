"""Windows in several slices, sealed at any moment and resumed in another number of slices, against a sum over rows.

A seed decides in which order slices read, receive, close windows and are sealed. What was done behind the seals is
lost.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stored_states import stored

from arroyo_udf_plugin.engine.connectors.source import Rows
from arroyo_udf_plugin.engine.execution.exchange import Exchange, Exchanges
from arroyo_udf_plugin.engine.operators.blocks import Block, Columns, Given
from arroyo_udf_plugin.engine.operators.group_stage import GroupPlan
from arroyo_udf_plugin.engine.operators.grouped import GroupOperator
from arroyo_udf_plugin.engine.operators.routes import Routes
from arroyo_udf_plugin.engine.operators.state_parts import StoredState
from arroyo_udf_plugin.engine.windows.grouping import Grouping
from arroyo_udf_plugin.engine.windows.spans import Hop, Session, Window

SCHEMA = pa.schema([("t", pa.timestamp("ns")), ("k", pa.int64()), ("x", pa.int64())])
Row = tuple[int, int, int]
Result = tuple[int, int, int, int]
"""Start and end of a window, key, sum."""

SOURCES = 3


def plan(window: Window, aggregate: str) -> GroupPlan:
    return GroupPlan("windows", Grouping("t", window, keys=("k",), aggregates={"s": aggregate}), Given(SCHEMA))


def block(row: Row) -> Block:
    columns = [pa.array([value], type_) for value, type_ in zip(row, SCHEMA.types, strict=True)]
    return Columns(SCHEMA).block(Rows("a", 0, pa.record_batch(columns, schema=SCHEMA)))


class Slices:
    """Some slices, each of which reads some of the sources in turn. positions: how many rows of each source were read.
    left: the results of each slice."""

    def __init__(
        self, asked: GroupPlan, sources: Sequence[Sequence[Row]], width: int, positions: Sequence[int]
    ) -> None:
        self.sources, self.positions = sources, list(positions)
        self.operators = [GroupOperator(asked) for _ in range(width)]
        exchanges = Exchanges(Routes([None], [0], exchanging=[0]), [lambda: None] * width)
        self.exchanges: list[Exchange] = [exchanges.of(i, [operator])[0] for i, operator in enumerate(self.operators)]
        self.left: list[list[Result]] = [[] for _ in range(width)]
        self.told: list[int | None] = [None] * width

    def start(self, states: Sequence[StoredState]) -> None:
        for operator in self.operators:
            operator.start(states)

    def own(self, slice: int) -> list[int]:
        return list(range(slice, SOURCES, len(self.operators)))

    def watermark(self, source: int) -> int | None:
        """Rows of a source rise: nothing comes that is before its latest row."""
        position = self.positions[source]
        return None if not position else self.sources[source][position - 1][0]

    def tell(self, slice: int, at_least: int | None = None) -> None:
        """The watermark of a slice."""
        times = [self.watermark(source) for source in self.own(slice) if self.positions[source] < self.length(source)]
        known = [time for time in times if time is not None]
        time = min(known) if known and len(known) == len(times) else at_least
        if time is not None and (self.told[slice] is None or time > self.told[slice]):  # type: ignore[operator]
            self.told[slice] = time
            self.exchanges[slice].push_watermark(time)

    def length(self, source: int) -> int:
        return len(self.sources[source])

    def read(self, slice: int, draw: random.Random) -> None:
        sources = [source for source in self.own(slice) if self.positions[source] < self.length(source)]
        if not sources:
            self.exchanges[slice].end(is_last=True)
            return
        source = draw.choice(sources)
        self.exchanges[slice].push(block(self.sources[source][self.positions[source]]))
        self.positions[source] += 1
        self.tell(slice)

    def take(self, slice: int) -> None:
        operator, exchange = self.operators[slice], self.exchanges[slice]
        at_end = all(self.positions[source] == self.length(source) for source in self.own(slice))
        if at_end:
            exchange.end(is_last=True)
            if exchange.is_over:
                operator.finish()
        for item in operator.take():
            if isinstance(item, Block):
                rows = item.rows
                bounds = [rows.column("window").field(name).cast(pa.int64()).to_pylist() for name in ("start", "end")]
                columns = [*bounds, rows.column("k").to_pylist(), rows.column("s").to_pylist()]
                self.left[slice] += list(zip(*columns, strict=True))

    def step(self, draw: random.Random, slice: int | None = None) -> None:
        slice = draw.randrange(len(self.operators)) if slice is None else slice
        draw.choice([lambda: self.read(slice, draw), self.exchanges[slice].receive, lambda: self.take(slice)])()

    @property
    def is_over(self) -> bool:
        return all(operator.is_finished for operator in self.operators)

    def run(self, draw: random.Random) -> None:
        """To the end."""
        while not self.is_over:
            for slice in range(len(self.operators)):
                self.step(draw, slice)

    def sealed(self, draw: random.Random) -> tuple[list[StoredState], list[int], list[Result]]:
        """States, positions and results of a checkpoint; between its seals, the others go on."""
        states: dict[int, StoredState] = {}
        positions, results = list(self.positions), []
        for slice in draw.sample(range(len(self.operators)), len(self.operators)):
            for _ in range(draw.randrange(6)):
                self.step(draw)
            state = self.exchanges[slice].snapshot()
            states[slice] = stored(state)
            for source in self.own(slice):
                positions[source] = self.positions[source]
            results += self.left[slice]
        return [states[slice] for slice in sorted(states)], positions, results


def expected(window: Window, rows: Sequence[Row]) -> Counter[Result]:
    sums: Counter[tuple[int, int, int]] = Counter()
    if isinstance(window, Session):
        for key in {k for _, k, _ in rows}:
            first = last = None
            total = 0
            for t, _, x in sorted(row for row in rows if row[1] == key):
                if last is not None and t - last >= window.gap:
                    sums[first, last + window.gap, key] += total  # type: ignore[index]
                    first, total = None, 0
                first, last, total = t if first is None else first, t, total + x
            sums[first, last + window.gap, key] += total  # type: ignore[index, operator]
    else:
        assert isinstance(window, Hop)
        for t, k, x in rows:
            for start in range(t - t % window.slide - window.width + window.slide, t + 1, window.slide):
                sums[start, start + window.width, k] += x
    return Counter({(*bounds, total): 1 for bounds, total in sums.items()})


ROWS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 5), st.integers(1, 1000)), max_size=14).map(sorted)


@pytest.mark.parametrize("aggregate", ["sum(x)", "median(x) * 0 + sum(DISTINCT x) * 0 + sum(x)"], ids=["parts", "rows"])
@pytest.mark.parametrize("window", [Hop(10, 10), Hop(30, 10), Session(6)], ids=["tumble", "hop", "session"])
@given(sources=st.lists(ROWS, min_size=SOURCES, max_size=SOURCES), seed=st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_no_row_is_lost_or_counted_twice(window: Window, aggregate: str, sources: list[list[Row]], seed: int) -> None:
    draw, asked = random.Random(seed), plan(window, aggregate)
    states: list[StoredState] = []
    positions, results, bound = [0] * SOURCES, [], None
    for width in [draw.randint(1, 4) for _ in range(draw.randint(1, 3))]:
        slices = Slices(asked, sources, width, positions)
        slices.start(states)
        for slice in range(width) if bound is not None else ():
            slices.tell(slice, bound)
        for _ in range(draw.randrange(40)):
            slices.step(draw)
        if width > 1 or draw.random() < 0.5:
            states, positions, own = slices.sealed(draw)
            results += own
            open_ = [own[:n] for own, n in zip(sources, positions, strict=True) if n < len(own)]
            bound = min((read[-1][0] for read in open_), default=None) if all(open_) else None
    last = Slices(asked, sources, draw.randint(1, 4), positions)
    last.start(states)
    last.run(draw)
    found = Counter([*results, *(result for own in last.left for result in own)])
    assert found == expected(window, [row for source in sources for row in source])
