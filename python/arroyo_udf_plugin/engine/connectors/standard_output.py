"""Standard output as a sink: each batch is out when it is written, for the next program.

Guarantees: batches of several slices do not mix; nothing else of this process is in between.
Cannot be resumed: what is out cannot be taken back.
"""

from __future__ import annotations

from typing import Literal

import pyarrow as pa

from .interface import Stage
from .single import FileOfSlice
from .sink import check_writing
from .written import WrittenOutput


class StandardOutput(WrittenOutput):
    """Standard output; CSV, if `format` does not say otherwise."""

    type: Literal["stdout"] = "stdout"

    @property
    def typed(self) -> bool:
        return self.format not in (None, "csv", "tsv")

    def check(self, schema: pa.Schema) -> None:
        check_writing("-", schema, self.writing())

    def sink(self, schema: pa.Schema, slice: int, stage: Stage | None, pipeline: str, name: str) -> FileOfSlice:
        return FileOfSlice(name, "-", schema, self.writing())
