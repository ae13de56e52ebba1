"""Calls of a vectorised function for a batch: whole columns in, one array of results out.

Guarantees: each row has a result of the function's type, or is an error (F4). Nothing that the function returns is
believed: an array of another type is cast where nothing is lost, and one that is not as its type says (offsets, UTF-8,
the precision of decimals) costs the rows at fault.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from .._native import note_interrupt, settle
from ..author.constant import WithConstants
from ..errors import InvalidArgument
from .stacks import describe

MOST_FURTHER_CALLS = 64
"""Of a batch whose first call has raised."""

Errors = list[tuple[int, str]]
"""Rows, and why they have no value."""

_is = pa.types


class VectorRows(NamedTuple):
    """Columns of one length."""

    columns: Sequence[pa.Array]
    length: int

    def slice(self, start: int, stop: int) -> VectorRows:
        return VectorRows([column.slice(start, stop - start) for column in self.columns], stop - start)

    def runs(self, constants: Iterable[int]) -> Iterator[tuple[int, VectorRows]]:
        """The rows, cut where one of these columns changes; with the number of each first row."""
        ends = {int(end) for i in constants for end in pc.run_end_encode(self.columns[i]).run_ends.to_numpy()}
        start = 0
        for end in sorted(ends):
            yield start, self if end - start == self.length else self.slice(start, end)
            start = end


class Result:
    """The type of a function's results. address: of its constant schema."""

    def __init__(self, type_: pa.DataType, address: int) -> None:
        self.type = type_
        self.address = address
        self.is_plain = is_plain(type_)


def is_plain(type_: pa.DataType) -> bool:
    """Whether any bytes are values of the type, so that no array of it is broken in its content."""
    return bool(
        _is.is_integer(type_)
        or _is.is_floating(type_)
        or _is.is_boolean(type_)
        or _is.is_date32(type_)
        or _is.is_timestamp(type_)
        or _is.is_duration(type_)
    )


def settled(array: pa.Array, result: Result) -> tuple[pa.Array, Errors]:
    """An array of the result's type, in which rows that are not as the type says are null, and errors."""
    try:
        array.validate()
    except pa.ArrowInvalid as error:  # its buffers are too short, for example
        why = f"returned a broken array: {error}"
        return pa.nulls(len(array), result.type), [(row, why) for row in range(len(array))]
    if result.is_plain:
        return array, []
    schema, exported = array.__arrow_c_array__()
    broken = settle(exported, result.address)
    if not broken:
        return array, []
    errors = [(row, f"returned a broken value: {why}") for row, why in broken]
    return pa.Array._import_from_c_capsule(schema, exported), errors


class Direct:
    """A vectorised function for a host in the same interpreter: arrays go to it and come from it as they are. A round
    trip through C structs costs as much as an operation on 8,192 rows.

    For plain types alone: of the others, what an argument says must be checked before the function sees it.
    """

    def __init__(self, function: Callable[..., Any], split: bool, returns: pa.DataType) -> None:
        self._function = function
        self._split = split
        self._result = Result(returns, 0)

    def __call__(self, columns: Sequence[pa.Array]) -> tuple[pa.Array, Errors]:
        """The values, null where a row failed, and the rows that failed in order. Raises KeyboardInterrupt alone."""
        return BatchCalls(self._function, self._result).run(VectorRows(columns, len(columns[0])), self._split)


class _Wrong(Exception):
    """What is returned is no array of the type. The text is that of the rows' errors."""


class BatchCalls:
    """The calls of a vectorised function for one batch."""

    def __init__(self, function: Callable[..., Any], result: Result) -> None:
        self.constants: dict[int, bool] = {}
        self.function = function
        if isinstance(function, WithConstants):
            self.function, self.constants = function.function, function.nullable
        self.result = result
        self.parts: list[tuple[int, pa.Array]] = []  # results, by their first row
        self.errors: Errors = []
        self.raised: deque[tuple[int, VectorRows, str]] = (
            deque()
        )  # calls that have: first row, rows, why; largest first

    def run(self, rows: VectorRows, split: bool) -> tuple[pa.Array, Errors]:
        """The values, null where a row failed, and the rows that failed in order."""
        if self.constants:
            for first, run in rows.runs(self.constants):
                self.call(first, run)
            self.raised = deque(sorted(self.raised, key=lambda call: -call[1].length))
        else:
            self.call(0, rows)
        left = MOST_FURTHER_CALLS if split else 0
        while self.raised:
            first, rows, why = self.raised.popleft()
            half = rows.length // 2
            if not half or left < 2:
                why = why if rows.length == 1 else f"{why}\n  in a call with {rows.length} rows"
                self.fail(first, rows.length, why)
                continue
            left -= 1
            succeeds = self.call(first, rows.slice(0, half))
            if succeeds and rows.length - half > 1:
                # The row at fault is here: saves a call.
                self.raised.append((first + half, rows.slice(half, rows.length), why))
            else:
                left -= 1
                self.call(first + half, rows.slice(half, rows.length))
        if len(self.parts) == 1:
            return self.parts[0][1], self.errors
        parts = [part for _, part in sorted(self.parts, key=lambda part: part[0])]
        return pa.concat_arrays(parts or [pa.nulls(0, self.result.type)]), sorted(self.errors)

    def call(self, first: int, rows: VectorRows) -> bool:
        """Calls the function with some rows. False: it has raised."""
        arguments = rows.columns
        if self.constants:
            arguments = list(arguments)
            for i, nullable in self.constants.items():
                arguments[i] = arguments[i][0].as_py()
                if arguments[i] is None and not nullable:  # F3
                    self.parts.append((first, pa.nulls(rows.length, self.result.type)))
                    return True
        try:
            result = self.function(*arguments)
        except BaseException as error:  # SystemExit, too, is an error of rows (R2)
            if note_interrupt(error):
                raise
            why = describe(error)
            # User code may keep the exception, but not the arrays (R19): this frame has them, too.
            frames = error.__traceback__
            error.__traceback__ = None if frames is None else frames.tb_next
            traceback.clear_frames(error.__traceback__)
            del frames, arguments
            self.raised.append((first, rows, why))
            return False
        self.keep(first, rows.length, result)
        return True

    def keep(self, first: int, length: int, returned: Any) -> None:
        """Takes what a call has returned. A mistake in it is one of the function, whatever the rows are."""
        array = returned
        broken: Errors = []
        if not isinstance(array, pa.Array) or array.type != self.result.type:
            try:
                array, broken = self.converted(returned)
            except _Wrong as wrong:
                self.fail(first, length, str(wrong))
                return
            except Exception as error:  # of the object, when pyarrow reads it
                self.fail(first, length, f"returned {type(returned).__name__}, which pyarrow cannot read: {error}")
                return
        if len(array) != length:
            self.fail(first, length, f"returned {len(array)} rows for {length}")
            return
        if not broken:
            array, broken = settled(array, self.result)
        self.parts.append((first, array))
        if broken:
            self.errors += [(first + row, why) for row, why in broken]

    def converted(self, returned: Any) -> tuple[pa.Array, Errors]:
        """Anything that is an array, in the result's type. Raises _Wrong."""
        from .casting import cast, constructor  # late: it needs more of pyarrow than most functions do

        type_ = self.result.type
        array = as_array(returned)
        if array is None:
            name = type(returned).__name__
            raise _Wrong(f"returned {name}, not an array of {type_}: return pa.array(..., {constructor(type_)})")
        array.validate(full=True)  # a cast believes what it reads
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        if array.type == type_:
            return array, []
        try:
            fitting = cast(array, pa.field("the result", type_))
        except InvalidArgument:
            raise _Wrong(f"returned an array of {array.type}, not {type_}; cast it, to {constructor(type_)}") from None
        return fitting.array, [(row, f"returned {why}") for row, why in fitting.refused.items()]

    def fail(self, first: int, length: int, why: str) -> None:
        self.parts.append((first, pa.nulls(length, self.result.type)))
        self.errors += [(row, why) for row in range(first, first + length)]


def as_array(returned: Any) -> pa.Array | pa.ChunkedArray | None:
    """An array of any library, in Arrow; None if it is none."""
    if isinstance(returned, pa.Array | pa.ChunkedArray):
        return returned
    if hasattr(returned, "columns") or getattr(returned, "ndim", 1) != 1:
        return None  # a table, a scalar, a matrix
    if hasattr(returned, "__arrow_c_stream__"):
        return pa.chunked_array(returned)
    if any(hasattr(returned, name) for name in ("__arrow_c_array__", "__arrow_array__", "__array__")):
        return pa.array(returned)  # with pandas' nulls, if it is of pandas
    return None
