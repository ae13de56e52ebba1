"""A query with the functions and saved tables that it may use."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool

from ..database import connections
from ..database import functions as saved_functions
from ..database.models import ConnectionTable
from ..functions.asked import Diagnostic, Planned, Table
from ..functions.workshop import BuiltFunction, InvalidFunction
from .failures import Refusal
from .parts import Parts
from .shapes.pipelines import LONGEST_INTERVAL, SHORTEST_INTERVAL, Location, Span, SqlDiagnostic
from .shapes.udfs import Udf
from .statements import statement_of, variables_of


@dataclass(frozen=True)
class PlannedQuery:
    """functions: those that were offered, by name. tables: ids of the saved tables that it uses.

    variables: with the secrets of profiles.
    """

    planned: Planned
    functions: Mapping[str, BuiltFunction]
    tables: Sequence[str]
    variables: Mapping[str, str]

    @property
    def diagnostics(self) -> list[SqlDiagnostic]:
        return [SqlDiagnostic(message=one.message, span=_span(one)) for one in self.planned.errors]

    @property
    def checkpoint_interval(self) -> int | None:
        """What the query has SET, in microseconds, within what the API allows."""
        told = (self.planned.description or {}).get("checkpoints") or {}
        every = told.get("every")
        return None if every is None else min(max(round(every * 1e6), SHORTEST_INTERVAL), LONGEST_INTERVAL)

    @property
    def used(self) -> list[BuiltFunction]:
        """The functions that the query calls."""
        operators = (self.planned.description or {}).get("operators", ())
        plugins = {str(one.get("plugin")) for one in operators}
        return [one for one in self.functions.values() if one.library in plugins]

    @property
    def program(self) -> dict[str, Any]:
        """What workers run, with libraries of this machine (see `libraries.py`). Raises Refusal for a wrong query."""
        if self.planned.description is None:
            told = "".join(f"\n * {_with_place(one)}" for one in self.planned.errors)
            raise Refusal(400, f"Failed to plan query:{told}")
        artifacts = {one.library: one.sha256 for one in self.used}
        text = json.dumps(self.planned.description)
        variables = {name: value for name, value in self.variables.items() if f"${{{name}}}" in text}
        program = {"version": 1, "pipeline": self.planned.description, "artifacts": artifacts}
        return program | ({"variables": variables} if variables else {})


async def plan_query(
    parts: Parts,
    query: str,
    udfs: Sequence[Udf] | None,
    name: str = "query",
    parallelism: int = 1,
    sinks: str = "own",
    environment: Mapping[str, str] | None = None,
    state_url: str | None = None,
) -> PlannedQuery:
    """What is wrong with the query is in the answer. Raises Refusal for a wrong function of the request."""
    functions = await _saved(parts, query) | await _own(parts, udfs or ())
    tables, variables = await run_in_threadpool(_tables, parts)
    planned = await parts.workshop.plan(
        name,
        query,
        functions,
        tables=[Table(name=table.name, statement=statement_of(table, profile)) for table, profile in tables],
        parallelism=parallelism,
        sinks=sinks,
        environment={**variables, **(environment or {})},
        state_url=state_url,
    )
    ids = {table.name: table.id for table, _ in tables}
    return PlannedQuery(planned, functions, [ids[one] for one in planned.tables], variables)


async def _own(parts: Parts, udfs: Sequence[Udf]) -> dict[str, BuiltFunction]:
    found: dict[str, BuiltFunction] = {}
    for place, built in enumerate(await asyncio.gather(*(_built(parts, udf) for udf in udfs))):
        if built.name in found:
            raise Refusal(400, f"udfs.{place}: there are two functions {built.name}: leave out one of them")
        found[built.name] = built
    return found


async def _built(parts: Parts, udf: Udf) -> BuiltFunction:
    try:
        return await parts.workshop.function(udf.definition, udf.language)
    except InvalidFunction as error:
        raise Refusal(400, f"a UDF of this request cannot be built: {error}") from None


async def _saved(parts: Parts, query: str) -> dict[str, BuiltFunction]:
    """Functions of the database that the query may call. One that cannot be built any more is left out."""

    def read() -> list[tuple[str, Any]]:
        with parts.database.read() as session:
            return [(row.definition, row.language) for row in saved_functions.listed(session) if row.key in text]

    text = query.lower()
    found: dict[str, BuiltFunction] = {}
    for definition, language in await run_in_threadpool(read):
        try:
            built = await parts.workshop.function(definition, language)
        except InvalidFunction:
            continue
        found[built.name] = built
    return found


def _tables(parts: Parts) -> tuple[list[tuple[ConnectionTable, Any]], dict[str, str]]:
    """Saved tables with their profiles' configurations, and the variables that hold secrets."""
    with parts.database.read() as session:
        profiles = {row.id: row for row in connections.profiles(session)}
        tables = [(row, profiles.get(row.profile_id or "")) for row in connections.every_table(session)]
    variables: dict[str, str] = {}
    for row in profiles.values():
        variables |= variables_of(row)
    return tables, variables


def _span(one: Diagnostic) -> Span | None:
    if one.start is None or one.end is None:
        return None
    (line, column), (end_line, end_column) = one.start, one.end
    return Span(start=Location(line=line, column=column), end=Location(line=end_line, column=end_column))


def _with_place(one: Diagnostic) -> str:
    return one.message if one.start is None else f"{one.start[0]}:{one.start[1]}: {one.message}"
