"""Waiting that another thread can end: for bytes of a pipe, or for time to pass."""

from __future__ import annotations

import os
import select
import threading
import weakref


class Interrupt:
    """After `set`, waits end at once."""

    def __init__(self) -> None:
        self._fd = os.eventfd(0, os.EFD_CLOEXEC)
        self._closed = weakref.finalize(self, os.close, self._fd)
        self._lock = threading.Lock()

    def set(self) -> None:
        """From any thread, also after `close`."""
        with self._lock:
            if self._closed.alive:
                os.eventfd_write(self._fd, 1)

    def close(self) -> None:
        """Nobody waits any more. What nobody refers to is closed, too."""
        with self._lock:
            self._closed()

    def wait(self, seconds: float | None, fd: int | None = None) -> bool:
        """Waits for some seconds, and, if a descriptor is given, for its bytes or end. True: interrupted."""
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        if fd is not None:
            poll.register(fd, select.POLLIN)
        ready = poll.poll(None if seconds is None else seconds * 1000)
        return any(ready_fd == self._fd for ready_fd, _ in ready)
