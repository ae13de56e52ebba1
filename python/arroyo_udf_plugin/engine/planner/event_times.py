"""WATERMARK FOR column AS expression: the event time of a table, and when its windows are over.

The engine takes watermarks from the rows of the source, before any query. So what they need of a table's columns goes
into the event time's description as expressions over those of the source.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa

from ...errors import nearest
from ..connectors.cells import CellType
from ..connectors.table_options import LONGEST_SECONDS, interval_seconds
from ..datafusion.query import Query, Select, WrongQuery
from ..datafusion.tokens import quoted
from ..pipeline.description import EventTime
from .diagnostics import check_meaning, wrong_query
from .expressions import without_queries
from .flow import SOURCE
from .parsing import parsed
from .selects import QueryText, Relation
from .statements import CreateTable, WatermarkClause
from .tables import idle_of
from .text import Text, Tokens, Wrong

_NOWHERE = Relation(None, None, SOURCE, 0)
_NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_DEFAULT_LATENESS = 1.0  # seconds, as Arroyo has them


@dataclass(frozen=True)
class TableTime:
    """The event time of a table.

    expression, type: of its column, over the source's columns. is_computed: it is none of those.
    """

    model: EventTime
    expression: str
    type: pa.DataType
    is_computed: bool


def event_time_of(
    text: Text, table: CreateTable, items: Mapping[str, str], schema: pa.Schema, functions: Collection[str]
) -> TableTime | None:
    """items: the table's columns as expressions of the source's. Raises Wrong."""
    watermark, idle = table.watermark, idle_of(table)
    if watermark is None:
        return None
    name = watermark.column
    generated = {column.name for column in table.columns or () if column.generated}
    is_read = name in schema.names and name not in generated and _may_be_time(schema.field(name).type)
    if name not in items and not is_read:
        raise Wrong(f"there is no column {name} for the event time: {nearest(name, items)}", watermark.at)
    expression = quoted(name) if is_read else items[name]
    (type_,) = Query(Select({name: expression}), schema).schema.types
    if not is_read and not _may_be_time(type_):
        raise Wrong(f"the event time is a TIMESTAMP, and {name} is {type_}: write another column", watermark.at)
    lateness = _lateness(watermark)
    own = {} if is_read else {name: expression}
    if lateness is not None:
        model = EventTime(column=name, lateness=lateness, idle=idle, computed=own)
        return TableTime(model, expression, type_, not is_read)
    part = watermark.expression
    used = items.keys() & {token.name for token in part if token.name}
    if own or any(items[column] != quoted(column) for column in used):
        own |= {column: items[column] for column in items if column in used}
    given = Query(Select(own), schema).schema if own else schema
    watermark_type = type_of(text, part, Select({"watermark": text.cut(part)}), given, functions)
    if not _may_be_time(watermark_type):
        instead = f"write {name} - INTERVAL '5 seconds'"
        raise Wrong(f"a watermark is a TIMESTAMP, and this is {watermark_type}: {instead}", part[0].start)
    model = EventTime(column=name, idle=idle, computed=own, watermark=text.cut(part))
    return TableTime(model, expression, type_, not is_read)


def times_of(table_time: TableTime, schema: pa.Schema) -> dict[str, tuple[int, int]]:
    """The column of event times among those of a table, as of `Node.times`: one with fewer digits than what is read, or
    without its time zone, is another time."""
    name = table_time.model.column
    if name not in schema.names or not _may_be_time(type_ := schema.field(name).type):
        return {}
    zones = [getattr(time_type, "tz", None) for time_type in (table_time.type, type_)]
    if zones[1] is None and zones[0] not in (None, "UTC"):
        return {}
    read, shown = _step(table_time.type), _step(type_)
    return {name: (-shown, shown) if shown > read else (0, 0)}


def _step(type_: pa.DataType) -> int:
    """The nanoseconds from one time to the next."""
    if isinstance(type_, CellType):
        return 1
    return 86_400_000_000_000 if pa.types.is_date(type_) else _NANOSECONDS[type_.unit]


def type_of(text: Text, part: Tokens, select: Select, schema: pa.Schema, functions: Collection[str]) -> pa.DataType:
    """The type of an expression of CREATE TABLE, the only item. Raises Wrong."""
    expression = parsed(part)
    without_queries([expression])
    check_meaning(text, [expression])
    for call in expression.calls_of(functions):
        raise Wrong(f"CREATE TABLE cannot call {call.name}, a function of a plugin: call it in a view", call.start)
    try:
        (type_,) = Query(select, schema).schema.types
    except WrongQuery as error:
        raise wrong_query(error, part, QueryText((), {}, (), _NOWHERE, (), part[0].start), schema, functions) from None
    return type_


def _may_be_time(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_) or pa.types.is_date(type_) or isinstance(type_, CellType))


def _lateness(watermark: WatermarkClause) -> float | None:
    """The seconds of `column - INTERVAL '5 seconds'`. None: it is another expression."""
    part = list(watermark.expression)
    if not part:
        return _DEFAULT_LATENESS
    if [token.name for token in part] == [watermark.column]:
        return 0.0
    texts = [token.word or token.text for token in part[:3]]
    if part[0].name != watermark.column or texts[1:] != ["-", "interval"] or len(part) not in (4, 5):
        return None
    unit = part[4].word if len(part) == 5 else ""
    try:
        seconds = interval_seconds(f"{part[3].value} {unit}".strip())
    except ValueError:
        return None
    if seconds > LONGEST_SECONDS:
        raise Wrong(
            f"a watermark is no more than {LONGEST_SECONDS} seconds late: write a shorter interval", part[2].start
        )
    return seconds if seconds >= 0 else None
