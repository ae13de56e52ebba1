"""Waiting for a runtime, in threads and in event loops."""

import asyncio
import contextlib
import math
import os
import select
import threading
import time
from typing import Any

from .. import abi
from .._native import __file__ as _native_core
from ..abi import ffi
from .batches import contract_broken, failure, give_back, take_outputs

_LOOK_AGAIN = 1.0  # seconds, because a broken plugin may not wake this host
_MOST_CONTRADICTIONS = 10_000

_wake = ffi.addressof(ffi.dlopen(_native_core), "arroyo_udf_host_wake")  # loaded already: this only finds it


class _Place:
    """What one waiter at a time sleeps on: an eventfd, that as what `arm` hands back, and what looks at it."""

    __slots__ = ("data", "fd", "poll")

    def __init__(self) -> None:
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.data = ffi.cast("void *", self.fd)
        self.poll = select.poll()
        self.poll.register(self.fd, select.POLLIN)


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
        self._free: list[_Place] = []
        self._closed = False
        self.stopped = False
        """stop_runtime has returned, so every condition holds from then on."""

    def block(self, condition: int, timeout: float | None) -> bool:
        """Waits for the condition. False: it did not hold within `timeout` seconds. Signals are handled meanwhile."""
        end = math.inf if timeout is None else time.monotonic() + timeout
        contradictions = 0
        while not self.holds(condition):
            place = self._place()
            try:
                if self._is_time(place, condition):
                    contradictions = self._contradicted(contradictions)
                    continue
                left = end - time.monotonic()
                if left <= 0:
                    return False
                place.poll.poll(min(left, _LOOK_AGAIN) * 1e3)
            finally:
                self._leave(place)
        return True

    async def block_async(self, condition: int) -> None:
        loop = asyncio.get_running_loop()
        contradictions = 0
        while not self.holds(condition):
            place = self._place()
            try:
                if self._is_time(place, condition):
                    contradictions = self._contradicted(contradictions)
                    await asyncio.sleep(0)
                    continue
                woken = asyncio.Event()
                loop.add_reader(place.fd, woken.set)
                timer = loop.call_later(_LOOK_AGAIN, woken.set)
                try:
                    await woken.wait()
                finally:
                    timer.cancel()
                    loop.remove_reader(place.fd)
            finally:
                self._leave(place)

    def close(self) -> None:
        """Closes the eventfds. Call it after release, when the plugin no longer uses them."""
        with self._lock:
            self._closed = True
            for place in self._free:
                os.close(place.fd)
            self._free.clear()

    def holds(self, condition: int) -> bool:
        """Whether the condition holds now."""
        outputs, stopped = take_outputs(), self.stopped
        status = self._table.wait(self._handle, condition, 0, outputs.error)
        if status not in (abi.OK, abi.WOULD_BLOCK):
            raise failure(status, outputs.error, self._where, "wait")
        give_back(outputs)
        if stopped and status == abi.WOULD_BLOCK:
            raise contract_broken(self._where, "wait answers WOULD_BLOCK after stop_runtime")
        return bool(status == abi.OK)

    def _contradicted(self, times: int) -> int:
        """Counts how often arm has seen a condition that wait does not see. Other threads may explain a few."""
        if times == _MOST_CONTRADICTIONS:
            raise contract_broken(self._where, f"arm answers READY, and wait WOULD_BLOCK, {times} times")
        return times + 1

    def _place(self) -> _Place:
        with self._lock:
            return self._free.pop() if self._free else _Place()

    def _is_time(self, place: _Place, condition: int) -> bool:
        """Whether it is time to check again. If not, the place's eventfd becomes readable when it is."""
        outputs, every = take_outputs(), 0
        with self._lock:
            self._waiting[place.fd] = condition
            for mask in self._waiting.values():
                every |= mask
            status = self._table.arm(self._handle, every, _wake, place.data, outputs.error)
        if status not in (abi.OK, abi.READY):
            raise failure(status, outputs.error, self._where, "arm")
        give_back(outputs)
        return bool(status == abi.READY)

    def _leave(self, place: _Place) -> None:
        with self._lock:
            self._waiting.pop(place.fd, None)
            for other in self._waiting:
                os.eventfd_write(other, 1)
            self._waiting.clear()
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(place.fd)
            if self._closed:
                os.close(place.fd)
            else:
                self._free.append(place)
