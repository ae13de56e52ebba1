"""A sink that shows rows to whoever looks at them just now.

Guarantees: it can be resumed, because nothing of it stays; it never waits for those who look.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import pyarrow as pa

from .described import Output
from .interface import Json, Sealed, Stage

Tap = Callable[[str, str, int, pa.RecordBatch], None]
"""Gets the pipeline's name, the sink's, the slice's number, and rows. It must not wait, and is called in any thread."""


def _nobody(pipeline: str, name: str, slice: int, batch: pa.RecordBatch) -> None: ...


tap: Tap = _nobody
"""Of the process, for all previews in it: the worker sets it."""


class Preview(Output):
    """Shows rows to whoever looks at them just now."""

    type: Literal["preview"] = "preview"

    @property
    def typed(self) -> bool:
        return True

    def check(self, schema: pa.Schema) -> None:
        """It takes everything."""

    def sink(self, schema: pa.Schema, slice: int, stage: Stage | None, pipeline: str, name: str) -> PreviewSink:
        return PreviewSink(name, pipeline, slice)


class PreviewSink:
    resumable = True

    def __init__(self, name: str, pipeline: str, slice: int) -> None:
        self.name = name
        self._pipeline, self._slice = pipeline, slice

    def write(self, batch: pa.RecordBatch) -> None:
        tap(self._pipeline, self.name, self._slice, batch)

    def seal(self, epoch: int) -> Sealed | None:
        return None

    def apply(self, epoch: int, stored: Json) -> None: ...

    def clear(self, committed: int) -> None: ...

    def finish(self) -> None: ...

    def close(self) -> None: ...
