"""Exceptions as texts of rows, whatever they are made of (R2, F4)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_udf_plugin import Function, load

BuildPlugin = Callable[..., Path]

SOURCE = r"""
from arroyo_udf_plugin import udf

@udf(native=False)
def unreadable(name: str) -> str:
    raise ValueError("cannot parse caf\udce9")

@udf
async def unreadable_async(name: str) -> str:
    raise ValueError("cannot parse caf\udce9")

@udf(native=False)
def surrogate(name: str) -> str:
    return "caf\udce9"

said = []

class Chained(Exception):
    def __str__(self) -> str:
        said.append(self)
        return f"number {self.args[0]}"

def chained(length: int, by_cause: bool) -> Chained:
    last = None
    for number in range(length):
        error = Chained(number)
        if by_cause:
            error.__cause__ = last
        else:
            error.__context__ = last
        last = error
    return last

@udf(native=False)
def long_chain(by_cause: bool) -> int:
    said.clear()
    raise chained(1000, by_cause)

@udf(native=False)
def large_group(size: int) -> int:
    said.clear()
    raise ExceptionGroup("many", [chained(5, True) for _ in range(size)])

@udf(native=False)
def texts_made(unused: int) -> int:
    return len(said)

@udf(native=False)
def kept_chain(unused: int) -> bool:
    from arroyo_udf_plugin.plugin.stacks import describe
    inner, outer = KeyError("inner"), ValueError("outer")
    outer.__cause__ = inner
    hidden = ValueError("hidden")
    hidden.__context__, hidden.__suppress_context__ = inner, True
    texts = describe(outer), describe(hidden)
    assert outer.__cause__ is inner and outer.__suppress_context__
    assert hidden.__cause__ is None and hidden.__context__ is inner and hidden.__suppress_context__
    return texts == ("ValueError: outer\n  from KeyError: 'inner'", "ValueError: hidden")
"""


@pytest.fixture(scope="module")
def functions(build_plugin: BuildPlugin) -> Mapping[str, Function]:
    return load(build_plugin(SOURCE, name="error_texts")).functions


def error(function: Function, column: pa.Array) -> str:
    text = function.outcomes(column)[0]["error"].as_py()
    assert isinstance(text, str)
    return text.removeprefix(f"error_texts.{function.name}, row 0: ")


@pytest.mark.parametrize("name", ["unreadable", "unreadable_async"])
def test_r2_a_text_with_surrogates_keeps_type_and_place(functions: Mapping[str, Function], name: str) -> None:
    first, place = error(functions[name], pa.array(["a"])).splitlines()
    assert first == r"ValueError: cannot parse caf\udce9"
    assert place.startswith(f"  at {name}, ")


def test_f4_a_value_with_surrogates_is_the_error_of_its_row(functions: Mapping[str, Function]) -> None:
    assert error(functions["surrogate"], pa.array(["a"])).startswith("UnicodeEncodeError: 'utf-8' codec can't encode")


@pytest.mark.parametrize("by_cause", [False, True])
def test_r2_of_a_long_chain_only_what_is_shown_becomes_text(functions: Mapping[str, Function], by_cause: bool) -> None:
    lines = error(functions["long_chain"], pa.array([by_cause])).splitlines()
    assert "Chained: number 999" in lines[0]
    assert [line.split()[-1] for line in lines[-10:]] == [str(number) for number in range(998, 988, -1)]
    assert functions["texts_made"](pa.array([0]))[0].as_py() <= 50


def test_r2_of_a_large_group_only_what_is_shown_becomes_text(functions: Mapping[str, Function]) -> None:
    first, *_ = error(functions["large_group"], pa.array([1000])).splitlines()
    assert first == "ExceptionGroup: many (1000 sub-exceptions)"
    assert functions["texts_made"](pa.array([0]))[0].as_py() <= 50


def test_an_exception_keeps_what_it_comes_from(functions: Mapping[str, Function]) -> None:
    assert functions["kept_chain"](pa.array([0])).to_pylist() == [True]


LITTLE_MEMORY = """
import resource, sys
import pyarrow as pa
from arroyo_udf_plugin import load

same = load(sys.argv[1]).functions["size"]
texts = pa.array(["a", "\\u00e9" * (64 << 20)])
assert same(pa.array(["\\u00e9"])).to_pylist() == [1]
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (16 << 20),) * 2)
print(same.outcomes(texts)[1]["error"])
"""


class Known(Exception):
    """Says what it comes from."""

    def __str__(self) -> str:
        return f"because of {self.__cause__!r}"


def test_an_exception_is_described_as_it_is() -> None:
    """Another thread may read it meanwhile, or its own text."""
    from arroyo_udf_plugin.plugin.stacks import describe

    error = Known()
    error.__cause__ = ValueError("no number")
    assert describe(error) == (
        "test_error_texts.Known: because of ValueError('no number')\n  from ValueError: no number"
    )


def test_r2_a_text_for_which_there_is_no_memory_is_not_said_to_be_broken(build_plugin: BuildPlugin) -> None:
    function = "@udf(native=False)\ndef size(text: str) -> int:\n    return len(text)\n"
    source = f"from arroyo_udf_plugin import udf\n{function}"
    plugin = build_plugin(source, name="little_memory")
    done = subprocess.run([sys.executable, "-c", LITTLE_MEMORY, plugin], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "little_memory.size, row 1: argument text: the text cannot be read (MemoryError)\n"
