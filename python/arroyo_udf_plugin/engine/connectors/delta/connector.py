"""A Delta table as a sink, as a person describes it, and its connector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

import pyarrow as pa
import pydantic

from ....author.options import bytes_of
from ....errors import InvalidArgument
from ..connector import CatalogueEntry, Connector, Form
from ..described import Output, Several
from ..folder import open_folder
from ..interface import Stage
from ..location import location_of
from ..options import ROW_GROUP_ROWS, Writing
from ..parts_sink import PartLimits
from ..schemas import index_of
from ..sink import check_writing
from ..table_options import TableOptions, WrongOption, chosen
from ..written import compression_named
from .columns import DeltaColumns
from .partition import Partitioning
from .sink import DeltaSink
from .table import DeltaLog


class DeltaOutput(Output):
    """A table of Delta Lake."""

    type: Literal["delta"] = "delta"

    path: str
    """The table's folder, or its URL in an object store (`s3://bucket/folder`). The table is made if there is none."""

    columns: Several[str] | None = None
    """Those to write, in this order; otherwise all. Other columns of the table are null."""

    partition_by: Several[str] = ()
    """The partition columns of a new table."""

    compression: str | None = None
    """Of the files: snappy, zstd, gzip, lz4, brotli or none."""

    row_group_rows: Annotated[int, pydantic.Field(ge=1)] = ROW_GROUP_ROWS
    """Rows in a row group of a file."""

    part_rows: Annotated[int, pydantic.Field(ge=1)] | None = None
    """A file has at most so many rows."""

    part_bytes: Annotated[int, pydantic.Field(ge=1, le=4 << 30)] = 128 << 20
    """A file ends when it has at least so many bytes. Rows count when they are written, by row group."""

    @classmethod
    def of_table(cls, options: TableOptions) -> Self:
        path, format_ = options.need("path", "s3://bucket/table"), options.take("format")
        if format_ is not None and format_.value != "parquet":
            raise WrongOption(f"format = '{format_.value}': files of Delta tables are parquet", format_.at)
        keys = {
            "partition_by": options.read("partition_fields", _names, "names of columns, such as day,country"),
            "compression": compression_named(options.text("parquet.compression")),
            "row_group_rows": options.read("parquet.row_group_size", int, "a number of rows"),
            "part_bytes": options.read("rolling_policy.file_size", bytes_of, "a size such as 128 MiB"),
        }
        return cls(path=path, **chosen(keys))

    @property
    def place(self) -> str:
        return self.path

    def check(self, schema: pa.Schema) -> None:
        where = location_of(self.path).admitted()
        self._columns(schema, DeltaLog(where))
        check_writing(self.path, pa.schema([("n", pa.int64())]), self._writing())
        open_folder(where).check()

    def _columns(self, schema: pa.Schema, log: DeltaLog) -> tuple[DeltaColumns, Partitioning]:
        """What is written of the rows of a schema. Raises InvalidArgument."""
        table = log.now()
        there = None if table is None else log.schema(table, self.partition_by)
        if not len(schema):
            raise InvalidArgument(f"{self.path}: there are no columns")
        names = list(self.columns or schema.names)
        given = pa.schema([schema.field(index_of(schema, name, f"{self.path}: ")) for name in names])
        if len({name.lower() for name in names}) < len(names):
            raise InvalidArgument(f"{self.path}: names of columns differ there by more than large letters: rename some")
        columns = DeltaColumns(given, log.place, there)
        by = self.partition_by if table is None else table.metadata().partition_columns
        return columns, Partitioning(by, columns.schema, log.place)

    def _writing(self) -> Writing:
        return Writing(format="parquet", compression=self.compression, row_group_rows=self.row_group_rows)

    def sink(self, schema: pa.Schema, slice: int, stage: Stage | None, pipeline: str, name: str) -> DeltaSink:
        where = location_of(self.path).admitted()
        log, limits = DeltaLog(where), PartLimits(self.part_rows, self.part_bytes, None)
        columns, partitioning = self._columns(schema, log)
        places = None if self.columns is None else [index_of(schema, column) for column in self.columns]
        history = None if stage is None else stage.history
        return DeltaSink(
            name,
            log,
            open_folder(where),
            columns,
            partitioning,
            self._writing(),
            limits,
            slice,
            history,
            pipeline,
            places,
        )


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.strip("[] ").split(","))
    if not all(names):
        raise ValueError
    return names


class _Form(Form):
    example: ClassVar[Mapping[str, Any]] = {"path": "s3://bucket/table"}

    path: Annotated[str, pydantic.Field(pattern=r"^[^\x00-\x1f\x7f]*$", min_length=1, max_length=4000, title="Path")]
    partition_fields: Annotated[str | None, pydantic.Field(title="Partition columns", max_length=4000)] = None
    file_size_bytes: Annotated[int | None, pydantic.Field(ge=1, title="Bytes of a file")] = None

    def options(self) -> dict[str, str]:
        options = {"path": self.path}
        if self.partition_fields is not None:
            options["partition_fields"] = self.partition_fields
        return options | (
            {} if self.file_size_bytes is None else {"rolling_policy.file_size": f"{self.file_size_bytes}B"}
        )


CONNECTOR = Connector(
    "delta",
    sink=DeltaOutput,
    entry=CatalogueEntry("Delta Lake", "A table of Delta Lake", _Form, icon="M12 4l9 16H3z"),
)
