"""Where functions run is chosen at `load`, on the command line and per operator of a pipeline: the same plugin."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from arroyo_udf_plugin import InvalidArgument, load
from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.pipeline import Files, Functions, InvalidPipeline, Parts, Pipeline
from arroyo_udf_plugin.engine.pipeline.document import pipeline_of

BuildPlugin = Callable[..., Path]

SOURCE = """
import os
from arroyo_udf_plugin import udf

@udf
def where(x: int) -> int:
    return os.getpid()

@udf
def crashes(x: int) -> int:
    if x == 3:
        os._exit(7)
    return x
"""


@pytest.fixture(scope="module")
def file(build_plugin: BuildPlugin) -> Path:
    return build_plugin(SOURCE, name="choice")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "in.csv"
    path.write_text("x\n" + "".join(f"{x}\n" for x in range(1000)))
    return path


def command(*words: object) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-m", "arroyo_udf_plugin.cli", *map(str, words)]
    return subprocess.run(arguments, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        ({"isolation": "thraed"}, "isolation='thraed': write one of 'thread', 'subinterpreter', 'process'"),
        ({"isolation": "process", "workers": 0}, "workers=0: it is a number from 1 on"),
        ({"isolation": "process", "workers": True}, "workers=True: it is a number from 1 on"),
        ({"workers": 2}, 'choose isolation="process" or "subinterpreter"'),
        ({"memory_limit": 1 << 30}, 'memory_limit is for isolation="process"'),
        ({"isolation": "process", "cpu_limit": 0}, "cpu_limit=0: it is a whole number from 1 on"),
    ],
)
def test_a_wrong_choice_says_what_to_write(file: Path, choice: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidArgument) as raised:
        load(file, **choice)
    assert text in str(raised.value)


def test_auto_is_a_worker_per_core(file: Path) -> None:
    with load(file, isolation="process", workers="auto") as plugin:
        answered = plugin.functions["where"](pa.array(range(100_000)))
    assert len(set(answered.to_pylist())) == len(os.sched_getaffinity(0))


def test_a_command_runs_functions_in_processes(file: Path, rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    options = ["--isolation", "process", "--workers", 2, "--memory-limit", "2GiB", "--on-error", "null"]
    done = command("run", f"{file}:crashes", rows, "--out", out, "--json", *options)
    assert (done.returncode, json.loads(done.stdout)["nulled"]) == (0, 1), done.stderr
    answered = out.read_text().splitlines()[1:]
    assert answered == [f"{x},{'' if x == 3 else x}" for x in range(1000)]


def test_a_replay_runs_where_the_run_did(file: Path, rows: Path, tmp_path: Path) -> None:
    """So the row that crashes again costs itself again, and not the replay."""
    out, dead = tmp_path / "out.csv", tmp_path / "dead.arrow"
    options = ["--isolation", "process", "--workers", 2, "--on-error", "dead_letter", "--dead-letter", dead]
    done = command("run", f"{file}:crashes", rows, "--out", out, *options)
    assert done.returncode == 0, done.stderr
    done = command("replay", dead, "--into", out)
    assert done.returncode == 0, done.stderr
    assert "0 rows added of 1 dead letter" in done.stdout
    done = command("replay", dead, "--into", out, "--isolation", "thread")
    assert done.returncode == 7, "the function ends the process that it is called in"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--workers", "many"], "'many': write a number, or \"auto\" for one per core"),
        (["--isolation", "process", "--memory-limit", "much"], "'much': write a number of bytes, or one with a unit"),
        (["--workers", "2"], 'choose isolation="process" or "subinterpreter"'),
    ],
)
def test_a_wrong_option_says_what_to_write(file: Path, rows: Path, tmp_path: Path, words: list[str], text: str) -> None:
    done = command("run", f"{file}:where", rows, "--out", tmp_path / "out.csv", *words)
    assert done.returncode in (1, 2)
    assert text in done.stderr


def pipeline(file: Path, rows: Path, out: Path, **operator: Any) -> Pipeline:
    return Pipeline(
        name="choice",
        source=Files(paths=[str(rows)], types={"x": "int64"}),
        operators=[Functions(plugin=str(file), calls=["p = where(x)", "y = crashes(x)"], on_error="null", **operator)],
        sinks=[Parts(path=str(out))],
        parallelism=2,
    )


def test_operators_of_a_pipeline_run_in_processes(file: Path, rows: Path, tmp_path: Path) -> None:
    """Each slice has so many workers."""
    run_pipeline(pipeline(file, rows, tmp_path / "out", isolation="process", memory_limit="2GiB"))
    written = pyarrow.parquet.read_table(tmp_path / "out").sort_by("x")
    assert written["y"].to_pylist() == [None if x == 3 else x for x in range(1000)]
    assert os.getpid() not in written["p"].to_pylist()


@pytest.mark.parametrize(
    ("operator", "texts"),
    [
        ({"isolation": "fork"}, ["operators[0].isolation"]),
        ({"isolation": "process", "workers": 0}, ['operators[0].workers: write a number from 1 to 1024, or "auto"']),
        ({"workers": 3}, ["operators[0].isolation", 'choose isolation="process" or "subinterpreter"']),
        ({"isolation": "process", "memory_limit": "much"}, ["operators[0].memory_limit", "'512MiB'"]),
    ],
)
def test_a_pipeline_that_chooses_wrongly_names_the_key(
    file: Path, rows: Path, tmp_path: Path, operator: dict[str, Any], texts: list[str]
) -> None:
    told = {
        "name": "choice",
        "source": {"type": "files", "paths": [str(rows)]},
        "operators": [{"plugin": str(file), "calls": ["where(x)"], **operator}],
        "sinks": [{"type": "parts", "path": str(tmp_path / "out")}],
    }
    with pytest.raises(InvalidPipeline) as raised:
        run_pipeline(pipeline_of(told))
    for text in texts:
        assert text in str(raised.value)
