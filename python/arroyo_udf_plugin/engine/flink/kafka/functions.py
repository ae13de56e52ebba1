"""The functions of Flink for topics of Kafka; topics.py has their places."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from pyflink.common import Row
from pyflink.datastream import KeyedProcessFunction, ProcessFunction, RuntimeContext

from ..functions import MARK, TICK, SliceFunction, posted_rows, program_of
from ..messages import RowsCodec, items
from ..slice_state import FlinkState
from .feeding import FedStage
from .packed import packed

RECORDS, END = -4, -5
"""Instead of the number of an edge, as PacksRecords.java and FeedsSlices.java have them."""


class FeedFunction(SliceFunction):
    """A reading stage that is fed. partitions: of the topic."""

    def __init__(self, text: str, stage: int, partitions: Sequence[int]) -> None:
        super().__init__(text, stage)
        self._partitions = partitions

    def open(self, context: RuntimeContext) -> None:
        super().open(context)
        self._loop = asyncio.new_event_loop()
        self._slices: dict[int, FedStage] = {}  # by key

    def process_element(self, value: Row, context: KeyedProcessFunction.Context) -> Iterator[Row]:
        what, slice, record = value
        key, state = context.get_current_key(), self._state(context)
        stage = self._slices[key] if key in self._slices else self._opened(slice, key, state)
        if what == MARK:
            state.write(stage.about(), None, f"source {self._stage.source}")
            state.note_ended(stage.ended())
        elif what == RECORDS:
            yield from posted_rows(stage.feed(self._loop, record))
        elif what == TICK:
            yield from posted_rows(stage.look(self._loop))
        else:
            yield from posted_rows(stage.end(self._loop))

    def _opened(self, slice: int, key: int, state: FlinkState) -> FedStage:
        about, _ = state.read() or (None, None)
        own = [str(partition) for partition in self._partitions if partition % self._program.width == slice]
        self._slices[key] = FedStage(self._program, self._stage, slice, own, about, state.ended())
        return self._slices[key]

    def close(self) -> None:
        for stage in self._slices.values():
            stage.close()
        self._loop.run_until_complete(asyncio.sleep(0))  # its readers end
        self._loop.close()


class MessagesFunction(ProcessFunction):  # type: ignore[misc]
    """Rows of a sink as messages."""

    def __init__(self, text: str, sink: str) -> None:
        self._text, self._sink = text, sink

    def open(self, context: RuntimeContext) -> None:
        model, schema = program_of(self._text).topic_of(self._sink)
        self._codec, self._messages = RowsCodec(schema), model.messages(schema, self._sink)

    def process_element(self, value: Row, context: ProcessFunction.Context) -> Iterator[bytes]:
        for kind, payload in items(value[2]):
            if kind == "rows":
                yield packed(self._messages.of(self._codec.decode(payload).rows))
