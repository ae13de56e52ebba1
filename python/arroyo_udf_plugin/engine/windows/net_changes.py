"""Rows that come and go, as the changes of a table that has one row for each key.

    INSERT INTO a table with PRIMARY KEY (id) SELECT p.id, ... FROM people p LEFT JOIN towns ...

A row may come before the one goes whose key it has, because both may have come from different slices. So all rows that
are there are kept, and the table has the latest one of each key.

Guarantees: the changes of a key follow from each other, and in the end the table has the rows that are there, if their
keys differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from ...errors import InvalidArgument
from ..connectors.cells import plain_field
from ..datafusion.query import WrongQuery
from .changing import ChangingKeys
from .result_changes import ResultChanges, come_and_gone
from .storage import StorageLimits
from .updating_rows import SIGN, NetRows


class NetChanges(ChangingKeys):
    """As `UpdatedKeys`."""

    def __init__(self, asked: NetRows, given: pa.Schema, limits: StorageLimits = StorageLimits()) -> None:  # noqa: B008 (frozen)
        """given: of the rows, with their signs. Raises WrongQuery."""
        check_keys(asked.keys, given)
        self._keys = asked.keys
        taken = pa.schema([plain_field(field) for field in given])
        own = taken.remove(taken.get_field_index(SIGN.name))
        super().__init__(given, taken, own, asked.keys, limits)
        self._changes = ResultChanges(own, as_rows=False)
        self.schema = self._changes.schema

    def add(self, rows: pa.RecordBatch) -> None:
        """Raises InvalidArgument for a row without a key."""
        for name in self._keys:
            if rows.column(name).null_count:
                raise InvalidArgument(
                    f"{name} is null in a row, and the table finds rows by it: write WHERE {name} "
                    "IS NOT NULL, or another PRIMARY KEY"
                )
        super().add(rows)

    def _changed(self, rows: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        come, gone = come_and_gone(rows, self._rows.hashes_of)
        keys = list(dict.fromkeys([*self._rows.keys_of(gone), *self._rows.keys_of(come)]))
        before, old = self._latest(keys)
        self._rows.remove(gone)
        self._rows.add(come)
        after, new = self._latest(keys)
        self._rows.clear_up()
        return self._changes.of(before, after, [(old.get(key), new.get(key)) for key in keys])

    def _latest(self, keys: Sequence[bytes]) -> tuple[pa.RecordBatch, dict[bytes, int]]:
        """The rows that the table has of these keys, and where each is."""
        latest = {key: places[-1] for key in keys if (places := self._rows.places_of(key))}
        places = sorted(latest.values())
        numbers = {place: number for number, place in enumerate(places)}
        return self._rows.at(places), {key: numbers[place] for key, place in latest.items()}


def check_keys(keys: Sequence[str], given: pa.Schema) -> None:
    """Raises WrongQuery."""
    for name in keys:
        if len(given.get_all_field_indices(name)) != 1:
            raise WrongQuery(f"there is no column {name}, or several", name)
