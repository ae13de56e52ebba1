"""Event times of rows, by a column or an expression, and the watermarks that follow from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument
from ..connectors.cells import CellType, argument, decoded
from ..datafusion.query import Found, Query, Select
from .blocks import Block
from .watermarks import in_common

_WATERMARK = "watermark"
_PER_UNIT = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_PARSED = [pa.timestamp("us", "UTC"), pa.timestamp("us")]  # of text, with and without a zone


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
        self.time = in_common(times)


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
