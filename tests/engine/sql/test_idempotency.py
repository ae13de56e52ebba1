"""R10: idempotency keys come from where rows come from: each row has its own, the same in all calls of all engines."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from sql_world import run, run_killed

from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.pipeline.document import pipeline_of

pytestmark = pytest.mark.once

FUNCTIONS = """
import asyncio
import os
import random

from arroyo_udf_plugin import call_info, udf

@udf(ordered=False, allowed_in_flight=7, retry_on="error", max_attempts=3, backoff=0.001)
async def key(row: str) -> str:
    info = call_info()
    with open("calls", "a") as file:
        file.write(f"{row}\\t{info.idempotency_key.hex()}\\n")
    await asyncio.sleep(random.random() / 500)
    if info.attempt == 1 and random.random() < 0.2:
        raise ValueError("again")
    return info.idempotency_key.hex()

@udf
async def other(row: str) -> str:
    return call_info().idempotency_key.hex()

@udf
def plain(row: str) -> str:
    return row
"""

DAYS = (
    "CREATE VIEW days AS SELECT small, tumble(interval '1 day') AS window, count(*) AS n, sum(alt) AS s FROM timed "
    "GROUP BY 1, 2;\n"
)
PAIRS = (
    "CREATE VIEW a AS SELECT tumble(interval '2 days') AS window, small AS k, count(*) AS n FROM timed GROUP BY 1, 2;\n"
    "CREATE VIEW b AS SELECT tumble(interval '2 days') AS window, small + 1 AS k, count(*) AS n FROM timed WHERE ok "
    "GROUP BY 1, 2;\n"
)
QUERIES = {
    "rows": "SELECT key(CAST(id AS TEXT)) AS key FROM flights WHERE alt > 0",
    "behind a function": "SELECT key(plain(CAST(id AS TEXT))) AS key FROM flights",
    "union of itself": (
        "SELECT key(t) AS key FROM (SELECT CAST(id AS TEXT) AS t FROM flights UNION ALL SELECT CAST(id AS TEXT) AS t "
        "FROM flights UNION ALL SELECT tail AS t FROM timed WHERE tail IS NOT NULL)"
    ),
    "unnest": "SELECT key(t) AS key FROM (SELECT unnest(['x', CAST(id AS TEXT), 'y', tail]) AS t FROM flights "
    "WHERE tail IS NOT NULL)",
    "lookup": "SELECT key(maker || seats) AS key FROM flights JOIN planes ON flights.tail = planes.tail "
    "WHERE maker IS NOT NULL AND seats IS NOT NULL",
    "windows": DAYS + "SELECT key(CAST(small AS TEXT) || CAST(window.start AS TEXT)) AS key FROM days",
    "hop": "CREATE VIEW hops AS SELECT hop(interval '1 day', interval '2 days') AS w, median(alt) AS m FROM timed "
    "GROUP BY w;\nSELECT key(CAST(w.start AS TEXT)) AS key FROM hops",
    "months": "CREATE VIEW m AS SELECT small, hop(interval '1 month', interval '3 months') AS w, count(*) AS n "
    "FROM timed GROUP BY small, w;\nSELECT key(CAST(small AS TEXT) || CAST(w.start AS TEXT)) AS key FROM m",
    "sessions": "CREATE VIEW s AS SELECT small, session(interval '22 hours') AS w, count(*) AS n FROM timed "
    "WHERE id % 5 < 3 GROUP BY small, w;\nSELECT key(CAST(small AS TEXT) || CAST(w.start AS TEXT)) AS key FROM s",
    "places": DAYS + "SELECT key(CAST(small AS TEXT) || CAST(window.start AS TEXT) || CAST(place AS TEXT)) AS key FROM "
    "(SELECT *, row_number() OVER (PARTITION BY window ORDER BY n DESC, small) AS place FROM days)",
    "same rows of windows": "CREATE VIEW days AS SELECT small, id % 2 AS odd, tumble(interval '9 days') AS window, "
    "count(*) AS n FROM timed GROUP BY 1, 2, 3;\n"
    "SELECT key(CAST(window.start AS TEXT) || CAST(n AS TEXT)) AS key FROM "
    "(SELECT window, 1 AS n, rank() OVER (PARTITION BY window ORDER BY 1) AS place FROM days)",
    "join": PAIRS + "SELECT key(CAST(a.window.start AS TEXT) || CAST(a.k AS TEXT)) AS key FROM a JOIN b ON a.window = "
    "b.window AND a.k = b.k",
    "pairs": PAIRS + "SELECT key(CAST(a.window.start AS TEXT)) AS key FROM a JOIN b ON a.window = b.window",
    "join within an interval": "SELECT key(coalesce('a' || CAST(a.id AS TEXT), 'none') || coalesce('b' || CAST(b.id AS "
    "TEXT), 'none')) AS key FROM (SELECT id, small, day FROM timed WHERE ok) a FULL JOIN timed b ON a.small = b.small "
    "AND b.day BETWEEN a.day - INTERVAL '1 hour' AND a.day + INTERVAL '30 hours'",
    "first rows": "SET state_ttl = '40 hours';\nSELECT key(CAST(id AS TEXT)) AS key FROM (SELECT id FROM timed QUALIFY "
    "row_number() OVER (PARTITION BY small ORDER BY day) = 1)",
    "behind lag": "SET state_ttl = '9 days';\nSELECT key(CAST(id AS TEXT)) AS key FROM "
    "(SELECT id, lag(alt) OVER (PARTITION BY small ORDER BY day) AS before FROM timed)",
    "full join": PAIRS + "SELECT key(coalesce('a' || CAST(a.k AS TEXT), 'none') || coalesce('b' || CAST(b.k AS TEXT), "
    "'none')) AS key FROM a FULL JOIN b ON a.window = b.window AND a.k = b.k",
    "all rows": "SELECT key(CAST(id AS TEXT)) AS key FROM (SELECT * FROM flights ORDER BY alt, id LIMIT 9)",
    "groups of all rows": "SELECT key(CAST(count(*) AS TEXT) || tag) AS key FROM (SELECT id % 4 AS n, left(tail, 1) AS "
    "tag FROM flights WHERE tail IS NOT NULL) GROUP BY n, tag",
}


@pytest.fixture(scope="session")
def keyed(build_plugin: Callable[..., Path]) -> Path:
    return build_plugin(FUNCTIONS, name="keyed")


@pytest.fixture
def place(folder: Path, keyed: Path) -> Path:
    (folder / "keyed.so").symlink_to(keyed)
    return folder


def calls() -> Mapping[str, set[str]]:
    """The keys of each row that was called, whatever became of it."""
    found = defaultdict(set)
    for line in Path("calls").read_text().splitlines():
        row, key = line.split("\t")
        found[row].add(key)
    Path("calls").unlink()
    return found


@pytest.mark.parametrize("name", QUERIES)
def test_each_row_has_a_key_of_its_own_in_all_calls_of_all_engines(
    place: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (rows,) = run(QUERIES[name], ["keyed.so"]).values()
    Path("rows").rename("first")
    keys = [key for row in rows for key in json.loads(row)]
    assert len(keys) >= 5, "the query has rows"
    assert len(set(keys)) == len(keys)
    assert {len(key) for key in keys} == {48}
    first = calls()
    assert sorted(key for own in first.values() for key in own) == sorted(keys), "a retry has the key of its row"

    assert run(QUERIES[name], ["keyed.so"], parallelism=3) == {"rows (key)": rows}
    Path("rows").rename("second")
    assert calls() == first

    assert run_killed(QUERIES[name], ["keyed.so"], monkeypatch) == {"rows (key)": rows}
    assert calls() == first


def test_results_of_a_query_over_all_rows_have_keys_that_do_not_depend_on_their_order(place: Path) -> None:
    """They are called behind it."""
    described = {
        "name": "ordered",
        "source": {"type": "files", "paths": ["flights"]},
        "operators": [
            {"type": "query", "tables": {"f": "source"}, "sql": ""},
            {"plugin": "keyed.so", "calls": ["k = key(small)"]},
        ],
        "sinks": [{"type": "blackhole"}],
    }
    for order in ("id", "id DESC"):
        described["operators"][0]["sql"] = f"SELECT CAST(small AS TEXT) AS small FROM f ORDER BY {order}"
        run_pipeline(pipeline_of(described))
        found = calls()
        if order == "id":
            first = found
    assert found == first
    assert sum(map(len, found.values())) == len({key for own in found.values() for key in own}) == 24


def test_functions_have_keys_of_their_own(place: Path) -> None:
    (rows,) = run("SELECT key(tail) AS k, other(tail) AS o FROM flights WHERE tail IS NOT NULL", ["keyed.so"]).values()
    keys = [key for row in rows for key in json.loads(row)]
    assert len(set(keys)) == len(keys)
