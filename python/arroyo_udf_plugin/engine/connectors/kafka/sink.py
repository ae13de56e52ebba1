"""A topic of Kafka that gets each row as a message.

Exactly once: an epoch's rows wait in the checkpoints' store. `apply` writes them in one transaction, which also notes
the epoch (`epochs.py`); an epoch that is noted is not written again. Readers with read_committed see each row once.

At least once: rows are sent at once, and a checkpoint waits until all of them have arrived. Rows behind the last
checkpoint come again after a resume. So it is without checkpoints, too.

Guarantees: a row that the topic cannot take is an InvalidArgument before its epoch is committed.

Assumes: nobody deletes the pipeline's groups, or makes the topic anew, while the pipeline has checkpoints.
"""

from __future__ import annotations

import itertools
import threading
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Literal, Self, get_args

import pyarrow as pa
import pydantic

from ....errors import InvalidArgument, WrongCheckpoints
from ..described import Output, Several
from ..interface import Json, LaterRows, Sealed, Stage, later_epochs
from ..staged_rows import StagedRows
from ..table_options import TableOptions, chosen
from .avro_values import AvroWriter
from .epochs import KafkaEpochs, Noted, forgotten, last_noted
from .messages import Messages
from .producer import OutgoingMessages, check_sizes, limit_of, refusals
from .protobuf_writer import ProtobufWriter
from .topic import JSON, KafkaTopic, topic_keys
from .value_writers import JsonValueWriter, PlainWriter, ValueWriter

CommitMode = Literal["exactly_once", "at_least_once"]
_LASTS = 120.0  # seconds for a message without transactions


class KafkaOutput(KafkaTopic, Output):
    """Messages of a Kafka topic."""

    type: Literal["kafka"] = "kafka"

    commit_mode: CommitMode | None = None
    """"exactly_once": in transactions, each with the rows of a checkpoint; otherwise "at_least_once". By default the
    first if there are checkpoints."""

    key_field: str | None = None
    """The column with the messages' keys, of text or bytes."""

    timestamp_field: str | None = None
    """The column with the messages' times; otherwise they have the time at which they are sent."""

    columns: Several[str] | None = None
    """Those of the value; otherwise all, and without those of key and time if it is no JSON."""

    timestamps: Literal["rfc3339", "unix_millis"] | None = None
    """How JSON has times: see sinks of files. `debezium_json` has "unix_millis" by default."""

    decimals: Literal["string", "number", "bytes"] | None = None
    """How JSON has decimals: "string" (default), or "number", of which not every reader keeps all digits.
    `debezium_json` has them as "bytes" by default: in base64, without the place of the point."""

    json_columns: Several[str] = ()
    """Columns whose texts are JSON."""

    @pydantic.model_validator(mode="after")
    def _fits_its_format(self) -> Self:
        if self.format != "debezium_json" and self.decimals == "bytes":
            raise ValueError('decimals = "bytes" is of the format debezium_json')
        return self

    @classmethod
    def of_table(cls, options: TableOptions) -> Self:
        keys = {
            "commit_mode": options.one_of("sink.commit_mode", {mode: mode for mode in get_args(CommitMode)}),
            "key_field": options.text("sink.key_field"),
            "timestamp_field": options.text("sink.timestamp_field"),
        }
        topic = topic_keys(options, (keys["key_field"], keys["timestamp_field"]))
        if (format_ := topic.get("format", "json")) in JSON:
            keys |= {
                "timestamps": options.json_timestamps(),
                "decimals": options.json_decimals(format_ == "debezium_json"),
            }
            keys["json_columns"] = options.json_columns()
        return cls(**topic, **chosen(keys))

    def check(self, schema: pa.Schema) -> None:
        self.messages(schema, "kafka").check()
        self.admin().check_writable()

    def sink(
        self, schema: pa.Schema, slice: int, stage: Stage | None, pipeline: str, name: str
    ) -> TransactionalKafkaSink | FlushedKafkaSink:
        messages = self.messages(schema, name)
        if stage is None and self.commit_mode == "exactly_once":
            raise InvalidArgument(f'{name}: exactly_once needs checkpoints; without, write "at_least_once"')
        if stage is None or self.commit_mode == "at_least_once":
            return FlushedKafkaSink(self, messages, name)
        return TransactionalKafkaSink(self, messages, slice, stage, pipeline, name)

    def messages(self, schema: pa.Schema, name: str) -> Messages:
        """What rows become. Raises InvalidArgument."""
        shown = f"{name} ({self.topic})"
        key, time, with_key = self.key_field, self.timestamp_field, not self.format.startswith("raw_")
        return Messages(shown, schema, lambda own: self._writer(own, shown), self.columns, key, time, with_key)

    def _writer(self, schema: pa.Schema, name: str) -> ValueWriter:
        registry = None if self.schema_registry is None else self.schema_registry.client()
        if self.format == "avro":
            return AvroWriter(name, schema, registry, self.subject, self.schema_file)
        if self.format == "protobuf":
            file, message = self.schema_file or "", self.message_name or ""
            return ProtobufWriter(name, schema, registry, self.subject, file, message)
        if self.format not in JSON:
            return PlainWriter(name, schema, self.format)
        is_debezium = self.format == "debezium_json"
        how = {
            "timestamps": self.timestamps or ("unix_millis" if is_debezium else None),
            "decimals": self.decimals or ("bytes" if is_debezium else "string"),
            "json_columns": self.json_columns,
        }
        return JsonValueWriter(name, schema, is_debezium, registry, self.subject, how)


class TransactionalKafkaSink:
    """Exactly once. slice: of this engine's rows."""

    def __init__(
        self, topic: KafkaTopic, messages: Messages, slice: int, stage: Stage, pipeline: str, name: str
    ) -> None:
        self.name = name
        self._topic, self._messages, self._slice, self._history = topic, messages, slice, stage.history
        self._place = f"{topic.cluster}, topic {topic.topic!r}"
        self._staged = StagedRows(stage, "kafka", name, slice, self._place)
        parts = [urllib.parse.quote(part, safe=" []") for part in (pipeline, name, topic.topic)]
        self._owner = "/".join(["arroyo-udf", *parts])
        self._epochs: dict[int, KafkaEpochs] = {}
        self._limits: list[int | None] = []  # asked once

    def _named(self, slice: int) -> str:
        return f"{self._owner}/{slice}"

    @property
    def _limit(self) -> int | None:
        if not self._limits:
            self._limits.append(limit_of(self._topic))
        return self._limits[0]

    def _of(self, slice: int) -> KafkaEpochs:
        if slice not in self._epochs:
            self._epochs[slice] = KafkaEpochs(self._topic, self._named(slice), self._history, self._limit)
        return self._epochs[slice]

    def write(self, batch: pa.RecordBatch) -> None:
        messages = self._messages.of(batch)
        check_sizes(self._topic, messages, self._limit)
        self._staged.add(messages)

    def seal(self, epoch: int) -> Sealed | None:
        return self._staged.seal()

    def apply(self, epoch: int, stored: Json) -> None:
        slice: int = stored["slice"]
        try:
            self._of(slice).write(epoch, lambda: self._staged.read(stored, epoch))
        except InvalidArgument as error:
            error.add_note(f"epoch {epoch} is committed: resume when the topic takes its rows")
            raise
        if slice != self._slice:  # of an engine with more slices
            self._epochs.pop(slice).close()
        self._staged.delete(stored)

    def check(self, committed: int, epoch: int, waiting: Sequence[Json]) -> None:
        slices = [stored["slice"] for stored in waiting]
        found = self._noted(slices)
        own = {slice: last.epoch for slice, last in found.items() if last.history == self._history}
        if (last := max(own.values(), default=0)) >= committed:
            raise WrongCheckpoints(later_epochs(f"{self._place}: the topic", f"epoch {last}", committed))
        others = max((last.epoch for last in found.values()), default=0)
        if others and not own:
            raise WrongCheckpoints(self._of_others(others, list(found)))
        for stored in waiting:
            if stored["slice"] not in own:
                raise forgotten(self._topic, self._named(stored["slice"]), epoch)
            if own[stored["slice"]] < epoch:
                self._staged.check(stored, epoch)

    def _noted(self, slices: Sequence[int] = ()) -> Mapping[int, Noted]:
        """What was noted for each slice: for the first ones up to one for which nothing is, because each engine notes
        something for all of its own; and for `slices`. Raises InvalidArgument."""
        found: dict[int, Noted] = {}
        for slice in itertools.count():
            if (last := self._last(slice)) is None:
                break
            found[slice] = last
        further = {other: self._last(other) for other in slices if other > slice}
        return found | {other: last for other, last in further.items() if last is not None}

    def _last(self, slice: int) -> Noted | None:
        with refusals(self._topic):
            return last_noted(self._topic, self._named(slice))

    def _of_others(self, epoch: int, slices: Sequence[int]) -> str:
        groups = " ".join(f"--group '{self._named(slice)}'" for slice in slices)
        return (
            f"{self._place}: this pipeline has written here with other checkpoints, up to their epoch {epoch}: if "
            "these are in another place, or in one that is not mounted, go on from there. To begin anew, name "
            "another topic. To add rows to those that are there, forget whose they are: "
            f"kafka-consumer-groups.sh --bootstrap-server {self._topic.bootstrap_servers} --delete {groups}"
        )

    def clear(self, committed: int) -> None:
        self._of(self._slice).begin(committed - 1)
        self._staged.clear(committed)

    def later_rows(self, epoch: int, later: Mapping[int, Sequence[Json] | None]) -> LaterRows:
        own = [last.epoch for last in self._noted().values() if last.history == self._history]
        if max(own, default=0) <= epoch:
            return LaterRows(self.name, "none", f"{self._place} has no later rows")
        return LaterRows(self.name, "doubled", f"rows of {self._place} stay")

    def withdraw(self, epochs: Sequence[tuple[int, int]]) -> None:
        """Rows stay: nothing removes a message of a topic."""

    def finish(self) -> None:
        """There are checkpoints."""

    def close(self) -> None:
        for epochs in self._epochs.values():
            epochs.close()


class FlushedKafkaSink:
    """At least once."""

    def __init__(self, topic: KafkaTopic, messages: Messages, name: str) -> None:
        self.name = name
        self._topic, self._messages = topic, messages
        self._outgoing: OutgoingMessages | None = None
        self._limit: int | None = None
        self._has_rows = False
        self._sending = threading.Lock()  # otherwise `finish` might wait for more and more rows

    def write(self, batch: pa.RecordBatch) -> None:
        if self._outgoing is None:
            self._limit = limit_of(self._topic)
            self._outgoing = OutgoingMessages(
                self._topic, self._limit, {"message.timeout.ms": round(_LASTS * 1000)}, _LASTS
            )
        messages = self._messages.of(batch)
        check_sizes(self._topic, messages, self._limit)
        with self._sending, refusals(self._topic):
            self._outgoing.send(messages)
        self._has_rows = True

    def seal(self, epoch: int) -> Sealed | None:
        has_rows, self._has_rows = self._has_rows, False
        return _Sent(self) if has_rows else None

    def finish(self) -> None:
        if self._outgoing is not None:
            with self._sending, refusals(self._topic):
                self._outgoing.flush()

    def apply(self, epoch: int, stored: Json) -> None:
        """They are there."""

    def check(self, committed: int, epoch: int, waiting: Sequence[Json]) -> None:
        """Nothing says what is in the topic."""

    def clear(self, committed: int) -> None:
        """Rows that are in the topic stay."""

    def close(self) -> None:
        if self._outgoing is not None:
            self._outgoing.close()


class _Sent:
    """Rows that are on their way, or there."""

    def __init__(self, sink: FlushedKafkaSink) -> None:
        self._sink = sink

    def store(self) -> Json:
        self._sink.finish()
        return {}
