"""A saved table as the CREATE TABLE that a query would have: in one line, so that lines of the query can be told.

A secret of its profile is a variable in the statement, `${PROFILE_...}`, and so in the pipeline; only workers have its
value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
_FORMATS = ("json", "parquet", "raw_string", "csv", "tsv", "arrow")


def statement_of(table: ConnectionTableRow, profile: ConnectionProfileRow | None) -> str:
    entry = catalogue()[table.connector]
    schema = ConnectionSchema.model_validate(table.schema)
    options = {"connector": table.connector, **form_of(entry.table, table.config).options()}
    if profile is not None and entry.profile is not None:
        options |= {
            name: f"${{{variable_of(profile, name)}}}" if name in entry.secrets else value
            for name, value in form_of(entry.profile, profile.config).options().items()
        }
    return create_table(table.key, schema, options | format_options(schema))


def create_table(name: str, schema: ConnectionSchema, options: Mapping[str, str]) -> str:
    columns = [_column(field) for field in schema.fields if field.metadata_key is None]
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
    there = {name: profile.config[name] for name in entry.secrets if name in profile.config}
    return {variable_of(profile, name): str(value) for name, value in there.items() if not isinstance(value, Unopened)}


def check_schema(schema: ConnectionSchema) -> None:
    """Raises ValueError for what no table can have."""
    _check_fields(schema.fields, "fields")
    names = {field.name for field in schema.fields}
    missing = [name for name in schema.primary_keys if name not in names]
    if missing:
        raise ValueError(f"primary_keys: there is no field {missing[0]}")
    keyed = [field.name for field in schema.fields if field.metadata_key is not None]
    if keyed:
        raise ValueError(f"{keyed[0]}: connectors here have no metadata: leave out metadata_key")
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
    if format_.type == "json":
        for name in ("confluent_schema_registry", "include_schema", "debezium"):
            if more.get(name):
                raise ValueError(f"json with {name} is not supported: leave it out")
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
    return f"{_quoted(field.name)} {sql_type(field)}{' NOT NULL' if field.required else ''}"


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
