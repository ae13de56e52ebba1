"""Connectors, profiles, tables and their schemas."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pydantic

from . import Answer, Asked, Micros, wrong_shape

TableType = Literal["source", "sink", "lookup"]
Name = Annotated[str, pydantic.Field(min_length=1, max_length=200)]
TableName = Annotated[str, pydantic.Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)]
"""As a query may write it without quotes."""
FieldName = Literal[
    "int32",
    "int64",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "decimal128",
    "bool",
    "string",
    "bytes",
    "timestamp",
    "json",
    "struct",
    "list",
]


class Connector(Answer):
    id: str
    name: str
    icon: str
    description: str
    table_config: str
    """A JSON schema, as a text."""
    connection_config: str | None
    """The same, of its profiles."""
    enabled: bool
    source: bool
    sink: bool
    custom_schemas: bool
    testing: bool
    hidden: bool


class ConnectionProfile(Answer):
    id: str
    name: str
    connector: str
    config: dict[str, Any]
    """Without the values of secrets."""
    description: str


class ConnectionProfilePost(Asked):
    name: Name
    connector: str
    config: dict[str, Any]

    model_config = pydantic.ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "warehouse",
                    "connector": "postgres",
                    "config": {"uri": "postgresql://user:password@host/name"},
                }
            ]
        }
    )


class ConnectionProfilePatch(Asked):
    """What is not named stays as it is. So does a secret for which `********` is sent."""

    name: Name | None = None
    config: dict[str, Any] | None = None


class SourceField(Asked):
    """A column. The parameters of its type stand beside it."""

    name: Name
    type: FieldName
    precision: Annotated[int, pydantic.Field(ge=1, le=38)] | None = None
    scale: Annotated[int, pydantic.Field(ge=0, le=38)] | None = None
    unit: Literal["second", "millisecond", "microsecond", "nanosecond"] | None = None
    fields: list[SourceField] | None = None
    items: SourceField | None = None
    required: bool = False
    metadata_key: str | None = None
    sql_name: str | None = None

    @pydantic.model_serializer(mode="wrap")
    def _without_others(self, handler: pydantic.SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Parameters of other types are left out."""
        values: dict[str, Any] = handler(self)
        others = ("precision", "scale", "unit", "fields", "items")
        return {name: value for name, value in values.items() if name not in others or value is not None}

    @pydantic.model_validator(mode="after")
    def _has_its_parameters(self) -> SourceField:
        if self.type == "decimal128" and (self.precision is None or self.scale is None):
            raise wrong_shape("decimal128 has a precision and a scale: write both")
        if self.type == "struct" and not self.fields:
            raise wrong_shape("a struct has fields: write them")
        if self.type == "list" and self.items is None:
            raise wrong_shape("a list has items: write their type")
        return self


class Format(Asked):
    """type: and what this format has beside it, which is kept as it is."""

    type: Literal["json", "avro", "protobuf", "parquet", "raw_string", "raw_bytes", "csv", "tsv", "arrow"]

    model_config = pydantic.ConfigDict(extra="allow", strict=True)


class BadData(Asked):
    behavior: Literal["fail", "drop"]


class Framing(Asked):
    method: Literal["newline"]
    max_line_length: Annotated[int, pydantic.Field(ge=1)] | None = None


class SchemaDefinition(Asked):
    type: Literal["json_schema", "protobuf_schema", "avro_schema"]
    schema_: Annotated[str, pydantic.Field(alias="schema", max_length=1 << 20)]
    dependencies: dict[str, str] | None = None

    model_config = pydantic.ConfigDict(populate_by_name=True)


class ConnectionSchema(Asked):
    format: Format | None = None
    bad_data: BadData | None = None
    framing: Framing | None = None
    fields: list[SourceField] = pydantic.Field(default_factory=list)
    definition: SchemaDefinition | None = None
    inferred: bool | None = None
    primary_keys: list[str] = pydantic.Field(default_factory=list)


class ConnectionTablePost(Asked):
    name: TableName
    connector: str
    connection_profile_id: str | None = None
    config: dict[str, Any]
    schema_: Annotated[ConnectionSchema | None, pydantic.Field(alias="schema")] = None

    model_config = pydantic.ConfigDict(
        populate_by_name=True,
        json_schema_extra={
            "examples": [
                {
                    "name": "flights",
                    "connector": "filesystem",
                    "config": {"table_type": {"type": "source", "path": "/data/flights/*.json"}},
                    "schema": {
                        "format": {"type": "json"},
                        "fields": [
                            {"name": "tail", "type": "string"},
                            {"name": "at", "type": "timestamp", "unit": "microsecond", "required": True},
                        ],
                    },
                },
                {"name": "delays", "connector": "postgres", "connection_profile_id": "cp_4fGh7Kx9Qz", "config": {}},
            ]
        },
    )


class ConnectionTablePatch(Asked):
    """What is not named stays as it is."""

    name: TableName | None = None
    connection_profile_id: str | None = None
    config: dict[str, Any] | None = None
    schema_: Annotated[ConnectionSchema | None, pydantic.Field(alias="schema")] = None

    model_config = pydantic.ConfigDict(populate_by_name=True)


class ConnectionTable(Answer):
    id: str
    name: str
    created_at: Micros
    connector: str
    connection_profile: ConnectionProfile | None
    table_type: TableType
    config: dict[str, Any]
    schema_: Annotated[ConnectionSchema, pydantic.Field(alias="schema")]
    consumers: int
    """Pipelines that use it."""

    model_config = pydantic.ConfigDict(populate_by_name=True)


class TestSourceMessage(Answer):
    error: bool
    done: bool
    message: str
