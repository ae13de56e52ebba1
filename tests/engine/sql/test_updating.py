"""Results that are updated with each row: the last ones are those of a query over all rows, and each change follows
from the one before it, whatever the batches, slices and kills."""

from __future__ import annotations

import contextlib
import json
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from datafusion import SessionContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from local_flink import LocalFlink, arguments
from test_queries_on_flink import written_absolutely

from arroyo_udf_plugin import failpoints
from arroyo_udf_plugin.engine.connectors.files import Files
from arroyo_udf_plugin.engine.connectors.parts import Parts
from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.execution.stopping import StopRequest
from arroyo_udf_plugin.engine.pipeline import Checkpoints, Pipeline
from arroyo_udf_plugin.engine.pipeline.description import described
from arroyo_udf_plugin.engine.planner.script import Script

pytestmark = pytest.mark.once

CHILD = Path(__file__).parents[1] / "execution" / "kill" / "child.py"
TABLES = """
CREATE TABLE rows (k TEXT, m BIGINT, x BIGINT, y DOUBLE) WITH (connector = 'filesystem', path = 'rows', format = 'json',
                                                               type = 'source', 'source.watch' = '1 hour');
CREATE TABLE out (k TEXT, n BIGINT, s BIGINT) WITH (connector = 'filesystem', path = 'out', format = 'debezium_json',
                                                    type = 'sink');
"""
QUERIES = {
    "keys": "SELECT k, count(*) AS n, sum(x) AS s FROM rows GROUP BY k",
    "two keys": "SELECT k, m, min(x) AS low, max(y) AS top, avg(x) AS mean FROM rows WHERE x > -2 GROUP BY 1, 2",
    "expressions": "SELECT upper(k) || '!' AS k, 2 * sum(x + m) FILTER (WHERE x > 0) AS s FROM rows GROUP BY upper(k)",
    "having": "SELECT k, count(*) AS n FROM rows GROUP BY k HAVING sum(x) > 2 AND n < 6",
    "no keys": "SELECT count(*) AS n, sum(x) AS s, bool_or(x = 3) AS b FROM rows",
    "keys alone": "SELECT k, m FROM rows GROUP BY k, m",
    "a view": "SELECT n, k FROM (SELECT k, count(*) AS n, sum(x) AS s FROM rows GROUP BY k) WHERE s > 0 OR k IS NULL",
}
Row = tuple[str | None, int | None, int | None, float | None]
ROWS = st.lists(
    st.tuples(
        st.none() | st.sampled_from("abc"),
        st.none() | st.integers(0, 1),
        st.none() | st.integers(-3, 4),
        st.none() | st.sampled_from([0.5, -1.0, 2.0]),
    ),
    min_size=1,
    max_size=30,
)
NAMES = ("k", "m", "x", "y")


def write(folder: Path, rows: Sequence[Row], size: int) -> None:
    """In files of so many rows."""
    folder.mkdir()
    for start in range(0, len(rows), size):
        lines = [json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in rows[start : start + size]]
        (folder / f"{start:04}.jsonl").write_text("".join(lines))


def pipeline_of(text: str, **others: Any) -> Pipeline:
    """Compiled over files that go on for ever, which are read up to what there is of them."""
    pipeline = Script("query.sql", TABLES + text, []).pipeline
    assert isinstance(pipeline.source, Files)
    assert not pipeline.source.ends
    sinks = tuple(Parts(path="out", after=sink.after) for sink in pipeline.sinks)
    source = pipeline.source.model_copy(update={"watch": None})
    return pipeline.model_copy(update={"source": source, "sinks": sinks, **others})


def changes_in(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.iterdir()) if folder.exists() else []
    rows: list[dict[str, Any]] = ds.dataset(folder).to_table().to_pylist() if files else []
    return rows


def results_of(changes: Sequence[dict[str, Any]]) -> list[str]:
    """What they come to, in any order: all that was after a change and not before another one."""
    left: dict[str, int] = defaultdict(int)
    for change in changes:
        before, after = change["before"], change["after"]
        assert change["op"] == ("c" if before is None else "d" if after is None else "u")
        assert before != after
        left[repr(after)] += after is not None
        left[repr(before)] -= before is not None
    assert set(left.values()) <= {0, 1}
    return sorted(row for row, count in left.items() if count)


def reference(text: str, rows: Sequence[Row]) -> list[str]:
    context = SessionContext()
    schema = pa.schema([("k", pa.string()), ("m", pa.int64()), ("x", pa.int64()), ("y", pa.float64())])
    columns = [list(column) for column in zip(*rows, strict=True)]
    batch = pa.RecordBatch.from_pydict(dict(zip(NAMES, columns, strict=True)), schema=schema)
    context.register_record_batches("rows", [[batch]])
    return sorted(map(repr, context.sql(text).to_arrow_table().to_pylist()))


@pytest.mark.parametrize("name", QUERIES)
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, size=st.integers(1, 9), parallelism=st.integers(1, 3))
def test_the_last_results_are_those_of_all_rows(
    name: str, rows: list[Row], size: int, parallelism: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("updating")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write(folder / "rows", rows, size)
        run_pipeline(pipeline_of(QUERIES[name], parallelism=parallelism))
        assert results_of(changes_in(folder / "out")) == reference(QUERIES[name], rows)


def many() -> list[Row]:
    return [(None if n % 11 == 0 else f"k{n % 7}", n % 2, n % 5, n / 2) for n in range(200)]


def test_engines_that_are_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each goes on with another number of slices."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "rows", many(), 4)
    text = QUERIES["keys"]

    def engine(moment: str, parallelism: int) -> int:
        checkpoints = Checkpoints(place="state", every_rows=5)
        pipeline = pipeline_of(text, checkpoints=checkpoints, parallelism=parallelism)
        Path("pipeline.json").write_text(json.dumps(described(pipeline)))
        resume = ["--resume"] if Path("state").exists() else []
        command = [sys.executable, str(CHILD), "pipeline.json", moment, "0", *resume]
        return subprocess.run(command, stdout=subprocess.DEVNULL).returncode

    for parallelism, moment in ((1, "staged"), (3, "committed"), (2, "renamed"), (1, "staged")):
        assert engine(moment, parallelism) == -signal.SIGKILL
    assert engine("never", 2) == 0
    changes = changes_in(tmp_path / "out")
    assert results_of(changes) == reference(text, many())
    assert len(changes) > len(reference(text, many())), "results were updated"


def test_a_stream_that_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change is there while more rows may come; a stop and a resume make no change."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "rows", [("a", 0, 1, None), ("a", 0, 2, None)], 9)
    text = TABLES.replace("1 hour", "50 ms") + "INSERT INTO out SELECT k, count(*), sum(x) FROM rows GROUP BY k"
    pipeline = Script("query.sql", text, []).pipeline
    pipeline = pipeline.model_copy(update={"checkpoints": Checkpoints(place="state", every=0.1)})

    def lines() -> list[str]:
        files = sorted(Path("out").iterdir()) if Path("out").exists() else []
        return [line for file in files for line in file.read_text().splitlines()]

    def run_until(wanted: list[str], resume: bool) -> None:
        stop = StopRequest(timeout=30)
        thread = threading.Thread(target=lambda: run_pipeline(pipeline, resume=resume, stop=stop))
        thread.start()
        pause = threading.Event()
        for _ in range(2400):
            if len(lines()) >= len(wanted):
                break
            pause.wait(0.05)
        stop.request()
        thread.join()
        assert sorted(lines()) == sorted(wanted)

    first = '{"op":"c","before":null,"after":{"k":"a","n":2,"s":3}}'
    run_until([first], resume=False)
    write(tmp_path / "more", [("b", 0, 5, None), ("a", 0, 4, None), ("b", 0, 1, None)], 9)
    (tmp_path / "more" / "0000.jsonl").rename(tmp_path / "rows" / "1.jsonl")
    second = '{"op":"u","before":{"k":"a","n":2,"s":3},"after":{"k":"a","n":3,"s":7}}'
    third = '{"op":"c","before":null,"after":{"k":"b","n":2,"s":6}}'
    run_until([first, second, third], resume=True)


def test_the_stages_for_flink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With restarts between any two messages."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "rows", many(), 20)
    pipeline = written_absolutely(pipeline_of(QUERIES["having"]))
    rows = LocalFlink(arguments(pipeline, 3)).run(2)
    (batches,) = rows.values()
    changes = [row for batch in batches for row in batch.to_pylist()]
    assert results_of(changes) == reference(QUERIES["having"], many())


def test_a_table_by_key_has_the_last_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows come, change and go, also after a kill in the middle and with other slices."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "rows", many(), 4)
    table = "CREATE TABLE found (k TEXT PRIMARY KEY, n BIGINT) WITH (connector = 'sqlite', uri = 'sqlite:found.db');"
    text = "SELECT k, count(*) AS n FROM rows WHERE k IS NOT NULL GROUP BY k HAVING sum(x) < 53"
    pipeline = Script("query.sql", f"{TABLES}{table} INSERT INTO found {text}", []).pipeline
    source = pipeline.source.model_copy(update={"watch": None})
    own = {"source": source, "checkpoints": Checkpoints(place="state", every_rows=5)}
    pipeline = pipeline.model_copy(update=own)

    def killed(name: str) -> None:
        if name == "committed" and Path("found.db").exists():
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "reached", killed)
        with pytest.raises(KeyboardInterrupt):
            run_pipeline(pipeline)
    run_pipeline(pipeline.model_copy(update={"parallelism": 2}), resume=True)
    with contextlib.closing(sqlite3.connect("found.db")) as connection:
        rows = [{"k": k, "n": n} for k, n in connection.execute("SELECT k, n FROM found")]
    expected = reference(text, many())
    assert sorted(map(repr, rows)) == expected
    assert 0 < len(expected) < 7, "some have gone"


def test_rows_that_stay_are_new_in_a_table_of_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "rows", [("a", 0, 1, None)], 9)
    run_pipeline(pipeline_of("INSERT INTO out SELECT k, m, x FROM rows"))
    assert changes_in(tmp_path / "out") == [{"op": "c", "before": None, "after": {"k": "a", "n": 0, "s": 1}}]


def test_changes_stay_as_they_are_in_a_table_of_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "rows", [("a", 0, 1, None)], 9)
    table = "CREATE TABLE all_of WITH (connector = 'filesystem', path = 'x', format = 'debezium_json', type = 'sink');"
    row = "named_struct('k', k, 'x', x)"
    items = f"'d' AS op, {row} AS before, CASE WHEN FALSE THEN {row} END AS after"
    text = f"{table} INSERT INTO all_of SELECT {items} FROM rows"
    run_pipeline(pipeline_of(text))
    assert changes_in(tmp_path / "out") == [{"op": "d", "before": {"k": "a", "x": 1}, "after": None}]


def test_an_aggregate_of_a_plugin_and_a_ttl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "rows", many(), 50)
    (tmp_path / "total.py").write_text(
        "from dataclasses import dataclass\n"
        "from arroyo_udf_plugin import udaf\n\n"
        "@udaf\n@dataclass\nclass total:\n    sum: int = 0\n\n"
        "    def update(self, values: list[int]) -> None:\n        self.sum += sum(values)\n\n"
        "    def merge(self, other: 'total') -> None:\n        self.sum += other.sum\n\n"
        "    def finish(self) -> int:\n        return self.sum\n"
    )
    text = "SET updating_ttl = interval '1 hour';" + TABLES + "SELECT k, total(x) AS t FROM rows GROUP BY k"
    pipeline = Script("query.sql", text, ["total.py"]).pipeline
    (operator,) = [operator for operator in pipeline.operators if operator.type == "updating"]
    assert operator.ttl == 3600
    source = pipeline.source.model_copy(update={"watch": None})
    sinks = tuple(Parts(path="out", after=sink.after) for sink in pipeline.sinks)
    run_pipeline(pipeline.model_copy(update={"source": source, "sinks": sinks}))
    expected = reference("SELECT k, sum(x) AS t FROM rows GROUP BY k", many())
    assert results_of(changes_in(tmp_path / "out")) == expected


def test_two_outputs_of_one_view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are computed once, the results twice."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "rows", many(), 50)
    text = "CREATE VIEW v AS SELECT k, count(*) AS n, sum(x) AS s FROM rows WHERE x > 1 GROUP BY k; "
    pipeline = Script("query.sql", TABLES + text + "INSERT INTO out SELECT * FROM v; SELECT n FROM v", []).pipeline
    assert [operator.type for operator in pipeline.operators] == ["sql", "updating", "updating"]
