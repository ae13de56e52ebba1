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
import contextlib
import math
import os
import select
import threading
import time
import weakref
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Literal, Self

import pyarrow as pa

from . import _ffi
from ._batch import Arguments, Shapes, array_pointer, failure, free_batch, give_back, take_outputs
from ._errors import InvalidArgument, InvalidState, WouldBlock
from ._ffi import ffi, take_error
from .statistics import Statistics

_Kind = type[BaseException] | None

_FOREVER_NS = 2**63 - 1
_MODES = {"drain": _ffi.DRAIN, "cancel": _ffi.CANCEL}
_GONE_NS = 1_000_000_000
RELEASES = "arroyo-udf-release"


def start(table: Any, where: str, number: int, options: Any, arguments: Arguments, shapes: Shapes) -> "Runtime":
    """Starts function `number` of a plugin's table. For host.py."""
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
        self._waiters = _Waiters(table, handle)
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
                self._waiters.block(_ffi.ROOM, None)

    async def send_async(self, first_id: int, *arrays: Any) -> None:
        """As `send`, waiting in the event loop."""
        for first, batch in self._batches(first_id, arrays):
            while not self._sent(first, batch):
                await self._waiters.block_async(_ffi.ROOM)

    def send_nowait(self, first_id: int, *arrays: Any) -> None:
        """As `send`, but raises WouldBlock, having taken nothing, if there is no room. Takes no chunked arrays."""
        self._check_alive()
        if self._full and not self._waiters.holds(_ffi.ROOM):
            raise WouldBlock(self._no_room, _ffi.WOULD_BLOCK)  # without an export of the batch for nothing
        if len(self._arguments.chunks(arrays)) > 1:
            raise InvalidArgument(f"{self._where}: send_nowait takes one chunk at a time; call combine_chunks() first")
        for first, batch in self._batches(first_id, arrays):
            if not self._sent(first, batch):
                raise WouldBlock(self._no_room, _ffi.WOULD_BLOCK)

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
        if status > _ffi.WOULD_BLOCK:
            raise failure(status, outputs.error)
        give_back(outputs)
        self._full = status != _ffi.OK
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
        if status > _ffi.END:
            raise failure(status, outputs.error)
        batch = None
        if status == _ffi.OK:
            shape = self._shapes[outputs.schema[0]]
            batch = pa.RecordBatch._import_from_c(outputs.address, shape.schema)
        give_back(outputs)
        return batch

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until `drain_results` has something to say, at most `timeout` seconds. Ctrl-C interrupts it."""
        self._check_alive()
        return self._waiters.block(_ffi.RESULTS, timeout)

    async def wait_async(self) -> None:
        """Waits, in the event loop, until `drain_results` has something to say."""
        self._check_alive()
        await self._waiters.block_async(_ffi.RESULTS)

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
        limit = none if deadline is None else min(_ffi.nanoseconds(deadline), _FOREVER_NS)
        self._abandoned = mode == "cancel"
        return self._call(self._table.stop_runtime, _MODES[mode], limit) != _ffi.STUCK

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
        if status >= _ffi.INVALID_ARGUMENT:
            raise failure(status, error)
        return status

    def _check_alive(self) -> None:
        if not self._alive.alive:
            raise InvalidState(f"{self._where}: the runtime was released; start another", _ffi.INVALID_STATE)


def _release(table: Any, handle: int, waiters: "_Waiters") -> None:
    error = ffi.new("arroyo_udf_error *")
    if table.release(handle, error):
        take_error(error)  # it is gone already: after a fork, say
    waiters.close()


def _release_forgotten(table: Any, handle: int, waiters: "_Waiters") -> None:
    """As _release, in a thread of its own: a collection may run in any thread, also one that the release waits for."""
    threading.Thread(target=_release, args=(table, handle, waiters), name=RELEASES, daemon=True).start()


class _Waiters:
    """All who wait for one runtime, in any thread or event loop, on its one `arm`.

    Each waiter sleeps on an eventfd of its own. The one that came last has armed its eventfd for what all of them wait
    for. Whoever wakes or gives up wakes the others, who look again and, if need be, register again. So a registration
    is never lost, and a wake-up too many only costs a look.
    """

    def __init__(self, table: Any, handle: int) -> None:
        self._table = table
        self._handle = handle
        self._lock = threading.Lock()
        self._waiting: dict[int, int] = {}  # eventfd -> condition
        self._free: list[int] = []
        self._closed = False

    def block(self, condition: int, timeout: float | None) -> bool:
        """Waits for the condition; False: timeout (seconds). Signals are handled meanwhile."""
        end = math.inf if timeout is None else time.monotonic() + timeout
        while not self.holds(condition):
            with self._registered(condition) as fd:
                if fd is None:
                    continue
                left = end - time.monotonic()
                if left <= 0:
                    return False
                poll = select.poll()
                poll.register(fd, select.POLLIN)
                poll.poll(None if left == math.inf else min(left * 1e3, 2**31 - 1))
        return True

    async def block_async(self, condition: int) -> None:
        loop = asyncio.get_running_loop()
        while not self.holds(condition):
            with self._registered(condition) as fd:
                if fd is None:
                    await asyncio.sleep(0)
                    continue
                woken = asyncio.Event()
                loop.add_reader(fd, woken.set)
                try:
                    await woken.wait()
                finally:
                    loop.remove_reader(fd)

    def close(self) -> None:
        """After release: the plugin touches no eventfd any more."""
        with self._lock:
            self._closed = True
            for fd in self._free:
                os.close(fd)
            self._free.clear()

    def holds(self, condition: int) -> bool:
        """Whether there is nothing to wait for."""
        error = ffi.new("arroyo_udf_error *")
        status = self._table.wait(self._handle, condition, 0, error)
        if status > _ffi.WOULD_BLOCK:
            raise failure(status, error)
        return bool(status == _ffi.OK)

    @contextlib.contextmanager
    def _registered(self, condition: int) -> Iterator[int | None]:
        """An eventfd that becomes readable when it is time to look again; None: it is time now."""
        with self._lock:
            fd = self._free.pop() if self._free else os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            self._waiting[fd] = condition
            error = ffi.new("arroyo_udf_error *")
            every = 0
            for one in self._waiting.values():
                every |= one
            status = self._table.arm(self._handle, every, _ffi.wake, ffi.cast("void *", fd), error)
        try:
            if status >= _ffi.INVALID_ARGUMENT:
                raise failure(status, error)
            yield fd if status == _ffi.OK else None
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
