"""Files as a source: each is a partition, read from the first row or from where a checkpoint left it.

Files are read by name, one after another in each slice. A folder or pattern is looked at once; with `watch`, again and
again, and new files are read after those that are known.

Guarantees: a file that changes its size, or its etag or time of change, after it was begun is an error as soon as it
is seen: at the file's end, at a later look, or when the run is resumed. Rows of half a file would be lost otherwise.
A look at a local folder reads its names, and checks `CHECKED` of the files that were begun, in turn.
Reading an object store or a pipe does not hold up the event loop.

Assumes: writers rename complete files into place. A file that has been read to its end may be removed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Container, Generator, Mapping, Sequence
from typing import Any

from ...errors import InvalidArgument
from .inputs import InputFile, Version, input_files
from .interface import Json, Partition
from .interrupt import Interrupt
from .object_store import changed
from .options import Reading
from .piece import TextBlock
from .read_ahead import ReadAhead
from .row_metadata import RowMetadata
from .source import FileSource, OpenFile, Rows

CHECKED = 10_000
_ALL = "all files"  # the only partition, if the number of rows has a limit


class FilesSource:
    """Opened and checked, as `FileSource` does it. Partitions are named as their files.

    metadata: columns of what is known about rows, see `row_metadata`: a key for each name."""

    side_by_side = False

    def __init__(
        self,
        paths: Sequence[str],
        reading: Reading,
        watch: float | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        self._paths, self._reading, self.watch = paths, reading, watch
        if watch is not None and reading.limit is not None:
            raise InvalidArgument("watch looks for files for ever, and limit ends the source: leave out one of them")
        self.files = FileSource(paths, reading, watched=watch is not None)
        self._known = _named(self.files.input_files, {})
        self._looked, self._interrupt = False, Interrupt()
        self.begun: dict[str, Version] = {}  # what was begun, by partition
        self._checked = 0  # of those, in this round
        self.name = "standard input" if list(paths) == ["-"] else ", ".join(paths)
        try:
            self.metadata = RowMetadata(metadata or {}, self.files.schema)
        except InvalidArgument:
            self.files.close()
            raise
        self.schema, self.rows = self.metadata.schema, self.files.rows
        self.resumable = all(file.regular for file in self.files.input_files)

    def partitions(self) -> Sequence[str]:
        if self._reading.limit is not None:
            return [_ALL]
        if self._looked:
            self._look()
        self._looked = self.watch is not None
        return list(self._known)

    def _look(self) -> None:
        """For new files, and for those that changed after they were begun."""
        found = input_files(self._paths, self._reading.format, self._interrupt, seen=self.files.seen)
        self._known |= _named([file for file in found if file.object is None], self._known)
        for name, file in _named([file for file in found if file.object is not None], {}).items():
            self._check(name, file)
            self._known.setdefault(name, file)
        every = list(self.begun)
        if self._checked >= len(every):
            self._checked = 0
        for name in every[self._checked : self._checked + CHECKED]:
            if (known := self._known.get(name)) is not None and known.object is None:
                self._check(name, known)
        self._checked += CHECKED

    def _check(self, name: str, file: InputFile) -> None:
        begun = self.begun.get(name)
        with contextlib.suppress(FileNotFoundError):  # it was removed since the look
            if begun is not None and file.version() != begun:
                raise changed(file.name)

    def check(self, positions: Mapping[str, Json]) -> None:
        for partition, position in positions.items():
            is_limited = self._is_limited(partition)
            if is_limited:
                partition, position = position["file"], position["at"]
            at = _Position.read(position)
            if is_limited and partition not in self._known:  # its place says which files follow
                raise _gone(partition, at)
            file = self._existing(partition, at)
            if file is None or not file.regular or at.begun is None:
                continue
            try:
                version = file.version()
            except FileNotFoundError:
                if not at.end:
                    raise _gone(partition, at) from None
            else:
                if version != at.begun:
                    raise changed(partition)
                if at.end:  # it is not opened again
                    self.begun[partition] = version

    def _is_limited(self, partition: str) -> bool:
        return partition == _ALL and self._reading.limit is not None

    def _existing(self, partition: str, at: _Position) -> InputFile | None:
        """None: it has been read, and is gone. Raises InvalidArgument if it is needed."""
        file = self._known.get(partition)
        if file is None and not at.end:
            raise _gone(partition, at)
        return file

    def open(self, partition: str, position: Json | None) -> Partition:
        if self._is_limited(partition):
            assert self._reading.limit is not None
            return _Limited(self, list(self._known), self._reading.limit, position)
        return self.open_file(partition, position)

    def open_file(self, partition: str, position: Json | None) -> _File:
        at = _Position.read(position)
        return _File(self, partition, self._existing(partition, at), at)

    def close(self) -> None:
        self._interrupt.set()  # a look that waits for a store that does not answer
        self.files.close()


def _named(files: Sequence[InputFile], known: Container[str]) -> dict[str, InputFile]:
    """Files by name. One that is given again, or known, has a number behind it."""
    named: dict[str, InputFile] = {}
    for file in files:
        names = itertools.chain([file.name], (f"{file.name} ({number})" for number in itertools.count(2)))
        named[next(name for name in names if name not in named and name not in known)] = file
    return named


def _gone(name: str, at: _Position) -> InvalidArgument:
    return InvalidArgument(f"{name} was read up to row {at.row - 1} and is gone: put it back to go on")


@dataclasses.dataclass(frozen=True)
class _Position:
    """row: the next one. begun: the file's version; None: not begun. end: it has been read. block: where reading goes
    on, in a text file; None: at its start."""

    row: int = 1
    begun: Version | None = None
    end: bool = False
    block: TextBlock | None = None

    @classmethod
    def read(cls, json: Json | None) -> _Position:
        if json is None:
            return cls()
        begun = Version(json["size"], json["etag"]) if "etag" in json else None
        block = TextBlock(*json["block"]) if "block" in json else None
        return cls(json["row"], begun, json.get("end", False), block)

    def json(self) -> dict[str, Any]:
        written: dict[str, Any] = {"row": self.row}
        if self.begun is not None:
            written |= {"size": self.begun.size, "etag": self.begun.etag}
        if self.block is not None:
            written["block"] = list(self.block)
        return written | ({"end": True} if self.end else {})


class _File:
    """A file that is read. file: None if it has been read, and is gone."""

    def __init__(self, source: FilesSource, name: str, file: InputFile | None, at: _Position) -> None:
        self._source, self._name, self._at = source, name, at
        self._begun = at.begun
        self._stream: OpenFile | None = None
        self._ahead: ReadAhead | None = None
        self._interrupt: Interrupt | None = None
        if at.end:
            self._rows = self._seen(file)
            return
        assert file is not None
        self._rows = self._read(file)
        if not file.is_local:
            self._stream = source.files.open_stream(file)
            self._interrupt = self._stream.interrupt if self._stream else Interrupt()
            assert self._interrupt is not None
            self._ahead = ReadAhead(self._rows, self._interrupt)

    async def read(self, most: int | None = None) -> Rows | None:
        """most: rows; what a batch has more is left out. None: all of it."""
        rows = next(self._rows, None) if self._ahead is None else await self._ahead.next()
        if rows is None:
            self._at = _Position(self._at.row, self._begun, end=True)
            return None
        rows = self._source.metadata.added(rows if most is None else rows.first_rows(most))
        self._at = _Position(rows.first + rows.batch.num_rows, self._begun, block=rows.block)
        return rows

    def position(self) -> Json:
        return self._at.json()

    def close(self) -> None:
        if self._ahead is not None:
            self._ahead.close()
        self._rows.close()
        if self._stream is not None:
            self._stream.close()
        if self._interrupt is not None:
            self._interrupt.close()

    def _seen(self, file: InputFile | None) -> Generator[Rows, None, None]:
        """A file that has been read."""
        with contextlib.suppress(FileNotFoundError):
            if file is not None and self._begun is not None:
                self._begin(file.version())
        yield from ()

    def _begin(self, version: Version) -> None:
        begun = self._begun or self._source.begun.get(self._name)
        if begun is not None and begun != version:
            raise changed(self._name)
        self._begun = self._source.begun[self._name] = version

    def _read(self, file: InputFile) -> Generator[Rows, None, None]:
        files, start = self._source.files, self._at.row
        if not file.regular:
            with contextlib.closing(self._stream or files.open(file, self._interrupt)) as opened:
                yield from files.rows_of(file, opened, start)
            return
        try:
            file = file.again(self._interrupt)
            self._begin(file.version())
            with contextlib.closing(files.open(file, self._interrupt)) as opened:
                yield from files.rows_of(file, opened, start, self._at.block)
            self._begin(file.again(self._interrupt).version())
        except FileNotFoundError:
            raise _gone(self._name, self._at) from None


class _Limited:
    """Files one after another, up to so many rows."""

    def __init__(self, source: FilesSource, names: Sequence[str], limit: int, position: Json | None) -> None:
        position = position or {"left": limit, "file": names[0], "at": None}
        self._source, self._left, at = source, position["left"], position["at"]
        if position["file"] not in names:
            raise _gone(position["file"], _Position.read(at))
        self._names = list(names[names.index(position["file"]) :])
        self._file = source.open_file(self._names[0], at)

    async def read(self) -> Rows | None:
        while self._left:
            rows = await self._file.read(self._left)
            if rows is not None:
                self._left -= rows.batch.num_rows
                return rows
            if len(self._names) == 1:
                break
            self._file.close()
            del self._names[0]
            self._file = self._source.open_file(self._names[0], None)
        return None

    def position(self) -> Json:
        return {"left": self._left, "file": self._names[0], "at": self._file.position()}

    def close(self) -> None:
        self._file.close()
