"""A slice's epochs in a topic: each is one transaction, which also notes the epoch's number.

    epochs = KafkaEpochs(topic, "arroyo-udf/flights/out/0", history, limit)
    epochs.begin(6)                                   at a start: from here on no older process writes
    epochs.write(7, lambda: staged.read(...))         again and again, also by another process

The number is the offset that a consumer group of its own has committed for partition 0 of the topic; nobody reads with
this group. The offset's metadata is the id of the history of epochs, and of the process that has written it. The group
and the transactions have the same name.

Guarantees: rows of an epoch are in the topic once, for readers with read_committed, whenever a process or a broker
ends. A process that begins stops older ones with the same name: they raise Fenced. Brokers that do not answer are
asked again for `PATIENCE`; then nothing is lost, and another try goes on from there.

Assumes: brokers keep the group's offset until the next start (offsets.retention.minutes); that it is gone is noticed.
One thread at a time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import secrets
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from ....errors import Fenced, InvalidArgument
from .producer import STALLED, OutgoingMessages
from .topic import KafkaTopic, library

PATIENCE = 120.0
"""Seconds for brokers that restart."""
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 2.0
_SETTLES = 2.0  # seconds until a transaction that is committed has its effect
_LATE = 2.0  # seconds behind its time, after which a call does not return any more
_OFFSETS = 3.0
"""Seconds for the offset of a transaction at first, because librdkafka does not come back from there if the broker was
restarted. Each failure doubles it, so slow brokers have time enough."""
_TIMEOUT_MS = 300_000
"""Of a transaction: longer than our patience. Readers wait for it if we end in the middle and are not started again."""


@dataclasses.dataclass(frozen=True)
class Noted:
    """The last epoch that a slice has written. writer: the process that has said so."""

    epoch: int
    history: str
    writer: str


def last_noted(topic: KafkaTopic, name: str) -> Noted | None:
    """What the group says, without a change of anything. Raises KafkaException."""
    try:
        return _noted(topic, name, stable=True, seconds=_SETTLES)[0]
    except library().KafkaException:  # a process was killed within a transaction, which will not be committed
        return _noted(topic, name, stable=False)[0]


def _noted(topic: KafkaTopic, name: str, stable: bool, seconds: float | None = None) -> tuple[Noted | None, Any]:
    """What the group says, and how a transaction names the group. stable: waits for the end of a transaction that is
    about to change it. Raises KafkaException."""
    consumer = topic.client(
        "Consumer",
        {
            "group.id": name,
            "enable.auto.commit": False,
            "isolation.level": "read_committed" if stable else "read_uncommitted",
        },
    )
    with contextlib.closing(consumer):
        (found,) = consumer.committed([library().TopicPartition(topic.topic, 0)], seconds or STALLED)
        if found.error is not None:
            raise library().KafkaException(found.error)
        history, _, writer = (found.metadata or "").partition(" ")
        last = Noted(found.offset, history, writer) if found.offset >= 0 else None
        return last, consumer.consumer_group_metadata()


class KafkaEpochs:
    """name: of the group and of the transactions. limit: of messages, if it is known."""

    def __init__(self, topic: KafkaTopic, name: str, history: str, limit: int | None) -> None:
        self._topic, self._name, self._history, self._limit = topic, name, history, limit
        self._outgoing: OutgoingMessages | None = None
        self._group: Any = None
        self._number: int | None = None  # of the last epoch that is in the topic
        self._writer, self._has_written = secrets.token_hex(8), False
        self._is_replaced = False  # by another process; this one does not begin again
        self._offsets = _OFFSETS

    def begin(self, number: int) -> None:
        """number: of the last epoch that may be in the topic, if the group says nothing. Raises Fenced,
        InvalidArgument."""

        def work(outgoing: OutgoingMessages) -> None:
            self._write(outgoing, number if self._number is None else self._number, ())

        self._repeated(work)

    def write(self, epoch: int, messages: Callable[[], Iterable[pa.Table]]) -> None:
        """Does nothing if the epoch is in the topic. Raises Fenced, InvalidArgument."""

        def work(outgoing: OutgoingMessages) -> None:
            if self._number is None:
                raise forgotten(self._topic, self._name, epoch)
            if self._number < epoch:
                try:
                    self._write(outgoing, epoch, messages())
                except InvalidArgument as error:
                    last = last_noted(self._topic, self._name)
                    if last is not None and last.epoch >= epoch:  # rows are removed once they are written
                        raise self._fenced() from error
                    raise

        self._repeated(work)

    def _write(self, outgoing: OutgoingMessages, epoch: int, messages: Iterable[pa.Table]) -> None:
        client, metadata = outgoing.client, f"{self._history} {self._writer}"
        offset = library().TopicPartition(self._topic.topic, 0, epoch, metadata)
        client.begin_transaction()
        for some in messages:
            outgoing.send(some)
        outgoing.flush()
        _within(self._offsets, client.send_offsets_to_transaction, [offset], self._group)
        _within(STALLED, client.commit_transaction)
        self._number, self._has_written, self._offsets = epoch, True, _OFFSETS

    def _repeated(self, work: Callable[[OutgoingMessages], None]) -> None:
        """After a failure nobody knows how far it came: the next try asks the group again. So it is if brokers say that
        another process has begun, because they also do after a restart of their own."""
        until, wait = 0.0, _FIRST_WAIT
        while True:
            if self._is_replaced:
                raise self._fenced()
            try:
                return work(self._outgoing or self._opened())
            except library().KafkaException as failure:
                self.close()
                self._offsets = min(2 * self._offsets, STALLED)
                error = failure.args[0]
                until = until or time.monotonic() + PATIENCE
                if self._is_final(error) or time.monotonic() + wait > until:
                    raise self._refusal(error) from failure
            except BaseException:
                self.close()
                raise
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)

    def _opened(self) -> OutgoingMessages:
        """Stops older processes, then asks what they have written: they write nothing behind that."""
        own = {"transactional.id": self._name, "transaction.timeout.ms": _TIMEOUT_MS}
        outgoing = OutgoingMessages(self._topic, self._limit, own)
        try:
            _within(STALLED, outgoing.client.init_transactions)
            last, self._group = _noted(self._topic, self._name, stable=True)
            if self._has_written and last is not None and last.writer != self._writer:
                raise self._fenced()
        except BaseException:
            outgoing.close()
            raise
        if last is not None and last.history == self._history:
            self._number = last.epoch
        self._outgoing = outgoing
        return outgoing

    def _is_final(self, error: Any) -> bool:
        codes = library().KafkaError
        return error.code() in (
            codes._AUTHENTICATION,
            codes.SASL_AUTHENTICATION_FAILED,
            codes.TOPIC_AUTHORIZATION_FAILED,
            codes.GROUP_AUTHORIZATION_FAILED,
            codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            codes.CLUSTER_AUTHORIZATION_FAILED,
            codes.INVALID_TRANSACTION_TIMEOUT,
            codes.MSG_SIZE_TOO_LARGE,
        )

    def _refusal(self, error: Any) -> InvalidArgument:
        codes = library().KafkaError
        if error.code() == codes.INVALID_TRANSACTION_TIMEOUT:
            return InvalidArgument(
                f"{self._topic.cluster}: transaction.max.timeout.ms is below {_TIMEOUT_MS} there: raise it, or set a "
                "lower transaction.timeout.ms in client_configs"
            )
        return self._topic.refusal(error)

    def _fenced(self) -> Fenced:
        self._is_replaced = True
        return Fenced(
            f"{self._topic.cluster}, topic {self._topic.topic!r}: another process writes there for this pipeline, in "
            f"transactions named {self._name}. This one stops; leave it to the other one, or resume when that has ended"
        )

    def close(self) -> None:
        if self._outgoing is not None:
            self._outgoing.close()
            self._outgoing = None


def _within(seconds: float, call: Callable[..., object], *arguments: object) -> None:
    """Raises KafkaException, also if the call does not return. librdkafka looks at the time only now and then, and
    hangs in `send_offsets_to_transaction` if its broker was restarted. What is left behind cannot commit any more once
    another client has begun."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            call(*arguments, seconds)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True, name="arroyo-udf-kafka")
    thread.start()
    thread.join(seconds + _LATE)
    if failed:
        raise failed[0]
    if thread.is_alive():
        codes = library().KafkaError
        raise library().KafkaException(codes(codes._TIMED_OUT))


def forgotten(topic: KafkaTopic, name: str, epoch: int) -> InvalidArgument:
    """Whether an epoch was written cannot be known any more."""
    return InvalidArgument(
        f"{topic.cluster}, topic {topic.topic!r}: the group {name} has no offset any more, which says whether rows of "
        f"epoch {epoch} are in the topic (brokers forget it after offsets.retention.minutes): begin anew in another "
        "topic, or go back to an older checkpoint (--restore), after which later rows come twice"
    )
