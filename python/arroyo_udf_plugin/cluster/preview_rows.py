"""Rows of previews, on their way from a job's sinks to the database, from which readers get them.

Guarantees: a sink never waits. The rate of rows is limited: if a job makes them faster, some are left out, and
`start_id` of the next batch says how many rows came before it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import pyarrow as pa
import pydantic
from typing_extensions import TypedDict

from ..engine.connectors.json_writer import JsonWriter, has_no_json

_EVERY = 0.2
"""Seconds from one telling to the next."""
_MOST_ROWS = 2000
_MOST_BYTES = 1 << 20


class Shown(TypedDict):
    """A batch. start_id: how many rows the subtask has sent before. batch: a JSON array of row objects."""

    operator_id: str
    subtask_idx: Annotated[int, pydantic.Field(ge=0, lt=2**31)]
    start_id: Annotated[int, pydantic.Field(ge=0, lt=2**62)]
    timestamps: list[int]
    batch: str


class Showing:
    """Of one generation of a job. tell: gets batches. clock: in seconds."""

    def __init__(self, tell: Callable[[Sequence[Shown]], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._tell, self._clock = tell, clock
        self._lock = threading.Lock()
        self._waiting: list[Shown] = []
        self._rows = self._bytes = 0
        self._counts: dict[tuple[str, int], int] = {}
        self._told_at = float("-inf")

    def take(self, name: str, slice: int, batch: pa.RecordBatch) -> None:
        """Rows of a sink, from a thread of the engine."""
        with self._lock:
            start = self._counts.get((name, slice), 0)
            self._counts[name, slice] = start + batch.num_rows
            is_full = self._rows >= _MOST_ROWS or self._bytes >= _MOST_BYTES
            if is_full and not self._is_due():
                return
            shown = batch.slice(0, max(1, min(_MOST_ROWS, _MOST_BYTES * batch.num_rows // max(1, batch.nbytes))))
            text = json_of(shown)
            at = time.time_ns() // 1000
            self._waiting.append(
                {
                    "operator_id": name,
                    "subtask_idx": slice,
                    "start_id": start,
                    "timestamps": [at] * shown.num_rows,
                    "batch": text,
                }
            )
            self._rows += shown.num_rows
            self._bytes += len(text)
            if not self._is_due():
                return
            batches = self._taken()
        self._tell(batches)

    def flush(self) -> None:
        """Tells what waits."""
        with self._lock:
            batches = self._taken() if self._waiting else []
        if batches:
            self._tell(batches)

    def _is_due(self) -> bool:
        return self._clock() - self._told_at >= _EVERY

    def _taken(self) -> list[Shown]:
        batches, self._waiting = self._waiting, []
        self._rows = self._bytes = 0
        self._told_at = self._clock()
        return batches


def json_of(batch: pa.RecordBatch) -> str:
    """Rows as a JSON array of objects. Times are as in RFC 3339, bytes in hexadecimal."""
    columns = [_readable(column) for column in batch.columns]
    lines: list[bytes] = []
    given = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
    JsonWriter(lines.append, "preview", given.schema, timestamps="rfc3339").write(pa.Table.from_batches([given]))
    return f"[{b''.join(lines).decode().rstrip().replace(chr(10), ',')}]"


def _readable(column: pa.Array) -> pa.Array:
    if not has_no_json(column.type):
        return column
    return pa.array([None if value is None else _text(value) for value in column.to_pylist()], pa.string())


def _text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
