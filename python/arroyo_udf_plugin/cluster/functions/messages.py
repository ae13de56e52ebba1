"""What parent and child tell each other: a line of JSON each way. A try is answered line by line, as its rows end."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pydantic

Language = Literal["python", "rust", "c"]


class _Message(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")


class Build(_Message):
    """out: the folder in which the plugin shall be."""

    kind: Literal["build"] = "build"
    definition: str
    language: Language
    out: str


class PluginReference(_Message):
    """A function to plan with: the name that queries call, and its plugin."""

    name: str
    library: str
    sha256: str


class SavedTable(_Message):
    """A saved table: its CREATE TABLE, in one line. problem: why there is none."""

    name: str
    statement: str = ""
    problem: str = ""


class PlanRequest(_Message):
    """sinks: "own": those of the query, and a preview for a SELECT alone. "preview": previews instead of all. "both".

    roots: the folders in which files, and state_url, may be; None: anywhere. known: names of all functions that there
    are, to propose one. slices: on Flink, where not everything runs; None: elsewhere. sample: tell the fields of
    the first source. sample_rows: tell so many of its first rows, too. connect: ask that source what it has.
    """

    kind: Literal["plan"] = "plan"
    name: str
    query: str
    plugins: list[PluginReference]
    tables: list[SavedTable] = []
    parallelism: int = 1
    sinks: Literal["own", "preview", "both"] = "own"
    environment: dict[str, str] = {}
    known: list[str] = []
    slices: int | None = None
    sample: bool = False
    sample_rows: int = 0
    connect: bool = False
    roots: list[str] | None = None
    state_url: str | None = None


STACK = "stack"
"""The file in the folder of a child that tries a function with the stacks of its threads, see `trying.py`."""


class TryRequest(_Message):
    """rows: values of JSON, in the order of the arguments. seconds: for all of them."""

    kind: Literal["try"] = "try"
    plugin: PluginReference
    rows: list[list[Any]]
    seconds: float


class ReplayRequest(_Message):
    """The dead letters of a job that run again, and all that its workers would get, as a `Task` has it.

    rows: file and number; none: all that wait. again: also if they were replayed before. edits: new values of rows, by
    column. inherited: the environment of workers. folder: in which they run. libraries, roots: of the builder.
    """

    kind: Literal["replay"] = "replay"
    program: dict[str, Any]
    job_id: str
    place: str | None
    parallelism: int
    checkpoint_interval: float
    resume_at: int
    retain: int | None
    retain_for: float
    environment: dict[str, str]
    inherited: dict[str, str]
    folder: str
    rows: list[tuple[str, int]] = []
    again: bool = False
    edits: list[tuple[str, int, dict[str, Any]]] = []
    libraries: str = ""
    roots: list[str] | None = None


Job = Build | PlanRequest | TryRequest | ReplayRequest
JOB: pydantic.TypeAdapter[Job] = pydantic.TypeAdapter(Annotated[Job, pydantic.Field(discriminator="kind")])


class Built(_Message):
    """name: of the function; None: there is none. errors: why it cannot be built."""

    name: str | None = None
    signature: str = ""
    errors: list[str] = []


class Diagnostic(_Message):
    """start, end: line and column, from 1, the end behind the last character. None: nowhere in the query."""

    message: str
    start: tuple[int, int] | None = None
    end: tuple[int, int] | None = None


class PlanResult(_Message):
    """description: of the pipeline, as JSON has it. graph: its boxes and arrows. fingerprint: what its checkpoints must
    have, too. tables: the saved ones that it uses. fields, rows: of a sample. refused: why
    some of these rows cannot be read.

    errors: why there is no description. warnings: what its user should know before it runs.
    """

    description: dict[str, Any] | None = None
    graph: dict[str, Any] | None = None
    fingerprint: dict[str, Any] | None = None
    tables: list[str] = []
    fields: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    refused: list[str] = []
    errors: list[Diagnostic] = []
    warnings: list[str] = []


FunctionKind = Literal["sync", "vectorized", "async", "aggregate", "table"]
Outcome = Literal["value", "error", "timed_out", "cancelled"]
"""As host/policy.py has them."""
MOST_TRIED = 1000


class TriedFunction(_Message):
    """The first line: what is tried. arguments: names and types."""

    kind: Literal["function"] = "function"
    function: FunctionKind
    arguments: list[tuple[str, str]]
    returns: str


class TriedRow(_Message):
    """A row has ended; or all of an aggregate, which have one value. row: from 0. micros: from its call to its end."""

    kind: Literal["row"] = "row"
    row: Annotated[int, pydantic.Field(ge=0, lt=MOST_TRIED)]
    outcome: Outcome
    value: Any = None
    error: str | None = None
    micros: int | None = None


class TryEnded(_Message):
    """The last line. errors: of the arguments, or of the function's start or end."""

    kind: Literal["ended"] = "ended"
    errors: list[str] = []


Tried = TriedFunction | TriedRow | TryEnded
TRIED: pydantic.TypeAdapter[Tried] = pydantic.TypeAdapter(Annotated[Tried, pydantic.Field(discriminator="kind")])


class ReplayResult(_Message):
    """rows_in: letters that ran again. rows_out: written to each sink. failed: new dead letters. dropped, nulled: by
    other policies. The rest: see `ReplayCounts`.

    error: why it has not ended. is_conflict: because another engine has the checkpoints, or they are not there.
    """

    rows_in: int = 0
    rows_out: int = 0
    failed: int = 0
    dropped: int = 0
    nulled: int = 0
    replayed_before: int = 0
    unread: int = 0
    late: int = 0
    of_windows: int = 0
    error: str | None = None
    is_conflict: bool = False
