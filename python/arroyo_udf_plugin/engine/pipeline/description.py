"""The models of a description: `Pipeline` and its parts. Each key's text below it is its help in errors and schema.

    Pipeline(
        name="speeds",
        source=Files(paths=["flights.parquet"]),
        operators=[Functions(plugin="speeds.py", calls=["speed = mph(distance, air_time)"])],
        sinks=[Parts(path="speeds")],
    )

Assumes: what takes more than the description itself to check is checked by `plan`.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import pydantic

from ...author.options import OPTIONS
from ...host.isolation import MOST_WORKERS, Isolation
from ...host.policy import Action
from ..connectors.described import Bytes, Described, Input, Output, Period, Seconds, Several
from ..connectors.registry import sink_models, source_models
from ..windows.storage import StorageLimits

if TYPE_CHECKING:
    SourceModel = Input
    SinkModel = Output
else:  # one of those that there are
    SourceModel = Annotated[functools.reduce(operator.or_, source_models()), pydantic.Field(discriminator="type")]
    SinkModel = Annotated[functools.reduce(operator.or_, sink_models()), pydantic.Field(discriminator="type")]
MOST_MONTHS = 372
"""Of a window: as long as others may be, in whole years."""
_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
Name = Annotated[str, pydantic.Field(pattern=_NAME, max_length=100)]


def _workers(value: object) -> object:
    """A number or "auto". Refused here, because pydantic would tell of each alternative by itself."""
    if value != "auto" and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_WORKERS):
        raise ValueError(f'write a number from 1 to {MOST_WORKERS}, or "auto" for one per core')
    return value


Workers = Annotated[int | Literal["auto"], pydantic.BeforeValidator(_workers)]


class EventTime(Described):
    """When the events happened that the rows tell of."""

    later: ClassVar[frozenset[str]] = frozenset({"computed", "watermark"})

    column: str
    """The source's column of timestamps or dates, or one of `computed`."""
    computed: dict[str, str] = pydantic.Field(default_factory=dict)
    """Columns in place of the source's, for `column` and `watermark`: an expression in DataFusion's SQL for each name,
    such as at = "to_timestamp_millis(ms)"."""
    watermark: str | None = None
    """An expression in SQL for the watermark after a row, in place of the event time in `column`."""
    lateness: Seconds = 0.0
    """How late a row may come after rows with later event times."""
    idle: Seconds | None = None
    """After so long without a row, the source holds the watermark back no more; without it, never."""


class NamedSource(Described):
    """A further source."""

    source: SourceModel
    """Where rows come from."""
    event_time: EventTime | None = None
    """For watermarks."""


class DescribedOperator(Described):
    name: Name | None = None
    """For views and checkpoints; default: the plugin's file name, or the type."""
    after: str | None = None
    """The operator whose rows it gets, or "source", or one of `sources`; default: the one before it."""


class Functions(DescribedOperator):
    """An operator: functions of one plugin, each of which adds its result as a column."""

    type: Literal["functions"] = "functions"
    plugin: str
    """A plugin, or a source (.py, .rs or .c), which is built if it is new or has changed."""
    calls: Annotated[Several[str], pydantic.Field(min_length=1)]
    """NAME = FUNCTION(COLUMN, ...), one after another. An argument may be a constant: 3, 'text', true, false, null.
    With `if COLUMN` behind it, only rows are called for which that column is true; the others get null."""
    on_error: Action = "fail"
    """What happens to a failed row."""
    on_timeout: Action = "fail"
    """What happens to a timed-out row."""
    options: Annotated[
        dict[str, Any],
        pydantic.Field(json_schema_extra={"properties": {name: {} for name in OPTIONS}}),
    ] = pydantic.Field(default_factory=dict)
    """Of the async functions, such as timeout = "2s"; they override the author's. Under a function's name are those of
    this one alone, such as town = { timeout = "5s" }."""
    isolation: Isolation = "thread"
    """Where the functions run: "thread", "subinterpreter" or "process"."""
    workers: Workers = 1
    """How many interpreters or processes each slice has; "auto": the cores, divided by the slices."""
    memory_limit: Bytes | None = None
    """The memory that each worker process may have of its own, such as "512MiB"."""
    cpu_limit: Annotated[int, pydantic.Field(ge=1)] | None = None
    """The seconds of processor time that each worker process may use."""


class Sql(DescribedOperator):
    """An operator: the items and the condition of a SELECT, in DataFusion's SQL."""

    type: Literal["sql"] = "sql"
    select: dict[str, str] | None = None
    """The columns of the result: an expression for each name; otherwise all columns as they are."""
    where: str | None = None
    """Rows pass for which it is true."""
    table: str = "input"
    """The name by which expressions may call the rows, as in input.column."""
    required: Several[str] = ()
    """Columns that must not be null: a row fails in which one is."""
    on_error: Literal["fail", "drop", "dead_letter"] = "fail"
    """What happens to a row that fails, also because an expression does, such as 1 / 0."""


class Lookup(DescribedOperator):
    """An operator: columns of a table in SQLite or PostgreSQL, which rows look up by a key.

    Rows stay in their order. With several matches a row becomes several rows; a null in a key matches nothing.
    """

    type: Literal["lookup"] = "lookup"
    uri: str
    """The database: `sqlite:PATH` or `postgresql://USER:${PASSWORD}@HOST/DATABASE`."""
    table: str
    """The name of a table or a view."""
    keys: Annotated[dict[str, str], pydantic.Field(min_length=1)]
    """The table's columns that must be equal to columns of the rows: the row's column for each of them."""
    columns: dict[str, str] | None = None
    """What is added: the table's column for each name of a result; default: all but the keys."""
    types: dict[str, str] = pydantic.Field(default_factory=dict)
    """The table's columns as types, such as at = "timestamp[us]"; others have those of the database."""
    unmatched: Literal["drop", "null"] = "drop"
    """What happens to rows without a match: they are left out, or stay with nulls."""
    where: str | None = None
    """A match counts if this is true: a condition over columns of the row and of the table, in DataFusion's SQL."""
    cache_bytes: Bytes = 8 << 20
    """About how large the cache of each slice may be."""
    cache_seconds: Seconds = 60.0
    """How old an entry of the cache may be: changes of the table are seen after this time. 0: no cache."""
    on_error: Literal["fail", "drop", "dead_letter"] = "fail"
    """What happens to a row that cannot be looked up, for example because the database does not answer."""


class WaitingOperator(DescribedOperator):
    """An operator whose rows wait until the watermark has passed their window."""

    later: ClassVar[frozenset[str]] = frozenset({"allowed_lateness"})

    on_error: Literal["fail", "drop", "dead_letter"] = "fail"
    """What happens to a row whose event time is null, or before 1678 or after 2261."""
    on_late: Literal["drop", "dead_letter"] = "drop"
    """What happens to a late row: the watermark has passed all its windows. Late rows are counted, too."""
    allowed_lateness: Seconds = 0.0
    """For how long a window stays open after the watermark has passed its end. Its results leave after that time."""
    memory_limit: Bytes = StorageLimits.memory
    """How much memory open windows may use, such as "1GiB"; the rest is in files without a name, in TMPDIR."""
    disk_limit: Bytes = StorageLimits.disk
    """How large these files may be; above that the pipeline fails."""


class Windows(WaitingOperator):
    """An operator: rows in windows of event time, as GROUP BY has them. It works in the first slice, for all slices.

    Its rows are the windows' results: the keys, the window, the aggregates, and the last moment of the window as their
    event time.
    """

    later: ClassVar[frozenset[str]] = frozenset({"allowed_lateness", "months", "slide_months"})

    type: Literal["windows"] = "windows"
    time: str
    """The column of event times."""
    width: Seconds | None = None
    """How long a window is."""
    slide: Seconds | None = None
    """The time from the start of one window to the next; default: `width`."""
    months: Annotated[int, pydantic.Field(ge=1, le=MOST_MONTHS)] | None = None
    """For windows of the calendar, in UTC, instead of `width`: how many months one has, from January 1970 on."""
    slide_months: Annotated[int, pydantic.Field(ge=1, le=MOST_MONTHS)] | None = None
    """How many months after one of them the next one begins; default: `months`."""
    gap: Seconds | None = None
    """For sessions, instead of `width`: the time without a row after which a session is over."""
    column: str = "window"
    """The name of the results' column with the window, a struct of its start and its end."""
    keys: Several[str] = ()
    """Columns: each window has a result for each of their values."""
    aggregates: dict[str, str] = pydantic.Field(default_factory=dict)
    """An aggregate in DataFusion's SQL for each name of a result, such as n = "count(*)"."""
    by_row: bool = False
    """Each row is a result: `aggregates` are window functions, such as place = "row_number() OVER (ORDER BY n)"."""
    table: str = "input"
    """The name by which aggregates may call the rows, as in input.column."""


class Union(DescribedOperator):
    """An operator: the rows of several others, which have the same types in the same order. Names are the first's."""

    type: Literal["union"] = "union"
    inputs: Annotated[Several[str], pydantic.Field(min_length=2)]
    """The operators whose rows it gets, or sources: "source" or names of `sources`."""


class Join(WaitingOperator):
    """An operator: the rows of two others that have the same event time, which are results of the same window, or event
    times near each other. It works in the first slice, for all slices."""

    type: Literal["join"] = "join"
    left: str
    """The operator, or source, whose rows are on the left."""
    right: str
    """The one whose rows are on the right."""
    kind: Literal["inner", "left", "right", "full"] = "inner"
    """Which sides keep rows without a match, with nulls for the other side."""
    on: str = "true"
    """A further condition besides that of the event times, in DataFusion's SQL."""
    within: Annotated[Several[float], pydantic.Field(min_length=2, max_length=2)] | None = None
    """The least and the most seconds that the right row's event time may be behind the left one's, such as [-300, 3600]
    for five minutes before to an hour behind; default: both are the same."""
    select: dict[str, str]
    """The columns of the result: an expression for each name."""
    time: str
    """The column of event times, of both sides and the result."""
    tables: Annotated[Several[str], pydantic.Field(min_length=2, max_length=2)] = ("a", "b")
    """The names by which expressions may call the two sides, as in a.column = b.column."""


class Deduplicate(WaitingOperator):
    """An operator: of the rows with the same keys, the first one within a time. It works in the first slice, for all
    slices. Rows leave when the watermark has passed them, in the order of their event times."""

    type: Literal["deduplicate"] = "deduplicate"
    time: str
    """The column of event times."""
    keys: Annotated[Several[str], pydantic.Field(min_length=1)]
    """Columns: rows with the same values in all of them are the same."""
    ttl: Period
    """How long after a row no other one with its keys passes, by event time."""


class LookBack(WaitingOperator):
    """An operator: window functions over the rows of each key, which look back at a few of them. It works in the first
    slice, for all slices. Rows leave when the watermark has passed them, in the order of their event times."""

    type: Literal["look_back"] = "look_back"
    time: str
    """The column of event times."""
    aggregates: Annotated[dict[str, str], pydantic.Field(min_length=1)]
    """A window function in DataFusion's SQL for each name of a further column, such as
    before = "lag(n) OVER (PARTITION BY k ORDER BY at)"."""
    keys: Several[str] = ()
    """What is in their PARTITION BY."""
    order: str
    """What is in their ORDER BY; the event time comes first."""
    rows: Annotated[int, pydantic.Field(ge=0)]
    """How many rows they look back, at most."""
    ttl: Period
    """How long a key is known without a row, by event time. Then its next row is its first one."""
    table: str = "input"
    """The name by which functions may call the rows, as in input.column."""


class WholeQuery(DescribedOperator):
    """An operator: a query over all rows of its inputs, once they have ended, in DataFusion's SQL.

    It works in the first slice, for all slices.

    Rows wait on disk beyond `memory_limit`, and so does what the query itself needs.
    """

    type: Literal["query"] = "query"
    tables: Annotated[dict[str, str], pydantic.Field(min_length=1)]
    """The operator, or source, whose rows each table has, by the table's name in the query."""
    sql: str
    """The query: one SELECT, with everything that DataFusion knows."""
    functions: dict[str, str] = pydantic.Field(default_factory=dict)
    """Functions that the query calls: the plugin, or the source (.py, .rs or .c), for each name. A row that fails ends
    the pipeline."""
    isolation: Isolation = "thread"
    """Where the functions run: "thread", "subinterpreter" or "process"."""
    workers: Workers = 1
    """How many interpreters or processes there are; "auto": one per core."""
    memory_limit: Bytes = StorageLimits.memory
    """How much memory the rows that wait may use, and as much again, at least 64 MiB, what the query keeps."""
    disk_limit: Bytes = StorageLimits.disk
    """How large the rows may be that wait on disk; above that the pipeline fails."""


class Checkpoints(Described):
    """Where the state is kept, so that a pipeline goes on where it has been, and how often."""

    place: str | None = None
    """A folder, or the URL of an object store, such as s3://bucket/folder; `--checkpoints` names another one. Without a
    place there are no checkpoints."""
    every: Period | None = None
    """The time from one checkpoint to the next; default: 10 s, if `every_rows` is not set either."""
    every_rows: Annotated[int, pydantic.Field(ge=1)] | None = None
    """The rows that are read from one checkpoint to the next; with `every`, whatever comes first."""
    retain: Annotated[int, pydantic.Field(ge=1)] | None = None
    """How many checkpoints are kept, to go back to one of them; default: 3."""
    retain_for: Period | None = None
    """Checkpoints that are not older are kept, too. Each start reads what all of them say."""

    later = frozenset({"retain_for"})


def _kind(value: Any) -> Any:
    """Which operator it is: `type` may be left out."""
    return value.get("type", "functions") if isinstance(value, dict) else getattr(value, "type", "functions")


OperatorModel = Annotated[
    Annotated[Functions, pydantic.Tag("functions")]
    | Annotated[Sql, pydantic.Tag("sql")]
    | Annotated[Lookup, pydantic.Tag("lookup")]
    | Annotated[Windows, pydantic.Tag("windows")]
    | Annotated[Union, pydantic.Tag("union")]
    | Annotated[Join, pydantic.Tag("join")]
    | Annotated[Deduplicate, pydantic.Tag("deduplicate")]
    | Annotated[LookBack, pydantic.Tag("look_back")]
    | Annotated[WholeQuery, pydantic.Tag("query")],
    pydantic.Discriminator(_kind),
]


class Pipeline(Described):
    """One or more sources, operators, one or more sinks."""

    name: Name
    """A name by which databases and checkpoints know the pipeline: letters, digits, `_`, `.` and `-`."""
    source: SourceModel
    """Where rows come from."""
    sources: dict[Name, NamedSource] = pydantic.Field(default_factory=dict)
    """Further sources, by names for the `after` and `inputs` of operators."""
    operators: Several[OperatorModel] = ()
    """What rows pass through, in this order, or where `after` says."""
    sinks: Annotated[Several[SinkModel], pydantic.Field(min_length=1)]
    """Where rows go; each gets all of them, or those of the operator that `after` names."""
    dead_letters: SinkModel | None = None
    """Where rows go whose policy is "dead_letter"."""
    event_time: EventTime | None = None
    """The event time of `source`, for watermarks."""
    parallelism: Annotated[int, pydantic.Field(ge=1, le=1024)] = 1
    """How many slices run side by side. Each is a copy of the chain over a share of the source."""
    checkpoints: Checkpoints | None = None
    """Without them, outputs appear at the end, and an interrupted run starts anew."""

    @property
    def has_checkpoints(self) -> bool:
        return self.checkpoints is not None and self.checkpoints.place is not None


def described(pipeline: Described) -> dict[str, Any]:
    """The description as data for JSON. Variables stay `${NAME}`."""
    return pipeline.model_dump(mode="json", by_alias=True, warnings=False)


def schema() -> dict[str, Any]:
    """The JSON schema of descriptions."""
    return Pipeline.model_json_schema() | {"$schema": "https://json-schema.org/draft/2020-12/schema"}
