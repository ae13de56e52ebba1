"""A sink whose rows are shown in the output stream of a job.

Guarantees: it can be resumed, because it keeps nothing; it never waits for readers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

import pyarrow as pa

from .connector import CatalogueEntry, Connector, NoOptions
from .described import Output
from .interface import Fate, Json, LaterRows, Sealed, Stage

Tap = Callable[[str, int, pa.RecordBatch], None]
"""Gets the sink's name, the slice's number, and rows. It must not wait; each slice calls it in its own thread."""

_taps: dict[str, Tap] = {}


@contextlib.contextmanager
def tapped(pipeline: str, tap: Tap) -> Iterator[None]:
    """Previews of the pipeline of this name that are opened within the block go there."""
    _taps[pipeline] = tap
    try:
        yield
    finally:
        if _taps.get(pipeline) is tap:  # else a later one has come
            del _taps[pipeline]


class Preview(Output):
    """Shows rows to whoever looks at them just now."""

    type: Literal["preview"] = "preview"

    @property
    def fate(self) -> Fate:
        return "none"

    def check(self, schema: pa.Schema) -> None:
        """It takes everything."""

    def sink(self, schema: pa.Schema, slice: int, stage: Stage | None, pipeline: str, name: str) -> PreviewSink:
        return PreviewSink(name, slice, _taps.get(pipeline))


CONNECTOR = Connector(
    "preview",
    sink=Preview,
    in_sql=False,
    entry=CatalogueEntry("Preview", "Shows rows in the output stream", NoOptions, hidden=True),
)


class PreviewSink:
    """tap: None: nobody looks."""

    def __init__(self, name: str, slice: int, tap: Tap | None) -> None:
        self.name = name
        self._slice, self._tap = slice, tap

    def write(self, batch: pa.RecordBatch) -> None:
        if self._tap is not None:
            self._tap(self.name, self._slice, batch)

    def seal(self, epoch: int) -> Sealed | None:
        return None

    def apply(self, epoch: int, stored: Json) -> None: ...

    def check(self, committed: int, epoch: int, waiting: Sequence[Json]) -> None: ...

    def clear(self, committed: int) -> None: ...

    def later_rows(self, epoch: int, later: Mapping[int, Sequence[Json] | None]) -> LaterRows:
        return LaterRows(self.name, "none", "keeps no rows")

    def withdraw(self, epochs: Sequence[tuple[int, int]]) -> None: ...

    def finish(self) -> None: ...

    def close(self) -> None: ...
