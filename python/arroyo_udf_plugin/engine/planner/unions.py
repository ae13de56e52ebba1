"""UNION ALL: the rows of several queries, by the position of their columns. Names are the first's.

Where types differ, they become what DataFusion makes of them, but only from number to number, text to text and time to
time.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ..connectors.cells import CellType
from ..connectors.schemas import without_views
from ..datafusion.feed import context
from ..datafusion.query import Select
from ..datafusion.tokens import quoted
from .column_types import cast_to
from .flow import TIME, Flow, Node
from .text import Wrong


def united(flow: Flow, nodes: Sequence[Node], places: Sequence[int], name: str) -> Node:
    """places: where each query is. Raises Wrong."""
    first = nodes[0]
    for node, at in zip(nodes[1:], places[1:], strict=True):
        if len(node.names) != len(first.names):
            counts = f"{len(node.names)} columns, and the first one {len(first.names)}"
            raise Wrong(f"this SELECT has {counts}: {', '.join(first.names)}", at)
    has_time = all(TIME in node.schema.names for node in nodes)
    types = [common_type([_type(node, column) for node in nodes]) for column in range(len(first.names))]
    inputs = []
    for node, at in zip(nodes, places, strict=True):
        items = {}
        for column, (wanted, own) in enumerate(zip(first.names, node.names, strict=True)):
            given, type_ = _type(node, column), types[column]
            text = None if type_ is None else cast_to(quoted(own), given, type_)
            text = quoted(own) if pa.types.is_null(given) else text
            if text is None:
                raise _unlike(nodes, places, column)
            items[wanted] = text
        if has_time:
            items[TIME] = quoted(TIME)
        own_items = [quoted(column) for column in node.schema.names]
        inputs.append(node if list(items.values()) == own_items else flow.query(node, Select(items), name, at))
    union = flow.union(inputs, name, places[0])
    of_windows = [column for column in range(len(first.names)) if all(_is_window(node, column) for node in nodes)]
    times = {name: near for at, name in enumerate(first.names) if (near := _times(nodes, at)) is not None}
    return union.with_windows(first.names[column] for column in of_windows).with_times(times)


def _unlike(nodes: Sequence[Node], places: Sequence[int], column: int) -> Wrong:
    """What to say about a column whose types do not go together."""
    types = [_type(node, column) for node in nodes]
    number = next(number for number, type_ in enumerate(types) if type_ != types[0])
    reason = f"column {nodes[number].names[column]} is {types[number]} here, and {types[0]} in the first SELECT"
    return Wrong(f"{reason}: write CAST(... AS ...)", places[number])


def _type(node: Node, column: int) -> pa.DataType:
    type_ = node.schema.field(node.names[column]).type
    return pa.string() if isinstance(type_, CellType) else type_


def _is_window(node: Node, column: int) -> bool:
    return node.names[column] in node.windows


def _times(nodes: Sequence[Node], column: int) -> tuple[int, int] | None:
    """As of `Node.times`. None: it is no such column in one of them."""
    times = [node.times.get(node.names[column]) for node in nodes]
    known = [time for time in times if time is not None]
    return (min(least for least, _ in known), max(most for _, most in known)) if len(known) == len(times) else None


def common_type(types: Sequence[pa.DataType]) -> pa.DataType | None:
    """What DataFusion makes of a column of these types. None: it does not."""
    if len(set(types)) == 1:
        return types[0]
    own = context()
    for number, type_ in enumerate(types):
        own.register_record_batches(f"t{number}", [[pa.record_batch([pa.nulls(0, type_)], ["a"])]])
    text = " UNION ALL ".join(f"SELECT a FROM t{number}" for number in range(len(types)))
    try:
        common = own.sql(text).to_arrow_table().schema.types[0]
    except Exception:
        return None
    return without_views(common)
