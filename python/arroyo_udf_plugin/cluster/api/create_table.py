"""A saved table as the CREATE TABLE that a query would have: in one line, so that lines of the query can be told.

A secret of its profile is a variable in the statement, `${PROFILE_...}`, and so in the pipeline; only workers have its
value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...engine.connectors.registry import connectors
from ..database.models import ConnectionProfileRow, ConnectionTableRow
from ..database.sealing import Unopened
from .connectors import catalogue, form_of
from .shapes.connections import ConnectionSchema, Format, SourceField

_TYPES = {
    "int32": "INT",
    "int64": "BIGINT",
    "uint32": "INT UNSIGNED",
    "uint64": "BIGINT UNSIGNED",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "bool": "BOOLEAN",
    "string": "TEXT",
    "bytes": "BYTEA",
    "json": "JSON",
}
_UNITS = {"second": "0", "millisecond": "3", "microsecond": "6", "nanosecond": "9"}
_FORMATS = ("json", "parquet", "raw_string", "csv", "tsv", "arrow", "raw_bytes", "avro")


def statement_of(table: ConnectionTableRow, profile: ConnectionProfileRow | None) -> str:
    entry = catalogue()[table.connector]
    schema = ConnectionSchema.model_validate(table.schema)
    options = {"connector": table.connector, **form_of(entry.table, table.config).options()}
    if profile is not None and entry.profile is not None:
        hidden = {name: f"${{{variable_of(profile, name)}}}" for name in _given(entry.secrets, profile)}
        options = form_of(entry.profile, {**profile.config, **hidden}).added_to(options)
    return create_table(table.key, schema, options | format_options(schema))


def create_table(name: str, schema: ConnectionSchema, options: Mapping[str, str]) -> str:
    columns = list(map(_column, schema.fields))
    if schema.primary_keys:
        columns.append(f"PRIMARY KEY ({', '.join(map(_quoted, schema.primary_keys))})")
    definitions = f" ({', '.join(columns)})" if columns else ""
    given = ", ".join(f"{key} = {_text(value)}" for key, value in options.items())
    return f"CREATE TABLE {_quoted(name)}{definitions} WITH ({given});"


def variable_of(profile: ConnectionProfileRow, name: str) -> str:
    return f"{profile.id}_{name}".upper()


def variables_of(profile: ConnectionProfileRow) -> dict[str, str]:
    """The values of a profile's secrets, by the names of their variables."""
    entry = catalogue().get(profile.connector)
    if entry is None:
        return {}
    there = {name: profile.config[name] for name in _given(entry.secrets, profile)}
    return {variable_of(profile, name): str(value) for name, value in there.items() if not isinstance(value, Unopened)}


def _given(secrets: Sequence[str], profile: ConnectionProfileRow) -> list[str]:
    return [name for name in secrets if profile.config.get(name) is not None]


def check_schema(schema: ConnectionSchema) -> None:
    """Raises ValueError for what no table can have."""
    _check_fields(schema.fields, "fields")
    names = {field.name for field in schema.fields}
    missing = [name for name in schema.primary_keys if name not in names]
    if missing:
        raise ValueError(f"primary_keys: there is no field {missing[0]}")
    if schema.definition is not None and schema.definition.type != "json_schema":
        raise ValueError(f"{schema.definition.type} is not supported: write the fields, or a json_schema")
    if schema.framing is not None and schema.framing.max_line_length is not None:
        raise ValueError("framing.max_line_length: lines are not cut here: leave it out")
    format_options(schema)
    for kind, type_, what in (("raw_string", "string", "raw_string"), ("json", "json", "json with unstructured")):
        format_ = schema.format
        if format_ is None or format_.type != kind or (kind == "json" and not _extra(format_).get("unstructured")):
            continue
        if [(field.name, field.type) for field in schema.fields] != [("value", type_)]:
            raise ValueError(f"{what} has one field: write value, of the type {type_}")


def check_metadata(connector: str, schema: ConnectionSchema, is_source: bool) -> None:
    """Raises ValueError for a field of what the connector does not know about a row."""
    model = connectors()[connector].source
    known = model.metadata_keys if is_source and model is not None else ()
    for field in schema.fields:
        if field.metadata_key is not None and field.metadata_key not in known:
            instead = f"write {', '.join(known)}" if known else "leave out metadata_key"
            what = connector if is_source else f"a sink of {connector}"
            raise ValueError(f"{field.name}: {what} has no metadata {field.metadata_key!r}: {instead}")


def format_options(schema: ConnectionSchema) -> dict[str, str]:
    """Raises ValueError for a format that there is not."""
    options: dict[str, str] = {}
    if schema.bad_data is not None:
        options["bad_data"] = schema.bad_data.behavior
    format_ = schema.format
    if format_ is None:
        return options
    if format_.type not in _FORMATS:
        raise ValueError(f"the format {format_.type} is not supported: write {', '.join(_FORMATS)}")
    options["format"] = format_.type
    more = _extra(format_)
    if format_.type == "avro":
        flags = ("confluent_schema_registry", "raw_datums", "into_unstructured_json")
        options |= {f"avro.{name}": "true" for name in flags if more.get(name)}
    if format_.type == "json":
        if more.get("include_schema"):
            raise ValueError("json with include_schema is not supported: leave it out")
        if more.get("debezium"):
            options["format"] = "debezium_json"
        if more.get("confluent_schema_registry"):
            options["json.confluent_schema_registry"] = "true"
        if more.get("unstructured"):
            options["json.unstructured"] = "true"
        if more.get("timestamp_format") == "unix_millis":
            options["json.timestamp_format"] = "unix_millis"
    return options


def _extra(format_: Format) -> dict[str, Any]:
    return format_.model_extra or {}


def _check_fields(fields: list[SourceField], where: str) -> None:
    names = [field.name for field in fields]
    for place, field in enumerate(fields):
        if field.name in names[:place]:
            raise ValueError(f"{where}: there are two fields {field.name}: rename one")
        if any(ord(character) < 32 for character in field.name):
            raise ValueError(f"{where}: a name has no control characters: rename {field.name!r}")
        _check_fields(field.fields or [], f"{where}.{field.name}")


def _column(field: SourceField) -> str:
    metadata = "" if field.metadata_key is None else f" METADATA FROM {_text(field.metadata_key)}"
    return f"{_quoted(field.name)} {sql_type(field)}{' NOT NULL' if field.required else ''}{metadata}"


def sql_type(field: SourceField) -> str:
    """As a query writes it."""
    if field.type == "decimal128":
        return f"DECIMAL({field.precision}, {field.scale})"
    if field.type == "timestamp":
        return f"TIMESTAMP({_UNITS[field.unit or 'millisecond']})"
    if field.type == "struct":
        return f"STRUCT<{', '.join(f'{_quoted(inner.name)} {sql_type(inner)}' for inner in field.fields or ())}>"
    if field.type == "list":
        assert field.items is not None, "the shape checks it"
        return f"{sql_type(field.items)}[]"
    return _TYPES[field.type]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
