"""One or more inputs as a stream of rows.

with FileSource(["flights.csv"]) as source:
    for rows in source:                  rows.file, rows.first, rows.batch, rows.refused
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from ...errors import InvalidArgument
from ...host import few
from ...host.ordinals import ordinals
from ...plugin.casting import fits
from .cells import argument
from .delimited import DelimitedReader, dialect_of
from .formats import may_be_array
from .inferred import type_of
from .inputs import InputFile, input_files, opened, readable
from .interrupt import Interrupt
from .json_arrays import ArrayLines
from .json_lines import JsonReader, no_json
from .options import BATCH_ROWS, TYPED_BATCH_ROWS, Reading
from .piece import Piece, TextBlock
from .schemas import index_of
from .text_lines import TextReader, no_text
from .type_names import type_named
from .typed import TypedReader

_Reader = DelimitedReader | JsonReader | TextReader | TypedReader


@dataclasses.dataclass(frozen=True)
class Rows:
    """Consecutive rows of one file, or of what is like a file.

    file: its name; "-": standard input.
    first: the number of the batch's first row in its file, counted from 1. CSV: without the header; newline JSON: the
        line.
    numbers: of all rows (uint64), if they do not follow one another. None: they do.
    batch: at most `BATCH_ROWS` rows, of typed files `TYPED_BATCH_ROWS`, in the source's schema.
    refused: rows that could not be read (some of their cells are null), by position in the batch: the error's text.
    block: of a text file, in which they are: reading can go on from there. None: only from the file's start.
    """

    file: str
    first: int
    batch: pa.RecordBatch
    refused: Mapping[int, str] = dataclasses.field(default_factory=dict)
    block: TextBlock | None = None
    numbers: pa.Array | None = None

    def first_rows(self, most: int) -> Rows:
        """At most so many of them."""
        if self.batch.num_rows <= most:
            return self
        refused = {at: why for at, why in self.refused.items() if at < most}
        numbers = None if self.numbers is None else self.numbers.slice(0, most)
        return dataclasses.replace(self, batch=self.batch.slice(0, most), refused=refused, numbers=numbers)


def row_numbers(first: int, n_rows: int, type_: few.Whole = "uint64") -> pa.Array:
    """first, first + 1, ...: in pieces for which `ordinals` is fast."""
    pieces = [ordinals(min(BATCH_ROWS, n_rows - at), first + at, type_) for at in range(0, n_rows or 1, BATCH_ROWS)]
    return pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)


class OpenFile:
    """A file that is being read. reader: of all its columns. interrupt: ends a read that waits; None: none does."""

    def __init__(
        self,
        file: InputFile,
        reader_of: Callable[[InputFile, contextlib.ExitStack, Interrupt | None], _Reader],
        interrupt: Interrupt | None = None,
    ) -> None:
        self._open = contextlib.ExitStack()
        if interrupt is None and not file.is_local:
            interrupt = self._open.enter_context(contextlib.closing(Interrupt()))
        self.interrupt = interrupt
        try:
            with readable(file):
                self.reader = reader_of(file, self._open, self.interrupt)
        except BaseException:
            self._open.close()
            raise

    def close(self) -> None:
        self._open.close()


class FileSource:
    """Inputs, opened and checked: they exist, have one format, and the same columns.

    watched: more files may come. If `reading` says all columns, there may be no files yet, and they may have further
        columns. The first file is looked into; the others are when they are read, because there may be many.
    inputs: files, folders, patterns (`data/*.csv`), URLs of object stores, or "-", standard input. Several are read in
        the order given; those of a folder or pattern by name.
    schema: of all batches. Cells of a text file have the type `cells.CellType`, unless `reading.types` names another.
    rows: the number of rows; None: unknown. files: the local files' paths. input_files: the inputs.
    inferred: the types that text columns got by their first rows, by name.
    names: of the inputs, as `Rows.file` has them. given: the files' paths, and the objects' URLs.
    seen: what was found, see `input_files`.
    Raises InvalidArgument, also while iterating. A stream's rows can be read once.
    """

    def __init__(
        self, inputs: Sequence[str | os.PathLike[str]], reading: Reading | None = None, watched: bool = False
    ) -> None:
        self._reading = reading or Reading()
        self._is_declared = watched and self._reading.is_whole
        self.seen: list[set[str]] = [set() for _ in inputs]
        self.input_files = input_files(inputs, self._reading.format, may_lack=self._is_declared, seen=self.seen)
        self.files: list[Path] = [file.path for file in self.input_files if file.path is not None]
        self.names = tuple(file.name for file in self.input_files)
        self.given: list[Path | str] = [
            *self.files,
            *(file.name for file in self.input_files if file.object is not None),
        ]
        self._whole: pa.Schema | None = None  # all columns of the first file
        self._streams: dict[str, OpenFile] = {}  # opened already, because that can be done once
        try:
            named = {name: type_named(type_) for name, type_ in self._reading.types.items()}
            self._types = self._types_of_schema() | named
            if self._is_declared:
                self.schema = pa.schema([(name, self._types[name]) for name in self._reading.columns or ()])
                self.inferred, self.rows = {}, None
                for file in [file for file in self.input_files if file.regular][:1]:
                    with contextlib.closing(self.open(file)) as opened_:
                        self._places_in(file, opened_.reader.schema)
                return
            first = OpenFile(self.input_files[0], self._reader)
            try:
                self._whole = self.schema = first.reader.schema
                self._places = list(range(len(self._whole)))
                if self._reading.columns is not None:
                    self._places = [self.index(name) for name in self._reading.columns]
                    self.schema = pa.schema(map(self._whole.field, self._places), self._whole.metadata)
                self.inferred = self._infer(first.reader) if self._reading.infer_types else {}
                for name, type_ in (self.inferred | self._types).items():
                    if name in self.schema.names or (name in named and name not in self._whole.names):
                        self._retype(name, type_)
                self.rows = None if watched else self._looked_into(first.reader.rows)
            finally:
                if self.input_files[0].regular:
                    first.close()
                else:
                    self._streams[self.input_files[0].name] = first
        except BaseException:
            self.close()
            raise

    def index(self, name: str) -> int:
        """The position of a column. Raises InvalidArgument, with the columns there are, for none or several."""
        file = self.input_files[0]
        try:
            return index_of(self.schema, name, f"{file.name}: ")
        except InvalidArgument as error:
            marks = [mark for mark in ";\t|" if len(self.schema) == 1 and mark in self.schema.names[0]]
            if not marks or file.kind.format != "csv":
                raise
            raise InvalidArgument(f"{error}; is the delimiter another one, --delimiter {marks[0]!r}?") from None

    def __iter__(self) -> Iterator[Rows]:
        left = self._reading.limit
        for file in self.input_files:
            if left == 0:
                return
            with contextlib.closing(self.open_stream(file) or self.open(file)) as opened:
                for rows in self.rows_of(file, opened):
                    if left is not None:
                        rows = rows.first_rows(left)
                        left -= rows.batch.num_rows
                    yield rows
                    if left == 0:
                        return

    def open(self, file: InputFile, interrupt: Interrupt | None = None) -> OpenFile:
        """A file, with the columns of the first. interrupt: ends reads that wait; None: the file gets its own."""
        return OpenFile(file, self._reader, interrupt)

    def open_stream(self, file: InputFile) -> OpenFile | None:
        """The first file if it is a stream, which is open already; only once."""
        return self._streams.pop(file.name, None)

    def rows_of(
        self, file: InputFile, opened: OpenFile, start: int = 1, block: TextBlock | None = None
    ) -> Iterator[Rows]:
        """The rows of a file in the source's schema. start: the number of the first row to read. block: which earlier
        rows had; it is not behind that one."""
        places = self._places_in(file, opened.reader.schema)
        most = BATCH_ROWS if file.kind.is_text else TYPED_BATCH_ROWS
        with readable(file):
            for piece in opened.reader.pieces(places, most, start, block):
                yield in_schema(file.name, piece, self.schema, self.inferred)

    def close(self) -> None:
        for stream in self._streams.values():
            stream.close()
        self._streams.clear()

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
            raise InvalidArgument(f"{self.input_files[0].name}: column {name!r}: {error}") from error
        self.schema = self.schema.set(index, field)

    def _infer(self, reader: _Reader) -> dict[str, pa.DataType]:
        """Types of the columns of text, by name."""
        if not isinstance(reader, DelimitedReader | JsonReader):
            return {}
        types = dict(zip(reader.schema.names, map(type_of, reader.first_rows()), strict=True))
        return {name: type_ for name, type_ in types.items() if type_ is not None and name not in self._types}

    def _types_of_schema(self) -> dict[str, pa.DataType]:
        if self._reading.schema is None:
            return {}
        (file,) = input_files([self._reading.schema], None)
        if file.kind.is_text:
            raise InvalidArgument(f"{file.name}: a schema is taken from a Parquet or Arrow file")
        with contextlib.closing(OpenFile(file, self._reader)) as like:
            schema = like.reader.schema
        encoded = pa.types.is_dictionary
        return {field.name: field.type.value_type if encoded(field.type) else field.type for field in schema}

    def _reader(self, file: InputFile, open_: contextlib.ExitStack, interrupt: Interrupt | None) -> _Reader:
        reading, name = self._reading, file.name
        file.admitted()
        if not file.kind.is_text:
            return TypedReader(file, open_, interrupt)
        stream = opened(file, open_, interrupt)
        read = stream.read
        seek = stream.seek if file.regular and file.kind.compression is None else None
        if file.kind.format == "text" or (file.kind.format == "jsonl" and reading.unstructured):
            return TextReader(read, name, no_text if file.kind.format == "text" else no_json, seek)
        if file.kind.format == "jsonl":
            schema = self.schema if self._is_declared else self._whole
            how = schema, reading.cells, reading.json_columns, reading.timestamps, reading.columns is not None
            if may_be_array(name):
                return JsonReader(ArrayLines(read, name).read, name, self._types, *how)
            return JsonReader(read, name, self._types, *how, seek)
        dialect = dialect_of(file.kind.format, reading)
        return DelimitedReader(read, name, dialect, reading.header, reading.refuses, reading.comment, seek)

    def _looked_into(self, rows: int | None) -> int | None:
        """Looks into the other files, so that no row is called if they do not fit. Returns the number of all rows.

        rows: of the first file.
        """
        for file in self.input_files[1:]:
            if not file.regular:
                rows = None
                continue
            with contextlib.closing(OpenFile(file, self._reader)) as other:
                self._places_in(file, other.reader.schema)
                rows = None if rows is None or other.reader.rows is None else rows + other.reader.rows
        limit = self._reading.limit
        return rows if rows is None or limit is None else min(rows, limit)

    def _places_in(self, file: InputFile, schema: pa.Schema) -> list[int]:
        """Where the source's columns are in a file."""
        if self._is_declared:
            return [index_of(schema, name, f"{file.name}: ") for name in self.schema.names]
        assert self._whole is not None
        first = self.input_files[0].name
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


def in_schema(name: str, piece: Piece, schema: pa.Schema, inferred: Collection[str] = ()) -> Rows:
    """A piece of a file with a schema's types. inferred: columns that have theirs by the first rows."""
    first, batch, refused, block = piece
    if batch.schema.equals(schema, check_metadata=True):
        return Rows(name, first, batch, refused, block)
    columns = []
    for column, field in zip(batch.columns, schema, strict=True):
        if column.type != field.type:
            cast = argument(column, field)
            column = cast.array
            hint = f" (the first rows are; --types {field.name}=str keeps text)" if field.name in inferred else ""
            for at, why in cast.refused.items():
                refused.setdefault(at, f"column {field.name!r}: {why}{hint}")
        columns.append(column)
    return Rows(name, first, pa.RecordBatch.from_arrays(columns, schema=schema), refused, block)
