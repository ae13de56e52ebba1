"""How inputs are read and outputs written, as the user chose. Light, so that the command line starts fast."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

NULL_VALUES = ("", "NA")
FORMATS = ("csv", "tsv", "jsonl", "text", "parquet", "arrow", "arrows")
BATCH_ROWS = 8192  # a batch stays in the processor's cache while it is converted
TYPED_BATCH_ROWS = 32_768  # of files whose rows need no conversion: more rows share what each batch costs
ROW_GROUP_ROWS = 131_072


@dataclasses.dataclass(frozen=True)
class Reading:
    """How inputs are read.

    format: one of `FORMATS`; None: by the file's ending, and CSV for standard input and FIFOs.
    types: types of text columns by name, as Arrow types or their names ("int", "date", "decimal(10, 2)").
    schema: a Parquet or Arrow file whose types the columns of the same names get.
    null_values: the unquoted texts that mean null (CSV).
    delimiter: between cells; None: comma, or tab for "tsv". quote: around cells; "": none.
    header: the first line has the names; otherwise they are f0, f1, ...
    decimal_mark: in numbers of CSV; "," as in 1234,5. date_formats: of dates and timestamps in CSV, as in
        datetime.strptime, besides ISO 8601. comment: begins lines of CSV that are no rows; None: none does.
    infer_types: text columns without a type in `types` get one if all of the first rows have it (`inferred`).
    columns: those to read; None: all. limit: on the number of rows, over all inputs.
    cells: all columns of newline JSON are cells, whatever the first lines have.
    unstructured: each line of newline JSON is the column `value`, as a text; otherwise its keys are the columns.
    json_columns: of newline JSON, whose values are kept as JSON, in texts.
    timestamps: how newline JSON has columns and fields of this type: "unix_millis": as milliseconds since 1970;
        "rfc3339": those without a zone are in UTC, and may end in Z; None: those without a zone have none there.
    refuses: CSV rows that cannot be read are refused rows, as those of newline JSON; otherwise they end the reading.
    """

    format: str | None = None
    types: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    schema: str | os.PathLike[str] | None = None
    null_values: tuple[str, ...] = NULL_VALUES
    delimiter: str | None = None
    quote: str = '"'
    header: bool = True
    decimal_mark: str = "."
    date_formats: tuple[str, ...] = ()
    comment: str | None = None
    infer_types: bool = False
    columns: tuple[str, ...] | None = None
    limit: int | None = None
    cells: bool = False
    unstructured: bool = False
    json_columns: tuple[str, ...] = ()
    timestamps: str | None = None
    refuses: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether it says all columns with their types, so that no file needs to."""
        is_text = self.format in ("csv", "tsv", "jsonl") and not self.unstructured
        return is_text and bool(self.columns) and set(self.columns or ()) <= self.types.keys()


@dataclasses.dataclass(frozen=True)
class Writing:
    """How the output is written.

    format: one of `FORMATS`; None: by the file's ending, and CSV for standard output.
    compression: of Parquet and Arrow files; None: the format's default. (.gz and .zst compress text.)
    row_group_rows: of Parquet.
    columns: of the output; None: all. force: replace the output even if it is one of the inputs.
    null_values, delimiter, quote, header, decimal_mark: as in `Reading`. A text that would read as null gets quotes.
    unstructured: the only column is JSON, and its values are the lines of newline JSON.
    timestamps: in newline JSON: "unix_millis", or as in RFC 3339; "rfc3339" gives a Z to those without a zone, too.
    decimals: in newline JSON: "string" or "number".
    json_columns: in newline JSON: texts that are JSON, and are written as that.
    shown: in newline JSON, for people: bytes are in hex, and a further column of a name has its position in its own.
    """

    format: str | None = None
    compression: str | None = None
    row_group_rows: int = ROW_GROUP_ROWS
    columns: tuple[str, ...] | None = None
    force: bool = False
    null_values: tuple[str, ...] = NULL_VALUES
    delimiter: str | None = None
    quote: str = '"'
    header: bool = True
    decimal_mark: str = "."
    unstructured: bool = False
    timestamps: str | None = None
    decimals: str = "string"
    json_columns: tuple[str, ...] = ()
    shown: bool = False


def split_types(text: str) -> list[str]:
    """The texts between commas, except those within brackets, as types have them."""
    parts, start, depth = [], 0, 0
    for at, mark in enumerate(text):
        depth = max(depth + _BRACKETS.get(mark, 0), 0)
        if mark == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


_BRACKETS = {"<": 1, "[": 1, "(": 1, ">": -1, "]": -1, ")": -1}
