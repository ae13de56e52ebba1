"""What windows keep: in memory up to a limit, beyond that in files without a name.

    storage = Storage(Limits(memory=256 << 20, disk=16 << 30))
    some = Some(storage)
    some.add(batch); some.batches                  those in files are read as memory, page by page
    some.parts                                     the same, each with its place in checkpoints
    some.clear()                                   always at the end: it frees memory and disk

Guarantees: a kept batch that is a slice of a larger one does not keep that one alive. Above the memory limit, the
largest parts go to files until half of the limit is free. Above the disk limit, it raises an error.
Assumes: `clear` is called for everything that is not needed any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from ...errors import InvalidArgument
from ..connectors.unnamed import mapped
from .kept import KeptPart, PartPlace

_MEMORY, _DISK = 256 << 20, 16 << 30
_SMALL_ROWS = 4096


@dataclass(frozen=True)
class StorageLimits:
    """In bytes."""

    memory: int = _MEMORY
    disk: int = _DISK


class Some:
    """Batches of one schema. memory, disk: their bytes."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._held: list[KeptPart] = []
        self._filed: list[KeptPart] = []
        self.memory = self.disk = 0

    @property
    def batches(self) -> list[pa.RecordBatch]:
        return [part.batch for part in self.parts]

    @property
    def parts(self) -> list[KeptPart]:
        return [*self._filed, *self._held]

    def add(self, batch: pa.RecordBatch, place: PartPlace | None = None) -> None:
        """May write whatever is kept to files. place: where a checkpoint has exactly this batch. Raises InvalidArgument
        above the limit of the disk."""
        if not self._held:
            self._storage.holding[self] = None
        self._held.append(KeptPart(_alone(batch), place))
        self._grow(memory=batch.nbytes)
        self._put_together()
        self._storage.check()

    def _put_together(self) -> None:
        """Makes one batch of small ones, as a batch costs as much as many rows. Each row is copied a few times."""
        held = self._held
        while len(held) > 1 and held[-2].batch.num_rows < min(2 * held[-1].batch.num_rows, _SMALL_ROWS):
            both = pa.Table.from_batches([part.batch for part in held[-2:]])
            held[-2:] = map(KeptPart, both.combine_chunks().to_batches())

    def replace(self, batches: Iterable[pa.RecordBatch]) -> None:
        self.clear()
        for batch in batches:
            self.add(batch)

    def clear(self) -> None:
        if self._held:
            del self._storage.holding[self]
        self._held, self._filed = [], []
        self._grow(-self.memory, -self.disk)

    def file(self) -> None:
        """Puts into a file what is in memory."""
        self._storage.need(self.memory)
        schema = self._held[0].batch.schema

        def write(file: object) -> None:
            with pa.ipc.new_stream(file, schema) as stream:
                for part in self._held:
                    stream.write_batch(part.batch)

        data = mapped(write, "rows of open windows")
        with pa.ipc.open_stream(pa.py_buffer(data)) as stream:
            for part, batch in zip(self._held, stream, strict=True):
                part.batch = _typed(batch, schema)
        self._filed += self._held
        self._held = []
        del self._storage.holding[self]
        self._grow(-self.memory, len(data))

    def _grow(self, memory: int = 0, disk: int = 0) -> None:
        self.memory += memory
        self.disk += disk
        self._storage.memory += memory
        self._storage.disk += disk


class Storage:
    """memory, disk: the bytes of everything. holding: what may be in memory."""

    def __init__(self, limits: StorageLimits) -> None:
        self._limits = limits
        self.holding: dict[Some, None] = {}  # in their order
        self.memory = self.disk = 0

    def check(self) -> None:
        """Files the largest parts, if the memory is full."""
        if self.memory <= self._limits.memory:
            return
        for some in sorted(self.holding, key=lambda some: some.memory, reverse=True):
            if self.memory > self._limits.memory // 2:
                some.file()

    @property
    def times(self) -> int:
        """How many times the memory would be needed for everything."""
        return 1 + self.disk // max(self._limits.memory, 1)

    def need(self, size: int) -> None:
        """Raises InvalidArgument if there is no room for so much on the disk."""
        if self.disk + size > self._limits.disk:
            raise InvalidArgument(
                f"rows that wait have {_amount(self.memory + self.disk)}, and may have {_amount(self._limits.memory)} "
                f"in memory (memory_limit) and {_amount(self._limits.disk)} on the disk (disk_limit): set a higher "
                "limit, or shorter windows or intervals"
            )


def _typed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """What was read, with types that only we know."""
    if batch.schema == schema:
        return batch
    columns = [
        pa.ExtensionArray.from_storage(type_, column) if isinstance(type_, pa.BaseExtensionType) else column
        for type_, column in zip(schema.types, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _amount(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size} bytes"


def _alone(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A copy, if it is a small part of what it is a slice of. Four slices of one decoded batch of Parquet are kept as
    they are. The copy is made by combining, because views of texts have no `take`."""
    if batch.get_total_buffer_size() <= 4 * batch.nbytes + 4096:
        return batch
    (own,) = pa.Table.from_batches([batch, batch.slice(0, 0)]).combine_chunks().to_batches()
    return own
