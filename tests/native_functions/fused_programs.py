"""Random calls of native functions that take each other's values, and the same calls one after the other."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from random_functions import rows

from arroyo_udf_plugin import Function
from arroyo_udf_plugin.host.fused import Fused, FusedCall


@dataclass(frozen=True)
class Program:
    """columns: what the calls take, beside each other's values."""

    calls: Sequence[FusedCall]
    columns: Sequence[pa.Field]

    def rows(self, count: int, choices: random.Random, extreme: float) -> list[pa.Array]:
        return [rows(field, count, choices, extreme) for field in self.columns]

    def check(self, columns: Sequence[pa.Array], choices: random.Random) -> tuple[int, int]:
        """Makes the calls in both ways. How many rows there were, and how many have passed."""
        before = counted(self.calls)
        passed = Fused(self.calls).run(columns)
        n_rows = len(columns[0])
        if passed is None:
            assert counted(self.calls) == before
            return n_rows, 0
        is_deferred = pa.array([False] * n_rows) if passed.deferred is None else passed.deferred
        n_passed = n_rows - pc.sum(is_deferred).as_py()
        left = pc.indices_nonzero(pc.invert(is_deferred))
        given = [column.take(left) for column in columns]
        each = {call.function.name: 0 for call in self.calls}
        for call in self.calls:
            each[call.function.name] += n_passed if call.condition is None else given[call.condition].true_count
        assert counted(self.calls) == {name: (n + each[name], m) for name, (n, m) in before.items()}
        if passed.deferred is not None:
            assert n_passed < n_rows
            for row in choices.sample(pc.indices_nonzero(is_deferred).to_pylist(), min(9, n_rows - n_passed)):
                assert self.deferred([column.slice(row, 1) for column in columns]), f"row {row} need not be deferred"
        assert not self.deferred(given), "a row should be deferred"
        expected = one_by_one(self.calls, given)
        assert [values.null_count for values in expected] == list(passed.nulls)
        wanted = [values for call, values in zip(self.calls, expected, strict=True) if call.is_wanted]
        for found, should_be in zip(passed.values, wanted, strict=True):
            found.validate(full=True)
            assert found.filter(is_deferred).null_count == n_rows - n_passed
            assert bits(found.take(left)).equals(bits(should_be))
        return n_rows, n_passed

    def deferred(self, columns: Sequence[pa.Array]) -> int:
        """How many rows of single calls are deferred."""
        before = counted(self.calls)
        one_by_one(self.calls, columns)
        return sum(n for _, n in counted(self.calls).values()) - sum(n for _, n in before.values())


def calm(functions: Iterable[Function], choices: random.Random) -> list[Function]:
    """Those that defer few ordinary rows: calls of others would rarely pass."""
    found = []
    for function in functions:
        function.outcomes(*(rows(field, 64, choices, 0.0) for field in function.arguments))
        if (function.native_rows() or (0, 64))[1] < 16:
            found.append(function)
    return found


def program(functions: Sequence[Function], choices: random.Random, n_calls: int) -> Program:
    calls: list[FusedCall] = []
    columns: list[pa.Field] = []
    for number in range(n_calls):
        function, arguments = choices.choice(functions), []
        for field in function.arguments:
            makers = [-1 - place for place, call in enumerate(calls) if call.function.returns == field.type]
            same = [place for place, column in enumerate(columns) if column.type == field.type]
            chosen = makers if makers and choices.random() < 0.7 else same if choices.random() < 0.5 else []
            if not chosen:
                columns.append(field)
                chosen = [len(columns) - 1]
            arguments.append(choices.choice(chosen))
        condition = None
        if choices.random() < 0.2:
            columns.append(pa.field("condition", pa.bool_()))
            condition = len(columns) - 1
        calls.append(FusedCall(function, arguments, number == n_calls - 1 or choices.random() < 0.3, condition))
    return Program(calls, columns)


def counted(calls: Sequence[FusedCall]) -> dict[str, tuple[int, int]]:
    return {call.function.name: call.function.native_rows() or (0, 0) for call in calls}


def one_by_one(calls: Sequence[FusedCall], columns: Sequence[pa.Array]) -> list[pa.Array]:
    """The values of all calls; null where a row fails."""
    made: list[pa.Array] = []
    for call in calls:
        given = [columns[place] if place >= 0 else made[-1 - place] for place in call.arguments]
        if call.condition is None:
            made.append(call.function.outcomes(*given).field("value"))
            continue
        is_met = pc.fill_null(columns[call.condition], False)
        values = call.function.outcomes(*(column.filter(is_met) for column in given)).field("value")
        made.append(pc.replace_with_mask(pa.nulls(len(is_met), values.type), is_met, values))
    return made


def bits(values: pa.Array) -> pa.Array:
    """Floats as their bits, because 0.0 is equal to -0.0."""
    return values.view(pa.int64()) if values.type == pa.float64() else values
