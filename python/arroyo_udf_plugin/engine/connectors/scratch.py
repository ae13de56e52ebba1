"""A folder of this process, for files on their way into an object store.

    scratch() / "part"

Guarantees: it goes at the end of the process, or after a kill when another process makes its own: whoever lives holds
a lock on its folder.
Assumes: one TMPDIR for all of them.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import os
import shutil
import tempfile
import threading
from pathlib import Path

_PREFIX = "arroyo-udf-parts-"
_lock = threading.Lock()


def scratch() -> Path:
    """Raises OSError."""
    with _lock:  # `cache` alone would give threads that come at once a folder each
        return _made()


@functools.cache
def _made() -> Path:
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        _sweep(left)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        with contextlib.suppress(FileNotFoundError):  # another process took it for a dead one's before it was locked
            fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(fd, fcntl.LOCK_EX)  # until the process ends
            if folder.exists():
                break
            os.close(fd)
    atexit.register(_remove, folder, os.getpid())
    return folder


def _sweep(folder: Path) -> None:
    """Removes the folder of a process that does not live any more."""
    with contextlib.suppress(OSError):  # it is another user's, or locked, or gone
        fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)
        finally:
            os.close(fd)


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # not in its forks
        shutil.rmtree(folder, ignore_errors=True)
