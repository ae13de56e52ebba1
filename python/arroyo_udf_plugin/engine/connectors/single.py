"""One output file, without checkpoints: a file that has its name cannot be taken back, and an unnamed one not kept.

Guarantees: the file appears when all slices have finished, and not if one has not. Slices share it, row by row in no
order. On standard output, rows of other columns may stand between, if each row is a line that says what it is.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

import pyarrow as pa
import pydantic

from ...errors import InvalidArgument
from .connector import CatalogueEntry, Connector, Form
from .files import Files
from .interface import Stage
from .location import location_of
from .options import Writing
from .place import is_stream, kind_of_output
from .sink import FileSink, check_writing
from .table_options import TableOptions
from .written import WrittenOutput, writing_keys


class File(WrittenOutput):
    """One file."""

    resumable: ClassVar[bool] = False

    type: Literal["file"] = "file"

    path: str
    """The file; its ending names the format, with .gz or .zst for compressed text. It is replaced if it exists."""

    @classmethod
    def of_table(cls, options: TableOptions) -> Self:
        return cls(path=options.need("path", "out.csv"), **writing_keys(options))

    @property
    def connector(self) -> str:
        return "single_file"

    @property
    def place(self) -> str:
        return self.path

    def on_standard_output(self) -> Writing | None:
        return self.writing() if self.path == "-" else None

    @property
    def typed(self) -> bool:
        return kind_of_output(self.path, self.format).format not in ("csv", "tsv")

    def check(self, schema: pa.Schema) -> None:
        location_of(self.path).admitted()
        check_writing(self.path, schema, self.writing())
        if not is_stream(self.path):  # a file is only there when it is complete
            FileSink(self.path, schema, self.writing()).__exit__(InterruptedError, None, None)

    def sink(self, schema: pa.Schema, slice: int, stage: Stage | None, pipeline: str, name: str) -> FileOfSlice:
        if stage is not None:
            raise InvalidArgument(
                f"{self.path}: one file cannot go on where it stopped; with checkpoints, write a folder: "
                'type = "parts", path = "...", or in SQL connector = \'filesystem\''
            )
        return FileOfSlice(name, self.path, schema, self.writing())


class _Form(Form):
    example: ClassVar[Mapping[str, Any]] = {"path": "/data/rows.json", "table_type": "source"}

    path: Annotated[str, pydantic.Field(pattern=r"^[^\x00-\x1f\x7f]*$", min_length=1, max_length=4000, title="Path")]
    chosen: Annotated[Literal["source", "sink"], pydantic.Field(alias="table_type")]
    wait_for_control: bool = True

    def table_type(self) -> Literal["source", "sink"]:
        return self.chosen

    def options(self) -> dict[str, str]:
        return {"path": self.path, "type": self.chosen}


CONNECTOR = Connector(
    "single_file", source=Files, sink=File, entry=CatalogueEntry("Single File", "One file", _Form, hidden=True)
)


class FileOfSlice:
    """A slice's share of an output file or stream."""

    def __init__(self, name: str, path: str, schema: pa.Schema, writing: Writing) -> None:
        self.name = name
        self._shared, self._file = _Shared.opened(path, schema, writing)
        self._ended = False

    def write(self, batch: pa.RecordBatch) -> None:
        self._shared.write(self._file, batch)

    def finish(self) -> None:
        if not self._ended:
            self._ended = True
            self._shared.leave(complete=True)

    def close(self) -> None:
        if not self._ended:
            self._ended = True
            self._shared.leave(complete=False)


def can_share(path: str, first: tuple[pa.Schema, Writing], other: tuple[pa.Schema, Writing]) -> bool:
    """Whether rows of these columns, written in these ways, may stand in one output."""
    if first[0].equals(other[0]) and first[1] == other[1]:
        return True
    formats = {kind_of_output(path, writing.format).format for _, writing in (first, other)}
    return path == "-" and len(formats) == 1 and formats <= _LINES


_LINES = {"jsonl", "text"}  # with nothing before the rows, between or behind them


class _Shared:
    """A file that several slices write, each in its thread. Rows of one kind, or of several that `can_share`, each
    with a writer of its own."""

    _all: dict[str, _Shared] = {}  # noqa: RUF012 (of the process: a file has one place)
    _opening = threading.Lock()

    def __init__(self, key: str) -> None:
        self._key = key
        self._files: list[tuple[tuple[pa.Schema, Writing], FileSink]] = []
        self._users, self._complete = 0, True
        self._lock = threading.Lock()

    @classmethod
    def opened(cls, path: str, schema: pa.Schema, writing: Writing) -> tuple[_Shared, FileSink]:
        """The file, and the writer of these rows. Raises InvalidArgument."""
        where = location_of(path).admitted()
        key = path if path == "-" or where.path is None else os.path.realpath(where.path)
        with cls._opening:
            shared = cls._all.get(key) or cls(key)
            file = shared._writer(path, schema, writing)
            cls._all[key] = shared
            shared._users += 1
            return shared, file

    def _writer(self, path: str, schema: pa.Schema, writing: Writing) -> FileSink:
        own = schema, writing
        for (known, how), file in self._files:
            if known.equals(schema) and how == writing:
                return file
        if not all(can_share(path, own, other) for other, _ in self._files):
            raise InvalidArgument(f"{path} is being written with other columns, or in another format")
        beside = self._files[0][1] if self._files else None
        file = FileSink(path, schema, writing, beside=beside)
        self._files.append((own, file))
        return file

    def write(self, file: FileSink, batch: pa.RecordBatch) -> None:
        with self._lock:
            file.write(batch)

    def leave(self, complete: bool) -> None:
        with self._opening:
            self._users -= 1
            self._complete &= complete
            if self._users:
                return
            del self._all[self._key]
            with contextlib.ExitStack() as closing:
                for _, file in self._files:
                    closing.callback(file.__exit__, None if self._complete else InterruptedError, None, None)
