"""Connection tables: tables that every query may use, saved with their connector and columns.

The fields of a JSON schema: an object whose properties are columns.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

import fastapi
from fastapi.responses import Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from ..database import connections as rows
from ..database.connections import TableRow
from ..database.database import now
from ..database.errors import NotFound
from ..database.models import ConnectionProfileRow as ProfileRow
from ..database.models import ConnectionTableRow as TableOf
from ..functions.messages import PlanResult
from .connectors import table_type
from .create_table import check_metadata, check_schema, sql_type, statement_of, variables_of
from .dependencies import After, ApiParts, Limit, ThePart, for_admins, most
from .failures import STREAM, Refusal
from .profiles import entry_of, profile_of
from .queries import saved_table
from .shapes import Page
from .shapes.connections import (
    ConnectionSchema,
    ConnectionTable,
    ConnectionTablePatch,
    ConnectionTablePost,
    SourceField,
    TableType,
    TestSourceMessage,
)
from .transport import JsonRoute

router = fastapi.APIRouter(tags=["connections"], route_class=JsonRoute)

_IMPULSE = [SourceField(name=name, type="int64", required=True) for name in ("counter", "subtask_index")]


@router.get("/connection_tables")
def listed(parts: ThePart, limit: Limit = 10, starting_after: After = None) -> Page[ConnectionTable]:
    """The newest first."""
    with parts.database.read() as session:
        try:
            page = rows.tables(session, most(limit), starting_after)
        except NotFound as error:
            raise Refusal(400, str(error)) from None
        return Page(data=[_connection_table(row) for row in page.rows], has_more=page.has_more)


@router.post("/connection_tables", dependencies=[fastapi.Depends(for_admins)])
async def create(parts: ThePart, asked: ConnectionTablePost) -> ConnectionTable:
    """Queries may use it by its name from now on."""
    if asked.schema_ is not None and asked.schema_.inferred and not asked.schema_.fields:
        asked = asked.model_copy(update={"schema_": await _sampled(parts, asked)})

    def store() -> ConnectionTable:
        row = _checked(parts, asked)
        with parts.database.begin() as session:
            return _connection_table(
                rows.create_table(
                    session,
                    name=row.name,
                    connector=row.connector,
                    table_type=row.table_type,
                    config=row.config,
                    schema=row.schema,
                    profile_id=row.profile_id,
                )
            )

    return await run_in_threadpool(store)


@router.post("/connection_tables/schemas/sample")
async def sample_schema(parts: ThePart, asked: ConnectionTablePost) -> ConnectionSchema:
    """The schema of a table, with the fields that its first rows have. Nothing is stored."""
    return _with_names(await _sampled(parts, asked))


async def _sampled(parts: ApiParts, asked: ConnectionTablePost) -> ConnectionSchema:
    """Raises Refusal."""
    schema = (asked.schema_ or ConnectionSchema()).model_copy(update={"fields": []})
    row = await run_in_threadpool(_checked, parts, asked.model_copy(update={"schema_": schema}))
    if row.table_type != "source":
        raise Refusal(400, "schema: only sources have rows to look at: write the fields")
    planned = await opened(parts, row, sample=True)
    if planned.errors:
        raise Refusal(400, f"schema: {planned.errors[0].message}")
    fields = [SourceField.model_validate(field) for field in planned.fields]
    return schema.model_copy(update={"fields": fields, "inferred": True})


async def opened(
    parts: ApiParts, row: TableOf, sample: bool = False, sample_rows: int = 0, connect: bool = False
) -> PlanResult:
    """A plan of a query that uses nothing but this table. sample: with the fields of a source, and so many rows.
    connect: a source is asked what it has."""
    profile = await run_in_threadpool(_profile, parts, row.profile_id)
    return await parts.builder.plan(
        "test",
        f'SELECT * FROM "{row.name}"' if row.table_type == "source" else _into(row),
        {},
        tables=[saved_table(row, profile)],
        environment={} if profile is None else variables_of(profile),
        sample=sample,
        sample_rows=sample_rows,
        connect=connect,
    )


@router.patch("/connection_tables/{id}", dependencies=[fastapi.Depends(for_admins)])
def change(parts: ThePart, id: str, asked: ConnectionTablePatch) -> ConnectionTable:
    """Pipelines keep what they have, until they are restarted with `replan`."""
    with parts.database.read() as session:
        before = rows.table(session, id).table
    schema = asked.schema_ or _schema_of(before)
    if schema is None:
        raise Refusal(400, "schema: this version cannot read the stored one: send a schema, too")
    row = _checked(
        parts,
        ConnectionTablePost(
            name=asked.name or before.name,
            connector=before.connector,
            connection_profile_id=asked.connection_profile_id or before.profile_id,
            config=before.config if asked.config is None else asked.config,
            schema_=schema,
        ),
    )
    changes = {name: getattr(row, name) for name in ("name", "table_type", "profile_id", "config", "schema")}
    with parts.database.begin() as session:
        return _connection_table(rows.change_table(session, id, changes))


@router.post("/connection_tables/test", response_class=StreamingResponse, responses=STREAM)
async def test(parts: ThePart, asked: ConnectionTablePost) -> StreamingResponse:
    """Whether the table can be opened, step by step, as server-sent events; the last one is done."""
    return StreamingResponse(_tested(parts, asked), media_type="text/event-stream")


async def _tested(parts: ApiParts, asked: ConnectionTablePost) -> AsyncIterator[str]:
    yield _event(False, False, "Checking the configuration")
    try:
        row = await run_in_threadpool(_checked, parts, asked)
    except (Refusal, NotFound) as error:
        yield _event(True, True, str(error))
        return
    yield _event(False, False, "Opening the table")
    planned = await opened(parts, row, connect=True)
    if planned.errors:
        yield _event(True, True, planned.errors[0].message)
    else:
        yield _event(False, True, "The table can be used")


def _into(row: TableOf) -> str:
    """A query that inserts nothing but nulls: what a sink needs to be looked at."""
    fields = ConnectionSchema.model_validate(row.schema).fields or [SourceField(name="value", type="string")]
    items = ", ".join(f'CAST(NULL AS {_cast_type(field)}) AS "{field.name}"' for field in fields)
    return f"CREATE TABLE own WITH (connector = 'impulse'); INSERT INTO \"{row.name}\" SELECT {items} FROM own;"


def _cast_type(field: SourceField) -> str:
    column_type = sql_type(field)
    return "TEXT" if column_type == "JSON" else column_type


@router.post("/connection_tables/schemas/test", response_class=Response)
async def test_schema(asked: ConnectionSchema) -> Response:
    """Whether a table can have this schema. The answer is empty."""
    _with_fields(asked)
    return Response()


@router.delete("/connection_tables/{id}", response_class=Response, dependencies=[fastapi.Depends(for_admins)])
def delete(parts: ThePart, id: str) -> Response:
    """Not while pipelines use it. The answer is empty."""
    with parts.database.begin() as session:
        rows.delete_table(session, id)
    return Response()


def _checked(parts: ApiParts, asked: ConnectionTablePost) -> TableOf:
    """A row that is not stored yet. Raises Refusal, NotFound."""
    name, entry = asked.connector, entry_of(asked.connector)
    if name == "preview":
        raise Refusal(400, "preview shows the rows of a SELECT, and has no tables: write the SELECT without INSERT")
    try:
        chosen = table_type(name, asked.config)
    except ValueError as error:
        raise Refusal(400, f"config: {error}") from None
    if entry.needs_profile and asked.connection_profile_id is None:
        raise Refusal(400, f"connection_profile_id: tables of {name} need a profile: create one")
    if entry.profile is None and asked.connection_profile_id is not None:
        raise Refusal(400, f"connection_profile_id: {name} has no profiles: leave it out")
    profile = _profile(parts, asked.connection_profile_id)
    if profile is not None and profile.connector != name:
        raise Refusal(400, f"connection_profile_id: {profile.name} is a profile of {profile.connector}, not of {name}")
    schema = _with_fields(asked.schema_ or ConnectionSchema())
    try:
        check_metadata(name, schema, chosen == "source")
    except ValueError as error:
        raise Refusal(400, f"schema: {error}") from None
    if name == "impulse":
        schema = ConnectionSchema(fields=_IMPULSE)
    row = TableOf(
        id="",
        name=asked.name,
        key=asked.name.lower(),
        table_type=chosen,
        connector=name,
        profile_id=asked.connection_profile_id,
        config=asked.config,
        schema=schema.model_dump(by_alias=True, exclude_none=True),
        created_at=now(),
    )
    try:
        statement_of(row, profile)
    except ValueError as error:
        raise Refusal(400, f"connection_profile_id: {error}") from None
    return row


def _with_fields(schema: ConnectionSchema) -> ConnectionSchema:
    """With the fields of its JSON schema. Raises Refusal."""
    try:
        if schema.definition is not None and schema.definition.type == "json_schema" and not schema.fields:
            schema = schema.model_copy(update={"fields": fields_of(schema.definition.schema_)})
        elif schema.definition is not None and schema.definition.type == "json_schema":
            fields_of(schema.definition.schema_)
        check_schema(schema)
    except ValueError as error:
        raise Refusal(400, f"schema: {error}") from None
    return schema


def _profile(parts: ApiParts, id: str | None) -> ProfileRow | None:
    if id is None:
        return None
    with parts.database.read() as session:
        return rows.profile(session, id)


def _connection_table(row: TableRow) -> ConnectionTable:
    table, profile, consumers = row
    schema = _schema_of(table) or ConnectionSchema()
    return ConnectionTable(
        id=table.id,
        name=table.name,
        created_at=table.created_at,
        connector=table.connector,
        connection_profile=None if profile is None else profile_of(profile),
        table_type=cast("TableType", table.table_type),
        config=table.config,
        schema_=_with_names(schema),
        consumers=consumers,
    )


def _with_names(schema: ConnectionSchema) -> ConnectionSchema:
    return schema.model_copy(update={"fields": [_named(field) for field in schema.fields]})


def _named(field: SourceField) -> SourceField:
    """With the names of types as SQL has them, at every level."""
    inner: dict[str, Any] = {"sql_name": sql_type(field)}
    if field.fields is not None:
        inner["fields"] = [_named(child) for child in field.fields]
    if field.items is not None:
        inner["items"] = _named(field.items)
    return field.model_copy(update=inner)


def _schema_of(row: TableOf) -> ConnectionSchema | None:
    """None: another version has stored it, and this one cannot read it. It can still be listed, and deleted."""
    try:
        return ConnectionSchema.model_validate(row.schema)
    except ValueError:
        return None


def _event(error: bool, done: bool, message: str) -> str:
    data = TestSourceMessage(error=error, done=done, message=message).model_dump()
    return f"data: {json.dumps(data)}\n\n"


_DEEPEST = 20
_TYPES: Mapping[str, Mapping[str, Any]] = {
    "string": {"type": "string"},
    "integer": {"type": "int64"},
    "number": {"type": "float64"},
    "boolean": {"type": "bool"},
}
_AS_JSON: Mapping[str, Any] = {"type": "json"}


def fields_of(text: str) -> list[SourceField]:
    """Raises ValueError."""
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"json_schema: this is not JSON: {error}") from None
    if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict) or not schema["properties"]:
        raise ValueError("json_schema: it describes an object: write its properties")
    return _fields(schema, 0)


def _fields(schema: Mapping[str, Any], depth: int) -> list[SourceField]:
    required = schema.get("required", [])
    if not isinstance(required, list):
        raise ValueError("json_schema: required is a list of names")
    return [_field(name, definition, name in required, depth) for name, definition in schema["properties"].items()]


def _field(name: str, definition: Any, required: bool, depth: int) -> SourceField:
    """What has no column type is JSON."""
    if not name or len(name) > 200:
        raise ValueError("json_schema: a property has a name of up to 200 characters")
    if depth > _DEEPEST:
        raise ValueError("json_schema: it is nested too deeply")
    if not isinstance(definition, dict):
        return SourceField(name=name, required=required, **_AS_JSON)
    types = definition.get("type")
    named = [type_ for type_ in (types if isinstance(types, list) else [types]) if type_ != "null"]
    nullable = isinstance(types, list) and "null" in types
    required = required and not nullable
    kind = named[0] if len(named) == 1 else None
    if kind == "string" and definition.get("format") == "date-time":
        return SourceField(name=name, required=required, type="timestamp", unit="nanosecond")
    if isinstance(kind, str) and kind in _TYPES:
        return SourceField(name=name, required=required, **_TYPES[kind])
    if kind == "object" and isinstance(definition.get("properties"), dict) and definition["properties"]:
        return SourceField(name=name, required=required, type="struct", fields=_fields(definition, depth + 1))
    if kind == "array" and isinstance(definition.get("items"), dict):
        items = _field("item", definition["items"], False, depth + 1)
        return SourceField(name=name, required=required, type="list", items=items)
    return SourceField(name=name, required=required, **_AS_JSON)
