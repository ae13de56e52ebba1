"""A table as it is read: in pages by its key, again every so often; or as a whole, without a key.

Guarantees: reading never blocks the event loop. With a key, a database that goes away is waited for, and reading goes
on behind the last row. A page is a query of its own, so no lock and no snapshot stays while rows wait for those that
follow.

Assumes: rows are not changed in the columns of the key, unless `updated_at` rises with that.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Callable, Generator
from functools import partial
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument, Unreachable
from .database import ReadDatabase, Transaction
from .interface import Json
from .interrupt import Interrupt
from .options import BATCH_ROWS
from .read_ahead import ReadAhead
from .source import Rows
from .table_position import Overlap, TablePosition, key_at, without
from .table_query import Key, Page, TableQuery

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")

PAGE_BYTES, PAGE_ROWS = 32 << 20, 1 << 18  # the largest
_FIRST_WAIT, _LONGEST_WAIT = 0.2, 5.0  # seconds between two tries


class _Stopped(Exception):
    """Nobody wants further rows."""


class _Cancel(Interrupt):
    """Ends a query, too."""

    def __init__(self, database: ReadDatabase) -> None:
        super().__init__()
        self._database, self.is_set = database, False

    def set(self) -> None:
        self.is_set = True
        super().set()
        self._database.cancel()


_BEGIN = TablePosition()


@dataclasses.dataclass(frozen=True)
class _RowsUntil(Rows):
    """until: the position behind them."""

    until: TablePosition = _BEGIN


class _Reading:
    """What both kinds share: a thread that reads."""

    def __init__(self, query: TableQuery, position: TablePosition) -> None:
        self._query, self._position, self._ended = query, position, False
        self._cancel = _Cancel(query.database)
        self._ahead = ReadAhead(self._rows(position), self._cancel)

    def _rows(self, position: TablePosition) -> Generator[Rows, None, None]:
        raise NotImplementedError

    async def read(self) -> Rows | None:
        rows = await self._ahead.next()
        if rows is None:
            self._ended = True
            return None
        assert isinstance(rows, _RowsUntil)
        self._position = rows.until
        return rows

    def position(self) -> Json:
        return {**self._position.json, "end": True} if self._ended else self._position.json

    def close(self) -> None:
        self._ahead.close()
        self._query.database.close()


class WholePartition(_Reading):
    """All rows, in one query. A position is of no use."""

    def _rows(self, position: TablePosition) -> Generator[Rows, None, None]:
        query = self._query
        statement, before = query.everything()
        row = 0
        try:
            with contextlib.closing(query.database.batches(statement)) as batches:
                for batch in batches:
                    found = batch.slice(before)
                    before -= batch.num_rows - found.num_rows
                    rows = query.typed(pa.Table.from_batches([found]))
                    for start in range(0, rows.num_rows, BATCH_ROWS):
                        if self._cancel.is_set:
                            return
                        some = rows.slice(start, BATCH_ROWS)
                        row += some.num_rows
                        yield _RowsUntil(query.name, row - some.num_rows + 1, some, until=TablePosition(row))
        except InvalidArgument as error:
            if self._cancel.is_set:
                return
            error.add_note("A read without a key cannot go on where it was: name one")
            raise


class KeyedPartition(_Reading):
    """every: seconds between two looks for further rows; None: there is one."""

    def __init__(
        self, query: TableQuery, position: TablePosition, every: float | None, overlap: Overlap | None
    ) -> None:
        self._every, self._overlap = every, overlap
        self._page_rows = max(2, BATCH_ROWS)
        super().__init__(query, position)

    def _rows(self, position: TablePosition) -> Generator[Rows, None, None]:
        with contextlib.suppress(_Stopped):
            while True:
                position = yield from self._look(position)
                if self._every is None or self._cancel.wait(self._every):
                    return

    def _look(self, position: TablePosition) -> Generator[Rows, None, TablePosition]:
        """The rows that there are now. Returns the position behind them."""
        query = self._query
        self._ask(query.check)
        known = position.all_known() if self._overlap is not None else set()
        before = position.at if self._overlap is not None else None  # rows up to it may be late
        after = position.since
        while True:
            page = self._next_page(after, before)
            if page.rows.num_rows:
                after = key_at(page.keys, page.rows.num_rows - 1)
                self._page_rows = _page_rows(page)
            late, new = _parted(page, known)
            for some in _batches(late):
                assert self._overlap is not None
                position = position.after_late(some.keys, self._overlap)
                yield self._as_rows(some, position)
            for some in _batches(new):
                position = position.after_new(some.keys, self._overlap)
                yield self._as_rows(some, position)
            if page.is_last:
                return position

    def _next_page(self, after: Key | None, known: Key | None) -> Page:
        query = self._query
        try:
            return self._ask(partial(query.database.run, partial(self._page, after, known), 0))
        except InvalidArgument:
            self._ask(query.check)  # which says it better, if the table has changed
            raise

    def _page(self, after: Key | None, known: Key | None, transaction: Transaction) -> Page:
        return self._query.page(transaction, after, known, self._page_rows)

    def _as_rows(self, page: Page, position: TablePosition) -> Rows:
        return _RowsUntil(self._query.name, position.row - page.rows.num_rows + 1, page.rows, until=position)

    def _ask(self, ask: Callable[[], _Result]) -> _Result:
        """Waits for a database that is away. Raises _Stopped."""
        wait, refused = _FIRST_WAIT, False
        while True:
            if self._cancel.is_set:
                raise _Stopped
            try:
                result = ask()
            except Unreachable as error:
                if self._cancel.is_set:
                    raise _Stopped from None
                is_there = self._is_there()
                if is_there and refused:
                    raise InvalidArgument(str(error)) from error  # it answers, but not this
                if wait == _FIRST_WAIT and not is_there:
                    _log.warning("%s does not answer: %s waits for it: %s", error.service, self._query.name, error)
                refused = is_there
                if self._cancel.wait(wait):
                    raise _Stopped from None
                wait = min(2 * wait, _LONGEST_WAIT)
            else:
                return result

    def _is_there(self) -> bool:
        try:
            self._query.database.run(lambda transaction: transaction.rows("SELECT 1"), 0)
        except Unreachable:
            return False
        return True


def _page_rows(page: Page) -> int:
    """So many that the next page is as large as it may be."""
    n_rows: int = page.rows.num_rows
    bytes_a_row: int = max(1, page.rows.nbytes // n_rows)
    return max(2, min(PAGE_ROWS, 4 * max(n_rows, BATCH_ROWS // 4), PAGE_BYTES // bytes_a_row))


def _parted(page: Page, known: set[Key]) -> tuple[Page, Page]:
    """Late rows that are not known, and new ones."""
    if page.is_new is None:
        return page.slice(0, 0), page
    late, new = page.filter(pc.invert(page.is_new)), page.filter(page.is_new)
    return late.filter(without(late.keys, known)), new


def _batches(page: Page) -> Generator[Page, None, None]:
    for start in range(0, page.rows.num_rows, BATCH_ROWS):
        yield page.slice(start, BATCH_ROWS)
