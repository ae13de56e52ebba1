"""A function that is called for a few rows, in a child process: each row's outcome is told as soon as it has ended.

Rows of an async function are sent together; those of others are called one by one. All rows of an aggregate are one
group, with one value.

Guarantees: a row that fails keeps no other one from being called. If a value does not fit, or the function cannot
start, no row is called. When the time is over, the process ends. Then, and at a crash, the stacks of its threads are
in the file `STACK`.
"""

from __future__ import annotations

import ctypes
import faulthandler
import io
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from ...abi import ERROR, VALUE
from ...engine.connectors.json_types import check, typed
from ...errors import ArroyoUdfError, InvalidArgument, WouldBlock
from ...host.aggregate import Aggregate
from ...host.function import Function
from ...host.library import load
from ...host.policy import OUTCOMES
from .artifacts import verified
from .messages import STACK, FunctionKind, Outcome, Tried, TriedFunction, TriedRow, TryEnded, TryRequest
from .readable import readable

_MOST_VALUES = 8 << 20
"""Characters of the values and errors that are told, together."""
_MOST_ERROR = 1000
"""Characters of each error behind them."""

_Columns = Sequence[pa.Array]


def tried(asked: TryRequest, tell: Callable[[Tried], None]) -> None:
    assert isinstance(sys.stdout, io.TextIOWrapper)
    sys.stdout.reconfigure(line_buffering=True)  # what was printed before a crash is kept
    with Path(STACK).open("w") as stack:
        faulthandler.enable(stack)
        errors = _tried(asked, tell, stack)
        ctypes.CDLL(None).fflush(None)  # what a function in C has printed
        tell(TryEnded(errors=errors))
        faulthandler.cancel_dump_traceback_later()
        faulthandler.disable()


def _tried(asked: TryRequest, tell: Callable[[Tried], None], stack: io.TextIOWrapper) -> list[str]:
    """What is wrong with the arguments, or the function's start or end."""
    try:
        library = verified(Path(asked.plugin.library), asked.plugin.sha256)
        function = load(library, validate=True).functions[asked.plugin.name]
        tell(_described(function))
        faulthandler.dump_traceback_later(asked.seconds, file=stack, exit=True)
        columns, errors = _columns(function, asked.rows)
        if errors:
            return errors
        left = _MOST_VALUES
        for row in _called(function, columns, len(asked.rows)):
            left -= len(row.model_dump_json())
            tell(row if left >= 0 else _without_value(row))
    except ArroyoUdfError as error:
        return [str(error)]
    return []


def _described(function: Function) -> TriedFunction:
    kind = "vectorized" if function.kind == "sync" and function.vectorized else function.kind
    return TriedFunction(
        function=cast("FunctionKind", kind),
        arguments=[(field.name, str(field.type)) for field in function.arguments],
        returns=str(function.returns),
    )


def _without_value(row: TriedRow) -> TriedRow:
    error = "its value is left out: all are too large" if row.error is None else row.error[:_MOST_ERROR]
    return row.model_copy(update={"value": None, "error": error})


def _columns(function: Function, rows: Sequence[Sequence[Any]]) -> tuple[_Columns, list[str]]:
    """The arguments; or what is wrong with them."""
    fields = list(function.arguments)
    takes = f"{function.name} takes {len(fields)} arguments ({', '.join(field.name for field in fields)})"
    lengths = enumerate(map(len, rows), 1)
    if errors := [f"row {row}: {takes}, but got {length}" for row, length in lengths if length != len(fields)]:
        return [], errors
    columns: list[pa.Array] = []
    wrong: list[tuple[int, str]] = []
    for place, field in enumerate(fields):
        try:
            check(field.type)
        except InvalidArgument as error:
            return [], [f"argument {field.name}: {error}"]
        done = typed([row[place] for row in rows], field.type)
        columns.append(done.array)
        wrong += [(at, f"argument {field.name}{where}: {why}") for at, (where, why) in done.refused.items()]
    wrong.sort(key=lambda one: one[0])
    return columns or [pa.nulls(len(rows))], [f"row {at + 1}, {text}" for at, text in wrong]


# ---- Calls -----------------------------------------------------------------------------------------------------------


def _called(function: Function, columns: _Columns, rows: int) -> Iterator[TriedRow]:
    """Raises ArroyoUdfError if the function cannot start, or end."""
    if isinstance(function, Aggregate):
        return _of_all(function, columns)
    return _together(function, columns, rows) if function.kind == "async" else _one_by_one(function, columns, rows)


def _one_by_one(function: Function, columns: _Columns, rows: int) -> Iterator[TriedRow]:
    if not function.vectorized:  # imports the module, which is no row's time; a vectorized function would be called
        function.outcomes(*(column.slice(0, 0) for column in columns))
    for row in range(rows):
        began = time.perf_counter_ns()
        try:
            results = function.outcomes(*(column.slice(row, 1) for column in columns))
        except ArroyoUdfError as error:
            yield _failed(row, function, error, began)
        else:
            yield _row(row, function, pa.RecordBatch.from_struct_array(results), began)


def _together(function: Function, columns: _Columns, rows: int) -> Iterator[TriedRow]:
    """Without order, so that each row is told when it has ended; else as the author has chosen."""
    assert function.options is not None
    assert function.options.max_attempts is not None
    with function.start(ordered=False, max_attempts=function.options.max_attempts) as runtime:
        began: dict[int, int] = {}
        ended = 0
        while ended < rows:
            try:
                for row in range(len(began), rows):
                    at = time.perf_counter_ns()
                    runtime.send_nowait(row, *(column.slice(row, 1) for column in columns))
                    began[row] = at
            except WouldBlock:
                pass  # there is room when some have ended
            runtime.wait()
            if (results := runtime.drain_results()) is None:
                continue
            for place, row in enumerate(results.column("id").to_pylist()):
                yield _row(row, function, results.slice(place, 1), began[row])
            ended += results.num_rows
        runtime.stop()


def _of_all(function: Aggregate, columns: _Columns) -> Iterator[TriedRow]:
    began = time.perf_counter_ns()
    try:
        value = function(*columns)
    except ArroyoUdfError as error:
        yield _failed(0, function, error, began)
    else:
        yield _row(0, function, pa.record_batch([pa.repeat(value, 1)], ["value"]), began)


# ---- Outcomes --------------------------------------------------------------------------------------------------------


def _row(row: int, function: Function, result: pa.RecordBatch, began: int) -> TriedRow:
    """result: one row, as a function's outcomes or a runtime's results have it."""
    micros = _micros(began)
    fields = {"outcome": VALUE, "error": None} | result.drop_columns(["value"]).to_pylist()[0]
    if fields["outcome"] == VALUE:
        try:
            (told,) = readable(result.select(["value"]))
        except ArroyoUdfError as error:
            return TriedRow(row=row, outcome="value", error=str(error), micros=micros)
        return TriedRow(row=row, outcome="value", value=told["value"], micros=micros)
    outcome = cast("Outcome", OUTCOMES[fields["outcome"] if fields["outcome"] < len(OUTCOMES) else ERROR])
    return TriedRow(row=row, outcome=outcome, error=_text(fields["error"], function), micros=micros)


def _failed(row: int, function: Function, error: ArroyoUdfError, began: int) -> TriedRow:
    return TriedRow(row=row, outcome="error", error=_text(str(error), function), micros=_micros(began))


def _text(error: str | None, function: Function) -> str:
    """Without the function, or the step of an aggregate, and the row, at the beginning."""
    return re.sub(rf"^{re.escape(function.where)}(\.\w+)?, row \d+: ", "", error or "no text")


def _micros(began: int) -> int:
    return (time.perf_counter_ns() - began) // 1000
