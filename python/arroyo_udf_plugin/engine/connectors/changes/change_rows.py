"""Changes as rows: the columns of the table, and beside them what else is known about a change.

    op                  string: "r" of the snapshot, "c" inserted, "u" updated, "d" deleted, "t" truncated
    before, after       struct; null if there is none
    unsent              list<string>: columns without a value, because it is stored apart (TOAST) and was not changed
    lsn, xid            int64: of the transaction's commit, and its number; of the snapshot, none
    committed           timestamp[us, UTC], or another timestamp: when it was; of the snapshot, when that was made

The columns of the table are those of the row after the change; of a row that was deleted, those before it, as far as
REPLICA IDENTITY has them.

Guarantees: an update that changes the key is two rows: the old key is deleted, the new one is inserted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ....errors import InvalidArgument, nearest
from ..source import Rows
from ..type_names import type_named
from . import change_texts
from .pgoutput import UNSENT, Values

_TIME = pa.timestamp("us", "UTC")
_TYPES: Mapping[str, pa.DataType | None] = {
    "op": pa.string(),
    "before": None,
    "after": None,
    "unsent": pa.list_(pa.string()),
    "lsn": pa.int64(),
    "xid": pa.int64(),
    "committed": _TIME,
}
METADATA = tuple(_TYPES)


class ChangeColumns:
    """What is asked for. types: of columns and of metadata, by name; without any, all columns of the table are.
    metadata: a key for the name of each column. declared: asked for the table's columns with their types there.

    schema: of the rows. wanted: the types that a column of the table must be read as. Raises InvalidArgument.
    """

    def __init__(
        self, types: Mapping[str, str], metadata: Mapping[str, str], declared: Callable[[], Mapping[str, str]]
    ) -> None:
        named = {name: type_named(type_) for name, type_ in types.items()}
        self.flat = {name: type_ for name, type_ in named.items() if name not in metadata}
        if not named:
            self.flat = {name: change_texts.natural(type_) for name, type_ in declared().items()}
        self.metadata = [self._field(name, key, named.get(name)) for name, key in metadata.items()]
        for field, _ in self.metadata:
            if field.name in self.flat:
                raise InvalidArgument(f"metadata: there is a column {field.name!r} already: choose another name")
        if not self.flat and not self.metadata:
            raise InvalidArgument("types: name a column")
        self.schema = pa.schema([*self.flat.items(), *(field for field, _ in self.metadata)])
        self.wanted: dict[str, set[pa.DataType]] = {}
        structs = [field.type for field, key in self.metadata if key in ("before", "after")]
        for name, type_ in [*self.flat.items(), *((own.name, own.type) for struct in structs for own in struct)]:
            self.wanted.setdefault(name, set()).add(type_)

    def _field(self, name: str, key: str, given: pa.DataType | None) -> tuple[pa.Field, str]:
        if key not in _TYPES:
            raise InvalidArgument(f"metadata: changes have no {key!r}: {nearest(key, _TYPES)}")
        known = _TYPES[key] or pa.struct(list(self.flat.items()))
        fits = given is None or given == known or (known == _TIME and pa.types.is_timestamp(given))
        if known == _TIME and given is not None and pa.types.is_timestamp(given):
            fits = True
        if key in ("before", "after"):
            fits = given is None or pa.types.is_struct(given)
        if not fits:
            raise InvalidArgument(f"types: {name!r} is the {key} of changes: it is {known}, not {given}")
        return pa.field(name, known if given is None else given), key

    def check(self, declared: Mapping[str, str], table: str) -> None:
        """declared: the columns of the table, or of its changes, with their types. Raises InvalidArgument."""
        for name, types in self.wanted.items():
            if name not in declared:
                raise InvalidArgument(f"{table} has no column {name!r}: {nearest(name, declared)}")
            for type_ in types:
                if not change_texts.can_be(declared[name], type_):
                    natural = change_texts.natural(declared[name])
                    raise InvalidArgument(
                        f"{table}: column {name!r} is {declared[name]} there, which is not read as {type_}: "
                        f"write {natural}"
                    )


@dataclasses.dataclass(frozen=True)
class Layout:
    """Where columns are in a row of changes. names: of all. key: the positions of the table's key."""

    names: Sequence[str]
    key: Sequence[int]

    def place(self, name: str) -> int:
        return self.names.index(name)


@dataclasses.dataclass(frozen=True)
class ChangeTransaction:
    """lsn: of its commit. time: in microseconds since 1970. xid: None: of the snapshot."""

    lsn: int
    time: int
    xid: int | None


class ChangeBatch:
    """Changes with one layout, on their way to be rows. name: of the table, for people."""

    def __init__(self, columns: ChangeColumns, layout: Layout, name: str) -> None:
        self._columns, self._layout, self._name = columns, layout, name
        self._ops: list[str] = []
        self._transactions: list[ChangeTransaction] = []
        self._olds: list[Values | None] = []
        self._news: list[Values | None] = []
        self._unsent: dict[int, list[str]] = {}

    def __len__(self) -> int:
        return len(self._ops)

    def add(self, op: str, transaction: ChangeTransaction, old: Values | None, new: Values | None) -> None:
        if new is not None and UNSENT in new:
            names = [name for name, value in zip(self._layout.names, new, strict=True) if value is UNSENT]
            self._unsent[len(self._ops)] = names
            new = [None if value is UNSENT else value for value in new]
        self._ops.append(op)
        self._transactions.append(transaction)
        self._olds.append(old)
        self._news.append(new)

    def add_read(self, rows: Sequence[Values], transaction: ChangeTransaction) -> None:
        """Of the snapshot."""
        self._ops += ["r"] * len(rows)
        self._transactions += [transaction] * len(rows)
        self._olds += [None] * len(rows)
        self._news += rows

    def rows(self, first: int) -> Rows:
        """first: the number of the first one."""
        refused: dict[int, str] = {}
        none: Values = [None] * len(self._layout.names)
        rows = [new or old or none for new, old in zip(self._news, self._olds, strict=True)]
        arrays = self._converted(rows, self._columns.flat, refused)
        for field, key in self._columns.metadata:
            arrays.append(self._metadata(field, key, none, refused))
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._columns.schema)
        return Rows(self._name, first, batch, refused)

    def _converted(
        self, rows: Sequence[Values], types: Mapping[str, pa.DataType], refused: dict[int, str]
    ) -> list[pa.Array]:
        every = list(zip(*rows, strict=True))
        arrays = []
        for name, type_ in types.items():
            done = change_texts.values(every[self._layout.place(name)], type_)
            arrays.append(done.array)
            for at, why in done.refused.items():
                refused.setdefault(at, f"column {name!r}: {why}")
        return arrays

    def _metadata(self, field: pa.Field, key: str, none: Values, refused: dict[int, str]) -> pa.Array:
        if key in ("before", "after"):
            own = self._olds if key == "before" else self._news
            types = {child.name: child.type for child in field.type}
            children = self._converted([none if row is None else row for row in own], types, refused)
            missing = pa.array([row is None for row in own], pa.bool_())
            return pa.StructArray.from_arrays(children, fields=list(field.type), mask=missing)
        if key == "op":
            return pa.array(self._ops, field.type)
        if key == "unsent":
            wanted = self._columns.wanted
            return pa.array(
                [[name for name in self._unsent.get(at, ()) if name in wanted] for at in range(len(self))], field.type
            )
        found: list[Any] = [getattr(each, "time" if key == "committed" else key) for each in self._transactions]
        if key == "committed":
            return pa.array(found, pa.int64()).cast(_TIME).cast(field.type)
        return pa.array(found, field.type)
