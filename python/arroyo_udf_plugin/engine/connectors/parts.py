"""A folder of files, local or in an object store, to which rows are added part by part.

Parts are named after epoch, slice and number: part-000000012-000-003.parquet. Without checkpoints, after slice and
number.

Guarantees: a part that can be seen under its name is complete. With checkpoints, an epoch's parts have hidden names
until the epoch is applied; applying can be repeated, also by another process, and at every moment between two steps.

Assumes: the folder belongs to one sink. What does not look like a part is left alone.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal, Self

import pyarrow as pa
import pydantic

from ...author.options import bytes_of
from ...errors import InvalidArgument, WrongCheckpoints
from .described import Seconds
from .folder import Folder, open_folder
from .inputs import input_files
from .interface import Fate, Json, LaterRows, Sealed, Stage, later_epochs
from .location import location_of
from .options import Reading, Writing
from .sink import FileSink, check_writing
from .source import FileSource
from .table_options import A_TIME, TableOptions, chosen, period_seconds
from .written import Format, WrittenOutput, compression_named, writing_keys

_TEXT_COMPRESSIONS = {None: "", "none": "", "gzip": ".gz", "zstd": ".zst"}
_READ_AS_WRITTEN = (
    *("format", "null_values", "delimiter", "quote", "header", "decimal_mark"),
    *("unstructured", "json_columns", "timestamps"),
)
_PART = re.compile(r"part-(?:(\d{9,})-)?\d{3,}-\d{3,}\.\w+(?:\.\w+)?")
_STAGED = re.compile(r"\.staged-(\d{9,})-.*")


class Parts(WrittenOutput):
    """A folder of files."""

    type: Literal["parts"] = "parts"

    path: str
    """The folder, or its URL in an object store (`s3://bucket/folder`). It is made if it does not exist."""

    format: Format = "parquet"
    """The format of the parts."""

    compression: str | None = None
    """Of Parquet: snappy, zstd, gzip, lz4, brotli or none. Of Arrow: zstd, lz4 or none. Of text: gzip, zstd or none."""

    part_rows: Annotated[int, pydantic.Field(ge=1)] | None = None
    """A part has at most so many rows."""

    part_bytes: Annotated[int, pydantic.Field(ge=1, le=4 << 30)] = 128 << 20
    """A part ends when it has at least so many bytes. Rows count when they are written: of Parquet, by row group."""

    part_seconds: Seconds | None = None
    """A part ends so long after its first row."""

    @classmethod
    def of_table(cls, options: TableOptions) -> Self:
        path, keys = options.need("path", "out"), writing_keys(options)
        keys |= {
            "part_seconds": options.read("rolling_policy.interval", period_seconds, A_TIME),
            "part_bytes": options.read("rolling_policy.file_size", bytes_of, "a size such as 128 MiB"),
            "compression": keys.get("compression") or _compression(options),
        }
        return cls(path=path, **chosen(keys))

    @property
    def connector(self) -> str:
        return "filesystem"

    @property
    def place(self) -> str:
        return self.path

    @property
    def fate(self) -> Fate:
        return "withdrawn"

    @property
    def typed(self) -> bool:
        return self.format not in ("csv", "tsv")

    def check(self, schema: pa.Schema) -> None:
        self._ending()
        check_writing(self.path, schema, self._writing())
        self._folder().check()

    def sink(self, schema: pa.Schema, slice: int, stage: Stage | None, pipeline: str, name: str) -> PartsSink:
        self.check(schema)
        limits = PartLimits(self.part_rows, self.part_bytes, self.part_seconds)
        folder = self._folder()
        return PartsSink(name, folder, schema, self._writing(), self._ending(), slice, stage is not None, limits)

    def check_free(self, schema: pa.Schema) -> None:
        self.sink(schema, 0, None, "", "").close()

    def shown(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        names = list(self.columns or schema.names)
        if self._is_text() and not self.header:
            names = [f"f{place}" for place in range(len(names))]
        in_files = dict(zip(self.columns or schema.names, names, strict=True))
        types = {in_files.get(field.name, field.name): field.type for field in schema} if self._is_text() else {}
        reading = Reading(types=types, **{name: getattr(self._writing(), name) for name in _READ_AS_WRITTEN})
        folder = self._folder()
        for name in filter(_PART.fullmatch, folder.names()):
            with FileSource([f"{self.path.rstrip('/')}/{name}"], reading) as source:
                places = [source.index(in_files.get(column, column)) for column in schema.names]
                for rows in source:
                    if rows.refused:
                        at, why = next(iter(rows.refused.items()))
                        raise InvalidArgument(f"{rows.file}, row {rows.first + at}: {why}")
                    columns = [rows.batch.column(place) for place in places]
                    yield pa.RecordBatch.from_arrays(columns, names=schema.names).cast(schema)

    def files(self) -> list[str]:
        """The paths or URLs of the parts that can be seen, by name; none if there is no folder. Asks a store that does
        not answer for a few seconds only. Raises InvalidArgument."""
        found = input_files([self.path], self.format, may_lack=True)
        return [file.name for file in found if _PART.fullmatch(file.name.rpartition("/")[2])]

    def _folder(self) -> Folder:
        return open_folder(location_of(self.path).admitted())

    def _is_text(self) -> bool:
        return self.format in ("csv", "tsv", "jsonl", "text")

    def _writing(self) -> Writing:
        return self.writing(compression=None if self._is_text() else self.compression)

    def _ending(self) -> str:
        if not self._is_text():
            return f".{self.format}"
        if self.compression not in _TEXT_COMPRESSIONS:
            raise InvalidArgument(f"the compressions of {self.format} are none, gzip, zstd, not {self.compression}")
        return f".{self.format}{_TEXT_COMPRESSIONS[self.compression]}"


def _compression(options: TableOptions) -> str | None:
    """Of JSON, or of Parquet if it is the format because the table names none."""
    return compression_named(options.text("parquet.compression") or options.text("json.compression"))


@dataclasses.dataclass(frozen=True)
class PartLimits:
    """Of a part. seconds: from when it begins, with its first row; it ends then also without further rows."""

    rows: int | None
    bytes: int
    seconds: float | None


class PartsSink:
    """staged: with checkpoints."""

    def __init__(
        self,
        name: str,
        folder: Folder,
        schema: pa.Schema,
        writing: Writing,
        ending: str,
        slice: int,
        staged: bool,
        limits: PartLimits,
    ) -> None:
        self.name = name
        self._folder, self._schema, self._writing, self._ending = folder, schema, writing, ending
        self._slice, self._staged, self._limits = slice, staged, limits
        self._numbers = itertools.count()
        self._generation = 0
        self._part: _Part | None = None
        self._complete: list[_Part] = []
        self._open: list[_Part] = []  # all that are not durable
        self._lock = threading.Lock()  # a part without checkpoints may end by time, in another thread
        self._timer: threading.Timer | None = None
        self._failure: Exception | None = None
        if not staged:
            self._refuse([filename for filename in folder.names() if _PART.fullmatch(filename)])

    def write(self, batch: pa.RecordBatch) -> None:
        with self._lock:
            self._raise()
            while batch.num_rows:
                part = self._part = self._part or self._begun()
                fits = batch.num_rows if self._limits.rows is None else self._limits.rows - part.rows
                part.write(batch.slice(0, fits))
                batch = batch.slice(fits)
                if part.rows == self._limits.rows or part.file.n_bytes >= self._limits.bytes:
                    self._end()

    def _begun(self) -> _Part:
        number = next(self._numbers)
        if self._staged:
            name = f".staged-{self._generation:09}-{self._slice:03}-{number:06}{self._ending}"
        else:
            name = f"part-{self._slice:03}-{number:06}{self._ending}"
        part = _Part(self._folder, name, self._schema, self._writing)
        self._open = [*(open_part for open_part in self._open if not open_part.is_kept), part]
        if self._limits.seconds is not None:
            self._timer = threading.Timer(self._limits.seconds, self._expire, [part])
            self._timer.daemon = True
            self._timer.start()
        return part

    def _expire(self, part: _Part) -> None:
        with self._lock:
            if self._part is part:
                try:
                    self._end()
                except Exception as error:
                    self._failure = error  # for the next call

    def _end(self) -> None:
        part, self._part = self._part, None
        if self._timer is not None:
            self._timer.cancel()
        if part is not None and self._staged:
            part.end()
            self._complete.append(part)
        elif part is not None:
            part.keep()

    def _raise(self) -> None:
        if self._failure is not None:
            raise self._failure

    def seal(self, epoch: int) -> Sealed | None:
        with self._lock:
            self._raise()
            parts, self._complete = self._complete, []
            if self._part is not None:
                parts.append(self._part)
                self._part = None
                if self._timer is not None:
                    self._timer.cancel()
        stored = {"slice": self._slice, "ending": self._ending, "parts": [part.name for part in parts]}
        return _SealedParts(parts, stored) if parts else None

    def apply(self, epoch: int, stored: Json) -> None:
        self._folder.show(_shown(epoch, stored))

    def check(self, committed: int, epoch: int, waiting: Sequence[Json]) -> None:
        parts = [(name, match[1]) for name in self._folder.names() if (match := _PART.fullmatch(name))]
        is_first = committed == 1  # nothing was committed before
        self._refuse([name for name, number in parts if number is None or is_first])
        for name, number in parts:
            if int(number) >= committed:
                give_up = f"move away its parts from number {committed:09} on"
                raise WrongCheckpoints(later_epochs(self._folder.place, name, committed, give_up))
        for stored in waiting:
            self._folder.check_kept(_shown(epoch, stored))

    def clear(self, committed: int) -> None:
        self._generation = committed
        for name in self._folder.names():
            if (staged := _STAGED.fullmatch(name)) and int(staged[1]) < committed:
                self._folder.remove(name)

    def later_rows(self, epoch: int, later: Mapping[int, Sequence[Json] | None]) -> LaterRows:
        names = self._folder.names()
        n_shown = sum(1 for name in names if (match := _PART.fullmatch(name)) and int(match[1] or 0) > epoch)
        every = [
            pair for number, stored in later.items() for own in stored or () for pair in _shown(number, own).items()
        ]
        gone = [part for hidden, part in every if hidden not in names and part not in names]
        seen = {int(match[1] or 0) for name in names if (match := _PART.fullmatch(name))}
        unknown = [number for number, stored in later.items() if stored is None and number not in seen]
        place = self._folder.place
        if unknown:
            what = (
                f"{place} may have had parts of checkpoint {unknown[0]}, which cannot be read, and a reader taken them"
            )
            return LaterRows(self.name, "doubled", what)
        if gone:
            what = f"{len(gone)} parts of {place}, such as {gone[0]}, are gone: a reader has taken them"
            return LaterRows(self.name, "doubled", what)
        if not n_shown:
            return LaterRows(self.name, "none", f"{place} has no later parts")
        return LaterRows(self.name, "withdrawn", f"{n_shown} parts are removed from {place}")

    def withdraw(self, epochs: Sequence[tuple[int, int]]) -> None:
        for name in self._folder.names():
            match = _PART.fullmatch(name)
            if match and match[1] and any(first <= int(match[1]) <= last for first, last in epochs):
                self._folder.remove(name)

    def _refuse(self, parts: list[str]) -> None:
        if parts:
            place = self._folder.place
            raise WrongCheckpoints(
                f"{place} has parts of another run, such as {parts[0]}: move them away, or name another folder. If the "
                "run's checkpoints are in another place, or in one that is not mounted, go on from there"
            )

    def finish(self) -> None:
        with self._lock:
            self._raise()
            self._end()

    def close(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            for part in self._open:
                part.give_up()


def _shown(epoch: int, stored: Json) -> dict[str, str]:
    """The names of stored parts, hidden and shown."""
    start = f"part-{epoch:09}-{stored['slice']:03}"
    return {hidden: f"{start}-{number:03}{stored['ending']}" for number, hidden in enumerate(stored["parts"])}


class _Part:
    """A file that is being written."""

    def __init__(self, folder: Folder, name: str, schema: pa.Schema, writing: Writing) -> None:
        self.name, self.rows, self.is_ended, self.is_kept = name, 0, False, False
        self._folder = folder
        self._failure: Exception | None = None
        self.file = FileSink(folder.path(name), schema, writing, name=folder.place, disk=folder.disk, durable=False)

    def write(self, batch: pa.RecordBatch) -> None:
        self.file.write(batch)
        self.rows += batch.num_rows

    def end(self) -> None:
        """Closes the file, under its name: an epoch may have more parts than a process may have open."""
        if not self.is_ended:
            self.file.__exit__(None, None, None)
            self.is_ended = True

    def keep(self) -> None:
        """Ends the file, durably. After a failure it fails again, unless the folder can try again."""
        if self.is_kept:
            return
        if self._failure is not None:
            raise self._failure
        try:
            self.end()
            self._folder.keep(self.name)
        except Exception as error:
            if not self.is_ended or not self._folder.keeps_again:
                self._failure = error
            raise
        self.is_kept = True

    def discard(self) -> None:
        """Removes it if it is kept; else `give_up` does."""
        if self.is_kept:
            self._folder.remove(self.name)

    def give_up(self) -> None:
        if not self.is_ended:
            self.file.__exit__(InterruptedError, None, None)
        elif not self.is_kept:
            self._folder.forget(self.name)


class _SealedParts:
    def __init__(self, parts: list[_Part], stored: Json) -> None:
        self._parts, self._stored = parts, stored

    def store(self) -> Json:
        for part in self._parts:
            part.keep()
        return self._stored

    def discard(self) -> None:
        for part in self._parts:
            part.discard()
