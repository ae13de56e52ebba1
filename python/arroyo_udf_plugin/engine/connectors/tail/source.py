"""Growing files as a source: each name is a partition, read beside the others.

Guarantees: no file is read twice. A rotated file belongs to the partition of the name that it had: `app.log.1` or
`app.log-20260101` is a rotated `app.log`. One whose new name `paths` takes in otherwise is an error.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import stat
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from ....errors import InvalidArgument
from ..inputs import input_files
from ..interface import Json, Partition, has_ended
from ..location import Location, pattern_of
from .mark import Mark
from .partition import TailPartition, TailPlace, gone
from .records import GrowingRecords

_log = logging.getLogger(__name__)

_PACKED = (".gz", ".zst", ".bz2", ".xz", ".zip", ".lz4")
_ROTATED = re.compile(r"(?:~|[._-](?:old|bak|prev|[0-9][0-9TZ:._-]*))(?=$)")


class TailSource:
    """paths: as `input_files` has them, of this machine. format: of all files. watch: None: reading ends at the ends of
    files. missing: what happens if rows cannot be read any more. settles: see `Surroundings`.

    Raises InvalidArgument.
    """

    resumable = True
    side_by_side = True
    rows: int | None = None

    def __init__(
        self,
        paths: Sequence[str],
        format: str,
        records: GrowingRecords,
        watch: float | None,
        settles: float,
        missing: Literal["fail", "warn"],
    ) -> None:
        self._paths, self._format, self.records = paths, format, records
        self.watch, self.settles, self.bounded = watch, settles, watch is None
        self._fails = missing == "fail"
        self.name, self.schema = ", ".join(paths), records.schema
        self._lock = threading.Lock()  # guards all below
        self._known: dict[str, Path] = {}
        self._marks: dict[str, Mark] = {}
        for path in paths:
            if path != "-" and pattern_of(path).path is None:
                raise _grows_not(path)
        self._found()

    # ---- A source ----

    def partitions(self) -> Sequence[str]:
        found = self._found()
        with self._lock:
            read = {mark.inode: (name, mark) for name, mark in self._marks.items() if mark.byte}
            names = {*found.values(), *self._known.values()}
            for name, path in found.items():
                if not _is_packed(path) and not any(base in names for base in _bases(path)):
                    self._refuse_renamed(name, path, read)
                    self._known.setdefault(name, path)
            return list(self._known)

    def check(self, positions: Mapping[str, Json]) -> None:
        found = self._found()
        for name, json in positions.items():
            place = TailPlace.read(json)
            if place.mark is None or has_ended(json):
                continue
            self.note(name, place.mark)
            is_needed = self._fails and place.left is None
            if is_needed and self.find(found.get(name, Path(name)), place.mark) is None:
                self.lost(gone(name, place.mark))

    def open(self, partition: str, position: Json | None) -> Partition:
        with self._lock:
            path = self._known.setdefault(partition, Path(partition))
        return TailPartition(partition, path, self, position)

    def close(self) -> None:
        """Partitions have what is open."""

    def _found(self) -> Mapping[str, Path]:
        """Those that `paths` takes in, by name."""
        found = {}
        for file in input_files(self._paths, self._format, may_lack=True):
            if file.path is None or not file.regular:
                raise _grows_not(file.name)
            found[file.name] = file.path
        return found

    def _refuse_renamed(self, name: str, path: Path, read: Mapping[int, tuple[str, Mark]]) -> None:
        """read: what partitions have read of files, by their inodes."""
        with contextlib.suppress(FileNotFoundError):
            partition, mark = read.get(os.stat(path).st_ino, (name, None))
            if partition != name and mark is not None and self._fits(path, mark):
                raise InvalidArgument(
                    f"{name} is the file that was {partition}, and paths takes in both, so that rows would be read "
                    "twice: write paths that do not take in rotated files"
                )

    # ---- What is around a file ----

    def opened(self, path: Path) -> int:
        Location(str(path), path).admitted()
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise InvalidArgument(f"{path} is no file any more")
        return fd

    def find(self, path: Path, mark: Mark) -> Path | None:
        entries = _files_in(path.parent)
        same = [Path(entry.path) for entry in entries if entry.inode() == mark.inode]
        copies = [Path(entry.path) for entry in entries if path in _bases(Path(entry.path))] if mark.byte else []
        with contextlib.suppress(FileNotFoundError):
            if os.stat(path).st_ino == mark.inode:
                same.insert(0, path)  # also through a link
        own = [path] if mark.byte and path.exists() else []
        copies = [copy for copy in sorted(copies, key=_size, reverse=True) if not _is_packed(copy)]
        return next((found for found in (*same, *own, *copies) if self._fits(found, mark)), None)

    def followers(self, path: Path, since: int, mark: Mark) -> list[Path]:
        found: dict[Path, int] = {}
        for rotated in (Path(entry.path) for entry in _files_in(path.parent)):
            if path not in _bases(rotated):
                continue
            with contextlib.suppress(FileNotFoundError):
                status = os.stat(rotated)
                if _is_packed(rotated):
                    if status.st_mtime_ns > since:  # packing keeps the time
                        self.lost(f"{rotated} is packed, and was not read before: unpack it")
                elif status.st_mtime_ns >= since and not self._is_copy(rotated, status, mark):
                    found[rotated] = status.st_mtime_ns
        return sorted(found, key=lambda path: found[path])

    def _is_copy(self, path: Path, status: os.stat_result, mark: Mark) -> bool:
        """Whether a file is the one that was read to its end, or a copy of it."""
        return status.st_ino == mark.inode or (status.st_size == mark.byte and self._fits(path, mark))

    def note(self, partition: str, mark: Mark) -> None:
        with self._lock:
            self._marks[partition] = mark

    def lost(self, text: str) -> None:
        if self._fails:
            raise InvalidArgument(f'{text}. To go on without, set missing = "warn" (in SQL source.missing)')
        _log.warning("%s", text)

    def _fits(self, path: Path, mark: Mark) -> bool:
        try:
            fd = self.opened(path)
        except OSError:
            return False
        try:
            return mark.fits(fd)
        finally:
            os.close(fd)


def _grows_not(name: str) -> InvalidArgument:
    return InvalidArgument(f"{name} does not grow as files of this machine do: use the source files for it")


def _files_in(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if entry.is_file()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InvalidArgument(f"cannot read the folder {folder}: {error.strerror}") from error


def _bases(path: Path) -> list[Path]:
    """The names of which this can be a rotated file's."""
    name = path.name.removesuffix(next((end for end in _PACKED if path.name.endswith(end)), ""))
    return [path.with_name(name[: match.start()]) for match in _ROTATED.finditer(name) if match.start()]


def _is_packed(path: Path) -> bool:
    return path.name.endswith(_PACKED)


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):
        return os.stat(path).st_size
    return 0
