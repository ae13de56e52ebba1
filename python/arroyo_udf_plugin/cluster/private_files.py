"""Files that are their user's alone: keys and tokens.

Guarantees: a file is whole or not there, has the mode 0600 from its first moment, and is durable when the call returns.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def create(path: Path, content: bytes) -> None:
    """Makes a file that is not there. One that is there stays as it is."""
    _written(path, content, is_new=True)


def replace(path: Path, content: bytes) -> None:
    """Makes a file, in the place of what was there."""
    _written(path, content, is_new=False)


def _written(path: Path, content: bytes, is_new: bool) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")  # 0600
    try:
        with os.fdopen(fd, "wb") as new:
            new.write(content)
            new.flush()
            os.fsync(new.fileno())
        if is_new:
            with contextlib.suppress(FileExistsError):
                os.link(name, path)
        else:
            os.replace(name, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
