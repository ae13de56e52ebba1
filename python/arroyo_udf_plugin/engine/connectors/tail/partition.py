"""A file that grows, and those that follow it under its name: read in order, from a position.

    poll ──► new bytes? ──► whole records ──► Rows
         └─► none, and another file has the name ──► to its end, for a while ──► the next one

Guarantees: a file that was renamed is read to its end before the next one, and so are those that came between. A line
is read when its end is there. Bytes that were seen and cannot be read any more are an error, or with `missing = "warn"`
a warning. `read` may be cancelled while it waits, and has lost nothing then.
Assumes: writers append. Files that are rotated stay in their folder until they have been read.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from ....errors import InvalidArgument
from ..blocks import BLOCK_BYTES, RECORD_BYTES, too_long
from ..interface import Gauge, Json
from ..source import Rows
from .mark import Mark
from .records import GrowingRecords

_log = logging.getLogger(__name__)

_PAUSES = (0.005, 0.1)  # seconds between two looks at a file: the first, and the longest


class Surroundings(Protocol):
    """What is around a file that is read. records: how. settles: seconds for which a renamed file must not grow before
    it is left. bounded: whether reading ends where files end."""

    records: GrowingRecords
    settles: float
    bounded: bool

    def opened(self, path: Path) -> int:
        """A descriptor. Raises OSError, InvalidArgument."""

    def find(self, path: Path, mark: Mark) -> Path | None:
        """Where the file is now that had this name when it was read; None: it is not there."""

    def followers(self, path: Path, since: int, mark: Mark) -> list[Path]:
        """Rotated files of this name that were changed last at `since` or later, in nanoseconds, in order; not those
        that begin like the one that was read."""

    def partitions(self) -> Sequence[str]:
        """Raises InvalidArgument if one would read a file that another one has read under another name."""

    def note(self, partition: str, mark: Mark) -> None:
        """How far the partition is."""

    def lost(self, text: str) -> None:
        """Rows cannot be read any more. Raises InvalidArgument, or warns."""


@dataclasses.dataclass(frozen=True)
class TailPlace:
    """mark: of the file; None: there was none yet. first: the number of the record at its byte. row: the next row's.
    left: when the file was changed last, in nanoseconds, if it has been read and another one is to follow. removed: it
    was then gone."""

    mark: Mark | None = None
    first: int = 1
    row: int = 1
    left: int | None = None
    removed: bool = False

    @classmethod
    def read(cls, json: Json | None) -> TailPlace:
        if json is None:
            return cls()
        mark = Mark.read(json["file"]) if "file" in json else None
        return cls(mark, json["first"], json["row"], json.get("left"), json.get("removed", False))

    def json(self) -> dict[str, Any]:
        written: dict[str, Any] = {"first": self.first, "row": self.row}
        if self.mark is not None:
            written["file"] = self.mark.json()
        return written if self.left is None else {**written, "left": self.left, "removed": self.removed}


_ANEW = TailPlace(left=0)
"""The next file is whatever has the name."""


class TailPartition:
    """name: of the partition, and in `Rows.file`. path: where its file is. around: what else there is."""

    def __init__(self, name: str, path: Path, around: Surroundings, position: Json | None) -> None:
        self._name, self._path, self._around, self._place = name, path, around, TailPlace.read(position)
        self._is_over = position is not None and position.get("end") is True
        self._fd: int | None = None
        self._header = b""
        self._rows: Iterator[Rows] = iter(())
        self._block: tuple[bytes, bytes] | None = None  # what `_rows` are of, and the known bytes before it
        self._last: Rows | None = None  # of that
        self._size = 0  # of the file, when it was looked at last
        self._seen: tuple[int, int] | None = None  # the size and time of a file without further whole records
        self._settling: tuple[int, float] | None = None  # the size of a renamed file, and since when
        if not self._is_over and self._place.mark is not None and self._place.left is None:
            self._go_on(self._place.mark)

    def _go_on(self, mark: Mark) -> None:
        found = self._around.find(self._path, mark)
        if found is None:
            self._around.lost(gone(self._name, mark))
            self._place = _ANEW
            return
        try:
            self._turn_to(found, mark)
        except FileNotFoundError:
            raise InvalidArgument(f"{found} was renamed just now: resume again") from None

    async def read(self) -> Rows | None:
        pause, longest = _PAUSES
        while not self._is_over:
            rows = self._next()
            if rows is not None:
                return rows
            if not self._is_over:
                await asyncio.sleep(pause)
                pause = min(2 * pause, longest)
        return None

    def position(self) -> Json:
        return {**self._place.json(), **({"end": True} if self._is_over else {})}

    def gauges(self) -> Sequence[Gauge]:
        """Of the file that is read now, as it was when it was looked at last."""
        mark = self._place.mark
        return [] if mark is None else [Gauge("unread", max(0, self._size - mark.byte), "bytes")]

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _next(self) -> Rows | None:
        """None: there are none now, or none any more."""
        while True:
            if (rows := next(self._rows, None)) is not None:
                self._last = rows
                self._place = dataclasses.replace(self._place, row=rows.first + rows.batch.num_rows)
                return rows
            if self._block is not None:
                self._pass(*self._block)
            try:
                if not (self._opens_next() if self._fd is None else self._reads_on(self._fd)):
                    return None
            except OSError as error:
                raise InvalidArgument(f"cannot read {self._name}: {error.strerror or error}") from error

    def _pass(self, before: bytes, data: bytes) -> None:
        """The block has been read."""
        assert self._place.mark is not None
        # After a resume, none of its rows may be left; then the next row is known already.
        after = max(self._around.records.after(data, self._place.first, self._last), self._place.row)
        self._place = TailPlace(self._place.mark.after(before, data), after, after)
        self._block = self._last = None
        self._note()

    def _note(self) -> None:
        assert self._place.mark is not None
        self._around.note(self._name, self._place.mark)

    # ---- One file ----------------------------------------------------------------------------------------------------

    def _reads_on(self, fd: int) -> bool:
        """Whether there was something to do."""
        mark, status = self._place.mark, os.fstat(fd)
        assert mark is not None
        if status.st_size < mark.byte:
            return self._was_cut(mark)
        seen = status.st_size, status.st_mtime_ns
        if seen != self._seen:
            before, data = self._bytes(fd, mark)
            if not mark.has_tail(before):
                return self._was_cut(mark)
            self._size = status.st_size
            if data:
                self._begin(fd, mark, before, data)
                return True
            self._seen = seen
        return self._leaves(fd, mark)

    def _bytes(self, fd: int, mark: Mark) -> tuple[bytes, bytes]:
        """The known bytes before the next one, and whole records from there."""
        want = BLOCK_BYTES
        while True:
            data = os.pread(fd, mark.known + want, mark.byte - mark.known)
            before, data = data[: mark.known], data[mark.known :]
            end = self._around.records.whole(data)
            if end or len(data) < want:
                return before, data[:end]
            if want >= RECORD_BYTES:
                raise too_long(self._name)
            want *= 2

    def _begin(self, fd: int, mark: Mark, before: bytes, data: bytes) -> None:
        """Reads whole records."""
        records, place = self._around.records, self._place
        if records.has_header and mark.byte and not self._header:
            self._header = records.header(os.pread(fd, BLOCK_BYTES, 0)) or b""
            if not self._header:
                raise too_long(self._name)
        header = self._header if mark.byte else b""
        self._block = before, data
        self._rows = records.rows(self._name, data, place.first, place.row, header)

    def _was_cut(self, mark: Mark) -> bool:
        """The file begins anew. What it had may be in a copy that was made before (copytruncate)."""
        if (copy := self._around.find(self._path, mark)) is not None:
            self._turn_to(copy, mark)
            return True
        text = f"{self._name} was truncated: it was read up to byte {mark.byte}, "
        if self._size > mark.byte:
            self._around.lost(f"{text}and {self._size - mark.byte} bytes more were there, without a copy beside it")
        else:
            _log.warning("%sand what came after that and before the truncation, if anything, is lost", text)
        self.close()
        self._place = _ANEW
        return True

    def _turn_to(self, path: Path, mark: Mark | None) -> None:
        """Reads another file. mark: it has this; None: from its beginning."""
        self.close()
        self._fd = self._around.opened(path)
        status = os.fstat(self._fd)
        self._size, self._seen, self._settling, self._header = status.st_size, None, None, b""
        if mark is None:
            self._place = TailPlace(Mark(status.st_ino))
        else:
            self._place = dataclasses.replace(self._place, mark=mark.moved(status.st_ino), left=None)
        self._note()

    # ---- The next one ------------------------------------------------------------------------------------------------

    def _leaves(self, fd: int, mark: Mark) -> bool:
        """All whole records of a file have been read. Whether it is left for another one."""
        status = os.fstat(fd)
        if status.st_size != self._size:
            return True  # it has grown just now
        if _is_at(self._path, status):
            self._settling, self._is_over = None, self._around.bounded
            return False
        if self._settling is None:
            self._around.partitions()
        if self._settling is None or self._settling[0] != status.st_size:
            self._settling = status.st_size, time.monotonic()
        if time.monotonic() - self._settling[1] < self._around.settles and not self._around.bounded:
            return False
        if status.st_nlink and self._follower(status.st_mtime_ns, mark) is None:
            self._is_over = self._around.bounded
            return False
        if status.st_size > mark.byte:
            self._around.lost(
                f"{self._name}: {status.st_size - mark.byte} bytes at the end of the file that had this name have no "
                "line end, and another file has the name now: give them a line end to have them read"
            )
        self.close()
        self._place = dataclasses.replace(self._place, left=status.st_mtime_ns, removed=not status.st_nlink)
        return True

    def _follower(self, since: int, mark: Mark | None) -> Path | None:
        """The next file. since: when the last one was changed."""
        rotated = [] if mark is None else self._around.followers(self._path, since, mark)
        return rotated[0] if rotated else self._path if self._path.exists() else None

    def _opens_next(self) -> bool:
        """Whether there is one."""
        mark = self._place.mark
        path = self._follower(self._place.left or 0, mark)
        if path is None:
            self._is_over = self._around.bounded
            return False
        with contextlib.suppress(FileNotFoundError):  # renamed just now
            if self._place.removed and mark is not None and self._around.find(self._path, mark) == path:
                _log.warning("%s was replaced by a file that begins like it: only what follows is read", self._name)
                self._turn_to(path, mark)
            else:
                self._turn_to(path, None)
            return True
        return False


def gone(name: str, mark: Mark) -> str:
    return (
        f"{name}: the file that had this name was read up to byte {mark.byte}, and is not in its folder any more, nor "
        "a copy of it: bring it back"
    )


def _is_at(path: Path, status: os.stat_result) -> bool:
    """Whether a file has this name."""
    try:
        return os.path.samestat(os.stat(path), status)
    except FileNotFoundError:
        return False
