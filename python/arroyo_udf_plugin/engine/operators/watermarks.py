"""Event time: how far a slice's rows have come, by a column of theirs.

Times are integers, nanoseconds since 1970 in UTC. A watermark of t says: rows with an earlier event time are late.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument
from ..connectors.cells import CellType, argument, decoded
from ..datafusion.query import Found, Query, Select
from .blocks import Block

_WATERMARK = "watermark"
_PER_UNIT = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_PARSED = [pa.timestamp("us", "UTC"), pa.timestamp("us")]  # of text, with and without a zone


@dataclasses.dataclass(frozen=True)
class Watermark:
    """time: None says that the source is idle, and holds nothing back."""

    time: int | None


@dataclasses.dataclass(frozen=True)
class DriftBound:
    """Rows of some sources wait for each other. sources: their numbers. nanoseconds: of event time, by which one may be
    ahead of the slowest."""

    sources: Collection[int]
    nanoseconds: int


class Lowest:
    """The watermark of several inputs: the lowest of theirs. It never falls.

    An input that is idle or at its end holds nothing back; one that has told nothing yet holds back all. If all of them
    were idle, those that follow are told the watermark again as soon as one is not: it holds again. The end of all of
    them is no idleness: behind it come the last results, which nobody may find late.
    """

    def __init__(self, inputs: int) -> None:
        self._ended: set[int] = set()
        self._times: list[int | None] = [None] * inputs
        self._are_waited_for = [True] * inputs
        self._time: int | None = None
        self._is_idle = False

    def add(self) -> None:
        """A further input. It holds nothing back before it has told something."""
        self._times.append(None)
        self._are_waited_for.append(False)

    def after(self, input: int, time: int | None) -> Watermark | None:
        """What follows from an input's new watermark. None: nothing new."""
        self._times[input], self._are_waited_for[input] = time, time is not None
        times = [time for time, is_one in zip(self._times, self._are_waited_for, strict=True) if is_one]
        if not times:
            self._is_idle = True
            return Watermark(None)
        if None in times:
            return None
        was_idle, self._is_idle = self._is_idle, False
        lowest = min(time for time in times if time is not None)
        if self._time is not None and lowest <= self._time:
            return Watermark(self._time) if was_idle else None
        self._time = lowest
        return Watermark(lowest)

    def end(self, input: int) -> Watermark | None:
        """What follows from the end of an input. None: nothing new."""
        self._ended.add(input)
        return None if len(self._ended) == len(self._times) else self.after(input, None)


class EventClock:
    """The watermarks of a slice: the latest event time so far, less the lateness.

    A row without event time (null, a cell that is no time, an expression that fails) passes and changes nothing. A
    watermark never falls. Times without a zone are UTC.
    """

    def __init__(
        self,
        schema: pa.Schema,
        column: str,
        lateness: int = 0,
        computed: Mapping[str, str] | None = None,
        watermark: str | None = None,
    ) -> None:
        """schema: of the blocks. lateness: nanoseconds by which rows may come after rows with later event times.
        computed: expressions by name, if the column is not one of the blocks but of these. watermark: an expression
        over these, or over the blocks' columns, that has the place of the column.

        Raises InvalidArgument for a column that is not there or cannot be a time, and for expressions that are wrong.
        """
        self._queries = _queries(schema, computed or {}, watermark)
        if self._queries:
            schema, column = self._queries[-1].schema, column if watermark is None else _WATERMARK
        places = schema.get_all_field_indices(column)
        if len(places) != 1:
            count = f"{len(places)} columns" if places else "no column"
            raise InvalidArgument(f"event time: there is {count} {column!r} among {', '.join(schema.names)}")
        self._place = places[0]
        type_ = schema.field(self._place).type
        if not (isinstance(type_, CellType) or pa.types.is_timestamp(type_) or pa.types.is_date(type_)):
            what = f"column {column!r}" if watermark is None else f"the watermark {watermark}"
            raise InvalidArgument(
                f"event time: {what} is {type_}; name a column of timestamps, dates, or text that has them"
            )
        self._text = column if isinstance(type_, CellType) else None
        self._fields = [pa.field(column, type_) for type_ in _PARSED]
        self._lateness = lateness
        self.time: int | None = None
        """The latest watermark; None: there was no event time yet."""

    @property
    def is_text(self) -> bool:
        """Whether each cell must be parsed."""
        return self._text is not None

    def check_text(self, block: Block) -> None:
        """Raises InvalidArgument if the column is text, and none of its cells in these rows is a time."""
        for rows in _answers(self._queries, block.rows) if self._text is not None else ():
            cells = decoded(rows.column(self._place)).drop_null()
            if len(cells) and self._latest(rows) is None:
                raise InvalidArgument(
                    f"event time: column {self._text!r} is text, and none of its first {len(cells):,} cells is a time, "
                    f"such as {cells[0].as_py()!r}: name another column"
                )

    def after(self, block: Block) -> int | None:
        """The watermark after these rows, if it rises."""
        times = [time for rows in _answers(self._queries, block.rows) if (time := self._latest(rows)) is not None]
        if not times:
            return None
        time = max(times) - self._lateness
        if self.time is not None and time <= self.time:
            return None
        self.time = time
        return self.time

    def _latest(self, rows: pa.RecordBatch) -> int | None:
        column = rows.column(self._place)
        if isinstance(column.type, CellType):
            parsed = [argument(column, field).array.view(pa.int64()) for field in self._fields]
            column = pc.coalesce(*parsed).cast(_PARSED[1])
        elif pa.types.is_date(column.type):
            column = column.cast(pa.timestamp("ms"))
        latest = pc.max(column.view(pa.int64())).as_py()
        return None if latest is None else latest * _PER_UNIT[column.type.unit]

    def restore(self, times: Sequence[int | None]) -> None:
        """Goes on where slices have been whose latest watermarks were these: no row of any of them is late by it."""
        self.time = _common(times)


def _common(times: Sequence[int | None]) -> int | None:
    known = [time for time in times if time is not None]
    return min(known) if known and len(known) == len(times) else None


class StillTime(EventClock):
    """Watermarks that stay where they were, whatever rows come again."""

    def __init__(self) -> None:
        self.time = None

    def after(self, block: Block) -> int | None:
        return None


def _queries(schema: pa.Schema, computed: Mapping[str, str], watermark: str | None) -> list[Query]:
    """One behind the other. None: the columns are those of the blocks."""
    queries = []
    for items in (computed, {} if watermark is None else {_WATERMARK: watermark}):
        if items:
            queries.append(Query(Select(items), schema))
            schema = queries[-1].schema
    return queries


def _answers(queries: Sequence[Query], rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Without the rows that cannot be computed: they change no watermark."""
    if not queries:
        yield rows
        return
    for answer in queries[0].run(rows):
        if isinstance(answer, Found):
            yield from _answers(queries[1:], answer.rows)


class SliceTime:
    """The watermark of a slice: the lowest of the partitions that it reads side by side.

    What its methods return is new, or None. Partitions that are idle, or have ended, hold nothing back.
    time: the latest; None: there was none yet.
    """

    def __init__(self, inputs: Sequence[EventClock], watermarks: Sequence[int | None] = ()) -> None:
        """inputs: of the partitions. watermarks: of all slices before a restart; none: it begins."""
        self._inputs, self._lowest = list(inputs), Lowest(len(inputs))
        for clock in inputs:
            clock.restore(watermarks)
        self._idle: set[int] = set()
        self.time = _common(watermarks)

    def add(self, clock: EventClock) -> None:
        """A further partition. It begins where the slice is."""
        clock.restore([self.time])
        self._idle.add(len(self._inputs))
        self._inputs.append(clock)
        self._lowest.add()

    def of(self, input: int) -> int | None:
        """The watermark of a partition; None: there was none yet."""
        return self._inputs[input].time

    def after(self, input: int, block: Block) -> Watermark | None:
        """Rows of a partition have come."""
        if self._inputs[input].after(block) is None and input not in self._idle:
            return None
        self._idle.discard(input)
        return self._told(self._lowest.after(input, self.of(input)))

    def after_idleness(self, input: int) -> Watermark | None:
        """Nothing has come from a partition for a while."""
        self._idle.add(input)
        return self._told(self._lowest.after(input, None))

    def after_end(self, input: int) -> Watermark | None:
        """A partition has been read."""
        return self._told(self._lowest.end(input))

    def follow(self, time: int | None) -> Watermark | None:
        """Of a slice that reads one partition at a time, and has none: the watermark of others."""
        if time is None or (self.time is not None and time <= self.time):
            return None
        self._inputs[0].restore([time])
        return self._told(self._lowest.after(0, time))

    def _told(self, lowest: Watermark | None) -> Watermark | None:
        if lowest is not None and lowest.time is not None:
            self.time = lowest.time
        return lowest
