"""Messages of Kafka, many of them as one record of Flink. Numbers are big-endian, as Java has them.

    partition, messages = unpacked(record)          what PacksRecords.java has packed
    record = packed(table)                          what UnpacksMessages.java unpacks

From Kafka: the partition, the number of messages, a head of each message, then the bytes of all of them. To Kafka: the
number of messages, which parts they have, lengths and times, the values, the keys.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

_BEGIN = struct.Struct(">ii")
_HEAD = struct.Struct(">qqiii")
"""The offset, the time, and the lengths of key, value and headers; -1: there is none."""
_HEADER = struct.Struct(">ii")
_NO_TIME = -(1 << 63)
_CREATED = 1  # a kind of time: Kafka has it from the writer; for rows, it is like the other kind
_KEYS, _TIMES = 1, 2


class TakenMessage:
    """As a message of confluent-kafka."""

    __slots__ = ("_headers", "_key", "_offset", "_time", "_value")

    def __init__(self, offset: int, time: int, key: bytes | None, value: bytes | None, headers: bytes) -> None:
        self._offset, self._time, self._key, self._value, self._headers = offset, time, key, value, headers

    def offset(self) -> int:
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        return (0, 0) if self._time == _NO_TIME else (_CREATED, self._time)

    def key(self) -> bytes | None:
        return self._key

    def value(self) -> bytes | None:
        return self._value

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        headers, at = [], 0
        while at < len(self._headers):
            name, value = _HEADER.unpack_from(self._headers, at)
            at += _HEADER.size + name
            text = self._headers[at - name : at].decode()
            headers.append((text, None if value < 0 else self._headers[at : at + value]))
            at += max(value, 0)
        return headers or None


def unpacked(record: bytes) -> tuple[int, Sequence[TakenMessage]]:
    """Of one partition, in their order."""
    partition, count = _BEGIN.unpack_from(record)
    end = at = _BEGIN.size + count * _HEAD.size
    messages = []
    for offset, time, key, value, headers in _HEAD.iter_unpack(record[_BEGIN.size : end]):
        own_key = own_value = None
        if key >= 0:
            own_key = record[at : at + key]
            at += key
        if value >= 0:
            own_value = record[at : at + value]
            at += value
        messages.append(TakenMessage(offset, time, own_key, own_value, record[at : at + headers] if headers else b""))
        at += headers
    return partition, messages


def packed(messages: pa.Table) -> bytes:
    """messages: as `kafka/messages.py` has them."""
    names = messages.column_names
    parts = (_KEYS if "key" in names else 0) | (_TIMES if "time" in names else 0)
    (value_lengths, values), (key_lengths, keys) = _bytes(messages, "value"), _bytes(messages, "key")
    times = b""
    if parts & _TIMES:
        times = messages["time"].fill_null(_NO_TIME).to_numpy().astype(">i8").tobytes()
    return b"".join([_BEGIN.pack(len(messages), parts), value_lengths, key_lengths, times, values, keys])


def _bytes(messages: pa.Table, name: str) -> tuple[bytes, bytes]:
    """The lengths, and all bytes."""
    if name not in messages.column_names:
        return b"", b""
    column = messages[name].cast(pa.large_binary())
    lengths = pc.binary_length(column).fill_null(-1).to_numpy().astype(">i4").tobytes()
    return lengths, b"".join(value for value in column.to_pylist() if value)
