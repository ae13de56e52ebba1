"""Waiting for a runtime, in threads and in event loops."""

import asyncio
import contextlib
import math
import os
import select
import threading
import time
from collections.abc import Iterator
from typing import Any

from .. import abi
from .._native import __file__ as _native_core
from ..abi import ffi, new_error
from .batches import contract_broken, failure

_LOOK_AGAIN = 1.0  # seconds, because a broken plugin may not wake this host
_MOST_CONTRADICTIONS = 10_000

_wake = ffi.addressof(ffi.dlopen(_native_core), "arroyo_udf_host_wake")  # loaded already: this only finds it


class Waiters:
    """Lets many threads and event loops wait for one runtime, which has only one `arm`.

    Each waiter sleeps on its own eventfd. The latest waiter has armed its eventfd for the conditions of all. A waiter
    that wakes or gives up wakes the others; they check again and, if necessary, register again. So no registration is
    lost, and a superfluous wake-up costs one check.
    """

    def __init__(self, table: Any, handle: int, where: str) -> None:
        self._table = table
        self._handle = handle
        self._where = where
        self._lock = threading.Lock()
        self._waiting: dict[int, int] = {}  # eventfd -> condition
        self._free: list[int] = []
        self._closed = False
        self.stopped = False
        """stop_runtime has returned, so every condition holds from then on."""

    def block(self, condition: int, timeout: float | None) -> bool:
        """Waits for the condition. False: it did not hold within `timeout` seconds. Signals are handled meanwhile."""
        end = math.inf if timeout is None else time.monotonic() + timeout
        contradictions = 0
        while not self.holds(condition):
            with self._registered(condition) as fd:
                if fd is None:
                    contradictions = self._contradicted(contradictions)
                    continue
                left = end - time.monotonic()
                if left <= 0:
                    return False
                poll = select.poll()
                poll.register(fd, select.POLLIN)
                poll.poll(min(left, _LOOK_AGAIN) * 1e3)
        return True

    async def block_async(self, condition: int) -> None:
        loop = asyncio.get_running_loop()
        contradictions = 0
        while not self.holds(condition):
            with self._registered(condition) as fd:
                if fd is None:
                    contradictions = self._contradicted(contradictions)
                    await asyncio.sleep(0)
                    continue
                woken = asyncio.Event()
                loop.add_reader(fd, woken.set)
                timer = loop.call_later(_LOOK_AGAIN, woken.set)
                try:
                    await woken.wait()
                finally:
                    timer.cancel()
                    loop.remove_reader(fd)

    def close(self) -> None:
        """Closes the eventfds. Call it after release, when the plugin no longer uses them."""
        with self._lock:
            self._closed = True
            for fd in self._free:
                os.close(fd)
            self._free.clear()

    def holds(self, condition: int) -> bool:
        """Whether the condition holds now."""
        error, stopped = new_error(), self.stopped
        status = self._table.wait(self._handle, condition, 0, error)
        if status not in (abi.OK, abi.WOULD_BLOCK):
            raise failure(status, error, self._where, "wait")
        if stopped and status == abi.WOULD_BLOCK:
            raise contract_broken(self._where, "wait answers WOULD_BLOCK after stop_runtime")
        return bool(status == abi.OK)

    def _contradicted(self, times: int) -> int:
        """Counts how often arm has seen a condition that wait does not see. Other threads may explain a few."""
        if times == _MOST_CONTRADICTIONS:
            raise contract_broken(self._where, f"arm answers READY, and wait WOULD_BLOCK, {times} times")
        return times + 1

    @contextlib.contextmanager
    def _registered(self, condition: int) -> Iterator[int | None]:
        """An eventfd that becomes readable when it is time to check again; None: now."""
        with self._lock:
            fd = self._free.pop() if self._free else os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            self._waiting[fd] = condition
            error = new_error()
            every = 0
            for mask in self._waiting.values():
                every |= mask
            status = self._table.arm(self._handle, every, _wake, ffi.cast("void *", fd), error)
        try:
            if status not in (abi.OK, abi.READY):
                raise failure(status, error, self._where, "arm")
            yield fd if status == abi.OK else None
        finally:
            with self._lock:
                self._waiting.pop(fd, None)
                for other in self._waiting:
                    os.eventfd_write(other, 1)
                self._waiting.clear()
                with contextlib.suppress(BlockingIOError):
                    os.eventfd_read(fd)
                if self._closed:
                    os.close(fd)
                else:
                    self._free.append(fd)
