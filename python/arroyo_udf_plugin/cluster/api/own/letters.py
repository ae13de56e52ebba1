"""Dead letters of a pipeline: looked at, and replayed into its sinks, also with other values.

To look at them runs nothing of the pipeline: their files say what their columns are. A replay runs its functions in a
child process (see `functions/replaying.py`).

Guarantees: an answer has a limited number of rows and bytes, however many there are. What cannot be read is said by
name, and hides no other letter. Nothing is read outside of the folders that pipelines may use. Values of variables are
not told. A job that runs keeps its checkpoints.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import deque
from functools import partial
from typing import Any

import fastapi
import pyarrow as pa
import pydantic
from starlette.concurrency import run_in_threadpool

from ....engine.connectors.inputs import readable
from ....engine.connectors.json_writer import JsonWriter
from ....engine.connectors.parts import Parts
from ....engine.connectors.source import FileSource, Rows
from ....engine.operators.blocks import Columns
from ....engine.pipeline.variables import resolved
from ....errors import ArroyoUdfError, InvalidArgument, InvalidState
from ....host.policy import LETTER
from ...database import pipelines
from ...database.pipelines import WholeJob
from ...database.sealing import opened
from ...functions.allowed_paths import outside
from ...functions.messages import ReplayRequest
from ...job_program import JobProgram
from ...schedulers.spawning import inherited
from ...states import State, next_state
from ...wishes import wanted
from ..dependencies import ApiParts, Limit, ThePart, most
from ..failures import Refusal
from ..transport import JsonRoute
from .shapes_letters import DeadLetter, LetterColumn, Replay, ReplayPost, ShownLetters, SkippedLetters

router = fastapi.APIRouter(tags=["dead letters"], route_class=JsonRoute)
_PATH = "/pipelines/{id}/dead_letters"
_MOST_BYTES = 8 << 20
"""Of the Arrow columns in one answer."""
_MOST_TOLD = 3


@router.get(_PATH)
def dead_letters(parts: ThePart, id: str, limit: Limit = 100) -> ShownLetters:
    """The newest rows that have failed, and how many there are."""
    with parts.database.read() as session:
        program, environment = _opened(pipelines.get(session, id))
    model = program.description().dead_letters
    shown = _Shown(most(limit))
    if model is None:
        return shown.answer(None)
    if not isinstance(model, Parts) or model.format != "parquet":
        return shown.answer(model.place, ["only parts of Parquet can be shown"])
    variables = {**inherited(), **program.variables, **environment}
    if parts.roots is not None and (outer := outside(model.place, parts.roots, variables)) is not None:
        return shown.answer(model.place, [outer])
    try:
        values, secrets = resolved(model.model_dump(), variables)
    except InvalidArgument as error:
        return shown.answer(model.place, [str(error)])
    why_not: list[str] = []
    try:
        files = Parts.model_validate(values).files()
    except ArroyoUdfError as error:
        return shown.answer(model.place, [secrets.hidden(str(error))])
    for file in reversed(files):
        try:
            shown.add(file)
        except ArroyoUdfError as error:
            why_not.append(secrets.hidden(str(error)))
    return shown.answer(model.place, why_not)


class _Shown:
    """The letters of an answer, the newest first."""

    def __init__(self, limit: int) -> None:
        self._rows, self._bytes = limit, _MOST_BYTES  # that there is still room for
        self._count = 0
        self._columns: list[LetterColumn] = []
        self._letters: list[DeadLetter] = []

    def answer(self, place: str | None, why_not: list[str] | None = None) -> ShownLetters:
        return ShownLetters(
            place=place,
            why_not="; ".join(why_not[:_MOST_TOLD]) if why_not else None,
            count=self._count,
            columns=self._columns,
            data=self._letters,
        )

    def add(self, file: str) -> None:
        """The next older part. Raises InvalidArgument for a damaged one, of which nothing is shown."""
        with FileSource([file]) as source:
            columns = Columns(source.schema)
            if not columns.are_letters or source.rows is None:
                raise InvalidArgument(f"{file} has no dead letters")
            letters = self._newest(source, source.rows) if self._rows else []
            self._count += source.rows
        self._letters += letters
        self._columns = self._columns or [
            LetterColumn(name=columns.schema.field(at).name, type=str(columns.schema.field(at).type))
            for at in columns.own
        ]

    def _newest(self, source: FileSource, count: int) -> list[DeadLetter]:
        """The last rows of a part, the newest first."""
        file, batches, size = source.input_files[0], deque[pa.RecordBatch](), 0
        with contextlib.closing(source.open(file)) as open_:
            for rows in source.rows_of(file, open_, max(1, count - self._rows + 1)):
                batches.append(rows.batch)
                size += rows.batch.nbytes
                while size - batches[0].nbytes > self._bytes:
                    size -= batches.popleft().nbytes
        table = pa.Table.from_batches(batches, source.schema).combine_chunks()
        fitting = len(table) if size <= self._bytes else max(1, len(table) * self._bytes // size)
        self._rows = self._rows - len(table) if fitting == len(table) else 0
        self._bytes -= size
        newest = table.slice(len(table) - fitting).to_batches()
        with readable(file):
            return [letter for batch in newest for letter in _letters_of(file.name, batch)][::-1]


def _letters_of(file: str, batch: pa.RecordBatch) -> list[DeadLetter]:
    """Raises InvalidArgument, pa.ArrowException for rows that are no letters."""
    columns = Columns(batch.schema)
    cells = columns.block(Rows(file, 1, batch)).rows
    own = pa.RecordBatch.from_arrays(
        [cells.column(at) for at in columns.own], schema=pa.schema([columns.schema.field(at) for at in columns.own])
    )
    values = _values(own) if columns.own else [{}] * batch.num_rows  # there are none if there are several sources
    try:
        return [
            DeadLetter(
                file=letter["failed_file"],
                row=letter["failed_row"],
                operator=letter["failed_function"],
                outcome=letter["failed_outcome"],
                error=letter["failed_error"],
                attempts=letter["failed_attempts"],
                values=row,
            )
            for letter, row in zip(batch.select(LETTER.names).cast(LETTER).to_pylist(), values, strict=True)
        ]
    except pydantic.ValidationError:
        raise InvalidArgument(f"{file} has rows that are no dead letters") from None


def _values(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows as JSON has them, so that they can be sent back."""
    lines: list[bytes] = []
    JsonWriter(lines.append, "dead letters", batch.schema, shown=True).write(pa.Table.from_batches([batch]))
    return [json.loads(line) for line in b"".join(lines).splitlines()]


@router.post(_PATH + "/replay")
async def replay(parts: ThePart, id: str, asked: ReplayPost) -> Replay:
    """Runs dead letters again, and adds what comes of them to the sinks, each once. The job must have ended. What was
    replayed is in its checkpoints."""
    request = partial(_request, parts, id, asked)
    await run_in_threadpool(request)  # so that a job that runs is refused before its turn comes
    done = await parts.builder.replay(request)
    if done.error is not None:
        raise Refusal(409 if done.is_conflict else 400, done.error)
    return Replay(
        rows_in=done.rows_in,
        rows_out=done.rows_out,
        failed=done.failed,
        dropped=done.dropped,
        nulled=done.nulled,
        skipped=SkippedLetters(
            replayed_before=done.replayed_before, unread=done.unread, late=done.late, of_windows=done.of_windows
        ),
    )


def _request(parts: ApiParts, id: str, asked: ReplayPost) -> ReplayRequest:
    """What the child gets: as the next worker of the job would. Raises Refusal."""
    if asked.again and asked.rows is None:
        raise Refusal(400, "again: results of rows that were replayed come twice then: name the rows")
    edits = [(row.file, row.row, row.values) for row in asked.values or ()]
    if len({(file, number) for file, number, _ in edits}) < len(edits):
        raise Refusal(400, "values: a row is there twice: write all of its new values in one")
    with parts.database.read() as session:
        whole = pipelines.get(session, id)
        _check_ended(whole)
        program, environment = _opened(whole)
        _, job, status = whole
        return ReplayRequest(
            program=program.as_json(),
            job_id=job.id,
            place=None if job.place is None else f"{job.place}/{status.history}",
            parallelism=job.parallelism,
            checkpoint_interval=job.checkpoint_interval_micros / 1e6,
            resume_at=status.epoch,
            retain=parts.retain,
            retain_for=parts.retain_for,
            environment=environment,
            inherited=inherited(),
            folder=os.getcwd(),
            rows=[(row.file, row.row) for row in asked.rows or ()],
            again=asked.again,
            edits=edits,
        )


def _check_ended(whole: WholeJob) -> None:
    """Raises Refusal for a job that runs, or is about to."""
    pipeline, job, status = whole
    state, wish = State(status.state), wanted(job, status)
    if not state.is_terminal:
        why = f"its job is {state}"
    elif wish is not None and next_state(state, wish) is not None:
        why = "its job is about to start"
    else:
        return
    stop = f'PATCH /pipelines/{pipeline.id} {{"stop": "checkpoint"}}'
    raise Refusal(409, f"{why}, and would lose its checkpoints to a replay: stop it first, with {stop}")


def _opened(whole: WholeJob) -> tuple[JobProgram, dict[str, str]]:
    """Its program, and the environment variables of its own. Raises Refusal for a secret that cannot be read."""
    try:
        return whole.opened_program, opened(whole.job.env_vars)
    except InvalidState as error:
        raise Refusal(409, str(error)) from None
