"""What an error tells the user to do next is possible, and ends well: each advice is followed.

A case yields the pipeline that is refused, with the advice as the error words it; then it does what the advice says,
and yields the pipeline that runs. (test_refusals.py has those of lost, older and damaged checkpoints, and of tables
that have rows; test_replayed_letters.py has those of replays.)
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from arroyo_udf_plugin import failpoints, restore_pipeline, run_pipeline
from arroyo_udf_plugin.engine.connectors.files import Files
from arroyo_udf_plugin.engine.connectors.impulse import Impulse
from arroyo_udf_plugin.engine.connectors.options import BATCH_ROWS, TYPED_BATCH_ROWS
from arroyo_udf_plugin.engine.connectors.parts import Parts
from arroyo_udf_plugin.engine.connectors.single import File
from arroyo_udf_plugin.engine.connectors.source import FileSource
from arroyo_udf_plugin.engine.connectors.standard_input import StandardInput
from arroyo_udf_plugin.engine.connectors.table import Table
from arroyo_udf_plugin.engine.execution import manifest, runner
from arroyo_udf_plugin.engine.execution.restoring import checkpoints_in
from arroyo_udf_plugin.engine.execution.retention import Retention
from arroyo_udf_plugin.engine.execution.store import open_store
from arroyo_udf_plugin.engine.pipeline import Checkpoints, EventTime, Pipeline, Sql, Windows
from arroyo_udf_plugin.engine.pipeline.plan import plan
from arroyo_udf_plugin.errors import ArroyoUdfError
from arroyo_udf_plugin.testing.turns import InTurn, ReadTurns

Step = tuple[Pipeline, str] | Pipeline
Case = Callable[[], Iterator[Step]]

BOTH = ["HELLO", "WORLD"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("in/1.csv").write_text("name\nhello\nworld\n")


def names(place: str | None = "state", **changed: Any) -> Pipeline:
    """Names in capitals, from in/ into out/."""
    described: dict[str, Any] = {
        "name": "names",
        "source": Files(paths=("in",)),
        "operators": (Sql(select={"name": "upper(name)"}),),
        "sinks": (Parts(path="out", format="csv"),),
        "checkpoints": None if place is None else Checkpoints(place=place, every=3600),
    }
    return Pipeline(**described | changed)


def shown(folder: str) -> list[str]:
    found = []
    for path in Path(folder).glob("part-*"):
        if path.stat().st_size:
            with FileSource([path]) as source:
                found += [str(value) for rows in source for value in rows.batch.column(0).storage.to_pylist()]
    return sorted(found)


def everything() -> list[str]:
    """All rows that any pipeline here has shown."""
    found = [row for folder in Path().iterdir() if folder.is_dir() for row in shown(str(folder))]
    if Path("out.db").exists():
        with contextlib.closing(sqlite3.connect("out.db")) as database:
            found += [name for (name,) in database.execute("SELECT name FROM names")]
    return sorted(found)


class Crash(Exception):
    """The engine ends here."""


def run_in_steps(pipeline: Pipeline) -> None:
    """With an epoch for each batch that is read, all of which are kept."""
    turns = ReadTurns()
    with contextlib.closing(plan(pipeline)) as planned:
        inputs = [dataclasses.replace(one, source=InTurn(one.source, turns)) for one in planned.inputs]
        runner.run(
            dataclasses.replace(planned, inputs=inputs),
            checkpoints=open_store("state"),
            interval=ReadTurns.INTERVAL,
            retention=Retention(number=100),
            progress=turns.hear,
        )


def crash_at(moment: str, pipeline: Pipeline, run: Callable[[Pipeline], object] = run_pipeline) -> None:
    def reached(name: str) -> None:
        if name == moment:
            raise Crash

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(failpoints, "reached", reached)
        with pytest.raises(Crash):
            run(pipeline)


# ---- Sources and sinks that cannot go on -----------------------------------------------------------------------------


def standard_input() -> Iterator[Step]:
    """It is the file, twice."""
    former = os.dup(0)
    for place, advice in (("state", "so it has no checkpoints: leave them out"), (None, "")):
        with open("in/1.csv", "rb") as file:
            os.dup2(file.fileno(), 0)
        try:
            piped = names(place, source=StandardInput(format="csv"))
            yield (piped, advice) if advice else piped
        finally:
            os.dup2(former, 0)
    os.close(former)


def one_file(instead: str) -> Case:
    def case() -> Iterator[Step]:
        sinks = (File(path="out.csv"),)
        yield names(sinks=sinks), 'write a folder, type = "parts", or leave out the checkpoints'
        if instead == "parts":
            yield names()
        else:
            os.mkdir("single")
            yield names(None, sinks=(File(path="single/part-0.csv"),))

    return case


ROWS = BATCH_ROWS + 5


def long(name: str, rows: int = ROWS) -> pa.Table:
    """Rows for more than one batch, which are all left out but those called hello and world."""
    return pa.table({"name": [*["none"] * (rows - 1), name]})


def of_long(**changed: Any) -> Pipeline:
    return names(operators=(Sql(select={"name": "upper(name)"}, where="name <> 'none'"),), **changed)


def a_begun_file_that_is_gone() -> Iterator[Step]:
    Path("in/1.csv").write_text("name\nhello\n" + "none\n" * ROWS + "world\n")
    crash_at("committed", of_long(), run_in_steps)
    os.rename("in/1.csv", "away")
    Path("in/2.csv").write_text("name\nnone\n")
    yield of_long(), f"in/1.csv was read up to row {BATCH_ROWS} and is gone: put it back to go on"
    os.rename("away", "in/1.csv")
    yield of_long()


def an_unreadable_file(instead: str) -> Case:
    """None of its rows has been read."""

    def case() -> Iterator[Step]:
        os.remove("in/1.csv")
        pq.write_table(long("hello"), "in/1.parquet")
        pq.write_table(long("world"), "in/2.parquet")
        whole = Path("in/2.parquet").read_bytes()
        Path("in/2.parquet").write_bytes(whole[:-100])
        yield of_long(), "cannot read in/2.parquet"
        Path("in/2.parquet").write_bytes(whole)
        if instead == "moved away":
            os.rename("in/2.parquet", "2.parquet")
            run_pipeline(of_long())
            os.rename("2.parquet", "in/2.parquet")
        yield of_long()

    return case


def a_file_that_is_damaged_behind_rows_that_were_read() -> Iterator[Step]:
    """One goes back to the checkpoint before it."""
    os.remove("in/1.csv")
    pq.write_table(long("hello"), "in/1.parquet")
    run_pipeline(of_long())
    *_, before = checkpoints_in(open_store("state"))
    pq.write_table(long("world", TYPED_BATCH_ROWS + 5), "in/2.parquet", row_group_size=TYPED_BATCH_ROWS)
    whole = Path("in/2.parquet").read_bytes()
    at = pq.read_metadata("in/2.parquet").row_group(1).column(0).data_page_offset
    Path("in/2.parquet").write_bytes(whole[:at] + bytes(20) + whole[at + 20 :])
    with pytest.raises(ArroyoUdfError, match=r"cannot read in/2\.parquet"):
        run_in_steps(of_long())
    Path("in/2.parquet").write_bytes(whole)
    yield of_long(), "bring the former file back, or go back to a checkpoint before it (--restore)"
    restore_pipeline(of_long(), before.epoch)
    yield of_long()


def impulse() -> Iterator[Step]:
    told = Sql(select={"name": "CASE counter WHEN 0 THEN 'HELLO' ELSE 'WORLD' END"})
    counted = names(source=Impulse(rows=2), operators=(told,))
    run_pipeline(counted)
    yield counted.model_copy(update={"parallelism": 3}), "now has 3: resume with --parallelism 1"
    yield counted


# ---- Places ----------------------------------------------------------------------------------------------------------


def of_another_run(instead: str) -> Case:
    def case() -> Iterator[Step]:
        Path("in/1.csv").write_text("name\nhello\n")
        run_pipeline(names(None))
        Path("in/1.csv").write_text("name\nworld\n")
        yield names(), "move them away, or name another folder"
        if instead == "another folder":
            yield names(sinks=(Parts(path="more", format="csv"),))
        else:
            os.rename("out", "former")
            yield names()

    return case


def of_another_pipeline() -> Iterator[Step]:
    Path("in/1.csv").write_text("name\nhello\n")
    run_pipeline(names())
    Path("in/1.csv").write_text("name\nworld\n")
    other = names("state", name="others", sinks=(Parts(path="more", format="csv"),))
    yield other, "has checkpoints of the pipeline 'names', not of 'others': name the place of this pipeline"
    yield other.model_copy(update={"checkpoints": Checkpoints(place="own", every=3600)})


def a_shown_part_that_is_gone(instead: str) -> Case:
    def case() -> Iterator[Step]:
        crash_at("renamed", names())
        (part,) = Path("out").glob("part-*")
        os.rename(part, "taken")
        yield names(), "put an empty file of that name in its place and resume; else bring it back"
        if instead == "empty":
            part.touch()
            os.mkdir("reader")
            os.rename("taken", "reader/part-taken.csv")
        else:
            os.rename("taken", part)
        yield names()

    return case


def a_part_that_is_in_the_way() -> Iterator[Step]:
    crash_at("committed", names())
    (hidden,) = Path("out").glob(".staged-*")
    _, _, slice, number = hidden.stem.split("-")
    Path(f"out/part-000000002-{slice}-{number[3:]}.csv").write_text("name\nforeign\n")
    yield names(), "is there already, from another run; move it away and resume"
    os.mkdir("away")
    os.rename(f"out/part-000000002-{slice}-{number[3:]}.csv", "away/theirs.csv")
    yield names()


# ---- What has changed ------------------------------------------------------------------------------------------------


def a_changed_place(instead: str) -> Case:
    def case() -> Iterator[Step]:
        was = names()
        run_pipeline(was)
        now = names(sinks=(Parts(path="other", format="csv"),))
        yield now, "undo the change, or begin anew in another place"
        if instead == "undo":
            yield was
        else:
            shutil.rmtree("out")
            place = Checkpoints(place="other", every=3600)
            yield now.model_copy(update={"checkpoints": place, "sinks": (Parts(path="anew", format="csv"),)})

    return case


def a_newer_format() -> Iterator[Step]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest, "VERSION", manifest.VERSION + 1)
        run_pipeline(names())
        newer = manifest.VERSION
    yield names(), f"version {newer}, and this program reads up to {newer - 1}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest, "VERSION", newer)  # the program that has written it
        patch.setattr(manifest, "_READ", (newer,))
        yield names()


def larger_windows() -> Iterator[Step]:
    Path("in/1.csv").write_text(
        "name,at\n" + "".join(f"n{n % 1000},2020-01-01T00:00:{n % 60:02}\n" for n in range(20_000))
    )

    def counted(limit: int) -> Pipeline:
        window = Windows(
            time="at",
            width=3600,
            keys=("name",),
            aggregates={"s": "array_agg(name)"},
            memory_limit=limit,
            disk_limit=limit,
        )
        last = Sql(select={"name": "CASE name WHEN 'n1' THEN 'HELLO' ELSE 'WORLD' END"}, where="name IN ('n1', 'n2')")
        source = Files(paths=("in",), types={"at": "datetime", "name": "string"})
        return names(source=source, event_time=EventTime(column="at"), operators=(window, last))

    yield counted(1000), "set a higher limit, or shorter windows or intervals"
    yield counted(1 << 30)


# ---- Tables ----------------------------------------------------------------------------------------------------------


def table(statement: str | None, advice: str, follow: Callable[[Table], Table | str]) -> Case:
    """statement: makes it. follow: another description, or a statement."""

    def executed(text: str) -> None:
        with contextlib.closing(sqlite3.connect("out.db")) as database, database:
            database.execute(text)

    def case() -> Iterator[Step]:
        sink = Table(uri="sqlite:out.db", table="names", create=False, key=("name",) if "INDEX" in advice else ())
        if statement is not None:
            executed(statement)
        wide = names(sinks=(sink,), operators=(Sql(select={"name": "upper(name)", "n": "1"}),))
        yield wide, advice
        followed = follow(sink)
        if isinstance(followed, str):
            executed(followed)
            yield wide
        else:
            yield wide.model_copy(update={"sinks": (followed,)})

    return case


def with_(**changed: Any) -> Callable[[Table], Table]:
    return lambda sink: sink.model_copy(update=changed)


def a_table_that_takes_no_more() -> Iterator[Step]:
    sink = Table(uri="sqlite:out.db", table="names", create=False)
    with contextlib.closing(sqlite3.connect("out.db")) as database, database:
        database.execute("CREATE TABLE names (name TEXT CHECK (name <> 'WORLD'))")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "_PAUSES", ())
        with pytest.raises(ArroyoUdfError) as raised:
            run_pipeline(names(sinks=(sink,)))
    assert "epoch 2 is committed: mend the table, then resume" in raised.value.__notes__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "_PAUSES", ())
        yield names(sinks=(sink,)), "CHECK constraint failed"
    with contextlib.closing(sqlite3.connect("out.db")) as database, database:
        database.execute("DROP TABLE names")
        database.execute("CREATE TABLE names (name TEXT)")
    yield names(sinks=(sink,))


LEAVE_OUT = with_(columns=("name",))
MADE = "CREATE TABLE names (name TEXT, n INTEGER)"
INDEX = 'CREATE UNIQUE INDEX "names by key" ON "names" ("name")'
COMPUTED = "CREATE TABLE names (name TEXT, n INTEGER GENERATED ALWAYS AS (1))"
CASES: dict[str, Case] = {
    "standard input": standard_input,
    "a file: parts": one_file("parts"),
    "a file: no checkpoints": one_file("no checkpoints"),
    "impulse": impulse,
    "a begun file that is gone": a_begun_file_that_is_gone,
    "an unreadable file: mended": an_unreadable_file("mended"),
    "an unreadable file: moved away": an_unreadable_file("moved away"),
    "a damaged file that was begun": a_file_that_is_damaged_behind_rows_that_were_read,
    "parts of another run: moved": of_another_run("moved"),
    "parts of another run: another folder": of_another_run("another folder"),
    "another pipeline's place": of_another_pipeline,
    "a part that is gone: empty": a_shown_part_that_is_gone("empty"),
    "a part that is gone: back": a_shown_part_that_is_gone("back"),
    "a part in the way": a_part_that_is_in_the_way,
    "a changed place: undo": a_changed_place("undo"),
    "a changed place: anew": a_changed_place("anew"),
    "a newer format": a_newer_format,
    "windows beyond their limit": larger_windows,
    "no table: make it": table(
        None, "there is no such table: make it, or", lambda _: "CREATE TABLE names (name TEXT, n INTEGER)"
    ),
    "no table: create": table(None, "make it, or set create = true", with_(create=True)),
    "no column: add": table(
        "CREATE TABLE names (name TEXT)", "add it there, or", lambda _: "ALTER TABLE names ADD COLUMN n INTEGER"
    ),
    "no column: leave out": table("CREATE TABLE names (name TEXT)", "leave it out with `columns`", LEAVE_OUT),
    "a computed column": table(COMPUTED, "computes it itself: leave it out", LEAVE_OUT),
    "a column that may not be null": table(
        "CREATE TABLE names (name TEXT, n INTEGER, m INTEGER NOT NULL)",
        "the table's column 'm' may not be null and has no default: write it, too",
        lambda _: "ALTER TABLE names DROP COLUMN m",
    ),
    "a table that takes no more": a_table_that_takes_no_more,
    "no index": table(
        MADE,
        f"no unique index on the key: {INDEX}",
        lambda _: INDEX,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_advice_that_is_followed_ends_well(name: str) -> None:
    case = CASES[name]()
    refused, advice = next(case)  # type: ignore[misc]
    with pytest.raises(ArroyoUdfError, match=re.escape(advice)):
        run_pipeline(refused)
    run_pipeline(next(case))  # type: ignore[arg-type]
    assert next(case, None) is None
    assert everything() == BOTH
