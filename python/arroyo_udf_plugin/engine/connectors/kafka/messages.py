"""Rows as messages of Kafka: a table with the column `value`, and with `key` and `time` if messages have them.

A null is a message without a value (a tombstone) or without a key. `time` is in milliseconds since 1970; a null is the
moment in which the message is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from ....errors import InvalidArgument
from ..schemas import index_of
from .value_writers import ValueWriter, as_bytes, is_bytes, is_text

_is = pa.types


class Messages:
    """name: of the sink, for error texts. writer: makes what writes values, of their schema. columns: of the value;
    None: all, but those of key and time only if `with_key`.

    Raises InvalidArgument for columns that cannot be what they are to be.
    """

    def __init__(
        self,
        name: str,
        schema: pa.Schema,
        writer: Callable[[pa.Schema], ValueWriter],
        columns: Sequence[str] | None,
        key: str | None,
        time: str | None,
        with_key: bool,
    ) -> None:
        self._at_key = None if key is None else self._place(name, schema, key, "key_field", _is_text_or_bytes)
        self._at_time = None if time is None else self._place(name, schema, time, "timestamp_field", _is.is_timestamp)
        if columns is not None:
            self._at_value = [index_of(schema, column, f"{name}: ") for column in columns]
        else:
            beside = () if with_key else (self._at_key, self._at_time)
            self._at_value = [place for place in range(len(schema)) if place not in beside]
        self._writer = writer(pa.schema([schema.field(place) for place in self._at_value]))

    def _place(self, name: str, schema: pa.Schema, column: str, key: str, fits: Any) -> int:
        place = index_of(schema, column, f"{name}: ")
        if not fits(type_ := schema.field(place).type):
            wanted = "a timestamp" if key == "timestamp_field" else "text or bytes"
            raise InvalidArgument(f"{name}: {key}: column {column!r} is {type_}, and must be {wanted}")
        return place

    def check(self) -> None:
        """Before a run. Raises InvalidArgument, Unreachable."""
        self._writer.check()

    def of(self, batch: pa.RecordBatch) -> pa.Table:
        columns = {"value": self._writer.of(batch.select(self._at_value))}
        if self._at_key is not None:
            columns["key"] = as_bytes(batch.column(self._at_key))
        if self._at_time is not None:
            times = batch.column(self._at_time)
            columns["time"] = times.cast(pa.timestamp("ms", times.type.tz), safe=False).cast(pa.int64())
        return pa.table(columns)


def _is_text_or_bytes(type_: pa.DataType) -> bool:
    return is_text(type_) or is_bytes(type_)
