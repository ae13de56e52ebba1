"""A started async function: send batches of rows, drain what has ended.

    with function.start() as runtime:
        runtime.send(0, array)          row ids 0, 1, 2, ... ; waits for room
        runtime.wait()                  until something has ended
        runtime.drain_results()         RecordBatch {id, value, outcome, attempts, error}, or None
        runtime.stop()                  what was accepted runs to its end; drain once more

Held rows (waiting, running, ended and not drained) are bounded: whoever sends more than the bound must drain as well,
in another thread or task, or with `send_nowait`. With asyncio: send_async, wait_async, stop_async, `async with`.

Any thread may call anything at any time. A runtime that is forgotten is released when it is collected.
"""

import asyncio
import threading
import weakref
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Literal, Self

import pyarrow as pa

from .. import abi
from ..abi import ffi, take_error
from ..errors import InvalidArgument, InvalidState, WouldBlock
from .batches import Arguments, Shapes, array_pointer, failure, free_batch, give_back, take_outputs
from .statistics import Statistics
from .waiters import Waiters

_Kind = type[BaseException] | None

_FOREVER_NS = 2**63 - 1
_MODES = {"drain": abi.DRAIN, "cancel": abi.CANCEL}
_GONE_NS = 1_000_000_000
RELEASES = "arroyo-udf-release"


def start(table: Any, where: str, number: int, options: Any, arguments: Arguments, shapes: Shapes) -> "Runtime":
    """Starts function `number` of a plugin's table. For function.py."""
    handle, error = ffi.new("arroyo_udf_handle *"), ffi.new("arroyo_udf_error *")
    status = table.start(number, options, handle, error)
    if status:
        raise failure(status, error)
    return Runtime(table, where, handle[0], arguments, shapes)


class Runtime:
    """A started async function. Made by `Function.start`.

    Leaving `with` releases it, after a stop (cancel) if it was not stopped. Leaving it without an exception while rows
    are unanswered, and without having called `stop("cancel")`, raises InvalidState: their results would be lost.
    """

    def __init__(self, table: Any, where: str, handle: int, arguments: Arguments, shapes: Shapes) -> None:
        self._table = table
        self._where = where
        self._handle = handle
        self._arguments = arguments
        self._shapes = shapes
        self._no_room = f"{where}: has no room; drain, and wait for room"
        self._full = False  # there was no room for what was sent last
        self._abandoned = False  # stopped with cancel: the caller does not want what is left
        self._waiters = Waiters(table, handle)
        self._alive = weakref.finalize(self, _release_forgotten, table, handle, self._waiters)
        self._alive.atexit = False  # the core itself stops what runs

    # ---- Rows in ----

    def send(self, first_id: int, *arrays: Any) -> None:
        """Hands over rows with the ids first_id, first_id + 1, ...; waits for room. Ids rise from send to send.

        arrays: one per argument (as for a sync function), or one RecordBatch. Chunked arrays are sent chunk by chunk.
        Raises InvalidArgument, InvalidState.
        """
        for first, batch in self._batches(first_id, arrays):
            while not self._sent(first, batch):
                self._waiters.block(abi.ROOM, None)

    async def send_async(self, first_id: int, *arrays: Any) -> None:
        """As `send`, waiting in the event loop."""
        for first, batch in self._batches(first_id, arrays):
            while not self._sent(first, batch):
                await self._waiters.block_async(abi.ROOM)

    def send_nowait(self, first_id: int, *arrays: Any) -> None:
        """As `send`, but raises WouldBlock, having taken nothing, if there is no room. Takes no chunked arrays."""
        self._check_alive()
        if self._full and not self._waiters.holds(abi.ROOM):
            raise WouldBlock(self._no_room, abi.WOULD_BLOCK)  # without an export of the batch for nothing
        if len(self._arguments.chunks(arrays)) > 1:
            raise InvalidArgument(f"{self._where}: send_nowait takes one chunk at a time; call combine_chunks() first")
        for first, batch in self._batches(first_id, arrays):
            if not self._sent(first, batch):
                raise WouldBlock(self._no_room, abi.WOULD_BLOCK)

    def _batches(self, first_id: int, given: tuple[Any, ...]) -> Iterator[tuple[int, int]]:
        """The native batches to send, each with its first id; freed when the next one is asked for, or at the end."""
        self._check_alive()
        for arrays in self._arguments.chunks(given):
            end = first_id + len(arrays[0])
            if not 0 <= first_id <= end <= 2**64:
                raise InvalidArgument(f"{self._where}: row ids are below 2**64, and not {first_id} to {end - 1}")
            batch = self._arguments.export(arrays)
            try:
                yield first_id, batch
            finally:
                free_batch(batch)
            first_id = end

    def _sent(self, first_id: int, batch: int) -> bool:
        outputs = take_outputs()
        status = self._table.send(self._handle, first_id, array_pointer(batch), outputs.error)
        if status > abi.WOULD_BLOCK:
            raise failure(status, outputs.error)
        give_back(outputs)
        self._full = status != abi.OK
        return not self._full

    # ---- Results out ----

    def drain_results(self, max_rows: int = 0) -> pa.RecordBatch | None:
        """Takes up to max_rows ended rows (0: all): id, value, outcome, attempts, error. None: nothing now.

        After `stop` has returned, None means that every accepted row has been handed out.
        """
        self._check_alive()
        if not 0 <= max_rows < 2**64:
            raise InvalidArgument(f"{self._where}: max_rows={max_rows!r}; give a whole number, 0 for all")
        outputs = take_outputs()
        status = self._table.drain_results(self._handle, max_rows, outputs.array, outputs.schema, outputs.error)
        if status > abi.END:
            raise failure(status, outputs.error)
        batch = None
        if status == abi.OK:
            shape = self._shapes[outputs.schema[0]]
            batch = pa.RecordBatch._import_from_c(outputs.address, shape.schema)
        give_back(outputs)
        return batch

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until `drain_results` has something to say, at most `timeout` seconds. Ctrl-C interrupts it."""
        self._check_alive()
        return self._waiters.block(abi.RESULTS, timeout)

    async def wait_async(self) -> None:
        """Waits, in the event loop, until `drain_results` has something to say."""
        self._check_alive()
        await self._waiters.block_async(abi.RESULTS)

    def statistics(self) -> Statistics:
        """How many rows are where, how they ended, and how long they took."""
        self._check_alive()
        counters, error = ffi.new("arroyo_udf_statistics *"), ffi.new("arroyo_udf_error *")
        counters.size = ffi.sizeof("arroyo_udf_statistics")
        self._call(self._table.statistics, counters, error=error)
        return Statistics.from_abi(counters)

    # ---- The end ----

    def cancel(self, first_id: int, rows: int = 1) -> None:
        """Cancels the rows that have not ended of first_id ... first_id + rows - 1: they come out as cancelled."""
        self._check_alive()
        if not (0 <= first_id < 2**64 and 0 <= rows < 2**64):
            raise InvalidArgument(f"{self._where}: rows {first_id} and {rows} more; ids are from 0 to 2**64 - 1")
        self._call(self._table.cancel, first_id, rows)

    def stop(self, mode: Literal["drain", "cancel"] = "drain", deadline: float | None = None) -> bool:
        """Ends the execution and closes the Context; drain_results then hands out the rest.

        mode: "drain" lets accepted rows run to their end until the deadline, "cancel" cancels them now.
        deadline: seconds from now, at which what still runs is cancelled; None for none ("cancel": 1 s).
        Returns False if some attempt ignored its cancellation. A second stop answers as the first one did.
        """
        self._check_alive()
        if mode not in _MODES:
            raise InvalidArgument(f"{self._where}: mode={mode!r}; write 'drain' or 'cancel'")
        if deadline is not None and not deadline >= 0:
            raise InvalidArgument(f"{self._where}: deadline={deadline!r}; give seconds from now, or None")
        none = _FOREVER_NS if mode == "drain" else _GONE_NS
        limit = none if deadline is None else min(abi.nanoseconds(deadline), _FOREVER_NS)
        self._abandoned = mode == "cancel"
        return self._call(self._table.stop_runtime, _MODES[mode], limit) != abi.STUCK

    async def stop_async(self, mode: Literal["drain", "cancel"] = "drain", deadline: float | None = None) -> bool:
        """As `stop`, waiting in another thread while the event loop runs on."""
        return await asyncio.to_thread(self.stop, mode, deadline)

    def release(self) -> None:
        """Ends the handle, after a stop (cancel, 1 s) if it was not stopped. Rows not drained are gone."""
        if self._alive.detach():
            _release(self._table, self._handle, self._waiters)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: _Kind, value: BaseException | None, trace: TracebackType | None) -> None:
        lost = 0
        if kind is None and not self._abandoned and self._alive.alive:
            counters = self.statistics()
            lost = counters.accepted - counters.drained
        self.release()
        if lost:
            raise InvalidState(
                f"{self._where}: left with {lost} rows unanswered; before, call stop() and drain_results() until it "
                'answers None, or stop("cancel") if they are not wanted'
            )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: _Kind, value: BaseException | None, trace: TracebackType | None) -> None:
        await asyncio.to_thread(self.__exit__, kind, value, trace)

    def _call(self, slot: Any, *arguments: Any, error: Any = None) -> int:
        error = ffi.new("arroyo_udf_error *") if error is None else error
        status: int = slot(self._handle, *arguments, error)
        if status >= abi.INVALID_ARGUMENT:
            raise failure(status, error)
        return status

    def _check_alive(self) -> None:
        if not self._alive.alive:
            raise InvalidState(f"{self._where}: the runtime was released; start another", abi.INVALID_STATE)


def _release(table: Any, handle: int, waiters: Waiters) -> None:
    error = ffi.new("arroyo_udf_error *")
    if table.release(handle, error):
        take_error(error)  # it is gone already: after a fork, say
    waiters.close()


def _release_forgotten(table: Any, handle: int, waiters: Waiters) -> None:
    """As _release, in a thread of its own: a collection may run in any thread, also one that the release waits for."""
    threading.Thread(target=_release, args=(table, handle, waiters), name=RELEASES, daemon=True).start()
