"""How far a table has been read by its key, and which late rows are known already.

    since ───────────────► at ────────────►
           the overlap          new rows

Rows with keys up to `since` are never looked at again. Of those up to `at`, rows that are not known have come late:
they are read, too. Without an overlap, both are the same key.

Guarantees: a row within the overlap is new once. A position is the same after it has been JSON.

Assumes: keys come in the order of the database, those that are late apart.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument
from .interface import Json
from .table_query import Key

MOST_KNOWN, MANY_KNOWN = 1_000_000, 100_000
"""Rows in an overlap: with more, reading ends with an error; a log warns of many, because each checkpoint has them."""
_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Overlap:
    """width: in the numbers of the first key column: seconds, if `times` says how it is read as times."""

    name: str
    width: float
    times: pa.DataType | None

    def before(self, column: pa.Array, last: Any) -> pa.Array:
        """Of each value, whether it is further before the last one than the overlap is wide."""
        numbers = self._numbers(column)
        return pc.less(
            numbers, self._numbers(pa.array([last], column.type))[0].as_py() - round(self.width * self._unit)
        )

    @property
    def _unit(self) -> int:
        return 1 if self.times is None else 1_000_000

    def _numbers(self, column: pa.Array) -> pa.Array:
        if self.times is None:
            return column.cast(pa.int64())
        try:
            zone = self.times.tz if pa.types.is_timestamp(self.times) else None
            times = column.cast(self.times).cast(pa.timestamp("us", zone))
        except pa.ArrowException as error:
            raise InvalidArgument(
                f"{self.name}: {error}: an overlap needs times; write their type, such as timestamp[us] or "
                "timestamp[us, UTC]"
            ) from None
        return times.cast(pa.int64())


@dataclasses.dataclass(frozen=True)
class TablePosition:
    """row: how many rows were read. known: keys behind `since`, in order; late: further ones, that came late."""

    row: int = 0
    at: Key | None = None
    since: Key | None = None
    known: pa.RecordBatch | None = None
    late: pa.RecordBatch | None = None

    def after_new(self, keys: pa.RecordBatch, overlap: Overlap | None) -> TablePosition:
        """Behind further rows, at least one."""
        row, at = self.row + keys.num_rows, key_at(keys, keys.num_rows - 1)
        if overlap is None:
            return TablePosition(row, at, at)
        known = _joined(self.known, keys)
        is_before = overlap.before(known.column(0), known.column(0)[-1].as_py())
        gone = pc.sum(is_before).as_py() or 0
        since = self.since if not gone else key_at(known, gone - 1)
        late = self.late
        if late is not None and gone:
            late = late.filter(pc.greater_equal(late.column(0), known.column(0)[gone - 1]))
        return _bounded(TablePosition(row, at, since, known.slice(gone), late), overlap)

    def after_late(self, keys: pa.RecordBatch, overlap: Overlap) -> TablePosition:
        """Behind further rows, which came late."""
        late = _joined(self.late, keys)
        return _bounded(dataclasses.replace(self, row=self.row + keys.num_rows, late=late), overlap)

    def all_known(self) -> set[Key]:
        return {key for keys in (self.known, self.late) if keys is not None for key in _tuples(keys)}

    @functools.cached_property
    def json(self) -> Json:
        of = {"row": self.row, "at": self.at and list(self.at), "since": self.since and list(self.since)}
        return of | {
            name: None if keys is None else [_plain(column) for column in keys.columns]
            for name, keys in (("known", self.known), ("late", self.late))
        }

    @classmethod
    def of_json(cls, position: Json, types: Mapping[str, pa.DataType], has_overlap: bool) -> TablePosition:
        """types: of the key columns."""

        def key(values: list[Any] | None) -> Key | None:
            return None if values is None else tuple(values)

        def keys(columns: list[list[Any]] | None) -> pa.RecordBatch | None:
            if columns is None:
                return None
            arrays = [_typed(column, type_) for column, type_ in zip(columns, types.values(), strict=True)]
            return pa.RecordBatch.from_arrays(arrays, names=list(types))

        at, since = key(position["at"]), key(position["since"])
        if not has_overlap:
            return cls(position["row"], at, at)
        return cls(position["row"], at, since, keys(position["known"]), keys(position["late"]))


def key_at(keys: pa.RecordBatch, row: int) -> Key:
    return _tuples(keys.slice(row, 1))[0]


def _tuples(keys: pa.RecordBatch) -> list[Key]:
    return list(zip(*map(_plain, keys.columns), strict=True))


def without(keys: pa.RecordBatch, known: set[Key]) -> pa.Array:
    """Of each key, whether it is not known."""
    return pa.array([key not in known for key in _tuples(keys)], pa.bool_())


def _plain(column: pa.Array) -> list[int | str]:
    return (column if pa.types.is_integer(column.type) else column.cast(pa.string())).to_pylist()  # type: ignore[no-any-return]


def _typed(column: list[Any], type_: pa.DataType) -> pa.Array:
    return pa.array(column, type_ if pa.types.is_integer(type_) else pa.string()).cast(type_)


def _joined(before: pa.RecordBatch | None, keys: pa.RecordBatch) -> pa.RecordBatch:
    if before is None:
        return keys
    columns = [pa.concat_arrays(pair) for pair in zip(before.columns, keys.columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=keys.schema)


def _bounded(position: TablePosition, overlap: Overlap) -> TablePosition:
    count = sum(keys.num_rows for keys in (position.known, position.late) if keys is not None)
    if count > MOST_KNOWN:
        raise InvalidArgument(
            f"{overlap.name}: more than {MOST_KNOWN} rows are within the overlap, and checkpoints have the key of "
            "each: make the overlap shorter"
        )
    if count > MANY_KNOWN >= count - 8192:
        _log.warning("%s: %d rows are within the overlap, and each checkpoint has their keys", overlap.name, count)
    return position
