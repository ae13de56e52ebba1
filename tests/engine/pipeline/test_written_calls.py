"""Calls with constants, in pipelines and of --call; and conditions, in pipelines."""

from __future__ import annotations

from typing import Any

import pytest

from arroyo_udf_plugin.engine.operators.calls import Constant
from arroyo_udf_plugin.engine.pipeline.calls import Written, call_written


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("f(a, 3)", ("a", Constant(3))),
        ("f(-3, +4)", (Constant(-3), Constant(4))),
        ("f(2.5, 1e3)", (Constant(2.5), Constant(1000.0))),
        ("f('a, b', c)", (Constant("a, b"), "c")),
        ("f('it''s')", (Constant("it's"),)),
        ("f('')", (Constant(""),)),
        ("f('\"')", (Constant('"'),)),
        ("f(true, false, null)", (Constant(True), Constant(False), Constant(None))),
        ('f("true", "3", "\'a\'")', ("true", "3", "'a'")),
        ("f(a3, 3a, e5, 1.2.3)", ("a3", "3a", "e5", "1.2.3")),
        ("f()", ()),
    ],
)
def test_arguments(text: str, arguments: tuple[Any, ...]) -> None:
    assert call_written(text) == Written("f", arguments, None)


def test_a_whole_number_is_no_float() -> None:
    written = call_written("f(3, 3.0)")
    assert written.columns is not None
    assert [type(one.value) for one in written.columns if isinstance(one, Constant)] == [int, float]


@pytest.mark.parametrize("text", ["f('a)", "f(a b', c)", "f('a' b)", "f(a,,b)", "f(a,)"])
def test_arguments_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ValueError, match="separate columns and constants by commas"):
        call_written(text)


@pytest.mark.parametrize("text", ['x = f(a, 3) if "wanted, too"', 'x = f(a, 3)if  "wanted, too" '])
def test_a_condition(text: str) -> None:
    assert call_written(text, conditions=True) == Written("f", ("a", Constant(3)), "x", "wanted, too")


def test_a_condition_is_for_pipelines() -> None:
    with pytest.raises(ValueError, match="write FUNCTION"):
        call_written("f(a) if b")
