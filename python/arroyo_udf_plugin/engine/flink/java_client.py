"""What a description says of a Kafka cluster, as properties of Kafka's client in Java, which Flink's connector has.

    properties_of(topic)       {"bootstrap.servers": ..., "security.protocol": ...}

`client_configs` have librdkafka's names. Those whose meaning is the same get Java's; others are refused by name.

Assumes: the connector's jar is flink-sql-connector-kafka, in which Kafka's own classes have other names.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import InvalidArgument, nearest
from ..connectors.kafka.topic import KafkaTopic
from ..connectors.location import location_of

SHADED = "org.apache.flink.kafka.shaded.org.apache.kafka"
"""Kafka's own package within the jar."""
_LOGIN = {"PLAIN": "plain.PlainLoginModule"} | dict.fromkeys(
    ("SCRAM-SHA-256", "SCRAM-SHA-512"), "scram.ScramLoginModule"
)
_SAME = (
    *("client.id", "client.rack", "security.protocol", "sasl.mechanism", "ssl.endpoint.identification.algorithm"),
    *("ssl.key.password", "ssl.keystore.password", "metadata.max.age.ms"),
    *("retry.backoff.ms", "reconnect.backoff.ms", "reconnect.backoff.max.ms", "connections.max.idle.ms"),
    *("fetch.min.bytes", "fetch.max.bytes", "max.partition.fetch.bytes"),
    *("acks", "linger.ms", "batch.size", "compression.type", "delivery.timeout.ms", "transaction.timeout.ms"),
)
_NAMES = {name: name for name in _SAME} | {
    "sasl.mechanisms": "sasl.mechanism",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "request.required.acks": "acks",
    "queue.buffering.max.ms": "linger.ms",
    "compression.codec": "compression.type",
    "message.timeout.ms": "delivery.timeout.ms",
    "message.max.bytes": "max.request.size",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
    "ssl.keystore.location": "ssl.keystore.location",
}
_TYPES = {
    "ssl.truststore.location": ("ssl.truststore.type", "PEM"),
    "ssl.truststore.certificates": ("ssl.truststore.type", "PEM"),
    "ssl.keystore.certificate.chain": ("ssl.keystore.type", "PEM"),
    "ssl.keystore.location": ("ssl.keystore.type", "PKCS12"),
}
"""What Java must be told, and librdkafka knows."""
_USER = ("sasl.username", "sasl.password")
_PARTITIONER = "partitioner"
_PARTITIONERS = ("consistent_random", "murmur2_random")
"""The usual one of librdkafka, and that of Java."""


def properties_of(topic: KafkaTopic) -> Mapping[str, str]:
    """Raises InvalidArgument for what Java's client does not have."""
    given = {**topic.client_configs, **({} if topic.auth is None else topic.auth.properties())}
    found = {"bootstrap.servers": topic.bootstrap_servers}
    for name, value in given.items():
        if name in _USER:
            continue
        if name == _PARTITIONER:
            if value not in _PARTITIONERS:
                raise InvalidArgument(f"client_configs: partitioner: on Flink, write {' or '.join(_PARTITIONERS)}")
            continue
        if name not in _NAMES:
            raise InvalidArgument(
                f"client_configs: on Flink, {name!r} has no meaning, whose client is Kafka's own: leave it out "
                f"({nearest(name, _NAMES)})"
            )
        if name.endswith(".location"):
            _check_path(name, value)
        own = _NAMES[name]
        found[own] = "" if (own, value) == ("ssl.endpoint.identification.algorithm", "none") else str(value)
        if own in _TYPES:
            kind, type_ = _TYPES[own]
            found[kind] = type_
    if set(_USER) <= set(given):
        found["sasl.jaas.config"] = _login(found.get("sasl.mechanism", ""), *(str(given[name]) for name in _USER))
    return found


def is_like_java(topic: KafkaTopic) -> bool:
    """Whether keys have the partitions that Java's client chooses."""
    return topic.client_configs.get(_PARTITIONER) == "murmur2_random"


def _check_path(name: str, path: str) -> None:
    where = location_of(path)
    where.admitted()
    if where.path is None or not where.path.is_absolute():
        raise InvalidArgument(
            f"client_configs: {name}: {path}: Flink's processes are in other folders: write the whole path, from / on"
        )


def _login(mechanism: str, user: str, password: str) -> str:
    if mechanism not in _LOGIN:
        raise InvalidArgument(f"sasl.mechanism {mechanism!r} is not for Flink: use {', '.join(_LOGIN)}")
    module = f"{SHADED}.common.security.{_LOGIN[mechanism]}"
    return f"{module} required username={_quoted(user)} password={_quoted(password)};"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
