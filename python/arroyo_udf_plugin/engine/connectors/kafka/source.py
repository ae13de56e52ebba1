"""A topic of Kafka as a source. Each partition of the topic is one of the engine's, with the next offset as position.

Guarantees: the engine's checkpoints alone say what has been read: no group of consumers does. A message is never passed
over: one that the topic has no more is an error with its offset, and so is a topic that is gone. Partitions that are
added later are read from their first message on. While brokers are away, reading waits.

Assumes: an offset always stands for the same message: nobody deletes the topic and makes it anew.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import pyarrow as pa
import pydantic

from ....errors import InvalidArgument, Unreachable
from ..bad_records import BadRecords
from ..described import Input, Several
from ..interface import Json, Partition, Source, has_ended
from ..table_options import BOOLEANS, TableOptions, chosen, instant
from .avro_values import AvroValues
from .debezium import DebeziumValues
from .partition import KafkaPartition
from .protobuf_values import ProtobufValues
from .records import METADATA, KafkaRecords
from .topic import JSON, KafkaAdmin, KafkaTopic, topic_keys
from .values import FramedValues, JsonColumns, PlainValues, ValueReader

WATCH = 10.0
"""Seconds between two looks for new partitions."""
_TUNED = {
    "queued.max.messages.kbytes": "16384",  # of each partition, in memory
    "reconnect.backoff.max.ms": "1000",
    "fetch.queue.backoff.ms": "10",  # else a reader that has emptied its queue waits for a second
}
_ALONE = {"enable.auto.commit": False, "enable.auto.offset.store": False}


class KafkaInput(KafkaTopic, Input):
    """The messages of a topic of Kafka."""

    metadata_keys: ClassVar[tuple[str, ...]] = tuple(METADATA)

    type: Literal["kafka"] = "kafka"

    types: dict[str, str] = pydantic.Field(default_factory=dict)
    """The columns, by name, with types such as "int", "str" or "timestamp[us, UTC]"; other keys of a JSON object are
    passed over. Also of metadata: "timestamp" may be int64, and "key" str."""

    json_columns: Several[str] = ()
    """Columns whose values, of any kind, are kept as JSON text."""

    timestamps: Literal["rfc3339", "unix_millis", "unix_micros"] | None = None
    """How JSON has columns of times: "unix_millis" as milliseconds since 1970; with "rfc3339", those without a zone are
    in UTC, and may end in Z. Of `debezium_json`, whose default is "unix_millis": "unix_micros", too; an event that has
    its schema says itself what its times are."""

    decimals: Literal["string", "number", "bytes"] | None = None
    """How `debezium_json` has decimals, in events without a schema: "bytes" (default), in base64 with the digits that
    the column's type has behind the point; or as JSON has them."""

    unstructured: bool = False
    """The only column, `value`, has each record of Avro as JSON text."""

    later: ClassVar[frozenset[str]] = KafkaTopic.later | {"decimals", "unstructured"}

    metadata: dict[str, str] = pydantic.Field(default_factory=dict)
    """Further columns by name: "topic", "partition", "offset_id", "timestamp", "key" or "headers" of a message."""

    bad_records: BadRecords = "fail"
    """What happens to messages that cannot be read: "fail", "drop" or "dead_letter"."""

    offset: Literal["latest", "earliest", "group"] = "latest"
    """Where the first run begins: at messages that come from now on, at the oldest ones, or where the group `group_id`
    has committed, and at the oldest ones if it has not. Later runs go on from their checkpoint."""

    timestamp: pydantic.AwareDatetime | None = None
    """The first run begins at the first messages with this time or a later one, in place of `offset`."""

    group_id: str | None = None
    """A group of consumers to which positions are committed after each checkpoint, so that others can see how far the
    pipeline is. It does not say what is read."""

    read_mode: Literal["read_committed", "read_uncommitted"] = "read_committed"
    """Whether messages of transactions are read only when they are committed."""

    bounded: bool = False
    """Ends at the messages that were the last ones at the start; otherwise there is no end."""

    @pydantic.model_validator(mode="after")
    def _has_a_group(self) -> Self:
        if self.offset == "group" and self.group_id is None:
            raise ValueError('offset = "group" needs group_id')
        return self

    @pydantic.model_validator(mode="after")
    def _fits_its_format(self) -> Self:
        if self.format != "avro" and self.unstructured:
            raise ValueError("unstructured is of the format avro")
        if self.format != "debezium_json" and (self.decimals == "bytes" or self.timestamps == "unix_micros"):
            key = "decimals" if self.decimals == "bytes" else "timestamps"
            raise ValueError(f'{key} = "{getattr(self, key)}" is of the format debezium_json')
        return self

    @property
    def ends(self) -> bool:
        return self.bounded

    def values(self, types: Mapping[str, pa.DataType]) -> ValueReader:
        """What reads values. types: of their columns. Raises InvalidArgument."""
        if self.format == "protobuf":
            file, message = self.schema_file or "", self.message_name or ""
            return ProtobufValues(types, file, message, self.schema_registry is not None)
        registry = None if self.schema_registry is None else self.schema_registry.client()
        if self.format == "avro":
            return AvroValues(types, registry, self.schema_file, self.unstructured)
        values: ValueReader
        if self.format == "json":
            values = JsonColumns(types, self.json_columns, self.timestamps)
        elif self.format == "debezium_json":
            values = DebeziumValues(types, self.json_columns, self.timestamps, self.decimals)
        else:
            values = PlainValues(self.format, types)
        return values if registry is None else FramedValues(values)

    def source(self, parallelism: int) -> Source:
        return KafkaSource(self)

    @classmethod
    def of_table(cls, options: TableOptions) -> Self:
        offsets = {name: name for name in ("latest", "earliest", "group")}
        modes = {name: name for name in ("read_committed", "read_uncommitted")}
        columns = options.columns or ()
        metadata = {column.name: column.metadata.value for column in columns if column.metadata is not None}
        keys = topic_keys(options)
        format_ = keys.get("format", "json")
        if format_ in JSON:
            decimals = options.json_decimals(format_ == "debezium_json")
            keys |= {
                "timestamps": options.json_timestamps(format_ == "debezium_json"),
                "json_columns": options.json_columns(),
                "decimals": decimals if format_ == "debezium_json" else None,  # of JSON, both are read
            }
            typed = columns
        elif format_ in ("avro", "protobuf"):
            if format_ == "avro":
                keys["unstructured"] = options.one_of("avro.into_unstructured_json", BOOLEANS)
            typed = columns
        else:
            typed = [column for column in columns if column.metadata is not None]
        keys |= {
            "types": {column.name: str(column.type) for column in typed},
            "metadata": metadata,
            "bad_records": options.one_of("bad_data", {name: name for name in ("fail", "drop", "dead_letter")}),
            "offset": options.one_of("source.offset", offsets),
            "timestamp": options.read("source.timestamp", instant, "a time with its zone: 2026-01-01T00:00:00Z"),
            "group_id": options.text("source.group_id"),
            "read_mode": options.one_of("source.read_mode", modes),
            "bounded": options.one_of("source.bounded", BOOLEANS),
        }
        return cls(**chosen(keys))


class KafkaSource:
    """Asks the cluster when the partitions are wanted, not before."""

    resumable = True
    side_by_side = True
    rows: int | None = None

    def __init__(self, described: KafkaInput) -> None:
        self.described, self.name = described, f"topic {described.topic}"
        self.records = KafkaRecords(described.types, described.metadata, described.values)
        self.schema = self.records.schema
        self.watch: float | None = None if described.bounded else WATCH
        self._lock = threading.Lock()  # guards all below
        self._admin: KafkaAdmin | None = None
        self._known: list[int] = []
        self._starts: dict[int, int] = {}  # of the partitions without a position
        self._ends: Mapping[int, int] = {}
        self._positions: Mapping[str, Json] = {}
        self._announcing: Any = None

    @property
    def admin(self) -> KafkaAdmin:
        self._admin = self._admin or self.described.admin()
        return self._admin

    def partitions(self) -> Sequence[str]:
        with self._lock:
            try:
                self._look()
            except Unreachable:
                if not self._known:
                    raise
                # A later look finds the new ones.
            return [str(partition) for partition in self._known]

    def _look(self) -> None:
        """Asks for all that opening a new partition takes, so that brokers may be away then."""
        found = [partition for partition in self.admin.partitions() if partition not in self._known]
        new = [partition for partition in found if str(partition) not in self._positions]
        is_first = not self._known and not self._positions
        starts = self._first_offsets(new) if is_first else self.offsets(new, "earliest") if new else {}
        if not self._known:
            self._ends = self.offsets(found, "latest") if self.described.bounded else {}
        self._starts |= starts
        self._known += found

    def _first_offsets(self, partitions: Sequence[int]) -> Mapping[int, int]:
        described = self.described
        if described.timestamp is not None:
            found = self.offsets(partitions, round(described.timestamp.timestamp() * 1000))
            ends = self.offsets(partitions, "latest")
            return {
                partition: ends[partition] if found[partition] < 0 else found[partition] for partition in partitions
            }
        if described.offset != "group":
            return self.offsets(partitions, described.offset)
        committed = self._committed(partitions)
        return {**self.offsets(partitions, "earliest"), **committed}

    def _committed(self, partitions: Sequence[int]) -> Mapping[int, int]:
        """Where the group is, in partitions for which it has committed."""
        admin, topic = self.admin, self.described.topic
        asked = admin.library.ConsumerGroupTopicPartitions(
            self.described.group_id, [admin.library.TopicPartition(topic, partition) for partition in partitions]
        )
        answer = admin.ask(lambda client: client.list_consumer_group_offsets([asked]))[self.described.group_id]
        return {found.partition: found.offset for found in answer.topic_partitions if found.offset >= 0}

    def offsets(self, partitions: Sequence[int], where: Literal["earliest", "latest"] | int) -> Mapping[int, int]:
        """Of the first message there is, behind the last one, or of the first one with such a time, in milliseconds."""
        admin, topic = self.admin, self.described.topic
        kinds = admin.library.admin.OffsetSpec
        kind = kinds.for_timestamp(where) if isinstance(where, int) else getattr(kinds, where)()
        level = getattr(admin.library.IsolationLevel, self.described.read_mode.upper())
        asked = {admin.library.TopicPartition(topic, partition): kind for partition in partitions}
        answers = admin.ask(lambda client: client.list_offsets(asked, isolation_level=level))
        return {partition.partition: answer.offset for partition, answer in answers.items()}

    def check(self, positions: Mapping[str, Json]) -> None:
        with self._lock:
            self._positions = positions
            wanted = {int(name): at["offset"] for name, at in positions.items() if not has_ended(at)}
            there = self.admin.partitions() if wanted else []
            for partition in wanted:
                if partition not in there:
                    raise InvalidArgument(
                        f"topic {self.described.topic} has no partition {partition} any more: it was made anew. Begin "
                        "anew, with other checkpoints"
                    )
            self._check_offsets(wanted)

    def _check_offsets(self, wanted: Mapping[int, int]) -> None:
        earliest, latest = ((self.offsets(list(wanted), where) if wanted else {}) for where in ("earliest", "latest"))
        for partition, offset in wanted.items():
            if not earliest[partition] <= offset <= latest[partition]:
                raise self._gone(partition, offset, earliest[partition], latest[partition])

    def gone(self, partition: int, offset: int) -> InvalidArgument:
        """Why there is no such offset."""
        with self._lock:
            earliest, latest = (self.offsets([partition], where)[partition] for where in ("earliest", "latest"))
        return self._gone(partition, offset, earliest, latest)

    def _gone(self, partition: int, offset: int, earliest: int, latest: int) -> InvalidArgument:
        place = (
            f"topic {self.described.topic}, partition {partition}: the next message is that of offset {offset}, and "
        )
        if offset < earliest:
            return InvalidArgument(
                f"{place}the topic begins with {earliest} now: {earliest - offset} messages were removed before they "
                "were read. Bring them back, or begin anew with other checkpoints, and let the topic keep messages for "
                "longer (retention.ms)"
            )
        return InvalidArgument(
            f"{place}the topic ends before {latest}: it was made anew, or has lost messages. Begin anew, with other "
            "checkpoints"
        )

    def open(self, partition: str, position: Json | None) -> Partition:
        number = int(partition)
        with self._lock:
            if position is None:
                position = {"offset": self._starts[number]}
                if self.described.bounded:
                    position = {**position, "until": self._ends[number]}
        return KafkaPartition(self.described, self._properties(), self.records, number, position, self.gone)

    def _properties(self) -> Mapping[str, Any]:
        """Of the consumer of a partition."""
        described = self.described
        return {
            **{name: value for name, value in _TUNED.items() if name not in described.client_configs},
            "group.id": described.group_id or "arroyo_udf",  # the client wants one; nobody joins it
            **_ALONE,
            "auto.offset.reset": "error",
            "isolation.level": described.read_mode,
            "enable.partition.eof": True,  # also where no message follows: behind the end of a transaction
        }

    def announce(self, positions: Mapping[str, Json]) -> None:
        topic, group = self.described.topic, self.described.group_id
        if group is None:
            return
        library = self.admin.library
        self._announcing = self._announcing or self.described.client("Consumer", {"group.id": group, **_ALONE})
        offsets = [library.TopicPartition(topic, int(name), at["offset"]) for name, at in positions.items()]
        with contextlib.suppress(library.KafkaException):
            self._announcing.commit(offsets=offsets, asynchronous=True)

    def close(self) -> None:
        if self._announcing is not None:
            self._announcing.close()
