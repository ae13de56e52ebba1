"""Waiting for a runtime, in threads and in event loops.

The mechanism is native (native/python/src/waiters.rs): many threads and event loops wait for one runtime, which has
only one `arm`.
"""

import asyncio
import math
import time
from typing import Any

from .. import abi
from .._native import arm, close_waiters, leave, sleep, waiters
from .batches import Outputs, contract_broken, failure, give_back, take_outputs

_LOOK_AGAIN = 1.0  # seconds, because a broken plugin may not wake this host
_MOST_CONTRADICTIONS = 10_000


class Waiters:
    """Those who wait for one runtime."""

    def __init__(self, table: Any, handle: int, where: str) -> None:
        self._native = waiters(abi.address(table.wait), abi.address(table.arm), handle)
        self._where = where
        self.stopped = False
        """stop_runtime has returned, so every condition holds from then on."""

    def block(self, condition: int, timeout: float | None) -> bool:
        """Waits for the condition. False: it did not hold within `timeout` seconds. Signals are handled meanwhile."""
        end = math.inf if timeout is None else time.monotonic() + timeout
        left = _LOOK_AGAIN if timeout is None else timeout
        contradictions = 0
        while True:
            outputs, stopped = take_outputs(), self.stopped
            slot, status = sleep(self._native, condition, math.ceil(min(left, _LOOK_AGAIN) * 1e3), outputs.address)
            if slot == "arm":
                self._check_arm(status, outputs)
                contradictions = self._contradicted(contradictions)
            elif self._holds(status, outputs):
                return True
            if stopped:
                raise contract_broken(self._where, "wait answers WOULD_BLOCK after stop_runtime")
            left = end - time.monotonic()
            if left <= 0:
                return False

    async def block_async(self, condition: int) -> None:
        loop = asyncio.get_running_loop()
        contradictions = 0
        while not self.block(condition, 0):
            outputs = take_outputs()
            status, descriptor = arm(self._native, condition, outputs.address)
            try:
                self._check_arm(status, outputs)
                if status == abi.READY:
                    contradictions = self._contradicted(contradictions)
                    await asyncio.sleep(0)
                    continue
                woken = asyncio.Event()
                loop.add_reader(descriptor, woken.set)
                timer = loop.call_later(_LOOK_AGAIN, woken.set)
                try:
                    await woken.wait()
                finally:
                    timer.cancel()
                    loop.remove_reader(descriptor)
            finally:
                leave(self._native, descriptor)

    def close(self) -> None:
        """Closes what they sleep on. Call it after release, when the plugin no longer uses that."""
        close_waiters(self._native)

    def _holds(self, status: int, outputs: Outputs) -> bool:
        """Whether the condition holds, by what `wait` has answered."""
        if status not in (abi.OK, abi.WOULD_BLOCK):
            raise failure(status, outputs.error, self._where, "wait")
        give_back(outputs)
        return bool(status == abi.OK)

    def _check_arm(self, status: int, outputs: Outputs) -> None:
        if status not in (abi.OK, abi.READY):
            raise failure(status, outputs.error, self._where, "arm")
        give_back(outputs)

    def _contradicted(self, times: int) -> int:
        """Counts how often arm has seen a condition that wait does not see. Other threads may explain a few."""
        if times == _MOST_CONTRADICTIONS:
            raise contract_broken(self._where, f"arm answers READY, and wait WOULD_BLOCK, {times} times")
        return times + 1
