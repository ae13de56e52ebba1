"""The keys of a description that say how files are written: those of `options.Writing`. The same in SQL."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import pydantic

from .described import Output, Several
from .options import NULL_VALUES, ROW_GROUP_ROWS, Writing
from .table_options import TableOptions, chosen

Format = Literal["csv", "tsv", "jsonl", "text", "parquet", "arrow", "arrows"]
DecimalMark = Literal[".", ","]


class WrittenOutput(Output):
    later: ClassVar[frozenset[str]] = frozenset({"json_columns", "decimal_mark"})

    format: Format | None = None
    """The format, if it does not follow from the name."""

    compression: str | None = None
    """Of Parquet: snappy, zstd, gzip, lz4, brotli or none. Of Arrow: zstd, lz4 or none."""

    row_group_rows: Annotated[int, pydantic.Field(ge=1)] = ROW_GROUP_ROWS
    """Rows in a row group of Parquet."""

    columns: Several[str] | None = None
    """Those to write, in this order; otherwise all."""

    null_values: Several[str] = NULL_VALUES
    """Texts that mean null in CSV. Nulls are written as an empty cell if "" is one of them, else as the first."""

    delimiter: str | None = None
    """Between the cells of CSV."""

    quote: str = '"'
    """Around cells of CSV; "" is none."""

    header: bool = True
    """CSV begins with the columns' names."""

    decimal_mark: DecimalMark | None = None
    """In numbers of CSV: "," as in 1234,5; otherwise a point."""

    unstructured: bool = False
    """The only column is JSON as text, and its values are the lines of newline JSON."""

    timestamps: Literal["rfc3339", "unix_millis"] | None = None
    """How newline JSON has times: "unix_millis" as milliseconds since 1970; otherwise as in RFC 3339, and with
    "rfc3339", those without a zone are in UTC: 2013-01-01T05:00:00.000000Z."""

    decimals: Literal["string", "number"] = "string"
    """How newline JSON has decimals. Not every reader keeps all digits of a number."""

    json_columns: Several[str] = ()
    """Columns whose texts are JSON: newline JSON gets their values, or a string if the text is not JSON."""

    def writing(self, **changed: Any) -> Writing:
        own = {name: getattr(self, name) for name in WrittenOutput.model_fields if name not in Output.model_fields}
        return Writing(**own | {"decimal_mark": self.decimal_mark or "."} | changed)


def compression_named(name: str | None) -> str | None:
    """A compression of Parquet, by the name that SQL has for it."""
    return {"uncompressed": "none", "lz4_raw": "lz4"}.get(name or "", name)


def writing_keys(options: TableOptions) -> dict[str, Any]:
    """The keys of `WrittenOutput` that a table in SQL has options for. Raises WrongOption."""
    keys = {**options.format(takes_changes=True), **options.dialect()}
    if keys.get("format") == "parquet":
        keys["compression"] = compression_named(options.text("parquet.compression"))
        keys["row_group_rows"] = options.read("parquet.row_group_size", int, "a number of rows")
    if keys.get("format") == "jsonl":
        keys |= {"timestamps": options.json_timestamps(), "decimals": options.json_decimals()}
        if not keys.get("unstructured", True):
            keys["json_columns"] = options.json_columns()
    return chosen(keys)
