"""The rows of a table out of its changes, as rows that come and go.

    op   id   name    unsent             __s   id   name
    c    1    Ann               ──►      1     1    Ann
    u    1    Anne                       -1    1    Ann
                                         1     1    Anne
    d    1                               -1    1    Anne

The latest row of each key is kept. So a change needs to say neither what was before it, nor the values that stay, and
one that comes twice is none.

Guarantees: a row goes exactly as it had come. Assumes: the changes of a key come in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from ...errors import InvalidArgument
from ..connectors.cells import plain_field
from .changing import ChangingKeys
from .keyed_rows import one_batch
from .net_changes import check_keys
from .result_changes import ResultChanges
from .storage import StorageLimits
from .updating_rows import FollowedRows

_PUT = ("c", "r", "u")
_NEEDED = "write c, r or u for a row that is to be there, and d for one that is to go"


class TableFollower(ChangingKeys):
    """As `UpdatedKeys`."""

    def __init__(self, asked: FollowedRows, given: pa.Schema, limits: StorageLimits = StorageLimits()) -> None:  # noqa: B008 (frozen)
        """given: of the changes. Raises WrongQuery."""
        check_keys([*asked.keys, asked.operation, *([asked.unsent] if asked.unsent else [])], given)
        self._asked = asked
        beside = (asked.operation, asked.unsent)
        taken = pa.schema([plain_field(field) for field in given])
        own = pa.schema([field for field in taken if field.name not in beside])
        super().__init__(given, taken, own, asked.keys, limits, asked.keys)
        self._changes = ResultChanges(own, as_rows=True)
        self.schema = self._changes.schema

    def _changed(self, changes: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        """Raises InvalidArgument for a change that is none."""
        rows = changes.select(self.kept_schema.names)
        self._check(changes)
        keys = self._rows.keys_of(rows)
        known = {key: place for key in keys for place in self._rows.places_of(key)}
        places = sorted(known.values())
        numbers = {place: number for number, place in enumerate(places)}
        old = {key: numbers[place] for key, place in known.items()}
        before = self._rows.at(places)
        after, new = self._put_together(one_batch([before, rows], self.kept_schema), changes, keys, old)
        for key, place in known.items():
            self._rows.drop(key, place)
        self._rows.add(after)
        self._rows.clear_up()
        pairs = [(old.get(key), new.get(key)) for key in dict.fromkeys(keys)]
        return self._changes.of(before, after, pairs)

    def _check(self, changes: pa.RecordBatch) -> None:
        for operation in changes.column(self._asked.operation).unique().to_pylist():
            if operation == "t":
                raise InvalidArgument(
                    "all rows of the table were removed at once (TRUNCATE), which is not followed: "
                    "write DELETE, or begin anew"
                )
            if operation not in (*_PUT, "d"):
                raise InvalidArgument(f"the operation {operation!r} is not known: {_NEEDED}")
        for name in self._asked.keys:
            if changes.column(name).null_count:
                raise InvalidArgument(f"{name} is null in a change, and is the key of its table")

    def _put_together(
        self, rows: pa.RecordBatch, changes: pa.RecordBatch, keys: Sequence[bytes], old: Mapping[bytes, int]
    ) -> tuple[pa.RecordBatch, dict[bytes, int]]:
        """What is there after the changes, and where each key is. rows: what was there before, then the changes. old:
        which of them a key had."""
        first = rows.num_rows - changes.num_rows
        unsent = changes.column(self._asked.unsent).to_pylist() if self._asked.unsent else [None] * changes.num_rows
        latest: dict[bytes, int | None] = dict(old)
        kept: dict[int, dict[str, int]] = {}  # of a row: where it has values from that were not sent
        operations = changes.column(self._asked.operation).to_pylist()
        for at, (key, operation, lacking) in enumerate(zip(keys, operations, unsent, strict=True), first):
            before = latest.get(key)
            if operation == "d":
                latest[key] = None
                continue
            own = [name for name in lacking or () if name in rows.schema.names]
            if own and before is None:
                raise InvalidArgument(
                    f"{own[0]} was not sent with a change of a row that is not known: with REPLICA IDENTITY FULL, it is"
                )
            if own and before is not None:
                kept[at] = {name: kept.get(before, {}).get(name, before) for name in own}
            latest[key] = at
        there = {key: at for key, at in latest.items() if at is not None}
        columns = []
        for name, column in zip(rows.schema.names, rows.columns, strict=True):
            chosen = [kept[at].get(name, at) if at in kept else at for at in there.values()]
            columns.append(column.take(pa.array(chosen, pa.int64())))
        after = pa.RecordBatch.from_arrays(columns, schema=self.kept_schema)
        return after, {key: number for number, key in enumerate(there)}
