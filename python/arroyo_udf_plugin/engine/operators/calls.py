"""The functions of a run, one behind the other, and the columns that they take and add.

    source's columns ──► call 1 ──► + its result ──► call 2 ──► + its result ──► ...

A call takes columns of the source or results of calls before it. A text file's column stays text, but a typed output
gets it in the type of the first function that takes it: that is what the author says it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument
from ...host.arguments import Piece
from ...host.function import Function
from ...plugin.casting import Cast, cast, fits
from ..connectors.cells import CellType, argument, parse
from ..connectors.schemas import with_schema
from .blocks import KEY, Block, Columns, Given


@dataclasses.dataclass(frozen=True)
class ConstantArgument:
    """An argument that is the same for all rows."""

    value: bool | int | float | str | None


@dataclasses.dataclass(frozen=True)
class Call:
    """One function of a run.

    columns: the arguments, in their order: columns by name, and constants. name: the result's column.
    condition: the column of rows that are called; the others get null. None: all are.
    """

    function: Function
    columns: tuple[str | ConstantArgument, ...]
    name: str
    condition: str | None = None

    @classmethod
    def of(
        cls,
        function: Function,
        columns: Sequence[str | ConstantArgument] | None = None,
        name: str | None = None,
        condition: str | None = None,
    ) -> Call:
        """columns: default: the names of the parameters. name: default: the function's.

        Raises InvalidArgument for another number of columns, UnsupportedCall for a function that no row can call.
        """
        if function.kind not in ("sync", "async", "table"):
            function.outcomes()  # refuses: UnsupportedCall
        fields = list(function.arguments)
        columns = [field.name for field in fields] if columns is None else columns
        if len(columns) != len(fields):
            takes = ", ".join(f"{field.name}: {field.type}" for field in fields)
            raise InvalidArgument(
                f"{function.name} takes {len(fields)} arguments ({takes}), but the columns named are: "
                f"{', '.join(map(_shown, columns))}"
            )
        return cls(function, tuple(columns), name or function.name, condition)


@dataclasses.dataclass(frozen=True)
class ColumnArgument:
    """An argument that is a column of the block."""

    name: str
    position: int
    cast: Callable[[pa.Array, pa.Field], Cast]

    def of(self, block: Block, wanted: pa.Field) -> Cast:
        try:
            converted = self.cast(block.rows.column(self.position), wanted)
        except InvalidArgument as error:
            raise InvalidArgument(f"column {self.name!r}: {error}") from error
        return Cast(converted.array, {row: f"column {self.name!r}: {text}" for row, text in converted.refused.items()})


@dataclasses.dataclass(frozen=True)
class RepeatedArgument:
    """An argument that is one value for all rows."""

    value: pa.Scalar

    def __str__(self) -> str:
        return _shown(ConstantArgument(self.value.as_py()))

    def of(self, block: Block, wanted: pa.Field) -> Cast:
        return Cast(pa.repeat(self.value, len(block)))


class PlacedCall:
    """One call, in its place: which columns of a block it takes.

    given: the rows that it is given. typed: the arguments that join the block's columns, for the output. condition: the
    position of its column.
    """

    def __init__(
        self,
        call: Call,
        given: Given,
        arguments: Sequence[ColumnArgument | RepeatedArgument],
        typed: Sequence[int],
        condition: int | None,
    ) -> None:
        self.call = call
        self.given = given
        self.arguments = arguments
        self.typed = typed
        self.condition = condition
        self._result = pa.field(call.name, call.function.returns)

    @property
    def position(self) -> int:
        """Of its result, among the columns of a block."""
        return len(self.given.schema) + len(self.typed)

    @property
    def taken(self) -> list[int]:
        """The positions of the columns that it takes."""
        positions = [argument.position for argument in self.arguments if isinstance(argument, ColumnArgument)]
        return positions if self.condition is None else [*positions, self.condition]

    def prepare(self, block: Block) -> tuple[Block, Piece]:
        """Casts and parses the arguments. Returns them with the rows that they belong to.

        Raises InvalidArgument if a column's type cannot fit.
        """
        function = self.call.function
        refused: dict[int, str | None] = {**block.unread()}
        arguments = []
        for taken, wanted in zip(self.arguments, function.arguments, strict=True):
            converted = taken.of(block, wanted)
            for row, text in converted.refused.items():
                refused.setdefault(row, text)
            arguments.append(converted.array)
        rows = block.rows
        if self.condition is not None:
            wanted_rows = pc.fill_null(rows.column(self.condition), False)
            refused |= dict.fromkeys(pc.indices_nonzero(pc.invert(wanted_rows)).to_pylist())
        for i in self.typed:
            rows = rows.append_column(function.arguments.field(i), arguments[i])
        return block.with_rows(rows), Piece(arguments or [pa.nulls(len(block))], refused)

    def answered(self, block: Block, values: pa.Array) -> Block:
        """The rows with their results as a further column."""
        returns = self._result.type
        values = values if values.type == returns else values.cast(returns)
        return block.with_rows(block.rows.append_column(self._result, values))


def _repeated(constant: ConstantArgument, wanted: pa.Field, where: str) -> RepeatedArgument:
    """Raises InvalidArgument for a value that does not fit."""
    if constant.value is None:
        return RepeatedArgument(pa.scalar(None, wanted.type))
    try:
        array = pa.array([constant.value])
    except OverflowError:
        raise InvalidArgument(f"{where}: the constant for {wanted.name!r}, {constant.value}, is too large") from None
    if _is_text(array.type, wanted.type):
        converted = parse(array, wanted)
        why = converted.refused.get(0)
    elif (why := fits(array.type, wanted)) is None:
        converted = cast(array, wanted)
        why = converted.refused.get(0)
    if why is not None:
        raise InvalidArgument(f"{where}: the constant for {wanted.name!r}: {why}")
    return RepeatedArgument(converted.array[0])


def _shown(argument: str | ConstantArgument) -> str:
    return argument if isinstance(argument, str) else repr(argument.value)


def _is_text(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether the column is text, and the argument is something else."""
    texts = (pa.string(), pa.large_string(), pa.string_view())
    return given in texts and wanted not in texts


class CallPlan:
    """All calls of a run in their order, and the columns of its output.

    stages: the calls in their places. schema: of the output.
    Raises InvalidArgument for a column that is not there, and for two columns of one name.
    """

    def __init__(self, calls: Sequence[Call], source: Columns, typed: bool, kept: Sequence[int] | None = None) -> None:
        """typed: the output keeps types; text keeps its cells as they are. kept: the source's columns in the output."""
        fields, output = list(source.schema), list(range(len(source.schema)))
        results: dict[str, int] = {}
        self.stages: list[PlacedCall] = []
        for call in calls:
            arguments: list[ColumnArgument | RepeatedArgument] = []
            joining, given_fields = [], pa.schema(fields)
            for i, (name, wanted) in enumerate(zip(call.columns, call.function.arguments, strict=True)):
                if isinstance(name, ConstantArgument):
                    arguments.append(_repeated(name, wanted, call.function.where))
                    continue
                position = results[name] if name in results else source.index(name)
                given = fields[position].type
                # Another program that writes dead letters again makes plain text of cells.
                parsed = source.are_letters and position not in results.values() and _is_text(given, wanted.type)
                arguments.append(ColumnArgument(name, position, parse if parsed else argument))
                if typed and (parsed or isinstance(given, CellType)) and output[position] == position:
                    output[position] = len(fields)
                    fields.append(pa.field(name, wanted.type))
                    joining.append(i)
            condition = None
            if call.condition is not None:
                condition = results[call.condition] if call.condition in results else source.index(call.condition)
                if fields[condition].type != pa.bool_():
                    raise InvalidArgument(
                        f"the condition {call.condition!r} is {fields[condition].type}: name a column of booleans"
                    )
            self.stages.append(PlacedCall(call, Given(given_fields, source.origin), arguments, joining, condition))
            if call.name in [fields[position].name for position in output]:
                raise InvalidArgument(
                    f"there is a column {call.name!r} already: choose the result's name with --name, "
                    f"or --call 'NAME = {call.function.name}(...)'"
                )
            results[call.name] = len(fields)
            output.append(len(fields))
            fields.append(pa.field(call.name, call.function.returns))
        left_out = set() if kept is None else set(range(len(source.schema))).difference(kept)
        self._output = [position for place, position in enumerate(output) if place not in left_out]
        metadata = {key: value for key, value in (source.schema.metadata or {}).items() if key != KEY}
        self.schema = pa.schema([fields[position] for position in self._output], metadata)

    def output(self, block: Block) -> pa.RecordBatch:
        """The output's columns of a block that has passed all stages."""
        return with_schema(block.rows.select(self._output), self.schema)


def options_of(options: Mapping[str, Any], function: str) -> dict[str, Any]:
    """One function's options. options: those of all functions, and under a function's name a mapping of its own, which
    count more."""
    own = options.get(function)
    of_all = {name: value for name, value in options.items() if not isinstance(value, Mapping)}
    return of_all | (dict(own) if isinstance(own, Mapping) else {})


def check_options(calls: Sequence[Call], options: Mapping[str, Any]) -> None:
    """Raises InvalidArgument for options without an async function that takes them."""
    kinds = {call.function.name: call.function.kind for call in calls}
    for name in (name for name, value in options.items() if isinstance(value, Mapping)):
        if name not in kinds:
            raise InvalidArgument(f"there are options of {name}, and the functions are {', '.join(kinds)}")
        if kinds[name] != "async":
            raise InvalidArgument(f"{name} is sync, and {', '.join(options[name])} are options of async functions")
    if options and all(call.function.kind != "async" for call in calls):
        names, chosen = ", ".join(call.function.name for call in calls), ", ".join(options)
        raise InvalidArgument(f"{names} is sync, and {chosen} are options of async functions")
