"""A pipeline against its plugins, the source's columns and itself: all that is wrong, by the path of its key.

A call that is wrong does not hide what is wrong with the others; only calls that take its result are not judged.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...author.options import OPTIONS
from ...author.options import check as check_option
from ...build import plugin_for
from ...errors import InvalidArgument, nearest
from ...host.function import Function
from ...host.isolation import Where, cores
from ...host.library import Plugin, load
from ..connectors.described import Output
from ..connectors.file_source import FilesSource
from ..connectors.interface import Source
from ..connectors.options import Writing
from ..connectors.single import can_share
from ..operators.blocks import ORIGIN, Block, Columns
from ..operators.calls import Call, CallPlan
from ..operators.event_time import EventClock
from .calls import WrittenCall, call_written
from .description import Pipeline
from .inputs import sources_of
from .kinds.functions import Functions
from .kinds.updating import Updating
from .kinds.whole import WholeQuery
from .kinds.windows import Windows
from .lines import Key
from .problems import Problem, Problems


class Plugins:
    """Those that are open, so that each is opened once in each way. closing: closes them."""

    def __init__(self, pipeline: Pipeline, problems: Problems, closing: contextlib.ExitStack) -> None:
        self._parallelism, self._problems, self._closing = pipeline.parallelism, problems, closing
        self._opened: dict[Hashable, Plugin | None] = {}

    def of(self, operator: Functions, key: Key) -> Plugin | None:
        """The operator's; None: it cannot be opened."""
        limits = {"memory_limit": operator.memory_limit, "cpu_limit": operator.cpu_limit}
        where = _where(operator, self._parallelism, key, self._problems, **limits)
        return self._open(operator.plugin, where, (*key, "plugin"))

    def functions(self, operator: Updating | WholeQuery | Windows, key: Key) -> Mapping[str, Function] | None:
        """Those that a query calls, by the name that it has for them; None: one cannot be opened."""
        where = _where(operator, 1, key, self._problems)
        functions = {}
        for name, file in operator.functions.items():
            at = (*key, "functions", name)
            plugin = self._open(file, where, at)
            own = {
                function_name.lower(): function
                for function_name, function in (plugin.functions if plugin else {}).items()
            }
            if name.lower() in own:
                function = functions[name.lower()] = own[name.lower()]
                if function.kind not in operator.called_kinds:
                    self._problems.add(at, f"{function.name} is {function.kind}, and {operator.type} cannot call it")
                elif function.timeout is not None and operator.isolation != "process":
                    message = f"{function.name} has a timeout, and only worker processes keep one"
                    self._problems.add(at, f'{message}: write isolation = "process"')
            elif plugin is not None:
                self._problems.add(at, f"{file} has no function {name}: {nearest(name, plugin.functions)}")
        return functions if len(functions) == len(operator.functions) else None

    def _open(self, file: str, where: Where, key: Key) -> Plugin | None:
        if (file, where) not in self._opened:
            self._opened[file, where] = None
            with self._problems.at(*key):
                loaded = load(plugin_for(Path(file)), validate=True, **dataclasses.asdict(where))
                self._opened[file, where] = self._closing.enter_context(loaded)
        return self._opened[file, where]


def _where(
    operator: Functions | Updating | WholeQuery | Windows,
    parallelism: int,
    key: Key,
    problems: Problems,
    **limits: int | None,
) -> Where:
    """Where an operator's functions run: the workers of all slices. limits: of each worker."""
    per_slice = max(1, cores() // parallelism) if operator.workers == "auto" else operator.workers or 1
    try:
        chosen = Where(
            isolation=operator.isolation or "thread",
            workers=operator.workers or 1,
            **limits,
        )
        return chosen if chosen.isolation == "thread" else dataclasses.replace(chosen, workers=per_slice * parallelism)
    except InvalidArgument as error:
        problems.add((*key, "isolation"), str(error))
        return Where()


def check_dead_letters(pipeline: Pipeline, problems: Problems) -> None:
    policies = {
        ("operators", place, name): getattr(operator, name, "fail")
        for place, operator in enumerate(pipeline.operators)
        for name in ("on_error", "on_timeout", "on_late")
    } | {
        (*declaration.key, "bad_records"): getattr(declaration.model, "bad_records", "fail")
        for declaration in sources_of(pipeline)
    }
    wanting = [key for key, policy in policies.items() if policy == "dead_letter"]
    if pipeline.dead_letters is None:
        for key in wanting:
            problems.add(key, 'the policy dead_letter needs a place: add [dead_letters], such as type = "parts"')
    elif pipeline.dead_letters.after is not None:
        problems.add(("dead_letters", "after"), "dead letters come from all operators: leave it out")
    elif not wanting:
        problems.add(("dead_letters",), 'no policy sends rows here: write on_error = "dead_letter" for an operator')


def check_places(pipeline: Pipeline, sources: Sequence[Source | None], problems: Problems) -> None:
    """Each output has a place of its own, and can keep what checkpoints promise."""
    files = [file for source in sources if isinstance(source, FilesSource) for file in source.files.files]
    taken = {str(file.resolve()): "an input" for file in files}
    outputs: list[tuple[Key, Output]] = [(("sinks", place), sink) for place, sink in enumerate(pipeline.sinks)]
    if pipeline.dead_letters is not None:
        outputs.append((("dead_letters",), pipeline.dead_letters))
    for key, sink in outputs:
        if pipeline.has_checkpoints and not sink.resumable:
            instead = 'write a folder, type = "parts", or leave out the checkpoints'
            problems.add((*key, "type"), f"{sink.type!r} cannot go on where it stopped: {instead}")
        if sink.place is not None:
            place = sink.place if "://" in sink.place else os.path.realpath(sink.place)
            if place in taken:
                problems.add((*key, "path"), f"{sink.place} is {taken[place]}, too: name another output")
            taken[place] = f"the place of {Problem(key, '').path}"


def check_standard_output(outputs: Iterable[tuple[Key, Output, str, pa.Schema]], problems: Problems) -> None:
    """What several sinks write there can be told apart: the same columns, or lines that name theirs."""
    first: tuple[pa.Schema, Writing] | None = None
    for key, sink, _, schema in outputs:
        writing = sink.on_standard_output()
        if writing is None:
            continue
        own = schema, writing
        if first is None:
            first = own
        elif not can_share("-", first, own):
            taken = f"standard output gets other rows already, with the columns {', '.join(first[0].names)}"
            problems.add(key, f"{taken}: write both as newline JSON, or name another place for one")


def check_times(time: EventClock, source: Source | None, columns: Columns) -> None:
    """Text that has no times is no event time. Looks at the first rows of files, if the column is text.

    Raises InvalidArgument.
    """
    if time.is_text and isinstance(source, FilesSource) and source.resumable:
        for rows in itertools.islice(source.files, 1):
            time.check_text(columns.block(source.metadata.added(rows)))


def check_options(operator: Functions, calls: Sequence[Call], key: Key, problems: Problems) -> None:
    kinds = {call.function.name: call.function.kind for call in calls}
    for name, value in operator.options.items():
        if not isinstance(value, Mapping):
            _check_option(name, value, (*key, "options", name), [*OPTIONS, *kinds], problems)
            continue
        if kinds and name not in kinds:
            problems.add((*key, "options", name), f"no call is of {name!r}: {nearest(name, kinds)}")
        elif kinds.get(name, "async") != "async":
            problems.add(
                (*key, "options", name), f"options are for async functions, and {name} is none: leave them out"
            )
        for own, chosen in value.items():
            _check_option(own, chosen, (*key, "options", name, own), OPTIONS, problems)
    if operator.options and calls and all(call.function.kind != "async" for call in calls):
        names = ", ".join(call.function.name for call in calls)
        problems.add((*key, "options"), f"options are for async functions, and {names} is none: leave them out")


def _check_option(name: str, value: Any, key: Key, known: Iterable[str], problems: Problems) -> None:
    if name not in OPTIONS:
        problems.add(key, f"there is no such option: {nearest(name, known)}")
    elif wrong := check_option(name, value):
        problems.add(key, wrong.removeprefix("has "))


class Judge:
    """Calls one behind the other. columns: before the first; None: unknown. calls: those that are right so far."""

    def __init__(self, columns: Columns | None, problems: Problems) -> None:
        self.columns = columns
        self.calls: list[Call] = []
        self._problems = problems
        self._schema = None if columns is None else columns.schema
        self._unknown: set[str] = set()  # results whose calls are wrong

    def call(self, text: str, plugin: Plugin | None, key: Key) -> Call | None:
        """The call; None: it is wrong, or cannot be judged."""
        try:
            written = call_written(text, conditions=True)
        except ValueError as error:
            self._problems.add(key, f"{text!r}: {error}")
            return None
        call = None if plugin is None else self._judged(written, plugin, key)
        name = written.name or written.function
        if call is None and (self._schema is None or name not in self._schema.names):
            self._unknown.add(name)
        return call

    def _judged(self, written: WrittenCall, plugin: Plugin, key: Key) -> Call | None:
        if written.function not in plugin.functions:
            instead = nearest(written.function, plugin.functions)
            self._problems.add(key, f"plugin {plugin.name} has no function {written.function!r}: {instead}")
            return None
        function = plugin.functions[written.function]
        if function.timeout is not None and plugin.isolation != "process":
            instead = 'choose isolation = "process" for this operator, or leave the timeout out'
            self._problems.add(key, f"{function.name} has a timeout, and only worker processes keep one: {instead}")
            return None
        with self._problems.at(*key):
            call = Call.of(function, *written[1:])
            taken = [column for column in (*call.columns, call.condition) if isinstance(column, str)]
            if self._schema is None or self._unknown.intersection(taken):
                return None
            if self._names_are_right(call, taken, key):
                # The code that will take the rows, with a plan of this call alone, and no row.
                (stage,) = CallPlan([call], Columns(self._schema), typed=False).stages
                stage.prepare(Block(_no_rows(self._schema), _no_rows(ORIGIN)))
                self._schema = self._schema.append(pa.field(call.name, call.function.returns))
                self.calls.append(call)
                return call
        return None

    def _names_are_right(self, call: Call, taken: Sequence[str], key: Key) -> bool:
        assert self._schema is not None
        names = self._schema.names
        missing = [name for name in dict.fromkeys(taken) if name not in names]
        for name in missing:
            self._problems.add(key, f"there is no column {name!r}: {nearest(name, names)}")
        if call.name in names:
            instead = f"name the result, as in other = {call.function.name}(...)"
            self._problems.add(key, f"there is a column {call.name!r} already: {instead}")
        return not missing and call.name not in names


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, type_) for type_ in schema.types], schema=schema)
