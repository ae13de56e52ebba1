"""Files as streams of record batches: CSV, Parquet and Arrow IPC, chosen by file ending.

Guarantees: only a few batches are in memory, each with at most `BATCH_ROWS` rows. A `Writer`'s file appears under its
name only when it is complete, and never after a failure.

Text: a CSV file's columns are read as text. Argument columns are then parsed as the function's types; "NA" and the
empty field mean null, also for text. From CSV to CSV every field keeps its text; for the typed formats pyarrow infers
the other columns' types.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from ._native import keep_at_exit, remove_at_exit
from .errors import InvalidArgument

BATCH_ROWS = 8192  # a batch stays in the processor's cache while it is converted
BLOCK_BYTES = 4 << 20  # of CSV text; pyarrow infers types from the first block
ROW_GROUP_ROWS = 131_072
NULL_TEXTS = ("", "NA")
ENDINGS = (".csv", ".parquet", ".arrow", ".feather", ".arrows")


def ending(path: Path) -> str:
    """The ending of `path` in lower case. Raises InvalidArgument if it is not one of `ENDINGS`."""
    suffix = path.suffix.lower()
    if suffix not in ENDINGS:
        raise InvalidArgument(f"{path}: the file's ending must be one of {', '.join(ENDINGS)}")
    return suffix


class Reader:
    """An open input file. Iterating yields pairs: a batch of all columns, and its argument columns.

    columns: the argument columns' names. types: the function's types for them. as_text: keep a CSV file's batches as
    text, for CSV output. schema: of the batches. rows: their total number; None: unknown.
    Raises InvalidArgument for a missing or unsuitable column, by name.
    """

    def __init__(self, path: Path, columns: list[str], types: list[pa.DataType], as_text: bool) -> None:
        self._path, self._columns, self._types = path, columns, types
        self._open = contextlib.ExitStack()
        self._from_text = ending(path) == ".csv"
        self._keep_text = as_text
        self.rows: int | None = None
        try:
            schema, self._batches = self._opened()
            self._indices = [self._index(schema, name) for name in columns]
            if self._from_text and not as_text:
                for index, type_ in zip(self._indices, types, strict=True):
                    schema = schema.set(index, pa.field(schema.field(index).name, type_))
            self.schema: pa.Schema = schema
            if not self._from_text:
                for index, type_ in zip(self._indices, types, strict=True):
                    self._check_type(schema.field(index), type_)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            self.close()
            raise InvalidArgument(f"{path}: {error}") from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._open.close()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[tuple[pa.RecordBatch, list[pa.Array]]]:
        first_row = 1
        try:
            for whole in self._batches:
                for offset in range(0, whole.num_rows, BATCH_ROWS):
                    batch = whole.slice(offset, BATCH_ROWS)
                    arguments = self.arguments(batch, first_row)
                    if self._from_text and not self._keep_text:
                        for index, argument in zip(self._indices, arguments, strict=True):
                            batch = batch.set_column(index, self.schema.field(index), argument)
                    yield batch, arguments
                    first_row += batch.num_rows
        except pa.ArrowInvalid as error:
            hint = ""
            if self._from_text and not self._keep_text:
                hint = " (column types are inferred from the file's beginning; write a .csv to keep them as text)"
            raise InvalidArgument(f"{self._path}: {error}{hint}") from error

    def arguments(self, batch: pa.RecordBatch, first_row: int) -> list[pa.Array]:
        """The argument columns of a batch in the function's types. first_row: its number, for error texts."""
        return [self._argument(batch, position, first_row) for position in range(len(self._columns))]

    def _opened(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        path = str(self._path)
        match ending(self._path):
            case ".csv":
                return self._opened_csv(path)
            case ".parquet":
                parquet = self._open.enter_context(pyarrow.parquet.ParquetFile(path))
                self.rows = parquet.metadata.num_rows
                return parquet.schema_arrow, parquet.iter_batches(batch_size=BATCH_ROWS)
            case ".arrows":
                stream = self._open.enter_context(pa.ipc.open_stream(self._open.enter_context(pa.OSFile(path))))
                return stream.schema, iter(stream)
            case _:
                file = self._open.enter_context(pa.ipc.open_file(self._open.enter_context(pa.memory_map(path))))
                return file.schema, (file.get_batch(index) for index in range(file.num_record_batches))

    def _opened_csv(self, path: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        options: dict[str, Any] = {
            "read_options": pyarrow.csv.ReadOptions(block_size=BLOCK_BYTES),
            "parse_options": pyarrow.csv.ParseOptions(newlines_in_values=True),
        }
        with pyarrow.csv.open_csv(path, **options) as head:
            names = head.schema.names
        text = names if self._keep_text else self._columns
        convert = pyarrow.csv.ConvertOptions(
            column_types={name: pa.string() for name in text}, strings_can_be_null=False, null_values=list(NULL_TEXTS)
        )
        reader = self._open.enter_context(pyarrow.csv.open_csv(path, convert_options=convert, **options))
        return reader.schema, iter(reader)

    def _index(self, schema: pa.Schema, name: str) -> int:
        indices = schema.get_all_field_indices(name)
        if len(indices) == 1:
            return int(indices[0])
        trouble = f"there are {len(indices)} columns" if indices else "there is no column"
        raise InvalidArgument(f"{self._path}: {trouble} {name!r}; the columns are {', '.join(schema.names)}")

    def _check_type(self, field: pa.Field, wanted: pa.DataType) -> None:
        found = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        families: list[Callable[[pa.DataType], bool]] = [
            pa.types.is_integer,
            pa.types.is_floating,
            lambda type_: pa.types.is_string(type_) or pa.types.is_large_string(type_),
            lambda type_: pa.types.is_binary(type_) or pa.types.is_large_binary(type_),
        ]
        if found != wanted and not any(family(found) and family(wanted) for family in families):
            raise InvalidArgument(
                f"{self._path}: column {field.name!r} is {field.type}, the function takes {wanted}: "
                "cast the column in the file, or change the function's signature"
            )

    def _argument(self, batch: pa.RecordBatch, position: int, first_row: int) -> pa.Array:
        """Argument column `position` of `batch` in the function's type."""
        column, wanted = batch.column(self._indices[position]), self._types[position]
        try:
            if self._from_text and pa.types.is_string(column.type):
                is_null = pc.is_in(column, value_set=pa.array(NULL_TEXTS))
                column = pc.if_else(is_null, pa.scalar(None, pa.string()), column)
            return column if column.type == wanted else column.cast(wanted)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            rows = f"rows {first_row} to {first_row + batch.num_rows - 1}"
            raise InvalidArgument(
                f"{self._path}: column {self._columns[position]!r}, {rows}: not all values are {wanted}: {error}"
            ) from error


class Writer:
    """Writes a temporary file in the same folder; renames it when the `with` block ends without an exception.

    Raises InvalidArgument if the file cannot be written, or its format cannot hold a column's type.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path = path
        self._aside = path.with_name(f".{path.name}.{os.getpid()}.partial")
        self._schema = schema
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        kind = ending(path)
        self._group_rows = ROW_GROUP_ROWS if kind == ".parquet" else BATCH_ROWS
        if kind == ".csv":
            for field in schema:
                _check_csv_type(path, field)
        self._open = contextlib.ExitStack()
        remove_at_exit(os.fsencode(self._aside.absolute()))
        try:
            self._sink = self._open.enter_context(pa.OSFile(str(self._aside), "wb"))
            self._format = self._opened(kind)
        except BaseException as error:
            self._give_up()
            if isinstance(error, OSError):
                raise InvalidArgument(f"cannot write {path}: {error}") from error
            raise

    def _opened(self, kind: str) -> Any:
        match kind:
            case ".csv":
                self._sink.write(_csv_lines([pa.array([name], pa.string()) for name in self._schema.names]))
                return None
            case ".parquet":
                return self._open.enter_context(pyarrow.parquet.ParquetWriter(self._sink, self._schema))
            case ".arrows":
                return self._open.enter_context(pa.ipc.new_stream(self._sink, self._schema))
            case _:
                return self._open.enter_context(pa.ipc.new_file(self._sink, self._schema))

    def write(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._waiting_rows += batch.num_rows
        if self._waiting_rows >= self._group_rows:
            self._flush()

    def _flush(self) -> None:
        table = pa.Table.from_batches(self._waiting, self._schema).combine_chunks()
        self._waiting, self._waiting_rows = [], 0
        if self._format is not None:
            self._format.write_table(table)
        else:
            for batch in table.to_batches():
                self._sink.write(_csv_lines(batch.columns))

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is not None:
            self._give_up()
            return
        try:
            if self._waiting:
                self._flush()
            self._open.close()
            os.replace(self._aside, self._path)
            keep_at_exit(os.fsencode(self._aside.absolute()))
        except BaseException:
            self._give_up()
            raise

    def _give_up(self) -> None:
        with contextlib.suppress(OSError, pa.ArrowException):
            self._open.close()
        self._aside.unlink(missing_ok=True)
        keep_at_exit(os.fsencode(self._aside.absolute()))


def _check_csv_type(path: Path, field: pa.Field) -> None:
    type_ = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if pa.types.is_nested(type_) or pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        raise InvalidArgument(
            f"{path}: a CSV file cannot hold column {field.name!r} of type {field.type}; write .parquet or .arrow"
        )


def _text(value: str) -> pa.Scalar:
    return pa.scalar(value, pa.large_string())


def _csv_lines(columns: list[pa.Array]) -> pa.Buffer:
    """The columns as lines of CSV. Null is the empty field; fields have quotes only if necessary."""
    fields = []
    for column in columns:
        text = column.cast(pa.large_string())
        needs_quotes = pc.match_substring_regex(text, '[",\r\n]')
        if pc.any(needs_quotes).as_py():
            escaped = pc.replace_substring(text, '"', '""')
            quoted = pc.binary_join_element_wise(_text('"'), escaped, _text('"'), _text(""))
            text = pc.if_else(needs_quotes, quoted, text)
        fields.append(text)
    rows = pc.binary_join_element_wise(*fields, _text(","), null_handling="replace", null_replacement="")
    lines = pc.binary_join_element_wise(rows, _text(""), _text("\n"))
    _, offsets, data = lines.buffers()
    starts = memoryview(offsets).cast("q")
    return data.slice(starts[lines.offset], starts[lines.offset + len(lines)] - starts[lines.offset])
