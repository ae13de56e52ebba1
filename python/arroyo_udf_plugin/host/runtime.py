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
another thread or task.

    runtime = await function.start_async(ordered=False)
    value = await runtime.call(3)       one row of one caller; many tasks may call at once

Otherwise with asyncio: start_async, amap, send_async, wait_async, results, stop_async, `async with`.

Any thread may call any method at any time. A runtime that is garbage-collected is released.
"""

import asyncio
import threading
from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator, Iterable, Iterator
from typing import Any, TypeVar

import pyarrow as pa

from .._native import sends
from ..abi import ffi, new_error
from ..errors import InvalidState
from .answers import Answered, ArgumentRows, Waiting, Window
from .arguments import Arguments, Choose, Piece, as_table
from .batches import Drained, Shapes, contract_broken, failure
from .calls import Calls
from .logs import attach
from .started import KEY_BYTES, Bytes, Started

_LOOK_AGAIN = 0.2  # seconds, because a stop that fails does not wake a plugin that breaks the contract

T = TypeVar("T", bound=ArgumentRows)


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


class Runtime(Started):
    """A started async function. Made by `Function.start`.

    Leaving its `with` block releases it, and first cancels rows that still run. If results would be lost (rows are not
    drained, `stop("cancel")` was not called, and no exception is under way), leaving raises InvalidState.
    """

    _calls: Calls | None = None

    async def call(self, /, *values: Any, **named: Any) -> Any:
        """The result for one row, in the event loop: for many callers at once, such as the requests of a web server.

        values, named: a Python value for each argument. If the task is cancelled, so is its row.
        Start the function with ordered=False: with order, a call also waits for those before it.
        Raises RowError if the row failed, timed out or was cancelled, and `errors` has its id; InvalidArgument for
        values of the wrong number or type. A runtime that answers calls does nothing else: InvalidState is raised by
        `send`, `map` and `drain_results` then, and by `call` once rows were sent otherwise or in another event loop.
        """
        return await self._called().call(values, named)

    def _called(self) -> Calls:
        """Those who call, from now on, in the loop that runs."""
        self._check_alive()
        if self._calls is None:
            if sends(self._ledger):
                raise InvalidState(
                    f"{self._where}: rows were sent to this runtime otherwise; start another one for `call`"
                )
            self._is_called = True
            self._calls = Calls(self, self._where, self._arguments, self._shapes.value)
        if self._calls.loop is not asyncio.get_running_loop():
            raise InvalidState(f"{self._where}: the callers of a runtime are in one event loop; start one for each")
        return self._calls

    def map(
        self,
        batches: Iterable[Any],
        *,
        arguments: Choose | None = None,
        first_id: int = 0,
        stop: bool = True,
        idempotency_keys: Callable[[pa.RecordBatch], Bytes] | None = None,
    ) -> Generator[Answered[pa.RecordBatch], None, None]:
        """Sends batches and yields results beside their rows: pairs (rows, results), two RecordBatches of one length.

        results: as `drain_results` returns them. Rows come in the order of the input, unless the function is unordered.
        batches: tables (RecordBatch, Table, DataFrame), whose columns are found by name and all come back in `rows`;
            or columns; or tuples of columns. One table may stand for all batches.
        arguments: chooses the arguments of a RecordBatch, for tables whose columns have other names:
            `lambda rows: [rows["miles"], rows["minutes"]]`.
        first_id: the id of the first row; ids count on.
        stop: stop at the end. Otherwise more rows can be sent afterwards, with higher ids.
        idempotency_keys: gives the keys of some rows, as `send` has them.
        A row with a value that does not fit the function's type is an error, and is not called. At most a few batches
        are held at a time, fewer if results are large. While it runs, nothing else may send or drain.
        Raises what `send`, `wait` and `stop` raise: UserCodeError, after the last row, if the Context's close fails.
        """
        return self.answers(self._parts(batches, arguments), first_id, stop, idempotency_keys)

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
        table = None if isinstance(batches, pa.RecordBatchReader) else as_table(batches)
        for batch in batches if table is None else [table]:
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
        self,
        parts: Iterable[tuple[T, Piece]],
        first_id: int = 0,
        stop: bool = True,
        keys: Callable[[T], Bytes] | None = None,
    ) -> Generator[Answered[T], None, None]:
        """As `map`, for rows of any kind beside their arguments, which are already read and cast."""
        self._check_free()
        waiting: Waiting[T] = Waiting(self._where, self._shapes.value)
        window = Window(self._at_once)
        stopping: Stop | None = None

        def drained() -> Iterator[Answered[T]]:
            if (part := self.drain(window.step)) is not None:
                window.drained(part.results.num_rows, part.size)
                yield from waiting.answered(part)

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
            self._check_ids(first_id, part.n_rows)
            waiting.add(first_id, rows, part.refused)
            own = None if keys is None else memoryview(keys(rows))
            for first, n_rows, batch in self._exported((first_id + row, arrays) for row, arrays in part.runs()):
                start, end = ((row - first_id) * KEY_BYTES for row in (first, first + n_rows))
                context = self._context(None, None, None if own is None else own[start:end])
                while not self._sent(first, n_rows, batch, context):
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
            yield from drained()  # notes the end, and finds rows that map has not sent

    async def answers_async(
        self, parts: AsyncIterable[tuple[T, Piece]], first_id: int = 0, stop: bool = True
    ) -> AsyncIterator[Answered[T]]:
        """As `amap`, for rows of any kind beside their arguments, which are already read and cast."""
        self._check_free()
        waiting: Waiting[T] = Waiting(self._where, self._shapes.value)
        window = Window(self._at_once)
        # What the two tasks have to tell: results, None (to look again), or why a task has failed.
        messages: asyncio.Queue[Drained | Exception | None] = asyncio.Queue()
        room = asyncio.Event()
        all_sent = False

        async def send() -> None:
            nonlocal all_sent, first_id
            async for whole in parts:
                for rows, part in _cut([whole], window):
                    while waiting.open >= window.rows:
                        room.clear()
                        await room.wait()
                    self._check_ids(first_id, part.n_rows)
                    waiting.add(first_id, rows, part.refused)
                    for exported in self._exported((first_id + row, arrays) for row, arrays in part.runs()):
                        await self._send_exported(*exported)
                    if part.refused:
                        messages.put_nowait(None)
                        await messages.join()  # until they have been yielded
                    first_id += part.n_rows
            all_sent = True
            messages.put_nowait(None)
            if stop:
                await self.stop_async()

        async def drain() -> None:
            while not self._ended:
                await self.wait_async()
                if (drained := self.drain(window.step)) is not None:
                    messages.put_nowait(drained)
                    await messages.join()  # until they have been yielded

        async def telling(work: Any) -> None:
            try:
                await work
            except Exception as error:
                messages.put_nowait(error)

        tasks = [asyncio.create_task(telling(send())), asyncio.create_task(telling(drain()))]
        failed: Exception | None = None
        try:
            while waiting.open or not all_sent:
                try:
                    item = await asyncio.wait_for(messages.get(), None if failed is None else _LOOK_AGAIN)
                except TimeoutError:
                    break
                if isinstance(item, Exception):
                    failed = item
                    if not all_sent:
                        break
                    messages.task_done()  # of the stop: its rows may still come out, and `drain` waits for this
                    continue
                if item is not None:
                    window.drained(item.results.num_rows, item.size)
                for answer in waiting.uncalled() if item is None else waiting.answered(item):
                    yield answer
                messages.task_done()
                room.set()
            await tasks[0] if failed is None else None
            while failed is None and not messages.empty():
                item = messages.get_nowait()
                if isinstance(item, Exception):
                    failed = item
                elif item is not None:
                    list(waiting.answered(item))
            if failed is not None:
                raise failed
            if stop and (drained := self.drain()) is not None:
                list(waiting.answered(drained))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


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
