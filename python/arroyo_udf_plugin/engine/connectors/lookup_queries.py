"""Queries of a lookup, in a thread of their own.

    queries = LookupQueries(table)
    asked = queries.ask(keys)          a Future; whoever asks goes on meanwhile
    asked.result().found
    queries.close()

Guarantees: one connection, and one query at a time, in the order in which they were asked for. There are more queries
for the same keys only if one fails, to find the key for which it does. `close` does not wait for a query.

Assumes: one thread at a time asks and closes. Nobody needs an answer if the process ends first.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from ...errors import InvalidArgument
from .database import WrongValue

Keys = Sequence[pa.Array]


class OpenTable(Protocol):
    """See `lookup_table.OpenLookup`."""

    def rows(self, keys: Keys) -> tuple[pa.RecordBatch, pa.Array]: ...

    def close(self) -> None: ...


class KeyedTable(Protocol):
    """What a lookup asks: see `lookup_table.LookupTable`."""

    @property
    def table(self) -> str: ...

    @property
    def keys(self) -> Mapping[str, str]: ...

    @property
    def key_types(self) -> Sequence[pa.DataType]: ...

    @property
    def columns(self) -> Sequence[str]: ...

    @property
    def schema(self) -> pa.Schema: ...

    def open(self) -> OpenTable: ...


@dataclass(frozen=True)
class FoundRows:
    """Rows of some keys. keys: their places among those that were asked for. rows: of these, in their order.
    counts: how many each has."""

    keys: Sequence[int]
    rows: pa.RecordBatch
    counts: Sequence[int]


@dataclass(frozen=True)
class QueryAnswer:
    """failed: the places of keys that could not be looked up, and why."""

    found: Sequence[FoundRows]
    failed: Mapping[int, str]


class LookupQueries:
    def __init__(self, table: KeyedTable) -> None:
        self._table = table
        self._thread: threading.Thread | None = None
        self._queue: queue.SimpleQueue[tuple[Keys, Future[QueryAnswer]] | None] = queue.SimpleQueue()
        self._is_idle = threading.Event()
        self._is_idle.set()

    def ask(self, keys: Keys) -> Future[QueryAnswer]:
        """keys: as `OpenTable.rows` takes them, each of them once. Raises InvalidArgument."""
        if self._thread is None:
            work = threading.Thread(
                target=self._work, args=(self._table.open(),), daemon=True, name="arroyo-udf-lookup"
            )
            work.start()
            self._thread = work
        asked: Future[QueryAnswer] = Future()
        asked.set_running_or_notify_cancel()  # whoever stops waiting for it does not cancel it
        self._is_idle.clear()
        self._queue.put((keys, asked))
        return asked

    def close(self) -> None:
        """The connection is closed when this returns, or after the query that is under way."""
        self._queue.put(None)
        if self._thread is not None and self._is_idle.is_set():
            self._thread.join()

    def _work(self, opened: OpenTable) -> None:
        with contextlib.closing(opened):
            while self._answer_next(opened):
                pass

    def _answer_next(self, opened: OpenTable) -> bool:
        """False: there is no more. It keeps no answer, which may be large, until the next query."""
        asked = self._queue.get()
        if asked is None:
            return False
        keys, future = asked
        found: list[FoundRows] = []
        failed: dict[int, str] = {}
        try:
            _look_up(opened, keys, range(len(keys[0])), found, failed)
        except BaseException as error:
            self._is_idle.set()
            future.set_exception(error)
        else:
            self._is_idle.set()
            future.set_result(QueryAnswer(found, failed))
        return True


def _look_up(
    opened: OpenTable, keys: Keys, places: Sequence[int], found: list[FoundRows], failed: dict[int, str]
) -> None:
    """Adds what is found for the keys in these places."""
    whole = len(places) == len(keys[0])
    try:
        rows, of = opened.rows(keys if whole else [key.take(pa.array(places, pa.int64())) for key in keys])
    except WrongValue as error:
        if len(places) == 1:
            failed[places[0]] = str(error)
            return
        half = len(places) // 2
        _look_up(opened, keys, places[:half], found, failed)
        _look_up(opened, keys, places[half:], found, failed)
        return
    except InvalidArgument as error:
        failed.update(dict.fromkeys(places, str(error)))
        return
    counts = [0] * len(places)
    for place in of.to_pylist():
        counts[place] += 1
    found.append(FoundRows(places, rows, counts))
