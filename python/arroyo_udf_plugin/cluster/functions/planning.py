"""A query as a pipeline with its graph, in a child process."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...connectors.preview import Preview
from ...errors import ArroyoUdfError
from ...pipeline.description import Pipeline, SinkModel, described
from ...pipeline.plan import plan
from ...planner.script import Script
from ...planner.text import Refused, Text
from ...sql.tokens import Unreadable, tokens
from . import roots
from .artifacts import verified
from .asked import Diagnostic, Plan, Planned, Table
from .graph import graph_of

_FILE = "query.sql"


def planned(asked: Plan) -> Planned:
    """What is wrong with the query is in the answer."""
    words = _words(asked.query)
    tables = [table for table in asked.tables if table.name.lower() in words and not _creates(asked.query, table.name)]
    plugins = [plugin for plugin in asked.plugins if plugin.name.lower() in words]
    text = "".join(f"{table.statement}\n" for table in tables) + asked.query
    try:
        if asked.roots is not None:
            if asked.state_url is not None and (why := roots.outside(asked.state_url, asked.roots)) is not None:
                return Planned(errors=[Diagnostic(message=f"state_url: {why}")])
            roots.check(Text(_FILE, text), asked.roots)
        for plugin in plugins:
            verified(Path(plugin.library), plugin.sha256)
        script = Script(_FILE, text, [plugin.library for plugin in plugins])
        pipeline = script.pipeline.model_copy(
            update={"name": asked.name, "parallelism": asked.parallelism, "sinks": _sinks(script.pipeline, asked.sinks)}
        )
        with script.located(), contextlib.closing(plan(pipeline)) as found:
            graph = graph_of(found)
    except Refused as error:
        return Planned(errors=list(_diagnostics(error, tables)))
    except ArroyoUdfError as error:
        return Planned(errors=[Diagnostic(message=str(error))])
    return Planned(description=described(pipeline), graph=graph, tables=[table.name for table in tables])


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


def _sinks(pipeline: Pipeline, chosen: str) -> tuple[SinkModel, ...]:
    """Nobody reads the standard output of a worker, so rows that would go there are shown as previews are."""
    sinks: list[SinkModel] = []
    for sink in pipeline.sinks:
        preview = Preview(after=sink.after)
        if chosen == "preview" or sink.type == "stdout":
            sinks.append(preview)
        else:
            sinks += [sink, preview] if chosen == "both" else [sink]
    return tuple(sinks)


def _diagnostics(error: Refused, tables: Sequence[Table]) -> Iterator[Diagnostic]:
    """Lines are those of the query, without the saved tables before it."""
    before = len(tables)
    for place in error.places:
        line, column = place.start
        if line <= before:
            yield Diagnostic(message=f"saved table {tables[line - 1].name}: {place.text}")
        else:
            yield Diagnostic(
                message=place.text, start=(line - before, column), end=(place.end[0] - before, place.end[1])
            )
