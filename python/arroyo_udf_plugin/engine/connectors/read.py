"""The keys of a description that say how text and files are read: those of `options.Reading`."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import pydantic

from .bad_records import BadRecords
from .described import Described, Several
from .options import NULL_VALUES, Reading
from .written import DecimalMark, Format


class Read(Described):
    later: ClassVar[frozenset[str]] = frozenset(
        {"json_columns", "metadata", "timestamps", "decimal_mark", "date_formats", "comment", "infer_types"}
    )

    format: Format | None = None
    """The format, if it does not follow from the name; standard input is CSV."""

    types: dict[str, str] = pydantic.Field(default_factory=dict)
    """Types of text columns by name, such as "int", "date" or "decimal(10, 2)"."""

    schema_: str | None = pydantic.Field(default=None, alias="schema")
    """A Parquet or Arrow file; columns get the types that they have there."""

    null_values: Several[str] = NULL_VALUES
    """Unquoted texts that mean null in CSV."""

    delimiter: str | None = None
    """Between the cells of CSV; otherwise a comma, or a tab for tsv."""

    quote: str = '"'
    """Around cells of CSV; "" is none."""

    header: bool = True
    """The first line of CSV has the columns' names; otherwise they are f0, f1, ..."""

    decimal_mark: DecimalMark | None = None
    """In numbers of CSV: "," as in 1234,5; otherwise a point."""

    date_formats: Several[str] = ()
    """Of dates and timestamps in CSV, besides ISO 8601: such as "%d.%m.%Y", as Python's strptime has them."""

    comment: str | None = None
    """A character; lines of CSV that begin with it are no rows."""

    infer_types: bool = False
    """Text columns that `types` does not name get the type that all of the first rows have: bool, int, float, date or
    datetime. Numbers with leading zeros stay text."""

    columns: Several[str] | None = None
    """Those to read, in this order; otherwise all."""

    limit: Annotated[int, pydantic.Field(ge=0)] | None = None
    """The number of rows after which the source ends. One slice reads them all."""

    cells: bool = False
    """All columns of newline JSON keep their text, whatever the first lines have."""

    unstructured: bool = False
    """Each line of newline JSON is one column, `value`, as text; otherwise its keys are the columns."""

    bad_records: BadRecords = "fail"
    """What happens to rows that cannot be read: "fail", "drop" or "dead_letter"."""

    json_columns: Several[str] = ()
    """Columns of newline JSON whose values, of any kind, are kept as JSON text."""

    timestamps: Literal["rfc3339", "unix_millis"] | None = None
    """How newline JSON has columns of times: "unix_millis" as milliseconds since 1970; with "rfc3339", those without a
    zone are in UTC, and may end in Z."""

    metadata: dict[str, str] = pydantic.Field(default_factory=dict)
    """Further columns by name: "filename", the file that a row is from, or "row", its number in the file."""

    def reading(self) -> Reading:
        return Reading(
            format=self.format,
            types=self.types,
            schema=self.schema_,
            null_values=tuple(self.null_values),
            delimiter=self.delimiter,
            quote=self.quote,
            header=self.header,
            decimal_mark=self.decimal_mark or ".",
            date_formats=tuple(self.date_formats),
            comment=self.comment,
            infer_types=self.infer_types,
            columns=None if self.columns is None else tuple(self.columns),
            limit=self.limit,
            cells=self.cells,
            unstructured=self.unstructured,
            json_columns=tuple(self.json_columns),
            timestamps=self.timestamps,
            refuses=True,  # `bad_records.decide` says what happens then
        )
