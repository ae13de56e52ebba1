"""Going back to an older checkpoint: what each sink does with rows of later ones, and says first (O3, O4)."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import adbc_driver_postgresql.dbapi
import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner, Result

from arroyo_udf_plugin import restore_pipeline, run_pipeline
from arroyo_udf_plugin.cli import main
from arroyo_udf_plugin.engine.execution.restoring import Restoring
from arroyo_udf_plugin.engine.pipeline import Pipeline
from arroyo_udf_plugin.engine.pipeline.document import pipeline_of
from arroyo_udf_plugin.errors import InvalidArgument

PARTS: Mapping[str, Any] = {"type": "parts", "path": "out"}
TABLE: Mapping[str, Any] = {"type": "table", "uri": "sqlite:out.db", "table": "names"}
KEYED: Mapping[str, Any] = {**TABLE, "key": ["name"]}
FILES = ("a", "b", "c")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()


def described(*sinks: Mapping[str, Any], **others: Any) -> dict[str, Any]:
    return {
        "name": "names",
        "source": {"type": "files", "paths": ["in"]},
        "sinks": list(sinks),
        "checkpoints": {"place": "state", "every": 3600},
        **others,
    }


def written(pipeline: Mapping[str, Any]) -> Pipeline:
    """Three checkpoints: each of a run that finds a new file."""
    Path("p.json").write_text(json.dumps(pipeline))
    made = pipeline_of(pipeline)
    for name in FILES:
        Path(f"in/{name}.csv").write_text(f"name\n{name}\n")
        run_pipeline(made)
    return made


def parts() -> list[str]:
    return sorted(ds.dataset("out").to_table()["name"].to_pylist())


def table() -> list[str]:
    with contextlib.closing(sqlite3.connect("out.db")) as database:
        return sorted(name for (name,) in database.execute("SELECT name FROM names"))


def everything() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()}


def command(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def checkpoints() -> list[int]:
    lines = command("checkpoints", "ls", "state", "--json").stdout.splitlines()
    return [json.loads(line)["epoch"] for line in lines]


def told(pipeline: Pipeline, epoch: int, *doubles: str) -> Restoring:
    """What `restore_pipeline` says before it does it."""
    says: list[Restoring] = []
    restore_pipeline(pipeline, epoch, doubles=doubles, tell=says.append)
    (one,) = says
    return one


def test_a_folder_withdraws_its_later_parts_and_has_each_row_once_in_the_end() -> None:
    pipeline = written(described(PARTS))
    first, *_ = checkpoints()
    (out,) = told(pipeline, first).sinks
    assert (out.sink, out.fate, out.what) == ("parts", "withdrawn", "2 parts are removed from out")
    assert parts() == ["a"]
    run_pipeline(pipeline)
    assert parts() == ["a", "b", "c"]


def test_a_table_with_a_key_overwrites() -> None:
    pipeline = written(described(KEYED))
    (out,) = told(pipeline, checkpoints()[0]).sinks
    assert (out.fate, out.what) == ("overwritten", "rows of table (names) with the same name are replaced")
    run_pipeline(pipeline)
    assert table() == ["a", "b", "c"]


@pytest.mark.server
@pytest.mark.parametrize("key", [["name"], []])
def test_a_table_on_a_server_is_restored_by_the_same_rules(postgresql: str, key: list[str]) -> None:
    def names() -> list[str]:
        with adbc_driver_postgresql.dbapi.connect(postgresql) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT name FROM names ORDER BY name")
            return [name for (name,) in cursor.fetchall()]

    with adbc_driver_postgresql.dbapi.connect(postgresql, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS names, arroyo_udf_epochs")
    pipeline = written(described({**TABLE, "uri": postgresql, "key": key}))
    first, *_ = checkpoints()
    if not key:
        with pytest.raises(InvalidArgument, match=r"would double rows: table: rows of .* --accept-doubles table$"):
            restore_pipeline(pipeline, first)
        assert names() == ["a", "b", "c"]
    assert [one.fate for one in told(pipeline, first, *([] if key else ["table"])).sinks] == [
        "overwritten" if key else "doubled"
    ]
    run_pipeline(pipeline)
    assert names() == (["a", "b", "c"] if key else ["a", "b", "b", "c", "c"])


def test_a_table_without_a_key_refuses_and_changes_nothing_unless_doubles_are_accepted() -> None:
    pipeline = written(described(PARTS, TABLE))
    first, *_ = checkpoints()
    before = everything()
    for accepted in ([], ["parts"]):
        with pytest.raises(InvalidArgument, match=r"would double rows: table: rows of .* --accept-doubles table$"):
            restore_pipeline(pipeline, first, doubles=accepted)
    with pytest.raises(InvalidArgument, match=r"there is no sink other whose rows could come twice: .* parts, table$"):
        restore_pipeline(pipeline, first, doubles=["other"])
    assert everything() == before
    assert [one.fate for one in told(pipeline, first, "table").sinks] == ["withdrawn", "doubled"]
    run_pipeline(pipeline)
    assert parts() == ["a", "b", "c"]
    assert table() == ["a", "b", "b", "c", "c"]


def test_dead_letters_are_a_sink_too() -> None:
    letters = {"type": "parts", "path": "dead"}
    operator = {"type": "sql", "select": {"name": "name", "n": "CAST(name AS BIGINT)"}, "on_error": "dead_letter"}
    pipeline = written(described(PARTS, operators=[operator], dead_letters=letters))
    fates = {one.sink: one.fate for one in told(pipeline, checkpoints()[0]).sinks}
    assert fates == {"dead_letters": "withdrawn", "parts": "none"}
    run_pipeline(pipeline)
    assert sorted(ds.dataset("dead").to_table()["name"].to_pylist()) == ["a", "b", "c"]


def test_parts_that_a_reader_has_taken_would_come_twice() -> None:
    pipeline = written(described(PARTS))
    *_, last = sorted(Path("out").glob("part-*"))
    last.rename("taken")
    with pytest.raises(InvalidArgument, match=rf"1 parts of out, such as {last.name}, are gone: a reader has taken"):
        restore_pipeline(pipeline, checkpoints()[0])
    restore_pipeline(pipeline, checkpoints()[0], doubles=["parts"])
    run_pipeline(pipeline)
    assert parts() == ["a", "b", "c"]


def test_without_later_rows_nothing_is_doubled() -> None:
    pipeline = written(described(TABLE))
    (out,) = told(pipeline, checkpoints()[-1]).sinks
    assert out.fate == "none"
    run_pipeline(pipeline)
    assert table() == ["a", "b", "c"]


def test_a_place_without_checkpoints_and_a_pipeline_without_a_place() -> None:
    Path("in/a.csv").write_text("name\na\n")
    with pytest.raises(InvalidArgument, match="state has no checkpoints: begin without --restore"):
        restore_pipeline(pipeline_of(described(PARTS)), 2)
    with pytest.raises(InvalidArgument, match="--restore needs the place of the checkpoints"):
        restore_pipeline(pipeline_of(described(PARTS, checkpoints=None)), 2)


def test_a_changed_file_refuses_before_anything_is_changed() -> None:
    """It is one that the checkpoint has read."""
    pipeline = written(described(PARTS))
    first, *_ = checkpoints()
    Path("in/a.csv").write_text("name\nsomething else\n")
    before = everything()
    with pytest.raises(InvalidArgument, match=r"a\.csv"):
        restore_pipeline(pipeline, first)
    assert everything() == before


@pytest.mark.parametrize("retain", [1, 2])
def test_as_many_are_kept_as_the_description_says(retain: int) -> None:
    written(described(PARTS, checkpoints={"place": "state", "every": 3600, "retain": retain}))
    assert len(checkpoints()) == retain


# ---- The command -----------------------------------------------------------------------------------------------------


def test_check_says_what_run_would_do_and_run_says_it_first() -> None:
    written(described(PARTS, TABLE))
    first, *_ = checkpoints()
    said = [
        f"back to checkpoint {first}; what came after it is given up",
        "parts: 2 parts are removed from out",
        "table: rows of table (names) stay, and come again",
    ]
    before = everything()
    assert command("check", "p.json", "--restore", str(first)).stdout.splitlines()[:3] == said
    refused = command("run", "p.json", "--restore", str(first))
    assert refused.exit_code == 1
    assert "To go back all the same: --accept-doubles table" in refused.stderr
    assert everything() == before
    done = command("run", "p.json", "--restore", str(first), "--accept-doubles", "table")
    assert done.exit_code == 0
    assert done.stderr.splitlines()[:3] == said
    assert parts() == ["a", "b", "c"]
    assert table() == ["a", "b", "b", "c", "c"]


def test_ls_says_which_there_are_and_what_is_wrong_with_them() -> None:
    written(described(PARTS, operators=[{"type": "sql", "select": {"name": "upper(name)"}}]))
    first, second, third = checkpoints()
    (state,) = Path("state/states").glob(f"{second:010}-*")
    state.write_bytes(b"?" * 3)
    lines = command("checkpoints", "ls", "state").stdout.splitlines()
    assert [line.split()[0] for line in lines] == [str(one) for one in (first, second, third)]
    assert "bytes of state" in lines[0]
    assert f"{state.name}, the state of sql, is damaged" in lines[1]
    refused = command("run", "p.json", "--restore", str(second))
    assert (refused.exit_code, state.name in refused.stderr) == (1, True)
    assert command("run", "p.json", "--restore", str(first)).exit_code == 0
    assert parts() == ["A", "B", "C"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--restore", "2", "--fresh"], "--resume and --restore go on, and --fresh begins"),
        (["--accept-doubles", "table"], "--accept-doubles belongs to --restore"),
    ],
)
def test_options_that_do_not_fit(arguments: list[str], text: str) -> None:
    done = command("run", "p.json", *arguments)
    assert (done.exit_code, text in done.stderr) == (2, True)


def test_a_savepoint_is_taken_listed_gone_back_to_and_removed() -> None:
    pipeline = written(described(KEYED, checkpoints={"place": "state", "every": 3600, "retain": 1}))
    taken = command("savepoint", "take", "state", "third")
    assert (taken.exit_code, taken.stdout.split()[:3]) == (0, ["third", "checkpoint", str(checkpoints()[0])])
    assert command("savepoint", "take", "state", "third").exit_code == 1
    for name in ("d", "e"):
        Path(f"in/{name}.csv").write_text(f"name\n{name}\n")
        run_pipeline(pipeline)
    assert command("savepoint", "ls", "state").stdout == taken.stdout
    (told,) = map(json.loads, command("savepoint", "ls", "state", "--json").stdout.splitlines())
    assert told["epoch"] not in checkpoints()
    looked = command("check", "p.json", "--restore", "third").stdout.splitlines()
    assert looked[0] == f"back to checkpoint {told['epoch']}; what came after it is given up"
    assert command("run", "p.json", "--restore", "third").exit_code == 0
    assert table() == ["a", "b", "c", "d", "e"]
    assert command("savepoint", "rm", "state", "third").exit_code == 0
    refused = command("run", "p.json", "--restore", "third")
    assert (refused.exit_code, refused.stderr) == (1, "Error: state has no savepoint third\n")
    assert command("run", "p.json", "--restore", "0").exit_code == 2
