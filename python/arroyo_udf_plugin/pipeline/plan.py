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
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..connectors.bad_records import decide
from ..connectors.interface import Sink, Source, Stage
from ..connectors.source import Rows
from ..host.policy import LETTER, Policy
from ..operator.blocks import Block, Columns
from ..operator.calls import Call, Plan
from ..operator.operator import Operator
from ..operator.stages import Dead
from ..operator.watermarks import EventTime
from .checks import Problems, check_places, checked_calls
from .description import Pipeline, SinkModel, described
from .document import pipeline_of
from .hidden import HidingSource
from .lines import Key
from .problems import InvalidPipeline, Problem
from .variables import Secrets, resolved


@dataclasses.dataclass(frozen=True)
class Planned:
    """What the engine runs.

    pipeline: as it is described. resolved: with the values of its variables. source: open. columns: of the source.
    calls: of all operators, in their order. plan: how rows pass through them. plugins: open.
    """

    pipeline: Pipeline
    resolved: Pipeline
    secrets: Secrets
    source: Source
    columns: Columns
    calls: Sequence[Call]
    plan: Plan
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
            "operators": [one["calls"] for one in told["operators"]],
            "sinks": told["sinks"],
            "dead letters": told["dead_letters"],
        }

    def operators(self) -> list[Operator]:
        """The operators of one slice, not started."""
        stages = iter(self.plan.stages)
        return [
            Operator(name, [next(stages) for _ in one.calls], Policy(one.on_error, one.on_timeout), one.options)
            for one, name in zip(self.resolved.operators, operator_names(self.pipeline), strict=True)
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
            yield ("sinks", place), model, name, self.plan.schema
        if self.resolved.dead_letters is not None:
            yield ("dead_letters",), self.resolved.dead_letters, "dead_letters", self.letter_schema

    @property
    def letter_schema(self) -> pa.Schema:
        return pa.schema([*self.columns.letter_fields(), *LETTER])

    def output(self, block: Block) -> pa.RecordBatch:
        """A block that has passed all operators, as rows of the sinks."""
        return self.plan.output(block)

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
    calls = checked_calls(chosen, columns, problems, plugins)
    check_places(chosen, source, problems)
    typed = False
    for place, sink in enumerate(chosen.sinks):
        with problems.at("sinks", place):
            typed = sink.typed or typed
    if source is None or columns is None or problems.found:
        raise InvalidPipeline(problems.found)
    opened = HidingSource(source, secrets) if secrets else source
    planned = Planned(pipeline, chosen, secrets, opened, columns, calls, Plan(calls, columns, typed), plugins)
    for key, model, _, schema in planned.outputs():
        with problems.at(*key):
            model.check(schema)
    if problems.found:
        raise InvalidPipeline(problems.found)
    return planned


def operator_names(pipeline: Pipeline) -> list[str]:
    """Of the operators, for people; each once."""
    return _each_once([one.name or Path(one.plugin).stem.removeprefix("lib") for one in pipeline.operators])


def sink_names(pipeline: Pipeline) -> list[str]:
    """Of the sinks, for people and databases; each once."""
    return _each_once([sink.type for sink in pipeline.sinks])


def _each_once(names: Sequence[str]) -> list[str]:
    earlier = [names[:place].count(name) for place, name in enumerate(names)]
    return [f"{name}-{count + 1}" if count else name for name, count in zip(names, earlier, strict=True)]
