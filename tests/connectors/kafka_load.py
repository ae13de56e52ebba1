"""A pipeline from one topic to another under load, while a test disturbs it.

    with Load(kafka, source, target, description, values, number) as load:
        load.go_on(500)             rows come and go, until so many more have arrived
        ...                         a disturbance: rows still come
        load.go_on(500)
    load.check()                    each row is in the target once, for readers with read_committed

Rows are numbers. They come as fast as they leave: at most `AHEAD` are under way, also while nothing moves.
Guarantees: an error of the engine ends each wait. When the `with` block is left, the threads have ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from confluent_kafka import Consumer, TopicPartition
from kafka_broker import PATIENCE, Broker
from waiting import until

from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.execution.stopping import StopRequest
from arroyo_udf_plugin.engine.pipeline.document import pipeline_of
from arroyo_udf_plugin.errors import Unreachable

AHEAD = 1000
_CHUNK = 100
_AGAIN = 0.05  # seconds before an engine is started again


class Load:
    """source, target: topics, the second one without further partitions. values: messages of rows with these numbers.
    number: of a row, from its message. partitions: of the source that get rows; may be raised.

    An engine that ends because something is Unreachable is started again.
    """

    def __init__(
        self,
        kafka: Broker,
        source: str,
        target: str,
        description: Mapping[str, Any],
        values: Callable[[range], Sequence[bytes]],
        number: Callable[[bytes], int],
        partitions: int = 1,
    ) -> None:
        self.partitions, self.restarts = partitions, 0
        self._kafka, self._source, self._target = kafka, source, target
        self._description, self._values, self._number = description, values, number
        self._sent = self._arrived = 0
        self._is_over = threading.Event()
        self._stop, self._failed = StopRequest(timeout=60), list[BaseException]()
        self._threads = [threading.Thread(target=self._guarded, args=(run,)) for run in (self._run, self._feed)]

    def _guarded(self, run: Callable[[], None]) -> None:
        try:
            run()
        except BaseException as error:
            self._failed.append(error)

    def _run(self) -> None:
        while True:
            try:
                run_pipeline(pipeline_of(self._description), stop=self._stop)
                return
            except Unreachable:
                self.restarts += 1
                if self._is_over.wait(_AGAIN):
                    raise

    def _feed(self) -> None:
        """Also looks at what arrives."""
        properties = {"group.id": "load", "enable.auto.commit": False, "isolation.level": "read_committed"}
        consumer = Consumer(self._kafka.client() | properties)
        try:
            found = consumer.list_topics(self._target, PATIENCE).topics[self._target].partitions
            consumer.assign([TopicPartition(self._target, partition, 0) for partition in found])
            while not self._is_over.is_set():
                for partition in range(self.partitions):
                    if self._sent - self._arrived < AHEAD:
                        rows = range(self._sent, self._sent + _CHUNK)
                        self._kafka.write(self._source, self._values(rows), partition)
                        self._sent += _CHUNK
                taken = consumer.consume(_CHUNK, 0.01)
                self._arrived += sum(message.error() is None for message in taken)
        finally:
            consumer.close()

    @property
    def is_full(self) -> bool:
        """Whether no further rows come until some have left."""
        self._raise_failed()
        return self._sent - self._arrived >= AHEAD

    def _raise_failed(self) -> None:
        if self._failed:
            raise self._failed[0]

    def go_on(self, rows: int) -> None:
        """Returns when so many more have arrived."""
        wanted = self._arrived + rows

        def have_arrived() -> bool:
            self._raise_failed()
            return self._arrived >= wanted

        until(have_arrived, f"{rows} further rows")

    def check(self) -> None:
        """After the `with` block."""
        self._raise_failed()
        values = [message.value() for own in self._kafka.messages(self._target).values() for message in own]
        assert sorted(self._number(value) for value in values if value is not None) == list(range(self._sent))

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        engine, feeder = self._threads
        self._is_over.set()
        feeder.join()
        if kind is None:
            until(self._has_everything, "the rest")
        self._stop.request()
        engine.join()

    def _has_everything(self) -> bool:
        self._raise_failed()
        return sum(map(len, self._kafka.messages(self._target).values())) >= self._sent
