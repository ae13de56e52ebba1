"""`timeout` of sync functions: what it costs in a worker process, and that it is refused by name elsewhere."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_udf_plugin import BuildError, Plugin, UnsupportedCall, load

SOURCE = """
import os
import threading
import time

import pyarrow as pa

from arroyo_udf_plugin import udf

called = []


time.sleep(0.4)  # the import does not count


@udf(timeout="300ms")
def waits(a: int) -> int:
    with open(os.environ["CALLS"], "a") as calls:
        calls.write(f"{a}\\n")
    if a % 5 == 2:
        threading.Event().wait()
    return a * 10


@udf(timeout=5, vectorized=True)
def all_wait(a: pa.Int64Array) -> pa.Int64Array:
    if a[0].as_py() == 2:
        threading.Event().wait()
    return a


@udf(timeout=float("inf"))
def never(a: int) -> int:
    return a


@udf
def worker(a: int) -> int:
    return os.getpid()
"""
HOW = "timed out (timeout 0.3 s) during {}; its worker process was ended"


@pytest.fixture(scope="module")
def file(build_plugin: Callable[..., Path]) -> Path:
    return build_plugin(SOURCE, name="timed")


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    return tmp_path / "calls"


@pytest.fixture
def plugin(file: Path, calls: Path) -> Iterator[Plugin]:
    with load(file, isolation="process") as plugin:
        yield plugin


def test_the_row_in_hand_times_out_and_no_row_is_called_twice(plugin: Plugin, calls: Path) -> None:
    outcomes = plugin.functions["waits"].outcomes(pa.array(range(9), pa.int64()))
    assert outcomes.field("value").to_pylist() == [None if a % 5 == 2 else a * 10 for a in range(9)]
    assert outcomes.field("outcome").to_pylist() == [2 if a % 5 == 2 else 0 for a in range(9)]
    assert outcomes.field("error").to_pylist() == [
        f"timed.waits, row {a}: {HOW.format('this call')}" if a % 5 == 2 else None for a in range(9)
    ]
    assert [int(line) for line in calls.read_text().split()] == list(range(9))


def test_a_vectorized_function_loses_its_batch(plugin: Plugin) -> None:
    outcomes = plugin.functions["all_wait"].outcomes(pa.array([2, 3], pa.int64()))
    assert outcomes.field("outcome").to_pylist() == [2, 2]
    text = HOW.format("a call for a batch with this row").replace("0.3", "5")
    assert outcomes.field("error").to_pylist() == [f"timed.all_wait, row {row}: {text}" for row in range(2)]
    assert plugin.functions["all_wait"](pa.array([1, 2], pa.int64())).to_pylist() == [1, 2]


def test_the_time_of_a_vectorized_function_begins_after_the_import_of_its_module(
    build_plugin: Callable[..., Path],
) -> None:
    """The import takes longer than a call may, and on a busy machine a call less than that."""
    file = build_plugin(
        """
        import time

        import pyarrow as pa

        from arroyo_udf_plugin import udf

        time.sleep(2.1)  # longer than a call may take

        @udf(timeout=2, vectorized=True)
        def soon(a: pa.Int64Array) -> pa.Int64Array:
            return a
        """,
        name="imported_slowly",
    )
    with load(file, isolation="process") as plugin:
        assert plugin.functions["soon"](pa.array([1, 2], pa.int64())).to_pylist() == [1, 2]


def test_shares_of_a_batch_time_out_each_for_itself(file: Path, calls: Path) -> None:
    rows = [0] * 256 + [2] + [0] * 255
    with load(file, isolation="process", workers=2) as plugin:
        outcomes = plugin.functions["waits"].outcomes(pa.array(rows, pa.int64()))
    assert outcomes.field("outcome").to_pylist() == rows
    assert len(calls.read_text().split()) == len(rows)


def test_the_next_call_has_a_worker(plugin: Plugin) -> None:
    one = pa.array([2], pa.int64())
    before = plugin.functions["worker"](one)[0].as_py()
    assert plugin.functions["waits"].outcomes(one).field("outcome").to_pylist() == [2]
    assert plugin.functions["worker"](one)[0].as_py() != before
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)


ELSEWHERE = ["thread"] if sys.version_info < (3, 13) else ["thread", "subinterpreter"]


@pytest.mark.parametrize("isolation", ELSEWHERE)
def test_elsewhere_it_is_refused_by_name(build_plugin: Callable[..., Path], isolation: str) -> None:
    file = build_plugin(
        """
        from arroyo_udf_plugin import udf

        @udf(timeout=60)
        def limited(a: int) -> int:
            return a

        @udf(timeout=float("inf"))
        def never(a: int) -> int:
            return a
        """,
        name="refused",
    )
    one = pa.array([1], pa.int64())
    with load(file, isolation=isolation) as plugin:  # type: ignore[arg-type]
        assert plugin.functions["never"](one).to_pylist() == [1]
        with pytest.raises(UnsupportedCall, match=r'refused.limited: has a timeout, .*isolation="process"'):
            plugin.functions["limited"](one)


def test_the_host_sees_it(file: Path) -> None:
    functions = load(file).functions
    assert [functions[name].timeout for name in ("waits", "never", "worker")] == [0.3, None, None]
    told = subprocess.run(
        [sys.executable, "-m", "arroyo_udf_plugin.cli", "inspect", str(file), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    described = {function["name"]: function["timeout"] for function in json.loads(told.stdout)["functions"]}
    assert described == {"waits": 0.3, "all_wait": 5.0, "never": None, "worker": None}


def test_a_wrong_timeout_is_refused_when_the_plugin_is_built(build_plugin: Callable[..., Path]) -> None:
    source = """
    from arroyo_udf_plugin import udf

    @udf(timeout=0)
    def f(a: int) -> int:
        return a
    """
    with pytest.raises(BuildError, match="has timeout=0; write seconds above 0"):
        build_plugin(source)
