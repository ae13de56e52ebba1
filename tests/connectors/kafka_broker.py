"""A private Kafka broker for a test run, which can be killed and keeps its data. It ends with its user.

    with kafka_broker.broker(folder) as kafka:
        topic = kafka.topic(partitions=2)               a new one, with a name of its own
        kafka.write(topic, [b"a", b"b"], partition=1)
        kafka.messages(topic)                           what readers of committed messages see
        kafka.kill()                                    SIGKILL; clients are refused
        kafka.restart()                                 the same address, the same data

It listens on 127.0.0.1: `address` takes any client; `guarded`, and with TLS `secured`, those that know a password of
`USERS`, by PLAIN or SCRAM-SHA-256. These two may do what no ACL of a topic denies. The broker's certificate is of the
authority in the file `authority`. Clients of `proxied` come to a proxy, which `proxy()` starts.
Guarantees: a message that was written survives `kill`. The ports stay ours while the broker is dead. When the `with`
block is left, the broker has ended; if the process is killed, it ends, too.
Assumes: KAFKA_JARS names the folder of the broker's jars, and Java 17 and setpriv are there.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import subprocess
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import tcp_proxy
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

USERS = {"reader": "readers-password", "writer": "writers-password"}
PATIENCE = 120.0
"""Seconds for what a broker does at once."""
_IDENTITY = "dGVzdHMtb2Yta2Fma2EhIQ"  # of the cluster
COMMON: Mapping[str, object] = {
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "OPEN",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS",
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 1,
    "group.initial.rebalance.delay.ms": 0,
    "auto.create.topics.enable": "false",
    "num.network.threads": 2,
    "num.io.threads": 2,
    "log.cleaner.enable": "false",
    "broker.heartbeat.interval.ms": 200,
    "broker.session.timeout.ms": 1000,  # a new broker waits for the end of the session of one that was killed
}
"""Properties of each process."""


def _archive() -> Path:
    """Of the classes that a broker needs: with it, one starts in half of the time. A JVM for which it is none does
    without."""
    return Path(os.environ["KAFKA_JARS"], "classes.jsa")


class KafkaServer:
    """A process of Kafka, which runs and answers, and can be killed. folder: of its data and its log.

    address: where it answers. configuration: its properties. formatting: further options of the formatting of its data.
    """

    def __init__(self, folder: Path, address: str, configuration: Mapping[str, object], *formatting: str) -> None:
        self._folder, self._own_address = folder, address
        self._process: subprocess.Popen[bytes] | None = None
        self._properties = folder / "server.properties"
        written = {**configuration, "log.dirs": folder / "data"}
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in written.items()))
        formatted = ("format", "-t", _IDENTITY, "-c", str(self._properties), *formatting)
        command = self._command("kafka.tools.StorageTool", *formatted)
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True)
        self.restart()

    def _command(self, main: str, *arguments: str, classes: str | None = None) -> list[str]:
        jars, dies_with_us = os.path.join(os.environ["KAFKA_JARS"], "*"), ["setpriv", "--pdeathsig", "KILL", "--"]
        starts_fast = ["-XX:TieredStopAtLevel=1", classes or f"-XX:SharedArchiveFile={_archive()}"]
        return [*dies_with_us, "java", "-Xmx256m", "-XX:+UseSerialGC", *starts_fast, "-cp", jars, main, *arguments]

    def kill(self) -> None:
        """SIGKILL. The data stays."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        """Starts it; after `kill`, or while it runs. It answers when this returns."""
        if not _archive().exists():
            self._archive_classes()
        self._start()

    def _archive_classes(self) -> None:
        """Of a whole life. Several tests may do it at once."""
        made = _archive().with_name(uuid.uuid4().hex)
        self._start(f"-XX:ArchiveClassesAtExit={made}")
        assert self._process is not None
        self._process.terminate()
        self._process.wait(PATIENCE)
        made.rename(_archive())

    def _start(self, classes: str | None = None) -> None:
        self.kill()
        with open(self._folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                self._command("kafka.Kafka", str(self._properties), classes=classes),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C reaches the caller alone
            )
        asked = {"bootstrap.servers": self._own_address, "log_level": 0, "reconnect.backoff.max.ms": 100}
        AdminClient(asked).list_topics(timeout=PATIENCE)


class Broker(KafkaServer):
    """Made by `broker`. address, guarded, secured, proxied: "127.0.0.1:PORT". copies: brokers that will have the
    positions of groups and the states of transactions."""

    def __init__(self, folder: Path, copies: int = 1) -> None:
        self._reserved = [bound() for _ in range(6)]  # they never listen: they keep the ports
        addresses = [f"127.0.0.1:{reserved.getsockname()[1]}" for reserved in self._reserved]
        self.address, self.guarded, self.secured, self.proxied, self._behind, self.controller = addresses
        self.authority = _certified(folder)
        users = [f"SCRAM-SHA-256=[name={name},password={password}]" for name, password in USERS.items()]
        scram = itertools.chain.from_iterable(("--add-scram", user) for user in users)
        super().__init__(folder, self.address, self._configuration(folder, copies), *scram)
        self.admin = AdminClient(self.client())

    def _configuration(self, folder: Path, copies: int) -> Mapping[str, object]:
        users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
        jaas = {
            "plain": f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};",
            "scram-sha-256": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
        }
        checked = {
            f"listener.name.{listener}.{mechanism}.sasl.jaas.config": module
            for listener in ("guarded", "secured")
            for mechanism, module in jaas.items()
        }
        taken = f"OPEN://{self.address},GUARDED://{self.guarded},SECURED://{self.secured}"
        return {
            **COMMON,
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@{self.controller}",
            "listeners": f"{taken},PROXIED://{self._behind},CONTROLLER://{self.controller}",
            "advertised.listeners": f"{taken},PROXIED://{self.proxied}",
            "listener.security.protocol.map": (
                "OPEN:PLAINTEXT,PROXIED:PLAINTEXT,GUARDED:SASL_PLAINTEXT,SECURED:SASL_SSL,CONTROLLER:PLAINTEXT"
            ),
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            **checked,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": folder / "broker.pem",
            "offsets.topic.replication.factor": copies,
            "transaction.state.log.replication.factor": copies,
        }

    def client(self, **properties: object) -> dict[str, object]:
        """The configuration of a client; "." is "_" in names."""
        named = {name.replace("_", "."): value for name, value in properties.items()}
        return {"bootstrap.servers": self.address, "log_level": 0, **named}

    def proxy(self) -> tcp_proxy.Proxy:
        listening = bound(int(self.proxied.rpartition(":")[2]))
        return tcp_proxy.Proxy(listening, self._behind)

    def close(self) -> None:
        self.kill()
        for reserved in self._reserved:
            reserved.close()

    # ---- Topics and messages ----

    def topic(self, partitions: int = 1, brokers: Sequence[int] = (1,), **configuration: object) -> str:
        """A new one; returns its name. brokers: that have it; the first one leads. configuration: of the topic; "." is
        "_" in names."""
        name = f"t{uuid.uuid4().hex[:12]}"
        named = {key.replace("_", "."): str(value) for key, value in configuration.items()}
        new = NewTopic(name, partitions, replica_assignment=[list(brokers)] * partitions, config=named)
        self.admin.create_topics([new])[name].result(PATIENCE)
        patience = time.monotonic() + PATIENCE
        while not self._knows(name):  # brokers do a moment after it was made
            assert time.monotonic() < patience, f"the broker does not know the topic {name}"
            time.sleep(0.005)  # between two looks; no result depends on its length
        return name

    def _knows(self, topic: str) -> bool:
        try:
            self.admin.describe_topics(TopicCollection([topic]))[topic].result(PATIENCE)
        except KafkaException:
            return False
        return True

    def deny(self, topic: str, user: str, operation: AclOperation) -> None:
        """By an ACL. All else is allowed to all users."""
        denied, allowed = (
            AclBinding(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, f"User:{who}", "*", what, answer)
            for who, what, answer in (
                (user, operation, AclPermissionType.DENY),
                ("*", AclOperation.ALL, AclPermissionType.ALLOW),
            )
        )
        for made in self.admin.create_acls([denied, allowed]).values():
            made.result(PATIENCE)

    def partitions(self, topic: str) -> int:
        """How many there are."""
        return len(self.admin.list_topics(topic, PATIENCE).topics[topic].partitions)

    def write(self, topic: str, values: Iterable[bytes | None], partition: int = 0, key: bytes | None = None) -> None:
        """Messages of one partition. They are durable when this returns."""
        failed: list[str] = []
        configuration = self.client(enable_idempotence=True, linger_ms=5, queue_buffering_max_messages=0)
        configuration |= {"delivery.report.only.error": True, "on_delivery": lambda error, _: failed.append(str(error))}
        producer = Producer(configuration)
        for value in values:
            producer.produce(topic, value, key, partition)
            producer.poll(0)
        assert producer.flush(PATIENCE) == 0
        assert failed == []

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """The offsets of a group of consumers, by partition."""
        asked = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(PATIENCE)
        return {at.partition: at.offset for at in asked.topic_partitions if at.topic == topic}

    def messages(self, topic: str) -> dict[int, list[Message]]:
        """By partition: all that readers of committed messages see now."""
        properties = self.client(group_id="tests", enable_auto_commit=False, enable_partition_eof=True)
        properties |= {"fetch.wait.max.ms": 5}  # otherwise the end is told half a second later
        consumer = Consumer(properties | {"isolation.level": "read_committed", "auto.offset.reset": "earliest"})
        with contextlib.closing(consumer):
            partitions = consumer.list_topics(topic, PATIENCE).topics[topic].partitions
            consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
            found: dict[int, list[Message]] = {partition: [] for partition in sorted(partitions)}
            left = set(partitions)
            while left:
                message = consumer.poll(PATIENCE)
                assert message is not None, f"{topic}: no end of the partitions {left}"
                if message.error() is None:
                    found[message.partition()].append(message)
                else:
                    left.discard(message.partition())
            return found


@contextlib.contextmanager
def broker(folder: Path) -> Iterator[Broker]:
    """Starts a broker whose data and log are in `folder`."""
    with contextlib.closing(Broker(folder)) as started:
        yield started


def _certified(folder: Path) -> Path:
    """Makes an authority, and a key with its certificate for the broker. Returns the authority's own certificate."""

    def openssl(*arguments: object) -> None:
        subprocess.run(["openssl", *map(str, arguments)], cwd=folder, check=True, capture_output=True)

    new = ("-newkey", "rsa:2048", "-nodes")
    openssl("req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", "-days", 2, "-subj", "/CN=Tests")
    openssl("req", *new, "-keyout", "broker.key", "-out", "broker.csr", "-subj", "/CN=broker")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", 2, "-extfile", "names")
    openssl("x509", "-req", "-in", "broker.csr", *signed, "-out", "broker.crt")
    (folder / "broker.pem").write_text((folder / "broker.key").read_text() + (folder / "broker.crt").read_text())
    return folder / "ca.pem"


def bound(port: int = 0) -> socket.socket:
    """A socket on a port; 0: a free one. With SO_REUSEADDR, several may be bound to it as long as none of them
    listens."""
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", port))
    return bound
