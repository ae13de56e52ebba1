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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ...host.policy import LETTER
from ..connectors.described import Output
from ..connectors.folder import open_folder
from ..connectors.interface import Sink, Source, Stage
from ..operators.blocks import Block, Columns
from ..operators.calls import Call
from ..operators.failures import Failures
from ..operators.fused import join_stages
from ..operators.group_stage import GroupPlan
from ..operators.grouped import GroupOperator
from ..operators.operator import Operator
from ..operators.routes import Place, Routes
from ..operators.stages import Dead
from ..operators.watermarks import DriftBound
from ..windows.collecting import Collecting
from ..windows.grouping import Grouping
from ..windows.updating_rows import UpdatingRows
from .chain import Chain, chained, operator_key
from .checks import check_dead_letters, check_places, check_standard_output, check_times
from .description import Pipeline, described
from .document import pipeline_of
from .hidden import HidingSource
from .inputs import OpenInput, sources_of, watermarks_of
from .kinds.functions import Functions
from .kinds.kind import DescribedOperator, WaitingOperator
from .lines import Key
from .problems import InvalidPipeline, Problems
from .routing import operator_names, sink_names
from .variables import Secrets, resolved


@dataclasses.dataclass(frozen=True)
class Planned:
    """What the engine runs.

    pipeline: as it is described. resolved: with the values of its variables. inputs: its sources, open.
    columns: of the first source, as dead letters have them. chain: the operators in their places. plugins: open.
    """

    pipeline: Pipeline
    resolved: Pipeline
    secrets: Secrets
    inputs: Sequence[OpenInput]
    columns: Columns
    chain: Chain
    plugins: contextlib.ExitStack

    def close(self) -> None:
        """Closes the sources, and ends the workers of plugins."""
        with self.plugins:
            _close(input.source for input in self.inputs)

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
        data = described(self.pipeline)
        first, *others = self.inputs
        further = {
            source.declaration.name: source.fingerprint(data["sources"][source.declaration.name]["source"])
            for source in others
        }
        return {
            "name": self.name,
            **first.fingerprint(data["source"]),
            **({"sources": further} if further else {}),
            "operators": [
                operator.asked(own) for operator, own in zip(self.pipeline.operators, data["operators"], strict=True)
            ],
            "sinks": [_in_a_row(sink) for sink in data["sinks"]],
            "dead letters": data["dead_letters"] and _in_a_row(data["dead_letters"]),
            "columns": [
                {field.name: str(field.type) for field in schema}
                for key, _, _, schema in self.outputs()
                if key[0] == "sinks"
            ],
        }

    @property
    def calls(self) -> Sequence[Call]:
        """Of all operators, in their order."""
        return self.chain.calls

    @property
    def answers_at_the_end(self) -> bool:
        """Whether all results are of queries over all rows, before which no row has cost a call."""
        return all(self._is_answer(place) for place in self.routes.sinks)

    def _is_answer(self, place: Place) -> bool:
        if place is None or place < 0:
            return False
        if self.pipeline.operators[place].is_over_all_rows:
            return all(map(self._is_cheap, self.routes.inputs(place)))
        return self._is_cheap(place) and all(map(self._is_answer, self.routes.inputs(place)))

    def _is_cheap(self, place: Place) -> bool:
        if place is None or place < 0:
            return True
        return self.pipeline.operators[place].is_query and all(map(self._is_cheap, self.routes.inputs(place)))

    @property
    def functions(self) -> list[str]:
        """The names of all that operators call, for people."""
        groupings = [stages.grouping for stages in self.chain.stages if isinstance(stages, GroupPlan)]
        of_queries = [
            function
            for grouping in groupings
            if isinstance(grouping, Collecting | Grouping | UpdatingRows)
            for function in grouping.functions.values()
        ]
        return [function.where for function in (*(call.function for call in self.calls), *of_queries)]

    @property
    def plugin_hashes(self) -> Mapping[str, str]:
        """The hashes of those whose functions make states, by names that tell these apart."""
        hashes = {call.name: call.function.plugin_hash for call in self.calls}
        for stages in self.chain.stages:
            if isinstance(stages, GroupPlan) and isinstance(stages.grouping, Grouping | UpdatingRows):
                for name, function in stages.grouping.functions.items():
                    hashes[f"{stages.name}.{name}"] = function.plugin_hash
        return hashes

    @property
    def routes(self) -> Routes:
        return self.chain.routes

    @property
    def drifts(self) -> Sequence[DriftBound]:
        """Of the operators in which rows wait for each other."""
        return [
            DriftBound(self.routes.sources_of(place), round(operator.max_drift * 1e9))
            for place, operator in enumerate(self.resolved.operators)
            if isinstance(operator, WaitingOperator)
        ]

    def operators(self) -> list[Operator]:
        """The operators of one slice, not started."""
        names = operator_names(self.pipeline)
        operators = [
            GroupOperator(stages, self.hidden)
            if isinstance(stages, GroupPlan)
            else Operator(
                name, stages, operator.policy, _options(operator), self.hidden, operator_key(self.pipeline, place)
            )
            for place, (operator, name, stages) in enumerate(
                zip(self.resolved.operators, names, self.chain.stages, strict=True)
            )
        ]
        join_stages(self.chain.passes, [stage for operator in operators for stage in operator.stages])
        return operators

    def sinks(self, slice: int, stage: Stage | None) -> list[Sink]:
        """The sinks of one slice. stage: None without checkpoints. Raises InvalidPipeline."""
        return self._opened(slice, stage, dead_letters=False)

    def letters(self, slice: int, stage: Stage | None) -> Sink | None:
        """The sink of one slice's dead letters. Raises InvalidPipeline."""
        return next(iter(self._opened(slice, stage, dead_letters=True)), None)

    def _opened(self, slice: int, stage: Stage | None, dead_letters: bool) -> list[Sink]:
        problems = Problems(self.secrets.hidden)
        opened: list[Sink] = []
        for key, model, name, schema in self.outputs():
            if (key[0] == "dead_letters") == dead_letters:
                with problems.at(*key):
                    opened.append(model.sink(schema, slice, stage, self.name, name))
        if problems.entries:
            for sink in opened:
                sink.close()
            raise InvalidPipeline(problems.entries)
        return opened

    def check_free(self) -> None:
        """Raises InvalidPipeline if a run without checkpoints would find parts of another one."""
        problems = Problems(self.secrets.hidden)
        for key, model, _, schema in [] if self.resolved.has_checkpoints else self.outputs():
            with problems.at(*key):
                model.check_free(schema)
        if problems.entries:
            raise InvalidPipeline(problems.entries)

    def outputs(self) -> Iterator[tuple[Key, Output, str, pa.Schema]]:
        """Each sink with its key, model, name and schema; that of dead letters comes last."""
        for place, (model, name) in enumerate(zip(self.resolved.sinks, sink_names(self.pipeline), strict=True)):
            yield ("sinks", place), model, name, self.chain.schemas[self.routes.sinks[place]]
        if self.resolved.dead_letters is not None:
            yield ("dead_letters",), self.resolved.dead_letters, "dead_letters", self.letter_schema

    @property
    def letter_schema(self) -> pa.Schema:
        return pa.schema([*self.columns.letter_fields(), *LETTER])

    def left(self, block: Block, place: Place) -> Block:
        """A block that has left an operator, or a source, as operators and sinks take it that follow."""
        return self.chain.left(block, place)

    def entered(self, block: Block, place: int, input: int) -> Block:
        """The same block, as an operator with several inputs takes it from this one."""
        return self.chain.entered(block, place, input)

    def letter(self, dead: Dead) -> pa.RecordBatch:
        """Dead letters as rows of their sink."""
        letters, own = self.columns.letters(dead.rows, dead.letters)
        return pa.RecordBatch.from_arrays([*own, *letters.columns], schema=self.letter_schema)


def _check_sink(model: Output, schema: pa.Schema) -> None:
    model.check(schema)


def plan(
    pipeline: Pipeline,
    environment: Mapping[str, str] = os.environ,
    check_sink: Callable[[Output, pa.Schema], None] = _check_sink,
) -> Planned:
    """Opens and checks all that a pipeline names. The caller closes it. check_sink: whether a sink can take rows with
    this schema. Raises InvalidPipeline."""
    values, secrets = resolved(pipeline.model_dump(by_alias=True, warnings=False), environment)
    problems = Problems(secrets.hidden)
    try:
        chosen = pipeline_of(values)
    except InvalidPipeline as error:
        hidden = [dataclasses.replace(problem, text=secrets.hidden(problem.text)) for problem in error.problems]
        raise InvalidPipeline(hidden) from None
    sources: list[Source | None] = []
    for declaration in sources_of(chosen):
        sources.append(None)
        with problems.at(*declaration.key):
            sources[-1] = declaration.model.source(chosen.parallelism)
    plugins = contextlib.ExitStack()
    try:
        return _checked(pipeline, chosen, secrets, sources, plugins, problems, check_sink)
    except BaseException:
        with plugins:
            _close(source for source in sources if source is not None)
        raise


def _checked(
    pipeline: Pipeline,
    chosen: Pipeline,
    secrets: Secrets,
    sources: Sequence[Source | None],
    plugins: contextlib.ExitStack,
    problems: Problems,
    check_sink: Callable[[Output, pa.Schema], None],
) -> Planned:
    every = list(zip(sources_of(chosen), sources, strict=True))
    columns = [None if source is None else Columns(source.schema) for source in sources]
    for (declaration, source), own in zip(every, columns, strict=True):
        if own is not None and declaration.event_time is not None:
            with problems.at(*declaration.time_key, "column"):
                check_times(watermarks_of(own, declaration.event_time), source, own)
        if chosen.has_checkpoints and source is not None and not source.resumable:
            problems.add(
                declaration.key, f"{source.name} cannot be read again, so it has no checkpoints: leave them out"
            )
    check_dead_letters(chosen, problems)
    if chosen.checkpoints is not None and chosen.checkpoints.place is not None:
        with problems.at("checkpoints", "place"):
            open_folder(chosen.checkpoints.place).check()
    kept = [own and own.without_own() for own in columns] if len(columns) > 1 else columns
    chain = chained(chosen, kept, problems, plugins)
    check_places(chosen, sources, problems)
    for place, sink in enumerate(chosen.sinks):
        with problems.at("sinks", place):
            _ = sink.typed
    inputs = [
        OpenInput(
            HidingSource(source, secrets) if secrets else source, own, declaration, secrets, Failures(secrets.hidden)
        )
        for (declaration, source), own in zip(every, kept, strict=True)
        if source is not None and own is not None
    ]
    if len(inputs) < len(sources) or chain is None or problems.entries:
        raise InvalidPipeline(problems.entries)
    planned = Planned(pipeline, chosen, secrets, inputs, inputs[0].columns, chain, plugins)
    for key, model, _, schema in planned.outputs():
        with problems.at(*key):
            check_sink(model, schema)
    check_standard_output(planned.outputs(), problems)
    if problems.entries:
        raise InvalidPipeline(problems.entries)
    return planned


def _close(sources: Iterable[Source]) -> None:
    with contextlib.ExitStack() as open_:
        for source in sources:
            open_.callback(source.close)


def _options(operator: DescribedOperator) -> Mapping[str, Any]:
    """Of the async functions."""
    return operator.options if isinstance(operator, Functions) else {}


def _in_a_row(sink: Mapping[str, Any]) -> dict[str, Any]:
    """A sink as it was described before there was `after`, if it does without."""
    return {name: value for name, value in sink.items() if name != "after" or value is not None}
