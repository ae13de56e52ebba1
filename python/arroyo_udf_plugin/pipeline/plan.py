"""A checked pipeline, ready for the engine.

    planned = plan(pipeline)          opens source and plugins; raises InvalidPipeline with all that is wrong
    with closing(planned): ...        closes them
    planned.operators()               for each slice, new ones

Guarantees: what can be known before the first row is checked here: variables, plugins, functions, columns, types,
options, sinks. Nothing outside has changed. Texts for people and for checkpoints have no values of variables.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ..connectors.bad_records import decide
from ..connectors.interface import Sink, Source, Stage
from ..connectors.source import Rows
from ..host.policy import LETTER, Policy
from ..operator.blocks import Block, Columns
from ..operator.calls import Call
from ..operator.grouped import GroupOperator, GroupPlan
from ..operator.operator import Operator
from ..operator.routes import Routes
from ..operator.stages import Dead
from ..operator.watermarks import EventTime
from .chain import Chain, chained, each_once, operator_names
from .checks import Problems, check_dead_letters, check_places
from .description import Functions, Lookup, OperatorModel, Pipeline, SinkModel, Sql, described
from .document import pipeline_of
from .hidden import HidingSource
from .lines import Key
from .problems import InvalidPipeline, Problem
from .variables import Secrets, resolved


@dataclasses.dataclass(frozen=True)
class Planned:
    """What the engine runs.

    pipeline: as it is described. resolved: with the values of its variables. source: open. columns: of the source.
    chain: the operators in their places. plugins: open.
    """

    pipeline: Pipeline
    resolved: Pipeline
    secrets: Secrets
    source: Source
    columns: Columns
    chain: Chain
    plugins: contextlib.ExitStack

    def close(self) -> None:
        """Closes the source, and ends the workers of plugins."""
        with self.plugins:
            self.source.close()

    @property
    def name(self) -> str:
        return self.pipeline.name

    @property
    def parallelism(self) -> int:
        return self.pipeline.parallelism

    def hidden(self, text: str) -> str:
        """A text for people or checkpoints, without the values of variables."""
        return self.secrets.hidden(text)

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """What must be the same for a resume, by name. Plugins' hashes are compared apart."""
        told = described(self.pipeline)
        return {
            "name": self.name,
            "source": told["source"],
            "columns": {field.name: str(field.type) for field in self.source.schema},
            "event time": self.pipeline.event_time and self.pipeline.event_time.column,
            "operators": [_asked(one) for one in told["operators"]],
            "sinks": [_in_a_row(one) for one in told["sinks"]],
            "dead letters": told["dead_letters"] and _in_a_row(told["dead_letters"]),
        }

    @property
    def calls(self) -> Sequence[Call]:
        """Of all operators, in their order."""
        return self.chain.calls

    @property
    def routes(self) -> Routes:
        return self.chain.routes

    def operators(self) -> list[Operator]:
        """The operators of one slice, not started."""
        names = operator_names(self.pipeline)
        return [
            GroupOperator(stages) if isinstance(stages, GroupPlan) else Operator(name, stages, *_policy(one))
            for one, name, stages in zip(self.resolved.operators, names, self.chain.stages, strict=True)
        ]

    def event_time(self) -> EventTime | None:
        """The watermarks of one slice."""
        told = self.resolved.event_time
        return None if told is None else EventTime(self.columns.schema, told.column, round(told.lateness * 1e9))

    @property
    def idle_seconds(self) -> float | None:
        return None if self.resolved.event_time is None else self.resolved.event_time.idle

    def sinks(self, slice: int, stage: Stage | None) -> list[Sink]:
        """The sinks of one slice. stage: None without checkpoints. Raises InvalidPipeline."""
        return self._opened(slice, stage, dead_letters=False)

    def letters(self, slice: int, stage: Stage | None) -> Sink | None:
        """The sink of one slice's dead letters. Raises InvalidPipeline."""
        return next(iter(self._opened(slice, stage, dead_letters=True)), None)

    def _opened(self, slice: int, stage: Stage | None, dead_letters: bool) -> list[Sink]:
        problems = Problems(self.secrets)
        opened: list[Sink] = []
        for key, model, name, schema in self.outputs():
            if (key[0] == "dead_letters") == dead_letters:
                with problems.at(*key):
                    opened.append(model.sink(schema, slice, stage, self.name, name))
        if problems.found:
            for sink in opened:
                sink.close()
            raise InvalidPipeline(problems.found)
        return opened

    def outputs(self) -> Iterator[tuple[Key, SinkModel, str, pa.Schema]]:
        """Each sink with its key, model, name and schema; that of dead letters comes last."""
        for place, (model, name) in enumerate(zip(self.resolved.sinks, sink_names(self.pipeline), strict=True)):
            yield ("sinks", place), model, name, self.chain.schemas[self.routes.sinks[place]]
        if self.resolved.dead_letters is not None:
            yield ("dead_letters",), self.resolved.dead_letters, "dead_letters", self.letter_schema

    @property
    def letter_schema(self) -> pa.Schema:
        return pa.schema([*self.columns.letter_fields(), *LETTER])

    def left(self, block: Block, place: int | None) -> Block:
        """A block that has left an operator, or the source (None), as operators and sinks take it that follow."""
        return self.chain.left(block, place)

    def letter(self, dead: Dead) -> pa.RecordBatch:
        """Dead letters as rows of their sink."""
        told, own = self.columns.letters(dead.rows, dead.letters)
        return pa.RecordBatch.from_arrays([*own, *told.columns], schema=self.letter_schema)

    def admit(self, rows: Rows) -> list[Block | Dead]:
        """The source's rows as blocks. Rows that could not be read follow the source's policy.

        Raises InvalidArgument.
        """
        block = self.columns.block(dataclasses.replace(rows, file=self.hidden(rows.file)))
        decided = decide(block.origin, getattr(self.resolved.source, "bad_records", "fail"))
        if decided is None:
            return [block]
        admitted: list[Block | Dead] = []
        if len(decided.dead_at):
            admitted.append(Dead(block.take(decided.dead_at), decided.dead))
        kept = block.filter(decided.kept)
        return [*admitted, kept] if len(kept) else admitted


def plan(pipeline: Pipeline, environment: Mapping[str, str] = os.environ) -> Planned:
    """Opens and checks all that a pipeline names. The caller closes it. Raises InvalidPipeline."""
    values, secrets = resolved(pipeline.model_dump(by_alias=True, warnings=False), environment)
    problems = Problems(secrets)
    try:
        chosen = pipeline_of(values)
    except InvalidPipeline as error:
        raise InvalidPipeline([Problem(one.key, secrets.hidden(one.text)) for one in error.problems]) from None
    source: Source | None = None
    with problems.at("source"):
        source = chosen.source.source(chosen.parallelism)
    plugins = contextlib.ExitStack()
    try:
        return _checked(pipeline, chosen, secrets, source, plugins, problems)
    except BaseException:
        with plugins:
            if source is not None:
                source.close()
        raise


def _checked(
    pipeline: Pipeline,
    chosen: Pipeline,
    secrets: Secrets,
    source: Source | None,
    plugins: contextlib.ExitStack,
    problems: Problems,
) -> Planned:
    columns = None if source is None else Columns(source.schema)
    if columns is not None and chosen.event_time is not None:
        with problems.at("event_time", "column"):
            EventTime(columns.schema, chosen.event_time.column)
    if chosen.checkpoints is not None and chosen.checkpoints.every == 0:
        problems.add(("checkpoints", "every"), "write a time above 0")
    if chosen.checkpoints is not None and source is not None and not source.resumable:
        problems.add(("source",), f"{source.name} cannot be read again, so it has no checkpoints: leave them out")
    check_dead_letters(chosen, problems)
    chain = chained(chosen, columns, problems, plugins)
    check_places(chosen, source, problems)
    for place, sink in enumerate(chosen.sinks):
        with problems.at("sinks", place):
            _ = sink.typed
    if source is None or columns is None or chain is None or problems.found:
        raise InvalidPipeline(problems.found)
    opened = HidingSource(source, secrets) if secrets else source
    planned = Planned(pipeline, chosen, secrets, opened, columns, chain, plugins)
    for key, model, _, schema in planned.outputs():
        with problems.at(*key):
            model.check(schema)
    if problems.found:
        raise InvalidPipeline(problems.found)
    return planned


def _policy(operator: OperatorModel) -> tuple[Policy, Mapping[str, Any]]:
    """What happens to failed rows, and the options of async functions."""
    if isinstance(operator, Functions):
        return Policy(operator.on_error, operator.on_timeout), operator.options
    return Policy(operator.on_error if isinstance(operator, Sql | Lookup) else "fail"), {}


def _asked(operator: Mapping[str, Any]) -> Any:
    """What an operator does to rows, without names and policies; of functions in a row, their calls."""
    if operator["type"] == "sql":
        return {name: operator[name] for name in ("select", "where", "table", "required", "after")}
    if operator["type"] == "lookup":
        asked = ("type", "table", "keys", "columns", "types", "unmatched", "where", "after")
        return {name: operator[name] for name in asked}
    if operator["type"] == "windows":
        return {name: value for name, value in operator.items() if name != "name"}
    return operator["calls"] if operator["after"] is None else {"after": operator["after"], "calls": operator["calls"]}


def _in_a_row(sink: Mapping[str, Any]) -> dict[str, Any]:
    """A sink as it was described before there was `after`, if it does without."""
    return {name: value for name, value in sink.items() if name != "after" or value is not None}


def sink_names(pipeline: Pipeline) -> list[str]:
    """Of the sinks, for people and databases; each once."""
    return each_once([sink.type for sink in pipeline.sinks])
