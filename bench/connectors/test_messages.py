"""Values of messages as rows, against orjson, which makes a dict of each. The goal: half of its rate per core."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from arroyo_udf_plugin.engine.connectors.kafka.records import KafkaRecords
from arroyo_udf_plugin.engine.connectors.kafka.values import JsonColumns
from conftest import BATCH_ROWS, Compare

TEXT = '{"user": %d, "text": "' + "x" * 112 + '", "place": "home", "miles": %d.25, "at": "2026-01-01T00:00:00Z"}'
TYPES = {"user": "int", "text": "str", "place": "str", "miles": "float", "at": "timestamp[us, UTC]"}


@dataclass(slots=True)
class Message:
    """As confluent-kafka has it."""

    _offset: int
    _value: bytes

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return self._value


def test_json_of_200_bytes(compare: Compare) -> None:
    messages = [Message(n, (TEXT % (n, n)).encode()) for n in range(BATCH_ROWS)]
    assert 195 <= len(messages[0].value()) <= 205
    records = KafkaRecords(TYPES, {}, lambda types: JsonColumns(types, (), None))
    found = records.rows("flights", 0, messages)
    assert not found.refused
    assert found.batch.column("user").to_pylist() == list(range(BATCH_ROWS))

    def objects() -> list[object]:
        return [orjson.loads(message.value()) for message in messages]

    compare(
        "JSON of 200 bytes",
        lambda: records.rows("flights", 0, messages),
        objects,
        n=BATCH_ROWS,
        unit="ns/row",
        scale=1e9,
        reference_name="orjson",
        goal=2.0,
    )
