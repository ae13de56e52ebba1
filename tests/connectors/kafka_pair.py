"""Two brokers of one cluster, of which the second one may be killed: then the first one leads its partitions.

    with kafka_pair.pair(folder) as brokers:
        topic = brokers.topic(partitions=2)         led by the second one
        brokers.second.kill()
        brokers.led_by(topic, 1)                    whether the first one leads all partitions now
        brokers.second.restart()
        brokers.move_back(topic)                    the second one leads again

Guarantees: what was written survives, because both have it. The second broker also has the positions of groups and the
states of transactions, so their coordinator moves, too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import ElectionType, KafkaException, TopicPartition
from confluent_kafka.admin import NewTopic
from kafka_broker import COMMON, PATIENCE, Broker, KafkaServer, bound
from waiting import until

_INTERNAL = ("__consumer_offsets", "__transaction_state")


class BrokerPair:
    """Made by `pair`. first: also the controller; it lives. addresses: of both, for clients."""

    def __init__(self, folder: Path) -> None:
        first, second = folder / "first", folder / "second"
        first.mkdir()
        second.mkdir()
        self._reserved = bound()
        address = f"127.0.0.1:{self._reserved.getsockname()[1]}"
        with contextlib.ExitStack() as ending:
            ending.callback(self._reserved.close)
            self.first = ending.enter_context(contextlib.closing(Broker(first, copies=2)))
            configuration = {
                **COMMON,
                "process.roles": "broker",
                "node.id": 2,
                "controller.quorum.voters": f"1@{self.first.controller}",
                "listeners": f"OPEN://{address}",
                "listener.security.protocol.map": "OPEN:PLAINTEXT,CONTROLLER:PLAINTEXT",
            }
            self.second = KafkaServer(second, address, configuration)
            ending.callback(self.second.kill)
            self.addresses = f"{self.first.address},{address}"
            compact = {"cleanup.policy": "compact"}
            topics = [NewTopic(name, 1, replica_assignment=[[2, 1]], config=compact) for name in _INTERNAL]
            for made in self.first.admin.create_topics(topics).values():
                made.result(PATIENCE)
            self.close = ending.pop_all().close

    def topic(self, partitions: int = 1) -> str:
        """A new one, of both; the second one leads."""
        return self.first.topic(partitions, brokers=(2, 1))

    def led_by(self, topic: str, broker: int) -> bool:
        """Whether this broker leads all partitions, also of what is internal."""
        try:
            leaders = {leader for name in (topic, *_INTERNAL) for leader in self._leaders(name).values()}
        except KafkaException:  # the second one was asked, and is gone
            return False
        return leaders == {broker}

    def _leaders(self, topic: str) -> dict[int, int]:
        """By partition. Raises KafkaException."""
        found = self.first.admin.list_topics(topic, PATIENCE).topics[topic].partitions
        return {partition.id: partition.leader for partition in found.values()}

    def move_back(self, *topics: str) -> None:
        """To the second broker, once it has all messages."""
        until(lambda: all(map(self._elected, (*topics, *_INTERNAL))), "the second broker's messages")

    def _elected(self, topic: str) -> bool:
        try:
            partitions = [TopicPartition(topic, partition) for partition in self._leaders(topic)]
            self.first.admin.elect_leaders(ElectionType.PREFERRED, partitions).result(PATIENCE)
        except KafkaException:
            return False
        return set(self._leaders(topic).values()) == {2}


@contextlib.contextmanager
def pair(folder: Path) -> Iterator[BrokerPair]:
    """Starts both; their data and logs are in `folder`."""
    with contextlib.closing(BrokerPair(folder)) as brokers:
        yield brokers
