"""Files that grow as the source of a pipeline, as a person describes them, and their connector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

import pydantic

from ..bad_records import BadRecords
from ..connector import CatalogueEntry, Connector, Form
from ..described import Input, Period, Seconds, Several
from ..interface import Source
from ..options import NULL_VALUES, Reading
from ..row_metadata import KEYS
from ..table_options import A_TIME, BOOLEANS, TableOptions, WrongOption, chosen, period_seconds
from ..written import DecimalMark
from .records import GrowingRecords
from .source import TailSource

_FORMATS = ("jsonl", "text", "csv", "tsv")


class Tail(Input):
    """Files of this machine that others append to, such as logs."""

    metadata_keys: ClassVar[tuple[str, ...]] = tuple(KEYS)

    type: Literal["tail"] = "tail"

    paths: Annotated[Several[str], pydantic.Field(min_length=1)]
    """The files, folders or patterns (`logs/*.log`). New files that they take in are noticed. Rotated ones, such as
    `app.log.1` beside `app.log`, belong to the name that they had."""

    format: Literal["jsonl", "text", "csv", "tsv"] = "jsonl"
    """What a line is: an object of JSON, any text, or cells."""

    types: dict[str, str] = pydantic.Field(default_factory=dict)
    """The columns, by name, with types such as "int", "str" or "timestamp[us, UTC]"; other keys of an object, and other
    columns of CSV, are passed over. Text has one column, `value`."""

    json_columns: Several[str] = ()
    """Columns of newline JSON whose values, of any kind, are kept as JSON text."""

    unstructured: bool = False
    """Each line of newline JSON is one column, `value`, as text."""

    timestamps: Literal["rfc3339", "unix_millis"] | None = None
    """How newline JSON has columns of times: "unix_millis" as milliseconds since 1970; with "rfc3339", those without a
    zone are in UTC, and may end in Z."""

    header: bool = True
    """The first line of CSV has the columns' names; otherwise `types` has them, in their order."""

    delimiter: str | None = None
    """Between the cells of CSV; otherwise a comma, or a tab for tsv."""

    quote: str = '"'
    """Around cells of CSV; "" is none."""

    null_values: Several[str] = NULL_VALUES
    """Unquoted texts that mean null in CSV."""

    decimal_mark: DecimalMark | None = None
    """In numbers of CSV: "," as in 1234,5; otherwise a point."""

    date_formats: Several[str] = ()
    """Of dates and timestamps in CSV, besides ISO 8601: such as "%d.%m.%Y", as Python's strptime has them."""

    metadata: dict[str, str] = pydantic.Field(default_factory=dict)
    """Further columns by name: "filename", the name under which the file is followed, or "row", the line's number."""

    bad_records: BadRecords = "fail"
    """What happens to lines that cannot be read: "fail", "drop" or "dead_letter"."""

    watch: Period = 10.0
    """Time between two looks for new files. New lines are read within 0.1 seconds."""

    settles: Seconds = 5.0
    """A file that was renamed is left for the next one when it has not grown for so long: its writer may still have it
    open."""

    missing: Literal["fail", "warn"] = "fail"
    """What happens when lines cannot be read any more, because their file was removed or truncated: "fail" ends the
    pipeline; "warn" logs it, and goes on with the file that has the name."""

    bounded: bool = False
    """Ends when all lines that are there have been read; otherwise there is no end."""

    @property
    def ends(self) -> bool:
        return self.bounded

    def source(self, parallelism: int) -> Source:
        reading = Reading(
            format=self.format,
            types=self.types,
            null_values=tuple(self.null_values),
            delimiter=self.delimiter,
            quote=self.quote,
            header=self.header,
            decimal_mark=self.decimal_mark or ".",
            date_formats=tuple(self.date_formats),
            unstructured=self.unstructured,
            json_columns=tuple(self.json_columns),
            timestamps=self.timestamps,
        )
        watch = None if self.bounded else self.watch
        return TailSource(
            self.paths, self.format, GrowingRecords(reading, self.metadata), watch, self.settles, self.missing
        )

    @classmethod
    def of_table(cls, options: TableOptions) -> Self:
        path, keys = options.need("path", "logs/*.log"), options.format()
        if keys.get("format", "jsonl") not in _FORMATS:
            raise WrongOption(
                f"files of the format {keys['format']} do not grow: use json, raw_string, csv or tsv", options.at
            )
        is_json = keys.get("format", "jsonl") == "jsonl"
        if is_json:
            options.json_decimals()  # both are read
            keys["timestamps"] = options.json_timestamps()
            if not keys.get("unstructured"):
                keys["json_columns"] = options.json_columns()
        if keys.get("format") in ("csv", "tsv"):
            keys |= options.dialect()
            keys["date_formats"] = options.read("csv.date_format", lambda text: (text,), "a format such as %d.%m.%Y")
        if keys.get("format") != "text" and not keys.get("unstructured"):
            keys["types"] = {column.name: str(column.type) for column in options.in_records}
        keys |= {
            "metadata": {column.name: column.metadata.value for column in options.columns or () if column.metadata},
            "bad_records": options.one_of("bad_data", {name: name for name in ("fail", "drop", "dead_letter")}),
            "watch": options.read("source.watch", period_seconds, A_TIME),
            "settles": options.read("source.settles", period_seconds, A_TIME),
            "missing": options.one_of("source.missing", {name: name for name in ("fail", "warn")}),
            "bounded": options.one_of("source.bounded", BOOLEANS),
        }
        return cls(paths=(path,), **chosen(keys))


class _Form(Form):
    example: ClassVar[Mapping[str, Any]] = {"path": "/var/log/app.log"}

    path: Annotated[str, pydantic.Field(pattern=r"^[^\x00-\x1f\x7f]*$", min_length=1, max_length=4000, title="Path")]
    missing: Annotated[Literal["fail", "warn"] | None, pydantic.Field(title="When lines are gone")] = None

    def options(self) -> dict[str, str]:
        return {"path": self.path, **({} if self.missing is None else {"source.missing": self.missing})}


CONNECTOR = Connector(
    "tail",
    source=Tail,
    entry=CatalogueEntry(
        "Growing files", "Lines that are appended to files", _Form, icon="M4 5h10v2H4zM4 10h16v2H4zM4 15h7v2H4z"
    ),
)
