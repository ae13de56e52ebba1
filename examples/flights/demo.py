"""The demo: functions in Python, Rust and C, each built into a shared library, called over all flights, and checked.

`make demo` runs it. It prints one table and writes build/demo/report.json; exit status 1 if any result differs from its
reference. The last lines are of examples/user_name; the demo starts a PostgreSQL server for it, if one is installed.
The query of delays.sql, if there is a server, and the pipeline of pipeline.toml are killed and resumed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nycflights
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset

from arroyo_udf_plugin import Function, Plugin, build, load
from arroyo_udf_plugin.engine.pipeline import Checkpoints
from arroyo_udf_plugin.engine.pipeline.description import described
from arroyo_udf_plugin.engine.planner.script import Script

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OUT = ROOT / "build" / "demo"
BATCH_ROWS = 8192
LOOKUPS = 20_000  # of user_name
OUTCOMES = ("value", "error", "timed_out", "cancelled")  # by number; see arroyo_udf.h

Batches = list[list[pa.Array]]  # the argument columns of each batch
Results = list[pa.RecordBatch]  # with the field value and, if rows failed, outcome and error


def read_flights() -> pa.Table:
    with zipfile.ZipFile(nycflights.data_file("flights.csv.zip")) as archive, archive.open("flights.csv") as file:
        options = pyarrow.csv.ConvertOptions(
            column_types={"distance": pa.int64(), "air_time": pa.int64(), "tailnum": pa.string()},
            include_columns=["distance", "air_time", "tailnum"],
            null_values=["NA", ""],
            strings_can_be_null=True,
        )
        return pyarrow.csv.read_csv(file, convert_options=options)


def batches(flights: pa.Table, *columns: str) -> Batches:
    return [batch.columns for batch in flights.select(columns).combine_chunks().to_batches(BATCH_ROWS)]


def run_sync(function: Function, arguments: Batches) -> Results:
    return [pa.RecordBatch.from_struct_array(function.outcomes(*columns)) for columns in arguments]


def run_async(function: Function, arguments: Batches) -> Results:
    """Ids are row numbers."""
    with function.start() as runtime:
        return [results for _, results in runtime.map(map(tuple, arguments))]


def in_order(results: Results) -> bool:
    """Whether the rows came back in the order in which they were sent, each once; sync results always do."""
    if "id" not in results[0].schema.names:
        return True
    ids = pa.chunked_array([batch["id"] for batch in results])
    return bool(ids.equals(pa.chunked_array([range(len(ids))], pa.uint64())))


def count_outcomes(results: Results) -> dict[str, int]:
    """Rows by outcome; results without the field `outcome` are all values."""
    counts = dict.fromkeys(OUTCOMES, 0)
    for batch in results:
        if "outcome" not in batch.schema.names:
            counts["value"] += batch.num_rows
            continue
        for entry in pc.value_counts(batch["outcome"]).to_pylist():
            counts[OUTCOMES[entry["values"]]] += entry["counts"]
    return {outcome: count for outcome, count in counts.items() if count}


def same_bits(found: pa.ChunkedArray, expected: pa.ChunkedArray) -> bool:
    """Equal values in equal order. Compares the bits of floats, because == fails for nan and -0.0."""

    def bits(column: pa.ChunkedArray) -> pa.ChunkedArray:
        if not pa.types.is_float64(column.type):
            return column
        return pa.chunked_array([chunk.view(pa.int64()) for chunk in column.chunks])

    return bool(bits(found).equals(bits(expected)))


def joined_names(ids: pa.Table) -> pa.ChunkedArray:
    """The expected results of `user_name`, by a join."""
    known = pa.table({"id": list(nycflights.USERS), "name": list(nycflights.USERS.values())})
    numbered = ids.append_column("row", pa.array(range(ids.num_rows)))
    joined = numbered.join(known, "id", join_type="left outer").sort_by("row")
    unknown = pc.binary_join_element_wise("Unknown", joined["id"].cast(pa.string()), "-")
    return pc.coalesce(joined["name"], unknown)


def opened(source: Path, out: Path) -> Plugin:
    start = time.perf_counter()
    plugin = load(build(source, out))
    print(f"built and opened {source.relative_to(ROOT)}: {time.perf_counter() - start:.1f} s", flush=True)
    return plugin


def kind_of(function: Function) -> str:
    if function.options is not None and function.options.batch_size is not None:
        return f"async, {function.options.batch_size} a call"
    if function.native:
        return f"{function.kind}, native"
    return "vectorized" if function.vectorized else str(function.kind)


def measured(plugin: Plugin, name: str, arguments: Batches, expected: pa.ChunkedArray) -> dict[str, Any]:
    """Calls a function over the batches; returns its line of the report."""
    function = plugin.functions[name]
    start = time.perf_counter()
    run = run_async if function.kind == "async" else run_sync
    results = run(function, arguments)
    seconds = time.perf_counter() - start
    found = pa.chunked_array([batch["value"] for batch in results])
    return {
        "function": name,
        "language": plugin.language,
        "kind": kind_of(function),
        "rows": len(found),
        "seconds": round(seconds, 4),
        "rows_per_s": round(len(found) / seconds),
        "outcomes": count_outcomes(results),
        "equal_to_reference": in_order(results) and same_bits(found, expected),
    }


def own_folder(name: str) -> Path:
    """An empty one, with the flights."""
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    nycflights.extract_flights(folder)
    return folder


def kill_and_resume(file: str, environment: dict[str, str], epochs: Path) -> None:
    """Runs a pipeline, kills it after some checkpoints, and resumes it. epochs: the folder of its checkpoints."""
    command = [sys.executable, "-m", "arroyo_udf_plugin.cli", "run", file]

    def epoch() -> int:
        return max((int(path.stem) for path in epochs.glob("*.json")), default=0)

    print(f"\narroyo-udf run {file}", flush=True)
    with subprocess.Popen(command, cwd=HERE, env=environment) as process:
        while epoch() < 5 and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    print(f"killed by SIGKILL after epoch {epoch()}; arroyo-udf run {file} --resume", flush=True)
    subprocess.run([*command, "--resume"], cwd=HERE, env=environment, check=True)


def resumed_pipeline() -> bool:
    """The pipeline of pipeline.toml. Returns whether no flight is missing or there twice."""
    folder = own_folder("pipeline")
    places = {"FLIGHTS": folder / "flights.csv", "OUT": folder / "out", "STATE": folder / "state"}
    environment = os.environ | {name: str(path) for name, path in places.items()}
    kill_and_resume("pipeline.toml", environment, folder / "state" / "epochs")

    key = ["time_hour", "carrier", "flight", "origin"]
    types = dict.fromkeys((*key, "dest", "tailnum"), pa.string())
    options = pyarrow.csv.ConvertOptions(column_types=types, null_values=["NA", ""], strings_can_be_null=True)
    flights = pyarrow.csv.read_csv(folder / "flights.csv", convert_options=options)
    results = {
        "speed": pc.divide(pc.multiply(flights["distance"], 60.0), flights["air_time"]),
        "route": pc.binary_join_element_wise(flights["origin"], flights["dest"], " to "),
        "plane": pc.binary_join_element_wise(flights["carrier"], flights["tailnum"], "-"),
    }
    expected = pa.table({name: flights[name] for name in key} | results)
    found = pyarrow.dataset.dataset(folder / "out").to_table(columns=expected.column_names)
    in_order = [table.sort_by([(name, "ascending") for name in key]).combine_chunks() for table in (found, expected)]
    is_equal = bool(in_order[0].equals(in_order[1]))
    print(f"{found.num_rows:,} flights; equal to the reference: {'yes' if is_equal else 'NO'}")
    return is_equal


def resumed_query(planes: nycflights.Planes) -> bool:
    """The query of delays.sql. Returns whether its table equals a reference, row by row.

    It is killed as a description, because a query has no key for the rows between two checkpoints.
    """
    folder = own_folder("delays")
    flights = folder / "flights.csv"
    lines = nycflights.put_in_order(flights)
    os.environ["FLIGHTS"] = str(flights)
    with contextlib.chdir(HERE):
        query = Script.read("delays.sql", ["udf.py", "../user_name/batched.py"]).pipeline
    checkpoints = Checkpoints(place=str(folder / "state"), every_rows=25_000)
    file = folder / "delays.json"
    file.write_text(json.dumps(described(query.model_copy(update={"checkpoints": checkpoints}))))
    kill_and_resume(str(file), dict(os.environ), folder / "state" / "epochs")

    found = nycflights.found_delays(os.environ["USERS_DB"])
    is_equal = found == nycflights.expected_delays(lines, planes)
    print(f"{len(found):,} days of carriers; equal to the reference: {'yes' if is_equal else 'NO'}")
    return is_equal


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    flights, planes = read_flights(), nycflights.read_planes()
    nycflights.make_database(planes, OUT / "planes.sqlite")
    os.environ["FLIGHTS_DB"] = str(OUT / "planes.sqlite")  # where examples/flights/udf.py looks for it

    # The expected results, computed without the functions.
    distance, air_time = (flights[name].to_pylist() for name in ("distance", "air_time"))
    speeds = pa.chunked_array(
        [[None if d is None or t is None else d * 60.0 / t for d, t in zip(distance, air_time, strict=True)]],
        pa.float64(),
    )
    known = pa.table(
        {
            "tailnum": [plane["tailnum"] for plane in planes],
            "plane": [f"{plane['manufacturer']} {plane['model']}" for plane in planes],
        }
    )
    numbered = flights.select(["tailnum"]).append_column("row", pa.array(range(flights.num_rows)))
    joined = numbered.join(known, "tailnum", join_type="left outer").sort_by("row")
    names = pc.if_else(pc.is_null(joined["tailnum"]), None, pc.fill_null(joined["plane"], "unknown"))

    with ThreadPoolExecutor() as pool:
        # The first build of a function in Rust compiles its SDK, which leaves time for a pipeline.
        opening = {
            suffix: pool.submit(opened, HERE / f"udf{suffix}", OUT / f"flights_{suffix[1:]}.so")
            for suffix in (".rs", ".py", ".c")
        }
        are_equal = [resumed_pipeline()]
    plugins = {suffix: future.result() for suffix, future in opening.items()}
    numbers, tails = batches(flights, "distance", "air_time"), batches(flights, "tailnum")
    runs: list[tuple[Plugin, str, Batches, pa.ChunkedArray]] = [
        (plugins[".py"], "mph", numbers, speeds),
        (plugins[".rs"], "mph", numbers, speeds),
        (plugins[".c"], "mph", numbers, speeds),
        (plugins[".py"], "mph_vectorized", numbers, speeds),
        (plugins[".py"], "plane", tails, names),
        (plugins[".rs"], "mph_async", numbers, speeds),
    ]
    report = [measured(*run) for run in runs]
    with contextlib.ExitStack() as stack:
        try:
            os.environ["USERS_DB"] = stack.enter_context(nycflights.users())  # where examples/user_name looks for it
        except nycflights.postgresql.NoPostgresql as error:
            print("no PostgreSQL:", " ".join(str(error).split()))  # in one line
        else:
            # A fifth of the users do not exist.
            ids = pa.table({"id": [i * 7919 % (len(nycflights.USERS) * 5 // 4) for i in range(LOOKUPS)]})
            for source, library in (("udf.py", "user_name.so"), ("batched.py", "user_name_batched.so")):
                plugin = opened(ROOT / "examples" / "user_name" / source, OUT / library)
                report.append(measured(plugin, "user_name", batches(ids, "id"), joined_names(ids)))
            are_equal.append(resumed_query(planes))
    show(report)
    (OUT / "report.json").write_text(json.dumps(report, indent=2) + "\n")
    if not all(are_equal) or not all(line["equal_to_reference"] for line in report):
        sys.exit("some results differ from their reference")


def show(report: list[dict[str, Any]]) -> None:
    """One line per function: the report as a table."""
    head = ("function", "language", "kind", "rows", "seconds", "rows/s", "outcomes", "equal to reference")
    lines: list[tuple[str, ...]] = [head]
    for line in report:
        by_outcome = ", ".join(f"{count:,} {outcome}" for outcome, count in line["outcomes"].items())
        cells = [line["function"], line["language"], line["kind"], f"{line['rows']:,}", f"{line['seconds']:.3f}"]
        cells += [f"{line['rows_per_s']:,}", by_outcome, "yes" if line["equal_to_reference"] else "NO"]
        lines.append(tuple(map(str, cells)))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    print()
    for texts in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(texts, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main()
