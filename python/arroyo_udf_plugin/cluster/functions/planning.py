"""A query as the pipeline of a job, with its graph, in a child process.

What no job can do is refused here, before there is one.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...engine.connectors.described import Output
from ...engine.connectors.location import confined_to
from ...engine.connectors.preview import Preview
from ...engine.datafusion.tokens import Unreadable, tokens
from ...engine.flink.program import JobArguments
from ...engine.flink.program import opened as opened_on_flink
from ...engine.pipeline.description import Checkpoints, Pipeline, described
from ...engine.pipeline.plan import plan
from ...engine.planner.script import Script
from ...engine.planner.statements import CreateTable
from ...engine.planner.text import InvalidQuery, Text, Wrong
from ...errors import ArroyoUdfError, nearest
from . import allowed_paths
from .artifacts import verified
from .graph import graph_of
from .messages import Diagnostic, PlanRequest, PlanResult, SavedTable
from .sampling import first_rows, sampled

_FILE = "query.sql"
_UNKNOWN = re.compile(r"there is no function (\w+): ")
_NO_INPUT = "a job has no standard input: read files, with connector = 'filesystem'"
_NO_FILE = "{path} is no file, so no job can go on in it: name a file or a folder"
_NO_CHECKPOINTS = (
    "{path}: this job has no checkpoints, because one file cannot be continued: each start is from the beginning, and "
    "the file is there when the job has ended; write a folder, connector = 'filesystem', to have checkpoints"
)


def planned(asked: PlanRequest) -> PlanResult:
    """What is wrong with the query is in the answer."""
    with confined_to(None if asked.roots is None else list(map(Path, asked.roots))):
        return _planned(asked)


def _planned(asked: PlanRequest) -> PlanResult:
    words = _words(asked.query)
    tables = [table for table in asked.tables if table.name.lower() in words and not _creates(asked.query, table.name)]
    plugins = [plugin for plugin in asked.plugins if plugin.name.lower() in words]
    if unreadable := [table for table in tables if table.problem]:
        return PlanResult(errors=[_unreadable(table, asked.query) for table in unreadable])
    text = "".join(f"{table.statement}\n" for table in tables) + asked.query
    try:
        if asked.roots is not None:
            if asked.state_url is not None and (why := allowed_paths.outside(asked.state_url, asked.roots)) is not None:
                return PlanResult(errors=[Diagnostic(message=f"state_url: {why}")])
            allowed_paths.check(Text(_FILE, text), asked.roots)
        _check_streams(Text(_FILE, text))
        for plugin in plugins:
            verified(Path(plugin.library), plugin.sha256)
        script = Script(_FILE, text, [plugin.library for plugin in plugins])
        if script.explain:
            return PlanResult(errors=[Diagnostic(message="a job runs its query: leave out EXPLAIN")])
        pipeline = script.pipeline.model_copy(
            update={"name": asked.name, "parallelism": asked.parallelism, "sinks": _sinks(script.pipeline, asked.sinks)}
        )
        with script.located(), contextlib.closing(plan(_as_job(pipeline.partitioned()))) as opened:
            graph, fingerprint = graph_of(opened), json.loads(json.dumps(dict(opened.fingerprint)))
            source = opened.inputs[0].source
            if asked.connect and source is not None:
                source.partitions()
            fields = sampled(source) if asked.sample else []
            rows, refused = first_rows(source, fields, asked.sample_rows) if asked.sample_rows else ([], [])
        if asked.slices is not None:
            arguments = JobArguments(pipeline=described(pipeline), slices=asked.slices)
            with script.located():
                opened_on_flink(arguments).planned.close()
    except InvalidQuery as error:
        return PlanResult(errors=list(_diagnostics(error, asked, tables)))
    except ArroyoUdfError as error:
        return PlanResult(errors=[Diagnostic(message=str(error))])
    return PlanResult(
        description=described(pipeline),
        graph=graph,
        fingerprint=fingerprint,
        tables=[table.name for table in tables],
        fields=[dict(field) for field in fields],
        rows=rows,
        refused=refused,
        warnings=[_NO_CHECKPOINTS.format(path=sink.place or sink.type) for sink in _unresumable(pipeline)],
    )


def _unreadable(table: SavedTable, query: str) -> Diagnostic:
    """At the first place where the query has its name."""
    text = Text(_FILE, query)
    at = next(token for token in tokens(query) if (token.name or token.text).lower() == table.name.lower())
    return Diagnostic(
        message=f"saved table {table.name}: {table.problem}", start=text.place(at.start), end=text.place(at.end)
    )


def _check_streams(text: Text) -> None:
    """Raises Refused for what has no end to wait for here, and no second reading later."""
    wrong: list[Wrong] = []
    for statement in allowed_paths.statements(text):
        options = statement.options if isinstance(statement, CreateTable) else {}
        connector, path = options.get("connector"), options.get("path")
        if connector is not None and connector.value == "stdin":
            wrong.append(Wrong(_NO_INPUT, connector.at))
        elif path is not None and (stream := _stream_of(path.value)) is not None:
            wrong.append(Wrong(_NO_FILE.format(path=stream), path.at))
    if wrong:
        raise text.refused(wrong)


def _stream_of(place: str) -> str | None:
    """Standard input or output, a pipe, or a device but the one that takes everything, if a path, URL or pattern names
    one. What the planner reads of it, no worker would read again."""
    if place in ("-", os.devnull):
        return place if place == "-" else None
    for path in allowed_paths.local_files(place):
        with contextlib.suppress(OSError, ValueError):  # of a name that cannot be
            if path.is_fifo() or path.is_socket() or path.is_char_device():
                return str(path)
    return None


def _unresumable(pipeline: Pipeline) -> list[Output]:
    """Sinks that cannot be continued."""
    return [sink for sink in pipeline.sinks if not sink.resumable]


def _as_job(pipeline: Pipeline) -> Pipeline:
    """With checkpoints, if it can have them, so that what cannot go on from them is refused. None is taken here."""
    if _unresumable(pipeline):
        return pipeline
    return pipeline.model_copy(update={"checkpoints": Checkpoints(place="checkpoints")})


def _words(query: str) -> set[str]:
    try:
        return {(token.name or token.text).lower() for token in tokens(query)}
    except Unreadable:
        return set()


def _creates(query: str, name: str) -> bool:
    """A table of the query hides a saved one."""
    return (
        re.search(rf'\b(table|view)\s+(if\s+not\s+exists\s+)?"?{re.escape(name)}\b', query, re.IGNORECASE) is not None
    )


def _sinks(pipeline: Pipeline, chosen: str) -> tuple[Output, ...]:
    """Nobody reads the standard output of a worker, so rows that would go there are shown as previews are."""
    sinks: list[Output] = []
    for sink in pipeline.sinks:
        preview = Preview(after=sink.after)
        if chosen == "preview" or sink.on_standard_output() is not None:
            sinks.append(preview)
        else:
            sinks += [sink, preview] if chosen == "both" else [sink]
    return tuple(sinks)


def _diagnostics(error: InvalidQuery, asked: PlanRequest, tables: Sequence[SavedTable]) -> Iterator[Diagnostic]:
    """Lines are those of the query, without the saved tables before it."""
    before = len(tables)
    for place in error.places:
        line, column = place.start
        text = _with_saved(place.text, asked.known)
        if line <= before:
            yield Diagnostic(message=f"saved table {tables[line - 1].name}: {text}")
        else:
            yield Diagnostic(message=text, start=(line - before, column), end=(place.end[0] - before, place.end[1]))


def _with_saved(text: str, known: Sequence[str]) -> str:
    """An unknown function may be a saved one, which the planner has not seen if the query does not have its name."""
    if (match := _UNKNOWN.match(text)) is None:
        return text
    instead = nearest(match[1], known)
    if instead.startswith("write"):
        return match[0] + instead
    return text.replace("name the UDF's file with --udf", "create a function of this name")
