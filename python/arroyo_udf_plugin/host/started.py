"""The base of a started async function: its handle, rows in, results out, stop and release. See runtime.py.

Guarantees: rows that come out were sent, each comes out once, and none is missing at the end; a plugin that breaks that
raises AbiError. A handle that is garbage-collected is released.
"""

import asyncio
import contextlib
import itertools
import threading
import time
import weakref
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Literal, Self, SupportsIndex

import pyarrow as pa

from .. import abi
from .._native import begin_send, end_send, ledger, missing, named_missing, sends
from ..abi import ffi, new_error, take_error
from ..errors import AbiError, ArroyoUdfError, InvalidArgument, InvalidState, UnsupportedCall, WouldBlock
from .arguments import Arguments
from .batches import (
    Drained,
    Shapes,
    array_pointer,
    contract_broken,
    failure,
    free_batch,
    give_back,
    take_outputs,
    taken,
)
from .logs import hand_on
from .statistics import Statistics
from .to_thread import to_thread
from .waiters import Waiters

_Kind = type[BaseException] | None

_FOREVER_NS = 2**63 - 1
KEY_BYTES = 24  # of an idempotency key
_Context = tuple[Any, Any, int | None]
"""The context of a batch for `send`, NULL if it says nothing; what must live as long; the bytes of its keys."""
_NO_CONTEXT: _Context = (ffi.NULL, None, None)
_MODES = {"drain": abi.DRAIN, "cancel": abi.CANCEL}
_GONE_NS = 1_000_000_000
RELEASES = "arroyo-udf-release"
_MOST_REFUSALS = 100  # of one send, although there was room before each try and nothing else was sent

Bytes = bytes | bytearray | memoryview
Mode = Literal["drain", "cancel"]


class Started:
    """What a `Runtime` does call by call; `map` makes a loop of it."""

    def __init__(
        self,
        table: Any,
        where: str,
        handle: int,
        arguments: Arguments,
        shapes: Shapes,
        ordered: bool,
        at_once: int,
    ) -> None:
        self._table = table
        self._where = where
        self._handle = handle
        self._arguments = arguments
        self._shapes = shapes
        self._ordered = ordered
        self._ledger = ledger(ordered)
        self._drains: list[None] = []  # an item for each drain under way; append and pop need no lock
        self._at_once = at_once  # rows that may run at once
        self._full = False  # the last send found no room
        self._ended = False  # stopped and drained
        self._abandoned = False  # stopped with cancel: the caller does not want the rest
        self._is_called = False  # by `call`, which alone sends and drains
        self._waiters = Waiters(table, handle, where)
        self._alive = weakref.finalize(self, _release_forgotten, table, handle, where, self._waiters)
        self._alive.atexit = False  # at exit the core stops all runtimes

    @property
    def is_ordered(self) -> bool:
        """Whether results come in the order of the rows."""
        return self._ordered

    @property
    def at_once(self) -> int:
        """How many rows may run at once."""
        return self._at_once

    def __reduce__(self) -> Any:
        raise UnsupportedCall(
            f"{self._where}: a started function stays in its process; pickle the function, and start it there"
        )

    def __repr__(self) -> str:
        state = "released" if not self._alive.alive else "stopped" if self._waiters.stopped else "running"
        return f"<{state} runtime of {self._where}>"

    # ---- Rows in ----

    def send(
        self,
        first_id: int,
        *arrays: Any,
        timeout: float | None = None,
        deadline: float | None = None,
        trace_parent: str | None = None,
        idempotency_keys: Bytes | None = None,
    ) -> None:
        """Sends rows with the ids first_id, first_id + 1, ...; waits for room.

        first_id: above all ids sent before. arrays: as in calls of the function, but not by keyword. Chunked arrays are
            sent chunk by chunk.
        timeout: seconds to wait for room. Then it raises WouldBlock and has sent nothing: chunks are combined.
        deadline: seconds from the moment when the rows are accepted, for each row with all its attempts; the start's
            own deadline counts if it is earlier.
        trace_parent: a W3C traceparent, which the calls for these rows can read.
        idempotency_keys: 24 bytes for each row, one behind the other, which say where it comes from: the keys of its
            calls. None: the start's lineage, and the row's id. Chunks are combined.
        Raises InvalidArgument for wrong arrays, ids, deadlines, trace parents and keys, InvalidState after stop or
        release.
        It also raises InvalidArgument for a value that does not fit the function's type. Nothing of this batch is
        accepted then, because the plugin answers every accepted row, and this one would never get there. `map` answers
        such rows as errors.
        """
        self._check_seconds("timeout", timeout)
        end = None if timeout is None else time.monotonic() + timeout
        context = self._context(deadline, trace_parent, idempotency_keys)
        whole = timeout is not None or idempotency_keys is not None
        for first, n_rows, batch in self._batches(first_id, arrays, whole):
            refusals = 0, sends(self._ledger)
            while not self._sent(first, n_rows, batch, context):
                refusals = self._refused(*refusals)
                if not self._waiters.block(abi.ROOM, None if end is None else max(0.0, end - time.monotonic())):
                    raise self._would_block(timeout)

    async def send_async(
        self,
        first_id: int,
        *arrays: Any,
        timeout: float | None = None,
        deadline: float | None = None,
        trace_parent: str | None = None,
        idempotency_keys: Bytes | None = None,
    ) -> None:
        """As `send`, waiting in the event loop."""
        self._check_seconds("timeout", timeout)
        context = self._context(deadline, trace_parent, idempotency_keys)
        whole = timeout is not None or idempotency_keys is not None
        try:
            async with asyncio.timeout(timeout):
                for first, n_rows, batch in self._batches(first_id, arrays, whole):
                    await self._send_exported(first, n_rows, batch, context)
        except TimeoutError:
            raise self._would_block(timeout) from None

    def send_nowait(
        self,
        first_id: int,
        *arrays: Any,
        deadline: float | None = None,
        trace_parent: str | None = None,
        idempotency_keys: Bytes | None = None,
    ) -> None:
        """As `send`, but without room it raises WouldBlock and sends nothing. Chunks are combined."""
        self._check_free()
        context = self._context(deadline, trace_parent, idempotency_keys)
        if self._full and not self._waiters.block(abi.ROOM, 0):
            raise self._would_block()  # saves the export of the batch
        for first, n_rows, batch in self._batches(first_id, arrays, whole=True):
            if not self._sent(first, n_rows, batch, context):
                raise self._would_block()

    def _would_block(self, timeout: float | None = None) -> WouldBlock:
        after = "" if timeout is None else f" after {timeout:g} s"
        return WouldBlock(f"{self._where}: has no room{after}; drain, and wait for room", abi.WOULD_BLOCK)

    async def _send_exported(self, first: int, n_rows: int, batch: list[int], context: _Context = _NO_CONTEXT) -> None:
        refusals = 0, sends(self._ledger)
        while not self._sent(first, n_rows, batch, context):
            refusals = self._refused(*refusals)
            await self._waiters.block_async(abi.ROOM)

    def _batches(self, first_id: int, given: Sequence[Any], whole: bool) -> Iterator[tuple[int, int, list[int]]]:
        """The caller's rows, exported; see `_exported`."""
        self._check_free()
        if self._arguments.fit(given):
            return self._exported([(first_id, given)])
        pieces, _ = self._arguments.pieces(given, whole=whole)
        starts = itertools.accumulate((piece.n_rows for piece in pieces), initial=first_id)
        placed = list(zip(starts, pieces, strict=False))
        refused = {first + row: why for first, piece in placed for row, why in piece.refused.items()}
        if refused:
            row, why = next(iter(refused.items()))
            others = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
            raise InvalidArgument(
                f"{self._where}, row {row}: {why}{others}; nothing was sent: leave such rows out, or use map, which "
                "answers them as errors"
            )
        return self._exported((first, piece.arrays) for first, piece in placed)

    def _check_ids(self, first: int, rows: int) -> None:
        if not isinstance(first, SupportsIndex):
            raise InvalidArgument(f"{self._where}: first_id={first!r}; pass the id of the first row, a whole number")
        if not 0 <= first <= first + rows <= 2**64:
            raise InvalidArgument(f"{self._where}: row ids are from 0 to 2**64 - 1, not {first} to {first + rows - 1}")

    def _check_seconds(self, name: str, seconds: float | None) -> None:
        if seconds is not None and not (isinstance(seconds, int | float) and seconds >= 0):
            raise InvalidArgument(f"{self._where}: {name}={seconds!r}; pass seconds from now, or None")

    def _exported(self, runs: Iterable[tuple[int, Sequence[pa.Array]]]) -> Iterator[tuple[int, int, list[int]]]:
        """Yields native batches, each as its first id, its number of rows, and a list with its address. A batch that is
        still in its list when the next is requested, or at the end, is freed."""
        for first_id, arrays in runs:
            n_rows = len(arrays[0])
            self._check_ids(first_id, n_rows)
            batch = [self._arguments.export(arrays)]
            try:
                yield first_id, n_rows, batch
            finally:
                if batch:
                    free_batch(batch[0])

    def _context(self, deadline: float | None, trace_parent: str | None, keys: Bytes | None) -> _Context:
        if deadline is None and trace_parent is None and keys is None:
            return _NO_CONTEXT
        self._check_seconds("deadline", deadline)
        is_text = isinstance(trace_parent, str)
        if trace_parent is not None and not (is_text and trace_parent.isascii() and trace_parent.isprintable()):
            raise InvalidArgument(
                f"{self._where}: trace_parent={trace_parent!r}; pass visible ASCII characters, or None"
            )
        if keys is not None and not isinstance(keys, Bytes):
            raise InvalidArgument(f"{self._where}: idempotency_keys={keys!r}; pass bytes, {KEY_BYTES} for each row")
        context = ffi.new("arroyo_udf_batch_context *", {"size": ffi.sizeof("arroyo_udf_batch_context")})
        if deadline is not None:
            context.deadline_ns = min(max(1, abi.nanoseconds(deadline)), abi.FOREVER_NS)  # 0 is no deadline
        text = memory = size = None
        if trace_parent is not None:
            text = context.trace_parent = ffi.new("char[]", trace_parent.encode())
        if keys is not None:
            memory = context.idempotency_keys = ffi.from_buffer("uint8_t[]", keys)
            size = len(memory)
        return context, (text, memory), size

    def _sent(self, first_id: int, n_rows: int, batch: list[int], context: _Context = _NO_CONTEXT) -> bool:
        if context[2] is not None and context[2] != KEY_BYTES * n_rows:
            raise InvalidArgument(
                f"{self._where}: idempotency_keys has {context[2]} bytes for {n_rows} rows; pass {KEY_BYTES} for each"
            )
        outputs = take_outputs()
        begun = begin_send(self._ledger, first_id, n_rows)
        status = self._table.send(self._handle, first_id, array_pointer(batch[0]), context[0], outputs.error)
        try:
            end_send(self._ledger, first_id, n_rows, begun, status)
        except ValueError as error:
            batch.clear()  # it stays allocated: the plugin may still read it
            raise self._broken(f"send {error}") from None
        if status == abi.OK:
            if not taken(batch.pop()):
                raise self._broken("send answers OK and has not taken its arguments")
        elif status != abi.WOULD_BLOCK:
            raise failure(status, outputs.error, self._where, "send")
        give_back(outputs)
        hand_on()
        self._full = status != abi.OK
        return not self._full

    def _refused(self, times: int, sent: int) -> tuple[int, int]:
        """Counts the refusals of a send that waits for room between them, while no other send gets in between."""
        now = sends(self._ledger)
        times = times + 1 if now == sent + 1 else 0
        if times > _MOST_REFUSALS:
            raise self._broken(f"send answers WOULD_BLOCK {times} times, each time after wait has found room")
        return times, now

    # ---- Results out ----

    def drain_results(self, max_rows: int = 0) -> pa.RecordBatch | None:
        """Takes up to max_rows ended rows (0: all): {id, value, outcome, attempts, error}; None: no results now.

        After `stop` has returned, None means that every accepted row has been drained. Raises InvalidArgument for
        another max_rows, InvalidState after release, AbiError if the plugin answers other rows than were sent.
        """
        drained = self.drain(max_rows)
        return None if drained is None else drained.results

    def drain(self, max_rows: int = 0) -> Drained | None:
        """As `drain_results`, with what the check of the rows has found."""
        self._check_free()
        if not (isinstance(max_rows, SupportsIndex) and 0 <= max_rows < 2**64):
            raise InvalidArgument(f"{self._where}: max_rows={max_rows!r}; pass a whole number, 0 for all")
        return self._drain(max_rows)

    def _drain(self, max_rows: int = 0) -> Drained | None:
        stopped, drains = self._waiters.stopped, self._drains
        drains.append(None)
        try:
            outputs = take_outputs()
            status = self._table.drain_results(self._handle, max_rows, outputs.array, outputs.schema, outputs.error)
            if status == abi.OK:
                shape = self._shapes[outputs.schema[0]]
                return shape.take_drained(outputs, max_rows, self._ledger, len(drains) == 1)
            if status == abi.END:
                self._ended = True
                # Another drain may have taken rows that it has not noted yet.
                if len(drains) == 1 and (lost := named_missing(self._ledger)):
                    raise self._broken(f"drain_results answers END, and {lost}")
            elif status != abi.WOULD_BLOCK:
                raise failure(status, outputs.error, self._where, "drain_results")
            elif stopped:
                raise self._broken("drain_results answers WOULD_BLOCK after stop_runtime")
            give_back(outputs)
            return None
        finally:
            drains.pop()
            hand_on()

    def _broken(self, what: str) -> ArroyoUdfError:
        return contract_broken(self._where, what)

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until results are ready or all have been drained after a stop. False: not within `timeout` seconds.

        Ctrl-C interrupts it.
        """
        self._check_free()
        self._check_seconds("timeout", timeout)
        holds = self._waiters.block(abi.RESULTS, timeout)
        hand_on()
        return holds

    async def wait_async(self) -> None:
        """As `wait`, in the event loop and without a timeout."""
        self._check_free()
        await self._waiters.block_async(abi.RESULTS)
        hand_on()

    async def wait_room_async(self) -> None:
        """Waits until `send_nowait` finds room, or the runtime is stopped."""
        self._check_free()
        await self._waiters.block_async(abi.ROOM)

    async def results(self) -> AsyncIterator[pa.RecordBatch]:
        """All results, as `drain_results` returns them, until the runtime is stopped and all rows are drained."""
        while True:
            await self.wait_async()
            if (results := self.drain_results()) is not None:
                yield results
            elif self._ended:
                return

    def statistics(self) -> Statistics:
        """Counts of rows by place and outcome, and their latency."""
        self._check_alive()
        counters, error = ffi.new("arroyo_udf_statistics *"), new_error()
        counters.size = ffi.sizeof("arroyo_udf_statistics")
        self._call("statistics", counters, error=error)
        if not abi.STATISTICS_SIZE_1 <= counters.size <= ffi.sizeof("arroyo_udf_statistics"):
            raise self._broken(f"statistics fills in {counters.size} bytes")
        return Statistics.from_abi(counters)

    # ---- The end ----

    def cancel(self, first_id: int, rows: int = 1) -> None:
        """Cancels the rows first_id ... first_id + rows - 1 that have not ended: their outcome is cancelled.

        Raises InvalidArgument for ids out of range, InvalidState after release.
        """
        self._check_alive()
        numbers = isinstance(first_id, SupportsIndex) and isinstance(rows, SupportsIndex)
        if not (numbers and 0 <= first_id < 2**64 and 0 <= rows < 2**64):
            raise InvalidArgument(f"{self._where}: {rows} rows from {first_id}; ids are from 0 to 2**64 - 1")
        self._call("cancel", first_id, rows)

    def stop(self, mode: Mode = "drain", deadline: float | None = None) -> bool:
        """Ends the execution and closes the Context. `drain_results` then returns the remaining results.

        mode: "drain" lets accepted rows run until the deadline; "cancel" cancels them now.
        deadline: seconds from now after which running rows are cancelled; None: no deadline, or 1 s with "cancel".
        Returns False if an attempt ignored its cancellation. A second stop returns the same as the first.
        Raises InvalidArgument for another mode or deadline, UserCodeError if the Context's close fails.
        """
        self._check_alive()
        if mode not in tuple(_MODES):
            raise InvalidArgument(f"{self._where}: mode={mode!r}; pass 'drain' or 'cancel'")
        self._check_seconds("deadline", deadline)
        none = _FOREVER_NS if mode == "drain" else _GONE_NS
        limit = none if deadline is None else min(abi.nanoseconds(deadline), _FOREVER_NS)
        self._abandoned |= mode == "cancel"
        status = self._call("stop_runtime", _MODES[mode], limit, expected=(abi.OK, abi.STUCK))
        self._waiters.stopped = True
        return status != abi.STUCK

    async def stop_async(self, mode: Mode = "drain", deadline: float | None = None) -> bool:
        """As `stop`, waiting in another thread while the event loop runs on."""
        return await to_thread(lambda: self.stop(mode, deadline), "arroyo-udf-stop")

    def release(self) -> None:
        """Ends the handle; first stops a running runtime (cancel, 1 s). Results that were not drained are lost."""
        if self._alive.detach():
            _release(self._table, self._handle, self._where, self._waiters)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: _Kind, value: BaseException | None, trace: TracebackType | None) -> None:
        lost = 0
        if kind is None and not self._abandoned and not self._is_called and self._alive.alive:
            lost = missing(self._ledger)
        with contextlib.nullcontext() if kind is None else contextlib.suppress(AbiError):
            self.release()
        if lost:
            raise InvalidState(
                f"{self._where}: left with {lost} rows not drained; first call stop() and drain_results() until it "
                'returns None, or stop("cancel") to give them up'
            )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: _Kind, value: BaseException | None, trace: TracebackType | None) -> None:
        await to_thread(lambda: self.__exit__(kind, value, trace), "arroyo-udf-release")

    def _call(self, slot: str, *arguments: Any, error: Any = None, expected: tuple[int, ...] = (abi.OK,)) -> int:
        error = new_error() if error is None else error
        status: int = getattr(self._table, slot)(self._handle, *arguments, error)
        hand_on()
        if status not in expected:
            raise failure(status, error, self._where, slot)
        return status

    def _check_free(self) -> None:
        self._check_alive()
        if self._is_called:
            raise InvalidState(
                f"{self._where}: this runtime answers `call`, which sends and drains; start another one for rows that"
                " you send yourself",
                abi.INVALID_STATE,
            )

    def _check_alive(self) -> None:
        if not self._alive.alive:
            raise InvalidState(f"{self._where}: the runtime was released; start a new one", abi.INVALID_STATE)


def _release(table: Any, handle: int, where: str, waiters: Waiters) -> None:
    error = new_error()
    status = table.release(handle, error)
    waiters.close()
    hand_on()
    if status >= abi.INVALID_ARGUMENT:
        take_error(error)  # an invalid handle, such as after a fork
    elif status not in (abi.OK, abi.STUCK):
        raise failure(status, error, where, "release")


def _release_forgotten(table: Any, handle: int, where: str, waiters: Waiters) -> None:
    """As _release, in a new thread: garbage collection may run in any thread, even one that the release waits for."""

    def run() -> None:
        with contextlib.suppress(ArroyoUdfError):  # nobody is left to tell
            _release(table, handle, where, waiters)

    with contextlib.suppress(RuntimeError):  # the system has no thread for it: the runtime ends with the process
        threading.Thread(target=run, name=RELEASES, daemon=True).start()
