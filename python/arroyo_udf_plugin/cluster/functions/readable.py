"""Rows of Arrow as values of JSON that every reader can hold, browsers too.

Times, durations and decimals are texts, as in files of JSON (engine/connectors/json_writer.py); bytes are hexadecimal.
An integer that a float cannot hold is a text, because a browser would round it.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from ...engine.connectors.json_writer import JsonWriter

_EXACT = 2**53


def readable(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Raises InvalidArgument for a time that JSON cannot have."""
    lines: list[bytes] = []
    JsonWriter(lines.append, "the answer", batch.schema, shown=True).write(pa.Table.from_batches([batch]))
    return [json.loads(line, parse_int=_int) for line in b"".join(lines).splitlines()]


def _int(text: str) -> int | str:
    value = int(text)
    return value if -_EXACT <= value <= _EXACT else text
