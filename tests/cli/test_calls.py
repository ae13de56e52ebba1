"""What --args and --call mean."""

from __future__ import annotations

import click
import pytest

from arroyo_udf_plugin.cli.calls import call_written, columns_written
from arroyo_udf_plugin.engine.operators.calls import ConstantArgument
from arroyo_udf_plugin.engine.pipeline.calls import WrittenCall


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b", ("a", "b")),
        (" miles , air time,c ", ("miles", "air time", "c")),
        ('"a, b",c', ("a, b", "c")),
        ('"say ""hi""" , " d "', ('say "hi"', " d ")),
        ("speed (mph)", ("speed (mph)",)),
        ("ä=1", ("ä=1",)),
        ("", ()),
    ],
)
def test_columns(text: str, names: tuple[str, ...]) -> None:
    assert columns_written(text, "--args") == names


@pytest.mark.parametrize("text", ["a,", ",a", "a,,b", '"a', '"a"b', 'a"b"', ","])
def test_columns_that_cannot_be_read(text: str) -> None:
    with pytest.raises(click.UsageError, match=r"--args .*: separate columns by commas"):
        columns_written(text, "--args")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("mph", WrittenCall("mph", None, None)),
        ("mph()", WrittenCall("mph", (), None)),
        ("mph(miles, minutes)", WrittenCall("mph", ("miles", "minutes"), None)),
        (" speed=mph( miles,minutes ) ", WrittenCall("mph", ("miles", "minutes"), "speed")),
        ("my speed = mph(air (time))", WrittenCall("mph", ("air (time)",), "my speed")),
        ('"a = b" = mph("x, y", z)', WrittenCall("mph", ("x, y", "z"), "a = b")),
        ("speed = mph", WrittenCall("mph", None, "speed")),
    ],
)
def test_calls(text: str, written: WrittenCall) -> None:
    assert call_written(text) == written


@pytest.mark.parametrize("text", ["", "mph(", "= mph(a)", "a b", "x = y = f(a)", "mph(a))b", "1f(a)"])
def test_calls_that_cannot_be_read(text: str) -> None:
    with pytest.raises(click.UsageError, match=r"--call .*: write FUNCTION, FUNCTION\(COLUMN, \.\.\.\) or NAME = "):
        call_written(text)


def test_a_call_may_have_constants() -> None:
    text = "x = f(pop, 2, -1.5, 'it''s', null, true, \"2\")"
    constants = (
        ConstantArgument(2),
        ConstantArgument(-1.5),
        ConstantArgument("it's"),
        ConstantArgument(None),
        ConstantArgument(True),
    )
    assert call_written(text) == WrittenCall("f", ("pop", *constants, "2"), "x")
