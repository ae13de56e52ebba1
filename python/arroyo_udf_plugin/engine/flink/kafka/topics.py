"""Topics of Kafka as operators of Flink.

    read_topic(env, text, stage)                         a reading stage whose messages Flink's KafkaSource reads
    write_topic(env, messages, text, model, name)        a sink whose messages Flink's KafkaSink writes

Guarantees: with checkpoints, what is read has its effect once, and with exactly_once each row is once in the topic, for
readers with read_committed. Reading begins where it begins on the embedded engine; an offset that the topic has no more
is an error. No row waits outside of Kafka when a checkpoint begins.

Assumes: PyFlink, in the process that submits the job. A transaction that was prepared for a checkpoint is still open
when the job goes on: Kafka aborts it after transaction.timeout.ms, and KafkaSink says so in its log only.
"""

from __future__ import annotations

import contextlib
import urllib.parse
from collections.abc import Mapping
from typing import Any

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import DataStream, KeyedStream, StreamExecutionEnvironment
from pyflink.datastream.connectors.base import Sink, Source
from pyflink.java_gateway import get_gateway

from ...connectors.kafka.sink import KafkaOutput
from ...connectors.kafka.source import WATCH, KafkaInput
from ...pipeline.inputs import sources_of
from ..cut import CutStage
from ..functions import bytes_type, posted_type, program_of
from ..java_classes import new_java
from ..java_client import is_like_java, properties_of
from ..keys import keys_of_slices
from .asking import JavaAdmin, TopicInJava, as_properties, check_connector
from .functions import FeedFunction, MessagesFunction

_LARGEST = 64 << 20
"""Bytes of a message: the topic's own limit is lower."""
_OPEN = 15 * 60 * 1000
"""Milliseconds of a transaction: the longest that brokers allow, unless they are told otherwise."""


def read_topic(env: StreamExecutionEnvironment, text: str, stage: CutStage) -> DataStream:
    """text: `JobArguments`. Raises InvalidArgument."""
    program = program_of(text)
    assert stage.source is not None
    model = sources_of(program.planned.resolved)[stage.source].model
    positions = program.positions[stage.source]
    check_connector()
    with contextlib.closing(TopicInJava(model)) as topic:
        topic.check_readable()
        topic.check(positions)
        partitions = [int(name) for name in topic.partitions()]
        starts = {**topic.starts, **{int(name): at["offset"] for name, at in positions.items()}}
        ends = {**topic.ends, **{int(name): at["until"] for name, at in positions.items() if "until" in at}}
        source = _kafka_source(env, model, f"{program.planned.name}-{stage.number}", starts, ends)
    messages = env.from_source(Source(source), WatermarkStrategy.no_watermarks(), topic.name, bytes_type())
    fed = _by_slice(env, messages.uid(f"kafka-{stage.number}"), program.width, stage)
    return fed.process(FeedFunction(text, stage.number, partitions), posted_type())


def _kafka_source(
    env: StreamExecutionEnvironment, model: KafkaInput, client: str, starts: Mapping[int, int], ends: Mapping[int, int]
) -> Any:
    jvm = get_gateway().jvm
    own = {
        "isolation.level": model.read_mode,
        "partition.discovery.interval.ms": str(round(WATCH * 1000)),
        "commit.offsets.on.checkpoint": str(model.group_id is not None).lower(),
    }
    topics = jvm.java.util.ArrayList()
    topics.add(model.topic)
    builder = jvm.org.apache.flink.connector.kafka.source.KafkaSource.builder()
    builder.setProperties(as_properties({**properties_of(model), **own}))
    builder.setTopics(topics).setClientIdPrefix(client).setStartingOffsets(_offsets(env, starts))
    builder.setDeserializer(new_java(env, "kafka/ReadsRecords"))
    if model.group_id is not None:
        builder.setGroupId(model.group_id)
    if model.bounded:
        builder.setBounded(_offsets(env, ends))
    return builder.build()


def _offsets(env: StreamExecutionEnvironment, offsets: Mapping[int, int]) -> Any:
    known = new_java(env, "kafka/KnownOffsets")
    for partition, offset in offsets.items():
        known.put(partition, offset)
    return known


def _by_slice(env: StreamExecutionEnvironment, messages: DataStream, width: int, stage: CutStage) -> KeyedStream:
    """Many messages of a partition as one record, with the key of its slice, and all that slices are told."""
    gateway = get_gateway()
    keys = gateway.new_array(gateway.jvm.int, width)
    for slice, key in enumerate(keys_of_slices(width)):
        keys[slice] = key
    with_keys = Types.ROW([Types.INT(), posted_type()]).get_java_type_info()
    key_type = Types.ROW([Types.INT()]).get_java_type_info()
    packs, feeds = new_java(env, "kafka/PacksRecords"), new_java(env, "kafka/FeedsSlices")
    packs.setKeys(keys)
    feeds.setKeys(keys)
    packed = DataStream(messages._j_data_stream.transform("packs", with_keys, packs)).uid(f"packs-{stage.number}")
    keyed = packed._j_data_stream.keyBy(gateway.jvm.KeyByKeySelector(), key_type)
    fed = DataStream(keyed.transform("feeds", with_keys, feeds)).uid(f"feeds-{stage.number}")
    again = gateway.jvm.org.apache.flink.streaming.api.datastream.DataStreamUtils.reinterpretAsKeyedStream(
        fed._j_data_stream, gateway.jvm.KeyByKeySelector(), key_type
    )
    return KeyedStream(again, posted_type(), packed)


def write_topic(
    env: StreamExecutionEnvironment, messages: DataStream, text: str, model: KafkaOutput, name: str
) -> None:
    """messages: for the sink of this name, as `posted_type` has them. text: `JobArguments`. model: the sink's, with the
    values of its variables. Raises InvalidArgument."""
    program = program_of(text)
    check_connector()
    _, schema = program.topic_of(name)
    model.messages(schema, name).check()
    with contextlib.closing(JavaAdmin(model)) as admin:
        admin.check_allowed("WRITE")  # to a topic that is there
    packed = messages.process(MessagesFunction(text, name), bytes_type()).uid(f"messages-{name}")
    row = Types.ROW([bytes_type(), bytes_type(), Types.LONG()]).get_java_type_info()
    unpacks = new_java(env, "kafka/UnpacksMessages")
    each = DataStream(packed._j_data_stream.transform("unpacks", row, unpacks)).uid(f"unpacks-{name}")
    sink = _kafka_sink(env, model, program.is_exactly_once(model), _prefix(program.planned.name, name, model.topic))
    each.sink_to(Sink(sink)).uid(f"sink-{name}").name(name)


def _kafka_sink(env: StreamExecutionEnvironment, model: KafkaOutput, is_exactly_once: bool, prefix: str) -> Any:
    flink = get_gateway().jvm.org.apache.flink.connector
    own = {
        "max.request.size": str(_LARGEST),
        "buffer.memory": str(2 * _LARGEST),
        "transaction.timeout.ms": str(_OPEN),
    }
    guarantees = flink.base.DeliveryGuarantee
    writes = new_java(env, "kafka/WritesMessages")
    writes.setTopic(model.topic)
    writes.setLikeJava(is_like_java(model))
    properties = {**own, **properties_of(model)}
    builder = flink.kafka.sink.KafkaSink.builder().setBootstrapServers(model.bootstrap_servers)
    builder.setKafkaProducerConfig(as_properties(properties)).setRecordSerializer(writes)
    builder.setDeliveryGuarantee(guarantees.EXACTLY_ONCE if is_exactly_once else guarantees.AT_LEAST_ONCE)
    if is_exactly_once:
        builder.setTransactionalIdPrefix(prefix)
    return builder.build()


def _prefix(pipeline: str, sink: str, topic: str) -> str:
    """Of the names of transactions: a later run of this pipeline ends what an earlier one has left open."""
    return "/".join(["arroyo-udf", *(urllib.parse.quote(part, safe=" []") for part in (pipeline, sink, topic))])
