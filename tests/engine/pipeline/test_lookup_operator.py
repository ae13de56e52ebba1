"""Lookups as operators of a pipeline, over a table in SQLite."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_udf_plugin.engine.connectors.files import Files
from arroyo_udf_plugin.engine.connectors.parts import Parts
from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.operators.blocks import ORIGIN, Block, Given
from arroyo_udf_plugin.engine.operators.operator import Operator
from arroyo_udf_plugin.engine.operators.stages import Dead
from arroyo_udf_plugin.engine.pipeline import Lookup, Pipeline
from arroyo_udf_plugin.engine.pipeline.explain import explained
from arroyo_udf_plugin.engine.pipeline.plan import plan
from arroyo_udf_plugin.engine.pipeline.problems import InvalidPipeline
from arroyo_udf_plugin.errors import RowError
from arroyo_udf_plugin.host.policy import Policy

FLIGHTS = "id,tail,seats\n1,N2,10\n2,N1,50\n3,,1\n4,N9,2\n5,N1,200\n"
PLANES = [("N1", "Airbus", 100, 2000), ("N2", "Boeing", None, 2001), ("N1", "Cessna", 4, 1990)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("flights.csv").write_text(FLIGHTS)
    with database() as connection:
        connection.execute("CREATE TABLE planes (tail text, maker text, seats integer, year integer)")
        connection.executemany("INSERT INTO planes VALUES (?, ?, ?, ?)", PLANES)
    return tmp_path


@contextlib.contextmanager
def database() -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect("planes.db")) as connection, connection:
        yield connection


def pipeline(others: dict[str, Any] | None = None, **keys: Any) -> Pipeline:
    keys = {
        "uri": "sqlite:planes.db",
        "table": "planes",
        "keys": {"tail": "tail"},
        "columns": {"maker": "maker"},
    } | keys
    return Pipeline(
        name="p",
        source=Files(paths=["flights.csv"], types={"id": "int", "seats": "int"}),
        operators=[Lookup(**keys)],
        sinks=[Parts(path="out", format="parquet")],
        **(others or {}),
    )


def rows(**keys: Any) -> list[list[Any]]:
    """What comes out: the id, and what was found, in any order for one id."""
    run_pipeline(pipeline(**keys))
    found = [list(row.values())[:1] + list(row.values())[3:] for row in ds.dataset("out").to_table().to_pylist()]
    ids = [row[0] for row in found]
    assert ids == sorted(ids)
    return sorted(found, key=str)


def test_rows_with_a_match_stay_in_their_order() -> None:
    assert rows() == [[1, "Boeing"], [2, "Airbus"], [2, "Cessna"], [5, "Airbus"], [5, "Cessna"]]


def test_rows_without_a_match_stay_with_nulls() -> None:
    assert rows(unmatched="null") == [
        *([1, "Boeing"], [2, "Airbus"], [2, "Cessna"], [3, None], [4, None], [5, "Airbus"], [5, "Cessna"])
    ]


def test_a_condition_decides_which_matches_count() -> None:
    columns = {"maker": "maker", "places": "seats"}
    assert rows(unmatched="null", columns=columns, where="places > input.seats") == [
        *([1, None, None], [2, "Airbus", 100], [3, None, None], [4, None, None], [5, None, None])
    ]


def test_a_condition_that_fails_fails_its_row() -> None:
    keys: dict[str, Any] = {"columns": {"places": "seats"}, "where": "1 / (places - id - 2) < 1"}
    with pytest.raises(RowError, match=r"lookup lookup, flights.csv, row 2: .*[Dd]ivide by zero"):
        rows(**keys)
    assert rows(**keys, on_error="drop", unmatched="null") == [[1, None], [3, None], [4, None], [5, 100], [5, 4]]


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"keys": {"tail": "tial"}}, r"operators\[0\].keys.tail: there is no column 'tial': write 'tail'"),
        ({"table": "plane"}, r"operators\[0\]: lookup \(plane\): there is no such table"),
        ({"columns": {"id": "maker"}}, r"operators\[0\]: there is a column 'id' already: give the table's"),
        ({"where": "makers = 'x'"}, r"operators\[0\].where: there is no column makers"),
        ({"types": {"year": "str"}}, r"'year' is INTEGER in the database, which is not read as string: write int64"),
        ({"uri": "mysql:x"}, r"operators\[0\]: lookup \(planes\): the uri of a database begins with"),
    ],
)
def test_what_is_wrong_is_told_before_the_run(keys: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidPipeline, match=text):
        plan(pipeline(**keys))


def test_it_is_explained() -> None:
    with contextlib.closing(plan(pipeline(unmatched="null", where="maker <> 'x'"))) as planned:
        lines = explained(planned).splitlines()
    assert lines[lines.index("    maker  string") + 1] == "    where maker <> 'x'"


def test_a_lookup_that_has_changed_is_not_resumed() -> None:
    def asked(**keys: Any) -> Any:
        with contextlib.closing(plan(pipeline(**keys))) as planned:
            return planned.fingerprint

    same = [{"cache_bytes": 1}, {"cache_seconds": 0}, {"on_error": "drop"}, {"uri": "sqlite:./planes.db"}]
    assert all(asked(**keys) == asked() for keys in same)
    assert asked(unmatched="null") != asked() != asked(where="maker = 'x'")


# ---- Errors of the database ----


def operator(**keys: Any) -> Operator:
    described = pipeline(**keys).operators[0]
    assert isinstance(described, Lookup)
    schema = pa.schema([("tail", pa.string())])
    return Operator("planes", [described.plan("planes", Given(schema))], Policy(described.on_error))


def block(*tails: str | None) -> Block:
    count = range(len(tails))
    files, rows_there = pa.array(["f"] * len(tails)), pa.array(count, pa.uint64())
    origins = [files, rows_there, pa.nulls(len(tails), pa.string()), pa.nulls(len(tails), pa.binary())]
    rows = pa.RecordBatch.from_arrays([pa.array(tails, pa.string())], ["tail"])
    return Block(rows, pa.RecordBatch.from_arrays(origins, schema=ORIGIN))


def taken(operator: Operator) -> tuple[list[Any], list[Any]]:
    """Rows, and dead letters."""
    found: list[Any] = []
    dead: list[Any] = []
    while operator.held_rows:
        for stage in operator.waiting:
            asyncio.run(stage.wait_results())
        for item in operator.take():
            if isinstance(item, Block):
                found += zip(*(column.to_pylist() for column in item.rows.columns), strict=True)
            elif isinstance(item, Dead):
                letters = item.letters.to_pylist()
                dead += [(letter["failed_row"], letter["failed_error"]) for letter in letters]
    return found, dead


def test_rows_that_cannot_be_looked_up_are_dead_letters() -> None:
    with contextlib.closing(operator(on_error="dead_letter")) as planes:
        planes.start()
        planes.push(block("N2", "N1"))
        assert taken(planes) == ([("N2", "Boeing"), ("N1", "Airbus"), ("N1", "Cessna")], [])
        with database() as connection:
            connection.execute("ALTER TABLE planes RENAME TO others")
        planes.push(block("N2", None, "N3"))
        found, dead = taken(planes)
        assert found == [("N2", "Boeing")], "what is in the cache, and a null needs no table"
        assert [row for row, _ in dead] == [2]
        assert "no such table: planes" in dead[0][1]
        with database() as connection:
            connection.execute("ALTER TABLE others RENAME TO planes")
        planes.push(block("N3", "N1"))
        assert taken(planes) == ([("N1", "Airbus"), ("N1", "Cessna")], []), "the connection is made anew"
        assert planes.stages[0].counts.dead_letters == 1


def test_a_row_of_the_table_that_cannot_be_read_fails_for_who_looks_it_up() -> None:
    with database() as connection:
        connection.execute("INSERT INTO planes VALUES ('N7', 'Airbus', 'many', 1999)")
    with contextlib.closing(operator(on_error="dead_letter", columns={"seats": "seats"})) as planes:
        planes.start()
        planes.push(block("N1", "N7", "N2", "N7"))
        found, dead = taken(planes)
    assert sorted(found, key=str) == [("N1", 100), ("N1", 4), ("N2", None)]
    assert [row for row, _ in dead] == [1, 3]
    assert "many" in dead[0][1]


def test_bools_equal_the_numbers_that_sqlite_has() -> None:
    with database() as connection:
        connection.execute("CREATE TABLE words (key boolean, word text)")
        connection.executemany("INSERT INTO words VALUES (?, ?)", [(True, "yes"), (False, "no")])
    answers = Path("answers.jsonl")
    answers.write_text('{"is": true}\n{"is": null}\n{"is": false}\n')
    asked = Lookup(uri="sqlite:planes.db", table="words", keys={"key": "is"})
    source = Files(paths=[str(answers)], types={"is": "bool"})
    run_pipeline(Pipeline(name="p", source=source, operators=[asked], sinks=[Parts(path="out", format="parquet")]))
    assert ds.dataset("out").to_table().column("word").to_pylist() == ["yes", "no"]


TAILS = st.lists(st.none() | st.sampled_from([f"N{n}" for n in range(12)]), min_size=1, max_size=40)


@settings(max_examples=40, deadline=None)
@given(
    planes=st.lists(st.tuples(st.sampled_from([f"N{n}" for n in range(9)]), st.integers(0, 5)), max_size=20),
    batches=st.lists(TAILS, max_size=5),
    keys=st.fixed_dictionaries(
        {"unmatched": st.sampled_from(["drop", "null"]), "cache_bytes": st.sampled_from([1, 3000, 1 << 20])},
        optional={"where": st.just("n > 2"), "cache_seconds": st.just(0)},
    ),
)
def test_any_rows_find_what_a_loop_finds(planes: list[tuple[str, int]], batches: list[Any], keys: Any) -> None:
    with database() as connection:
        connection.execute("DROP TABLE IF EXISTS numbers")
        connection.execute("CREATE TABLE numbers (tail text, n integer)")
        connection.executemany("INSERT INTO numbers VALUES (?, ?)", planes)
    wanted = []
    for tail in (tail for batch in batches for tail in batch):
        matches = [(tail, n) for plane, n in planes if plane == tail and ("where" not in keys or n > 2)]
        wanted += matches or ([(tail, None)] if keys["unmatched"] == "null" else [])
    with contextlib.closing(operator(table="numbers", columns={"n": "n"}, **keys)) as running:
        running.start()
        for batch in batches:
            running.push(block(*batch))
        found, dead = taken(running)
        assert dead == []
        assert in_any_order(found) == in_any_order(wanted)


def in_any_order(rows: list[Any]) -> list[Any]:
    """Rows of one tail, wherever they follow each other."""
    return [sorted(group, key=str) for _, group in itertools.groupby(rows, key=lambda row: row[0])]
