"""Rows that come and go against plain tables: whatever comes together, whatever a checkpoint cuts, results go as they
had come (O6)."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_udf_plugin.engine.datafusion.query import Select, WrongQuery
from arroyo_udf_plugin.engine.windows import keyed_rows
from arroyo_udf_plugin.engine.windows.collecting import Inputs
from arroyo_udf_plugin.engine.windows.followed_rows import TableFollower
from arroyo_udf_plugin.engine.windows.net_changes import NetChanges
from arroyo_udf_plugin.engine.windows.opened import Changes, opened
from arroyo_udf_plugin.engine.windows.recounted_keys import RecountedKeys
from arroyo_udf_plugin.engine.windows.storage import StorageLimits
from arroyo_udf_plugin.engine.windows.updated_join import UpdatedJoin
from arroyo_udf_plugin.engine.windows.updated_keys import UpdatedKeys
from arroyo_udf_plugin.engine.windows.updating_rows import (
    SIGN,
    FollowedRows,
    JoiningRows,
    NetRows,
    Updates,
    UpdatingRows,
)
from arroyo_udf_plugin.errors import InvalidArgument

pytestmark = pytest.mark.once

Row = tuple[Any, ...]
Kind = Literal["inner", "left", "right", "full"]
LIMITS = [1, 1 << 20]
GONE = [0, 3, 1000]


class Running:
    """What is asked, over its own checkpoints, and the rows that have left it and not gone again."""

    def __init__(self, asked: Updates, given: pa.Schema, memory: int = 1 << 20) -> None:
        self._open: Callable[[], Any] = lambda: opened(asked, given, StorageLimits(memory=memory))
        self.own: Changes = self._open()
        self.left: Counter[Row] = Counter()

    def cut(self) -> None:
        kept = [part.restored() for part in self.own.kept()]
        self.own = self._open()
        self.own.restore(kept, None)

    def step(self, *batches: pa.RecordBatch) -> list[Row]:
        """The rows that have left, with their signs."""
        for batch in batches:
            self.own.add(batch)
        rows = [tuple(row.values()) for step in self.own.close() for batch in step for row in batch.to_pylist()]
        for *values, sign in rows:
            self.left[tuple(values)] += sign
        assert all(count >= 0 for count in self.left.values()), "nothing goes that had not come"
        return rows

    @property
    def table(self) -> Counter[Row]:
        return +self.left


def batch_of(schema: pa.Schema, rows: Sequence[Row]) -> pa.RecordBatch:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in schema]
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def after(changes: Iterable[tuple[Row, int]], table: Counter[Row]) -> Counter[Row]:
    """A table, changed. Rows that are not there do not go."""
    for row, sign in changes:
        table[row] += sign
    return +table


# ---- A table that changes --------------------------------------------------------------------------------------------

CHANGES = pa.schema([("op", pa.string()), ("id", pa.int64()), ("x", pa.string()), ("unsent", pa.list_(pa.string()))])
FOLLOWED = FollowedRows(("id",), "op", "unsent")
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["c", "u", "u", "r", "d"]),
        st.integers(0, 3),
        st.none() | st.sampled_from("ab"),
        st.sampled_from([None, [], ["x"]]),
    ),
    max_size=8,
)


@settings(max_examples=80, deadline=None)
@given(steps=st.lists(EVENTS | st.just("cut"), max_size=8), gone=st.sampled_from(GONE), memory=st.sampled_from(LIMITS))
def test_a_table_is_followed(steps: list[list[Row] | Literal["cut"]], gone: int, memory: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keyed_rows, "MOST_GONE", gone)
        running = Running(FOLLOWED, CHANGES, memory)
        table: dict[int, str | None] = {}
        for step in steps:
            if step == "cut":
                running.cut()
                continue
            known: list[Row] = []
            for op, key, value, unsent in step:
                own = unsent if key in table else None  # of a row that is known
                known.append((op, key, None if own else value, own))
                if op == "d":
                    table.pop(key, None)
                elif not own:
                    table[key] = value
            running.step(batch_of(CHANGES, known[:3]), batch_of(CHANGES, known[3:]))
            assert running.table == Counter(table.items())


def test_a_change_that_comes_twice_is_none() -> None:
    running = Running(FOLLOWED, CHANGES)
    assert running.step(batch_of(CHANGES, [("c", 1, "a", None)])) == [(1, "a", 1)]
    assert running.step(batch_of(CHANGES, [("u", 1, "a", None), ("d", 2, None, None)])) == []
    assert running.step(batch_of(CHANGES, [("u", 1, "b", None)])) == [(1, "a", -1), (1, "b", 1)]


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (("t", None, None, None), "all rows of the table were removed at once"),
        (("x", 1, None, None), "the operation 'x' is not known"),
        ((None, 1, None, None), "the operation None is not known"),
        (("c", None, "a", None), "id is null in a change, and is the key of its table"),
        (("u", 7, None, ["x"]), "x was not sent with a change of a row that is not known"),
    ],
)
def test_changes_that_are_none(row: Row, text: str) -> None:
    own = TableFollower(FOLLOWED, CHANGES)
    own.add(batch_of(CHANGES, [row]))
    with pytest.raises(InvalidArgument, match=text):
        list(own.close())


# ---- Aggregates ------------------------------------------------------------------------------------------------------

ROWS = pa.schema(
    [("k", pa.string()), ("x", pa.int32()), ("y", pa.float64()), ("b", pa.bool_()), ("l", pa.list_(pa.int64())), SIGN]
)
VALUES = st.tuples(
    st.none() | st.sampled_from("ab"),
    st.none() | st.integers(-2, 3),
    st.none() | st.sampled_from([0.1, 0.2, 0.7]),
    st.none() | st.booleans(),
)
SIGNED = st.lists(st.tuples(VALUES, st.sampled_from([1, 1, -1])), max_size=7)
EXACT = {
    "n": "count(*)",
    "c": "count(x)",
    "s": "sum(x)",
    "a": "avg(x)",
    "big": "sum(x) FILTER (WHERE x > 0)",
    "every": "bool_and(b)",
    "some": "bool_or(b)",
}
RECOUNTED = {"n": "count(*)", "low": "min(x)", "d": "count(DISTINCT x)", "most": "max(y)", "m": "median(x)"}


def exact(rows: Sequence[Row]) -> Row:
    known = [x for _, x, _, _ in rows if x is not None]
    positive = [x for x in known if x > 0]
    flags = [b for _, _, _, b in rows if b is not None]
    return (
        len(rows),
        len(known),
        sum(known) if known else None,
        sum(known) / len(known) if known else None,
        sum(positive) if positive else None,
        all(flags) if flags else None,
        any(flags) if flags else None,
    )


def recounted(rows: Sequence[Row]) -> Row:
    known = sorted(x for _, x, _, _ in rows if x is not None)
    floats = [y for _, _, y, _ in rows if y is not None]
    middle = known[(len(known) - 1) // 2 : len(known) // 2 + 1]
    return (
        len(rows),
        min(known) if known else None,
        len(set(known)),
        max(floats) if floats else None,
        sum(middle) / len(middle) if middle else None,
    )


@pytest.mark.parametrize("keys", [("k",), ()])
@pytest.mark.parametrize(("aggregates", "model"), [(EXACT, exact), (RECOUNTED, recounted)])
@settings(max_examples=40, deadline=None)
@given(steps=st.lists(SIGNED | st.just("cut"), max_size=8), gone=st.sampled_from(GONE), memory=st.sampled_from(LIMITS))
def test_aggregates_of_rows_that_are_there(
    keys: tuple[str, ...],
    aggregates: dict[str, str],
    model: Callable[[Sequence[Row]], Row],
    steps: list[list[tuple[Row, int]] | Literal["cut"]],
    gone: int,
    memory: int,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keyed_rows, "MOST_GONE", gone)
        select = Select({**{key: key for key in keys}, **{name: name for name in aggregates if name != "m"},
                         **({"m": "arrow_cast(m, 'Float64')"} if "m" in aggregates else {})}, "n <> 5")  # fmt: skip
        asked = UpdatingRows(keys, aggregates, [select], None, is_signed=True, as_rows=True)
        running = Running(asked, ROWS, memory)
        assert isinstance(running.own, UpdatedKeys if aggregates is EXACT else RecountedKeys)
        table: Counter[Row] = Counter()
        for step in steps:
            if step == "cut":
                running.cut()
                continue
            changes = []
            for row, sign in step:
                if table[row] + sign >= 0:
                    table[row] += sign
                    changes.append((*row, [1, 2], sign))
            running.step(batch_of(ROWS, changes))
            groups: dict[Row, list[Row]] = {}
            for row in table.elements():
                groups.setdefault(row[: len(keys)], []).append(row)
            if aggregates is RECOUNTED:  # a median of integers is one, in some versions of DataFusion
                found = {row[:-1] for row in running.table}
                wanted = {(*key, *model(rows)[:-1]) for key, rows in groups.items() if len(rows) != 5}
            else:
                found = set(running.table)
                wanted = {(*key, *model(rows)) for key, rows in groups.items() if len(rows) != 5}
            assert found == wanted
            assert set(running.table.values()) <= {1}


def test_an_aggregate_of_a_plugin_cannot_take_rows_off() -> None:
    asked = UpdatingRows(("k",), {"n": "median(x)"}, (), None, functions={"own": None}, is_signed=True)  # type: ignore[dict-item]
    with pytest.raises(WrongQuery, match="own is of a plugin, and rows that have gone cannot be taken off"):
        RecountedKeys(asked, ROWS)


# ---- A table by its key ----------------------------------------------------------------------------------------------

PAIRS = pa.schema([("id", pa.int64()), ("x", pa.string()), SIGN])


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(
        st.lists(st.tuples(st.tuples(st.integers(0, 2), st.sampled_from("ab")), st.sampled_from([1, -1])), max_size=6)
        | st.just("cut"),
        max_size=8,
    ),
    memory=st.sampled_from(LIMITS),
)
def test_a_table_has_one_row_of_each_key(steps: list[list[tuple[Row, int]] | Literal["cut"]], memory: int) -> None:
    asked = NetRows(("id",))
    own = NetChanges(asked, PAIRS, StorageLimits(memory=memory))
    there: Counter[Row] = Counter()
    table: dict[int, Row] = {}
    for step in steps:
        if step == "cut":
            kept = [part.restored() for part in own.kept()]
            own = NetChanges(asked, PAIRS, StorageLimits(memory=memory))
            own.restore(kept, None)
            continue
        changes = []
        for row, sign in step:
            if there[row] + sign >= 0:
                there[row] += sign
                changes.append((*row, sign))
        own.add(batch_of(PAIRS, changes))
        for change in (row for part in own.close() for batch in part for row in batch.to_pylist()):
            before, new = change["before"], change["after"]
            assert change["op"] == ("c" if before is None else "d" if new is None else "u")
            old = None if before is None else table.pop(before["id"])
            assert old == (None if before is None else tuple(before.values())), "changes follow from each other"
            if new is not None:
                table[new["id"]] = tuple(new.values())
        assert set(table) == {key for key, _ in +there}
        assert all(there[row] for row in table.values())


def test_a_row_without_a_key_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="id is null in a row, and the table finds rows by it"):
        NetChanges(NetRows(("id",)), PAIRS).add(batch_of(PAIRS, [(None, "a", 1)]))


# ---- Joins -----------------------------------------------------------------------------------------------------------

LEFT = pa.schema([("k", pa.int64()), ("a", pa.string())])
RIGHT = pa.schema([("b", pa.string()), ("j", pa.int64())])
SELECT = {"k": "l.k", "a": "l.a", "j": "r.j", "b": "r.b"}
SIDE = st.lists(
    st.tuples(
        st.booleans(), st.none() | st.integers(0, 1), st.sampled_from("pq"), st.sampled_from([1, 1, -1])
    ),
    max_size=6,
)  # fmt: skip


def join_of(kind: Kind, ttl: int = 10**18, on: str = "true") -> JoiningRows:
    return JoiningRows((("k", "j"),), kind, on, SELECT, ("l", "r"), ttl)


def inputs_of(signs: Sequence[bool]) -> Inputs:
    left, right = (
        schema.append(SIGN) if signed else schema for schema, signed in zip((LEFT, RIGHT), signs, strict=True)
    )
    return Inputs({"left": left, "right": right})


def joined(kind: Kind, left: Counter[Row], right: Counter[Row]) -> Counter[Row]:
    """In a plain loop. left: (k, a); right: (b, j)."""
    found: Counter[Row] = Counter()
    for k, a in left.elements():
        for b, j in right.elements():
            found[k, a, j, b] += k is not None and k == j
    if kind in ("left", "full"):
        for k, a in left.elements():
            found[k, a, None, None] += k is None or all(j != k for _, j in +right)
    if kind in ("right", "full"):
        for b, j in right.elements():
            found[None, None, j, b] += j is None or all(k != j for k, _ in +left)
    return +found


@pytest.mark.parametrize("kind", ["inner", "left", "right", "full"])
@pytest.mark.parametrize("signs", list(itertools.product([True, False], repeat=2)))
@settings(max_examples=15, deadline=None)
@given(steps=st.lists(SIDE | st.just("cut"), max_size=8), gone=st.sampled_from(GONE), memory=st.sampled_from(LIMITS))
def test_a_join_has_the_rows_that_meet(
    kind: Kind, signs: tuple[bool, bool], steps: list[list[Row] | Literal["cut"]], gone: int, memory: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keyed_rows, "MOST_GONE", gone)
        inputs = inputs_of(signs)
        running = Running(join_of(kind), inputs.schema, memory)
        sides: list[Counter[Row]] = [Counter(), Counter()]
        is_signed = any(signs) or kind != "inner"
        assert (SIGN.name in running.own.schema.names) == is_signed
        for step in steps:
            if step == "cut":
                running.cut()
                continue
            batches = []
            for is_right, key, value, sign in step:
                row = (value, key) if is_right else (key, value)
                own = sign if signs[is_right] else 1
                if sides[is_right][row] + own < 0:
                    continue
                sides[is_right][row] += own
                schema = inputs.tables["right" if is_right else "left"]
                batch = batch_of(schema, [(*row, own)] if signs[is_right] else [row])
                batches.append(inputs.together(batch, int(is_right)))
            if is_signed:
                running.step(*batches)
            else:
                for batch in batches:
                    running.own.add(batch)
                rows = [tuple(row.values()) for part in running.own.close() for own in part for row in own.to_pylist()]
                running.left.update(rows)
            assert running.table == joined(kind, *sides)


def test_rows_that_stay_are_forgotten() -> None:
    """Their results stay. What an outer join has said of a row is known as long as that row."""
    now = 0
    inputs = inputs_of((False, False))

    def added(own: UpdatedJoin, side: int, row: Row) -> list[Row]:
        schema = inputs.tables["right" if side else "left"]
        own.add(inputs.together(batch_of(schema, [row]), side))
        return [tuple(found.values()) for part in own.close() for batch in part for found in batch.to_pylist()]

    inner = UpdatedJoin(join_of("inner", ttl=10), inputs.schema, clock=lambda: now)
    left = UpdatedJoin(join_of("left", ttl=10), inputs.schema, clock=lambda: now)
    assert added(inner, 1, ("p", 1)) == []
    assert added(left, 1, ("p", 1)) == []
    now = 6
    assert added(inner, 0, (1, "x")) == [(1, "x", 1, "p")]
    assert added(left, 0, (1, "x")) == [(1, "x", 1, "p", 1)]
    now = 11  # the right rows are old, the left ones are not
    assert added(inner, 0, (1, "y")) == []
    assert added(left, 0, (1, "y")) == [(1, "y", 1, "p", 1)]
    now = 30
    assert added(left, 1, ("q", 1)) == [(None, None, None, None)][:0]
    assert added(left, 0, (1, "z")) == [(1, "z", 1, "q", 1)]
    assert sum(part.num_rows - part.n_gone for part in left.kept()) == 2


@pytest.mark.parametrize(
    ("keys", "select", "text"),
    [
        ((("k", "b"),), SELECT, "k is int64, and b is string: cast one of them"),
        ((("x", "j"),), SELECT, "there is no column x"),
        ((("k", "j"),), {"a": "l.nothing"}, "nothing"),
    ],
)
def test_joins_that_cannot_be(keys: tuple[tuple[str, str], ...], select: dict[str, str], text: str) -> None:
    with pytest.raises(WrongQuery, match=text):
        UpdatedJoin(JoiningRows(keys, "inner", "true", select, ("l", "r"), 1), inputs_of((True, False)).schema)
