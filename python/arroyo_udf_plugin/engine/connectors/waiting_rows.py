"""Parts of a folder that take in the rows of several epochs, so that there are fewer and larger ones.

    epoch 5     rows ──► .staged-… ──► .waiting-000000005-…          durable, and hidden
    epoch 6     rows ──► .staged-… ──► .waiting-000000006-…
    epoch 7     rows, and those that wait ──► .staged-… ──► part-000000007-…-since-000000005
                                              .waiting-… ──► .shown-000000007-…-waiting-…

Rows wait as Arrow streams, one for each epoch and slice. What shows them writes parts of them, as `PartsSink` does.
They are shown when they are large or old enough, when the pipeline ends, and with the first epoch after a start: the
first slice takes over what waits of all slices.

Guarantees: those of `PartsSink`. An epoch's rows wait when it is applied: files are renamed, which can be repeated.
What was shown last is kept hidden, until the slice shows the next rows: so one can go back to an epoch between.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ...errors import InvalidArgument, WrongCheckpoints
from .folder import Folder
from .interface import Json, LaterRows, Sealed, later_epochs
from .parts_sink import PART, WAITING, PartsSink
from .schemas import bytes_of_rows

MOST_BYTES = 64 << 20
"""Of an epoch's rows: with more, they do not wait."""

_SHOWN = re.compile(r"\.shown-((\d{9,})-(\d{3,}))-(waiting-((\d{9,})-\d{3,})-.*)")


class WaitingRowsSink:
    """direct: for rows that do not wait. wait: for so many seconds. bytes: with so many, rows do not wait longer."""

    def __init__(
        self, direct: PartsSink, folder: Folder, schema: pa.Schema, slice: int, wait: float, bytes: int
    ) -> None:
        self.name = direct.name
        self._direct, self._folder, self._schema = direct, folder, schema
        self._slice, self._wait, self._most = slice, wait, bytes
        self._rows: list[pa.RecordBatch] = []
        self._n_bytes = 0  # of those
        self._waiting: list[str] = []
        self._waiting_bytes = 0  # as they are stored, which is about as large as parts are
        self._since: float | None = None  # when the first of them came; None: it is long ago
        self._is_last = False

    def write(self, batch: pa.RecordBatch) -> None:
        if self._n_bytes >= MOST_BYTES:
            self._direct.write(batch)
            return
        self._rows.append(batch)
        self._n_bytes += bytes_of_rows(batch)

    @property
    def holds(self) -> bool:
        return bool(self._waiting)

    def show_all(self) -> None:
        self._is_last = True

    def seal(self, epoch: int) -> Sealed | None:
        rows, direct = self._rows, self._direct.seal(epoch)
        self._rows, self._n_bytes = [], 0
        now = time.monotonic()
        if rows and not self._waiting:
            self._since = now
        is_old = self._since is None or now - self._since >= self._wait
        is_due = self._is_last or is_old or self._waiting_bytes >= self._most
        if not rows and direct is None and not (is_due and self._waiting):
            return None
        return _SealedRows(self, epoch, rows, direct, is_due)

    # ---- In the thread that stores and applies ----

    def stored(self, epoch: int, rows: Sequence[pa.RecordBatch], direct: Sealed | None, is_due: bool) -> dict[str, Any]:
        """Makes an epoch's rows durable: as parts if they are due, with those that wait; else as rows that wait."""
        stored = dict(self._direct.stored([]) if direct is None else direct.store())
        if is_due:
            return stored | self._join(epoch, rows)
        if not rows:
            return stored
        staged, data = self._direct.staged_name(".arrows"), _stream(rows, self._schema)
        with self._folder.disk.file(self._folder.disk.create(self._folder.path(staged))) as file:
            file.write(data)
        self._folder.keep(staged)
        waiting = f".waiting-{epoch:09}-{self._slice:03}-{_digest(data)}.arrows"
        self._waiting.append(waiting)
        self._waiting_bytes += len(data)
        return stored | {"waits": {staged: waiting}}

    def _join(self, epoch: int, rows: Sequence[pa.RecordBatch]) -> dict[str, Any]:
        parts = self._as_parts(epoch, rows)
        if not self._waiting:
            return {"joined": parts}
        shown, self._waiting, self._waiting_bytes = self._waiting, [], 0
        return {"joined": parts, "since": _matched(shown[0])[1], "shows": shown}

    def _as_parts(self, epoch: int, rows: Sequence[pa.RecordBatch]) -> Sequence[str]:
        """What waits, and rows behind it, as durable parts: their hidden names."""
        parts = self._direct.beside()
        try:
            for name in self._waiting:
                for batch in self._read(name):
                    parts.write(batch)
            for batch in rows:
                parts.write(batch)
            sealed = parts.seal(epoch)
            return () if sealed is None else tuple(sealed.store()["parts"])
        except Exception:  # they are made anew when it is tried again
            parts.close()
            raise

    def _read(self, name: str) -> Iterator[pa.RecordBatch]:
        place = f"{self._folder.place}: {name}, with rows that wait,"
        try:
            data = self._folder.load(name)
        except FileNotFoundError:
            raise InvalidArgument(f"{place} is gone: bring it back, unless another engine has gone on") from None
        if _matched(name)[3] != _digest(data):
            raise InvalidArgument(f"{place} is damaged: bring a copy back")
        for batch in pa.ipc.open_stream(data):
            yield pa.RecordBatch.from_arrays(list(map(_as, batch.columns, self._schema)), schema=self._schema)

    def apply(self, epoch: int, stored: Json) -> None:
        self._direct.apply(epoch, stored)
        for staged, waiting in stored.get("waits", {}).items():
            self._folder.move(staged, waiting)
        if "shows" not in stored:
            return
        for name in stored["shows"]:
            self._folder.move(name, f".shown-{epoch:09}-{stored['slice']:03}-{name.removeprefix('.')}")
        self._forget(epoch, stored["slice"])

    def _forget(self, epoch: int, slice: int) -> None:
        """What was shown before: of the slice, and of those that were shown no later."""
        kept = [match for name in self._folder.names() if (match := _SHOWN.fullmatch(name))]
        last = max((int(match[2]) for match in kept if int(match[3]) == slice and int(match[2]) < epoch), default=-1)
        older = [match for match in kept if int(match[2]) <= last]
        # The first ones go first, also if power is lost: as long as a part has its first rows here, it has all of them.
        for _, group in itertools.groupby(older, key=lambda match: match[1]):
            first = next(group)
            self._folder.move(first[0], f".staged-{0:09}-{first[0]}")
        for match in older:
            self._folder.remove(match[0])
            self._folder.remove(f".staged-{0:09}-{match[0]}")

    # ---- The start ----

    def check(self, committed: int, epoch: int, waiting: Sequence[Json]) -> None:
        self._direct.check_parts(committed, epoch, waiting)
        names = set(self._folder.names())
        own = sorted(filter(WAITING.fullmatch, names))
        if committed == 1:  # nothing was committed before
            self._direct.refuse(own)
        if own and int(_matched(own[-1])[2]) >= committed:
            give_up = f"move away the hidden files that wait, from number {committed:09} on"
            raise WrongCheckpoints(later_epochs(self._folder.place, own[-1], committed, give_up))
        moved = {f".{match[4]}" for name in names if (match := _SHOWN.fullmatch(name))}
        for staged, name in (pair for stored in waiting for pair in stored.get("waits", {}).items()):
            if not {staged, name} & (names | moved):
                raise InvalidArgument(
                    f"{self._folder.place}: {staged}, which has rows of the last checkpoint, is gone: bring it back"
                )

    def clear(self, committed: int) -> None:
        self._direct.clear(committed)
        self._take_over()

    def _take_over(self) -> None:
        self._waiting = sorted(filter(WAITING.fullmatch, self._folder.names())) if not self._slice else []
        self._waiting_bytes, self._since = 0, None

    # ---- Going back ----

    def later_rows(self, epoch: int, later: Mapping[int, Sequence[Json] | None]) -> LaterRows:
        names = self._folder.names()
        for part in _mixed_parts(names):
            if int(part[3]) <= epoch < int(part[1]) and not _is_here(part, names):
                what = f"{part[0]} of {self._folder.place} has rows of checkpoints before, too, and stays"
                return LaterRows(self.name, "doubled", what)
        return self._direct.later_rows(epoch, later)

    def withdraw(self, epochs: Sequence[tuple[int, int]]) -> None:
        def is_given_up(epoch: int) -> bool:
            return any(first <= epoch <= last for first, last in epochs)

        names = self._folder.names()
        stay = {part[0] for part in _mixed_parts(names) if not is_given_up(int(part[3])) and not _is_here(part, names)}
        for name in names:  # the parts go before what they were made of is moved back
            if (part := PART.fullmatch(name)) and part[1] and is_given_up(int(part[1])) and name not in stay:
                self._folder.remove(name)
        for name in names:
            if (waits := WAITING.fullmatch(name)) and is_given_up(int(waits[2])):
                self._folder.remove(name)
            elif (shown := _SHOWN.fullmatch(name)) and is_given_up(int(shown[2])):
                if is_given_up(int(shown[6])):
                    self._folder.remove(name)
                else:
                    self._folder.move(name, f".{shown[4]}")
        self._take_over()

    # ---- The end ----

    def finish(self) -> None:
        raise AssertionError("rows wait only with checkpoints")

    def close(self) -> None:
        self._direct.close()


class _SealedRows:
    def __init__(
        self,
        sink: WaitingRowsSink,
        epoch: int,
        rows: Sequence[pa.RecordBatch],
        direct: Sealed | None,
        is_due: bool,
    ) -> None:
        self._sink, self._given = sink, (epoch, rows, direct, is_due)
        self._stored: Json | None = None

    def store(self) -> Json:
        if self._stored is None:
            self._stored = self._sink.stored(*self._given)
        return self._stored


def _as(column: pa.Array, field: pa.Field) -> pa.Array:
    """A column as it was written: cells come back as their texts."""
    return column if column.type == field.type else pa.ExtensionArray.from_storage(field.type, column)


def _matched(waiting: str) -> re.Match[str]:
    match = WAITING.fullmatch(waiting)
    assert match is not None
    return match


def _mixed_parts(names: Sequence[str]) -> list[re.Match[str]]:
    """Those that have rows of several epochs."""
    return [match for name in names if (match := PART.fullmatch(name)) and match[2]]


def _is_here(part: re.Match[str], names: Sequence[str]) -> bool:
    """Whether what the part was made of is still in the folder."""
    waiting, shown = f".waiting-{part[2]}-", f"-waiting-{part[2]}-"
    return any(name.startswith(waiting) or (name.startswith(f".shown-{part[1]}-") and shown in name) for name in names)


def _stream(rows: Sequence[pa.RecordBatch], schema: pa.Schema) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        for batch in rows:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
