"""The reading stage of one slice, if another one reads: Flink's connector hands messages of Kafka to it.

    stage = FedStage(program, stage, slice, ["0", "8"], about)
    for posted in stage.feed(loop, record): ...      messages of one partition: see packed.py
    for posted in stage.look(loop): ...              nothing has come, and time goes by
    for posted in stage.end(loop): ...               nothing more comes
    stage.about()

A partition of the topic is one of the slice's, so watermarks, idleness, columns and refused messages are those of the
embedded engine. What is fed has left when `feed` returns, which waits for a schema registry that does not answer.
Positions are told for the slice's own state; from where Kafka is read, Flink's state alone says.

Guarantees: a message that comes twice is refused.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ....errors import InternalError
from ...connectors.interface import Json
from ...connectors.kafka.partition import prepared
from ...connectors.kafka.records import KafkaRecords
from ...connectors.kafka.source import KafkaInput, KafkaSource
from ...connectors.options import BATCH_ROWS
from ...connectors.source import Rows
from ...pipeline.inputs import sources_of
from ..cut import CutStage
from ..outlets import Posted
from ..program import Program
from ..reading_stage import ReadingStage
from .packed import TakenMessage, unpacked

_LOOK = 0.5
"""Seconds until a partition is read that nobody knew when the job was submitted."""
_TURNS, _PAUSE = 1000, 0.005
"""A reader that has not handed on what it has after so many turns waits for a schema registry, for one."""


class FedPartition:
    """position: "offset", of the next message; nothing: none has come."""

    def __init__(self, topic: str, name: str, records: KafkaRecords, position: Json) -> None:
        self._topic, self._name, self._records, self._position = topic, name, records, position
        self._messages: collections.deque[Sequence[TakenMessage]] = collections.deque()
        self._woken = asyncio.Event()
        self._has_ended = False
        self.is_closed = self.waits = False

    @property
    def has_handed_on(self) -> bool:
        """Whether all messages that have come have left."""
        return self.is_closed or (self.waits and not self._messages)

    def put(self, messages: Sequence[TakenMessage]) -> None:
        """Raises InternalError."""
        first, expected = messages[0].offset(), self._position.get("offset", 0)
        if first < expected or self._has_ended:
            raise InternalError(
                f"topic {self._topic}, partition {self._name}: Flink has read the message of offset {first} twice, or "
                f"behind the end: the next one is that of {expected}"
            )
        self._messages.append(messages)
        self._woken.set()

    def end(self) -> None:
        self._has_ended = True
        self._woken.set()

    async def read(self) -> Rows | None:
        while True:
            if not self._messages:
                if self._has_ended:
                    return None
                await self._wait()
                continue
            messages = self._messages[0]
            if len(messages) > BATCH_ROWS:
                self._messages[0] = messages[BATCH_ROWS:]
                self._messages.appendleft(messages := messages[:BATCH_ROWS])
            await prepared(self._records, messages, f"topic {self._topic}, partition {self._name}")
            self._messages.popleft()
            self._position = {"offset": messages[-1].offset() + 1}
            if kept := self._records.kept(messages):
                return self._records.rows(self._topic, int(self._name), kept)

    async def _wait(self) -> None:
        self._woken.clear()
        self.waits = True
        try:
            await self._woken.wait()
        finally:
            self.waits = False

    def position(self) -> Json:
        return {**self._position, **({"end": True} if self._has_ended and not self._messages else {})}

    def close(self) -> None:
        self.is_closed = True


class FedSource:
    """The partitions of one slice. names: those that are known. watch: whether others may come."""

    resumable = True
    side_by_side = True
    rows: int | None = None

    def __init__(self, topic: str, source: KafkaSource, names: Sequence[str]) -> None:
        self.name, self.schema = source.name, source.schema
        self.watch: float | None = None if source.watch is None else _LOOK
        self._topic, self._records = topic, source.records
        self._names = list(names)
        self._open: dict[str, FedPartition] = {}
        self._early: dict[str, list[Sequence[TakenMessage]]] = {}  # of partitions that are not open yet
        self._has_ended = False

    def partitions(self) -> Sequence[str]:
        return list(self._names)

    def check(self, positions: Mapping[str, Json]) -> None:
        """Flink's connector does."""

    def open(self, partition: str, position: Json | None) -> FedPartition:
        opened = self._open[partition] = FedPartition(self._topic, partition, self._records, position or {})
        for messages in self._early.pop(partition, ()):
            opened.put(messages)
        if self._has_ended:
            opened.end()
        return opened

    def put(self, partition: str, messages: Sequence[TakenMessage]) -> None:
        if partition in self._open:
            self._open[partition].put(messages)
            return
        if partition not in self._names:
            if self.watch is None:
                raise InternalError(f"{self.name} ends: Flink has read partition {partition}, which was not there")
            self._names.append(partition)
        self._early.setdefault(partition, []).append(messages)

    def end(self) -> None:
        self._has_ended = True
        for partition in self._open.values():
            partition.end()

    @property
    def has_handed_on(self) -> bool:
        """Whether all messages that have come have left."""
        return not self._early and all(partition.has_handed_on for partition in self._open.values())

    @property
    def is_read(self) -> bool:
        """Whether there is nothing more, and all has left."""
        return self._has_ended and not self._early and all(partition.is_closed for partition in self._open.values())

    def close(self) -> None: ...


class FedStage(ReadingStage):
    """partitions: of the slice, as they are known when the job is submitted."""

    def __init__(
        self,
        program: Program,
        stage: CutStage,
        slice: int,
        partitions: Sequence[str],
        about: Mapping[str, Any] | None = None,
        ended: Mapping[str, Json] = MappingProxyType({}),
    ) -> None:
        assert stage.source is not None
        model = sources_of(program.planned.resolved)[stage.source].model
        assert isinstance(model, KafkaInput)
        self._fed = FedSource(model.topic, KafkaSource(model), partitions)
        super().__init__(program, stage, slice, about, ended, self._fed)

    def feed(self, loop: asyncio.AbstractEventLoop, record: bytes) -> Iterator[Posted]:
        partition, messages = unpacked(record)
        if self.is_over:
            raise InternalError(f"{self._fed.name}: Flink has read partition {partition} behind the end")
        self._fed.put(str(partition), messages)
        return self.look(loop)

    def look(self, loop: asyncio.AbstractEventLoop) -> Iterator[Posted]:
        if not self.is_over:
            loop.run_until_complete(self._turn())
            yield from self.take()
            if self._reading.is_over:
                yield from self._finish()

    def end(self, loop: asyncio.AbstractEventLoop) -> Iterator[Posted]:
        self._fed.end()
        return self.look(loop)

    def has_room_after(self, place: Any) -> bool:
        """What has come leaves at once."""
        return True

    async def _turn(self) -> None:
        self._begin()
        await asyncio.sleep(0)  # for timers
        turns = 0
        while not self._reading.is_over and not self._fed.has_handed_on:
            await asyncio.sleep(0 if (turns := turns + 1) < _TURNS else _PAUSE)
        if self._fed.is_read:
            self._reading.drain()  # nobody looks for other partitions
            await asyncio.sleep(0)
        self._reading.look()
