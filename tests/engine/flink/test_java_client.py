"""What a description says of a Kafka cluster, for Kafka's client in Java."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from arroyo_udf_plugin.engine.connectors.kafka.source import KafkaInput
from arroyo_udf_plugin.engine.flink.java_client import is_like_java, properties_of
from arroyo_udf_plugin.errors import InvalidArgument


def topic(configs: Mapping[str, str] | None = None, **keys: Any) -> KafkaInput:
    return KafkaInput(
        bootstrap_servers="a:1,b:2", topic="t", format="raw_string", client_configs=dict(configs or {}), **keys
    )


def test_nothing_but_the_servers_is_needed() -> None:
    assert properties_of(topic()) == {"bootstrap.servers": "a:1,b:2"}


def test_names_that_are_others_in_java() -> None:
    given = {
        "linger.ms": "5",
        "fetch.wait.max.ms": "50",
        "message.max.bytes": "2000000",
        "ssl.ca.location": "/etc/ca.pem",
        "ssl.endpoint.identification.algorithm": "none",
    }
    assert properties_of(topic(given)) == {
        "bootstrap.servers": "a:1,b:2",
        "linger.ms": "5",
        "fetch.max.wait.ms": "50",
        "max.request.size": "2000000",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/etc/ca.pem",
        "ssl.endpoint.identification.algorithm": "",
    }


@pytest.mark.parametrize(
    ("mechanism", "module"), [("PLAIN", "plain.PlainLoginModule"), ("SCRAM-SHA-512", "scram.ScramLoginModule")]
)
def test_a_user_with_a_password(mechanism: str, module: str) -> None:
    auth = {"protocol": "SASL_SSL", "mechanism": mechanism, "username": "anna", "password": 'a"b\\c'}
    found = properties_of(topic(auth=auth))
    assert (found["security.protocol"], found["sasl.mechanism"]) == ("SASL_SSL", mechanism)
    package = "org.apache.flink.kafka.shaded.org.apache.kafka.common.security"
    assert found["sasl.jaas.config"] == f'{package}.{module} required username="anna" password="a\\"b\\\\c";'


@pytest.mark.parametrize(
    ("configs", "why"),
    [
        ({"socket.keepalive.enable": "true"}, "on Flink, 'socket.keepalive.enable' has no meaning"),
        ({"ssl.ca.location": "ca.pem"}, "ssl.ca.location: ca.pem: Flink's processes are in other folders"),
        ({"partitioner": "fnv1a"}, "partitioner: on Flink, write consistent_random or murmur2_random"),
        (
            {"sasl.mechanism": "GSSAPI", "sasl.username": "anna", "sasl.password": "secret"},
            "sasl.mechanism 'GSSAPI' is not for Flink: use PLAIN",
        ),
    ],
)
def test_what_java_does_not_have(configs: Mapping[str, str], why: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        properties_of(topic(configs))
    assert why in str(caught.value)
    assert "secret" not in str(caught.value)


def test_partitions_of_keys() -> None:
    assert [is_like_java(topic(configs)) for configs in ({}, {"partitioner": "murmur2_random"})] == [False, True]
