"""The queries of TPC-H, each with a function of a plugin in it: answered as DataFusion answers them without it.

The first line of tpch/q*.sql says what the function means in SQL. The data is that of dbgen, by tpchgen-cli. `make
test-tpch` takes a larger scale than `make test`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext

from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.planner.script import Script

pytestmark = pytest.mark.once

FILES = sorted((Path(__file__).parent / "tpch").glob("q*.sql"))
TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
SCALE = os.environ.get("TPCH_SCALE", "0.01")


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tpch")
    command = [Path(sysconfig.get_path("scripts")) / "tpchgen-cli", "parquet", "-s", SCALE, "-o", folder, "-q"]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def functions(build_plugin: Callable[..., Path]) -> Path:
    return build_plugin(FILES[0].parent / "functions.py")


def without_function(query: str) -> str:
    """A query with SQL in the places of its function's calls."""
    found = re.match(r"-- (\w+)\((.*)\) = (.*)\n", query)
    assert found is not None
    name, parameters = found[1], found[2].split(", ")
    text = query[found.end() :]
    while (call := re.search(rf"\b{name}\(", text)) is not None:
        end, arguments = _arguments(text, call.end())
        meaning = found[3]
        for parameter, argument in zip(parameters, arguments, strict=True):
            meaning = re.sub(rf"\b{parameter}\b", argument, meaning)
        text = f"{text[: call.start()]}({meaning}){text[end:]}"
    return text


def _arguments(text: str, start: int) -> tuple[int, list[str]]:
    """Those of a call, and the place behind it. start: behind its bracket."""
    arguments, depth, place = [""], 0, start
    while depth or text[place] != ")":
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if text[place] == "," and not depth:
            arguments.append("")
        else:
            arguments[-1] += text[place]
        place += 1
    return place + 1, [one.strip() for one in arguments]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_query_of_tpc_h(
    file: Path, data: Path, functions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    query = file.read_text()
    wanted = of_datafusion(without_function(query), data)
    assert wanted
    assert answered(query, data, functions) == wanted


def of_datafusion(query: str, data: Path) -> list[list[Any]]:
    context = SessionContext()
    for table in TABLES:
        context.register_parquet(table, str(data / f"{table}.parquet"))
    return [list(row.values()) for row in context.sql(query).to_arrow_table().to_pylist()]


def answered(query: str, data: Path, functions: Path) -> list[list[Any]]:
    options = "connector = 'filesystem', format = 'parquet', type = 'source'"
    tables = [f"CREATE TABLE {name} WITH (path = '{data / name}.parquet', {options});" for name in TABLES]
    out = "CREATE TABLE out WITH (connector = 'filesystem', path = 'out', format = 'parquet', type = 'sink');"
    run_pipeline(Script("query.sql", f"{' '.join(tables)} {out} INSERT INTO out {query}", [str(functions)]).pipeline)
    return [list(row.values()) for row in pq.read_table("out").to_pylist()]
