"""Messages of Kafka as rows: their values by a format, and columns of what else is known about them.

    topic, partition, offset_id     string, int32, int64
    timestamp                       timestamp[ms, UTC], another timestamp, or int64, milliseconds since 1970
    key                             binary, or string
    headers                         list<struct<key: string, value: binary>>

Guarantees: each message that is kept is a row. A value that does not fit is a refused row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ....host.ordinals import ordinals
from ..message_rows import TIMES, metadata_field, plain, with_metadata
from ..source import Rows
from ..type_names import type_named
from .values import ValueReader

_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
METADATA: Mapping[str, Sequence[pa.DataType]] = {
    "topic": (pa.string(),),
    "partition": (pa.int32(),),
    "offset_id": (pa.int64(),),
    "timestamp": (TIMES, pa.int64()),
    "key": (pa.binary(), pa.string()),
    "headers": (_HEADERS,),
}
"""The types that each key may have; the first one unless another is asked for."""
_Messages = Sequence[Any]
_Column = tuple[pa.Array, dict[int, str]]


class KafkaRecords:
    """types: of the columns of values, by name, and of metadata that is to have another type. metadata: a key for the
    name of each column. values: makes what reads values, of their types.

    schema: of the rows. Raises InvalidArgument.
    """

    def __init__(
        self,
        types: Mapping[str, str],
        metadata: Mapping[str, str],
        values: Callable[[Mapping[str, pa.DataType]], ValueReader],
    ) -> None:
        named = {name: type_named(type_) for name, type_ in types.items()}
        self._keys = list(metadata.values())
        fields = [metadata_field(name, key, METADATA, named.pop(name, None)) for name, key in metadata.items()]
        self._values = values(named)
        self._fields, self.schema = fields, with_metadata(self._values.schema, fields)

    def preparation(self, messages: _Messages) -> Callable[[], None] | None:
        """What `rows` needs for them, and others have, as `ValueReader` has it."""
        return self._values.preparation([message.value() for message in messages])

    def kept(self, messages: _Messages) -> _Messages:
        """Those that are rows."""
        if self._values.keeps_tombstones:
            return messages
        return [message for message in messages if message.value() is not None]

    def rows(self, topic: str, partition: int, messages: _Messages) -> Rows:
        """messages: in their order, at least one, and kept."""
        columns, refused = self._values.read([message.value() for message in messages])
        columns = list(columns)
        first, numbers = messages[0].offset(), None
        if messages[-1].offset() - first >= len(messages):  # others are markers of transactions, or were removed
            numbers = pa.array([message.offset() for message in messages], pa.uint64())
        for key, field in zip(self._keys, self._fields, strict=True):
            if key == "offset_id":
                own = ordinals(len(messages), first, "int64") if numbers is None else numbers.cast(pa.int64())
            elif key in ("topic", "partition"):
                own = pa.repeat(pa.scalar(topic if key == "topic" else partition, field.type), len(messages))
            else:
                own, wrong = _OTHERS[key](messages, field.type)
                refused = wrong | refused
            columns.append(own)
        batch = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        return Rows(f"{topic}, partition {partition}", first, batch, refused, numbers=numbers)


def _times(messages: _Messages, type_: pa.DataType) -> _Column:
    stamps = [message.timestamp() for message in messages]  # with kinds; 0 is none
    times = pa.array([time if kind else None for kind, time in stamps], pa.int64())
    return (times.cast(TIMES).cast(type_) if pa.types.is_timestamp(type_) else times), {}


def _keys(messages: _Messages, type_: pa.DataType) -> _Column:
    return plain([message.key() for message in messages], type_, "key")


def _headers(messages: _Messages, type_: pa.DataType) -> _Column:
    return pa.array(
        [[{"key": key, "value": value} for key, value in message.headers() or ()] for message in messages], type_
    ), {}


_OTHERS: Mapping[str, Callable[[_Messages, pa.DataType], _Column]] = {
    "timestamp": _times,
    "key": _keys,
    "headers": _headers,
}
