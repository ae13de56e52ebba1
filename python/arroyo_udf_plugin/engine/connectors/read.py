"""The keys of a description that say how text and files are read: those of `options.Reading`. The same in SQL."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import pydantic

from .bad_records import BadRecords
from .described import Input, Several
from .options import NULL_VALUES, Reading
from .row_metadata import KEYS
from .table_options import BOOLEANS, TableOptions, chosen
from .written import DecimalMark, Format

_TEXT = {"csv", "tsv", "jsonl", "text"}


class Read(Input):
    metadata_keys: ClassVar[tuple[str, ...]] = tuple(KEYS)
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


def reading_keys(options: TableOptions) -> dict[str, Any]:
    """The keys of `Read` that a table in SQL has options for. Raises WrongOption."""
    keys = options.format()
    format_ = keys.get("format")
    if format_ == "jsonl":
        options.json_decimals()  # both are read
        keys["timestamps"] = options.json_timestamps()
    keys |= {
        "bad_records": options.one_of("bad_data", {"fail": "fail", "drop": "drop", "dead_letter": "dead_letter"}),
        "limit": options.read("source.limit", int, "a whole number"),
        "metadata": {column.name: column.metadata.value for column in options.columns or () if column.metadata} or None,
        **options.dialect(),
        "infer_types": options.one_of("infer_types", BOOLEANS),
        "comment": options.text("csv.comment"),
        "date_formats": options.read("csv.date_format", lambda text: (text,), "a format such as %d.%m.%Y"),
    }
    columns = options.in_records
    if columns:
        keys["columns"] = tuple(column.name for column in columns)
    if columns and (format_ is None or format_ in _TEXT):
        if format_ == "jsonl" and not keys["unstructured"]:
            keys["json_columns"] = options.json_columns()
        keys["types"] = {column.name: str(column.type) for column in columns}
    return chosen(keys)
