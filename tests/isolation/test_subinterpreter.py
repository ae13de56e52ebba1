"""Which plugins a host may open in subinterpreters, and what the others are told."""

import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_udf_plugin import InvalidArgument, UnsupportedCall, load

BuildPlugin = Callable[..., Path]

PLUS = """
from arroyo_udf_plugin import udf

@udf
def plus(x: int) -> int:
    return x + 1
"""


def test_before_3_13_subinterpreters_are_refused_with_what_to_choose(build_plugin: BuildPlugin) -> None:
    path = build_plugin(PLUS)
    if sys.version_info >= (3, 13):
        with load(path, isolation="subinterpreter") as plugin:
            assert plugin.functions["plus"](pa.array([1])).to_pylist() == [2]
        return
    version = "{}.{}".format(*sys.version_info)
    needs = f'needs Python 3.13 or later, and this is {version}: choose isolation="process" or "thread"'
    with pytest.raises(UnsupportedCall, match=f'isolation="subinterpreter" {needs}'):
        load(path, isolation="subinterpreter")


def test_plugins_in_other_languages_are_refused_by_name(build_plugin: BuildPlugin, examples: Path) -> None:
    path = build_plugin(examples / "flights" / "udf.c")
    with pytest.raises(UnsupportedCall, match='choose isolation="process" or "thread"') as refused:
        load(path, isolation="subinterpreter")
    assert str(path) in str(refused.value)


def test_limits_of_processes_are_not_for_subinterpreters(build_plugin: BuildPlugin) -> None:
    with pytest.raises(InvalidArgument, match='memory_limit is for isolation="process"'):
        load(build_plugin(PLUS), isolation="subinterpreter", memory_limit=1 << 30)
