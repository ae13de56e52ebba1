"""Rows that say what becomes of a table's rows: with an operation, as change data capture gives them.

    "c", "r", "u"    put the row in the place of the one with its key
    "d"              remove that one
    "t"              remove all

The columns stand beside the operation, or in structs: those that are to be there in `after`, those that were in
`before`. A list `unsent` names columns whose values the source does not know: the table keeps those it has.

Guarantees: of several rows with one key, the last one decides. A row with an operation that is not known, or without
what its operation needs, is an InvalidArgument.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument
from .schemas import index_of
from .table_types import values_of

BEFORE, AFTER, UNSENT = "before", "after", "unsent"
_KINDS = {"c": 0, "r": 0, "u": 0, "d": 1, "t": 2}
PUT, REMOVED, EMPTIED = 0, 1, 2

_is = pa.types
_Key = tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class ChangedRows:
    """kinds: of each row, PUT, REMOVED or EMPTIED. unsent: of each row, columns without a value."""

    rows: pa.RecordBatch
    kinds: pa.Array
    unsent: pa.Array

    @property
    def lacks(self) -> pa.Array:
        """Rows that have no values, the key apart."""
        return pc.not_equal(self.kinds, pa.scalar(PUT, pa.int8()))

    @property
    def is_emptied(self) -> pa.Array:
        return pc.equal(self.kinds, pa.scalar(EMPTIED, pa.int8()))

    def lacks_of(self, column: str) -> pa.Array:
        """Rows without a value of a column."""
        places = pc.list_parent_indices(self.unsent).filter(pc.equal(self.unsent.flatten(), column))
        if not len(places):
            return self.lacks
        return pc.or_(self.lacks, pc.is_in(pa.array(range(len(self.unsent)), pa.int64()), places.cast(pa.int64())))


class TableChanges:
    """operation: the column with it. columns: those to write; None: all. schema: of what is written.

    Raises InvalidArgument if rows of a schema do not say all that is needed.
    """

    def __init__(
        self, schema: pa.Schema, operation: str, key: Sequence[str], columns: Sequence[str] | None, name: str
    ) -> None:
        self._operation, self._key, self._name = operation, tuple(key), name
        at = index_of(schema, operation, f"{name}: operation: ")
        type_ = values_of(pa.nulls(0, schema.field(at).type)).type
        if not (_is.is_string(type_) or _is.is_large_string(type_)):
            raise InvalidArgument(f"{name}: the operation {operation!r} is {type_}, and must be text: c, r, u, d or t")
        self._is_nested = AFTER in schema.names and _is.is_struct(schema.field(AFTER).type)
        self._has_before = BEFORE in schema.names and _is.is_struct(schema.field(BEFORE).type)
        unsent = schema.field(UNSENT).type if UNSENT in schema.names else None
        self._has_unsent = unsent is not None and _is.is_list(unsent) and _is.is_string(unsent.value_type)
        if self._is_nested:
            if not self._has_before:
                raise InvalidArgument(
                    f"{name}: the rows have a struct {AFTER}, and none {BEFORE}, which deletions need"
                )
            fields = list(schema.field(AFTER).type)
        else:
            own = {operation, *([UNSENT] if self._has_unsent else [])}
            fields = [field for field in schema if field.name not in own]
        self.schema = pa.schema(fields)
        if columns is not None:
            chosen = [self.schema.field(index_of(self.schema, column, f"{name}: ")) for column in columns]
            self.schema = pa.schema(chosen)
        if self._is_nested:
            for column in key:
                index_of(pa.schema(list(schema.field(BEFORE).type)), column, f"{name}: {BEFORE}: ")

    def of(self, batch: pa.RecordBatch) -> ChangedRows:
        kinds = self._kinds(values_of(batch.column(self._operation)))
        is_removed = pc.equal(kinds, pa.scalar(REMOVED, pa.int8()))
        has_values = pc.equal(kinds, pa.scalar(PUT, pa.int8()))
        if self._has_unsent:
            unsent = pc.fill_null(batch.column(UNSENT), pa.scalar([], batch.column(UNSENT).type))
        else:
            unsent = pa.array([[]] * batch.num_rows, pa.list_(pa.string()))
        if not self._is_nested:
            columns = []
            for field in self.schema:
                values = values_of(batch.column(field.name))
                if field.name not in self._key:
                    values = pc.if_else(has_values, values, pa.scalar(None, values.type))
                columns.append(values)
            return ChangedRows(pa.RecordBatch.from_arrays(columns, names=self.schema.names), kinds, unsent)
        before, after = (_fields(batch.column(name)) for name in (BEFORE, AFTER))
        if pc.any(pc.and_(has_values, batch.column(AFTER).is_null())).as_py():
            raise InvalidArgument(f"{self._name}: a row whose operation is not d has no {AFTER}")
        columns = []
        for name in self.schema.names:
            values = pc.if_else(has_values, after[name], pa.scalar(None, after[name].type))
            if name in self._key:
                values = pc.if_else(is_removed, before[name].cast(values.type), values)
            columns.append(values)
        changed = ChangedRows(pa.RecordBatch.from_arrays(columns, names=self.schema.names), kinds, unsent)
        return self._with_moved(changed, pc.and_(has_values, batch.column(BEFORE).is_valid()), before, after)

    def _kinds(self, operations: pa.Array) -> pa.Array:
        encoded = operations.dictionary_encode()
        known = []
        for operation in encoded.dictionary.to_pylist():
            if operation not in _KINDS:
                raise InvalidArgument(
                    f"{self._name}: the operation {operation!r} is not known: write c, r or u for a row that is to be "
                    "there, d for one that is to go, or t if all are"
                )
            known.append(_KINDS[operation])
        if operations.null_count:
            raise InvalidArgument(f"{self._name}: a row has no operation: {self._operation!r} is null")
        return pa.array(known, pa.int8()).take(encoded.indices)

    def _with_moved(
        self, changed: ChangedRows, may_have: pa.Array, before: Mapping[str, pa.Array], after: Mapping[str, pa.Array]
    ) -> ChangedRows:
        """Rows whose key was another one before: that one is removed."""
        moved = pa.array([False] * len(may_have))
        for name in self._key:
            moved = pc.or_(moved, pc.fill_null(pc.not_equal(before[name].cast(after[name].type), after[name]), False))
        moved = pc.and_(moved, may_have)
        places = pc.indices_nonzero(moved).to_pylist()
        if not places:
            return changed
        if any(changed.unsent[place].as_py() for place in places):
            raise InvalidArgument(
                f"{self._name}: a row has another key than before, and a column that was not sent: with REPLICA "
                "IDENTITY FULL, it is sent"
            )
        gone = [
            before[name].cast(column.type).take(pa.array(places))
            if name in self._key
            else pa.nulls(len(places), column.type)
            for name, column in zip(changed.rows.schema.names, changed.rows.columns, strict=True)
        ]
        order = sorted([*((place, 1) for place in range(len(moved))), *((place, 0) for place in places)])
        numbers = iter(range(len(moved), len(moved) + len(places)))
        take = pa.array([place if own else next(numbers) for place, own in order], pa.int64())
        columns = [pa.concat_arrays([column, more]) for column, more in zip(changed.rows.columns, gone, strict=True)]
        kinds = pa.concat_arrays([changed.kinds, pa.array([REMOVED] * len(places), pa.int8())])
        unsent = pa.concat_arrays([changed.unsent, pa.array([[]] * len(places), changed.unsent.type)])
        rows = pa.RecordBatch.from_arrays(columns, names=changed.rows.schema.names).take(take)
        return ChangedRows(rows, kinds.take(take), unsent.take(take))


def _fields(column: pa.StructArray) -> dict[str, pa.Array]:
    """Null where the struct is."""
    return dict(zip((field.name for field in column.type), column.flatten(), strict=True))


@dataclasses.dataclass(frozen=True)
class FoldedRows:
    """What is left of rows, each key once. emptied: all rows go first. removed: rows whose keys go. put: rows by the
    columns of which the table keeps its own values."""

    emptied: bool
    removed: pa.Table
    put: Mapping[frozenset[str], pa.Table]


def folded(rows: pa.Table, key: Sequence[str], kinds: pa.ChunkedArray, unsent: pa.ChunkedArray) -> FoldedRows:
    """rows: in their order, with their kinds and the columns that were not sent."""
    of_rows = kinds.to_pylist()
    begin = 1 + max((at for at, kind in enumerate(of_rows) if kind == EMPTIED), default=-1)
    lists = unsent.to_pylist() if pc.any(pc.greater(pc.list_value_length(unsent), 0)).as_py() else None
    keys: list[_Key] = list(zip(*(rows.column(name).to_pylist() for name in key), strict=True))
    last: dict[_Key, int] = {}
    from_others: dict[int, dict[str, int | None]] = {}  # of a row: where values of its unsent columns are
    for at in range(begin, len(keys)):
        if lists is not None and lists[at] and of_rows[at] == PUT:
            before = last.get(keys[at])
            if before is not None and of_rows[before] != PUT:
                before = None
            earlier = {} if before is None else from_others.get(before, {})
            from_others[at] = {name: earlier.get(name, before) for name in lists[at]}
        last[keys[at]] = at
    groups: dict[frozenset[str], list[int]] = {}
    removed = []
    for at in last.values():
        if of_rows[at] == REMOVED:
            removed.append(at)
            continue
        kept = frozenset(name for name, place in from_others.get(at, {}).items() if place is None)
        groups.setdefault(kept, []).append(at)
    put = {}
    for kept, places in groups.items():
        columns = {}
        for name in rows.column_names:
            if name not in kept:
                taken = [_place(from_others, at, name) for at in places]
                columns[name] = rows.column(name).take(pa.array(taken, pa.int64()))
        put[kept] = pa.table(columns)
    return FoldedRows(begin > 0, rows.select(list(key)).take(pa.array(removed, pa.int64())), put)


def _place(from_others: Mapping[int, Mapping[str, int | None]], at: int, name: str) -> int:
    place = from_others.get(at, {}).get(name)
    return at if place is None else place
