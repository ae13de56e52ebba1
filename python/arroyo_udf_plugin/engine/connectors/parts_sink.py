"""Rows as parts in a folder, epoch by epoch.

Parts are named after epoch, slice and number: part-000000012-000-003.parquet. Without checkpoints, after slice and
number. One that has rows of earlier epochs, too (waiting_rows.py), is named after the first of those
and its slice, too.

Guarantees: a part that can be seen under its name is complete. With checkpoints, an epoch's parts have hidden names
until the epoch is applied; applying can be repeated, also by another process, and at every moment between two steps.

Assumes: the folder belongs to one sink. What does not look like a part is left alone.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import threading
from collections.abc import Mapping, Sequence

import pyarrow as pa

from ...errors import WrongCheckpoints
from .folder import Folder
from .interface import Json, LaterRows, Sealed, later_epochs
from .options import Writing
from .sink import FileSink

PART = re.compile(r"part-(?:(\d{9,})-)?\d{3,}-\d{3,}(?:-since-((\d{9,})-\d{3,}))?\.\w+(?:\.\w+)?")
WAITING = re.compile(r"\.waiting-((\d{9,})-\d{3,})-([0-9a-f]{16})\.arrows")
_STAGED = re.compile(r"\.staged-(\d{9,})-.*")


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
        self._numbers = itertools.count()  # also of `beside`, in another thread
        self._generation = 0
        self._part: WrittenPart | None = None
        self._complete: list[WrittenPart] = []
        self._open: list[WrittenPart] = []  # all that are not durable
        self._lock = threading.Lock()  # a part without checkpoints may end by time, in another thread
        self._timer: threading.Timer | None = None
        self._failure: Exception | None = None
        if not staged:
            self.refuse([filename for filename in folder.names() if PART.fullmatch(filename)])

    def beside(self) -> PartsSink:
        """Another one of the same folder, slice and epochs, in a thread of its own, whose parts do not end by time."""
        limits = dataclasses.replace(self._limits, seconds=None)
        sink = PartsSink(self.name, self._folder, self._schema, self._writing, self._ending, self._slice, True, limits)
        sink._numbers, sink._generation = self._numbers, self._generation
        return sink

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

    def _begun(self) -> WrittenPart:
        if self._staged:
            name = self.staged_name(self._ending)
        else:
            name = f"part-{self._slice:03}-{next(self._numbers):06}{self._ending}"
        part = WrittenPart(self._folder, name, self._schema, self._writing)
        self._open = [*(open_part for open_part in self._open if not open_part.is_kept), part]
        if self._limits.seconds is not None:
            self._timer = threading.Timer(self._limits.seconds, self._expire, [part])
            self._timer.daemon = True
            self._timer.start()
        return part

    def staged_name(self, ending: str) -> str:
        """A new one, of a file that `clear` removes if its epoch is never committed."""
        return f".staged-{self._generation:09}-{self._slice:03}-{next(self._numbers):06}{ending}"

    def _expire(self, part: WrittenPart) -> None:
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
        return _SealedParts(parts, self.stored([part.name for part in parts])) if parts else None

    def stored(self, parts: Sequence[str]) -> Json:
        """parts: their hidden names."""
        return {"slice": self._slice, "ending": self._ending, "parts": parts}

    def apply(self, epoch: int, stored: Json) -> None:
        self._folder.show(_shown(epoch, stored))

    def check(self, committed: int, epoch: int, waiting: Sequence[Json]) -> None:
        for name in filter(WAITING.fullmatch, self._folder.names()):
            raise WrongCheckpoints(
                f"{self._folder.place} has rows that wait for a larger part, such as {name}: set part_wait as before, "
                "or 0 to show them with the next checkpoint"
            )
        self.check_parts(committed, epoch, waiting)

    def check_parts(self, committed: int, epoch: int, waiting: Sequence[Json]) -> None:
        """As `check`, where rows may wait."""
        parts = [(name, match[1]) for name in self._folder.names() if (match := PART.fullmatch(name))]
        is_first = committed == 1  # nothing was committed before
        self.refuse([name for name, number in parts if number is None or is_first])
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
        n_shown = sum(1 for name in names if (match := PART.fullmatch(name)) and int(match[1] or 0) > epoch)
        every = [
            pair for number, stored in later.items() for own in stored or () for pair in _shown(number, own).items()
        ]
        gone = [part for hidden, part in every if hidden not in names and part not in names]
        seen = {int(match[1] or 0) for name in names if (match := PART.fullmatch(name))}
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
            match = PART.fullmatch(name)
            if match and match[1] and any(first <= int(match[1]) <= last for first, last in epochs):
                self._folder.remove(name)

    def refuse(self, parts: list[str]) -> None:
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
    since = f"-since-{stored['since']}" if "since" in stored else ""
    parts = [*((part, "") for part in stored["parts"]), *((part, since) for part in stored.get("joined", ()))]
    return {hidden: f"{start}-{number:03}{end}{stored['ending']}" for number, (hidden, end) in enumerate(parts)}


class WrittenPart:
    """A file that is being written. size: in bytes, when it has ended."""

    def __init__(self, folder: Folder, name: str, schema: pa.Schema, writing: Writing) -> None:
        self.name, self.rows, self.size, self.is_ended, self.is_kept = name, 0, 0, False, False
        self._folder = folder
        self._failure: Exception | None = None
        self.file = FileSink(folder.path(name), schema, writing, name=folder.place, disk=folder.disk, durable=False)

    def write(self, batch: pa.RecordBatch) -> None:
        self.file.write(batch)
        self.rows += batch.num_rows

    def end(self) -> None:
        """Closes the file, under its name: an epoch may have more parts than a process may have open."""
        if not self.is_ended:
            self.file.finish()
            self.size = self.file.n_bytes
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
    def __init__(self, parts: list[WrittenPart], stored: Json) -> None:
        self._parts, self._stored = parts, stored

    def store(self) -> Json:
        for part in self._parts:
            part.keep()
        return self._stored

    def discard(self) -> None:
        for part in self._parts:
            part.discard()
