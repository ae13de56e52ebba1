"""Standard output as a sink: each batch is out when it is written, for the next program.

Guarantees: batches of several slices do not mix; nothing else of this process is in between.
Cannot be resumed: what is out cannot be taken back.
"""

from __future__ import annotations

from typing import ClassVar, Literal, Self

import pyarrow as pa

from .connector import CatalogueEntry, Connector, NoOptions
from .interface import Stage
from .options import Writing
from .single import FileOfSlice
from .sink import check_writing
from .table_options import TableOptions
from .written import WrittenOutput, writing_keys


class StandardOutput(WrittenOutput):
    """Standard output; CSV, if `format` does not say otherwise."""

    resumable: ClassVar[bool] = False

    type: Literal["stdout"] = "stdout"

    @classmethod
    def of_table(cls, options: TableOptions) -> Self:
        return cls(**{"format": "jsonl"} | writing_keys(options))

    @property
    def typed(self) -> bool:
        return self.format not in (None, "csv", "tsv")

    def check(self, schema: pa.Schema) -> None:
        check_writing("-", schema, self.writing())

    def sink(self, schema: pa.Schema, slice: int, stage: Stage | None, pipeline: str, name: str) -> FileOfSlice:
        return FileOfSlice(name, "-", schema, self.writing())

    def on_standard_output(self) -> Writing:
        return self.writing()


CONNECTOR = Connector(
    "stdout", sink=StandardOutput, entry=CatalogueEntry("Stdout", "Shows rows in the output stream", NoOptions)
)
