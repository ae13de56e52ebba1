"""Files as the source of a pipeline, as a person describes them. The connectors are in filesystem.py and single.py."""

from __future__ import annotations

from typing import Annotated, Literal, Self

import pydantic

from .described import Period, Several
from .file_source import FilesSource
from .interface import Source
from .read import Read, reading_keys
from .table_options import A_TIME, TableOptions, period_seconds


class Files(Read):
    """Files, local or in an object store."""

    type: Literal["files"] = "files"

    paths: Annotated[Several[str], pydantic.Field(min_length=1)]
    """The files, folders, patterns (`data/*.csv`) or URLs (`s3://bucket/folder`)."""

    watch: Period | None = None
    """Time between two looks for new files; otherwise there is one look, and the run ends.

    Until a file is complete, its name begins with a dot, or is none that `paths` takes in."""

    @property
    def ends(self) -> bool:
        """Whether there is a last row."""
        return self.watch is None

    @property
    def connector(self) -> str:
        return "filesystem"

    @classmethod
    def of_table(cls, options: TableOptions) -> Self:
        return cls(
            paths=(options.need("path", "data/*.parquet"),),
            watch=options.read("source.watch", period_seconds, A_TIME),
            **reading_keys(options),
        )

    def source(self, parallelism: int) -> Source:
        return FilesSource(self.paths, self.reading(), self.watch, self.metadata)
