"""What jobs show and count: rows of previews, and numbers. Each job has a bounded file of both, in the data folder.

    DATA/jobs/JOB/output-000000000000000      lines of JSON; the name has the number of the first one
    DATA/jobs/JOB/numbers-000000000000042

    records = Records(settings.data)
    records.show(job_id, batches)             the controller writes
    records.output(job_id).read()             the API reads on, from line to line

The lines of a kind are numbered from 0. A file that has half of what is kept is followed by another one, and the one
before it goes. So a job never has more than its limit, and forgetting costs nothing.

Guarantees: readers see whole lines, in order, each with its number; a reader that was left behind goes on with the
oldest line that is there. Several writers do not mix their lines. A disk that is full costs lines, and nothing else.
Assumes: the API and the controllers of a cluster have the same data folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from .configuration import Settings
from .database.database import now
from .preview_rows import Shown

_log = logging.getLogger(__name__)
_AT_ONCE = 1 << 20
"""Bytes that a reader gets at once, at least one line."""
_TAIL = 64 << 10
"""Bytes in which the last numbers are looked for at first."""


class Line(NamedTuple):
    number: int
    text: str


class Counted(NamedTuple):
    """at: microseconds since 1970."""

    at: int
    numbers: Mapping[str, Any]


class Records:
    """preview_bytes, numbers_bytes: what is kept of each job."""

    def __init__(self, data: Path, preview_bytes: int = 16 << 20, numbers_bytes: int = 4 << 20) -> None:
        self._folder = data.absolute() / "jobs"
        self._most = {"output": preview_bytes, "numbers": numbers_bytes}
        self._ends: dict[tuple[str, str], _End] = {}

    @classmethod
    def configured(cls, settings: Settings) -> Records:
        return cls(settings.data, settings.limits.preview_bytes, settings.limits.numbers_bytes)

    def show(self, job_id: str, batches: Iterable[Shown]) -> None:
        """Adds rows of a preview."""
        self._append(job_id, "output", [json.dumps(dict(batch)) for batch in batches])

    def count(self, job_id: str, numbers: Mapping[str, Any], at: int | None = None) -> None:
        """Adds what a job has counted. at: microseconds since 1970; None: now."""
        self._append(job_id, "numbers", [json.dumps({"at": now() if at is None else at, "numbers": numbers})])

    def output(self, job_id: str, first: int = 0) -> Reader:
        """first: the number of the first line that is wanted."""
        return Reader(self._folder / job_id, "output", first)

    def numbers(self, job_id: str, since: int = 0) -> list[Counted]:
        """Those since that moment and the latest ones, by time. A clock that was set back leaves none of later."""
        reader, lines = Reader(self._folder / job_id, "numbers", 0), []
        while some := reader.read():
            lines += some
        kept: list[Counted] = []
        for line in reversed(lines):
            counted = Counted(**json.loads(line.text))
            if kept and (counted.at >= kept[-1].at or counted.at < since):
                continue
            kept.append(counted)
        return kept[::-1]

    def latest(self, job_id: str) -> Mapping[str, Any] | None:
        """What a job has counted last."""
        for name in _files(self._folder / job_id, "numbers")[-1:]:
            lines = _last_lines(self._folder / job_id / name, _TAIL) or _last_lines(self._folder / job_id / name)
            if lines:
                numbers: Mapping[str, Any] = json.loads(lines[-1])["numbers"]
                return numbers
        return None

    def recent(self, job_id: str, most: int) -> list[Counted]:
        """What a job has counted last, by time: fewer than `most`, if there are no more, or they are long. It reads
        little, whatever is there."""
        for name in _files(self._folder / job_id, "numbers")[-1:]:
            return [Counted(**json.loads(line)) for line in _last_lines(self._folder / job_id / name, _TAIL)[-most:]]
        return []

    def jobs(self) -> list[str]:
        """Ids of the jobs that have files."""
        with contextlib.suppress(FileNotFoundError):
            return sorted(os.listdir(self._folder))
        return []

    def forget(self, job_id: str) -> None:
        """Nothing more is written of it, for now."""
        for kind in self._most:
            self._ends.pop((job_id, kind), None)

    def remove(self, job_id: str) -> None:
        self.forget(job_id)
        shutil.rmtree(self._folder / job_id, ignore_errors=True)

    def _append(self, job_id: str, kind: str, texts: Sequence[str]) -> None:
        end = self._ends.setdefault((job_id, kind), _End(self._folder / job_id, kind, self._most[kind] // 2))
        try:
            end.append([text.encode() + b"\n" for text in texts])
        except OSError as error:
            _log.warning("%s: %s cannot be written: %s", end.folder, kind, error.strerror)


@dataclass
class _End:
    """Where the next line comes. most_bytes: of a file. name, size: of the last file, as this writer has left it. next:
    the number of the next line."""

    folder: Path
    kind: str
    most_bytes: int
    name: str | None = None
    size: int = -1
    next: int = 0

    def append(self, lines: Sequence[bytes]) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = os.open(self.folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            self._look()
            for part in self._parts(lines):
                self._write(part)
        finally:
            os.close(folder)

    def _look(self) -> None:
        """Finds the end, if another writer has moved it, or this one was not here before."""
        names = _files(self.folder, self.kind)
        if not names:
            self.name, self.size = None, -1
            return
        path = self.folder / names[-1]
        if names[-1] == self.name and os.stat(path).st_size == self.size:
            return
        text = path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        if len(whole) != len(text):  # a writer was killed within a line
            os.truncate(path, len(whole))
        self.name, self.size, self.next = names[-1], len(whole), _first_of(names[-1]) + whole.count(b"\n")

    def _parts(self, lines: Sequence[bytes]) -> Iterator[list[bytes]]:
        """So that each fits into one file. A line that fits into none is left out."""
        part: list[bytes] = []
        room = self.most_bytes - max(0, self.size)
        for line in lines:
            if len(line) > self.most_bytes:
                continue
            if len(line) > room:
                yield part
                part, room = [], self.most_bytes
            part.append(line)
            room -= len(line)
        yield part

    def _write(self, lines: Sequence[bytes]) -> None:
        if not lines:
            return
        text = b"".join(lines)
        if self.name is None or self.size + len(text) > self.most_bytes:
            self.name, self.size = f"{self.kind}-{self.next:015d}", 0
            for older in _files(self.folder, self.kind)[:-1]:
                (self.folder / older).unlink(missing_ok=True)
        fd = os.open(self.folder / self.name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        with open(fd, "ab", buffering=0) as file:
            written = 0
            while written < len(text):  # a disk that gets full takes a part; then it fails
                written += file.write(text[written:])
        self.size += len(text)
        self.next += len(lines)


@dataclass
class Reader:
    """Of the lines of a kind. first: the number of the next line that is wanted."""

    folder: Path
    kind: str
    first: int
    _name: str | None = None
    _offset: int = 0
    _number: int = 0
    _state: object = field(default=None, compare=False)

    def state(self) -> object:
        """Another value as soon as there may be more to read."""
        names = _files(self.folder, self.kind)
        if not names:
            return None
        with contextlib.suppress(OSError):
            return names[-1], os.stat(self.folder / names[-1]).st_size
        return names[-1], -1

    def read(self) -> list[Line]:
        """The next lines, or none, if there are none now."""
        while True:
            names = _files(self.folder, self.kind)
            if not names:
                return []
            if self._name not in names:
                before = [name for name in names if _first_of(name) <= self.first]
                self._enter((before or names)[0 if not before else -1])
            lines = self._read_on()
            if lines:
                return lines
            later = [name for name in names if name > (self._name or "")]
            if not later:
                return []
            if not self._is_at_end():
                continue
            self._enter(later[0])

    def _enter(self, name: str) -> None:
        self._name, self._offset, self._number = name, 0, _first_of(name)

    def _is_at_end(self) -> bool:
        """Of a file that gets no more lines."""
        try:
            return self._offset >= os.stat(self.folder / (self._name or "")).st_size
        except OSError:
            self._name = None  # it is gone: `read` finds the oldest that is there
            return False

    def _read_on(self) -> list[Line]:
        lines: list[Line] = []
        with contextlib.suppress(FileNotFoundError), open(self.folder / (self._name or ""), "rb") as file:
            file.seek(self._offset)
            size = 0
            for text in file:
                if not text.endswith(b"\n"):
                    break
                self._offset += len(text)
                if self._number >= self.first:
                    lines.append(Line(self._number, text[:-1].decode()))
                    size += len(text)
                    self.first = self._number + 1
                self._number += 1
                if size >= _AT_ONCE:
                    break
        return lines


def _last_lines(path: Path, most_bytes: int | None = None) -> list[bytes]:
    """The whole lines within the last bytes of a file; None: within all."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = 0 if most_bytes is None else max(0, size - most_bytes)
        file.seek(start)
        lines = file.read().split(b"\n")[:-1]
        return lines if start == 0 else lines[1:]
    return []


def _files(folder: Path, kind: str) -> list[str]:
    """Their names, the oldest first."""
    try:
        return sorted(name for name in os.listdir(folder) if name.startswith(f"{kind}-"))
    except OSError:
        return []


def _first_of(name: str) -> int:
    return int(name.rpartition("-")[2])
