"""Batches to one output, which appears only when it is complete.

with FileSink("out.parquet", schema, inputs=source.files) as sink:
    sink.write(batch)
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from ...errors import InvalidArgument
from .cells import CellType, decoded
from .delimited import DelimitedWriter, dialect_of
from .disk import Disk
from .json_writer import JsonWriter
from .options import BATCH_ROWS, Writing
from .place import MemoryPlace, ObjectPlace, Place, kind_of_output, place_of
from .schemas import bytes_of_rows, index_of
from .text_lines import TextWriter
from .typed import TypedWriter

_WAITING_BYTES = 64 << 20  # with rows so large, a row group has fewer


class FileSink:
    """One output file, in place when the `with` block ends without an exception, and not there otherwise.

    path: "-" is standard output, which gets each batch as it is written; so does a FIFO or device. A URL is an object.
    schema: of the batches. Columns of `cells.CellType` are written to CSV as they stood in their file, and to other
        formats as text. Dictionaries are written to Arrow files as their values.
    inputs: files and objects that the output must not be, unless `writing.force`.
    name: of the output in error texts; None: `path`.
    beside: another sink of the same stream: both write to it, and neither after one of them has ended.
    disk: None: the current one.
    place: where the bytes go; None: to `path`, which otherwise only names the format.
    durable: whether a file that has appeared outlasts a loss of power; else the caller sees to it.
    Raises InvalidArgument if the output cannot be written, lacks a column that it should have, or its format cannot
    hold a column's type; BrokenPipeError if nobody reads it any more.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        schema: pa.Schema,
        writing: Writing | None = None,
        inputs: Sequence[Path | str] = (),
        name: str | None = None,
        beside: FileSink | None = None,
        disk: Disk | None = None,
        durable: bool = True,
        place: MemoryPlace | None = None,
    ) -> None:
        self._durable = durable
        writing = writing or Writing()
        path = os.fspath(path)
        self._name = name or path
        self._kind = kind_of_output(path, writing.format)
        self._places = (
            None if writing.columns is None else [index_of(schema, name, f"{self._name}: ") for name in writing.columns]
        )
        self._given = schema if self._places is None else pa.schema(map(schema.field, self._places), schema.metadata)
        self._schema = pa.schema(map(self._written, self._given), schema.metadata)
        self._writer: DelimitedWriter | JsonWriter | TextWriter | TypedWriter | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = self._waiting_bytes = 0
        self._group_rows = writing.row_group_rows if self._kind.format == "parquet" else BATCH_ROWS
        with self._errors():
            self._place: Place | ObjectPlace | MemoryPlace = place or (
                place_of(path, inputs, writing.force, disk) if beside is None else beside._place
            )
        try:
            with self._errors():
                self._compressed = self._compressor()
                self._writer = self._opened(writing)
        except BaseException:
            if beside is None:
                self._place.give_up()
            raise

    def _compressor(self) -> Any:
        if self._kind.compression is None:
            return None
        return pa.CompressedOutputStream(pa.PythonFile(self._place, "w"), self._kind.compression)

    def _opened(self, writing: Writing) -> DelimitedWriter | JsonWriter | TextWriter | TypedWriter:
        format, name = self._kind.format, self._name
        if self._kind.is_text:
            if writing.compression is not None:
                raise InvalidArgument(f"{name}: --compression is for Parquet and Arrow; name the text file .gz or .zst")
            write = (self._compressed or self._place).write
            if format == "text":
                return TextWriter(write, name, self._schema, null="")
            if format == "jsonl" and writing.unstructured:
                return TextWriter(write, name, self._schema, null="null", one_line=True)
            if format == "jsonl":
                how = writing.timestamps, writing.decimals, writing.json_columns, writing.shown
                return JsonWriter(write, name, self._schema, *how)
            return DelimitedWriter(write, name, self._schema, dialect_of(format, writing), writing.header)
        return TypedWriter(self._place, name, format, self._schema, writing)

    def write(self, batch: pa.RecordBatch) -> None:
        """Adds a batch of any size."""
        if not batch.num_rows:
            return
        if self._places is not None:
            batch = batch.select(self._places)
        self._waiting.append(batch)
        self._waiting_rows += batch.num_rows
        self._waiting_bytes += bytes_of_rows(batch)
        if self._place.is_live or self._waiting_rows >= self._group_rows or self._waiting_bytes >= _WAITING_BYTES:
            self._flush()

    def _written(self, field: pa.Field) -> pa.Field:
        """A column as the writer gets it. An Arrow file has one dictionary a column, and batches may have several."""
        if isinstance(field.type, CellType) and not self._kind.is_text:
            return field.with_type(pa.string())
        if pa.types.is_dictionary(field.type) and self._kind.format == "arrow":
            return field.with_type(field.type.value_type)
        return field

    def _flush(self) -> None:
        table = pa.Table.from_batches(self._waiting, self._given)
        self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0
        if self._given != self._schema:
            columns = [
                pa.chunked_array([decoded(chunk).cast(field.type) for chunk in column.chunks], field.type)
                for column, field in zip(table.columns, self._schema, strict=True)
            ]
            table = pa.Table.from_arrays(columns, schema=self._schema)
        with self._errors():
            assert self._writer is not None
            self._writer.write(table.combine_chunks())
            if self._place.is_live:
                if self._compressed is not None:
                    self._compressed.flush()
                self._place.flush()

    def finish(self) -> None:
        """Writes what is left, so that only the name is missing: for outputs that appear together."""
        if self._writer is None:
            return
        if self._waiting:
            self._flush()
        with self._errors():
            self._writer.close()
            if self._compressed is not None:
                self._compressed.close()
            self._place.flush()
        self._writer = None

    @property
    def n_bytes(self) -> int:
        """Of the file so far. Rows that wait for their row group are not in it yet."""
        return self._place.n_bytes

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._place.give_up()
            return
        try:
            self.finish()
            with self._errors():
                self._place.appear(self._durable)
        except BaseException:
            self._place.give_up()
            raise

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Errors of writing, as InvalidArgument with the output's name."""
        try:
            yield
        except BrokenPipeError:
            raise
        except (OSError, pa.ArrowException, ValueError, OverflowError) as error:
            why = (error.strerror if isinstance(error, OSError) else None) or error
            raise InvalidArgument(f"cannot write {self._name}: {why}") from error


def check_writing(path: str, schema: pa.Schema, writing: Writing) -> None:
    """Raises InvalidArgument for columns and options with which the output could not be written. Writes nothing."""
    writing = dataclasses.replace(writing, format=kind_of_output(path, writing.format).format)
    with FileSink(os.devnull, schema, writing, name=path):
        pass
