"""Files without a name, read as memory: for data that is too large to stay in memory.

They are in the folder TMPDIR, or in /var/tmp, which is on a disk where /tmp may not be. Nobody else can open them, and
the system takes them back when nothing refers to them any more, whatever has ended the process.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import IO

import pyarrow as pa

from ...errors import InvalidArgument

Data = bytes | memoryview
"""Bytes, perhaps of such a file."""

LARGE = 64 << 20
"""Bytes from which on something is worth a file."""


def mapped(write: Callable[[IO[bytes]], None], what: str) -> memoryview:
    """What `write` writes, at least a byte. what: for error texts. Raises InvalidArgument if it cannot be written."""
    folder = os.environ.get("TMPDIR") or "/var/tmp"
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            write(file)
            file.flush()
            with pa.memory_map(f"/proc/self/fd/{file.fileno()}") as memory:
                return memoryview(memory.read_buffer()).cast("B")
    except OSError as error:
        reason = error.strerror or error
        raise InvalidArgument(f"cannot write {what} to {folder}: {reason}: name another folder as TMPDIR") from error
