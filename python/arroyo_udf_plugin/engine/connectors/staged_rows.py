"""Rows of epochs in the checkpoints' store, for sinks that have no place of their own for what nobody may see yet.

    staged.add(rows)                      again and again
    sealed = staged.seal()                ends an epoch's rows; sealed.store() makes them durable
    for table in staged.read(stored, epoch): ...
    staged.delete(stored)                 once they are applied

Guarantees: what `read` yields is what `add` was given, or an InvalidArgument names the file. Many rows go to the store
before their epoch ends, so that they do not stay in memory. The last ones do, until they are deleted, so that nobody
has to wait for them to be read back.

Assumes: one thread adds and seals. Others may store, read and delete meanwhile.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import itertools
import re
import urllib.parse
from collections.abc import Iterator, Sequence
from functools import partial
from typing import IO, Any

import pyarrow as pa

from ...errors import InvalidArgument
from .interface import Json, Sealed, Stage
from .summed import Summed

_CHUNK_BYTES = 64 << 20
_AT_ONCE = 1 << 20  # bytes of a write
_CHUNK = re.compile(r"(\d+)-\d+-\d+\.arrows")


class StagedRows:
    """Of one slice. kind: of the sink. sink: its name. place: what error texts call it."""

    def __init__(self, stage: Stage, kind: str, sink: str, slice: int, place: str) -> None:
        self._stage, self._slice, self._place = stage, slice, place
        self._folder = f"{kind}-{urllib.parse.quote(sink, safe='')}/"
        self._numbers = itertools.count()
        self._generation = 0
        self._staged: list[Json] = []
        self._waiting: list[pa.Table] = []
        self._waiting_bytes = 0
        self._kept: dict[str, _Chunk] = {}  # the last ones of epochs that may be read soon, by their names

    def add(self, rows: pa.Table) -> None:
        self._waiting.append(rows)
        self._waiting_bytes += rows.nbytes
        if self._waiting_bytes >= _CHUNK_BYTES:
            self._staged.append(self.put(self._chunk()))

    def _chunk(self) -> _Chunk:
        """The rows that wait."""
        rows, self._waiting, self._waiting_bytes = self._waiting, [], 0
        name = f"{self._folder}{self._generation:09}-{self._slice:03}-{next(self._numbers):06}.arrows"
        return _Chunk(name, rows)

    def seal(self) -> Sealed | None:
        """None: there are no rows."""
        staged, self._staged = self._staged, []
        last = self._chunk() if self._waiting else None
        if last is not None:
            self._kept[last.name] = last
        return _SealedRows(self, self._slice, staged, last) if staged or last else None

    def put(self, chunk: _Chunk) -> Json:
        """Makes it durable. Returns how it is found again."""
        return chunk.stored(self._stage)

    def check(self, stored: Json, epoch: int) -> None:
        """Raises what `read` would raise."""
        for _ in self.read(stored, epoch):
            pass

    def read(self, stored: Json, epoch: int) -> Iterator[pa.Table]:
        """stored: of any slice. Raises InvalidArgument for rows that are not those that were stored."""
        for chunk in map(_StoredChunk.read, stored["chunks"]):
            kept = self._kept.get(chunk.name)
            yield self._read(chunk, epoch) if kept is None else pa.concat_tables(kept.rows)

    def _read(self, chunk: _StoredChunk, epoch: int) -> pa.Table:
        what = f"{self._place}: rows of epoch {epoch} in the checkpoints' store"
        try:
            data = self._stage.get(chunk.name)
            if chunk.sha256 not in (None, hashlib.sha256(data).hexdigest()):
                raise pa.ArrowInvalid("its checksum is another one")
            with pa.ipc.open_stream(data) as reader:
                return reader.read_all()
        except FileNotFoundError:
            raise InvalidArgument(f"{what} are gone: put rows/{chunk.name} back, and resume") from None
        except (pa.ArrowException, OSError, ValueError) as error:
            raise InvalidArgument(
                f"{what} are damaged: rows/{chunk.name}: {error}: restore it from a copy, and resume"
            ) from error

    def delete(self, stored: Json) -> None:
        self.remove([chunk.name for chunk in map(_StoredChunk.read, stored["chunks"])])

    def remove(self, names: Sequence[str]) -> None:
        for name in names:
            self._kept.pop(name, None)
            self._stage.delete(name)

    def clear(self, committed: int) -> None:
        """Removes what engines before this one have left, of all slices. committed: the number of its fence."""
        self._generation = committed
        self._kept.clear()
        for name in self._stage.names(self._folder):
            if (chunk := _CHUNK.fullmatch(name.removeprefix(self._folder))) and int(chunk[1]) < committed:
                self._stage.delete(name)


@dataclasses.dataclass(frozen=True)
class _Chunk:
    """Rows on their way. name: in the stage."""

    name: str
    rows: list[pa.Table]

    def stored(self, stage: Stage) -> Json:
        """Puts them there. Returns how they are found again."""
        summed = Summed()
        stage.write(self.name, partial(self._write, summed))
        return {"name": self.name, "sha256": summed.sum}

    def _write(self, summed: Summed, file: IO[bytes]) -> None:
        summed.begin(file)
        buffered = io.BufferedWriter(summed, _AT_ONCE)
        with pa.ipc.new_stream(buffered, self.rows[0].schema) as writer:
            for rows in self.rows:
                writer.write_table(rows)
        buffered.flush()


@dataclasses.dataclass(frozen=True)
class _StoredChunk:
    """sha256: None: an earlier program has stored it."""

    name: str
    sha256: str | None

    @classmethod
    def read(cls, stored: Any) -> _StoredChunk:
        return cls(stored, None) if isinstance(stored, str) else cls(stored["name"], stored["sha256"])


@dataclasses.dataclass(frozen=True)
class _SealedRows:
    """staged: chunks in the stage. last: one that is still to be put there."""

    owner: StagedRows
    slice: int
    staged: list[Json]
    last: _Chunk | None

    def store(self) -> Json:
        chunks = list(self.staged)
        if self.last is not None:
            chunks.append(self.owner.put(self.last))
        return {"slice": self.slice, "chunks": chunks}

    def discard(self) -> None:
        last = [] if self.last is None else [self.last.name]
        self.owner.remove([*(chunk["name"] for chunk in self.staged), *last])
