"""The queries of tests/engine/sql on Flink itself: the same rows as those of the embedded engine.

Many queries are one job, because a job takes seconds to begin. docs/flink.md lists what has no place here, and why.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

SQL = Path(__file__).parents[1] / "engine" / "sql"
sys.path.insert(0, str(SQL))

from sql_world import FUNCTIONS, PRELUDE, Query, outputs_of, shown, write_flights  # noqa: E402

QUERIES = {path.stem: Query.read(path) for path in sorted((SQL / "queries").glob("*.sql"))}
ANSWERED = [name for name, query in QUERIES.items() if query.refused is None]
TOGETHER = 32
JOBS = [ANSWERED[start : start + TOGETHER] for start in range(0, len(ANSWERED), TOGETHER)]


@pytest.fixture(scope="module")
def world(build_for_flink: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the flights, and the functions as functions.so."""
    folder = tmp_path_factory.mktemp("world")
    write_flights(folder)
    (folder / "functions.so").symlink_to(build_for_flink(FUNCTIONS, name="story"))
    return folder


def found(folder: Path, query: Query) -> dict[str, list[str]]:
    """What is in the parts, by the names of the results."""
    return {result: rows_of(folder / result.split(" ", 1)[0]) for result in query.results}


def rows_of(parts: Path) -> list[str]:
    files = sorted(parts.glob("part-*.parquet"))
    return shown(pa.concat_tables(ds.dataset(file).to_table() for file in files)) if files else []


def absolute(text: str, world: Path) -> str:
    """What queries read is named from the folder in which they are written. Flink's processes are elsewhere."""
    text = re.sub(r"(path\s*=\s*)'flights", rf"\1'{world}/flights", text)
    return text.replace("sqlite:planes.db", f"sqlite:{world}/planes.db")


@pytest.mark.parametrize("names", JOBS, ids=[names[0] for names in JOBS])
def test_queries_have_the_same_rows_on_flink(names: list[str], world: Path, flink_python: Path) -> None:
    queries = [(name, absolute(PRELUDE + QUERIES[name].text, world), outputs_of(QUERIES[name].text)) for name in names]
    program = Path(__file__).with_name("queries_program.py")
    done = subprocess.run(
        [flink_python, program, world], input=json.dumps(queries), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for name in names:
        rows = {
            result: sorted(row.replace(f"{world}/", "") for row in own)
            for result, own in found(world / name, QUERIES[name]).items()
        }
        assert rows == QUERIES[name].results, name
