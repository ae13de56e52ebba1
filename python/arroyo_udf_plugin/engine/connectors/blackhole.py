"""A sink that drops all rows: for measurements, and for functions that are called for their effects.

Guarantees: it can be resumed, because rows that nobody sees cannot be seen twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Self

import pyarrow as pa

from .connector import CatalogueEntry, Connector, NoOptions
from .described import Output
from .interface import Fate, Json, LaterRows, Sealed, Stage
from .table_options import TableOptions


class Blackhole(Output):
    """Drops all rows."""

    type: Literal["blackhole"] = "blackhole"

    @property
    def fate(self) -> Fate:
        return "none"

    @classmethod
    def of_table(cls, options: TableOptions) -> Self:
        options.take("format")
        return cls()

    def check(self, schema: pa.Schema) -> None:
        """It takes everything."""

    def sink(self, schema: pa.Schema, slice: int, stage: Stage | None, pipeline: str, name: str) -> BlackholeSink:
        return BlackholeSink(name)


CONNECTOR = Connector(
    "blackhole",
    sink=Blackhole,
    entry=CatalogueEntry("Blackhole", "Drops all rows", NoOptions, icon="M12 4a8 8 0 1 0 .1 0z"),
)


class BlackholeSink:
    """rows: how many were written."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows

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
