"""Messages on their way to a topic.

    outgoing = OutgoingMessages(topic, {"transactional.id": "..."})
    outgoing.send(messages)            as `messages.py` has them; returns before they are there
    outgoing.flush()                   all of them are
    outgoing.close()

Guarantees: a message that the topic refuses for its size is refused before it is sent. Memory stays bounded: `send`
waits while too much is under way. An error of one message is raised by the next call.

Assumes: one thread at a time.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ....errors import InvalidArgument, Unreachable
from .topic import KafkaTopic, library

STALLED = 15.0
"""Seconds for one call, if nothing moves."""
_TURN = 0.1
_ROOM = 65_536  # KiB under way
_AROUND = 128  # bytes that a message has in its batch, with the batch's own
_LEAST_LIMIT = 1000  # librdkafka takes no lower one


def limit_of(topic: KafkaTopic) -> int | None:
    """How large messages may be, in bytes; None: we may not ask. Raises Unreachable."""
    admin = library().admin
    asked = admin.ConfigResource(admin.ResourceType.TOPIC, topic.topic)
    try:
        found = topic.admin().ask(lambda client: client.describe_configs([asked]))[asked]
    except Unreachable:
        raise
    except InvalidArgument:
        return None
    return int(found["max.message.bytes"].value)


def check_sizes(topic: KafkaTopic, messages: pa.Table, limit: int | None) -> None:
    """limit: of the topic. Raises InvalidArgument."""
    sizes = pc.binary_length(messages["value"]).fill_null(0)
    if "key" in messages.column_names:
        sizes = pc.add(sizes, pc.binary_length(messages["key"]).fill_null(0))
    largest = pc.max(sizes).as_py() + _AROUND
    if limit is not None and largest > limit:
        raise InvalidArgument(
            f"{topic.cluster}, topic {topic.topic!r}: a message has {largest:,} bytes, and the topic takes {limit:,}: "
            "raise its max.message.bytes, or write smaller values"
        )


@contextlib.contextmanager
def refusals(topic: KafkaTopic) -> Iterator[None]:
    """Errors of Kafka, as InvalidArgument."""
    try:
        yield
    except library().KafkaException as error:
        raise topic.refusal(error.args[0]) from error


class OutgoingMessages:
    """limit: of messages, if it is known. stalled: seconds in which nothing moves, before a call fails. Raises
    InvalidArgument."""

    def __init__(
        self, topic: KafkaTopic, limit: int | None, properties: Mapping[str, Any], stalled: float | None = None
    ) -> None:
        self._topic, self._stalled = topic.topic, STALLED if stalled is None else stalled
        self._failed: list[Any] = []
        own = {
            "enable.idempotence": True,
            "queue.buffering.max.kbytes": _ROOM,
            "reconnect.backoff.max.ms": 1000,
            "delivery.report.only.error": True,
            "on_delivery": self._delivered,
        }
        if limit is not None:
            own["message.max.bytes"] = max(limit, _LEAST_LIMIT)
        chosen = {name: value for name, value in {**own, **properties}.items() if name not in topic.client_configs}
        self.client = topic.client("Producer", chosen)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failed.append(error)

    def send(self, messages: pa.Table) -> None:
        """Raises KafkaException."""
        names, topic, produce = messages.column_names, self._topic, self.client.produce
        keys = messages["key"].to_pylist() if "key" in names else itertools.repeat(None)
        times = messages["time"].fill_null(0).to_pylist() if "time" in names else itertools.repeat(0)
        for value, key, when in zip(messages["value"].to_pylist(), keys, times, strict=False):
            try:
                produce(topic, value, key, timestamp=when)
            except BufferError:
                self._make_room()
                produce(topic, value, key, timestamp=when)
        self.client.poll(0)
        self._raise_failed()

    def _make_room(self) -> None:
        """Until half of the messages that are under way have arrived."""
        half = len(self.client) // 2
        while self._moving(len(self.client)) > half:
            pass

    def flush(self) -> None:
        """Raises KafkaException if something has not arrived."""
        while self._moving(len(self.client)):
            pass
        self._raise_failed()

    def _moving(self, before: int) -> int:
        """How many are under way, once there are fewer than before."""
        patience = time.monotonic() + self._stalled
        while (left := self.client.flush(_TURN)) >= before > 0:
            self._raise_failed()
            if time.monotonic() > patience:
                errors = library()
                raise errors.KafkaException(errors.KafkaError(errors.KafkaError._TIMED_OUT))
        return int(left)

    def _raise_failed(self) -> None:
        if self._failed:
            raise library().KafkaException(self._failed[0])

    def close(self) -> None:
        """Gives up what is under way."""
        self.client.purge()
