"""Queries over tables of PostgreSQL that change: in the end another table has what the query has there (O6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from published import FollowedTable, maker
from test_changes_jobs import RunningChanges
from waiting import until

from arroyo_udf_plugin.engine.pipeline.description import described
from arroyo_udf_plugin.engine.planner.script import Script

pytestmark = pytest.mark.connectors

Make = Callable[..., FollowedTable]
LONG = "(SELECT string_agg(md5(n::text || m::text), '') FROM generate_series(1, 300) m)"
"""A text that is stored apart, so that it is not sent with an update of something else."""


@pytest.fixture
def make(postgresql: str) -> Iterator[Make]:
    with maker(postgresql) as make:
        yield make


def source(table: FollowedTable, name: str, columns: str) -> str:
    options = f"uri = '{table.address}', table = '{table.name}', slot = '{table.slot}', heartbeat = '50 ms'"
    return f"CREATE TABLE {name} ({columns}) WITH (connector = 'postgresql_cdc', {options});"


def sink(table: FollowedTable, name: str, columns: str) -> str:
    options = f"uri = '{table.address}', table = '{table.name}', type = 'sink'"
    return f"CREATE TABLE {name} ({columns}) WITH (connector = 'postgres', {options});"


def test_aggregates_and_joins_follow_their_tables(make: Make, tmp_path: Path) -> None:
    """Inserts, updates, moves and deletes, also while nobody reads them."""
    people = make("id bigint PRIMARY KEY, town text, age bigint, note text")
    towns = make("town text PRIMARY KEY, land text")
    counts = make("town text PRIMARY KEY, n bigint, s bigint, low bigint")
    lands = make("id bigint PRIMARY KEY, land text, size bigint")
    people.sql(f"INSERT INTO {{t}} SELECT n, 'town ' || n % 5, n % 60, {LONG} FROM generate_series(1, 200) n")
    towns.sql("INSERT INTO {t} SELECT 'town ' || n, 'land ' || n % 2 FROM generate_series(0, 3) n")
    text = "".join(
        (
            source(people, "people", "id BIGINT PRIMARY KEY, town TEXT, age BIGINT NOT NULL, note TEXT"),
            source(towns, "towns", "town TEXT PRIMARY KEY, land TEXT"),
            sink(counts, "counts", "town TEXT PRIMARY KEY, n BIGINT, s BIGINT, low BIGINT"),
            sink(lands, "lands", "id BIGINT PRIMARY KEY, land TEXT, size BIGINT"),
            "INSERT INTO counts SELECT town, count(*), sum(age), min(age) FROM people GROUP BY town;",
            "INSERT INTO lands SELECT p.id, t.land, length(p.note) FROM people p LEFT JOIN towns t USING (town);",
        )
    )
    checkpoints = {"place": str(tmp_path / "state"), "every": 0.05}
    description = {**described(Script("query.sql", text, []).pipeline), "checkpoints": checkpoints}

    def follows() -> bool:
        of_people = f"FROM {people.name} p"
        return (
            counts.sql("SELECT * FROM {t} ORDER BY town")
            == people.sql(f"SELECT town, count(*), sum(age), min(age) {of_people} GROUP BY town ORDER BY town")
        ) and (
            lands.sql("SELECT * FROM {t} ORDER BY id")
            == people.sql(f"SELECT id, land, length(note) {of_people} LEFT JOIN {towns.name} USING (town) ORDER BY id")
        )

    def change(step: int) -> None:
        people.sql("UPDATE {t} SET age = age + %s WHERE id %% 3 = 0", step)
        people.sql("UPDATE {t} SET town = 'town ' || (id + %s) %% 6 WHERE id %% 7 = 1", step)
        people.sql("DELETE FROM {t} WHERE id %% 11 = %s", step)
        people.sql(f"INSERT INTO {{t}} SELECT n, 'town 9', {step}, {LONG} FROM generate_series(%s::int, %s::int) n",
                   1000 * step, 1000 * step + 20)  # fmt: skip
        towns.sql("UPDATE {t} SET land = land || %s WHERE town <> 'town 1'", f" {step}")
        towns.sql("DELETE FROM {t} WHERE town = 'town ' || %s", step)
        towns.sql("INSERT INTO {t} VALUES ('town ' || %s, 'again')", step + 3)

    with RunningChanges(description) as engine:
        until(lambda: follows() or bool(engine.errors), "the snapshot")
        change(1)
        until(lambda: follows() or bool(engine.errors), "changes")
        assert not engine.errors
    change(2)
    people.sql("UPDATE {t} SET id = -id, note = note || 'x' WHERE id < 20")
    with RunningChanges({**description, "parallelism": 2}, resume=True) as engine:
        until(lambda: follows() or bool(engine.errors), "changes while it was stopped")
        people.sql("DELETE FROM {t}")
        until(lambda: follows() or bool(engine.errors), "nothing")
        assert not engine.errors
