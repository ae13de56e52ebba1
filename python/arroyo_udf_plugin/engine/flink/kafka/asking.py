"""What a cluster of Kafka says of a topic, when a job is submitted: it is asked by Kafka's own client, in Flink's JVM.

    topic = TopicInJava(model)
    topic.check(positions)
    topic.partitions()
    topic.starts, topic.ends           offsets, by partition

Where reading begins is decided here, once: a job that fails before its first checkpoint begins at the same messages.

Assumes: PyFlink, in the process that submits the job.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from py4j.protocol import Py4JJavaError  # type: ignore[import-not-found]
from pyflink.java_gateway import get_gateway
from pyflink.util.java_utils import load_java_class

from ....errors import InvalidArgument
from ...connectors.kafka.source import KafkaInput, KafkaSource
from ...connectors.kafka.topic import PATIENCE, KafkaTopic, Refused
from ..java_client import SHADED, properties_of

CONNECTOR = "flink-sql-connector-kafka-5.0.0-2.2.jar"
_CAUSES: Mapping[str, Refused] = {
    "UnknownTopicOrPartitionException": "topic",
    "SaslAuthenticationException": "user",
    "UnsupportedSaslMechanismException": "mechanism",
    "SslAuthenticationException": "certificate",
    "TopicAuthorizationException": "denied",
    "GroupAuthorizationException": "denied",
    "ClusterAuthorizationException": "denied",
    "TimeoutException": "away",
    "DisconnectException": "away",
    "ConfigException": "away",
}


def check_connector() -> None:
    """Raises InvalidArgument if Flink has no connector for Kafka."""
    for name in ("org.apache.flink.connector.kafka.source.KafkaSource", f"{SHADED}.clients.admin.Admin"):
        try:
            load_java_class(name)
        except Py4JJavaError:
            raise InvalidArgument(
                f"topics of Kafka need Flink's own connector, and it is not there: put {CONNECTOR} (from Maven, "
                "org.apache.flink) into Flink's folder lib, or name it for arroyo-udf flink up with --jar"
            ) from None


class JavaAdmin:
    """Questions to a cluster. Raises InvalidArgument."""

    def __init__(self, topic: KafkaTopic) -> None:
        self._topic, self._jvm = topic, get_gateway().jvm
        self.kafka = self._jvm
        for name in SHADED.split("."):
            self.kafka = getattr(self.kafka, name)
        properties = as_properties(properties_of(topic))
        properties.setProperty("default.api.timeout.ms", str(round(PATIENCE * 1000)))
        properties.setProperty("request.timeout.ms", str(round(PATIENCE * 1000 / 2)))
        with self._refusals():
            self._client = self.kafka.clients.admin.Admin.create(properties)

    def partitions(self) -> list[int]:
        return sorted(int(partition.partition()) for partition in self._description().partitions())

    def check_allowed(self, operation: Literal["READ", "WRITE"]) -> None:
        """Otherwise a job would run into it again and again, with an error of Java."""
        allowed = self._description().authorizedOperations()  # None: the brokers do not say
        if allowed is not None and not allowed.contains(getattr(self.kafka.common.acl.AclOperation, operation)):
            raise self._topic.refused("denied", f"{operation} is not among what the brokers allow")

    def _description(self) -> Any:
        names = self._jvm.java.util.ArrayList()
        names.add(self._topic.topic)
        options = self.kafka.clients.admin.DescribeTopicsOptions().includeAuthorizedOperations(True)
        return self.ask(lambda client: client.describeTopics(names, options).allTopicNames()).get(self._topic.topic)

    def of_partitions(self, partitions: Sequence[int]) -> Mapping[int, Any]:
        """As Java has them."""
        make = self.kafka.common.TopicPartition
        return {partition: make(self._topic.topic, partition) for partition in partitions}

    def ask(self, ask: Callable[[Any], Any]) -> Any:
        """ask: gets the client, and returns a future."""
        with self._refusals():
            return ask(self._client).get(round(2 * PATIENCE), self._jvm.java.util.concurrent.TimeUnit.SECONDS)

    @contextlib.contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except Py4JJavaError as error:
            raise self._refusal(error.java_exception) from None

    def _refusal(self, cause: Any) -> InvalidArgument:
        """cause: an exception of Java. The first one behind it whose meaning is known says why."""
        while cause.getClass().getSimpleName() not in _CAUSES and cause.getCause() is not None:
            cause = cause.getCause()
        return self._topic.refused(_CAUSES.get(cause.getClass().getSimpleName()), str(cause.getMessage()))

    def close(self) -> None:
        self._client.close()


class TopicInJava(KafkaSource):
    """The same source, whose questions go through Java."""

    def __init__(self, described: KafkaInput) -> None:
        super().__init__(described)
        self._asking = JavaAdmin(described)

    @property
    def admin(self) -> Any:
        return self._asking

    def check_readable(self) -> None:
        """Raises InvalidArgument."""
        self._asking.check_allowed("READ")

    @property
    def starts(self) -> Mapping[int, int]:
        """Where the first run begins. Known after `partitions`."""
        return self._starts

    @property
    def ends(self) -> Mapping[int, int]:
        """Where a bounded source ends. Known after `partitions`."""
        return self._ends

    def offsets(self, partitions: Sequence[int], where: Literal["earliest", "latest"] | int) -> Mapping[int, int]:
        asking, jvm = self._asking, get_gateway().jvm
        admin = asking.kafka.clients.admin
        kind = admin.OffsetSpec.forTimestamp(where) if isinstance(where, int) else getattr(admin.OffsetSpec, where)()
        level = getattr(asking.kafka.common.IsolationLevel, self.described.read_mode.upper())
        places, asked = asking.of_partitions(partitions), jvm.java.util.HashMap()
        for place in places.values():
            asked.put(place, kind)
        found = asking.ask(lambda client: client.listOffsets(asked, admin.ListOffsetsOptions(level)).all())
        return {partition: int(found.get(place).offset()) for partition, place in places.items()}

    def _committed(self, partitions: Sequence[int]) -> Mapping[int, int]:
        group = self.described.group_id
        found = self._asking.ask(lambda client: client.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata())
        places = self._asking.of_partitions(partitions)
        committed = {partition: found.get(place) for partition, place in places.items()}
        return {partition: int(at.offset()) for partition, at in committed.items() if at is not None}

    def close(self) -> None:
        self._asking.close()


def as_properties(values: Mapping[str, str]) -> Any:
    """As java.util.Properties."""
    properties = get_gateway().jvm.java.util.Properties()
    for name, value in values.items():
        properties.setProperty(name, value)
    return properties
