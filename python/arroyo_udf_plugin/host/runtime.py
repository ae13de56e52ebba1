"""A started async function: send batches of rows, drain results.

    with function.start() as runtime:
        for rows, results in runtime.map(batches):      sends, drains and stops; results beside their rows
            ...

    with function.start() as runtime:
        runtime.send(0, array)          row ids 0, 1, 2, ... ; waits for room
        runtime.wait()                  until results are ready
        runtime.drain_results()         RecordBatch {id, value, outcome, attempts, error}, or None
        runtime.stop()                  accepted rows run to their end; then drain until None

Held rows (waiting, running, or not drained) are limited. To send more rows than the limit, use `map`, or drain in
another thread or task. With asyncio: start_async, amap, send_async, wait_async, results, stop_async, `async with`.

Any thread may call any method at any time. A runtime that is garbage-collected is released.
"""

import asyncio
import contextlib
import itertools
import threading
import time
import weakref
from collections.abc import AsyncIterable, AsyncIterator, Generator, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

import pyarrow as pa

from .. import abi
from .._native import begin_send, end_send, ledger, missing, named_missing, sends
from ..abi import ffi, new_error, take_error
from ..errors import AbiError, ArroyoUdfError, InvalidArgument, InvalidState, WouldBlock
from .answers import Answered, Rows, Waiting, Window
from .arguments import Arguments, Choose, Piece, as_table
from .batches import (
    Shapes,
    array_pointer,
    contract_broken,
    failure,
    free_batch,
    give_back,
    take_outputs,
    taken,
)
from .logs import attach, hand_on
from .statistics import Statistics
from .waiters import Waiters

_Kind = type[BaseException] | None

_FOREVER_NS = 2**63 - 1
_NO_CONTEXT = ffi.NULL, None
_MODES = {"drain": abi.DRAIN, "cancel": abi.CANCEL}
_GONE_NS = 1_000_000_000
RELEASES = "arroyo-udf-release"
_MOST_REFUSALS = 100  # of one send, although there was room before each try and nothing else was sent
_LOOK_AGAIN = 0.2  # seconds, because a stop that fails does not wake a plugin that breaks the contract

Mode = Literal["drain", "cancel"]
T = TypeVar("T", bound=Rows)


def start(
    table: Any,
    where: str,
    number: int,
    options: Any,
    arguments: Arguments,
    shapes: Shapes,
    ordered: bool,
    at_once: int,
) -> "Runtime":
    """Starts function `number` of a plugin's table; `Function.start` calls this. Raises ArroyoUdfError by status."""
    handle, error = ffi.new("arroyo_udf_handle *"), new_error()
    status = table.start(number, options, handle, error)
    if status:
        raise failure(status, error, where, "start")
    if not handle[0]:
        raise contract_broken(where, "start answers OK and the handle 0")
    attach(table, handle[0])
    return Runtime(table, where, handle[0], arguments, shapes, ordered, at_once)


class Runtime:
    """A started async function. Made by `Function.start`.

    Leaving its `with` block releases it, and first cancels rows that still run. If results would be lost (rows are not
    drained, `stop("cancel")` was not called, and no exception is under way), leaving raises InvalidState.
    """

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
        self._waiters = Waiters(table, handle, where)
        self._alive = weakref.finalize(self, _release_forgotten, table, handle, where, self._waiters)
        self._alive.atexit = False  # at exit the core stops all runtimes

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
    ) -> None:
        """Sends rows with the ids first_id, first_id + 1, ...; waits for room.

        first_id: above all ids sent before. arrays: as in calls of the function, but not by keyword. Chunked arrays are
            sent chunk by chunk.
        timeout: seconds to wait for room. Then it raises WouldBlock and has sent nothing: chunks are combined.
        deadline: seconds from the moment when the rows are accepted, for each row with all its attempts; the start's
            own deadline counts if it is earlier.
        trace_parent: a W3C traceparent, which the calls for these rows can read.
        Raises InvalidArgument for wrong arrays, ids, deadlines and trace parents, InvalidState after stop or release.
        It also raises InvalidArgument for a value that does not fit the function's type. Nothing of this batch is
        accepted then, because the plugin answers every accepted row, and this one would never get there. `map` answers
        such rows as errors.
        """
        end = None if timeout is None else time.monotonic() + timeout
        context = self._context(deadline, trace_parent)
        for first, n_rows, batch in self._batches(first_id, arrays, whole=timeout is not None):
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
    ) -> None:
        """As `send`, waiting in the event loop."""
        context = self._context(deadline, trace_parent)
        try:
            async with asyncio.timeout(timeout):
                for first, n_rows, batch in self._batches(first_id, arrays, whole=timeout is not None):
                    await self._send_exported(first, n_rows, batch, context)
        except TimeoutError:
            raise self._would_block(timeout) from None

    def send_nowait(
        self, first_id: int, *arrays: Any, deadline: float | None = None, trace_parent: str | None = None
    ) -> None:
        """As `send`, but without room it raises WouldBlock and sends nothing. Chunks are combined."""
        self._check_alive()
        context = self._context(deadline, trace_parent)
        if self._full and not self._waiters.holds(abi.ROOM):
            raise self._would_block()  # saves the export of the batch
        for first, n_rows, batch in self._batches(first_id, arrays, whole=True):
            if not self._sent(first, n_rows, batch, context):
                raise self._would_block()

    def _would_block(self, timeout: float | None = None) -> WouldBlock:
        after = "" if timeout is None else f" after {timeout:g} s"
        return WouldBlock(f"{self._where}: has no room{after}; drain, and wait for room", abi.WOULD_BLOCK)

    async def _send_exported(
        self, first: int, n_rows: int, batch: list[int], context: tuple[Any, Any] = _NO_CONTEXT
    ) -> None:
        refusals = 0, sends(self._ledger)
        while not self._sent(first, n_rows, batch, context):
            refusals = self._refused(*refusals)
            await self._waiters.block_async(abi.ROOM)

    def _batches(self, first_id: int, given: Sequence[Any], whole: bool) -> Iterator[tuple[int, int, list[int]]]:
        """The caller's rows, exported; see `_exported`."""
        self._check_alive()
        if self._arguments.fit(given):
            return self._exported([(first_id, given)])
        pieces, _ = self._arguments.pieces(given, whole=whole)
        starts = itertools.accumulate((piece.n_rows for piece in pieces), initial=first_id)
        placed = list(zip(starts, pieces, strict=False))
        refused = {first + row: why for first, piece in placed for row, why in piece.refused.items()}
        if refused:
            row, why = next(iter(refused.items()))
            others = f" (and {len(refused) - 1} more rows)" if len(refused) > 1 else ""
            raise InvalidArgument(
                f"{self._where}, row {row}: {why}{others}; nothing was sent: leave such rows out, or use map, which "
                "answers them as errors"
            )
        return self._exported((first, piece.arrays) for first, piece in placed)

    def _exported(self, runs: Iterable[tuple[int, Sequence[pa.Array]]]) -> Iterator[tuple[int, int, list[int]]]:
        """Yields native batches, each as its first id, its number of rows, and a list with its address. A batch that is
        still in its list when the next is requested, or at the end, is freed."""
        for first_id, arrays in runs:
            n_rows = len(arrays[0])
            end = first_id + n_rows
            if not 0 <= first_id <= end <= 2**64:
                raise InvalidArgument(f"{self._where}: row ids are from 0 to 2**64 - 1, not {first_id} to {end - 1}")
            batch = [self._arguments.export(arrays)]
            try:
                yield first_id, n_rows, batch
            finally:
                if batch:
                    free_batch(batch[0])

    def _context(self, deadline: float | None, trace_parent: str | None) -> tuple[Any, Any]:
        """The context of a batch for `send`, NULL if it says nothing; and what must live as long."""
        if deadline is None and trace_parent is None:
            return _NO_CONTEXT
        if deadline is not None and not deadline >= 0:
            raise InvalidArgument(f"{self._where}: deadline={deadline!r}; pass seconds from now, or None")
        if trace_parent is not None and not (trace_parent.isascii() and trace_parent.isprintable()):
            raise InvalidArgument(
                f"{self._where}: trace_parent={trace_parent!r}; pass visible ASCII characters, or None"
            )
        context = ffi.new("arroyo_udf_batch_context *", {"size": ffi.sizeof("arroyo_udf_batch_context")})
        if deadline is not None:
            context.deadline_ns = min(max(1, abi.nanoseconds(deadline)), abi.FOREVER_NS)  # 0 is no deadline
        if trace_parent is None:
            return context, None
        text = ffi.new("char[]", trace_parent.encode())
        context.trace_parent = text
        return context, text

    def _sent(self, first_id: int, n_rows: int, batch: list[int], context: tuple[Any, Any] = _NO_CONTEXT) -> bool:
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
        self._check_alive()
        if not 0 <= max_rows < 2**64:
            raise InvalidArgument(f"{self._where}: max_rows={max_rows!r}; pass a whole number, 0 for all")
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
        self._check_alive()
        holds = self._waiters.block(abi.RESULTS, timeout)
        hand_on()
        return holds

    async def wait_async(self) -> None:
        """As `wait`, in the event loop and without a timeout."""
        self._check_alive()
        await self._waiters.block_async(abi.RESULTS)
        hand_on()

    async def results(self) -> AsyncIterator[pa.RecordBatch]:
        """All results, as `drain_results` returns them, until the runtime is stopped and all rows are drained."""
        while True:
            await self.wait_async()
            if (results := self.drain_results()) is not None:
                yield results
            elif self._ended:
                return

    # ---- Rows in, results out ----

    def map(
        self, batches: Iterable[Any], *, arguments: Choose | None = None, first_id: int = 0, stop: bool = True
    ) -> Generator[Answered[pa.RecordBatch], None, None]:
        """Sends batches and yields results beside their rows: pairs (rows, results), two RecordBatches of one length.

        results: as `drain_results` returns them. Rows come in the order of the input, unless the function is unordered.
        batches: tables (RecordBatch, Table, DataFrame), whose columns are found by name and all come back in `rows`;
            or columns; or tuples of columns. One table may stand for all batches.
        arguments: chooses the arguments of a RecordBatch, for tables whose columns have other names:
            `lambda rows: [rows["miles"], rows["minutes"]]`.
        first_id: the id of the first row; ids count on.
        stop: stop at the end. Otherwise more rows can be sent afterwards, with higher ids.
        A row with a value that does not fit the function's type is an error, and is not called. At most a few batches
        are held at a time, fewer if results are large. While it runs, nothing else may send or drain.
        Raises what `send`, `wait` and `stop` raise: UserCodeError, after the last row, if the Context's close fails.
        """
        return self.answers(self._parts(batches, arguments), first_id, stop)

    def amap(
        self,
        batches: Iterable[Any] | AsyncIterable[Any],
        *,
        arguments: Choose | None = None,
        first_id: int = 0,
        stop: bool = True,
    ) -> AsyncIterator[Answered[pa.RecordBatch]]:
        """As `map`, in the event loop. Results come out also while it waits for the next of the batches."""
        return self.answers_async(self._parts_async(batches, arguments), first_id, stop)

    def _parts(self, batches: Iterable[Any], choose: Choose | None) -> Iterator[tuple[pa.RecordBatch, Piece]]:
        one = None if isinstance(batches, pa.RecordBatchReader) else as_table(batches)
        for batch in batches if one is None else [one]:
            yield from self._arguments.parts(batch, choose)

    async def _parts_async(
        self, batches: Iterable[Any] | AsyncIterable[Any], choose: Choose | None
    ) -> AsyncIterator[tuple[pa.RecordBatch, Piece]]:
        if not isinstance(batches, AsyncIterable):
            for part in self._parts(batches, choose):
                yield part
            return
        async for batch in batches:
            for part in self._arguments.parts(batch, choose):
                yield part

    def answers(
        self, parts: Iterable[tuple[T, Piece]], first_id: int = 0, stop: bool = True
    ) -> Generator[Answered[T], None, None]:
        """As `map`, for rows of any kind with arguments that have passed the door."""
        self._check_alive()
        waiting: Waiting[T] = Waiting(self._where, self._shapes.value, self._ordered)
        window = Window(self._at_once)
        stopping: Stop | None = None

        def drained() -> Iterator[Answered[T]]:
            if (results := self.drain_results(window.step)) is not None:
                window.drained(results.num_rows, results.nbytes)
                yield from waiting.answered(results)

        def awaited() -> Iterator[Answered[T]]:
            while not self.wait(_LOOK_AGAIN):
                if stopping is not None:
                    stopping.check()
            before = waiting.open
            yield from drained()
            if waiting.open == before:
                raise self._broken("wait answers OK, and drain_results has no results")

        for rows, part in _cut(parts, window):
            while waiting.open >= window.rows:
                yield from awaited()
            waiting.add(first_id, rows, part.refused)
            for first, n_rows, batch in self._exported((first_id + row, arrays) for row, arrays in part.runs()):
                while not self._sent(first, n_rows, batch):
                    yield from awaited()
            yield from waiting.uncalled()
            yield from drained()
            first_id += part.n_rows
        if stop:  # while rows still run: a plugin that has lost rows then says so, or breaks the contract
            stopping = Stop(self)
        while waiting.open:
            yield from awaited()
        if stopping is not None:
            stopping.join()
            self.drain_results()

    async def answers_async(
        self, parts: AsyncIterable[tuple[T, Piece]], first_id: int = 0, stop: bool = True
    ) -> AsyncIterator[Answered[T]]:
        """As `amap`, for rows of any kind with arguments that have passed the door."""
        self._check_alive()
        waiting: Waiting[T] = Waiting(self._where, self._shapes.value, self._ordered)
        window = Window(self._at_once)
        # What the two tasks have to tell: results, None (to look again), or why a task has failed.
        told: asyncio.Queue[pa.RecordBatch | Exception | None] = asyncio.Queue()
        room = asyncio.Event()
        all_sent = False

        async def send() -> None:
            nonlocal all_sent, first_id
            async for whole in parts:
                for rows, part in _cut([whole], window):
                    while waiting.open >= window.rows:
                        room.clear()
                        await room.wait()
                    waiting.add(first_id, rows, part.refused)
                    for exported in self._exported((first_id + row, arrays) for row, arrays in part.runs()):
                        await self._send_exported(*exported)
                    if part.refused:
                        told.put_nowait(None)
                    first_id += part.n_rows
            all_sent = True
            told.put_nowait(None)
            if stop:
                await self.stop_async()

        async def drain() -> None:
            while not self._ended:
                await self.wait_async()
                if (results := self.drain_results(window.step)) is not None:
                    told.put_nowait(results)
                    await told.join()  # until they have been yielded

        async def telling(work: Any) -> None:
            try:
                await work
            except Exception as error:
                told.put_nowait(error)

        tasks = [asyncio.create_task(telling(send())), asyncio.create_task(telling(drain()))]
        failed: Exception | None = None
        try:
            while waiting.open or not all_sent:
                try:
                    item = await asyncio.wait_for(told.get(), None if failed is None else _LOOK_AGAIN)
                except TimeoutError:
                    break
                if isinstance(item, Exception):
                    failed = item
                    if not all_sent:
                        break
                    continue  # of the stop, whose rows may still come out
                if item is not None:
                    window.drained(item.num_rows, item.nbytes)
                for answer in waiting.uncalled() if item is None else waiting.answered(item):
                    yield answer
                told.task_done()
                room.set()
            await tasks[0] if failed is None else None
            while failed is None and not told.empty():
                item = told.get_nowait()
                failed = item if isinstance(item, Exception) else None
            if failed is not None:
                raise failed
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

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
        if not (0 <= first_id < 2**64 and 0 <= rows < 2**64):
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
        if mode not in _MODES:
            raise InvalidArgument(f"{self._where}: mode={mode!r}; pass 'drain' or 'cancel'")
        if deadline is not None and not deadline >= 0:
            raise InvalidArgument(f"{self._where}: deadline={deadline!r}; pass seconds from now, or None")
        none = _FOREVER_NS if mode == "drain" else _GONE_NS
        limit = none if deadline is None else min(abi.nanoseconds(deadline), _FOREVER_NS)
        self._abandoned |= mode == "cancel"
        status = self._call("stop_runtime", _MODES[mode], limit, expected=(abi.OK, abi.STUCK))
        self._waiters.stopped = True
        return status != abi.STUCK

    async def stop_async(self, mode: Mode = "drain", deadline: float | None = None) -> bool:
        """As `stop`, waiting in another thread while the event loop runs on."""
        return await asyncio.to_thread(self.stop, mode, deadline)

    def release(self) -> None:
        """Ends the handle; first stops a running runtime (cancel, 1 s). Results that were not drained are lost."""
        if self._alive.detach():
            _release(self._table, self._handle, self._where, self._waiters)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: _Kind, value: BaseException | None, trace: TracebackType | None) -> None:
        lost = 0
        if kind is None and not self._abandoned and self._alive.alive:
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
        await asyncio.to_thread(self.__exit__, kind, value, trace)

    def _call(self, slot: str, *arguments: Any, error: Any = None, expected: tuple[int, ...] = (abi.OK,)) -> int:
        error = new_error() if error is None else error
        status: int = getattr(self._table, slot)(self._handle, *arguments, error)
        hand_on()
        if status not in expected:
            raise failure(status, error, self._where, slot)
        return status

    def _check_alive(self) -> None:
        if not self._alive.alive:
            raise InvalidState(f"{self._where}: the runtime was released; start a new one", abi.INVALID_STATE)


class Stop:
    """A stop in a thread of its own, because rows are drained meanwhile, and Ctrl-C must end this one."""

    def __init__(self, runtime: Runtime) -> None:
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(runtime,), name="arroyo-udf-stop", daemon=True)
        self._thread.start()

    def _run(self, runtime: Runtime) -> None:
        try:
            runtime.stop()
        except Exception as error:
            self._error = error

    def join(self) -> None:
        """Waits for the end. Raises the error of the stop."""
        self._thread.join()
        self.check()

    def check(self) -> None:
        """Raises the error of the stop, if it has ended with one."""
        if self._error is not None:
            raise self._error


def _cut(parts: Iterable[tuple[T, Piece]], window: Window) -> Iterator[tuple[T, Piece]]:
    """The parts in steps of the window's size."""
    for rows, piece in parts:
        start = 0
        while start < piece.n_rows:
            length = window.step
            whole = not start and length >= piece.n_rows
            yield (rows, piece) if whole else (rows.slice(start, length), piece.slice(start, length))
            start += length


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

    threading.Thread(target=run, name=RELEASES, daemon=True).start()
