"""Standard input as a source. Each line is handed on as soon as it has arrived. It cannot be read again."""

from __future__ import annotations

from typing import Literal

from .file_source import FilesSource
from .interface import Source
from .read import Read


class StandardInput(Read):
    """Standard input."""

    type: Literal["stdin"] = "stdin"

    @property
    def ends(self) -> bool:
        """Whether there is a last row."""
        return True

    def source(self, parallelism: int) -> Source:
        return FilesSource(["-"], self.reading(), metadata=self.metadata)
