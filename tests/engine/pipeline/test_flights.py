"""All flights through a pipeline of two async functions and one sync function, examples/flights/pipeline.toml, with
watermarks on the departure time, and through a query with the same functions, query.sql: equal to the reference, with
and without kills."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset as ds
import pytest
from waiting import until

from arroyo_udf_plugin.engine.pipeline import Checkpoints
from arroyo_udf_plugin.engine.pipeline.description import described
from arroyo_udf_plugin.engine.planner.script import Script

pytestmark = pytest.mark.pipelines
EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "flights"
RUN = [sys.executable, "-m", "arroyo_udf_plugin.cli", "run"]
COMMAND = [*RUN, "pipeline.toml"]
UDFS = ["udf.c", "stream.py"]
RESULTS = ["route", "speed", "plane"]
KEY = ["time_hour", "carrier", "flight", "origin"]


@pytest.fixture
def environment(flights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.chdir(tmp_path)
    for name in ("pipeline.toml", "query.sql", "stream.py", "udf.c"):
        shutil.copy(EXAMPLE / name, tmp_path)
    return os.environ | {"FLIGHTS": str(flights), "OUT": "out", "STATE": "state"}


def reference(flights: Path) -> pa.Table:
    """The results as Arrow computes them."""
    types = {name: pa.string() for name in (*KEY, "dest", "tailnum")}
    options = pyarrow.csv.ConvertOptions(null_values=["NA"], column_types=types, strings_can_be_null=True)
    table = pyarrow.csv.read_csv(flights, convert_options=options)
    minutes = table["air_time"].cast(pa.float64())
    results = [
        pc.binary_join_element_wise(table["origin"], pc.binary_join_element_wise("to", table["dest"], " "), " "),
        pc.divide(pc.multiply(table["distance"], 60.0), minutes),
        pc.binary_join_element_wise(table["carrier"], table["tailnum"], "-"),
    ]
    return in_order(pa.table([*table.select(KEY).columns, *results], names=[*KEY, *RESULTS]))


def reference_of_the_query(flights: Path) -> pa.Table:
    table = reference(flights)
    table = table.filter(pc.and_(pc.starts_with(table["route"], "JFK to"), pc.not_equal(table["carrier"], "AA")))
    place = table.schema.get_field_index("plane")
    return table.set_column(place, "plane", pc.fill_null(table["plane"], "unknown")).combine_chunks()


def output() -> pa.Table:
    return in_order(ds.dataset("out").to_table(columns=[*KEY, *RESULTS]))


def output_of_the_query() -> pa.Table:
    """With the hours as they are written in the file of flights."""
    table = ds.dataset("out").to_table(columns=[*KEY, *RESULTS])
    hours = pc.strftime(table["time_hour"].cast(pa.timestamp("s", "UTC")), format="%Y-%m-%dT%H:%M:%SZ")
    return in_order(table.set_column(0, "time_hour", hours))


def in_order(table: pa.Table) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in KEY]).combine_chunks()


def test_the_output_equals_the_reference(flights: Path, environment: dict[str, str]) -> None:
    subprocess.run(COMMAND, env=environment, check=True, capture_output=True)
    assert output().equals(reference(flights))


def test_the_output_equals_the_reference_after_kills(flights: Path, environment: dict[str, str]) -> None:
    run_and_kill(COMMAND, environment)
    assert output().equals(reference(flights))


def test_the_query_equals_the_reference(flights: Path, environment: dict[str, str]) -> None:
    functions = [word for udf in UDFS for word in ("--udf", udf)]
    subprocess.run([*RUN, "query.sql", *functions], env=environment, check=True, capture_output=True)
    assert output_of_the_query().equals(reference_of_the_query(flights))


def test_the_query_equals_the_reference_after_kills(
    flights: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a description, because a query has no key for the rows between two checkpoints."""
    monkeypatch.setattr(os, "environ", environment)
    pipeline = Script.read("query.sql", UDFS).pipeline
    checkpoints = Checkpoints(place="${STATE}", every_rows=25_000)
    Path("query.json").write_text(json.dumps(described(pipeline.model_copy(update={"checkpoints": checkpoints}))))
    run_and_kill([*RUN, "query.json"], environment)
    assert output_of_the_query().equals(reference_of_the_query(flights))


def run_and_kill(command: list[str], environment: dict[str, str]) -> None:
    """Three engines that commit three epochs and are killed in the middle of whatever they do, then one that ends."""
    options: list[str] = []
    for _ in range(3):
        before = epochs()
        with subprocess.Popen([*command, *options], env=environment, stderr=subprocess.PIPE) as process:
            until(lambda: epochs() >= before + 4 or process.poll() is not None, "three epochs and a fence")  # noqa: B023
            assert process.poll() is None, process.communicate()
            process.send_signal(signal.SIGKILL)
            process.wait()
        options = ["--resume"]
    subprocess.run([*command, *options], env=environment, check=True, capture_output=True)


def epochs() -> int:
    """The number of the latest epoch; 0: there is none."""
    return max((int(path.stem) for path in Path("state/epochs").glob("*.json")), default=0)
