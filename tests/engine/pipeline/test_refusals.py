"""What cannot go on is refused by name, changes nothing on disk however often it is tried, and goes on when it is
mended (O3, O4)."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from arroyo_udf_plugin import failpoints
from arroyo_udf_plugin.engine.connectors.described import Output
from arroyo_udf_plugin.engine.connectors.files import Files
from arroyo_udf_plugin.engine.connectors.parts import Parts
from arroyo_udf_plugin.engine.connectors.table import Table
from arroyo_udf_plugin.engine.execution.embedded import run_pipeline
from arroyo_udf_plugin.engine.pipeline import Checkpoints, Pipeline, Sql
from arroyo_udf_plugin.engine.pipeline.document import pipeline_of
from arroyo_udf_plugin.errors import ArroyoUdfError

KEPT = Path(__file__).parents[1] / "execution" / "kept" / "9677121"
KINDS = ("parts", "table")
Damage = Callable[[], None]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("in/1.csv").write_text("name\nhello\nworld\n")


class Crash(Exception):
    """The engine ends here."""


def pipeline(kind: str) -> Pipeline:
    sink: Output = Parts(path="out") if kind == "parts" else Table(uri="sqlite:out.db", table="names")
    return Pipeline(
        name="names",
        source=Files(paths=("in",)),
        operators=(Sql(select={"name": "upper(name)"}),),
        sinks=(sink,),  # type: ignore[arg-type]
        checkpoints=Checkpoints(place="state", every=3600),
    )


def run(kind: str, resume: bool | None = None) -> None:
    run_pipeline(pipeline(kind), resume=resume)


def crash_at(moment: str, kind: str) -> None:
    """A run that ends at a failpoint."""

    def reached(name: str) -> None:
        if name == moment:
            raise Crash

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(failpoints, "reached", reached)
        with pytest.raises(Crash):
            run(kind)


def rows(kind: str) -> list[str]:
    if kind == "parts":
        return sorted(ds.dataset("out").to_table()["name"].to_pylist()) if Path("out").exists() else []
    with contextlib.closing(sqlite3.connect("out.db")) as database, database:
        return sorted(name for (name,) in database.execute("SELECT name FROM names"))


def everything() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()}


def refused(kind: str, error: str, resume: bool | None = None) -> None:
    """Whatever is tried, and however often."""
    before = everything()
    for again in (resume, resume, resume):
        with pytest.raises(ArroyoUdfError, match=error):
            run(kind, again)
        assert everything() == before


def newest(folder: str) -> Path:
    return max(Path(folder).glob("*.json"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("resume", [None, True])
def test_lost_checkpoints_double_no_row(kind: str, resume: bool | None) -> None:
    run(kind)
    lost = newest("state/epochs")
    text = lost.read_bytes()
    lost.unlink()
    refused(kind, r"has (part-0|epoch 2).*the checkpoints that this engine goes on from end before 2", resume)
    lost.write_bytes(text)
    Path("in/2.csv").write_text("name\nagain\n")
    run(kind, True)
    assert rows(kind) == ["AGAIN", "HELLO", "WORLD"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_older_copy_doubles_no_row(kind: str) -> None:
    run(kind)
    shutil.copytree("state", "copy")
    Path("in/2.csv").write_text("name\nagain\n")
    run(kind)
    os.rename("state", "newer")
    os.rename("copy", "state")
    refused(kind, r"has (part-0|epoch 4).*they are an older copy")
    shutil.rmtree("state")
    os.rename("newer", "state")
    run(kind)
    assert rows(kind) == ["AGAIN", "HELLO", "WORLD"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("resume", [None, False])
def test_a_folder_that_is_not_mounted_is_no_fresh_start(kind: str, resume: bool | None) -> None:
    run(kind)
    os.rename("state", "elsewhere")
    refused(kind, r"in another place, or in one that is not mounted", resume)
    os.rename("elsewhere", "state")
    run(kind)
    assert rows(kind) == ["HELLO", "WORLD"]


@pytest.mark.parametrize("kind", KINDS)
def test_it_begins_or_goes_on_as_the_place_says(kind: str) -> None:
    refused(kind, "state has no checkpoints: begin without --resume", resume=True)
    run(kind, False)
    Path("in/2.csv").write_text("name\nagain\n")
    refused(kind, "state has checkpoints already: go on from there without --fresh", resume=False)
    run(kind)
    assert rows(kind) == ["AGAIN", "HELLO", "WORLD"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_source_file_that_has_changed(kind: str) -> None:
    run(kind)
    before = os.stat("in/1.csv")
    Path("in/1.csv").write_text("name\nother\nworlds\n")
    refused(kind, r"in/1\.csv")
    Path("in/1.csv").write_text("name\nhello\nworld\n")
    os.utime("in/1.csv", ns=(before.st_atime_ns, before.st_mtime_ns))
    run(kind)
    assert rows(kind) == ["HELLO", "WORLD"]


def each_damage(path: Path) -> Iterator[Damage]:
    """The file is gone, cut, longer, or has one flipped bit."""
    data = path.read_bytes()
    yield path.unlink
    yield lambda: path.write_bytes(data[: len(data) // 2]) and None
    yield lambda: path.write_bytes(data + b"\0") and None
    for at in range(0, len(data), max(1, len(data) // 15)):
        flipped = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        yield lambda flipped=flipped: path.write_bytes(flipped) and None  # type: ignore[misc]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("moment", ["committed", "cleaned"])
def test_whatever_is_damaged_is_refused_by_name_or_has_no_effect(kind: str, moment: str) -> None:
    """Each file of the place; with rows that wait for their sink, and with none."""
    crash_at(moment, kind)
    shutil.rmtree("good", ignore_errors=True)
    os.mkdir("good")
    kept = [name for name in ("state", "out", "out.db") if Path(name).exists()]
    for name in kept:
        (shutil.copytree if Path(name).is_dir() else shutil.copy)(name, f"good/{name}")
    n_refused = 0
    for file in sorted(Path("state").rglob("*")):
        if not file.is_file():
            continue
        for damage in each_damage(file):
            damage()
            before, refusal = everything(), ""
            try:
                run(kind)
            except ArroyoUdfError as error:
                refusal = str(error)
            if refusal:
                n_refused += 1
                assert file.name in refusal or not file.exists(), (file, refusal)
                assert everything() == before, file
            else:
                assert rows(kind) == ["HELLO", "WORLD"], file
            for name in ("state", "out"):
                shutil.rmtree(name, ignore_errors=True)
            Path("out.db").unlink(missing_ok=True)
            for name in kept:
                (shutil.copytree if Path(f"good/{name}").is_dir() else shutil.copy)(f"good/{name}", name)
    assert n_refused > 15
    run(kind)
    assert rows(kind) == ["HELLO", "WORLD"]


def test_a_place_that_an_older_program_has_left_is_gone_on_with() -> None:
    """Of 9677121: windows, and an epoch whose rows wait for their table without checksums. Its files were watched."""
    shutil.copytree(KEPT, "kept")
    os.chdir("kept")
    begun = 1_577_836_800_000_000_000
    os.utime("in/1.csv", ns=(begun, begun))
    told = json.loads(Path("pipeline.json").read_text())
    told["source"]["watch"] = None
    run_pipeline(pipeline_of(told), resume=True)
    with contextlib.closing(sqlite3.connect("out.db")) as database, database:
        assert list(database.execute("SELECT k, n FROM counts")) == [("A", 5)] * 3


def test_a_database_that_is_gone_is_refused_before_anything_is_changed() -> None:
    crash_at("committed", "table")
    os.rename("out.db", "gone.db")
    refused("table", "no table arroyo_udf_epochs any more")
    Path("out.db").unlink(missing_ok=True)
    os.rename("gone.db", "out.db")
    run("table")
    assert rows("table") == ["HELLO", "WORLD"]


@pytest.mark.parametrize("way", ["another table", "an empty one", "forget"])
def test_to_begin_anew_where_a_table_has_rows(way: str) -> None:
    """What the refusal says is possible."""
    run("table")
    os.rename("state", "former")
    with pytest.raises(ArroyoUdfError, match="name another table, or empty this one") as error:
        run("table")
    again = pipeline("table")
    if way == "another table":
        again = again.model_copy(update={"sinks": (Table(uri="sqlite:out.db", table="others"),)})
    else:
        statement = "DELETE FROM names" if way == "an empty one" else str(error.value).rpartition(": ")[2]
        with contextlib.closing(sqlite3.connect("out.db")) as database, database:
            database.execute(statement)
    assert run_pipeline(again).progress.rows_out == 2
    assert rows("table") == ["HELLO", "WORLD"] * (2 if way == "forget" else 1) or way == "forget"


def test_a_bad_record_is_dropped_or_mended_as_the_error_says() -> None:
    """The next attempt goes on with the policy that the error advises."""
    Path("in/1.csv").write_text("name,n\na,1\nb,2\n")
    told = pipeline("parts").model_dump(by_alias=True)
    told["source"] |= {"types": {"n": "int64"}, "bad_records": "fail"}
    told["operators"] = [{"type": "sql", "select": {"name": "name || n"}}]
    run_pipeline(Pipeline.model_validate(told))
    Path("in/2.csv").write_text("name,n\nc,x\nd,4\n")
    with pytest.raises(ArroyoUdfError, match=r"bad_records"):
        run_pipeline(Pipeline.model_validate(told))
    told["source"]["bad_records"] = "drop"
    told["operators"][0]["select"]["name"] = "name   ||  n  -- the same"
    run_pipeline(Pipeline.model_validate(told))
    assert rows("parts") == ["a1", "b2", "d4"]


def test_to_begin_anew_in_another_place_is_as_good_as_its_word() -> None:
    """What errors of checkpoints advise; neither the former place nor its rows are touched."""
    run("parts")
    newest("state/epochs").write_bytes(b"damaged")
    refused("parts", "or begin anew in another place")
    was = pipeline("parts")
    sinks = (Parts(path="anew"),)
    anew = was.model_copy(update={"sinks": sinks, "checkpoints": Checkpoints(place="other", every=3600)})
    run_pipeline(anew)
    assert sorted(ds.dataset("anew").to_table()["name"].to_pylist()) == rows("parts") == ["HELLO", "WORLD"]


def test_what_a_resume_does_not_compare() -> None:
    """Policies, rolling options, layout and comments, how often checkpoints are taken, and the number of slices."""
    was = pipeline("parts")
    run_pipeline(was)
    Path("in/2.csv").write_text("name\nagain\nand\n")
    changed = {
        "source": Files(paths=("in",), bad_records="drop"),
        "operators": (Sql(select={"name": " upper( name )  -- in capitals"}, on_error="drop"),),
        "sinks": (Parts(path="out", part_rows=1, part_bytes=1000, part_seconds=60.0, row_group_rows=1),),
        "checkpoints": Checkpoints(place="state", every_rows=1),
        "parallelism": 2,
    }
    run_pipeline(was.model_copy(update=changed), resume=True)
    assert rows("parts") == ["AGAIN", "AND", "HELLO", "WORLD"]


def test_new_dead_letters_do_not_come_to_those_of_another_run() -> None:
    """Seen as parts that are there: an epoch of theirs may be lower than this pipeline's."""
    run("parts")
    Path("dead").mkdir()
    Path("dead/part-000000001-000-000.parquet").write_bytes(b"of another run")
    changed = {
        "operators": (Sql(select={"name": "upper(name)"}, on_error="dead_letter"),),
        "dead_letters": Parts(path="dead"),
    }
    now = pipeline("parts").model_copy(update=changed)
    before = sorted(os.listdir("state/epochs"))
    for _ in range(2):
        with pytest.raises(ArroyoUdfError, match=r"dead has parts of another run.* move them away"):
            run_pipeline(now, resume=True)
        assert sorted(os.listdir("state/epochs")) == before
    os.remove("dead/part-000000001-000-000.parquet")
    for _ in range(2):  # its own may be there
        run_pipeline(now, resume=True)
