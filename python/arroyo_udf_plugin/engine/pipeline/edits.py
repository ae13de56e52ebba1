"""Values that somebody has changed in rows before they run again, as the rows' columns have them.

    edited(rows, columns, origins, {("a.csv", 7): {"x": 8}})

Guarantees: a value that its column cannot have is refused by row and column. Other values stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ...errors import InvalidArgument
from ...plugin.casting import Cast
from ..connectors.cells import JSON_VALUE, CellType, Dialect, cast_of
from ..connectors.delimited import as_cells
from ..connectors.json_types import check, typed
from ..connectors.json_writer import has_no_json
from ..connectors.schemas import index_of
from ..operators.blocks import Columns

Origin = tuple[str, int]
"""A file, and the number of a row."""
Edits = Mapping[Origin, Mapping[str, Any]]
"""The changed columns of rows, with values as JSON has them."""


def edited(rows: pa.Table, columns: Columns, origins: Sequence[Origin], edits: Edits) -> pa.Table:
    """columns: of the rows; their own come first. origins: of each row. Raises InvalidArgument."""
    own = pa.schema([columns.schema.field(at) for at in columns.own])
    changed: dict[int, dict[int, Any]] = {}
    for at, origin in enumerate(origins):
        for name, value in edits.get(origin, {}).items():
            changed.setdefault(index_of(own, name, _of(origin)), {})[at] = value
    for place, values in changed.items():
        new = _as_column(own.field(place), values, origins)
        whole = pa.concat_arrays([*rows.column(place).chunks, new])
        taken = list(range(len(rows)))
        for position, at in enumerate(values, len(rows)):
            taken[at] = position
        rows = rows.set_column(place, rows.schema.field(place), whole.take(pa.array(taken, pa.int64())))
    return rows


def _of(origin: Origin) -> str:
    file, number = origin
    return f"{file}:{number}: "


def _as_column(field: pa.Field, values: Mapping[int, Any], origins: Sequence[Origin]) -> pa.Array:
    """values: by the positions of their rows."""
    asked = list(values.values())
    where = [f"{_of(origins[at])}column {field.name!r}: " for at in values]
    try:
        cast = _converted(asked, field.type)
    except InvalidArgument as error:
        raise InvalidArgument(f"{where[0]}{error}") from None
    refused = dict(cast.refused)
    if not field.nullable:
        refused |= {at: "it cannot be null" for at, value in enumerate(asked) if value is None}
    for at, why in sorted(refused.items()):
        raise InvalidArgument(f"{where[at]}{why}")
    return cast.array


def _converted(values: list[Any], type_: pa.DataType) -> Cast:
    """Raises InvalidArgument for a type of which nobody could write a value, and get back the same."""
    if isinstance(type_, CellType):
        return _texts(values) if type_.dialect is None else _cells(values, type_.dialect)
    if has_no_json(type_):
        raise InvalidArgument(f"it is {type_}, which JSON cannot hold, so it cannot be changed")
    check(type_)
    return cast_of(typed(values, type_), {})


def _texts(values: list[Any]) -> Cast:
    """Cells of newline JSON."""
    texts = [value if value is None or isinstance(value, str) else JSON_VALUE + _json(value) for value in values]
    return Cast(pa.array(texts, pa.string()), {})


def _cells(values: list[Any], dialect: Dialect) -> Cast:
    """A number stands in its cell as in JSON."""
    refused = {at: f"{_json(value)} is no text" for at, value in enumerate(values) if isinstance(value, list | dict)}
    texts = [value if value is None or isinstance(value, str) else _json(value) for value in values]
    # The text of an error has the column already.
    return Cast(as_cells(pa.array(texts, pa.string()), dialect, "a cell"), refused)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
