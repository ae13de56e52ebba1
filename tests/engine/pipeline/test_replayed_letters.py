"""Dead letters of a pipeline are replayed into its sinks: by origin and number, each row once (R3)."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from arroyo_udf_plugin import InvalidArgument, failpoints, run_pipeline
from arroyo_udf_plugin.engine.execution.embedded import replay_planned
from arroyo_udf_plugin.engine.execution.progress import Progress
from arroyo_udf_plugin.engine.execution.stopping import StopRequest
from arroyo_udf_plugin.engine.pipeline import Checkpoints, Pipeline
from arroyo_udf_plugin.engine.pipeline.document import Document
from arroyo_udf_plugin.engine.pipeline.plan import plan
from arroyo_udf_plugin.engine.pipeline.replayed import Choice

CLI = [sys.executable, "-m", "arroyo_udf_plugin.cli"]

FUNCTIONS = '''
import pathlib
from arroyo_udf_plugin import call_info, udf

def fails(x: int) -> bool:
    """7 always does, and odd numbers until the file `mended` exists."""
    return x == 7 or (x % 2 == 1 and not pathlib.Path("mended").exists())

@udf
def half(x: int) -> int:
    if fails(x):
        raise ValueError(f"{x} is odd")
    return x // 2

@udf
async def half_with_key(x: int) -> int:
    with open("calls", "a") as file:
        file.write(f"{x} {call_info().idempotency_key.hex()}\\n")
    if fails(x):
        raise ValueError(f"{x} is odd")
    return x // 2

@udf
async def half_later(x: int) -> int:
    if fails(x):
        raise ValueError(f"{x} is odd")
    return x // 2
'''

PIPELINE = """
name = "halves"

[source]
type = "files"
paths = ["in"]
{source}

[[operators]]
plugin = "halving.so"
calls = ["h = {function}(x)"]
on_error = "dead_letter"

[[sinks]]
{sink}

[dead_letters]
{letters}
"""

PARTS = 'type = "parts"\npath = "{0}"'
TABLE = 'type = "table"\nuri = "sqlite:rows.db"\ntable = "{0}"'


@pytest.fixture(scope="session")
def halving(build_plugin: Callable[..., Path]) -> Path:
    return build_plugin(FUNCTIONS, name="halving")


@pytest.fixture
def folder(tmp_path: Path, halving: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "halving.so").symlink_to(halving)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text('x,t\n2,NA\n3,"a,b"\n7,""\n5,"NA"\n')
    return tmp_path


def described(
    source: str = 'types = { x = "int64" }', function: str = "half", sink: str = PARTS, letters: str = PARTS
) -> str:
    text = PIPELINE.format(source=source, function=function, sink=sink.format("out"), letters=letters.format("dead"))
    Path("p.toml").write_text(text)
    return text


def cli(*words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*CLI, *words], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done


def run(place: str = "state", resume: bool | None = None) -> None:
    pipeline = chosen(place)
    run_pipeline(pipeline, resume=resume)


def chosen(place: str) -> Pipeline:
    return Document.read("p.toml").pipeline.model_copy(update={"checkpoints": Checkpoints(place=place)})


def replay(*rows: str, again: bool = False, place: str = "state") -> tuple[int, int, int]:
    """Rows that were replayed, that came out, and that had been replayed before."""
    with contextlib.closing(plan(chosen(place))) as planned:
        summary, counts = replay_planned(planned, Choice.of(rows, again))
    assert summary.ended == "resumable"
    return summary.progress.rows_in, summary.progress.rows_out, counts.replayed_before


def of_parts(folder: str = "out") -> list[tuple[Any, ...]]:
    rows = ds.dataset(folder).to_table().to_pylist()
    return sorted((row["x"], row["t"], row["h"]) for row in rows)


def halves() -> list[int]:
    return [row[0] for row in of_parts()]


@pytest.mark.parametrize("function", ["half", "half_later"])
def test_rows_that_succeed_join_the_sinks_once(folder: Path, function: str) -> None:
    described(function=function)
    run()
    assert halves() == [2]
    (folder / "mended").touch()
    assert replay() == (3, 2, 0)
    assert halves() == [2, 3, 5]
    assert replay() == (1, 0, 2)
    assert halves() == [2, 3, 5]
    run(resume=True)
    assert halves() == [2, 3, 5]


def test_without_success_nothing_changes_and_letters_are_told_once(folder: Path) -> None:
    described()
    run()
    for _ in range(2):
        assert replay() == (3, 0, 0)
    letters = ds.dataset("dead").to_table().to_pylist()
    assert sorted(row["failed_row"] for row in letters) == [2, 2, 2, 3, 3, 3, 4, 4, 4]
    (folder / "mended").touch()
    assert replay()[0] == 3
    assert halves() == [2, 3, 5]


def test_rows_are_chosen_by_origin_and_number(folder: Path) -> None:
    described()
    run()
    (folder / "mended").touch()
    assert replay("in/a.csv:4") == (1, 1, 0)
    assert halves() == [2, 5]
    assert replay("in/a.csv:2-4") == (2, 1, 1)
    assert halves() == [2, 3, 5]


def test_a_row_comes_again_only_if_it_is_asked_for(folder: Path) -> None:
    described()
    run()
    (folder / "mended").touch()
    replay()
    assert replay("in/a.csv:2", again=True) == (1, 1, 0)
    assert halves() == [2, 3, 3, 5]
    with pytest.raises(InvalidArgument, match="name them with --row"):
        replay(again=True)


def edit(edits: dict[tuple[str, int], dict[str, Any]], *rows: str) -> tuple[int, int, int]:
    choice = dataclasses.replace(Choice.of(rows, False), edits=edits)
    with contextlib.closing(plan(chosen("state"))) as planned:
        summary, counts = replay_planned(planned, choice)
    return summary.progress.rows_in, summary.progress.rows_out, counts.replayed_before


def test_a_changed_row_runs_with_its_new_values(folder: Path) -> None:
    described()
    run()
    assert edit({("in/a.csv", 3): {"x": 8}}) == (3, 1, 0)
    assert of_parts() == [(2, None, 1), (8, "", 4)]
    assert edit({("in/a.csv", 4): {"x": 9, "t": "new"}}, "in/a.csv:4") == (1, 0, 0)
    letters = ds.dataset("dead").to_table(filter=ds.field("failed_row") == 4).to_pylist()
    assert [(row["x"], row["t"]) for row in letters] == [(5, '"NA"'), (5, '"NA"'), (9, "new")]
    (folder / "mended").touch()
    assert edit({("in/a.csv", 3): {"x": 6}}) == (2, 2, 1)
    assert halves() == [2, 3, 8, 9]


@pytest.mark.parametrize(
    ("letters", "value", "cell"),
    [(PARTS, 'a "b", c', '"a ""b"", c"'), (PARTS, "NA", '"NA"'), (PARTS, None, ""), (PARTS, 5, "5"), (TABLE, "x", "x")],
)
def test_a_new_text_is_a_cell_as_files_have_it(folder: Path, letters: str, value: Any, cell: str) -> None:
    described(source="", sink=PARTS + '\nformat = "csv"', letters=letters)
    run()
    edit({("in/a.csv", 2): {"x": "4", "t": value}})
    assert f"4,{cell},2" in lines("out")


@pytest.mark.parametrize(
    ("edits", "why"),
    [
        ({("in/a.csv", 2): {"x": "seven"}}, r"in/a\.csv:2: column 'x': .*seven"),
        ({("in/a.csv", 2): {"x": 4}, ("in/a.csv", 3): {"x": 1.5}}, r"in/a\.csv:3: column 'x': .*1\.5"),
        ({("in/a.csv", 2): {"t": ["a"]}}, r"in/a\.csv:2: column 't': \[\"a\"\] is no text"),
        ({("in/a.csv", 2): {"y": 1}}, r"in/a\.csv:2: there is no column 'y'"),
        ({("in/a.csv", 2): {"failed_row": 1}}, r"in/a\.csv:2: there is no column 'failed_row'"),
        ({("in/a.csv", 1): {"x": 1}}, r"in/a\.csv:1 has new values, and is no row that is replayed"),
        ({("in/a.csv", 3): {"x": 1}}, r"in/a\.csv:3 has new values, and is no row that is replayed"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_row_and_column(
    folder: Path, edits: dict[tuple[str, int], dict[str, Any]], why: str
) -> None:
    described()
    run()
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(InvalidArgument, match=why):
        edit(edits, *(["in/a.csv:2"] if ("in/a.csv", 2) not in edits else []))
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_typed_values_can_be_changed(folder: Path) -> None:
    (folder / "in" / "a.csv").unlink()
    rows = pa.table(
        {
            "x": pa.array([3, 5], pa.int64()),
            "t": ["a", "b"],
            "at": pa.array([1, 2], pa.timestamp("us", "UTC")),
            "l": [[1], [2, 3]],
            "raw": [b"a", b"b"],
        }
    )
    pq.write_table(rows, folder / "in" / "a.parquet")
    described(source="")
    run()
    new = {"x": 4, "at": "2024-01-31T12:00:00Z", "l": [7, None]}
    edit({("in/a.parquet", 1): new})
    (row,) = ds.dataset("out").to_table().to_pylist()
    at = datetime.datetime(2024, 1, 31, 12, tzinfo=datetime.UTC)
    assert row == {"x": 4, "t": "a", "at": at, "l": [7, None], "raw": b"a", "h": 2}
    with pytest.raises(InvalidArgument, match=r"in/a\.parquet:2: column 'raw': it is binary, which JSON cannot hold"):
        edit({("in/a.parquet", 2): {"raw": "61"}})


def test_a_row_without_a_letter_is_refused_before_anything_changes(folder: Path) -> None:
    described()
    run()
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(InvalidArgument, match=r"no dead letter of in/a\.csv, row 1; there are some of in/a\.csv"):
        replay("in/a.csv:1")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


FORMATS = [
    *('format = "parquet"', 'format = "arrow"', 'format = "jsonl"', 'format = "tsv"', 'format = "csv"'),
    'format = "csv"\ndelimiter = ";"',
    'format = "csv"\nheader = false\ncompression = "gzip"',
]


@pytest.mark.parametrize("letters", [TABLE, *(f"{PARTS}\n{each}" for each in FORMATS)])
@pytest.mark.parametrize("types", ['types = { x = "int64" }', ""])
def test_letters_of_all_formats_come_back_as_they_were(folder: Path, letters: str, types: str) -> None:
    """Cells, quoted or null, are the cells that the source had: the output is that of a run without failures."""
    described(source=types, sink=PARTS + '\nformat = "csv"', letters=letters)
    run()
    (folder / "mended").touch()
    replay()
    described(types, sink=PARTS.format("whole") + '\nformat = "csv"', letters=PARTS.format("more"))
    run("other")
    assert sorted(lines("out")) == sorted(lines("whole"))
    assert len(lines("out")) == 3


def lines(folder: str) -> list[str]:
    return [line for path in sorted(Path(folder).iterdir()) for line in path.read_text().splitlines()[1:]]


def test_into_a_table(folder: Path) -> None:
    described(sink=TABLE, letters=TABLE)
    run()
    (folder / "mended").touch()
    replay()
    replay()
    with contextlib.closing(sqlite3.connect("rows.db")) as database:
        assert sorted(row[0] for row in database.execute("SELECT x FROM out")) == [2, 3, 5]


def test_typed_values_come_back(folder: Path) -> None:
    (folder / "in" / "a.csv").unlink()
    rows = pa.table(
        {
            "x": pa.array([2, 3], pa.int64()),
            "t": pa.array(["a", None]),
            "at": pa.array([1, 2], pa.timestamp("us", "UTC")),
            "d": pa.array([1, 2], pa.date32()),
            "f": [0.1, None],
            "b": [True, False],
        }
    )
    pq.write_table(rows, folder / "in" / "a.parquet")
    for place, letters in enumerate((PARTS, PARTS + '\nformat = "jsonl"', PARTS + '\nformat = "csv"', TABLE)):
        (folder / "mended").unlink(missing_ok=True)
        sink = PARTS.replace("{0}", f"out{place}")
        described(source="", sink=sink, letters=letters.replace("{0}", f"dead{place}"))
        run(f"state{place}")
        (folder / "mended").touch()
        replay(place=f"state{place}")
        found = ds.dataset(f"out{place}").to_table()
        assert found.drop_columns("h").sort_by("x") == rows, letters


def test_a_source_that_is_not_at_its_end_goes_on_behind_a_replay(folder: Path) -> None:
    """A replay ends no window and reads none of the source's rows."""
    described(source='types = { x = "int64" }')
    run()
    (folder / "in" / "b.csv").write_text("x,t\n9,late\n11,late\n")
    assert replay()[0] == 3
    (folder / "mended").touch()
    replay()
    assert halves() == [2, 3, 5]
    run(resume=True)
    assert halves() == [2, 3, 5, 9, 11]


def test_a_plugin_that_was_mended(folder: Path, build_plugin: Callable[..., Path]) -> None:
    described()
    run()
    (folder / "halving.so").unlink()
    (folder / "halving.so").symlink_to(build_plugin(FUNCTIONS.replace("x % 2 == 1", "x == 3"), name="halving"))
    assert replay() == (3, 1, 0)
    assert halves() == [2, 5]
    run(resume=True)


@pytest.mark.server
def test_into_postgresql(folder: Path, postgresql: str) -> None:
    on_server = TABLE.replace("sqlite:rows.db", postgresql)
    described(sink=on_server.replace("{0}", "halves"), letters=on_server.replace("{0}", "dead_halves"))
    run()
    (folder / "mended").touch()
    assert replay() == (3, 2, 0)
    assert replay() == (1, 0, 2)
    import adbc_driver_postgresql.dbapi

    with adbc_driver_postgresql.dbapi.connect(postgresql) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT x FROM halves ORDER BY x")
        assert cursor.fetchall() == [(2,), (3,), (5,)]


@pytest.mark.parametrize("moment", ["sealed", "staged", "committed", "renamed", "applied", "cleaned"])
def test_a_replay_that_ends_between_two_steps_is_repeated(
    folder: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was replayed is durable with the rows that came of it, or not at all."""
    described()
    run()
    (folder / "mended").touch()
    with monkeypatch.context() as patched:
        patched.setattr(failpoints, "reached", failing_at(moment))
        with pytest.raises(Ended):
            replay()
    assert replay()[0] in (1, 3)
    assert halves() == [2, 3, 5]
    assert replay() == (1, 0, 2)


class Ended(BaseException):
    """The engine does nothing more."""


def failing_at(moment: str) -> Callable[[str], None]:
    def reached(name: str) -> None:
        if name == moment:
            raise Ended

    return reached


@pytest.mark.parametrize("parallelism", [1, 3])
def test_windows_stay_as_they_are(folder: Path, parallelism: int) -> None:
    """A replayed row belongs to its window while that is open, and is late behind it; no window ends by a replay."""
    gate = folder / "in" / "b.csv"
    text = described(source='types = { x = "int64", t = "datetime" }\nwatch = 0.05')
    text = text.replace('calls = ["h = half(x)"]', 'calls = ["h = half(x)"]\nname = "halving"')
    windows = '[[operators]]\ntype = "windows"\ntime = "t"\nwidth = "1h"\naggregates = { n = "count(*)" }\n\n[[sinks]]'
    text = text.replace("[[sinks]]", windows) + '\n[event_time]\ncolumn = "t"\n'
    (folder / "p.toml").write_text(text)
    (folder / "in" / "a.csv").write_text(
        "x,t\n2,2020-01-01 00:10:00\n3,2020-01-01 00:20:00\n4,2020-01-01 01:10:00\n5,2020-01-01 01:20:00\n"
    )
    stopped_behind_a_window(parallelism)
    assert counts_of_windows() == [1]  # the first hour, without 3
    (folder / "mended").touch()
    assert replay()[:2] == (2, 0)
    assert counts_of_windows() == [1]
    gate.write_text("x,t\n6,2020-01-01 02:10:00\n")
    text = text.replace("watch = 0.05", "")
    (folder / "p.toml").write_text(text)
    run(resume=True)
    assert counts_of_windows() == [1, 2, 1]  # 5 has joined 4, and 3 was late


def test_late_rows_are_not_replayed(folder: Path) -> None:
    """Their windows are over, and stay so."""
    text = described(source='types = { x = "int64", t = "datetime" }')
    windows = 'type = "windows"\ntime = "t"\nwidth = "1h"\naggregates = { n = "count(*)" }\non_late = "dead_letter"\n'
    begin, end = text.index("plugin"), text.index("[[sinks]]")
    (folder / "p.toml").write_text(f'{text[:begin]}{windows}\n{text[end:]}\n[event_time]\ncolumn = "t"\n')
    (folder / "in" / "a.csv").write_text("x,t\n2,2020-01-01 00:10:00\n3,2020-01-01 01:10:00\n")
    (folder / "in" / "b.csv").write_text("x,t\n4,2020-01-01 00:20:00\n")
    run()
    assert counts_of_windows() == [1, 1]
    assert ds.dataset("dead").to_table().column("x").to_pylist() == [4]
    told = cli("replay", "p.toml", "--checkpoints", "state").stdout.splitlines()
    assert told[0].startswith("halves: 0 rows read, 0 written")
    assert told[1] == "1 dead letter of late rows: their windows are over"


def counts_of_windows() -> list[int]:
    rows = ds.dataset("out").to_table().sort_by("window").to_pylist() if list(Path("out").glob("part-*")) else []
    return [row["n"] for row in rows]


def stopped_behind_a_window(parallelism: int) -> None:
    """A run that is stopped when a window has ended."""
    stop = StopRequest(3600)

    def look(progress: Progress) -> None:
        if progress.rows_out and not stop.requests:
            stop.request()

    pipeline = chosen("state").model_copy(update={"parallelism": parallelism})
    run_pipeline(pipeline, stop=stop, progress=look, progress_every=0.02)


# ---- Refused, and what to do instead ---------------------------------------------------------------------------------


def test_a_folder_as_output_says_to_name_the_pipeline(folder: Path) -> None:
    """What was tried first, and then what the error says."""
    described()
    run()
    letters = next(Path("dead").glob("part-*"))
    assert "arroyo-udf replay PIPELINE.toml" in cli("replay", str(letters), "--into", "out", status=1).stderr
    (folder / "mended").touch()
    done = cli("replay", "p.toml", "--checkpoints", "state", "--row", "in/a.csv:2")
    assert done.stdout.startswith("halves: 1 row read, 1 written; 1 value, 0 errors, ")
    assert halves() == [2, 3]
    done = cli("replay", "p.toml", "--checkpoints", "state", "--row", "in/a.csv:2")
    assert "1 row had been replayed before: --row and --again replay them again" in done.stdout
    cli("replay", "p.toml", "--checkpoints", "state", "--row", "in/a.csv:2", "--again")
    assert halves() == [2, 3, 3]


def test_without_checkpoints_letters_are_the_source_of_another_pipeline(folder: Path) -> None:
    text = described()
    cli("run", "p.toml")
    done = cli("replay", "p.toml", status=1)
    assert "make them the source of a pipeline with sinks of its own instead" in done.stderr
    (folder / "mended").touch()
    text = text.replace('paths = ["in"]', 'paths = ["dead"]').replace('types = { x = "int64" }', "")
    (folder / "p.toml").write_text(
        text.replace('path = "out"', 'path = "more"').replace('path = "dead"', 'path = "still"')
    )
    cli("run", "p.toml")
    assert [row[0] for row in of_parts("more")] == [3, 5]
    (letter,) = ds.dataset("still").to_table().to_pylist()
    assert (letter["failed_file"], letter["failed_row"]) == ("in/a.csv", 3)


SEVERAL_WAYS = """
[[sinks]]
type = "parts"
path = "all"
after = "source"
"""


def test_rows_that_go_several_ways_are_refused(folder: Path) -> None:
    """Those that have failed on one way may be in the sink of the other."""
    text = described()
    (folder / "p.toml").write_text(text + SEVERAL_WAYS)
    run()
    with pytest.raises(InvalidArgument, match="a dead letter does not say on which of them it failed"):
        replay()


def test_rows_that_may_become_several_are_refused(folder: Path) -> None:
    text = described(function="half")
    unnested = '[[operators]]\ntype = "sql"\nselect = { x = "unnest([x, x + 1])", t = "t" }\n\n[[operators]]\nplugin'
    (folder / "p.toml").write_text(text.replace("[[operators]]\nplugin", unnested))
    run()
    with pytest.raises(InvalidArgument, match=r"in front of operators\[1\] a row may become several"):
        replay()


def test_replayed_rows_have_the_idempotency_keys_that_they_had(folder: Path) -> None:
    """R10: a call that was made and then failed is not made again under another key."""
    described(function="half_with_key")
    run()
    Path("mended").touch()
    assert replay() == (3, 2, 0)
    calls = [line.split() for line in Path("calls").read_text().splitlines()]
    assert sorted(x for x, _ in calls) == ["2", "3", "3", "5", "5", "7", "7"]
    assert len({tuple(call) for call in calls}) == len({key for _, key in calls}) == 4
