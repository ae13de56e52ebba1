"""Joins, first rows, functions that look back, groupings without keys and late rows: in several slices, sealed at any
moment and resumed in another number of slices, against plain loops. Steps, parts and channels have a few rows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rescaling import SOURCES, Grouped, Row, Slices, found

from arroyo_udf_plugin.engine.connectors.source import Rows
from arroyo_udf_plugin.engine.execution import exchange
from arroyo_udf_plugin.engine.operators import group_stage
from arroyo_udf_plugin.engine.operators.blocks import Block, Columns, Given
from arroyo_udf_plugin.engine.operators.group_stage import GroupPlan
from arroyo_udf_plugin.engine.windows import (
    first_rows,
    interval_joining,
    local_parts,
    panes,
    runs,
    session_pieces,
    session_rows,
    sessions,
    timed_rows,
    updated_keys,
)
from arroyo_udf_plugin.engine.windows.collecting import Collecting, Inputs
from arroyo_udf_plugin.engine.windows.first_rows import FirstRows
from arroyo_udf_plugin.engine.windows.group_ranges import GroupRange
from arroyo_udf_plugin.engine.windows.grouping import Grouping
from arroyo_udf_plugin.engine.windows.join_query import Joining, Kind, Within
from arroyo_udf_plugin.engine.windows.joining import Sides
from arroyo_udf_plugin.engine.windows.key_groups import Asked, KeyGroups
from arroyo_udf_plugin.engine.windows.look_back import LookBackRows
from arroyo_udf_plugin.engine.windows.spans import Hop, Session, Window
from arroyo_udf_plugin.engine.windows.updating_rows import UpdatingRows

SCHEMA = pa.schema([("t", pa.timestamp("ns")), ("k", pa.int64()), ("x", pa.int64())])
SIDES = Sides([SCHEMA, SCHEMA], "t")
INPUTS = Inputs({"a": SCHEMA})
EXAMPLES = settings(max_examples=12, deadline=None)
SEEDS = st.integers(0, 2**32)


def keys_at_borders() -> list[int]:
    """Keys of the first and the last groups of slices: an error of one group concerns them."""
    ranges = [GroupRange.of(slice, width) for width in (2, 3) for slice in range(width)]
    keys = pa.array(range(2000), pa.int64())
    rows = pa.record_batch([keys.cast(pa.timestamp("ns")), keys, keys], schema=SCHEMA)
    groups = KeyGroups(Grouping("t", Hop(1, 1), keys=("k",), aggregates={"s": "sum(x)"}), SCHEMA).of(rows)
    assert groups is not None
    by_group = dict(zip(groups.to_pylist(), keys.to_pylist(), strict=True))
    return [by_group[group] for range_ in ranges for group in (range_.first, range_.last)][1:-1]


KEYS = st.sampled_from(keys_at_borders())


@pytest.fixture(autouse=True, scope="module")
def _few_rows() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (panes, local_parts, group_stage, runs, session_pieces, session_rows, sessions, timed_rows):
            patch.setattr(module, "WAITING_ROWS", 2)
        for module in (first_rows, interval_joining):
            patch.setattr(module, "_SHORTEST", 1)
        for name in ("_FEW_ROWS", "_MANY", "_ENDS"):
            patch.setattr(panes, name, 1)
        patch.setattr(local_parts, "_PAUSE", 1)
        patch.setattr(updated_keys, "_MOST_GONE", 2)
        patch.setattr(exchange, "_MOST_ROWS", 3)
        yield


def in_order(times: int, *others: st.SearchStrategy[Any]) -> st.SearchStrategy[list[list[Row]]]:
    """Rows of sources, each with rising times."""
    own = st.lists(st.tuples(st.integers(0, times), *others), max_size=10).map(lambda rows: sorted(rows, key=time_of))
    return st.lists(own, min_size=SOURCES, max_size=SOURCES)


def time_of(row: Row) -> int:
    return int(row[0])


def numbered(sources: Sequence[Sequence[Row]]) -> list[list[Row]]:
    """Each row with a power of two behind it, so that a sum says of which rows it is."""
    numbers = iter(range(1000))
    return [[(*row, 1 << next(numbers)) for row in source] for source in sources]


def together(sources: Sequence[Sequence[Row]]) -> list[Row]:
    return [row for source in sources for row in source]


def batch(row: Row) -> pa.RecordBatch:
    columns = [pa.array([value], type_) for value, type_ in zip(row, SCHEMA.types, strict=True)]
    return pa.record_batch(columns, schema=SCHEMA)


def block(rows: pa.RecordBatch) -> Block:
    return Columns(rows.schema).block(Rows("a", 0, rows))


def of_columns(*names: str) -> Callable[[pa.RecordBatch], list[Row]]:
    """The results' values; times as integers."""

    def shown(rows: pa.RecordBatch) -> list[Row]:
        columns = [rows.column(name) for name in names]
        plain = [one.cast(pa.int64()) if pa.types.is_timestamp(one.type) else one for one in columns]
        return list(zip(*(one.to_pylist() for one in plain), strict=True))

    return shown


def of_windows(rows: pa.RecordBatch) -> list[Row]:
    """Start, end, key, and sum. Without a column of keys they are 0."""
    bounds = [rows.column("window").field(name).cast(pa.int64()).to_pylist() for name in ("start", "end")]
    keys = rows.column("k").to_pylist() if "k" in rows.schema.names else [0] * rows.num_rows
    return list(zip(*bounds, keys, map(int, rows.column("s").to_pylist()), strict=True))


def of_rows(asked: Asked, shown: Callable[[pa.RecordBatch], list[Row]], lateness: int = 0, **others: Any) -> Grouped:
    plan = GroupPlan("groups", asked, Given(SCHEMA), lateness=lateness)
    return Grouped(plan, lambda row: block(batch(row)), shown, **others)


# ---- Joins ----

ON: dict[str, Callable[[Row, Row], bool]] = {
    "a.k = b.k": lambda a, b: a[1] is not None and a[1] == b[1],
    "b.k = a.k AND a.x + b.x > 2": lambda a, b: a[1] is not None and a[1] == b[1] and a[2] + b[2] > 2,
    "a.x + b.x > 2": lambda a, b: a[2] + b[2] > 2,
}
WITHINS = [Within(-3, 4), Within(0, 7), Within(2, 5), Within(-6, -1)]
OF_SIDES = st.none() | KEYS, st.integers(0, 3), st.booleans()
"""Key, value, and whether it is of the right side."""


def joined(kind: Kind, on: str, within: Within | None, is_one: bool) -> Grouped:
    asked = Joining("t", kind, on, {"k": "a.k", "left": "a.x", "right": "b.x"}, ("a", "b"), within)
    plan = GroupPlan("joins", asked, Given(SIDES.schema))
    shown = of_columns("t", "k", "left", "right")
    return Grouped(plan, lambda row: block(SIDES.together(batch(row[:3]), int(row[3]))), shown, is_one)


def pairs(rows: Sequence[Row], kind: Kind, on: str, within: Within | None) -> Counter[Row]:
    lower, upper = (0, 0) if within is None else (within.lower, within.upper)
    left, right = ([(n, row) for n, row in enumerate(rows) if row[3] == side] for side in (False, True))
    met = [
        (n, m)
        for n, a in left
        for m, b in right
        if lower <= b[0] - a[0] <= upper and ON[on](a, b)
    ]  # fmt: skip
    results = Counter((max(rows[n][0], rows[m][0]), rows[n][1], rows[n][2], rows[m][2]) for n, m in met)
    if kind in ("left", "full"):
        results.update((a[0], a[1], a[2], None) for n, a in left if n not in {n for n, _ in met})
    if kind in ("right", "full"):
        results.update((b[0], None, None, b[2]) for m, b in right if m not in {m for _, m in met})
    return results


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("kind", ["inner", "full"])
@given(sources=in_order(8, *OF_SIDES), seed=SEEDS)
@EXAMPLES
def test_a_join_of_equal_times(kind: Kind, on: str, sources: list[list[Row]], seed: int) -> None:
    expected = pairs(together(sources), kind, on, None)
    assert found(joined(kind, on, None, is_one=False), sources, seed) == expected


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("kind", ["inner", "left", "full"])
@given(within=st.sampled_from(WITHINS), sources=in_order(25, *OF_SIDES), seed=SEEDS)
@EXAMPLES
def test_a_join_within_an_interval(kind: Kind, on: str, within: Within, sources: list[list[Row]], seed: int) -> None:
    """Without columns that are equal, the first slice joins all rows."""
    expected = pairs(together(sources), kind, on, within)
    assert found(joined(kind, on, within, is_one="k" not in on), sources, seed) == expected


# ---- First rows, functions that look back ----


@given(ttl=st.integers(1, 20), sources=in_order(40, KEYS, st.just(0)), seed=SEEDS)
@EXAMPLES
def test_the_first_rows_of_keys(ttl: int, sources: list[list[Row]], seed: int) -> None:
    latest: dict[int, int] = {}
    expected: Counter[Row] = Counter()
    for t, k, _ in sorted(together(sources), key=time_of):
        if k not in latest or t >= latest[k] + ttl:
            latest[k] = t
            expected[t, k] += 1
    assert found(of_rows(FirstRows("t", ("k",), ttl), of_columns("t", "k")), sources, seed) == expected


@pytest.mark.parametrize("keys", [("k",), ()], ids=["keys", "one"])
@given(ttl=st.integers(1, 20), sources=in_order(40, KEYS).map(numbered), seed=SEEDS)
@EXAMPLES
def test_functions_that_look_back(keys: tuple[str, ...], ttl: int, sources: list[list[Row]], seed: int) -> None:
    over = f"OVER ({'PARTITION BY k' if keys else ''} ORDER BY t, x)"
    functions = {"before": f"lag(x) {over}", "second": f"lag(x, 2) {over}"}
    asked = LookBackRows("t", functions, keys, "t, x", 2, ttl)
    known: dict[int, list[Row]] = {}
    expected: Counter[Row] = Counter()
    for row in sorted(together(sources), key=lambda row: (row[0], row[2])):
        key = row[1] if keys else 0
        own = known.get(key, [])
        if own and row[0] - own[-1][0] >= ttl:
            own = []
        expected[(*row, *([one[2] for one in own[:-3:-1]] + [None, None])[:2])] += 1
        known[key] = [*own, row]
    shown = of_columns("t", "k", "x", "before", "second")
    assert found(of_rows(asked, shown, is_one=not keys), sources, seed) == expected


# ---- Results that are updated ----


@pytest.mark.parametrize("keys", [("k",), ()], ids=["keys", "one"])
@given(sources=in_order(9, KEYS | st.none()).map(numbered), seed=SEEDS)
@EXAMPLES
def test_results_that_are_updated(keys: tuple[str, ...], sources: list[list[Row]], seed: int) -> None:
    """Each change follows from another one, and the last one has all rows of its key."""
    asked = UpdatingRows(keys, {"n": "count(*)", "s": "sum(x)"}, (), 10**15)
    expected: Counter[Row] = Counter()
    for row in together(sources):
        expected[row[1] if keys else 0] += row[2]

    def shown(rows: pa.RecordBatch) -> list[Row]:
        return [
            (repr(row["before"]), row["after"].get("k", 0), row["after"]["s"], repr(row["after"]))
            for row in rows.to_pylist()
        ]

    changes = found(of_rows(asked, shown, is_one=not keys), sources, seed)
    befores, afters = ([change[place] for change in changes.elements()] for place in (0, 3))
    assert len(set(afters)) == len(afters), "a sum says of which rows it is"
    assert sorted(before for before in befores if before != "None") == sorted(set(afters) & set(befores))
    assert Counter({k: s for _, k, s, after in changes if after not in befores}) == expected


# ---- Without keys ----

WINDOWS = [Hop(10, 10), Hop(30, 10), Session(6)]
NAMES = ["tumble", "hop", "session"]
AGGREGATES = ["sum(x)", "median(x) * 0 + sum(DISTINCT x) * 0 + sum(x)"]
ARE_KEPT = ["parts", "rows"]


def windows_of(window: Hop, time: int) -> list[tuple[int, int]]:
    first = time - time % window.slide - window.width + window.slide
    return [(start, start + window.width) for start in range(first, time + 1, window.slide)]


def runs_of(gap: int, rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Rows of one key in sessions."""
    session: list[Row] = []
    for row in sorted(rows, key=time_of):
        if session and row[0] - session[-1][0] >= gap:
            yield session
            session = []
        session.append(row)
    if session:
        yield session


@pytest.mark.parametrize("aggregate", AGGREGATES, ids=ARE_KEPT)
@pytest.mark.parametrize("window", WINDOWS, ids=NAMES)
@given(sources=in_order(60, st.just(0)).map(numbered), seed=SEEDS)
@EXAMPLES
def test_windows_without_keys(window: Window, aggregate: str, sources: list[list[Row]], seed: int) -> None:
    sums: Counter[tuple[int, int]] = Counter()
    if isinstance(window, Session):
        for session in runs_of(window.gap, together(sources)):
            sums[session[0][0], session[-1][0] + window.gap] = sum(row[2] for row in session)
    else:
        assert isinstance(window, Hop)
        for t, _, x in together(sources):
            sums.update(dict.fromkeys(windows_of(window, t), x))
    asked = Grouping("t", window, keys=(), aggregates={"s": aggregate})
    expected = Counter({(*bounds, 0, total): 1 for bounds, total in sums.items()})
    assert found(of_rows(asked, of_windows, is_one=True), sources, seed) == expected


@given(sources=in_order(60, KEYS, st.integers(1, 100)), seed=SEEDS)
@EXAMPLES
def test_a_query_over_all_rows(sources: list[list[Row]], seed: int) -> None:
    asked = Collecting("SELECT k, sum(x) AS s FROM a GROUP BY k", ("a",), {}, {})
    sums: Counter[int] = Counter()
    for _, k, x in together(sources):
        sums[k] += x
    plan = GroupPlan("query", asked, Given(INPUTS.schema))
    grouped = Grouped(plan, lambda row: block(INPUTS.together(batch(row), 0)), of_columns("k", "s"), is_one=True)
    assert found(grouped, sources, seed) == Counter(sums.items())


# ---- Late rows ----

ANY_ORDER = st.lists(
    st.lists(st.tuples(st.integers(0, 60), KEYS), max_size=14), min_size=SOURCES, max_size=SOURCES
).map(numbered)


def behind(sources: Sequence[Sequence[Row]]) -> Iterator[tuple[Row, float]]:
    """Each row, with the watermark of its source before it: that of all is not later."""
    for source in sources:
        latest = float("-inf")
        for row in source:
            yield row, latest
            latest = max(latest, row[0])


def rows_in(total: int) -> list[int]:
    """The numbers of rows that a sum is of. A row that is in it twice looks like others."""
    return [1 << place for place in range(total.bit_length()) if total >> place & 1]


@pytest.mark.parametrize("lateness", [0, 7])
@pytest.mark.parametrize("aggregate", AGGREGATES, ids=ARE_KEPT)
@pytest.mark.parametrize("window", WINDOWS[:2], ids=NAMES[:2])
@given(sources=ANY_ORDER, seed=SEEDS)
@EXAMPLES
def test_no_window_leaves_twice(
    window: Hop, aggregate: str, lateness: int, sources: list[list[Row]], seed: int
) -> None:
    """Late rows are in windows of theirs that were still open, and in no others. Others are in all of theirs."""
    asked = Grouping("t", window, keys=("k",), aggregates={"s": aggregate})
    results = found(of_rows(asked, of_windows, lateness), sources, seed)
    assert max(Counter(result[:3] for result in results.elements()).values(), default=1) == 1
    counted = {(*result[:3], x) for result in results for x in rows_in(result[3])}
    possible, certain = set(), set()
    for (t, k, x), watermark in behind(sources):
        for start, end in windows_of(window, t):
            possible.add((start, end, k, x))
            if end > watermark - lateness:
                certain.add((start, end, k, x))
    assert certain <= counted <= possible


@pytest.mark.parametrize("lateness", [0, 7])
@pytest.mark.parametrize("aggregate", AGGREGATES, ids=ARE_KEPT)
@given(sources=ANY_ORDER, seed=SEEDS)
@EXAMPLES
def test_no_row_is_in_two_sessions(aggregate: str, lateness: int, sources: list[list[Row]], seed: int) -> None:
    """A late row is in a session, or in none. Others are in one."""
    gap = 6
    asked = Grouping("t", Session(gap), keys=("k",), aggregates={"s": aggregate})
    results = found(of_rows(asked, of_windows, lateness), sources, seed)
    counted = Counter((result[2], x) for result in results.elements() for x in rows_in(result[3]))
    assert max(counted.values(), default=1) == 1
    possible = {(k, x) for (_, k, x), _ in behind(sources)}
    certain = {(k, x) for (t, k, x), watermark in behind(sources) if t + gap > watermark - lateness}
    assert certain <= set(counted) <= possible
    times = {x: t for t, _, x in together(sources)}
    for start, end, _, total in results:
        own = [times[x] for x in rows_in(total)]
        assert (start, end) == (min(own), max(own) + gap)


@pytest.mark.parametrize("aggregate", AGGREGATES, ids=ARE_KEPT)
def test_late_rows_are_counted_after_a_restart(aggregate: str) -> None:
    """A slice at its end holds nothing back, so windows are ahead of the watermark of all slices, of which there is
    none: nothing is told after the restart."""
    asked = of_rows(Grouping("t", Hop(10, 10), keys=("k",), aggregates={"s": aggregate}), of_windows)
    draw, sources = random.Random(0), [[(7, 1, 1), (100, 1, 2), (8, 1, 4), (100, 1, 8)], [], []]
    before = Slices(asked, sources, 2, [0] * SOURCES)
    before.read(1, draw)
    for _ in range(2):
        before.read(0, draw)
        for slice in (0, 1, 1):
            before.exchanges[slice].receive()
            before.take(slice)
    states, positions, left = before.sealed(draw, has_stopped=True)
    assert [(*result, sum(positions)) for result in left] == [(0, 10, 1, 1, 2)]
    after = Slices(asked, sources, 2, positions)
    after.start(states, bound=None)
    after.told[0] = 100
    after.run(draw)
    assert [result for own in after.left for result in own] == [(100, 110, 1, 10)]
    assert sum(operator.stages[1].counts.late for operator in after.operators) == 1


def test_windows_that_another_slice_has_closed_leave_after_a_restart() -> None:
    """The watermark was on its way to the other slice. Nothing is told after the restart, and nothing ends."""
    first, second = keys_at_borders()[:2]  # of the first and of the second slice
    asked = of_rows(Grouping("t", Hop(10, 10), keys=("k",), aggregates={"s": "sum(x)"}), of_windows)
    draw, sources = random.Random(0), [[(7, first, 1), (7, second, 2), (100, first, 4), (100, first, 8)], [], []]
    before = Slices(asked, sources, 2, [0] * SOURCES)
    before.read(1, draw)
    for _ in range(3):
        before.read(0, draw)
        before.exchanges[0].receive()
        before.take(0)
    states, positions, left = before.sealed(draw, has_stopped=True)
    assert left == [(0, 10, first, 1)]
    after = Slices(asked, sources, 3, positions)
    after.start(states, bound=None)
    for slice in (0, 1, 2, 0, 1, 2):
        after.take(slice, is_stopping=True)
    assert [result for own in after.left for result in own] == [(0, 10, second, 2)]
