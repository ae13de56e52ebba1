"""Whole records of text as rows: lines of JSON, lines as they are, or rows of CSV.

    records = GrowingRecords(described.reading(), described.metadata)
    records.whole(data)                      how many bytes of `data` are whole records
    records.rows(name, data, 17, 17)         those as rows; the first one has the number 17

Guarantees: a record is read when its line end is there, and not before. One that cannot be read is a refused row.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from ....errors import InvalidArgument
from ..blocks import record_end
from ..delimited import DelimitedReader, dialect_of
from ..json_lines import JsonReader, no_json
from ..options import BATCH_ROWS, Reading
from ..row_metadata import RowMetadata
from ..schemas import index_of
from ..source import Rows, in_schema
from ..text_lines import SCHEMA, TextReader, no_text
from ..type_names import type_named


class GrowingRecords:
    """reading: with all columns in `types`, by name, unless each line is one value. metadata: see `RowMetadata`.

    schema: of the rows. has_header: the first record of each file has the names. Raises InvalidArgument.
    """

    def __init__(self, reading: Reading, metadata: Mapping[str, str]) -> None:
        self._reading = reading
        self._types = {name: type_named(type_) for name, type_ in reading.types.items()}
        self._is_csv = reading.format in ("csv", "tsv")
        self._dialect = dialect_of(reading.format or "", reading)
        self._quote = reading.quote.encode() if self._is_csv else b""
        self.has_header = self._is_csv and reading.header
        self._names = b""  # what stands for the header of CSV that has none
        if self._is_csv and not reading.header:
            quote = reading.quote
            names = [f"{quote}{name.replace(quote, 2 * quote) if quote else name}{quote}" for name in self._types]
            self._names = (self._dialect.delimiter.join(names) + "\n").encode()
        if not self._is_csv and (reading.format == "text" or reading.unstructured):
            if list(self._types) not in ([], ["value"]):
                raise InvalidArgument("types: lines of text have one column, 'value', of its own type: leave out types")
            own = SCHEMA
        else:
            own = _columns(self._types, reading.json_columns)
        self._own, self._is_lines = own, own is SCHEMA
        self._metadata = RowMetadata(metadata, own)
        self.schema = self._metadata.schema
        if not self._is_csv and not self._is_lines:
            self._json("", b"")  # refuses types that JSON cannot have

    def whole(self, data: bytes) -> int:
        return record_end(data, self._quote)

    def header(self, data: bytes) -> bytes | None:
        """What a file begins with up to the end of the names. None: they are not there."""
        end = -1
        while (end := data.find(b"\n", end + 1)) >= 0:
            if not (self._quote and data.count(self._quote, 0, end) % 2) and data[:end].strip(b"\xef\xbb\xbf\r\n "):
                return data[: end + 1]
        return None

    def rows(self, name: str, data: bytes, first: int, start: int, header: bytes = b"") -> Iterator[Rows]:
        """data: whole records; the first one is number `first`. start: the number of the first row to read. header: of
        the file, if `data` is not its beginning."""
        reader = self._reader(name, (header or self._names) + data)
        columns = [index_of(reader.schema, column, f"{name}: ") for column in self._own.names]
        for at, batch, refused, _ in reader.pieces(columns, BATCH_ROWS, start - first + 1):
            rows = in_schema(name, (first + at - 1, batch, refused, None), self._own)
            yield self._metadata.added(rows)

    def after(self, data: bytes, first: int, last: Rows | None) -> int:
        """The number of the record behind `data`. last: the last rows of it; None: there are none."""
        if not self._is_csv:
            return first + data.count(b"\n")
        return first if last is None else last.first + last.batch.num_rows

    def _reader(self, name: str, data: bytes) -> DelimitedReader | JsonReader | TextReader:
        if self._is_lines:
            return TextReader(io.BytesIO(data).read, name, no_text if self._reading.format == "text" else no_json)
        if not self._is_csv:
            return self._json(name, data)
        return DelimitedReader(io.BytesIO(data).read, name, self._dialect, header=True, refuses=True)

    def _json(self, name: str, data: bytes) -> JsonReader:
        reading = self._reading
        return JsonReader(
            io.BytesIO(data).read,
            name,
            {column: type_ for column, type_ in self._types.items() if column not in reading.json_columns},
            self._own,
            json_columns=reading.json_columns,
            timestamps=reading.timestamps,
            ignores=True,
        )


def _columns(types: Mapping[str, pa.DataType], json_columns: Sequence[str]) -> pa.Schema:
    columns = {**types, **dict.fromkeys(json_columns, pa.string())}
    if not columns:
        raise InvalidArgument('types: name the columns with their types, such as {"id" = "int"}')
    return pa.schema(list(columns.items()))
