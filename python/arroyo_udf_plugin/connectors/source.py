"""One or more inputs as a stream of rows.

with FileSource(["flights.csv"]) as source:
    for rows in source:                  rows.file, rows.first, rows.batch, rows.refused
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from ..errors import InvalidArgument
from ..host.casting import fits
from .cells import argument
from .delimited import DelimitedReader, dialect_of
from .inputs import Input, found, opened, readable
from .json_lines import JsonReader
from .options import BATCH_ROWS, Reading
from .schemas import index_of
from .type_names import type_named
from .typed import TypedReader

_Reader = DelimitedReader | JsonReader | TypedReader


@dataclasses.dataclass(frozen=True)
class Rows:
    """Consecutive rows of one file.

    file: its name; "-": standard input.
    first: the number of the batch's first row in its file, counted from 1. CSV: without the header; newline JSON: the
        line.
    batch: at most `BATCH_ROWS` rows, in the source's schema.
    refused: rows that could not be read (some of their cells are null), by position in the batch: the error's text.
    """

    file: str
    first: int
    batch: pa.RecordBatch
    refused: Mapping[int, str] = dataclasses.field(default_factory=dict)


class FileSource:
    """Inputs, opened and checked: they exist, have one format, and the same columns.

    inputs: files, folders, patterns (`data/*.csv`), or "-", standard input. Several are read in the order given;
        those of a folder or pattern by name.
    schema: of all batches. Cells of a text file have the type `cells.CellType`, unless `reading.types` names another.
    rows: the number of rows; None: unknown. files: the files' paths, without standard input.
    names: of the inputs, as `Rows.file` has them.
    Raises InvalidArgument, also while iterating. The rows can be read once.
    """

    def __init__(self, inputs: Sequence[str | os.PathLike[str]], reading: Reading | None = None) -> None:
        self._reading = reading or Reading()
        self._inputs = found(inputs, self._reading.format)
        self.files: list[Path] = [file.path for file in self._inputs if file.path is not None]
        self.names = tuple(file.name for file in self._inputs)
        self._open = contextlib.ExitStack()  # the file that is being read
        self._whole: pa.Schema | None = None  # all columns of the first file
        try:
            named = {name: type_named(type_) for name, type_ in self._reading.types.items()}
            self._types = self._types_of_schema() | named
            self._reader = self._opened(self._inputs[0], self._open)
            self._whole = self.schema = self._reader.schema
            self._places = list(range(len(self._whole)))
            if self._reading.columns is not None:
                self._places = [self.index(name) for name in self._reading.columns]
                self.schema = pa.schema(map(self._whole.field, self._places), self._whole.metadata)
            for name, type_ in self._types.items():
                if name in self.schema.names or (name in named and name not in self._whole.names):
                    self._retype(name, type_)
            self.rows = self._looked_into()
        except BaseException:
            self.close()
            raise

    def index(self, name: str) -> int:
        """The position of a column. Raises InvalidArgument, with the columns there are, for none or several."""
        file = self._inputs[0]
        try:
            return index_of(self.schema, name, f"{file.name}: ")
        except InvalidArgument as error:
            marks = [mark for mark in ";\t|" if len(self.schema) == 1 and mark in self.schema.names[0]]
            if not marks or file.kind.format != "csv":
                raise
            raise InvalidArgument(f"{error}; is the delimiter another one, --delimiter {marks[0]!r}?") from None

    def __iter__(self) -> Iterator[Rows]:
        left = self._reading.limit
        for number, file in enumerate(self._inputs):
            if left == 0:
                return
            if number:
                self._reader = self._opened(file, self._open)
            places = self._places_in(file, self._reader.schema)
            with readable(file):
                for first, batch, refused in self._reader.pieces(places, BATCH_ROWS):
                    if left is not None:
                        batch = batch.slice(0, left)
                        refused = {at: why for at, why in refused.items() if at < batch.num_rows}
                        left -= batch.num_rows
                    yield self._typed(file.name, first, batch, refused)
                    if left == 0:
                        return
            self._open.close()

    def close(self) -> None:
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _retype(self, name: str, type_: pa.DataType) -> None:
        """Gives a column a type. Raises InvalidArgument if no value of the column could have it."""
        index, field = self.index(name), pa.field(name, type_)
        try:
            argument(pa.nulls(0, self.schema.field(index).type), field)
        except InvalidArgument as error:
            raise InvalidArgument(f"{self._inputs[0].name}: column {name!r}: {error}") from error
        self.schema = self.schema.set(index, field)

    def _types_of_schema(self) -> dict[str, pa.DataType]:
        if self._reading.schema is None:
            return {}
        (file,) = found([self._reading.schema], None)
        if file.kind.is_text:
            raise InvalidArgument(f"{file.name}: a schema is taken from a Parquet or Arrow file")
        with contextlib.ExitStack() as here:
            schema = self._opened(file, here).schema
        encoded = pa.types.is_dictionary
        return {field.name: field.type.value_type if encoded(field.type) else field.type for field in schema}

    def _opened(self, file: Input, open_: contextlib.ExitStack) -> _Reader:
        reading, name = self._reading, file.name
        with readable(file):
            if not file.kind.is_text:
                return TypedReader(file, open_)
            read = opened(file, open_).read
            if file.kind.format == "jsonl":
                return JsonReader(read, name, self._types, self._whole, reading.cells)
            return DelimitedReader(read, name, dialect_of(file.kind.format, reading), reading.header)

    def _looked_into(self) -> int | None:
        """Looks into the other files, so that no row is called if they do not fit. Returns the number of all rows."""
        rows = self._reader.rows
        for file in self._inputs[1:]:
            if file.regular:
                with contextlib.ExitStack() as here:
                    reader = self._opened(file, here)
                    self._places_in(file, reader.schema)
            rows = None if rows is None or reader.rows is None else rows + reader.rows
        limit = self._reading.limit
        return rows if rows is None or limit is None else min(rows, limit)

    def _places_in(self, file: Input, schema: pa.Schema) -> list[int]:
        """Where the source's columns are in a file."""
        assert self._whole is not None
        first = self._inputs[0].name
        if schema.names == self._whole.names:
            places = self._places
        else:
            for names, others, has, lacks in (
                (self._whole.names, schema.names, first, file.name),
                (schema.names, self._whole.names, file.name, first),
            ):
                for name in names:
                    if names.count(name) != others.count(name):
                        raise InvalidArgument(f"{has} has a column {name!r}, and {lacks} does not: the inputs differ")
            places = [schema.get_field_index(self._whole.field(place).name) for place in self._places]
            if -1 in places:
                raise InvalidArgument(f"{file.name} and {first} have columns of one name, in another order")
        for place, mine in zip(places, self._places, strict=True):
            theirs, wanted = schema.field(place), self._whole.field(mine)
            if theirs.type != wanted.type and (why := fits(theirs.type, wanted)):
                raise InvalidArgument(f"{file.name}: column {theirs.name!r} {why} (as {first} has it)")
        return places

    def _typed(self, name: str, first: int, batch: pa.RecordBatch, refused: dict[int, str]) -> Rows:
        """The batch in the source's schema."""
        columns = []
        for column, field in zip(batch.columns, self.schema, strict=True):
            if column.type != field.type:
                cast = argument(column, field)
                column = cast.array
                for at, why in cast.refused.items():
                    refused.setdefault(at, f"column {field.name!r}: {why}")
            columns.append(column)
        return Rows(name, first, pa.RecordBatch.from_arrays(columns, schema=self.schema), refused)
