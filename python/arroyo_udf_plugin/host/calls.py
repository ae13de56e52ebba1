"""Calls over one started function, by many tasks of one event loop: `Runtime.call` and `Function.call_async`.

One task drains for all callers. Calls of single rows in one turn of the loop, or while there is no room, are sent
together.

Guarantees: each caller gets the results of its own rows, as soon as they have ended. What a caller passes, and what
becomes of it, touches no other caller. A caller that is cancelled cancels its rows.
"""

from __future__ import annotations

import asyncio
import bisect
import contextlib
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .. import abi
from ..errors import ArroyoUdfError, InvalidState, RowError
from .answers import STEP_ROWS, schema_of, with_refused
from .arguments import Arguments, Piece
from .started import Started

_ALIKE = {bool, int, float, str, bytes}
"""Values of one of these types become the same array alone and together."""


class _Request:
    """Rows with the ids from `first` to before `end`. open: how many have not ended. take: is told of results."""

    def __init__(self, first: int, end: int, open: int, take: Callable[[pa.RecordBatch], None]) -> None:
        self.first = first
        self.end = end
        self.open = open
        self.take = take
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Gets the error of a runtime that has ended before the rows; a result once they have ended."""


class _Row:
    """A row that somebody waits for. id: once it is sent."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values
        self.id: int | None = None
        self.value: asyncio.Future[Any] = asyncio.get_running_loop().create_future()


def _are_alike(values: Sequence[Any]) -> bool:
    kinds = {type(value) for value in values if value is not None}
    return len(values) == 1 or (len(kinds) <= 1 and kinds <= _ALIKE)


def _fail(rows: list[_Row], error: BaseException | None) -> None:
    for row in rows:
        if error is not None and not row.value.done():
            row.value.set_exception(error)


def _values(column: pa.Array) -> list[tuple[Any, str | None]]:
    """Values as Python's, each with why it is none, such as the year 10000."""
    try:
        return [(value, None) for value in column.to_pylist()]
    except Exception:
        return [_value(value) for value in column]


def _value(value: pa.Scalar) -> tuple[Any, str | None]:
    try:
        return value.as_py(), None
    except Exception as error:
        return None, f"its result, {value.type}, is no value of Python: {error}"


class Calls:
    """The callers of one runtime, in the loop that runs."""

    def __init__(self, runtime: Started, where: str, arguments: Arguments, returns: pa.DataType) -> None:
        self.loop = asyncio.get_running_loop()
        self._runtime = runtime
        self._where = where
        self._arguments = arguments
        self._schema = schema_of(returns)
        self._next = 0
        self._open: dict[int, _Request] = {}  # by first id, ascending
        self._waiting: list[_Row] = []
        self._sending = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._drains = False

    # ---- One row ----

    async def call(self, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
        row = _Row(self._arguments.row(given, named))
        self._waiting.append(row)
        if len(self._waiting) == 1:
            self._go(self._send_waiting())
        try:
            return await row.value
        except asyncio.CancelledError:
            if row.id is not None:
                self._cancel(row.id, 1)
            raise

    async def _send_waiting(self) -> None:
        async with self._sending:
            waiting, self._waiting = self._waiting, []
            for rows, piece in self._pieces(waiting):
                await self._send_rows(rows, piece)

    def _pieces(self, rows: list[_Row]) -> Iterator[tuple[list[_Row], Piece]]:
        """The arguments of rows, together if they are alike."""
        for start in range(0, len(rows), STEP_ROWS):
            some = rows[start : start + STEP_ROWS]
            columns = list(zip(*(row.values for row in some), strict=True))
            together = [some] if all(map(_are_alike, columns)) else [[row] for row in some]
            while together:
                group = [row for row in together.pop(0) if not row.value.done()]  # cancelled while others were sent
                if not group:
                    continue
                try:
                    piece = self._arguments.of_rows([row.values for row in group])
                except ArroyoUdfError as error:
                    if len(group) > 1:  # one of them
                        together = [[row] for row in group]
                    else:
                        group[0].value.set_exception(error)
                else:
                    yield group, piece

    async def _send_rows(self, rows: list[_Row], piece: Piece) -> None:
        first = self._next

        def take(results: pa.RecordBatch) -> None:
            columns = (results.column(name).to_pylist() for name in ("id", "outcome", "error"))
            for id, outcome, error, (value, why) in zip(*columns, _values(results.column("value")), strict=True):
                future = rows[id - first].value
                if future.done():  # cancelled
                    continue
                if outcome == abi.VALUE and why is None:
                    future.set_result(value)
                else:
                    future.set_exception(self._failed(id, error if outcome != abi.VALUE else why))

        for number, row in enumerate(rows):
            row.id = first + number
        for number, why in piece.refused.items():
            if not rows[number].value.done():
                rows[number].value.set_exception(self._failed(first + number, why))
        try:
            request = await self._send(piece, take)
        except Exception as error:  # the runtime was stopped, for example
            _fail(rows, error)
        else:
            request.ended.add_done_callback(lambda ended: _fail(rows, ended.exception()))
            for row in rows:
                if row.value.cancelled() and row.id is not None:  # maybe before the runtime knew it
                    self._cancel(row.id, 1)

    def _failed(self, id: int, text: str | None) -> RowError:
        prefix = f"{self._where}, row {id}: "
        text = (text or "no text").removeprefix(prefix)
        return RowError(prefix + text, {id: text})

    # ---- Columns ----

    async def run(self, pieces: Sequence[Piece]) -> pa.Table:
        """The results of all rows, in order. Ids count from 0; the texts of errors do not name their rows."""
        steps = [piece.slice(at, STEP_ROWS) for piece in pieces for at in range(0, piece.n_rows, STEP_ROWS)]
        tasks = [asyncio.ensure_future(self._answered(step)) for step in steps]
        try:
            answered = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        table = pa.Table.from_batches(answered, self._schema)
        return table.set_column(0, self._schema.field("id"), pa.array(range(len(table)), pa.uint64()))

    async def _answered(self, piece: Piece) -> pa.RecordBatch:
        parts: list[pa.RecordBatch] = []
        async with self._sending:
            request = await self._send(piece, parts.append)
        try:
            await request.ended
        except asyncio.CancelledError:
            self._cancel(request.first, piece.n_rows)
            raise
        table = pa.Table.from_batches([part.select(self._schema.names) for part in parts], self._schema)
        (results,) = table.sort_by("id").combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], self._schema)]
        at = self._schema.get_field_index("error")
        failed = pc.indices_nonzero(pc.is_valid(results.column(at)))
        if len(failed):
            texts = results.column(at).to_pylist()
            ids = results.column(0).to_pylist()
            for row in failed.to_pylist():
                texts[row] = texts[row].removeprefix(f"{self._where}, row {ids[row]}: ")
            results = results.set_column(at, self._schema.field(at), pa.array(texts, pa.utf8()))
        if piece.refused:
            results = with_refused(results, piece.kept(), piece.refused, self._schema, request.first)
        return results

    # ---- The runtime ----

    async def _send(self, piece: Piece, take: Callable[[pa.RecordBatch], None]) -> _Request:
        """Sends the rows that are not refused. The caller has the lock."""
        first = self._next
        self._next += piece.n_rows
        request = _Request(first, self._next, piece.n_rows - len(piece.refused), take)
        if not request.open:
            request.ended.set_result(None)
            return request
        self._open[first] = request
        try:
            runs = ((first + row, arrays) for row, arrays in piece.runs())
            for exported in self._runtime._exported(runs):
                if not self._drains:
                    self._drains = True
                    self._go(self._drain())
                await self._runtime._send_exported(*exported)
        except BaseException:
            self._open.pop(first, None)
            self._cancel(first, piece.n_rows)
            raise
        return request

    async def _drain(self) -> None:
        try:
            while self._open:
                await self._runtime._waiters.block_async(abi.RESULTS)
                drained = self._runtime._drain()
                if drained is not None:
                    self._hand_out(drained.results)
                elif self._runtime._ended:
                    raise InvalidState(f"{self._where}: the runtime was stopped before these rows ended")
        except Exception as error:  # released, or a plugin that breaks the contract
            for request in self._open.values():
                if not request.ended.done():
                    request.ended.set_exception(error)
            self._open.clear()
        finally:
            self._drains = False

    def _hand_out(self, results: pa.RecordBatch) -> None:
        firsts, places = list(self._open), dict[int, list[int]]()
        for place, id in enumerate(results.column("id").to_pylist()):
            at = bisect.bisect_right(firsts, id) - 1
            if at >= 0 and id < self._open[firsts[at]].end:  # else its sender has failed
                places.setdefault(firsts[at], []).append(place)
        for first, of in places.items():
            request = self._open[first]
            request.open -= len(of)
            if not request.open:
                del self._open[first]
            try:
                request.take(results if len(of) == results.num_rows else results.take(pa.array(of, pa.int64())))
            except Exception as error:  # concerns no other request
                if not request.ended.done():
                    request.ended.set_exception(error)
            if not request.open and not request.ended.done():
                request.ended.set_result(None)

    def _cancel(self, first: int, rows: int) -> None:
        with contextlib.suppress(ArroyoUdfError):  # it was stopped or released
            self._runtime.cancel(first, rows)

    def _go(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
