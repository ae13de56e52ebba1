"""Calls of native functions that take each other's values, in one pass: the same as one after the other."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from fused_programs import calm, program
from random_functions import Program as Source

from arroyo_udf_plugin import Function, InvalidArgument, build, load
from arroyo_udf_plugin.host.fused import Fused, FusedCall, can_be_fused

SOURCE = """
from arroyo_udf_plugin import udf

@udf
def inverse(x: int) -> float:
    return 1 / x

@udf
def known(x: float | None) -> bool:
    return x is not None

@udf
def some(x: int) -> int | None:
    return x if x > 0 else None

@udf
def plus(x: int, y: int) -> int:
    return x + y

@udf
def word(x: int) -> str:
    return f"n{x}"

@udf
def twice(text: str) -> str:
    return text + text

@udf
def length(text: str | None) -> int:
    return -1 if text is None else len(text)

@udf(native=False)
def python(x: int) -> int:
    return x
"""
BuildPlugin = Callable[..., Path]


@pytest.fixture(scope="module")
def functions(build_plugin: BuildPlugin) -> dict[str, Function]:
    return dict(load(build_plugin(SOURCE, name="fused")).functions)


@pytest.mark.parametrize("seed", range(6))
def test_random_calls(seed: int, tmp_path: Path) -> None:
    """Of random functions, over several parts of a batch, at any offset."""
    choices = random.Random(seed)
    (tmp_path / "prog.py").write_text(Source(random.Random(seed)).source(20))
    functions = calm(load(build(tmp_path / "prog.py")).functions.values(), choices)
    n_rows = n_passed = 0
    for _ in range(150):
        some = program(functions, choices, choices.randint(2, 4))
        count = choices.choice([1, 63, 64, 511, 512, 513, 1500])
        columns = some.rows(count + 77, choices, choices.choice([0.0, 0.01, 0.1]))
        rows, passed = some.check([column.slice(77, count) for column in columns], choices)
        n_rows, n_passed = n_rows + rows, n_passed + passed
    assert 0.1 < n_passed / n_rows < 0.98, "rows must try both ways"


def test_deferred_rows_have_no_values(functions: dict[str, Function]) -> None:
    calls = [FusedCall(functions["inverse"], (0,), True), FusedCall(functions["known"], (-1,), True)]
    passed = Fused(calls).run([pa.array([1, 0, None, 4])])
    assert passed is not None
    assert [values.to_pylist() for values in passed.values] == [[1.0, None, None, 0.25], [True, None, False, True]]
    assert passed.deferred is not None
    assert passed.deferred.to_pylist() == [False, True, False, False]
    assert passed.nulls == [1, 0]
    assert functions["inverse"].native_rows() == functions["known"].native_rows() == (3, 0)


def test_nulls_on_the_way(functions: dict[str, Function]) -> None:
    """A call that answers null, one that takes none, and one that does."""
    calls = [
        FusedCall(functions["some"], (0,), False),
        FusedCall(functions["plus"], (-1, 0), False),
        FusedCall(functions["word"], (-2,), False),
        FusedCall(functions["length"], (-3,), True),
    ]
    given = [5, -5, None, 99, 0] * 300
    passed = Fused(calls).run([pa.array(given)])
    assert passed is not None
    assert passed.values[0].to_pylist() == [len(f"n{2 * x}") if x and x > 0 else -1 for x in given]
    assert passed.nulls == [900, 900, 900, 0]
    assert passed.deferred is None


def test_texts_of_any_length(functions: dict[str, Function]) -> None:
    """Each part of a batch begins with an empty buffer, which grows."""
    calls = [FusedCall(functions["twice"], (0,), False), FusedCall(functions["twice"], (-1,), True)]
    given = ["" if n % 3 == 0 else None if n % 7 == 0 else "xé"[n % 2] * (n % 1200) for n in range(2000)]
    passed = Fused(calls).run([pa.array(given)])
    assert passed is not None
    assert passed.values[0].to_pylist() == [text and text * 4 for text in given]


def test_all_rows_are_deferred(functions: dict[str, Function]) -> None:
    """If most are, native results are dropped, and nothing is counted."""
    calls = [FusedCall(functions["inverse"], (0,), False), FusedCall(functions["known"], (-1,), True)]
    before = [call.function.native_rows() for call in calls]
    assert Fused(calls).run([pa.array([0] * 1000)]) is None
    assert Fused(calls).run([pa.array([0, 0])]) is None
    assert Fused(calls).run([pa.array([1] * 3000 + [0] * 9000)]) is None
    assert [call.function.native_rows() for call in calls] == before


def test_deferred_rows_of_early_parts_are_few_of_all(functions: dict[str, Function]) -> None:
    """70 rows of the first 512 are not most of the batch."""
    given = [0 if n < 70 else n for n in range(5000)]
    for first in ("inverse", "plus"):
        arguments = (0,) if first == "inverse" else (0, 0)
        inverse = FusedCall(functions["inverse"], (0,), True)
        passed = Fused([FusedCall(functions[first], arguments, True), inverse]).run([pa.array(given)])
        assert passed is not None
        assert passed.deferred is not None
        assert passed.deferred.true_count == 70


def test_other_functions_cannot_be_fused(functions: dict[str, Function], build_plugin: BuildPlugin) -> None:
    other = load(build_plugin(SOURCE, name="other")).functions["plus"]
    again = load(build_plugin(SOURCE, name="fused"), validate=True).functions["plus"]
    isolated = load(build_plugin(SOURCE, name="fused"), isolation="process")
    with isolated:
        assert not can_be_fused(isolated.functions["plus"])
    assert can_be_fused(functions["plus"], again)
    assert not can_be_fused(functions["plus"], other)
    assert [name for name, function in functions.items() if not can_be_fused(function)] == ["python"]
    with pytest.raises(InvalidArgument, match="calls in one pass must be of native functions of one library"):
        Fused([FusedCall(functions["plus"], (0, 0), False), FusedCall(other, (-1, -1), True)])


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ((1,), "an argument is neither a column nor an earlier call"),
        ((-2,), "an argument is neither a column nor an earlier call"),
        ((-1,), "an argument has another type"),
    ],
)
def test_wrong_arguments_are_refused(functions: dict[str, Function], arguments: tuple[int], wrong: str) -> None:
    calls = [FusedCall(functions["word"], (0,), False), FusedCall(functions["inverse"], arguments, True)]
    with pytest.raises(InvalidArgument, match=wrong):
        Fused(calls).run([pa.array([1])])
