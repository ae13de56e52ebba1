"""A query with the functions and saved tables that it may use."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool

from ...errors import InvalidState
from ..database import connections
from ..database import udfs as saved_functions
from ..database.models import ConnectionProfileRow, ConnectionTableRow
from ..database.sealing import opened
from ..functions.builder import BuiltFunction, InvalidFunction
from ..functions.messages import Diagnostic, PlanResult, SavedTable
from ..job_program import JobProgram, libraries_in
from .create_table import statement_of, variables_of
from .dependencies import ApiParts
from .failures import LOG, Refusal
from .shapes.pipelines import LONGEST_INTERVAL, SHORTEST_INTERVAL, Location, Span, SqlDiagnostic, Udf


@dataclass(frozen=True)
class PlannedQuery:
    """functions: those that were offered, by name. tables: ids of the saved tables that it uses.

    variables: with the secrets of profiles.
    """

    planned: PlanResult
    functions: Mapping[str, BuiltFunction]
    tables: Sequence[str]
    variables: Mapping[str, str]

    @property
    def diagnostics(self) -> list[SqlDiagnostic]:
        return [SqlDiagnostic(message=error.message, span=_span(error)) for error in self.planned.errors]

    @property
    def checkpoint_interval(self) -> int | None:
        """What the query has SET, in microseconds, within what the API allows."""
        checkpoints = (self.planned.description or {}).get("checkpoints") or {}
        every = checkpoints.get("every")
        return None if every is None else min(max(round(every * 1e6), SHORTEST_INTERVAL), LONGEST_INTERVAL)

    @property
    def used(self) -> list[BuiltFunction]:
        """The functions that the query calls."""
        plugins = libraries_in(self.planned.description or {})
        return [function for function in self.functions.values() if function.library in plugins]

    @property
    def program(self) -> JobProgram:
        """What workers run, with libraries of this machine (see `with_stored`). Raises Refusal for a wrong query."""
        if self.planned.description is None:
            errors = "".join(f"\n * {_with_place(error)}" for error in self.planned.errors)
            raise Refusal(400, f"Failed to plan query:{errors}")
        artifacts = {function.library: function.sha256 for function in self.used}
        text = json.dumps(self.planned.description)
        variables = {name: value for name, value in self.variables.items() if f"${{{name}}}" in text}
        return JobProgram(self.planned.description, artifacts, variables)


async def plan_query(
    parts: ApiParts,
    query: str,
    udfs: Sequence[Udf] | None,
    name: str = "query",
    parallelism: int = 1,
    sinks: str = "own",
    environment: Mapping[str, str] | None = None,
    state_url: str | None = None,
    slices: int | None = None,
) -> PlannedQuery:
    """What is wrong with the query is in the answer. slices: see `PlanRequest`. Raises Refusal for a wrong function of
    the request."""
    saved, known = await _saved(parts, query)
    functions = saved | await _own(parts, udfs or ())
    tables, variables = await run_in_threadpool(_tables, parts, query)
    planned = await parts.builder.plan(
        name,
        query,
        functions,
        tables=[saved_table(table, profile) for table, profile in tables],
        parallelism=parallelism,
        sinks=sinks,
        environment={**variables, **(environment or {})},
        state_url=state_url,
        slices=slices,
        known=[*known, *functions],
    )
    ids = {table.name: table.id for table, _ in tables}
    return PlannedQuery(planned, functions, [ids[table_name] for table_name in planned.tables], variables)


async def _own(parts: ApiParts, udfs: Sequence[Udf]) -> dict[str, BuiltFunction]:
    functions: dict[str, BuiltFunction] = {}
    for place, built in enumerate(await asyncio.gather(*(_built(parts, udf) for udf in udfs))):
        if built.name in functions:
            raise Refusal(400, f"udfs.{place}: there are two functions {built.name}: leave out one of them")
        functions[built.name] = built
    return functions


async def _built(parts: ApiParts, udf: Udf) -> BuiltFunction:
    try:
        return await parts.builder.function(udf.definition, udf.language)
    except InvalidFunction as error:
        raise Refusal(400, f"a UDF of this request cannot be built: {error}") from None


async def _saved(parts: ApiParts, query: str) -> tuple[dict[str, BuiltFunction], list[str]]:
    """Functions of the database that the query may call, and the names of all. One that cannot be built any more is
    left out."""

    def read() -> list[tuple[str, str, Any]]:
        with parts.database.read() as session:
            return [(row.name, row.definition, row.language) for row in saved_functions.listed(session)]

    text = query.lower()
    rows = await run_in_threadpool(read)
    functions: dict[str, BuiltFunction] = {}
    for name, definition, language in rows:
        if name.lower() not in text:
            continue
        try:
            built = await parts.builder.function(definition, language)
        except InvalidFunction as error:
            LOG.warning("the function %s cannot be built any more: %s", name, error)
            continue
        functions[built.name] = built
    return functions, [name for name, _, _ in rows]


_Saved = tuple[ConnectionTableRow, ConnectionProfileRow | None]


def _tables(parts: ApiParts, query: str) -> tuple[list[_Saved], dict[str, str]]:
    """Saved tables that the query may name, with their profiles, and the variables that hold secrets of these."""
    text = query.lower()
    with parts.database.read() as session:
        profiles = {row.id: row for row in connections.profiles(session)}
        rows = [row for row in connections.every_table(session) if row.key in text]
    tables = [(row, profiles.get(row.profile_id or "")) for row in rows]
    variables: dict[str, str] = {}
    for _, profile in tables:
        variables |= {} if profile is None else variables_of(profile)
    return tables, variables


def saved_table(table: ConnectionTableRow, profile: ConnectionProfileRow | None) -> SavedTable:
    """For a plan. One that another version has stored may have a problem; it matters to queries that use the table."""
    try:
        opened({} if profile is None else profile.config)
    except InvalidState as error:
        return SavedTable(
            name=table.name, problem=f"the profile {profile.name if profile else ''} cannot be used: {error}"
        )
    try:
        return SavedTable(name=table.name, statement=statement_of(table, profile))
    except (KeyError, ValueError) as error:
        LOG.warning("the saved table %s cannot be read: %s", table.name, type(error).__name__)
        return SavedTable(name=table.name, problem="this version cannot read it: delete it, and create it again")


def _span(diagnostic: Diagnostic) -> Span | None:
    if diagnostic.start is None or diagnostic.end is None:
        return None
    (line, column), (end_line, end_column) = diagnostic.start, diagnostic.end
    return Span(start=Location(line=line, column=column), end=Location(line=end_line, column=end_column))


def _with_place(diagnostic: Diagnostic) -> str:
    return (
        diagnostic.message
        if diagnostic.start is None
        else f"{diagnostic.start[0]}:{diagnostic.start[1]}: {diagnostic.message}"
    )
