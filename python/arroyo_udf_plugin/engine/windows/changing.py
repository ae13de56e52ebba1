"""What all have that make changes of rows which came together: a change leaves at once, so a checkpoint has none.

changing.add(rows)
for step in changing.close(): ...       what has changed, in one step
changing.kept(), changing.restore(kept)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from ..connectors.cells import decoded
from .kept import KeptRows
from .keyed_rows import KeyedRows, one_batch
from .results import Step
from .storage import Storage, StorageLimits


class Changing:
    """schema: of what leaves. kept_schema: of what `kept` gives. meanings: see `GroupingPlan`. watermark, closed: it
    has none."""

    schema: pa.Schema
    kept_schema: pa.Schema

    def __init__(self, given: pa.Schema, taken: pa.Schema, limits: StorageLimits) -> None:
        """given: of the rows. taken: those of their columns that are needed."""
        self.meanings: dict[str, str] = {}
        self.watermark: int | None = None
        self.closed: int | None = None
        self._storage = Storage(limits)
        self._taken, self._needed = taken, [given.get_field_index(name) for name in taken.names]
        self._waiting: list[pa.RecordBatch] = []

    def late(self, rows: pa.RecordBatch) -> None:
        """As of `panes.Windows`: none is."""

    def add(self, rows: pa.RecordBatch) -> None:
        """They count with the next `close`."""
        columns = [decoded(rows.column(place)) for place in self._needed]
        self._waiting.append(pa.RecordBatch.from_arrays(columns, schema=self._taken))

    def close(self, all_of_them: bool = False) -> Iterator[Step]:
        """The changes since the latest one, in one step."""
        waiting, self._waiting = self._waiting, []
        changes = list(self._changed(one_batch(waiting, self._taken))) if waiting else []
        if changes:
            yield changes

    def _changed(self, rows: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        raise NotImplementedError

    def kept(self) -> Iterator[KeptRows]:
        """No rows wait: their changes have left, or they are kept before they come here."""
        assert not self._waiting
        return self._kept()

    def _kept(self) -> Iterator[KeptRows]:
        raise NotImplementedError

    def restore(self, kept: Iterable[KeptRows], watermark: int | None) -> None:
        """Before all rows."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """The bytes of what is kept."""
        return self._storage.memory + self._storage.disk


class ChangingKeys(Changing):
    """With rows by their key."""

    def __init__(
        self,
        given: pa.Schema,
        taken: pa.Schema,
        kept: pa.Schema,
        keys: Sequence[str],
        limits: StorageLimits,
        values: Sequence[str] | None = None,
    ) -> None:
        """kept: of the rows that are kept. values: as of `KeyedRows`. Raises WrongQuery for a type that is none of
        keys."""
        super().__init__(given, taken, limits)
        self.kept_schema = kept
        self._rows = KeyedRows(self._storage, kept, keys, values)

    def _kept(self) -> Iterator[KeptRows]:
        return self._rows.kept()

    def restore(self, kept: Iterable[KeptRows], watermark: int | None) -> None:
        for one in kept:
            self._rows.restore(one)
