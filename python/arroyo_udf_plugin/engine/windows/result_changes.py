"""How results have changed: as changes with what was before and what is after, or as rows that come and go.

    changes = ResultChanges(schema, as_rows=False)
    changes.of(before, after, [(0, 1), (None, 2)])      the first row became the second one, and the third is new

Guarantees: a result that stays the same makes no change. Rows that go are before those that come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument
from ..datafusion.query import Failed, Query, Select
from .keyed_rows import one_batch
from .updating_rows import SIGN

Pair = tuple[int | None, int | None]
"""The places of a result before and after a change; None: there is none."""


class ResultChanges:
    """results: their schema. schema: of what `of` gives."""

    def __init__(self, results: pa.Schema, as_rows: bool) -> None:
        self._as_rows = as_rows
        row = pa.struct(list(results))
        changes = pa.schema([("op", pa.string()), ("before", row), ("after", row)])
        self.schema = results.append(SIGN) if as_rows else changes

    def of(self, before: pa.RecordBatch, after: pa.RecordBatch, pairs: Sequence[Pair]) -> Iterator[pa.RecordBatch]:
        both = [pair for pair in pairs if None not in pair]
        old, new = (
            rows.take(pa.array([pair[side] for pair in both], pa.int64())) for side, rows in ((0, before), (1, after))
        )
        same = {pair for pair, is_same in zip(both, _are_same(old, new), strict=True) if is_same}
        changes = [pair for pair in pairs if pair not in same and pair != (None, None)]
        if changes:
            yield self._rows(before, after, changes) if self._as_rows else self._changes(before, after, changes)

    def _changes(self, before: pa.RecordBatch, after: pa.RecordBatch, changes: Sequence[Pair]) -> pa.RecordBatch:
        ops = ["c" if first is None else "d" if second is None else "u" for first, second in changes]
        sides = [_structs(rows, [pair[side] for pair in changes]) for side, rows in ((0, before), (1, after))]
        return pa.RecordBatch.from_arrays([pa.array(ops, pa.string()), *sides], schema=self.schema)

    def _rows(self, before: pa.RecordBatch, after: pa.RecordBatch, changes: Sequence[Pair]) -> pa.RecordBatch:
        gone, come = (
            rows.take(pa.array([pair[side] for pair in changes if pair[side] is not None], pa.int64()))
            for side, rows in ((0, before), (1, after))
        )
        return one_batch([signed(gone, -1), signed(come, 1)], self.schema)


class SelectedResults:
    """What queries, one over the other, make of results. schema: of it."""

    def __init__(self, selects: Iterable[Select], given: pa.Schema) -> None:
        """Raises WrongQuery."""
        self._queries = []
        for select in selects:
            self._queries.append(Query(select, given))
            given = self._queries[-1].schema
        self.schema = given

    def of(self, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[int, int]]:
        """Where each row is that has one, too. Raises InvalidArgument for one that cannot be computed."""
        places = list(range(rows.num_rows))
        for query in self._queries:
            found: list[pa.RecordBatch] = []
            own: list[int] = []
            for part in query.run(rows) if rows.num_rows else ():
                if isinstance(part, Failed):
                    raise InvalidArgument(f"a result cannot be computed: {part.text}")
                found.append(part.rows)
                own += places if part.of is None else [places[place] for place in part.of.to_pylist()]
            if len(set(own)) < len(own):
                raise InvalidArgument("a result of a key is one row, and this query makes several: leave unnest out")
            rows, places = one_batch(found, query.schema), own
        return rows, {place: number for number, place in enumerate(places)}


def signed(rows: pa.RecordBatch, sign: int) -> pa.RecordBatch:
    """Rows that come, or go."""
    return rows.append_column(SIGN, pa.repeat(pa.scalar(sign, SIGN.type), rows.num_rows))


def come_and_gone(
    rows: pa.RecordBatch, hashes_of: Callable[[pa.RecordBatch], list[bytes]]
) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The rows that have come, and those that have gone, in their order and without their signs; those that have done
    both are in neither. hashes_of: says which are equal."""
    place = rows.schema.get_field_index(SIGN.name)
    signs, bare = rows.column(place), rows.remove_column(place)
    if pc.min(signs).as_py() != -1:
        return bare, bare.slice(0, 0)
    open_: dict[bytes, list[int]] = {}
    own = signs.to_pylist()
    for at, hash_ in enumerate(hashes_of(bare)):
        others = open_.setdefault(hash_, [])
        if others and own[others[-1]] != own[at]:
            others.pop()
        else:
            others.append(at)
    left = sorted(at for places in open_.values() for at in places)
    come, gone = (bare.take(pa.array([at for at in left if own[at] == sign], pa.int64())) for sign in (1, -1))
    return come, gone


def _structs(rows: pa.RecordBatch, places: Sequence[int | None]) -> pa.StructArray:
    """Null where there is no place."""
    chosen = pa.array(places, pa.int64())
    columns = [column.take(chosen) for column in rows.columns]
    return pa.StructArray.from_arrays(columns, fields=list(rows.schema), mask=chosen.is_null())


def _are_same(old: pa.RecordBatch, new: pa.RecordBatch) -> list[bool]:
    """Whether each row has the values of the other one. A null is one, and NaN, too."""
    same = pa.repeat(pa.scalar(True), old.num_rows)
    for left, right in zip(old.columns, new.columns, strict=True):
        same = pc.and_(same, _are_equal(left, right))
    return same.to_pylist()  # type: ignore[no-any-return]


def _are_equal(left: pa.Array, right: pa.Array) -> pa.BooleanArray:
    if pa.types.is_nested(left.type):
        return pa.array([repr(one) == repr(other) for one, other in zip(left, right, strict=True)], pa.bool_())
    equal = pc.equal(left, right).fill_null(False)
    if pa.types.is_floating(left.type):
        equal = pc.or_(equal, pc.and_(pc.is_nan(left), pc.is_nan(right)).fill_null(False))
    return pc.or_(equal, pc.and_(left.is_null(), right.is_null()))
