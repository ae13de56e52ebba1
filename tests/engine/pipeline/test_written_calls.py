"""Calls with constants, in pipelines and of --call; and conditions, in pipelines."""

from __future__ import annotations

from typing import Any

import pytest

from arroyo_udf_plugin.engine.operators.calls import ConstantArgument
from arroyo_udf_plugin.engine.pipeline.calls import WrittenCall, call_written


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("f(a, 3)", ("a", ConstantArgument(3))),
        ("f(-3, +4)", (ConstantArgument(-3), ConstantArgument(4))),
        ("f(2.5, 1e3)", (ConstantArgument(2.5), ConstantArgument(1000.0))),
        ("f('a, b', c)", (ConstantArgument("a, b"), "c")),
        ("f('it''s')", (ConstantArgument("it's"),)),
        ("f('')", (ConstantArgument(""),)),
        ("f('\"')", (ConstantArgument('"'),)),
        ("f(true, false, null)", (ConstantArgument(True), ConstantArgument(False), ConstantArgument(None))),
        ('f("true", "3", "\'a\'")', ("true", "3", "'a'")),
        ("f(a3, 3a, e5, 1.2.3)", ("a3", "3a", "e5", "1.2.3")),
        ("f()", ()),
    ],
)
def test_arguments(text: str, arguments: tuple[Any, ...]) -> None:
    assert call_written(text) == WrittenCall("f", arguments, None)


def test_a_whole_number_is_no_float() -> None:
    written = call_written("f(3, 3.0)")
    assert written.columns is not None
    assert [type(one.value) for one in written.columns if isinstance(one, ConstantArgument)] == [int, float]


@pytest.mark.parametrize("text", ["f('a)", "f(a b', c)", "f('a' b)", "f(a,,b)", "f(a,)"])
def test_arguments_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ValueError, match="separate columns and constants by commas"):
        call_written(text)


@pytest.mark.parametrize("text", ['x = f(a, 3) if "wanted, too"', 'x = f(a, 3)if  "wanted, too" '])
def test_a_condition(text: str) -> None:
    assert call_written(text, conditions=True) == WrittenCall("f", ("a", ConstantArgument(3)), "x", "wanted, too")


def test_a_condition_is_for_pipelines() -> None:
    with pytest.raises(ValueError, match="write FUNCTION"):
        call_written("f(a) if b")
