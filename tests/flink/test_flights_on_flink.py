"""All flights through the pipeline and the query of examples/flights on Flink: equal to the reference, as on the
embedded engine (tests/engine/pipeline/test_flights.py)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sessions import Session

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS / "engine" / "pipeline"))

from test_flights import EXAMPLE, UDFS, output, output_of_the_query, reference, reference_of_the_query  # noqa: E402

_DESCRIBE = """
import json, sys
from arroyo_udf_plugin.engine.pipeline.description import described
from arroyo_udf_plugin.engine.planner.script import Script
from arroyo_udf_plugin.engine.pipeline.document import Document
file, *functions = sys.argv[1:]
read = Script.read(file, functions) if functions else Document.read(file)
print(json.dumps(described(read.pipeline)))
"""


@pytest.fixture
def example(flights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Makes a copy of the example the current folder; returns what the variables of its files stand for there. Flink's
    processes do not know them."""
    monkeypatch.chdir(tmp_path)
    for name in ("pipeline.toml", "query.sql", *UDFS):
        shutil.copy(EXAMPLE / name, tmp_path)
    values = {"${FLIGHTS}": str(flights), "${OUT}": str(tmp_path / "out"), "${STATE}": str(tmp_path / "state")}
    return values | {f'"{name}"': f'"{tmp_path / name}"' for name in UDFS}


def described(flink_python: Path, file: str, example: dict[str, str], *functions: str) -> dict[str, Any]:
    text = Path(file).read_text()
    for name, value in example.items():
        text = text.replace(name, value)
    Path(file).write_text(text)
    done = subprocess.run([flink_python, "-c", _DESCRIBE, file, *functions], stdout=subprocess.PIPE, check=True)
    content: dict[str, Any] = json.loads(done.stdout)
    return content


def test_the_pipeline_of_the_flights_has_the_same_rows(
    session_cluster: Session, flink_python: Path, example: dict[str, str], flights: Path
) -> None:
    pipeline = described(flink_python, "pipeline.toml", example)
    session_cluster.submit(pipeline).await_state("FINISHED")
    assert output().equals(reference(flights))


def test_the_query_of_the_flights_has_the_same_rows(
    session_cluster: Session, flink_python: Path, example: dict[str, str], flights: Path
) -> None:
    functions = [os.path.abspath(name) for name in UDFS]
    pipeline = described(flink_python, "query.sql", example, *functions)
    session_cluster.submit(pipeline).await_state("FINISHED")
    assert output_of_the_query().equals(reference_of_the_query(flights))
