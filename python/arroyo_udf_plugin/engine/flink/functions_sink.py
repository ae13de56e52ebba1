"""The function of Flink that makes parts of a sink's rows; file_sink.py has its place."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyflink.common import Row
from pyflink.datastream import ProcessFunction, RuntimeContext

from .functions import program_of
from .messages import RowsCodec, items
from .whole_parts import WholeParts


class SinkFunction(ProcessFunction):  # type: ignore[misc]
    """Messages to parts. An empty message is a mark: what is in memory leaves as a part, before a checkpoint begins."""

    def __init__(self, text: str, sink: str) -> None:
        self._text, self._sink = text, sink

    def open(self, context: RuntimeContext) -> None:
        model, schema = program_of(self._text).parts_of(self._sink)
        self._codec, self._parts = RowsCodec(schema), WholeParts.of(model, schema)

    def process_element(self, value: Row, context: ProcessFunction.Context) -> Iterator[bytes]:
        message: bytes = value[2]
        if message:
            for kind, payload in items(message):
                if kind == "rows":
                    yield from self._add(self._codec.decode(payload).rows)
        elif self._parts.rows:
            yield self._parts.take()

    def _add(self, rows: pa.RecordBatch) -> Iterator[bytes]:
        while rows.num_rows:
            rows = self._parts.add(rows)
            if self._parts.is_full:
                yield self._parts.take()
