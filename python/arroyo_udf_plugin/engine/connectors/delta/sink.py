"""Rows as files of a Delta table, epoch by epoch.

    write ──► files, which nobody can see yet ──► seal, store: they are durable ──► apply: one commit names them

Each slice has a commit for each epoch with rows, which also notes the epoch's number under the slice's name.

Guarantees: rows of an epoch are in the table once, whenever a process ends, and whatever others commit meanwhile.
Without checkpoints, files are added when they are complete, and the last ones at the end.

Assumes: nobody else writes with this pipeline's name. Files of epochs that were never committed stay until the table is
vacuumed: nothing tells them from files of older versions of the table.
"""

from __future__ import annotations

import dataclasses
import itertools
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ....errors import InvalidArgument, WrongCheckpoints
from ..folder import Folder
from ..interface import Json, LaterRows, Sealed, later_epochs
from ..options import Writing
from ..parts_sink import PartLimits, WrittenPart
from .columns import DeltaColumns
from .partition import Partitioning, PartitionKey
from .table import AddedFile, DeltaLog

_MOST_SLICES, _GROUP = 4096, 64
_MOST_OPEN = 64  # files of partitions; then the one that was begun first ends


class DeltaSink:
    """history: of the epochs; None: without checkpoints. pipeline: its name. places: of the columns to write; None: all
    are."""

    def __init__(
        self,
        name: str,
        log: DeltaLog,
        folder: Folder,
        columns: DeltaColumns,
        partitioning: Partitioning,
        writing: Writing,
        limits: PartLimits,
        slice: int,
        history: str | None,
        pipeline: str,
        places: Sequence[int] | None,
    ) -> None:
        self.name = name
        self._log, self._folder, self._columns, self._partitioning = log, folder, columns, partitioning
        self._writing, self._limits, self._slice, self._history = writing, limits, slice, history
        self._places = places
        self._whole = f"arroyo-udf/{pipeline}/{name}"
        self._numbers = itertools.count()
        self._prefix = secrets.token_hex(8)
        self._begun: dict[PartitionKey, _File] = {}
        self._complete: list[_File] = []
        self._every: list[_File] = []  # all that are not durable

    def write(self, batch: pa.RecordBatch) -> None:
        if self._places is not None:
            batch = batch.select(self._places)
        for key, rows in self._partitioning.cut(self._columns.of(batch)):
            while rows.num_rows:
                file = self._begun.get(key) or self._begin(key)
                fits = rows.num_rows if self._limits.rows is None else self._limits.rows - file.part.rows
                file.part.write(rows.slice(0, fits))
                rows = rows.slice(fits)
                if file.part.rows == self._limits.rows or file.part.file.n_bytes >= self._limits.bytes:
                    self._end(key)
        if self._history is None:
            self._add_complete()

    def _begin(self, key: PartitionKey) -> _File:
        if len(self._begun) >= _MOST_OPEN:
            self._end(next(iter(self._begun)))
        name = f"part-{self._prefix}-{self._slice:03}-{next(self._numbers):06}.parquet"
        part = WrittenPart(self._folder, name, self._partitioning.schema, self._writing)
        file = self._begun[key] = _File(part, self._partitioning.values(key))
        self._every = [*(other for other in self._every if not other.part.is_kept), file]
        return file

    def _end(self, key: PartitionKey) -> None:
        file = self._begun.pop(key)
        file.part.end()
        self._complete.append(file)

    def _taken(self) -> list[_File]:
        files, self._complete, self._begun = [*self._complete, *self._begun.values()], [], {}
        return files

    def seal(self, epoch: int) -> Sealed | None:
        files = self._taken()
        return _SealedFiles(files, self._slice) if files else None

    def apply(self, epoch: int, stored: Json) -> None:
        slice = stored["slice"]
        self._commit(stored["files"], self._named(slice), epoch, [self._whole, self._named(), self._group(slice)])

    def _commit(self, files: Sequence[Any], name: str, number: int, marks: Sequence[str] = ()) -> None:
        added = [AddedFile(**file) for file in files]
        self._log.commit(self._columns.schema, self._partitioning.by, added, name, number, marks)

    def _named(self, slice: int | None = None) -> str:
        """What a slice's epochs of this history are noted under; without a slice, that there are some."""
        return f"{self._whole}/{self._history}" + ("" if slice is None else f"/{slice}")

    def _group(self, slice: int) -> str:
        """Noted if one of so many slices has written: a question for each slice would take its time."""
        return f"{self._named()}/from-{slice - slice % _GROUP}"

    def _slices(self) -> Mapping[int, int]:
        """The last epoch of each slice that has written."""
        groups = {self._group(first): first for first in range(0, _MOST_SLICES, _GROUP)}
        slices = {
            self._named(first + place): first + place
            for first in map(groups.__getitem__, self._log.noted(list(groups)))
            for place in range(_GROUP)
        }
        return {slices[name]: epoch for name, epoch in self._log.noted(list(slices)).items()}

    def check(self, committed: int, epoch: int, waiting: Sequence[Json]) -> None:
        slices, place = self._slices(), self._log.place
        if (last := max(slices.values(), default=0)) >= committed:
            raise WrongCheckpoints(later_epochs(f"{place}: the table", f"epoch {last}", committed))
        noted = self._log.noted([self._whole, self._named()])
        if self._whole in noted and self._named() not in noted:
            raise WrongCheckpoints(
                f"{place}: this pipeline has written here with other checkpoints: if these are in another place, or in "
                "one that is not mounted, go on from there. To begin anew, name another table. To add rows to those "
                "that are there, give the pipeline another name"
            )
        there = set(self._folder.names()) if waiting else set()
        for stored in waiting:
            gone = [file["name"] for file in stored["files"] if file["name"] not in there]
            if slices.get(stored["slice"], 0) < epoch and gone:
                raise InvalidArgument(
                    f"{place}: {gone[0]}, which has rows of the last checkpoint, is gone: the table was vacuumed "
                    "before they were committed. Bring the file back, or go back to an older checkpoint"
                )

    def clear(self, committed: int) -> None:
        """Files that were never committed stay: see above."""

    def later_rows(self, epoch: int, later: Mapping[int, Sequence[Json] | None]) -> LaterRows:
        if max(self._slices().values(), default=0) <= epoch:
            return LaterRows(self.name, "none", f"{self._log.place} has no later rows")
        return LaterRows(self.name, "doubled", f"rows of {self._log.place} stay")

    def withdraw(self, epochs: Sequence[tuple[int, int]]) -> None:
        """Rows stay: others may have read them, and rewritten their files."""

    def finish(self) -> None:
        for key in list(self._begun):
            self._end(key)
        self._add_complete()

    def _add_complete(self) -> None:
        """Without checkpoints."""
        files, self._complete = self._complete, []
        if files:
            added = _SealedFiles(files, self._slice).store()["files"]
            # The number makes a second try of the commit harmless.
            self._commit(added, f"{self._whole}/{self._prefix}", next(self._numbers))

    def close(self) -> None:
        for file in self._every:
            file.part.give_up()


@dataclasses.dataclass
class _File:
    """values: of the partition columns."""

    part: WrittenPart
    values: Mapping[str, str | None]

    def kept(self) -> dict[str, Any]:
        """Makes it durable, and returns what the log says of it."""
        self.part.keep()
        added = AddedFile(self.part.name, self.part.size, self.part.rows, int(time.time() * 1000), self.values)
        return dataclasses.asdict(added)


class _SealedFiles:
    def __init__(self, files: Sequence[_File], slice: int) -> None:
        self._files, self._slice = files, slice

    def store(self) -> Json:
        return {"slice": self._slice, "files": [file.kept() for file in self._files]}

    def discard(self) -> None:
        for file in self._files:
            file.part.discard()
