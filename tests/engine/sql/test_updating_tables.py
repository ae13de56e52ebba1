"""Queries over tables that change, and joins for ever: in the end a table has what the query has over the last rows,
whatever changes came together, whatever the slices and kills (O6)."""

from __future__ import annotations

import contextlib
import json
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from local_flink import LocalFlink, arguments
from test_queries_on_flink import written_absolutely
from test_updating import changes_in, results_of

from arroyo_udf_plugin import failpoints
from arroyo_udf_plugin.engine.connectors.files import Files
from arroyo_udf_plugin.engine.connectors.parts import Parts
from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.pipeline import Checkpoints, FollowTable, Pipeline, Updating, UpdatingJoin
from arroyo_udf_plugin.engine.pipeline.description import described
from arroyo_udf_plugin.engine.planner.script import Script
from arroyo_udf_plugin.engine.planner.text import InvalidQuery

pytestmark = pytest.mark.once

CHILD = Path(__file__).parents[1] / "execution" / "kill" / "child.py"
PEOPLE = """
CREATE TABLE people (id BIGINT PRIMARY KEY, town TEXT, age BIGINT)
WITH (connector = 'filesystem', path = 'people', format = 'debezium_json', type = 'source');
"""
TABLES = f"""{PEOPLE}
CREATE TABLE towns (town TEXT PRIMARY KEY, land TEXT)
WITH (connector = 'filesystem', path = 'towns', format = 'debezium_json', type = 'source');
CREATE TABLE visits (visit BIGINT, person BIGINT, place TEXT)
WITH (connector = 'filesystem', path = 'visits', format = 'json', type = 'source', 'source.watch' = '1 hour');
CREATE TABLE changes (a TEXT) WITH (connector = 'filesystem', path = 'out', format = 'debezium_json', type = 'sink');
"""
COLUMNS: Mapping[str, Mapping[str, pa.DataType]] = {
    "people": {"id": pa.int64(), "town": pa.string(), "age": pa.int64()},
    "towns": {"town": pa.string(), "land": pa.string()},
    "visits": {"visit": pa.int64(), "person": pa.int64(), "place": pa.string()},
}
QUERIES = {
    "columns": "SELECT id, upper(town) AS town, 2 * age AS twice FROM people WHERE age <> 3",
    "counts": "SELECT town, count(*) AS n, sum(age) AS s, avg(age) AS a FROM people WHERE town IS NOT NULL "
    "GROUP BY town",
    "recounted": "SELECT coalesce(town, '?') AS t, min(age) AS low, count(DISTINCT age) AS d, max(age) AS top_one "
    "FROM people GROUP BY 1 HAVING count(*) > 1",
    "again": "SELECT n, count(*) AS towns, sum(s) AS s FROM "
    "(SELECT town, count(*) AS n, sum(age) AS s FROM people GROUP BY town) GROUP BY n",
    "inner": "SELECT p.id, p.age, t.land FROM people p JOIN towns t ON p.town = t.town",
    "left": "SELECT p.id, t.town, t.land FROM people p LEFT JOIN towns t ON t.town = lower(p.town) WHERE p.age > 1",
    "full": "SELECT coalesce(p.id, 100 + ascii(t.town)) AS id, land FROM people p FULL JOIN towns t USING (town)",
    "right": "SELECT v.visit, p.town FROM people p RIGHT JOIN visits v ON p.id = v.person",
    "three": "SELECT v.visit, p.age, t.land FROM visits v JOIN people p ON p.id = v.person LEFT JOIN towns t "
    "ON v.place = t.town",
    "of groups": "SELECT v.visit, g.n FROM visits v LEFT JOIN (SELECT town, count(*) AS n FROM people GROUP BY town) g "
    "ON v.place = g.town",
    "grouped": "SELECT t.land, count(*) AS n, sum(p.age) AS s, min(p.age) AS low FROM people p JOIN towns t "
    "ON p.town = t.town WHERE land IS NOT NULL GROUP BY t.land",
    "other condition": "SELECT v.visit, p.id FROM visits v JOIN people p ON v.person = p.id AND v.visit > p.age",
}
Change = tuple[int, str | None, int | None]
"""A key, and what its row has from then on; without an age, it goes."""
NAMES = "abc"
HISTORY = st.lists(
    st.tuples(st.integers(0, 5), st.none() | st.sampled_from(NAMES), st.none() | st.integers(0, 4)), max_size=25
)


class World:
    """The files of all tables, and their last rows."""

    def __init__(self, people: Sequence[Change], towns: Sequence[Change], size: int) -> None:
        """size: how many files each table has at most."""
        self.rows: dict[str, list[dict[str, Any]]] = {}
        person = [({"id": key, "town": name}, {"age": age}, age is None) for key, name, age in people]
        town = [({"town": NAMES[key % 3]}, {"land": name}, age is None) for key, name, age in towns]
        moved = [({"id": own["id"]}, {"town": own["town"], **other}, gone) for own, other, gone in person]
        self._write("people", moved, size)
        self._write("towns", town, size)
        visits = [{"visit": n, "person": key, "place": name} for n, (key, name, _) in enumerate(people)]
        self.rows["visits"] = visits
        self._lines("visits", [[json.dumps(visit) for visit in visits[start::size]] for start in range(size)])

    def _write(self, table: str, changes: Sequence[tuple[dict[str, Any], dict[str, Any], bool]], size: int) -> None:
        """All changes of a key are in one file, as slices read files side by side."""
        there: dict[Any, dict[str, Any]] = {}
        lines: dict[int, list[str]] = {}
        for key, values, has_gone in changes:
            (name,) = key.values()
            before, after = there.pop(name, None), None if has_gone else {**key, **values}
            if after is not None:
                there[name] = after
            if before is None and after is None:
                continue
            op = "c" if before is None else "d" if after is None else "u"
            known = before if op == "u" else {**dict.fromkeys(values), **key} if op == "d" else None
            file = sum(map(ord, str(name))) % size
            lines.setdefault(file, []).append(json.dumps({"op": op, "before": known, "after": after}))
        self.rows[table] = list(there.values())
        self._lines(table, list(lines.values()))

    def _lines(self, table: str, files: Sequence[Sequence[str]]) -> None:
        folder = Path(table)
        folder.mkdir()
        for number, lines in enumerate(files or [[]]):
            (folder / f"{number:04}.jsonl").write_text("".join(f"{line}\n" for line in lines))

    def result(self, query: str) -> list[str]:
        """In any order."""
        context = SessionContext()
        for table, columns in COLUMNS.items():
            schema = pa.schema(list(columns.items()))
            context.register_record_batches(table, [[pa.RecordBatch.from_pylist(self.rows[table], schema)]])
        return sorted(map(repr, context.sql(query).to_arrow_table().to_pylist()))


def pipeline_of(text: str, into: str = "changes", **others: Any) -> Pipeline:
    """Over files that are read up to what there is of them."""
    columns = TABLES.replace("changes (a TEXT)", "changes")
    pipeline = Script("query.sql", f"{columns}\nINSERT INTO {into} {text}", []).pipeline

    def read_once(source: Any) -> Any:
        assert isinstance(source, Files)
        return source.model_copy(update={"watch": None})

    sources = {
        name: named.model_copy(update={"source": read_once(named.source)}) for name, named in pipeline.sources.items()
    }
    return pipeline.model_copy(update={"source": read_once(pipeline.source), "sources": sources, **others})


def into_parts(pipeline: Pipeline) -> Pipeline:
    return pipeline.model_copy(update={"sinks": tuple(Parts(path="out", after=sink.after) for sink in pipeline.sinks)})


def left_of(changes: Sequence[dict[str, Any]]) -> list[str]:
    """As `results_of`, of rows of which several may be equal."""
    left: Counter[str] = Counter()
    for change in changes:
        left[repr(change["after"])] += change["after"] is not None
        left[repr(change["before"])] -= change["before"] is not None
    assert min(left.values(), default=0) >= 0
    return sorted(left.elements())


@pytest.mark.parametrize("name", QUERIES)
@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(people=HISTORY, towns=HISTORY, size=st.integers(1, 9), parallelism=st.integers(1, 3))
def test_the_last_results_are_those_of_the_last_rows(
    name: str,
    people: list[Change],
    towns: list[Change],
    size: int,
    parallelism: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("tables"))
        world = World([(0, "a", 1), *people], [(0, "x", 1), *towns], size)
        run_pipeline(into_parts(pipeline_of(QUERIES[name], parallelism=parallelism)))
        assert left_of(changes_in(Path("out"))) == world.result(QUERIES[name])


def many() -> list[Change]:
    return [(n % 23, NAMES[n * n % 3], None if n % 5 == 4 else n % 7) for n in range(300)]


def few() -> list[Change]:
    return [(n % 3, f"land {n % 2}", None if n % 4 == 3 else 1) for n in range(60)]


SINK = """
CREATE TABLE found ({columns}) WITH (connector = 'sqlite', uri = 'sqlite:found.db', type = 'sink');
"""
FOUND = {
    "grouped": "land TEXT PRIMARY KEY, n BIGINT, s BIGINT, low BIGINT",
    "right": "visit BIGINT PRIMARY KEY, town TEXT",
}


def found() -> list[str]:
    with contextlib.closing(sqlite3.connect("found.db")) as connection:
        connection.row_factory = sqlite3.Row
        return sorted(repr(dict(row)) for row in connection.execute("SELECT * FROM found"))


@pytest.mark.parametrize("name", FOUND)
def test_engines_that_are_killed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each goes on with another number of slices; a table in a database is changed by key."""
    monkeypatch.chdir(tmp_path)
    world = World(many(), few(), 5)
    text = TABLES + SINK.format(columns=FOUND[name])
    monkeypatch.setitem(globals(), "TABLES", text)

    def engine(moment: str, parallelism: int) -> int:
        checkpoints = Checkpoints(place="state", every_rows=5)
        pipeline = pipeline_of(QUERIES[name], "found", checkpoints=checkpoints, parallelism=parallelism)
        Path("pipeline.json").write_text(json.dumps(described(pipeline)))
        resume = ["--resume"] if Path("state").exists() else []
        command = [sys.executable, str(CHILD), "pipeline.json", moment, "0", *resume]
        return subprocess.run(command, stdout=subprocess.DEVNULL).returncode

    for parallelism, moment in ((1, "staged"), (3, "committed"), (2, "committed"), (1, "staged")):
        assert engine(moment, parallelism) == -signal.SIGKILL
    assert engine("never", 2) == 0
    assert found() == world.result(QUERIES[name])


def test_a_kill_between_changes_that_follow_from_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was before a change is what was after the one before it, also behind a checkpoint."""
    monkeypatch.chdir(tmp_path)
    world = World(many(), few(), 7)
    checkpoints = Checkpoints(place="state", every_rows=20)
    pipeline = into_parts(pipeline_of(QUERIES["recounted"], checkpoints=checkpoints))

    def killed(name: str) -> None:
        if name == "committed" and Path("out").exists() and any(Path("out").iterdir()):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "reached", killed)
        with pytest.raises(KeyboardInterrupt):
            run_pipeline(pipeline)
    run_pipeline(pipeline.model_copy(update={"parallelism": 2}), resume=True)
    assert results_of(changes_in(Path("out"))) == world.result(QUERIES["recounted"])


def test_the_stages_for_flink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With restarts between any two messages."""
    monkeypatch.chdir(tmp_path)
    world = World(many(), few(), 50)
    pipeline = written_absolutely(pipeline_of(QUERIES["grouped"]))
    (batches,) = LocalFlink(arguments(pipeline, 3)).run(2).values()
    assert left_of([row for batch in batches for row in batch.to_pylist()]) == world.result(QUERIES["grouped"])


@pytest.mark.parametrize("has_key", [True, False])
def test_changes_that_are_shown(
    has_key: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """With a PRIMARY KEY, a table of changes has updates; in a SELECT alone, rows go and come."""
    monkeypatch.chdir(tmp_path)
    World([(1, "a", 1), (2, "b", 2), (1, "c", 1)], [], 1)
    table = "keyed (id BIGINT PRIMARY KEY, town TEXT) WITH (connector = 'stdout', format = 'debezium_json')"
    into = f"CREATE TABLE {table}; INSERT INTO keyed" if has_key else ""
    run_pipeline(Script("query.sql", f"{PEOPLE} {into} SELECT id, town FROM people", []).pipeline)
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    meant = results_of if has_key else left_of
    assert meant(lines) == [repr({"id": key, "town": name}) for key, name in ((1, "c"), (2, "b"))]
    assert has_key or {line["op"] for line in lines} <= {"c", "d"}


def test_an_update_that_changes_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people").mkdir()
    rows = [{"id": key, "town": "a", "age": 1} for key in (1, 2)]
    events = [{"op": "r", "before": None, "after": rows[0]}, {"op": "u", "before": rows[0], "after": rows[1]}]
    Path("people/1.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in events))
    Path("towns").mkdir()
    run_pipeline(into_parts(pipeline_of("SELECT id, town, age FROM people", parallelism=3)))
    assert left_of(changes_in(Path("out"))) == [repr(rows[1])]


def test_how_long_rows_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a table as long as it has them; others for `updating_ttl`."""
    monkeypatch.chdir(tmp_path)
    World([(1, "a", 1)], [(0, "x", 1)], 9)
    text = f"SET updating_ttl = interval '1 hour'; {TABLES}"

    def operators(query: str) -> list[Any]:
        return list(Script("query.sql", f"{text} {query}", []).pipeline.operators)

    follow, grouped = operators(QUERIES["counts"])[-3::2]
    assert isinstance(follow, FollowTable)
    assert isinstance(grouped, Updating)
    assert grouped.signed
    assert grouped.ttl is None
    (join,) = [own for own in operators(QUERIES["right"]) if isinstance(own, UpdatingJoin)]
    assert join.ttl == 3600
    streams = "SELECT a.place, count(*) AS n FROM visits a LEFT JOIN visits b ON a.visit = b.person GROUP BY a.place"
    (grouped,) = [own for own in operators(streams) if isinstance(own, Updating)]
    assert grouped.signed
    assert grouped.ttl == 3600


def test_an_inner_join_of_rows_that_stay_has_rows_that_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any table takes them, and functions of plugins, too."""
    monkeypatch.chdir(tmp_path)
    world = World(many()[:40], few(), 9)
    query = "SELECT a.visit, b.visit + 1 AS other FROM visits a JOIN visits b ON a.visit = b.person"
    options = "WITH (connector = 'filesystem', path = 'o', format = 'json', type = 'sink')"
    plain = f"CREATE TABLE plain (a BIGINT, b BIGINT) {options};"
    monkeypatch.setitem(globals(), "TABLES", TABLES + plain)
    run_pipeline(into_parts(pipeline_of(query, "plain")))
    rows = [repr({"visit": row["a"], "other": row["b"]}) for row in changes_in(Path("out"))]
    assert sorted(rows) == world.result(query)


FILE = "CREATE TABLE t ({}) WITH (connector = 'filesystem', path = 't', format = 'json', type = 'sink');"
DATABASE = "CREATE TABLE t ({}) WITH (connector = 'sqlite', uri = 'sqlite:t.db', type = 'sink');"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"{FILE.format('id BIGINT')} INSERT INTO t SELECT id FROM people", "t takes rows that stay: write format"),
        (f"{DATABASE.format('id BIGINT')} INSERT INTO t SELECT id FROM people", "write PRIMARY KEY of columns that"),
        (
            f"{FILE.format('v BIGINT')} INSERT INTO t SELECT visit FROM visits LEFT JOIN people ON person = id",
            "this query has rows that may change, and t takes rows that stay",
        ),
        ("SELECT shout(town) AS t FROM people", "shout would be called again for each that goes: call it for rows"),
        ("SELECT id, now() AS t FROM people", "these rows may change, and this is another one each time"),
        ("SELECT id FROM people UNION ALL SELECT visit FROM visits", "these rows may change, and are not put together"),
        ("SELECT id, row_number() OVER (PARTITION BY id ORDER BY age) AS n FROM people", "these rows may change, and"),
        ("SELECT town, tumble(interval '1 day') AS w FROM people GROUP BY 1, 2", "these rows may change, and"),
        ("SELECT DISTINCT town FROM people", "DISTINCT is not supported"),
        ("SELECT id FROM people ORDER BY id", "ORDER BY is not supported"),
        ("SELECT total(age) AS t FROM people", "total is of a plugin, and rows that have gone cannot be taken off"),
    ],
)
def test_what_is_refused(text: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    World([(1, "a", 1)], [(0, "x", 1)], 9)
    Path("own.py").write_text(
        "from dataclasses import dataclass\n\nfrom arroyo_udf_plugin import udaf, udf\n\n"
        "@udf\ndef shout(text: str) -> str:\n    return text.upper()\n\n"
        "@udaf\n@dataclass\nclass total:\n    sum: int = 0\n\n"
        "    def update(self, values: list[int]) -> None:\n        self.sum += sum(values)\n\n"
        "    def merge(self, other: 'total') -> None:\n        self.sum += other.sum\n\n"
        "    def finish(self) -> int:\n        return self.sum\n"
    )
    with pytest.raises(InvalidQuery, match=why.replace("(", r"\(")):
        _ = Script("query.sql", TABLES + text, ["own.py"]).pipeline


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("p (id BIGINT, x INT)", "p has changes: name the PRIMARY KEY of the table that changes"),
        ("p (id BIGINT PRIMARY KEY, at TIMESTAMP, WATERMARK FOR at)", "have no event time: leave WATERMARK FOR out"),
        ("p (id BIGINT PRIMARY KEY, x INT GENERATED ALWAYS AS (3))", "compute x in a view, or leave PRIMARY KEY out"),
        ("p (id BIGINT[] PRIMARY KEY)", "table p: a key does not take lists"),
    ],
)
def test_tables_that_cannot_be_followed(table: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    World([(1, "a", 1)], [], 9)
    options = "WITH (connector = 'filesystem', path = 'people', format = 'debezium_json', type = 'source')"
    with pytest.raises(InvalidQuery, match=why):
        _ = Script("query.sql", f"CREATE TABLE {table} {options}; SELECT id FROM p", []).pipeline
