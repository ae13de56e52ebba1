"""Standard input as a source. Each line is handed on as soon as it has arrived. It cannot be read again."""

from __future__ import annotations

from typing import Literal, Self

from .connector import Connector
from .file_source import FilesSource
from .interface import Source
from .read import Read, reading_keys
from .table_options import TableOptions


class StandardInput(Read):
    """Standard input."""

    type: Literal["stdin"] = "stdin"

    @classmethod
    def of_table(cls, options: TableOptions) -> Self:
        return cls(**reading_keys(options))

    def source(self, parallelism: int) -> Source:
        return FilesSource(["-"], self.reading(), metadata=self.metadata)


CONNECTOR = Connector("stdin", source=StandardInput)
