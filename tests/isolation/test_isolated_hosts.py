"""Hosts in C and Rust open workers by the extension "isolation/1": the example hosts, with an empty environment."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from arroyo_udf_plugin import build

ROOT = Path(__file__).resolve().parents[2]
SOURCE = """
import threading
from arroyo_udf_plugin import udf

@udf
def more(x: int) -> int:
    if x == 1100:
        raise ValueError("not this one")
    return x + 1

@udf(ordered=True)
async def later(x: int) -> int:
    return x + 1
"""
RUST = """
use arroyo_udf_plugin::udf;

#[udf]
fn more(x: i64) -> Result<i64, &'static str> {
    if x == 1100 { Err("not this one") } else { Ok(x + 1) }
}
"""
VALUES = ["1001", "null", "null", "1301", "1401"]
MODES = ["process", *(["subinterpreter"] if sys.version_info >= (3, 13) else [])]


@pytest.fixture(scope="module", params=["c", "rust"])
def host(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if request.param == "rust":
        target = ROOT / "build" / "example_host"
        command = ["cargo", "build", "--quiet", "--locked", "--target-dir", str(target)]
        subprocess.run(command, cwd=ROOT / "examples" / "host" / "rust", check=True)
        return target / "debug" / "arroyo-udf-example-host"
    program = tmp_path_factory.mktemp("host") / "host"
    include, source = ROOT / "native" / "include", ROOT / "examples" / "host" / "c" / "host.c"
    subprocess.run(["cc", f"-I{include}", str(source), "-o", str(program), "-ldl"], check=True)
    return program


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("plugin") / "isolated.py"
    source.write_text(SOURCE)
    return build(source)


def call(host: Path, *words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([host, *map(str, words)], env=environment, capture_output=True, text=True, timeout=120)


def values(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert (done.returncode, done.stderr) == (0, "")
    return re.findall(r"\bvalue=(\S+)", done.stdout)


@pytest.mark.parametrize("mode", MODES)
def test_a_sync_function_in_two_workers(host: Path, plugin: Path, mode: str) -> None:
    done = call(host, plugin, "more", mode)
    assert values(done) == VALUES
    assert "isolated.more, row 1: ValueError: not this one" in done.stdout


@pytest.mark.parametrize("mode", MODES)
def test_an_async_function_in_two_workers(host: Path, plugin: Path, mode: str) -> None:
    """R5: one machine keeps the order."""
    assert values(call(host, plugin, "later", mode)) == ["1001", "1101", "null", "1301", "1401"]


def test_a_plugin_in_rust_runs_in_processes_of_the_python_that_is_named(host: Path, tmp_path: Path) -> None:
    source = tmp_path / "isolated.rs"
    source.write_text(RUST)
    library = build(source)
    assert values(call(host, library, "more", "process", ARROYO_UDF_PYTHON=sys.executable)) == VALUES
    done = call(host, library, "more", "process")
    assert done.returncode == 1
    assert "name that of an environment with arroyo_udf_plugin in ARROYO_UDF_PYTHON" in done.stderr
    done = call(host, library, "more", "subinterpreter")
    assert done.returncode == 1
    assert "subinterpreters are for plugins in Python: choose ARROYO_UDF_PROCESS" in done.stderr


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="Python has them from 3.13 on")
def test_before_3_13_subinterpreters_are_refused(host: Path, plugin: Path) -> None:
    done = call(host, plugin, "more", "subinterpreter")
    assert done.returncode == 1
    assert "3.13" in done.stderr
