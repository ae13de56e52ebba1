"""What a worker writes to its standard output and error: a file, read while the worker runs; and the function that it
has died in, from the stack that Python leaves there on a fatal signal:

    Fatal Python error: Segmentation fault

    Current thread 0x00007f4d (most recent call first):
      File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at
      File "/tmp/town.py", line 6 in town

Guarantees: what is told at once, and what is on the disk, have limits; what is left out is counted.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import BinaryIO

from ..job_program import JobProgram

TOLD = 64 << 10
"""The most bytes of an entry in the job's log."""
_LARGEST = 16 << 20
"""Bytes of a file that is emptied when it has been read."""


class WorkerOutput:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def create(self) -> BinaryIO:
        """For the worker: it appends, so that the file can be emptied meanwhile."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.remove()
        return self._path.open("ab")

    def skip(self) -> None:
        """Another controller has read what is there."""
        self._read = self._size()

    def more(self) -> str:
        """Whole lines since the last time."""
        size = self._size()
        if size == self._read:
            return ""
        start = max(self._read, size - TOLD)
        with self._path.open("rb") as file:
            file.seek(start)
            data = file.read(size - start)
        end = data.rfind(b"\n") + 1
        if end == 0 and len(data) < TOLD:
            return ""  # a line that goes on
        data = data[: end or None]
        left_out, self._read = start - self._read, start + len(data)
        if self._read > _LARGEST:  # what comes just now is lost
            os.truncate(self._path, 0)
            self._read = 0
        return (f"[{left_out} bytes are left out]\n" if left_out else "") + data.decode(errors="replace")

    def rest(self) -> str:
        """What `more` has not told, of a worker that has ended."""
        return self._tail(self._read)

    def last(self) -> str:
        """The end of it, told before or not."""
        return self._tail(0)

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)

    def _size(self) -> int:
        try:
            return self._path.stat().st_size
        except FileNotFoundError:
            return 0

    def _tail(self, start: int) -> str:
        try:
            with self._path.open("rb") as file:
                file.seek(max(start, self._size() - TOLD))
                return file.read().decode(errors="replace")
        except FileNotFoundError:
            return ""


_BEGIN = "Fatal Python error:"
_FRAME = re.compile(r'^  File ".*", line \d+ in (\w+)$', re.MULTILINE)
INSTEAD = 'with isolation = "process" such a crash costs the row in hand only'


def crashed_in(output: str, program: JobProgram) -> str | None:
    """The innermost function that it calls; None: the output tells none."""
    _, begin, stack = output.rpartition(_BEGIN)
    called = json.dumps(program.pipeline)
    frames: list[str] = _FRAME.findall(stack) if begin else []
    return next((name for name in frames if re.search(rf"\b{name}\b", called)), None)
