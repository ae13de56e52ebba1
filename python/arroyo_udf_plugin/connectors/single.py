"""One output file, without checkpoints: a file that has its name cannot be taken back, and an unnamed one not kept.

Guarantees: the file appears when all slices have finished, and not if one has not. Slices share it, row by row in no
order.
"""

from __future__ import annotations

import os
import threading
from typing import Literal

import pyarrow as pa

from ..errors import InvalidArgument
from .interface import Json, Stage
from .options import Writing
from .place import is_stream, kind_of_output
from .sink import FileSink, check_writing
from .written import Written


class File(Written):
    """One file."""

    type: Literal["file"] = "file"

    path: str
    """The file; its ending names the format, with .gz or .zst for compressed text. It is replaced if it exists."""

    @property
    def typed(self) -> bool:
        return kind_of_output(self.path, self.format).format not in ("csv", "tsv")

    def check(self, schema: pa.Schema) -> None:
        check_writing(self.path, schema, self.writing())
        if not is_stream(self.path):  # a file is only there when it is complete
            FileSink(self.path, schema, self.writing()).__exit__(InterruptedError, None, None)

    def sink(self, schema: pa.Schema, slice: int, stage: Stage | None, pipeline: str, name: str) -> FileOfSlice:
        if stage is not None:
            raise InvalidArgument(
                f"{self.path}: one file cannot go on where it stopped; with checkpoints, write a folder: "
                'type = "parts", path = "..."'
            )
        return FileOfSlice(name, self.path, schema, self.writing())


class FileOfSlice:
    """A slice's share of an output file or stream."""

    resumable = False

    def __init__(self, name: str, path: str, schema: pa.Schema, writing: Writing) -> None:
        self.name = name
        self._file = _Shared.opened(path, schema, writing)
        self._ended = False

    def write(self, batch: pa.RecordBatch) -> None:
        self._file.write(batch)

    def seal(self, epoch: int) -> None:
        raise AssertionError("it has no epochs")

    def apply(self, epoch: int, stored: Json) -> None:
        raise AssertionError("it has no epochs")

    def clear(self, committed: int) -> None:
        raise AssertionError("it has no epochs")

    def finish(self) -> None:
        if not self._ended:
            self._ended = True
            self._file.leave(complete=True)

    def close(self) -> None:
        if not self._ended:
            self._ended = True
            self._file.leave(complete=False)


class _Shared:
    """A file that several slices write, each in its thread."""

    _all: dict[str, _Shared] = {}  # noqa: RUF012 (of the process: a file has one writer)
    _opening = threading.Lock()

    def __init__(self, key: str, path: str, schema: pa.Schema, writing: Writing) -> None:
        self._key, self._file = key, FileSink(path, schema, writing)
        self._users, self._complete = 0, True
        self._lock = threading.Lock()

    @classmethod
    def opened(cls, path: str, schema: pa.Schema, writing: Writing) -> _Shared:
        key = path if path == "-" else os.path.realpath(path)
        with cls._opening:
            found = cls._all.get(key)
            if found is None:
                found = cls._all[key] = cls(key, path, schema, writing)
            found._users += 1
            return found

    def write(self, batch: pa.RecordBatch) -> None:
        with self._lock:
            self._file.write(batch)

    def leave(self, complete: bool) -> None:
        with self._opening:
            self._users -= 1
            self._complete &= complete
            if not self._users:
                del self._all[self._key]
                self._file.__exit__(None if self._complete else InterruptedError, None, None)
