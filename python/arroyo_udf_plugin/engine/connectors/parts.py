"""A folder of files, local or in an object store, to which rows are added part by part, as a person describes it.

The sink is in parts_sink.py; waiting_rows.py is for parts that take in the rows of several epochs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Literal, Self

import pyarrow as pa
import pydantic

from ...author.options import bytes_of
from ...errors import InvalidArgument
from .described import Seconds
from .folder import Folder, open_folder
from .inputs import input_files
from .interface import Fate, Stage
from .location import location_of
from .options import Reading, Writing
from .parts_sink import PART, PartLimits, PartsSink
from .sink import check_writing
from .source import FileSource
from .table_options import A_TIME, TableOptions, chosen, period_seconds
from .waiting_rows import WaitingRowsSink
from .written import Format, WrittenOutput, compression_named, writing_keys

_TEXT_COMPRESSIONS = {None: "", "none": "", "gzip": ".gz", "zstd": ".zst"}
_OF_FLINK = re.compile(r"part-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}-\d+(?:\.\w+){1,2}")
_READ_AS_WRITTEN = (
    *("format", "null_values", "delimiter", "quote", "header", "decimal_mark"),
    *("unstructured", "json_columns", "timestamps"),
)


class Parts(WrittenOutput):
    """A folder of files."""

    type: Literal["parts"] = "parts"

    path: str
    """The folder, or its URL in an object store (`s3://bucket/folder`). It is made if it does not exist."""

    format: Format = "parquet"
    """The format of the parts."""

    compression: str | None = None
    """Of Parquet: snappy, zstd, gzip, lz4, brotli or none. Of Arrow: zstd, lz4 or none. Of text: gzip, zstd or none."""

    part_rows: Annotated[int, pydantic.Field(ge=1)] | None = None
    """A part has at most so many rows."""

    part_bytes: Annotated[int, pydantic.Field(ge=1, le=4 << 30)] = 128 << 20
    """A part ends when it has at least so many bytes. Rows count when they are written: of Parquet, by row group."""

    part_seconds: Seconds | None = None
    """A part ends so long after its first row."""

    part_wait: Seconds | None = None
    """With checkpoints, rows wait so long, or until there are about `part_bytes` of them: several checkpoints share a
    part then. The first checkpoint after a start shows what waits, and so does the end of the input. Otherwise, each
    checkpoint shows its rows."""

    @classmethod
    def of_table(cls, options: TableOptions) -> Self:
        path, keys = options.need("path", "out"), writing_keys(options)
        keys |= {
            "part_seconds": options.read("rolling_policy.interval", period_seconds, A_TIME),
            "part_wait": options.read("rolling_policy.wait", period_seconds, A_TIME),
            "part_bytes": options.read("rolling_policy.file_size", bytes_of, "a size such as 128 MiB"),
            "compression": keys.get("compression") or _compression(options),
        }
        return cls(path=path, **chosen(keys))

    @property
    def connector(self) -> str:
        return "filesystem"

    @property
    def place(self) -> str:
        return self.path

    @property
    def fate(self) -> Fate:
        return "withdrawn"

    @property
    def typed(self) -> bool:
        return self.format not in ("csv", "tsv")

    def check(self, schema: pa.Schema) -> None:
        _ = self.ending
        check_writing(self.path, schema, self.part_writing())
        self._folder().check()

    def sink(
        self, schema: pa.Schema, slice: int, stage: Stage | None, pipeline: str, name: str
    ) -> PartsSink | WaitingRowsSink:
        self.check(schema)
        limits = PartLimits(self.part_rows, self.part_bytes, self.part_seconds)
        folder = self._folder()
        sink = PartsSink(name, folder, schema, self.part_writing(), self.ending, slice, stage is not None, limits)
        if stage is None or self.part_wait is None:
            return sink
        return WaitingRowsSink(sink, folder, schema, slice, self.part_wait, self.part_bytes)

    def check_free(self, schema: pa.Schema) -> None:
        self.sink(schema, 0, None, "", "").close()

    def shown(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        names = list(self.columns or schema.names)
        if self._is_text() and not self.header:
            names = [f"f{place}" for place in range(len(names))]
        in_files = dict(zip(self.columns or schema.names, names, strict=True))
        types = {in_files.get(field.name, field.name): field.type for field in schema} if self._is_text() else {}
        reading = Reading(types=types, **{name: getattr(self.part_writing(), name) for name in _READ_AS_WRITTEN})
        folder = self._folder()
        for name in filter(_is_part, folder.names()):
            with FileSource([f"{self.path.rstrip('/')}/{name}"], reading) as source:
                places = [source.index(in_files.get(column, column)) for column in schema.names]
                for rows in source:
                    if rows.refused:
                        at, why = next(iter(rows.refused.items()))
                        raise InvalidArgument(f"{rows.file}, row {rows.first + at}: {why}")
                    columns = [rows.batch.column(place) for place in places]
                    yield pa.RecordBatch.from_arrays(columns, names=schema.names).cast(schema)

    def files(self) -> list[str]:
        """The paths or URLs of the parts that can be seen, by name; none if there is no folder. Asks a store that does
        not answer for a few seconds only. Raises InvalidArgument."""
        found = input_files([self.path], self.format, may_lack=True)
        return [file.name for file in found if _is_part(file.name.rpartition("/")[2])]

    def part_writing(self) -> Writing:
        """How a part is written, if its name has `ending`."""
        return self.writing(compression=None if self._is_text() else self.compression)

    @property
    def ending(self) -> str:
        """Of the parts' names. Raises InvalidArgument for a compression that the format does not have."""
        if not self._is_text():
            return f".{self.format}"
        if self.compression not in _TEXT_COMPRESSIONS:
            raise InvalidArgument(f"the compressions of {self.format} are none, gzip, zstd, not {self.compression}")
        return f".{self.format}{_TEXT_COMPRESSIONS[self.compression]}"

    def _folder(self) -> Folder:
        return open_folder(location_of(self.path).admitted())

    def _is_text(self) -> bool:
        return self.format in ("csv", "tsv", "jsonl", "text")


def _is_part(name: str) -> bool:
    return bool(PART.fullmatch(name) or _OF_FLINK.fullmatch(name))


def _compression(options: TableOptions) -> str | None:
    """Of JSON, or of Parquet if it is the format because the table names none."""
    return compression_named(options.text("parquet.compression") or options.text("json.compression"))
