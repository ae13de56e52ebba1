"""The options of CREATE TABLE ... WITH (...), as a connector reads them. They have Arroyo's names where it has them.

    options.need("path", "data/*.json")            'data/*.json' is an example for the error
    options.read("rate", float, "a number")
    options.format()

Guarantees: each option is known that a connector has asked for, and others are refused; an error has the option's place
in the query.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...author.options import seconds_of
from ...errors import nearest

_FORMATS = {
    "json": "jsonl",
    "raw_string": "text",
    "csv": "csv",
    "tsv": "tsv",
    "parquet": "parquet",
    "arrow": "arrow",
}
CHANGES = "debezium_json"
"""The format of tables that take changes: op, before, after."""
_OF_MESSAGES = ("json", "raw_string", "raw_bytes", CHANGES, "avro", "protobuf")
_KNOWN = "write json, raw_string, csv, tsv, parquet or arrow"
_NO_FORMATS = {
    CHANGES: "it is one of messages (Kafka). Write json, with the columns before, after and op",
    "avro": f"it is one of messages (Kafka): {_KNOWN}",
    "protobuf": f"it is one of messages (Kafka): {_KNOWN}",
    "raw_bytes": "it is not supported: write raw_string, if the bytes are text",
}
_NO_REGISTRY = ("json.confluent_schema_registry", "json.include_schema", "json.schema_id")
_NO_OPTIONS = {
    "connection_profile": "there are no connection profiles here: write their options",
    "framing.newline.max_length": "lines are not cut here: write left(value, 100) in a SELECT",
    "parquet.row_group_bytes": "write parquet.row_group_size, a number of rows",
    "event_time_field": "write WATERMARK FOR its column between the columns",
    "watermark_field": "write WATERMARK FOR column AS expression between the columns",
    "source.regex_pattern": "write a pattern as the path, such as 'data/*.json'",
}
_UNITS = {"millisecond": 0.001, "second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}
BOOLEANS = {"true": True, "false": False}
LONGEST_SECONDS = 1_000_000_000
A_TIME = "a time such as 10 s"


class WrongOption(Exception):
    """at: an offset in the query."""

    def __init__(self, text: str, at: int) -> None:
        self.at = at
        super().__init__(text)


@dataclass(frozen=True)
class Option:
    """at: where its name is."""

    value: str
    at: int


@dataclass(frozen=True)
class SqlColumn:
    """A column that the connector has. metadata: the key of METADATA FROM. is_json: its type is JSON."""

    name: str
    type: pa.DataType
    at: int
    metadata: Option | None = None
    is_json: bool = False


class TableOptions:
    """table: the table's name; at: where it is. columns: without those that are computed from others; None: the query
    names none."""

    def __init__(
        self,
        table: str,
        at: int,
        options: Mapping[str, Option],
        columns: Sequence[SqlColumn] | None = None,
        primary_key: Sequence[str] = (),
    ) -> None:
        self.table, self.at, self.columns, self.primary_key = table, at, columns, tuple(primary_key)
        self._left = dict(options)
        self._known: list[str] = []

    @property
    def in_records(self) -> list[SqlColumn]:
        """The columns that are in the connector's records."""
        return [column for column in self.columns or () if column.metadata is None]

    def take(self, name: str) -> Option | None:
        """The option with its place; None: it is not there."""
        self._known.append(name)
        return self._left.pop(name, None)

    def text(self, name: str) -> str | None:
        option = self.take(name)
        return None if option is None else option.value

    def need(self, name: str, example: str) -> str:
        """Raises WrongOption if it is not there."""
        option = self.take(name)
        if option is None:
            raise WrongOption(f"table {self.table} has no {name}: write {name} = '{example}'", self.at)
        return option.value

    def one_of(self, name: str, known: Mapping[str, Any]) -> Any:
        """What the option's value stands for; None: it is not there. Raises WrongOption."""
        option = self.take(name)
        if option is None:
            return None
        if option.value not in known:
            raise WrongOption(f"{name} = '{option.value}' is not known: {nearest(option.value, known)}", option.at)
        return known[option.value]

    def read(self, name: str, read: Callable[[str], Any], write: str) -> Any:
        """The option's value as `read` reads it, which may raise ValueError; None: it is not there. Raises
        WrongOption."""
        option = self.take(name)
        if option is None:
            return None
        try:
            return read(option.value)
        except ValueError:
            raise WrongOption(f"{name} = '{option.value}': write {write}", option.at) from None

    def format(self, takes_changes: bool = False) -> dict[str, Any]:
        """The keys `format` and, for lines that are one value, `unstructured`; none of what is not there.
        takes_changes: debezium_json are lines of JSON. Raises WrongOption."""
        format_ = self.take("format")
        if format_ is None:
            return {}
        if takes_changes and format_.value == CHANGES:
            return {"format": "jsonl"}
        if format_.value in _NO_FORMATS:
            raise WrongOption(f"format = '{format_.value}': {_NO_FORMATS[format_.value]}", format_.at)
        if format_.value not in _FORMATS:
            raise WrongOption(
                f"format = '{format_.value}' is not known: {nearest(format_.value, _FORMATS)}", format_.at
            )
        keys: dict[str, Any] = {"format": _FORMATS[format_.value]}
        if format_.value in ("json", "raw_string"):
            option = self.take("framing")
            if option is not None and option.value != "newline":
                raise WrongOption(f"framing = '{option.value}': write 'newline'", option.at)
        if format_.value == "json":
            self._none_of(_NO_REGISTRY, "there is no schema registry here")
            keys["unstructured"] = bool(self.one_of("json.unstructured", BOOLEANS))
        if format_.value == "raw_string" or keys.get("unstructured"):
            self._one_column("raw_string" if format_.value == "raw_string" else "json.unstructured", format_.at)
        return keys

    def message_format(self, beside: Collection[str | None] = ()) -> str | None:
        """Of records that are messages, not lines: one of `_OF_MESSAGES`. beside: columns that are in no value. Raises
        WrongOption."""
        format_ = self.take("format")
        if format_ is None:
            return None
        if format_.value not in _OF_MESSAGES:
            instead = nearest(format_.value, _OF_MESSAGES)
            raise WrongOption(f"format = '{format_.value}' is not known of messages: {instead}", format_.at)
        if format_.value in ("raw_string", "raw_bytes"):
            self._one_column(format_.value, format_.at, beside)
        elif format_.value not in ("avro", "protobuf"):
            self._none_of(("json.include_schema", "json.schema_id"), "values have no schema in them here")
        return format_.value

    def _none_of(self, names: Sequence[str], why: str) -> None:
        for name in names:
            option = self.take(name)
            if option is not None and option.value != "false":
                raise WrongOption(f"{name}: {why}. Leave it out", option.at)

    def _one_column(self, what: str, at: int, beside: Collection[str | None] = ()) -> None:
        columns = [column for column in self.in_records if column.name not in beside]
        if self.columns is not None and [column.name for column in columns] != ["value"]:
            type_ = {"raw_string": "TEXT", "raw_bytes": "BYTEA"}.get(what, "JSON")
            raise WrongOption(f"{what} has one column: write value {type_}", columns[0].at if columns else at)

    def json_timestamps(self, micros: bool = False) -> str | None:
        """rfc3339 or unix_millis; with micros, also unix_micros."""
        option = self.take("json.timestamp_format")
        if option is None:
            return None
        chosen = option.value.lower()
        known = ("rfc3339", "unix_millis", *(("unix_micros",) if micros else ()))
        if chosen not in known:
            instead = nearest(chosen, known)
            raise WrongOption(f"json.timestamp_format = '{option.value}' is not known: {instead}", option.at)
        return chosen

    def json_decimals(self, bytes: bool = False) -> str | None:
        """number or string; with bytes, also that."""
        option = self.take("json.decimal_encoding")
        if option is not None and option.value not in ("number", "string", *(("bytes",) if bytes else ())):
            listed = "'number', 'string' or 'bytes'" if bytes else "'number' or 'string'"
            raise WrongOption(f"json.decimal_encoding = '{option.value}': write {listed}", option.at)
        return None if option is None else option.value

    def json_columns(self) -> tuple[str, ...]:
        """Those whose values are JSON."""
        return tuple(column.name for column in self.in_records if column.is_json)

    def dialect(self) -> dict[str, Any]:
        """The keys of CSV."""
        return {
            "delimiter": self.text("csv.delimiter"),
            "quote": self.text("csv.quote"),
            "header": self.one_of("csv.header", BOOLEANS),
            "null_values": self.read("csv.null_value", lambda text: (text,), "a text"),
            "decimal_mark": self.one_of("csv.decimal_mark", {".": ".", ",": ","}),
        }

    def end(self) -> None:
        """Raises WrongOption if options are left that nobody has asked for."""
        for name, option in self._left.items():
            if name in _NO_OPTIONS:
                raise WrongOption(f"{name}: {_NO_OPTIONS[name]}", option.at)
            raise WrongOption(f"there is no option {name} here: {nearest(name, self._known)}", option.at)


def chosen(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Those with a value: others keep the default of the model."""
    return {name: value for name, value in keys.items() if value is not None}


def interval_seconds(text: str) -> float:
    """10 s, 500ms, or as an INTERVAL has it: 5 seconds, 1 minute. Raises ValueError."""
    number, _, unit = text.strip().partition(" ")
    if (seconds := _UNITS.get(unit.strip().lower().removesuffix("s"))) is not None:
        return float(number) * seconds
    return seconds_of(text)


def period_seconds(text: str) -> float:
    """The same, not longer than periods may be. Raises ValueError."""
    seconds = interval_seconds(text)
    if not 0 <= seconds <= LONGEST_SECONDS:
        raise ValueError
    return seconds


def instant(text: str) -> datetime.datetime:
    """A time with its zone. Raises ValueError."""
    time = datetime.datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError
    return time
