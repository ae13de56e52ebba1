"""Decorators between @udf and a function: allowed if they keep its signature, else refused at build by name (F5)."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_udf_plugin import BuildError, Plugin, build, load

BuildPlugin = Callable[..., Path]

HEAD = """\
import asyncio, functools
from arroyo_udf_plugin import udf

def counted(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper

def awaited(function):
    @functools.wraps(function)
    async def wrapper(*args):
        await asyncio.sleep(0)
        return await function(*args)
    return wrapper

def in_thread(function):
    @functools.wraps(function)
    async def wrapper(*args):
        return await asyncio.to_thread(function, *args)
    return wrapper

def hiding(function):
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper

def with_two(function):
    @functools.wraps(function)
    def wrapper(x, y):
        return function(x)
    return wrapper

def says_otherwise(function):
    import inspect
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)
    wrapper.__signature__ = inspect.Signature()
    return wrapper

def noting(function):
    @functools.wraps(function)
    def wrapper(x):
        return function(x)
    wrapper.function = wrapper.definition = function
    wrapper.is_async = wrapper.starts = wrapper.vectorized = True
    return wrapper

class Context:
    async def init(self): self.one = 1
"""
GOOD = """
@udf
@counted
@counted
def plus(x: int, y: int | None) -> int:
    "Adds."
    return x + (y or 0)

@udf
@functools.cache
def cached(x: int) -> int: return x + 1

@udf(ordered=True)
@awaited
async def later(context: Context, x: int) -> int: return x + context.one

@udf
@in_thread
def threaded(x: int) -> int: return x + 1

@udf
@noting
def noted(x: int) -> int: return x + 1
"""
REFUSED = {
    "@hiding\ndef f(x: int) -> int: return x": "the decorator 'hiding' below @udf hides the function's signature",
    "@with_two\ndef f(x: int) -> int: return x": "'f' has the decorator 'with_two', which changes its parameters",
    "@says_otherwise\ndef f(x: int) -> int: return x": "the decorator 'says_otherwise', which changes its parameters",
    "@counted\nasync def f(x: int) -> int: return x": "and its decorator 'counted' makes a `def` of it; write",
    "@functools.cache\nasync def f(x: int) -> int: return x": "its decorator '_lru_cache_wrapper' makes a `def` of it",
    "@counted\ndef f(x: int) -> int: yield x": "is a generator",
}


@pytest.fixture(scope="module")
def plugin(build_plugin: BuildPlugin) -> Plugin:
    return load(build_plugin(HEAD + GOOD, name="decorated"))


def test_a_decorator_that_keeps_the_signature_does_not_break_the_plugin(plugin: Plugin) -> None:
    plus = plugin.functions["plus"]
    assert plus.documentation == "Adds."
    assert plus(pa.array([1, 2, None]), pa.array([10, None, 10])).to_pylist() == [11, 2, None]
    assert plugin.functions["cached"](pa.array([1, 1, 2])).to_pylist() == [2, 2, 3]


def test_attributes_that_a_decorator_sets_do_not_confuse_udf(plugin: Plugin) -> None:
    """Names that @udf has for itself, such as `function` and `is_async`."""
    noted = plugin.functions["noted"]
    assert (noted.kind, noted.vectorized) == ("sync", False)
    assert noted(pa.array([1, 2])).to_pylist() == [2, 3]


@pytest.mark.parametrize("name", ["later", "threaded"])
def test_an_async_decorator_makes_an_async_function(plugin: Plugin, name: str) -> None:
    with plugin.functions[name].start() as runtime:
        runtime.send(0, pa.array([1, 2]))
        runtime.stop()
        assert pa.Table.from_batches(iter(runtime.drain_results, None))["value"].to_pylist() == [2, 3]


@pytest.mark.parametrize("function", REFUSED)
def test_a_decorator_that_changes_the_signature_is_refused_by_name(tmp_path: Path, function: str) -> None:
    source = tmp_path / "mine.py"
    source.write_text(f"{HEAD}@udf\n{function}\n")
    with pytest.raises(BuildError) as caught:
        build(source)
    assert REFUSED[function] in str(caught.value)
    assert caught.value.file == str(source)
    assert caught.value.line is not None
    assert caught.value.line > HEAD.count("\n")
