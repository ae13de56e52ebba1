"""An ended runtime gives back its descriptor at once, without the garbage collector, whatever user code keeps."""

import gc
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from waiting import drained, until

from arroyo_udf_plugin import Function, Runtime, UserCodeError, load

BuildPlugin = Callable[..., Path]

SOURCE = """
import asyncio
from arroyo_udf_plugin import udf

kept = []

@udf(timeout=100)
async def plus(x: int) -> int:
    if x < 0:
        await asyncio.sleep(3600)
    await asyncio.sleep(0)
    return x + 1

@udf(timeout=100)
async def keeps_its_exceptions(x: int) -> int:
    await asyncio.sleep(0)
    try:
        raise ValueError("kept by its own frame, and by the module")
    except ValueError as error:
        mine = error
        kept.append(error)
        raise

class Context:
    async def init(self):
        self.task = asyncio.current_task()

    async def close(self):
        await asyncio.sleep(0)

@udf(timeout=100)
async def with_context(context: Context, x: int) -> int:
    await asyncio.sleep(0)
    return x + 1

class Failing:
    async def init(self):
        self.error = ValueError("kept by the Context")
        raise self.error

@udf
async def fails_to_start(context: Failing, x: int) -> int:
    return x
"""


@pytest.fixture(scope="module")
def functions(build_plugin: BuildPlugin) -> Mapping[str, Function]:
    return load(build_plugin(SOURCE)).functions


@pytest.fixture(autouse=True)
def _no_collector(functions: dict[str, Function]) -> Iterator[None]:
    with functions["plus"].start() as runtime:
        all_drained(runtime)  # the first one makes the loop
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def undrained(runtime: Runtime) -> None:
    runtime.send(0, pa.array([1, 2, 3]))


def all_drained(runtime: Runtime) -> None:
    runtime.send(0, pa.array([1, 2, 3]))
    drained(runtime, 3)


def running(runtime: Runtime) -> None:
    runtime.send(0, pa.array([-1]))
    until(lambda: runtime.statistics().running == 1, "the row")


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("plus", undrained),
        ("plus", all_drained),
        ("plus", running),
        ("keeps_its_exceptions", all_drained),
        ("with_context", all_drained),
    ],
)
def test_a_released_runtime_is_freed(functions: dict[str, Function], name: str, use: Callable[[Runtime], None]) -> None:
    before = descriptors()
    for _ in range(10):
        runtime = functions[name].start()
        use(runtime)
        runtime.release()
    until(lambda: descriptors() <= before, "the descriptors of ten runtimes")


def test_a_runtime_that_has_not_started_is_freed(functions: dict[str, Function]) -> None:
    before = descriptors()
    for _ in range(10):
        with pytest.raises(UserCodeError, match="kept by the Context"):
            functions["fails_to_start"].start()
    until(lambda: descriptors() <= before, "the descriptors of ten runtimes")
