"""A topic as a sink: messages, exactly once, and what it refuses."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import kafka_broker
import pyarrow as pa
import pytest
from confluent_kafka import Producer
from waiting import until

from arroyo_udf_plugin.engine.connectors.interface import Json, TransactionalSink
from arroyo_udf_plugin.engine.connectors.kafka import epochs as kafka_epochs
from arroyo_udf_plugin.engine.connectors.kafka.sink import KafkaOutput
from arroyo_udf_plugin.engine.execution.checkpoints import RowsStage
from arroyo_udf_plugin.engine.execution.store import open_store
from arroyo_udf_plugin.errors import Fenced, InvalidArgument, Unreachable, WrongCheckpoints

pytestmark = pytest.mark.connectors

SCHEMA = pa.schema([("n", pa.int64()), ("name", pa.string())])


def rows(*numbers: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(numbers, pa.int64()), pa.array([f"row {n}" for n in numbers])], schema=SCHEMA)


class Place:
    """A topic, and the sinks of a pipeline that writes to it."""

    def __init__(self, broker: kafka_broker.Broker, folder: Path, **topic: Any) -> None:
        self.broker, self.topic = broker, broker.topic(**topic)
        self._stage, self._opened = str(folder / "state"), contextlib.ExitStack()

    def model(self, **keys: Any) -> KafkaOutput:
        return KafkaOutput(**{"bootstrap_servers": self.broker.address, "topic": self.topic, **keys})

    def sink(
        self, slice: int = 0, clear: int | None = None, history: str = "h", schema: pa.Schema = SCHEMA, **keys: Any
    ) -> TransactionalSink:
        stage = RowsStage(open_store(self._stage), history)
        sink: Any = self.model(**keys).sink(schema, slice, stage, "pipeline", "out")
        self._opened.callback(sink.close)
        if clear is not None:
            sink.check(clear, 0, [])
            sink.clear(clear)
        return sink  # type: ignore[no-any-return]

    def numbers(self) -> list[int]:
        return sorted(json.loads(message.value())["n"] for message in self.messages())

    def messages(self) -> list[Any]:
        return [message for own in self.broker.messages(self.topic).values() for message in own]

    def forget(self, *slices: int) -> None:
        """Somebody deletes the groups."""
        names = [f"arroyo-udf/pipeline/out/{self.topic}/{slice}" for slice in slices]
        for deleted in self.broker.admin.delete_consumer_groups(names).values():
            deleted.result(60)

    def close(self) -> None:
        self._opened.close()


@pytest.fixture
def place(kafka: kafka_broker.Broker, tmp_path: Path) -> Iterator[Place]:
    with contextlib.closing(Place(kafka, tmp_path, partitions=2)) as made:
        yield made


def stored(sink: TransactionalSink, epoch: int, *numbers: int) -> Json:
    """Rows of an epoch, durable."""
    sink.write(rows(*numbers))
    sealed = sink.seal(epoch)
    assert sealed is not None
    return sealed.store()


# ---- Exactly once ----------------------------------------------------------------------------------------------------


def test_rows_are_seen_once_when_their_epoch_is_applied(place: Place) -> None:
    sink = place.sink(clear=1)
    first = stored(sink, 2, 1, 2, 3)
    second = stored(sink, 3, 4)
    assert place.numbers() == []
    for _ in range(2):
        sink.apply(2, first)
    sink.apply(3, second)
    assert place.numbers() == [1, 2, 3, 4]
    assert sink.seal(4) is None
    other = place.sink()
    other.apply(3, second)
    assert place.numbers() == [1, 2, 3, 4]


def test_a_start_with_fewer_slices_applies_the_rows_of_all(place: Place) -> None:
    slices = [place.sink(slice, clear=1) for slice in range(3)]
    found = [stored(sink, 2, at) for at, sink in enumerate(slices)]
    slices[2].apply(2, found[2])
    only = place.sink()
    only.check(3, 2, found)
    for waiting in found:
        only.apply(2, waiting)
    only.clear(3)
    only.apply(4, stored(only, 4, 3))
    assert place.numbers() == [0, 1, 2, 3]
    for epoch, rows_of_old in ((2, found[1]), (3, stored(slices[1], 3, 4))):
        with pytest.raises(Fenced, match=r"another process .* arroyo-udf/pipeline/out/.*/1"):
            slices[1].apply(epoch, rows_of_old)
    assert place.numbers() == [0, 1, 2, 3]


def test_an_older_process_stops_in_the_middle_of_its_transaction(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = place.sink(clear=1), place.sink()
    found = stored(old, 2, 1, 2, 3)
    write, is_open, may_go = kafka_epochs.OutgoingMessages.send, threading.Event(), threading.Event()

    def held(outgoing: Any, messages: pa.Table) -> None:
        write(outgoing, messages)
        outgoing.flush()
        if not is_open.is_set():
            is_open.set()
            assert may_go.wait(60)

    monkeypatch.setattr(kafka_epochs.OutgoingMessages, "send", held)
    failed: list[BaseException] = []

    def apply() -> None:
        try:
            old.apply(2, found)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=apply)
    thread.start()
    assert is_open.wait(60)
    new.check(3, 2, [found])  # does not wait for the open transaction
    new.apply(2, found)
    may_go.set()
    thread.join(60)
    assert [type(error) for error in failed] == [Fenced]
    assert place.numbers() == [1, 2, 3]


def test_a_broker_that_is_killed_in_the_middle(kafka: kafka_broker.Broker, place: Place) -> None:
    """Several times: before, while and after it gets the rows of an epoch."""
    sink, expected = place.sink(clear=1), []
    for epoch in range(2, 5):
        numbers = range(1000 * epoch, 1000 * epoch + 1000)
        found = stored(sink, epoch, *numbers)
        expected += numbers
        applying = threading.Thread(target=sink.apply, args=(epoch, found))
        if epoch % 2:
            kafka.kill()
            applying.start()
        else:
            applying.start()
            kafka.kill()
        kafka.restart()
        applying.join(120)
        assert not applying.is_alive()
    assert place.numbers() == expected


def test_a_broker_that_stays_away(kafka: kafka_broker.Broker, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_epochs, "PATIENCE", 1.0)
    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.kafka.producer.STALLED", 1.0)
    monkeypatch.setattr(kafka_epochs, "STALLED", 1.0)
    sink = place.sink(clear=1)
    found = stored(sink, 2, 1)
    kafka.kill()
    try:
        with pytest.raises(Unreachable, match="does not answer") as caught:
            sink.apply(2, found)
    finally:
        kafka.restart()
    assert caught.value.__notes__ == ["epoch 2 is committed: resume when the topic takes its rows"]
    monkeypatch.undo()
    sink.apply(2, found)
    assert place.numbers() == [1]


def test_an_offset_that_is_gone_is_refused(place: Place) -> None:
    sink = place.sink(clear=1)
    found = stored(sink, 2, 1)
    sink.apply(2, found)
    sink.close()
    place.forget(0)
    with pytest.raises(InvalidArgument, match=rf"group arroyo-udf/pipeline/out/{place.topic}/0 has no offset any more"):
        place.sink().check(3, 2, [found])
    with pytest.raises(InvalidArgument, match=r"rows of epoch 2 are in the topic .*--restore"):
        place.sink().apply(2, found)
    assert place.numbers() == [1]


def test_an_offset_that_is_gone_while_nothing_waits_does_not_matter(place: Place) -> None:
    sink = place.sink(clear=1)
    sink.apply(2, stored(sink, 2, 1))
    sink.close()
    place.forget(0)
    again = place.sink(clear=3)
    found = stored(again, 4, 2)
    again.close()
    last = place.sink()
    last.check(5, 4, [found])
    last.apply(4, found)
    assert place.numbers() == [1, 2]


def test_older_checkpoints_and_others_are_refused(place: Place) -> None:
    slices = [place.sink(slice, clear=1) for slice in range(2)]
    slices[1].apply(4, stored(slices[1], 4, 1))
    with pytest.raises(WrongCheckpoints, match="the topic has epoch 4"):
        place.sink().check(4, 3, [])
    with pytest.raises(WrongCheckpoints, match=rf"--delete --group 'arroyo-udf/pipeline/out/{place.topic}/0' --group"):
        place.sink(history="other").check(1, 0, [])
    for sink in slices:
        sink.close()
    place.forget(0, 1)
    place.sink(history="other", clear=1)


def test_rows_stay_when_somebody_goes_back(place: Place) -> None:
    sink: Any = place.sink(clear=1)
    assert sink.later_rows(1, {}).fate == "none"
    sink.apply(3, stored(sink, 3, 1))
    assert [sink.later_rows(epoch, {}).fate for epoch in (2, 3)] == ["doubled", "none"]


# ---- At least once ---------------------------------------------------------------------------------------------------


def test_at_least_once_a_checkpoint_waits_for_its_rows(kafka: kafka_broker.Broker, place: Place) -> None:
    sink = place.sink(clear=1, commit_mode="at_least_once")
    sink.write(rows(1, 2))
    until(lambda: place.numbers() == [1, 2], "rows that no checkpoint has")
    kafka.kill()
    sink.write(rows(3))
    sealed = sink.seal(2)
    assert sealed is not None
    storing = threading.Thread(target=sealed.store)
    storing.start()
    kafka.restart()
    storing.join(120)
    assert place.numbers() == [1, 2, 3]
    assert sink.seal(3) is None


def test_without_checkpoints_rows_are_there_at_the_end(place: Place) -> None:
    sink = place.model().sink(SCHEMA, 0, None, "pipeline", "out")
    sink.write(rows(1, 2, 3))
    sink.finish()
    sink.close()
    assert place.numbers() == [1, 2, 3]
    with pytest.raises(InvalidArgument, match="exactly_once needs checkpoints"):
        place.model(commit_mode="exactly_once").sink(SCHEMA, 0, None, "pipeline", "out")


# ---- Messages --------------------------------------------------------------------------------------------------------


def written(place: Place, batch: pa.RecordBatch, **keys: Any) -> list[tuple[Any, ...]]:
    """Keys, values and times of the messages."""
    place.model(**keys).check(batch.schema)
    sink = place.model(**keys).sink(batch.schema, 0, None, "pipeline", "out")
    sink.write(batch)
    sink.finish()
    sink.close()
    found = [(message.key(), message.value(), message.timestamp()[1]) for message in place.messages()]
    return sorted(found, key=lambda message: message[2])


TIMES = [datetime(2026, 1, 1, second=second, tzinfo=UTC) for second in range(3)]
MS = [round(time.timestamp() * 1000) for time in TIMES]
BATCH = pa.record_batch(
    {
        "value": pa.array(["a\nb", None, ""]),
        "key": pa.array(["k", "k", None]),
        "time": pa.array(TIMES, pa.timestamp("us", "UTC")),
    }
)


@pytest.mark.parametrize("format", ["raw_string", "raw_bytes"])
def test_raw_values_with_keys_times_and_tombstones(place: Place, format: str) -> None:
    batch = BATCH if format == "raw_string" else BATCH.set_column(0, "value", BATCH["value"].cast(pa.binary()))
    found = written(place, batch, format=format, key_field="key", timestamp_field="time")
    assert found == [(b"k", b"a\nb", MS[0]), (b"k", None, MS[1]), (None, b"", MS[2])]


def test_json_with_a_key(place: Place) -> None:
    found = written(place, BATCH, key_field="key", timestamp_field="time", columns=["value", "key"])
    values = ['{"value":"a\\nb","key":"k"}', '{"value":null,"key":"k"}', '{"value":"","key":null}']
    assert found == [(key, value.encode(), ms) for key, value, ms in zip([b"k", b"k", None], values, MS, strict=True)]


def test_messages_with_the_same_key_are_in_one_partition(place: Place) -> None:
    batch = pa.record_batch({"value": [str(n) for n in range(50)], "key": [str(n % 5) for n in range(50)]})
    written(place, batch, format="raw_string", key_field="key")
    partitions: dict[bytes, set[int]] = {}
    for message in place.messages():
        partitions.setdefault(message.key(), set()).add(message.partition())
    assert len(partitions) == 5
    assert {len(own) for own in partitions.values()} == {1}
    assert set.union(*partitions.values()) == {0, 1}


@pytest.mark.parametrize(
    ("keys", "error"),
    [
        ({"format": "raw_string"}, "raw_string has one column of text, not value string, key string, time"),
        ({"format": "raw_bytes", "columns": ["value"]}, "raw_bytes has one column of bytes, not value string"),
        ({"key_field": "time"}, "key_field: column 'time' is timestamp.*, and must be text or bytes"),
        ({"timestamp_field": "key"}, "timestamp_field: column 'key' is string, and must be a timestamp"),
        ({"key_field": "id"}, "id"),
    ],
)
def test_columns_that_do_not_fit(keys: dict[str, Any], error: str) -> None:
    with pytest.raises(InvalidArgument, match=error):
        KafkaOutput(bootstrap_servers="127.0.0.1:1", topic="t", **keys).check(BATCH.schema)


# ---- What the cluster refuses ----------------------------------------------------------------------------------------


def test_a_message_that_is_too_large(kafka: kafka_broker.Broker, tmp_path: Path) -> None:
    with contextlib.closing(Place(kafka, tmp_path, max_message_bytes=2000)) as small:
        sink = small.sink(clear=1)
        fits = pa.record_batch([pa.array([1]), pa.array(["x" * 1800])], schema=SCHEMA)
        sink.write(fits)
        with pytest.raises(InvalidArgument, match=rf"topic '{small.topic}'.* 2,1\d\d bytes, and the topic takes 2,000"):
            sink.write(pa.record_batch([pa.array([2]), pa.array(["x" * 2000])], schema=SCHEMA))
        sealed = sink.seal(2)
        assert sealed is not None
        sink.apply(2, sealed.store())
        assert small.numbers() == [1]


def test_messages_above_the_usual_limit(kafka: kafka_broker.Broker, tmp_path: Path) -> None:
    with contextlib.closing(Place(kafka, tmp_path, max_message_bytes=8_000_000)) as large:
        sink = large.sink(clear=1)
        sink.write(pa.record_batch([pa.array([1]), pa.array(["x" * 5_000_000])], schema=SCHEMA))
        sealed = sink.seal(2)
        assert sealed is not None
        sink.apply(2, sealed.store())
        assert large.numbers() == [1]


def test_a_topic_that_is_not_there(kafka: kafka_broker.Broker) -> None:
    with pytest.raises(InvalidArgument, match="has no topic 'nowhere': create it"):
        KafkaOutput(bootstrap_servers=kafka.address, topic="nowhere").check(SCHEMA)


def test_a_user_who_may_not_write(kafka: kafka_broker.Broker, tmp_path: Path) -> None:
    from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

    with contextlib.closing(Place(kafka, tmp_path)) as place:
        denied = AclBinding(
            ResourceType.TOPIC, place.topic, ResourcePatternType.LITERAL, "User:reader", "*", AclOperation.WRITE,
            AclPermissionType.DENY,
        )  # fmt: skip
        for made in kafka.admin.create_acls([denied]).values():
            made.result(60)
        user = {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "username": "reader"}
        user["password"] = kafka_broker.USERS["reader"]
        keys = {"bootstrap_servers": kafka.guarded, "auth": user}
        with pytest.raises(InvalidArgument, match="the user reader may not do this: ask for an ACL"):
            place.model(**keys).check(SCHEMA)


def test_transactions_of_others_do_not_matter(kafka: kafka_broker.Broker, place: Place) -> None:
    """One that is open, and one that was aborted."""
    other = Producer(kafka.client(transactional_id="other"))
    other.init_transactions(60)
    other.begin_transaction()
    other.produce(place.topic, b'{"n": 7}')
    other.flush(60)
    sink = place.sink(clear=1)
    sink.apply(2, stored(sink, 2, 1))
    other.abort_transaction(60)
    assert place.numbers() == [1]
