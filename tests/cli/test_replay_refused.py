"""Replays that are interrupted, fail or are refused: files stay as they were, or the next replay puts them right."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from replays import SOURCE, again, csv, failing, rows

from arroyo_udf_plugin import InvalidArgument, RowError, load
from arroyo_udf_plugin.engine.connectors.options import Writing
from arroyo_udf_plugin.engine.file_run import Call, run
from arroyo_udf_plugin.engine.file_run.replay import note_of_run, replay
from arroyo_udf_plugin.host.policy import Action

Files = dict[str, Path]


@pytest.fixture(scope="module")
def functions(build_plugin: Callable[..., Path]) -> Any:
    return load(build_plugin(SOURCE, name="replayed")).functions


@pytest.fixture
def mend(tmp_path: Path) -> Path:
    """The file that mends the functions once it exists."""
    return tmp_path / "mended"


# ---- Interrupted and failing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", ["out.csv.rows", "out.csv", "dead.parquet"])
def test_a_crash_between_the_replacements_loses_nothing(
    functions: Any, build_plugin: Callable[..., Path], tmp_path: Path, mend: Path, before: str
) -> None:
    """The process ends before it replaces a file. The next replay ends as if nothing had happened."""
    source = csv(tmp_path / "in.csv", mend, 3, 2, 7, 5)
    target, dead, whole = tmp_path / "out.csv", tmp_path / "dead.parquet", tmp_path / "whole.csv"
    calls = [Call.of(functions["half"])]
    failing(calls, [source], target, dead)
    mend.touch()
    run(calls, [source], whole, on_error="drop")
    program = f"""
import os
from pathlib import Path
from arroyo_udf_plugin import load
from arroyo_udf_plugin.engine.file_run import Call
from arroyo_udf_plugin.engine.file_run.replay import note_of_run, replay
real = os.replace
os.replace = lambda old, new: os._exit(9) if new == {str(tmp_path / before)!r} else real(old, new)
calls = [Call.of(load({str(build_plugin(SOURCE, name="replayed"))!r}).functions["half"])]
target = Path({str(target)!r})
replay(Path({str(dead)!r}), target, calls, note_of_run(target))
"""
    assert subprocess.run([sys.executable, "-c", program]).returncode == 9
    summary = again(calls, dead, target)
    assert summary.already_there == (2 if before == "dead.parquet" else 0)
    assert target.read_text() == whole.read_text()
    assert [row["failed_row"] for row in rows(dead)] == [3]
    assert [row["row"] for row in rows(tmp_path / "out.csv.rows", "parquet")] == [1, 2, 4]


def test_after_an_interrupted_replay_all_letters_fail_again(
    functions: Any, tmp_path: Path, mend: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is nothing to add, and only OUT.rows to put right."""
    source = csv(tmp_path / "in.csv", mend, 3, 2, 7)
    target, dead, whole = tmp_path / "out.jsonl", tmp_path / "dead.parquet", tmp_path / "whole.jsonl"
    calls = [Call.of(functions["half"])]
    failing(calls, [source], target, dead)
    before = target.read_text()
    mend.touch()
    with monkeypatch.context() as patched:
        real = os.replace
        patched.setattr(os, "replace", lambda old, new: real(old, os.devnull + "/" if new == str(target) else new))
        with pytest.raises(InvalidArgument, match=r"cannot write .*out\.jsonl"):
            again(calls, dead, target)
    mend.unlink()
    assert again(calls, dead, target).dead_letters == 2
    assert target.read_text() == before
    mend.touch()
    assert again(calls, dead, target).added == 1
    run(calls, [source], whole, on_error="drop")
    assert target.read_text() == whole.read_text()


@pytest.mark.parametrize("on_error", ["dead_letter", "null"])
def test_a_run_that_fails_at_its_end_leaves_earlier_dead_letters(
    functions: Any, tmp_path: Path, mend: Path, on_error: Action
) -> None:
    """The output's last rows are written at the end, and one of them cannot be."""
    source, target, dead = tmp_path / "in.parquet", tmp_path / "out.csv", tmp_path / "dead.parquet"
    pyarrow.parquet.write_table(pa.table({"t": ["q,r", "s"], "mend": [str(mend)] * 2, "x": [2, 3]}), source)
    calls = [Call.of(functions["half"])]
    failing(calls, [source], target, dead)
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(files) == 4
    with pytest.raises(InvalidArgument, match=r"column 't': 'q,r' cannot be written without quotes"):
        run(
            calls,
            [source],
            target,
            on_error=on_error,
            dead_letter=dead if on_error == "dead_letter" else None,
            writing=Writing(quote=""),
        )
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == files


def test_a_replay_that_fails_changes_nothing(functions: Any, tmp_path: Path, mend: Path) -> None:
    source = csv(tmp_path / "in.csv", mend, 3, 2, 7)
    target, dead = tmp_path / "out.csv", tmp_path / "dead.parquet"
    calls = [Call.of(functions["half"])]
    failing(calls, [source], target, dead)
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(RowError, match=r"replayed\.half, .*in\.csv, row 1: ValueError: 3 is odd"):
        replay(dead, target, calls, dataclasses.replace(note_of_run(target), on_error="fail"))
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == files


# ---- Refused ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(functions: Any, tmp_path: Path, mend: Path) -> Files:
    """An output and its dead letters."""
    source = csv(tmp_path / "in.csv", mend, 3, 2)
    target, dead = tmp_path / "out.csv", tmp_path / "dead.parquet"
    failing([Call.of(functions["half"])], [source], target, dead)
    return {"source": source, "target": target, "dead": dead}


def test_an_output_without_its_row_numbers_is_refused(functions: Any, files: Files) -> None:
    (files["target"].parent / "out.csv.rows").unlink()
    with pytest.raises(InvalidArgument, match=r"out\.csv\.rows is missing: a run with dead letters writes it"):
        again([Call.of(functions["half"])], files["dead"], files["target"])


def test_a_run_without_dead_letters_removes_the_row_numbers(functions: Any, files: Files) -> None:
    """They would be those of other rows."""
    run([Call.of(functions["half"])], [files["source"]], files["target"], on_error="null")
    assert not (files["target"].parent / "out.csv.rows").exists()


def test_an_input_given_twice_is_refused(functions: Any, files: Files) -> None:
    """Rows of one file and number could not be told apart."""
    with pytest.raises(InvalidArgument, match="an input is given twice"):
        failing([Call.of(functions["half"])], [files["source"]] * 2, files["target"], files["dead"])


def test_dead_letters_that_would_replace_an_input_are_refused(functions: Any, tmp_path: Path, mend: Path) -> None:
    source, calls = tmp_path / "in.parquet", [Call.of(functions["half"])]
    pyarrow.parquet.write_table(pa.table({"mend": [str(mend)], "x": [2]}), source)
    before = source.read_bytes()
    with pytest.raises(InvalidArgument, match=r"in\.parquet is an input, too: .* --force"):
        failing(calls, [source], tmp_path / "out.csv", source)
    assert source.read_bytes() == before
    failing(calls, [source], tmp_path / "out.csv", source, writing=Writing(force=True))
    assert rows(source) == []


def test_an_output_of_dead_letters_is_refused_before_a_call(functions: Any, files: Files, tmp_path: Path) -> None:
    """It keeps their columns failed_..., which replayed rows lack. An earlier output's row numbers go."""
    calls, target, dead = [Call.of(functions["half"])], tmp_path / "more.csv", tmp_path / "more.parquet"
    failing(calls, [files["source"]], target, dead)
    failing(calls, [files["dead"]], target, dead)
    with pytest.raises(InvalidArgument, match=r"more\.csv\.rows is missing: .* writes it .* if its input has none"):
        note_of_run(target)


def test_letters_of_another_run_are_refused(functions: Any, files: Files, tmp_path: Path) -> None:
    other = tmp_path / "other.parquet"
    failing([Call.of(functions["half"])], [files["source"]], tmp_path / "other.csv", other)
    with pytest.raises(InvalidArgument, match=r"other\.parquet and .*out\.csv are of different runs"):
        again([Call.of(functions["half"])], other, files["target"])


def test_an_output_that_has_changed_is_refused(functions: Any, files: Files) -> None:
    files["target"].write_text(files["target"].read_text() + "9,9,9,9\n")
    with pytest.raises(InvalidArgument, match=r"out\.csv has 2 rows, and .*out\.csv\.rows has the numbers of 1: it is"):
        again([Call.of(functions["half"])], files["dead"], files["target"])


def test_other_columns_are_refused(functions: Any, files: Files, mend: Path) -> None:
    mend.touch()
    before = files["target"].read_text()
    with pytest.raises(InvalidArgument, match=r"has the columns id, mend, x, half, and the replay makes .*, other$"):
        again([Call.of(functions["half"], name="other")], files["dead"], files["target"])
    assert files["target"].read_text() == before
    assert len(rows(files["dead"])) == 1


def test_a_file_without_letters_is_refused(functions: Any, files: Files) -> None:
    with pytest.raises(InvalidArgument, match=r"in\.csv has no dead letters"):
        again([Call.of(functions["half"])], files["source"], files["target"])


def test_another_file_of_that_name_is_not_replaced(functions: Any, files: Files, tmp_path: Path) -> None:
    mine = tmp_path / "more.csv.rows"
    mine.write_text("mine")
    with pytest.raises(InvalidArgument, match=r"more\.csv\.rows is the file for the row numbers of .*: move it"):
        failing([Call.of(functions["half"])], [files["source"]], tmp_path / "more.csv", tmp_path / "d.arrow")
    run([Call.of(functions["half"])], [files["source"]], tmp_path / "more.csv", on_error="null")
    assert mine.read_text() == "mine"
