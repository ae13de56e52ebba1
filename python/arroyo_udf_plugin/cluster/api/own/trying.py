"""What something does, before it is kept: a function is tried with a few rows, and a table shows its first rows.

Guarantees: nothing is stored. Whatever a function does is no error of the request.
"""

from __future__ import annotations

from typing import Annotated

import fastapi
from starlette.concurrency import run_in_threadpool

from ...database import connections as tables
from ...database.models import ConnectionTableRow
from ..dependencies import ThePart
from ..failures import Refusal
from ..tables import opened
from ..transport import JsonRoute
from .shapes_trying import SampleField, TableSample, TryArgument, TryOutcome, TryPost, TryResult

router = fastapi.APIRouter(tags=["functions"], route_class=JsonRoute)


@router.post("/udfs/try")
async def try_function(parts: ThePart, asked: TryPost) -> TryResult:
    """Calls a function for some rows. Rows of an async function run together, those of others one by one."""
    trial = await parts.builder.tried(asked.definition, asked.language, asked.rows, asked.seconds)
    function = trial.function
    return TryResult(
        udf_name=trial.name,
        signature=trial.signature,
        arguments=[] if function is None else [TryArgument(name=n, type=t) for n, t in function.arguments],
        returns="" if function is None else function.returns,
        kind=None if function is None else function.function,
        errors=list(trial.errors),
        rows=[
            TryOutcome(outcome=row.outcome, value=row.value, error=row.error, micros=row.micros)
            for _, row in sorted(trial.rows.items())
        ],
        micros=trial.micros,
        output=trial.output,
        crashed=trial.crashed,
    )


@router.post("/connection_tables/{id}/sample")
async def sample_table(
    parts: ThePart,
    id: str,
    limit: Annotated[int, fastapi.Query(ge=1, le=100, description="The number of rows.")] = 20,
) -> TableSample:
    """The first rows of a source, as far as they come within 5 s."""

    def stored() -> ConnectionTableRow:
        with parts.database.read() as session:
            return tables.table(session, id).table

    row = await run_in_threadpool(stored)
    if row.table_type != "source":
        raise Refusal(400, f"{row.name} is a {row.table_type}: only sources have rows to look at")
    planned = await opened(parts, row, sample=True, sample_rows=limit)
    if planned.errors:
        raise Refusal(400, f"{row.name}: {planned.errors[0].message}")
    fields = [SampleField(name=field["name"], type=field["type"]) for field in planned.fields]
    return TableSample(fields=fields, rows=planned.rows, refused=planned.refused)
