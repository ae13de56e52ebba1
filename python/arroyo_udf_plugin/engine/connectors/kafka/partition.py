"""A partition of a topic of Kafka, as it is read: a consumer of its own, which fetches ahead in threads of its own.

Guarantees: reading never blocks the event loop. Messages come in the order of their offsets, and none is passed over:
what Kafka says in place of one is an error, unless it passes by itself, as when a broker is away for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....errors import InvalidArgument, Unreachable
from ..interface import Gauge, Json
from ..options import BATCH_ROWS
from ..source import Rows
from .records import KafkaRecords
from .topic import MOVING, KafkaTopic

_log = logging.getLogger(__name__)

_PAUSES = (0.001, 0.02)  # seconds between two looks for messages: the first, and the longest
_WAITS = (0.1, 2.0)  # between two questions to what does not answer
_PASSING = (
    *("_ALL_BROKERS_DOWN", "_TRANSPORT", "_TIMED_OUT", "_RESOLVE", "_WAIT_COORD"),
    *MOVING,
    "GROUP_AUTHORIZATION_FAILED",  # no message depends on the group
)


class KafkaPartition:
    """properties: of the consumer. number: of the partition. position: "offset", of the next message, and with "until"
    the offset behind the last one. gone: why there is no message with an offset, of a partition."""

    def __init__(
        self,
        topic: KafkaTopic,
        properties: Mapping[str, Any],
        records: KafkaRecords,
        number: int,
        position: Json,
        gone: Callable[[int, int], InvalidArgument],
    ) -> None:
        self._topic, self._records, self._number, self._gone = topic, records, number, gone
        self._offset: int = position["offset"]
        self._until: int | None = position.get("until")
        self._held: Sequence[Any] = ()  # messages that wait for what their format needs
        self._seen = 0  # there is no further message before this offset
        self._end: int | None = None  # the offset behind the last message that the broker has; None: it did not say yet
        self._is_away = False  # the brokers are, since the last message
        self._errors: list[Any] = []
        self._codes = topic.library.KafkaError
        self._passing = {getattr(self._codes, name) for name in _PASSING}
        self._consumer = topic.client("Consumer", {**properties, "error_cb": self._errors.append})
        self._assigned = topic.library.TopicPartition(topic.topic, number, self._offset)
        self._consumer.assign([self._assigned])

    @property
    def _is_over(self) -> bool:
        return self._until is not None and not self._held and max(self._offset, self._seen) >= self._until

    async def read(self) -> Rows | None:
        pause, longest = _PAUSES
        while not self._is_over:
            self._held = self._held or self._taken()
            if self._held:
                await prepared(self._records, self._held, f"topic {self._topic.topic}, partition {self._number}")
                messages, self._held = self._held, ()
                self._offset, self._is_away = messages[-1].offset() + 1, False
                if kept := self._records.kept(messages):
                    return self._records.rows(self._topic.topic, self._number, kept)
                continue
            await asyncio.sleep(pause)
            pause = min(2 * pause, longest)
        return None

    def _taken(self) -> list[Any]:
        """Messages that have arrived. Raises InvalidArgument for an error that was behind the last ones."""
        while self._errors:
            self._note(self._errors.pop(0))
        taken = self._consumer.consume(BATCH_ROWS, 0)
        _, end = self._consumer.get_watermark_offsets(self._assigned, cached=True)  # as of the latest answer
        self._end = end if end >= 0 else self._end
        messages = [message for message in taken if message.error() is None]
        if len(messages) < len(taken):
            messages = self._before_an_error(taken)
        if self._until is not None and messages and messages[-1].offset() >= self._until:
            self._seen = self._until
            messages = [message for message in messages if message.offset() < self._until]
        return messages

    def _before_an_error(self, taken: list[Any]) -> list[Any]:
        messages = []
        for message in taken:
            error = message.error()
            if error is None:
                messages.append(message)
            elif error.code() == self._codes._PARTITION_EOF:
                self._seen = message.offset()
            else:
                self._errors.append(error)
                if not self._passes(error):
                    break
        return messages

    def _passes(self, error: Any) -> bool:
        return not error.fatal() and (error.retriable() or error.code() in self._passing)

    def _note(self, error: Any) -> None:
        """Raises what does not pass by itself."""
        if error.code() == self._codes._AUTO_OFFSET_RESET:
            raise self._gone(self._number, self._offset)
        if not self._passes(error):
            raise self._topic.refusal(error)
        if error.code() == self._codes._ALL_BROKERS_DOWN and not self._is_away:
            self._is_away = True
            cluster, topic, number = self._topic.cluster, self._topic.topic, self._number
            _log.warning("%s does not answer: topic %s, partition %d waits for it", cluster, topic, number)

    def position(self) -> Json:
        until = {} if self._until is None else {"until": self._until}
        return {"offset": self._offset, **until, **({"end": True} if self._is_over else {})}

    def gauges(self) -> Sequence[Gauge]:
        """The end of a transaction is a message, too, until it is passed."""
        if self._end is None:
            return []
        return [Gauge("lag", max(0, self._end - max(self._offset, self._seen)), "messages")]

    def close(self) -> None:
        with contextlib.suppress(RuntimeError):  # closed before
            self._consumer.close()


async def prepared(records: KafkaRecords, messages: Sequence[Any], where: str) -> None:
    """Asks for what the format of the messages needs, until there is an answer. where: they are from. Raises
    InvalidArgument."""
    if (work := records.preparation(messages)) is None:
        return
    pause, longest = _WAITS
    while True:
        try:
            return await asyncio.to_thread(work)
        except Unreachable as error:
            if pause == _WAITS[0]:
                _log.warning("%s waits: %s", where, error)
        await asyncio.sleep(pause)
        pause = min(2 * pause, longest)
