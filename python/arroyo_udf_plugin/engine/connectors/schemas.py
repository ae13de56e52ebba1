"""Columns by name."""

from __future__ import annotations

import pyarrow as pa

from ...errors import InvalidArgument


def index_of(schema: pa.Schema, name: str, where: str = "") -> int:
    """The position of a column. Raises InvalidArgument, with the columns there are, for none or several."""
    indices = schema.get_all_field_indices(name)
    if len(indices) == 1:
        return int(indices[0])
    trouble = f"there are {len(indices)} columns" if indices else "there is no column"
    raise InvalidArgument(f"{where}{trouble} {name!r}; the columns are {', '.join(schema.names)}")
