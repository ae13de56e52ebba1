"""A worker process that ends before it can work is followed by another, a few times."""

import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_udf_plugin import PluginEnvironmentError, load

BuildPlugin = Callable[..., Path]
ONE = pa.array([1], pa.int64())

SOURCE = """
import os
import signal
import sys

from arroyo_udf_plugin import udf

if "STARTS" in os.environ:  # in a worker: a batch has come
    with open(os.environ["STARTS"], "a") as starts:
        starts.write("x")
    if os.path.getsize(os.environ["STARTS"]) <= int(os.environ["DEATHS"]):
        os.kill(os.getpid(), signal.SIGKILL)


@udf
def same(a: int) -> int:
    return a


@udf
async def later(a: int) -> int:
    return a
"""


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Path]:
    """Makes the first workers kill themselves at once; answers a file with a letter for each start."""

    def dies(times: int) -> Path:
        starts, program = tmp_path / "starts", tmp_path / "python"
        starts.touch()
        program.write_text(
            f'#!/bin/sh\nprintf x >> {starts}\n[ "$(wc -c < {starts})" -gt {times} ] || kill -KILL $$\n'
            f'exec {sys.executable} "$@"\n'
        )
        program.chmod(0o755)
        monkeypatch.setenv("ARROYO_UDF_PYTHON", str(program))
        return starts

    return dies


@pytest.fixture(scope="module")
def file(build_plugin: BuildPlugin) -> Path:
    return build_plugin(SOURCE, name="start")


@pytest.mark.parametrize("function", ["same", "later"])
def test_a_worker_that_is_killed_while_it_starts_costs_nothing(
    file: Path, python: Callable[[int], Path], function: str
) -> None:
    starts = python(3)
    with load(file, isolation="process") as plugin:
        assert plugin.functions[function](ONE).to_pylist() == [1]
    assert starts.read_text() == "x" * 4


def test_workers_that_never_start_are_an_error_of_the_call_that_says_why(
    file: Path, python: Callable[[int], Path]
) -> None:
    starts = python(1000)
    why = r"same: no worker process: .* was killed by signal 9 \(SIGKILL\): it ended before it was ready"
    with load(file, isolation="process") as plugin, pytest.raises(PluginEnvironmentError, match=why):
        plugin.functions["same"](ONE)
    assert starts.read_text() == "x" * 5


def test_a_worker_that_ends_while_another_starts_is_one_of_those_tries(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two lives, and takes longer to start than the other one takes to end."""
    starts, first, program = tmp_path / "starts", tmp_path / "first", tmp_path / "python"
    program.write_text(
        f"#!/bin/sh\nprintf x >> {starts}\nmkdir {first} 2> /dev/null || kill -KILL $$\n"
        f'until [ "$(wc -c < {starts})" -gt 1 ]; do :; done\nexec {sys.executable} "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("ARROYO_UDF_PYTHON", str(program))
    rows = pa.array(range(1_000), pa.int64())
    with load(file, isolation="process", workers=2) as plugin, pytest.raises(PluginEnvironmentError, match="SIGKILL"):
        plugin.functions["same"](rows)
    assert starts.read_text() == "x" * (1 + 5)


def test_a_module_that_kills_its_worker_costs_the_row_in_hand_and_no_other(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The module is imported in the first call, which is the row's."""
    monkeypatch.setenv("STARTS", str(tmp_path / "starts"))
    monkeypatch.setenv("DEATHS", "2")
    with load(file, isolation="process") as plugin:
        outcomes = plugin.functions["same"].outcomes(pa.array([1, 2, 3, 4], pa.int64()))
    assert outcomes.field("value").to_pylist() == [None, None, 3, 4]
    assert all("SIGKILL" in text for text in outcomes.field("error").to_pylist()[:2])
