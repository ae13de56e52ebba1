"""Tables over connectors: the options of CREATE TABLE ... WITH (...) as sources, sinks and lookups of a pipeline.

Options have Arroyo's names; what it does not have is named as in a pipeline's description.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import Any

from ...author.options import bytes_of, seconds_of
from ..connectors.blackhole import Blackhole
from ..connectors.files import Files
from ..connectors.impulse import Impulse
from ..connectors.parts import Parts
from ..connectors.row_metadata import KEYS as METADATA
from ..connectors.single import File
from ..connectors.standard_input import StandardInput
from ..connectors.standard_output import StandardOutput
from ..connectors.table import Table
from ..pipeline.description import SinkModel, SourceModel
from ..pipeline.problems import nearest
from .statements import CreateTable, DeclaredColumn, Option
from .text import Wrong

_FORMATS = {
    "json": "jsonl",
    "raw_string": "text",
    "csv": "csv",
    "tsv": "tsv",
    "parquet": "parquet",
    "arrow": "arrow",
}
_KNOWN = "write json, raw_string, csv, tsv, parquet or arrow"
_NO_FORMATS = {
    "debezium_json": "updating SQL is not supported. Write json, with the columns before, after and op",
    "avro": f"it is not supported: {_KNOWN}",
    "protobuf": f"it is not supported: {_KNOWN}",
    "raw_bytes": "it is not supported: write raw_string, if the bytes are text",
}
_TEXT = {"csv", "tsv", "jsonl", "text"}
_NO_REGISTRY = ("json.confluent_schema_registry", "json.include_schema", "json.schema_id")
_BOOLEANS = {"true": True, "false": False}
_STREAM = "pipe its records into a table with connector = 'stdin', or from one with 'stdout'"
_NO_CONNECTORS = {
    **dict.fromkeys(("kafka", "confluent", "kinesis", "nats", "mqtt", "rabbitmq", "fluvio"), _STREAM),
    **dict.fromkeys(("sse", "websocket", "polling_http", "webhook"), _STREAM),
    **dict.fromkeys(("delta", "iceberg"), "write connector = 'filesystem' and format = 'parquet'"),
    "redis": "write connector = 'postgres' or 'sqlite'",
    "nexmark": "write connector = 'impulse', or read a file of its events",
    "preview": "write connector = 'stdout', or a SELECT without INSERT",
}
_NO_OPTIONS = {
    "connection_profile": "there are no connection profiles here: write their options",
    "framing.newline.max_length": "lines are not cut here: write left(value, 100) in a SELECT",
    "parquet.row_group_bytes": "write parquet.row_group_size, a number of rows",
    "event_time_field": "write WATERMARK FOR its column between the columns",
    "watermark_field": "write WATERMARK FOR column AS expression between the columns",
    "source.regex_pattern": "write a pattern as the path, such as 'data/*.json'",
}


class _Options:
    """The options of one table, each of which is asked for once; `end` refuses the others."""

    def __init__(self, table: CreateTable) -> None:
        self._table, self._left = table, dict(table.options)
        self._known: list[str] = []
        self.take("connector")
        self.take("type")

    def take(self, name: str) -> Option | None:
        self._known.append(name)
        return self._left.pop(name, None)

    def text(self, name: str) -> str | None:
        found = self.take(name)
        return None if found is None else found.value

    def need(self, name: str, what: str) -> str:
        found = self.take(name)
        if found is None:
            raise Wrong(f"table {self._table.name} has no {name}: write {name} = '{what}'", self._table.at)
        return found.value

    def one_of(self, name: str, known: Mapping[str, Any]) -> Any:
        """What the option's value stands for; None: it is not there."""
        found = self.take(name)
        if found is None:
            return None
        if found.value not in known:
            raise Wrong(f"{name} = '{found.value}' is not known: {nearest(found.value, known)}", found.at)
        return known[found.value]

    def read(self, name: str, read: Callable[[str], Any], write: str) -> Any:
        """The option's value as `read` reads it; None: it is not there."""
        found = self.take(name)
        if found is None:
            return None
        try:
            return read(found.value)
        except ValueError:
            raise Wrong(f"{name} = '{found.value}': write {write}", found.at) from None

    def format(self) -> dict[str, Any]:
        """The keys `format` and, for lines that are one value, `unstructured`; none of what is not there."""
        format_ = self.take("format")
        if format_ is None:
            return {}
        if format_.value in _NO_FORMATS:
            raise Wrong(f"format = '{format_.value}': {_NO_FORMATS[format_.value]}", format_.at)
        if format_.value not in _FORMATS:
            raise Wrong(f"format = '{format_.value}' is not known: {nearest(format_.value, _FORMATS)}", format_.at)
        keys: dict[str, Any] = {"format": _FORMATS[format_.value]}
        if format_.value in ("json", "raw_string"):
            found = self.take("framing")
            if found is not None and found.value != "newline":
                raise Wrong(f"framing = '{found.value}': write 'newline'", found.at)
        if format_.value == "json":
            self._no_registry()
            keys["unstructured"] = bool(self.one_of("json.unstructured", _BOOLEANS))
        if format_.value == "raw_string" or keys.get("unstructured"):
            self._one_column("raw_string" if format_.value == "raw_string" else "json.unstructured", format_.at)
        return keys

    def _no_registry(self) -> None:
        for name in _NO_REGISTRY:
            found = self.take(name)
            if found is not None and found.value != "false":
                raise Wrong(f"{name}: there is no schema registry here. Leave it out", found.at)

    def _one_column(self, what: str, at: int) -> None:
        columns = _read_ones(self._table)
        if self._table.columns is not None and [column.name for column in columns] != ["value"]:
            type_ = "TEXT" if what == "raw_string" else "JSON"
            raise Wrong(f"{what} has one column: write value {type_}", columns[0].at if columns else at)

    def json_timestamps(self) -> str | None:
        """rfc3339 or unix_millis."""
        found = self.take("json.timestamp_format")
        if found is None:
            return None
        chosen = found.value.lower()
        if chosen not in ("rfc3339", "unix_millis"):
            instead = nearest(chosen, ("rfc3339", "unix_millis"))
            raise Wrong(f"json.timestamp_format = '{found.value}' is not known: {instead}", found.at)
        return chosen

    def json_decimals(self) -> str | None:
        found = self.take("json.decimal_encoding")
        if found is not None and found.value not in ("number", "string"):
            raise Wrong(f"json.decimal_encoding = '{found.value}': write 'number' or 'string'", found.at)
        return None if found is None else found.value

    def end(self) -> None:
        for name, option in self._left.items():
            if name in _NO_OPTIONS:
                raise Wrong(f"{name}: {_NO_OPTIONS[name]}", option.at)
            raise Wrong(f"there is no option {name} here: {nearest(name, self._known)}", option.at)


def kind_of(table: CreateTable) -> str:
    """ "source" or "sink" by its options, "memory" without a connector, "both" if its use decides; "lookup" for a
    TEMPORARY TABLE. Raises Wrong."""
    connector = table.options.get("connector")
    if table.is_lookup and (connector is None or connector.value not in (*_LOOKUPS, *_NO_CONNECTORS)):
        at = table.at if connector is None else connector.at
        raise Wrong("a TEMPORARY TABLE is in a database: write WITH (connector = 'postgres') or 'sqlite'", at)
    if connector is None:
        if table.options and (name := next(iter(table.options))):
            raise Wrong(f"table {table.name} has options and no connector: add one", table.options[name].at)
        return "memory"
    known = {**_SOURCES, **_SINKS}
    if connector.value == "memory":
        return "memory"
    if connector.value not in known and (instead := _NO_CONNECTORS.get(connector.value)) is not None:
        raise Wrong(f"the connector {connector.value} is not supported: {instead}", connector.at)
    if connector.value not in known:
        raise Wrong(f"there is no connector '{connector.value}': {nearest(connector.value, known)}", connector.at)
    if table.is_lookup:
        return "lookup"
    if (chosen := table.options.get("type")) is not None:
        if chosen.value not in ("source", "sink"):
            raise Wrong(f"type = '{chosen.value}': write 'source' or 'sink'", chosen.at)
        if connector.value not in (_SOURCES if chosen.value == "source" else _SINKS):
            raise Wrong(f"the connector {connector.value} has no {chosen.value}s", chosen.at)
        return chosen.value
    if connector.value in _SOURCES and connector.value in _SINKS:
        return "both"
    return "source" if connector.value in _SOURCES else "sink"


def is_in_database(table: CreateTable) -> bool:
    """Whether its connector has lookups."""
    return table.options["connector"].value in _LOOKUPS


def source_of(table: CreateTable) -> SourceModel:
    """Raises Wrong, and what pydantic raises."""
    connector = table.options["connector"].value
    known = METADATA if connector in _WITH_METADATA else ()
    for column in table.columns or ():
        if (asked := column.metadata) is not None and asked.value not in known:
            told = nearest(asked.value, known) if known else "it has none. Leave the column out"
            raise Wrong(f"the connector {connector} has no metadata '{asked.value}': {told}", asked.at)
    return _made(table, _SOURCES, _IDLE)  # type: ignore[no-any-return]


LONGEST_SECONDS = 1_000_000_000


def idle_of(table: CreateTable) -> float | None:
    """The seconds without rows after which a source holds no watermark back; None: it always does. Raises Wrong."""
    found = table.options.get(_IDLE)
    if found is None:
        return None
    if table.watermark is None:
        raise Wrong(f"{_IDLE} is of tables with an event time: add WATERMARK FOR its column", found.at)
    micros = int(found.value) if found.value.isdecimal() else 0
    if not micros:
        raise Wrong(f"{_IDLE} = '{found.value}': write a whole number of microseconds above 0", found.at)
    if micros / 1e6 > LONGEST_SECONDS:
        raise Wrong(f"{_IDLE} = '{found.value}': write no more than {LONGEST_SECONDS} seconds", found.at)
    return micros / 1e6


def sink_of(table: CreateTable) -> SinkModel:
    """Raises Wrong, and what pydantic raises."""
    return _made(table, _SINKS)  # type: ignore[no-any-return]


def lookup_of(table: CreateTable) -> dict[str, Any]:
    """The keys of a `Lookup` that say where it looks. Raises Wrong."""
    if table.watermark is not None:
        raise Wrong("what is looked up has no event time: leave WATERMARK FOR out", table.watermark.at)
    for column in table.columns or ():
        if column.generated:
            raise Wrong(f"{column.name} is generated, and not in the database: compute it in the SELECT", column.at)
        if column.metadata is not None:
            raise Wrong(f"{column.name} is a column of the database: leave out METADATA FROM", column.metadata.at)
    return _made(table, _LOOKUPS)  # type: ignore[no-any-return]


def _made(table: CreateTable, makers: Mapping[str, Callable[[CreateTable, _Options], Any]], *others: str) -> Any:
    """others: options that are read elsewhere."""
    options = _Options(table)
    for name in others:
        options.take(name)
    made = makers[table.options["connector"].value](table, options)
    options.end()
    return made


# ---- Sources ----


def _impulse(table: CreateTable, options: _Options) -> Impulse:
    return Impulse(
        rate=options.read("event_rate", float, "a number of rows per second"),
        rows=options.read("message_count", int, "a whole number"),
        partitions=options.read("partitions", int, "a whole number"),
        start=options.read("start", _instant, "a time with its zone, such as 2026-01-01T00:00:00Z"),
        interval=options.read("event_time_interval", period_seconds, "a time such as 10 ms or INTERVAL '1 second'"),
    )


def _files(table: CreateTable, options: _Options) -> Files:
    return Files(
        paths=(options.need("path", "data/*.parquet"),),
        watch=options.read("source.watch", period_seconds, "a time such as 10 s"),
        **_reading(table, options),
    )


def _standard_input(table: CreateTable, options: _Options) -> StandardInput:
    return StandardInput(**_reading(table, options))


def _reading(table: CreateTable, options: _Options) -> dict[str, Any]:
    keys = options.format()
    format_ = keys.get("format")
    if format_ == "jsonl":
        options.json_decimals()  # both are read
        keys["timestamps"] = options.json_timestamps()
    keys |= {
        "bad_records": options.one_of("bad_data", {"fail": "fail", "drop": "drop", "dead_letter": "dead_letter"}),
        "limit": options.read("source.limit", int, "a whole number"),
        "metadata": {column.name: column.metadata.value for column in table.columns or () if column.metadata} or None,
        **_dialect(options),
        "infer_types": options.one_of("infer_types", _BOOLEANS),
        "comment": options.text("csv.comment"),
        "date_formats": options.read("csv.date_format", lambda text: (text,), "a format such as %d.%m.%Y"),
    }
    read = _read_ones(table)
    if read:
        keys["columns"] = tuple(column.name for column in read)
    if read and (format_ is None or format_ in _TEXT):
        if format_ == "jsonl" and not keys["unstructured"]:
            keys["json_columns"] = _json_columns(table)
        keys["types"] = {one.name: str(one.type) for one in read}
    return {name: value for name, value in keys.items() if value is not None}


def _json_columns(table: CreateTable) -> tuple[str, ...]:
    return tuple(column.name for column in _read_ones(table) if column.is_json)


def _read_ones(table: CreateTable) -> list[DeclaredColumn]:
    """The columns that are in the records."""
    return [column for column in table.columns or () if not column.generated and column.metadata is None]


def _dialect(options: _Options) -> dict[str, Any]:
    return {
        "delimiter": options.text("csv.delimiter"),
        "quote": options.text("csv.quote"),
        "header": options.one_of("csv.header", _BOOLEANS),
        "null_values": options.read("csv.null_value", lambda text: (text,), "a text"),
        "decimal_mark": options.one_of("csv.decimal_mark", {".": ".", ",": ","}),
    }


# ---- Sinks ----


def _writing(table: CreateTable, options: _Options) -> dict[str, Any]:
    keys = {**options.format(), **_dialect(options)}
    if keys.get("format") == "parquet":
        keys["row_group_rows"] = options.read("parquet.row_group_size", int, "a number of rows")
    if keys.get("format") == "jsonl":
        keys |= {"timestamps": options.json_timestamps(), "decimals": options.json_decimals()}
        if not keys["unstructured"]:
            keys["json_columns"] = _json_columns(table)
    return keys


def _parts(table: CreateTable, options: _Options) -> Parts:
    keys = {
        "path": options.need("path", "out"),
        **_writing(table, options),
        "part_seconds": options.read("rolling_policy.interval", period_seconds, "a time such as 10 s"),
        "part_bytes": options.read("rolling_policy.file_size", bytes_of, "a size such as 128 MiB"),
        "compression": _compression(options),
    }
    return Parts(**{name: value for name, value in keys.items() if value is not None})


def _compression(options: _Options) -> str | None:
    found = options.text("parquet.compression") or options.text("json.compression")
    return {"uncompressed": "none", "lz4_raw": "lz4"}.get(found or "", found)


def _file(table: CreateTable, options: _Options) -> File:
    keys = {"path": options.need("path", "out.csv"), **_writing(table, options)}
    return File(**{name: value for name, value in keys.items() if value is not None})


def _standard_output(table: CreateTable, options: _Options) -> StandardOutput:
    keys = {"format": "jsonl", **_writing(table, options)}
    return StandardOutput(**{name: value for name, value in keys.items() if value is not None})


def _blackhole(table: CreateTable, options: _Options) -> Blackhole:
    options.take("format")
    return Blackhole()


def _database(table: CreateTable, options: _Options) -> Table:
    return Table(
        uri=options.need("uri", "sqlite:flights.db"),
        table=options.text("table") or table.name,
        key=tuple(table.primary_key),
    )


# ---- Lookups ----


def _looked_up(table: CreateTable, options: _Options) -> dict[str, Any]:
    size = options.read("lookup.cache.max_bytes", _size, "a number of bytes, such as 8000000 or 8 MiB; 0 for no cache")
    seconds = options.read("lookup.cache.ttl", period_seconds, "a time such as 60 s or INTERVAL '1 minute'")
    keys = {
        "uri": options.need("uri", "sqlite:planes.db"),
        "table": options.text("table") or table.name,
        "cache_bytes": size or None,
        "cache_seconds": 0.0 if size == 0 else seconds,
    }
    return {name: value for name, value in keys.items() if value is not None}


def _size(text: str) -> int:
    return 0 if text.strip() == "0" else bytes_of(text)


_LOOKUPS: dict[str, Callable[[CreateTable, _Options], Any]] = {"postgres": _looked_up, "sqlite": _looked_up}
_SOURCES: dict[str, Callable[[CreateTable, _Options], Any]] = {
    "impulse": _impulse,
    "filesystem": _files,
    "single_file": _files,
    "stdin": _standard_input,
}
_IDLE = "idle_micros"
_WITH_METADATA = ("filesystem", "single_file", "stdin")
_SINKS: dict[str, Callable[[CreateTable, _Options], Any]] = {
    "filesystem": _parts,
    "single_file": _file,
    "stdout": _standard_output,
    "blackhole": _blackhole,
    "postgres": _database,
    "sqlite": _database,
}

_UNITS = {"millisecond": 0.001, "second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}


def interval_seconds(text: str) -> float:
    """10 s, 500ms, or as an INTERVAL has it: 5 seconds, 1 minute."""
    number, _, unit = text.strip().partition(" ")
    if (found := _UNITS.get(unit.strip().lower().removesuffix("s"))) is not None:
        return float(number) * found
    return seconds_of(text)


def period_seconds(text: str) -> float:
    """The same, not longer than periods may be."""
    found = interval_seconds(text)
    if not 0 <= found <= LONGEST_SECONDS:
        raise ValueError
    return found


def _instant(text: str) -> datetime.datetime:
    found = datetime.datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError
    return found
