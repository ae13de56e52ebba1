"""A journal of deliveries: files in a folder, to which records are added, and which are read from any record on.

    with Journal(folder, remember=3600) as journal:
        journal.add([delivery, ...])            durable when it returns
        journal.end                             behind the last durable record
        journal.forget(committed)               files before it go
    reader = JournalReader(folder, at)
    reader.next(until)                          the next delivery

An offset counts the bytes of all records that have ever been; a file's name is the offset of its first one. What was
written and is not known to be durable lies behind `end`: the next file begins there, so it is never read.

Guarantees: a record that `add` has confirmed is read, or an error names its file: also after the power was lost. One
process has the journal. Keys are known for as long as their files stay, which is at least `remember`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import io
import os
import struct
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from ....errors import InvalidArgument
from ..disk import current

_MAGIC = b"\xa7AJ1"
_HEAD = struct.Struct(">4sQQI")  # magic, offset, that of the first record added with it, length
_SUM = struct.Struct(">I")  # of the head and the text
_MORE = struct.Struct(">QH")  # when, length of the key
_FILE_BYTES = 64 << 20
_ENDING = ".journal"
_NO_END = 1 << 63


@dataclasses.dataclass(frozen=True)
class Delivery:
    """Rows that came together. received: milliseconds since 1970. key: empty: it has none."""

    received: int
    key: str
    rows: Sequence[bytes]

    @property
    def text(self) -> bytes:
        key = self.key.encode()
        lines = b"\n".join(row.replace(b"\n", b" ") for row in self.rows)  # outside of strings, where it means nothing
        return _MORE.pack(self.received, len(key)) + key + lines

    @classmethod
    def of(cls, text: bytes) -> Delivery:
        received, length = _MORE.unpack_from(text)
        lines = text[_MORE.size + length :]
        key = text[_MORE.size : _MORE.size + length].decode()
        return cls(received, key, lines.split(b"\n") if lines else [])


@dataclasses.dataclass
class _File:
    """start, end: offsets of its records. last: when the last one came."""

    path: Path
    start: int
    end: int
    last: int
    keys: list[str]


def _found(folder: Path) -> list[tuple[int, Path]]:
    """The files, by the offsets with which they begin."""
    if not folder.is_dir():
        return []
    return sorted((int(path.stem), path) for path in folder.glob(f"*{_ENDING}") if path.stem.isdecimal())


def _named(folder: Path, start: int) -> Path:
    return folder / f"{start:020}{_ENDING}"


def _record(data: bytes, at: int, start: int) -> tuple[int, int, bytes] | None:
    """The record at a place of a file: its batch, the place behind it, and its text. None: there is no whole one."""
    if len(data) < at + _HEAD.size + _SUM.size:
        return None
    magic, offset, batch, length = _HEAD.unpack_from(data, at)
    begin = at + _HEAD.size + _SUM.size
    text = data[begin : begin + length]
    if (magic, offset, len(text)) != (_MAGIC, start + at, length):
        return None
    (checksum,) = _SUM.unpack_from(data, at + _HEAD.size)
    if zlib.crc32(text, zlib.crc32(data[at : at + _HEAD.size])) != checksum:
        return None
    return batch, begin + length, text


def _scanned(path: Path, start: int, next_start: int | None) -> _File:
    """Raises InvalidArgument for a file that has lost a durable record."""
    data = path.read_bytes()
    file, at = _File(path, start, start, 0, []), 0
    while (record := _record(data, at, start)) is not None and file.end != next_start:
        _, at, text = record
        delivery = Delivery.of(text)
        file.end, file.last = start + at, delivery.received
        file.keys += [delivery.key] if delivery.key else []
    if next_start is not None and file.end != next_start:
        raise _damaged(path, at)
    if next_start is None and _has_later(data, at, start):
        raise _damaged(path, at)
    return file


def _has_later(data: bytes, at: int, start: int) -> bool:
    """Whether a record behind a broken one was added later, so that the broken one was whole once."""
    place = data.find(_MAGIC, at + 1)
    while place >= 0:
        record = _record(data, place, start)
        if record is not None and record[0] > start + at:
            return True
        place = data.find(_MAGIC, place + 1)
    return False


def _damaged(path: Path, at: int) -> InvalidArgument:
    return InvalidArgument(
        f"{path} is damaged at byte {at}, where a delivery was: restore it from a copy. To go on without it, name "
        "another journal, and begin anew with other checkpoints"
    )


def ends_of(folder: Path) -> tuple[int, int]:
    """The offsets of the first record and behind the last one, without a change of anything. Raises
    InvalidArgument."""
    found = _found(folder)
    if not found:
        return 0, 0
    return found[0][0], _scanned(found[-1][1], found[-1][0], None).end


class Journal:
    """remember: the seconds for which keys are known at least. Raises InvalidArgument, OSError."""

    def __init__(self, folder: Path, remember: float) -> None:
        self._disk, self._folder, self._remember = current(), folder, remember
        self._disk.make(folder)
        self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        self._open: io.FileIO | None = None
        self._began = 0  # when the file that is open did
        try:
            self._take()
            found = _found(folder)
            nexts = [*(start for start, _ in found[1:]), None]
            self._files = [_scanned(path, start, next_) for (start, path), next_ in zip(found, nexts, strict=False)]
        except BaseException:
            os.close(self._lock)
            raise
        self.end = self._files[-1].end if self._files else 0
        self._keys = {key for file in self._files for key in file.keys}

    def _take(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidArgument(
                f"the journal {self._folder} is used by another process: stop that one, or name another journal"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def first(self) -> int:
        """The offset of the first record there is."""
        return self._files[0].start if self._files else self.end

    def knows(self, key: str) -> bool:
        return key in self._keys

    def add(self, deliveries: Sequence[Delivery]) -> None:
        """Raises OSError; then none of them is there."""
        try:
            self._add(deliveries)
        except BaseException:
            self._leave()  # the next file begins where the durable records end
            raise

    def _add(self, deliveries: Sequence[Delivery]) -> None:
        file = self._current(deliveries[0].received)
        at, parts = self.end, []
        for delivery in deliveries:
            text = delivery.text
            head = _HEAD.pack(_MAGIC, at, self.end, len(text))
            parts += [head, _SUM.pack(zlib.crc32(text, zlib.crc32(head))), text]
            at += _HEAD.size + _SUM.size + len(text)
        assert self._open is not None
        left = memoryview(b"".join(parts))
        while left:
            left = left[self._open.write(left) :]
        self._disk.fsync(self._open.fileno())
        keys = [delivery.key for delivery in deliveries if delivery.key]
        self.end = file.end = at
        file.last = deliveries[-1].received
        file.keys += keys
        self._keys.update(keys)

    def _current(self, now: int) -> _File:
        """The file to write to. One is small in bytes and in time, so that it may go."""
        if self._open is not None:
            file = self._files[-1]
            if file.end - file.start < _FILE_BYTES and now - self._began < self._remember * 250:
                return file
            self._leave()
        path = _named(self._folder, self.end)
        if self._files and self._files[-1].start == self.end:  # it has nothing
            self._files.pop()
        self._open = self._disk.file(self._disk.create(path))
        self._disk.sync(self._folder)
        self._began = now
        self._files.append(_File(path, self.end, self.end, now, []))
        return self._files[-1]

    def _leave(self) -> None:
        if self._open is not None:
            with contextlib.suppress(OSError):
                self._open.close()
            self._open = None

    def forget(self, committed: int) -> None:
        """Removes files whose rows nobody needs any more, and whose keys are old. Raises OSError."""
        oldest = (time.time() - self._remember) * 1000
        while len(self._files) > 1 and self._files[0].end <= committed and self._files[0].last < oldest:
            self._disk.unlink(self._files[0].path)
            self._keys.difference_update(self._files.pop(0).keys)

    def close(self) -> None:
        self._leave()
        os.close(self._lock)


class JournalReader:
    """at: the offset of the next record."""

    def __init__(self, folder: Path, at: int) -> None:
        self._folder, self.at = folder, at
        self._file: io.BufferedReader | None = None
        self._start, self._until = 0, 0  # of the file that is open

    def deliveries(self, until: int) -> Iterator[tuple[Delivery, int]]:
        """The next ones, each with the offset behind it. until: where the durable ones end. Raises InvalidArgument."""
        at = self.at
        while at < until:
            text, at = self._read(at)
            yield Delivery.of(text), at

    def _read(self, at: int) -> tuple[bytes, int]:
        # An earlier file may go on with what was never confirmed: it ends where a later one begins.
        is_last = self._until == _NO_END
        if self._file is None or not self._start <= at < self._until or (is_last and _named(self._folder, at).exists()):
            self._go_to(at)
        assert self._file is not None
        self._file.seek(at - self._start)
        head = self._file.read(_HEAD.size + _SUM.size)
        if len(head) == _HEAD.size + _SUM.size:
            text = self._file.read(_HEAD.unpack_from(head)[3])
            if (record := _record(head + text, 0, at)) is not None:
                return record[2], at + record[1]
        raise _damaged(Path(self._file.name), at - self._start)

    def _go_to(self, at: int) -> None:
        self.close()
        before = [(start, path) for start, path in _found(self._folder) if start <= at]
        if not before:
            raise InvalidArgument(f"the journal {self._folder} has no deliveries at {at} any more: restore its files")
        self._start, path = before[-1]
        later = [start for start, _ in _found(self._folder) if start > at]
        self._until = later[0] if later else _NO_END
        self._file = open(path, "rb")  # noqa: SIM115 (it stays open)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
