"""A library that another build replaces while its plugin is loaded: a worker never runs another function (I3)."""

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_udf_plugin import Plugin, PluginEnvironmentError, load

BuildPlugin = Callable[..., Path]
PRICES = pa.array([1, 2], pa.int64())

PYTHON = """
import os
from arroyo_udf_plugin import udf
{others}
@udf
def price(a: int) -> int:
    return {value}

@udf
def worker(a: int) -> int:
    return os.getpid()
"""
DISCOUNT = """
@udf
def discount(a: int) -> int:
    return -a
"""
RUST = """
use arroyo_udf_plugin::udf;
{others}
#[udf]
fn price(a: i64) -> i64 {{ {value} }}

#[udf]
fn worker(_a: i64) -> i64 {{ i64::from(std::process::id()) }}
"""
RUST_DISCOUNT = """
#[udf]
fn discount(a: i64) -> i64 { -a }
"""
SOURCES = [(".py", PYTHON, DISCOUNT), (".rs", RUST, RUST_DISCOUNT)]


def kill_worker(plugin: Plugin) -> None:
    process = plugin.functions["worker"](PRICES)[0].as_py()
    end = os.pidfd_open(process)
    os.kill(process, signal.SIGKILL)
    os.close(end)


@pytest.mark.parametrize(("suffix", "source", "discount"), SOURCES, ids=["Python", "Rust"])
@pytest.mark.parametrize("others", [True, False], ids=["other functions", "another value"])
def test_the_next_worker_runs_the_library_that_the_host_has_loaded(
    build_plugin: BuildPlugin, tmp_path: Path, suffix: str, source: str, discount: str, others: bool
) -> None:
    first = build_plugin(source.format(others="", value="a + 1"), suffix=suffix, name="prices")
    second = build_plugin(source.format(others=discount * others, value="a + 2"), suffix=suffix, name="prices")
    library, other = tmp_path / "prices.so", tmp_path / "other.so"
    shutil.copy(first, library)
    shutil.copy(second, other)
    with load(library, isolation="process") as plugin:
        assert plugin.functions["price"](PRICES).to_pylist() == [2, 3]
        other.rename(library)
        kill_worker(plugin)
        assert plugin.functions["price"](PRICES).to_pylist() == [2, 3]
        library.unlink()
        kill_worker(plugin)
        assert plugin.functions["price"](PRICES).to_pylist() == [2, 3]
    shutil.copy(second, library)
    with load(library, isolation="process") as plugin:
        assert plugin.functions["price"](PRICES).to_pylist() == [3, 4]


def test_a_library_that_is_written_over_in_its_place_is_refused(build_plugin: BuildPlugin, tmp_path: Path) -> None:
    """Of the same file there is nothing else to open. Both libraries have their data in the same places:
    the host still reads what is mapped."""
    library = tmp_path / "prices.so"
    shutil.copy(build_plugin(PYTHON.format(others="", value="a + 1"), name="prices"), library)
    second = build_plugin(PYTHON.format(others="", value="a + 2"), name="prices")
    with load(library, isolation="process") as plugin:
        prices = plugin.functions["price"]
        code = second.read_bytes()
        with library.open("r+b") as written:  # not truncated before, because the host still runs it
            written.write(code)
            written.truncate(len(code))
        with pytest.raises(PluginEnvironmentError, match="another library than the one that the host has loaded"):
            prices(PRICES)
