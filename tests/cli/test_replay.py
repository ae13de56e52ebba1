"""Dead letters and their replay into the output of their run: nothing is lost, doubled or out of place (R3)."""

from __future__ import annotations

import json
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

from arroyo_udf_plugin import load
from arroyo_udf_plugin.engine.connectors.options import Reading, Writing
from arroyo_udf_plugin.engine.file_run import Call, run


@pytest.fixture(scope="module")
def functions(build_plugin: Callable[..., Path]) -> Any:
    return load(build_plugin(SOURCE, name="replayed")).functions


@pytest.fixture
def mend(tmp_path: Path) -> Path:
    """The file that mends the functions once it exists."""
    return tmp_path / "mended"


@pytest.mark.parametrize("name", ["half", "half_later"])
@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet", ".arrow"])
def test_replayed_rows_take_their_places(functions: Any, tmp_path: Path, mend: Path, name: str, ending: str) -> None:
    """The output is the one that a run without failures would have written, but for the row that never succeeds."""
    source = csv(tmp_path / "in.csv", mend, 1, 2, 3, "NA", 7, 4, 5)
    target, dead, whole = (
        tmp_path / f"{stem}{end}" for stem, end in (("out", ending), ("dead", ".parquet"), ("w", ending))
    )
    calls = [Call.of(functions[name], name="half")]
    assert failing(calls, [source], target, dead).dead_letters == 4
    mend.touch()
    summary = again(calls, dead, target)
    assert (summary.rows, summary.added, summary.dead_letters, summary.already_there) == (4, 3, 1, 0)
    run(calls, [source], whole, on_error="drop")
    assert rows(target) == rows(whole)
    if ending == ".csv":
        assert target.read_text() == whole.read_text()
    (letter,) = pyarrow.parquet.read_table(dead).to_pylist()
    assert (letter["id"], letter["x"], letter["failed_row"], letter["failed_file"]) == ("005", "7", 5, str(source))


def test_letters_keep_their_first_row_and_file_however_often(functions: Any, tmp_path: Path, mend: Path) -> None:
    inputs = [csv(tmp_path / "a.csv", mend, 2, 3), csv(tmp_path / "b.csv", mend, 7, 4, 5)]
    target, dead = tmp_path / "out.csv", tmp_path / "dead.arrow"
    calls = [Call.of(functions["half"])]
    failing(calls, inputs, target, dead)
    before = rows(dead)
    assert [(row["id"], row["failed_file"], row["failed_row"]) for row in before] == [
        ("002", str(inputs[0]), 2),
        ("001", str(inputs[1]), 1),
        ("003", str(inputs[1]), 3),
    ]
    for _ in range(3):
        assert again(calls, dead, target).added == 0
        assert rows(dead) == before
    assert target.read_text() == f"id,mend,x,half\n001,{mend},2,1\n002,{mend},4,2\n"
    mend.touch()
    again(calls, dead, target)
    assert target.read_text() == (f"id,mend,x,half\n001,{mend},2,1\n002,{mend},3,1\n002,{mend},4,2\n003,{mend},5,2\n")
    assert [(row["id"], row["failed_file"], row["failed_row"]) for row in rows(dead)] == [("001", str(inputs[1]), 1)]


def test_a_file_whose_rows_all_failed_has_its_place(functions: Any, tmp_path: Path, mend: Path) -> None:
    inputs = [csv(tmp_path / f"{name}.csv", mend, *numbers) for name, numbers in (("b", [3]), ("a", [2]))]
    target, dead = tmp_path / "out.csv", tmp_path / "dead.arrow"
    calls = [Call.of(functions["half"])]
    failing(calls, inputs, target, dead)
    mend.touch()
    again(calls, dead, target)
    assert [line.split(",")[2] for line in target.read_text().splitlines()] == ["x", "3", "2"]


def test_many_rows_of_several_batches(functions: Any, tmp_path: Path, mend: Path) -> None:
    n_rows = 30_000
    source, target, dead = tmp_path / "in.parquet", tmp_path / "out.parquet", tmp_path / "dead.parquet"
    x = [6 * i + (i % 1000 == 999) * 3 for i in range(n_rows)]
    pyarrow.parquet.write_table(pa.table({"mend": [str(mend)] * n_rows, "x": pa.array(x, pa.int64())}), source)
    calls = [Call.of(functions["half_later"])]
    assert failing(calls, [source], target, dead).dead_letters == 30
    mend.touch()
    assert again(calls, dead, target).added == 30
    table = pyarrow.parquet.read_table(target)
    assert table["x"].to_pylist() == x
    assert table["half_later"].to_pylist() == [number // 2 for number in x]


def test_an_unordered_output_keeps_its_order(functions: Any, tmp_path: Path, mend: Path) -> None:
    n_rows = 5_000
    source, target, dead = tmp_path / "in.parquet", tmp_path / "out.parquet", tmp_path / "dead.parquet"
    pyarrow.parquet.write_table(pa.table({"mend": [str(mend)] * n_rows, "x": range(n_rows)}), source)
    calls = [Call.of(functions["half_as_it_comes"])]
    failing(calls, [source], target, dead)
    before = pyarrow.parquet.read_table(target)["x"].to_pylist()
    mend.touch()
    assert again(calls, dead, target).added == n_rows // 2
    table = pyarrow.parquet.read_table(target)
    assert [x for x in table["x"].to_pylist() if x % 2 == 0] == before
    assert sorted(table["x"].to_pylist()) == list(range(n_rows))
    assert [row["row"] - 1 for row in rows(tmp_path / "out.parquet.rows", "parquet")] == table["x"].to_pylist()


def test_letters_that_pandas_has_written_again(functions: Any, tmp_path: Path, mend: Path) -> None:
    """They have lost all notes, and a value is mended."""
    source = csv(tmp_path / "in.csv", mend, 2, "many", 4)
    target, dead = tmp_path / "out.csv", tmp_path / "dead.parquet"
    calls = [Call.of(functions["half"])]
    failing(calls, [source], target, dead)
    table = pyarrow.parquet.read_table(dead)
    assert table["failed_error"].to_pylist() == ["column 'x': 'many' is not int64"]
    table = table.set_column(table.schema.names.index("x"), "x", [["6"]])
    plain = pa.table({name: table[name].to_pylist() for name in table.schema.names})
    pyarrow.parquet.write_table(plain, dead)
    assert again(calls, dead, target).added == 1
    assert [line.split(",", 2)[2] for line in target.read_text().splitlines()] == ["x,half", "2,1", "6,3", "4,2"]


def test_several_functions_are_replayed_together(functions: Any, tmp_path: Path, mend: Path) -> None:
    source = csv(tmp_path / "in.csv", mend, 3, 4)
    target, dead = tmp_path / "out.csv", tmp_path / "dead.parquet"
    calls = [Call.of(functions["half"]), Call.of(functions["tenfold"], ["half"], "much")]
    failing(calls, [source], target, dead)
    assert pyarrow.parquet.read_table(dead).schema.names[:4] == ["id", "mend", "x", "failed_row"]
    mend.touch()
    again(calls, dead, target)
    assert target.read_text() == f"id,mend,x,half,much\n001,{mend},3,1,10\n002,{mend},4,2,20\n"


def test_cells_come_back_as_they_stood(functions: Any, tmp_path: Path, mend: Path) -> None:
    """Quoted commas, texts that would be null without quotes, null texts: of an added row as of any other."""
    line = '"a,b",NA,"NA","",{mend},3\n'
    source, target, dead = tmp_path / "in.csv", tmp_path / "out.csv", tmp_path / "dead.parquet"
    source.write_text("t,u,v,w,mend,x\n" + line.format(mend=mend))
    calls = [Call.of(functions["half"])]
    failing(calls, [source], target, dead)
    mend.touch()
    again(calls, dead, target)
    assert target.read_text() == "t,u,v,w,mend,x,half\n" + line.format(mend=mend).rstrip() + ",1\n"


def test_values_of_json_come_back_as_they_stood(functions: Any, tmp_path: Path, mend: Path) -> None:
    line = f'{{"n": 5, "t": "5", "l": [1, null], "z": null, "mend": "{mend}", "x": 3'
    source, target, dead = tmp_path / "in.jsonl", tmp_path / "out.jsonl", tmp_path / "dead.parquet"
    source.write_text("\n" + line + "}\n")
    calls = [Call.of(functions["half"])]
    failing(calls, [source], target, dead)
    assert pyarrow.parquet.read_table(dead)["failed_row"].to_pylist() == [2]  # the line
    mend.touch()
    again(calls, dead, target)
    whole = tmp_path / "whole.jsonl"
    run(calls, [source], whole)
    assert target.read_text() == whole.read_text()


MIXED: list[dict[str, Any]] = [
    {"t": "a", "n": 1, "big": 10**20, "none": None, "x": 2},
    {"t": 5, "n": 2.5, "big": 1, "none": None, "x": 3},
    {"t": "late", "n": 2, "big": [None], "none": [], "x": 4},
]
NOT_JSON = pa.table({"f": [1.5, 2.0, float("nan")], "none": [None, None, None], "x": [2, 3, 4]})


@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
def test_late_values_of_another_kind_are_not_lost(
    functions: Any, tmp_path: Path, mend: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first block of the output has one row, and says nothing about the others' types."""
    source, target, dead, whole = (
        tmp_path / name for name in (f"in{ending}", "out.jsonl", "dead.arrow", "whole.jsonl")
    )
    if ending == ".jsonl":
        source.write_text("".join(json.dumps({**line, "mend": str(mend)}) + "\n" for line in MIXED))
    else:
        pyarrow.parquet.write_table(NOT_JSON.append_column("mend", [[str(mend)] * 3]), source)
    calls = [Call.of(functions["half"])]
    failing(calls, [source], target, dead)
    mend.touch()
    run(calls, [source], whole)
    monkeypatch.setattr("arroyo_udf_plugin.engine.connectors.blocks.BLOCK_BYTES", 20)
    assert again(calls, dead, target).added == 1
    assert target.read_text() == whole.read_text()


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".csv.gz"])
def test_an_output_without_rows_takes_them_in(functions: Any, tmp_path: Path, mend: Path, ending: str) -> None:
    source = csv(tmp_path / "in.csv", mend, 3, 5)
    target, dead, whole = tmp_path / f"out{ending}", tmp_path / "dead.parquet", tmp_path / f"whole{ending}"
    calls = [Call.of(functions["half"])]
    failing(calls, [source], target, dead)
    mend.touch()
    assert again(calls, dead, target).added == 2
    run(calls, [source], whole)
    assert rows(target) == rows(whole)


@pytest.mark.parametrize("inputs", [["./b.csv", "./a.csv"], ["./folder"], ["-", "a.csv"]])
def test_inputs_keep_their_order_however_they_are_named(
    functions: Any, tmp_path: Path, mend: Path, inputs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All rows of the first succeed, so that the dead letters do not know it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for first, second in (("b.csv", "a.csv"), ("folder/1.csv", "folder/2.csv")):
        csv(tmp_path / first, mend, 2)
        csv(tmp_path / second, mend, 3, 4)
    calls, target, dead = [Call.of(functions["half"])], tmp_path / "out.csv", tmp_path / "dead.parquet"
    with open("b.csv", "rb") as stdin, monkeypatch.context() as patched:
        real = os.dup
        patched.setattr(os, "dup", lambda fd: real(fd or stdin.fileno()))
        run(calls, inputs, target, on_error="dead_letter", dead_letter=dead, reading=Reading(format="csv"))
    mend.touch()
    again(calls, dead, target)
    assert [line.split(",")[2] for line in target.read_text().splitlines()] == ["x", "2", "3", "4"]


def test_names_of_typed_files_that_are_not_utf8(functions: Any, tmp_path: Path, mend: Path) -> None:
    source = csv(tmp_path / os.fsdecode(b"in\xff.csv"), mend, 2, 3)
    for ending in (".parquet", ".arrow"):
        target, dead = (tmp_path / (os.fsdecode(name) + ending) for name in (b"out\xff", b"dead\xff"))
        calls = [Call.of(functions["half"])]
        mend.unlink(missing_ok=True)
        for _ in range(2):
            failing(calls, [source], target, dead)  # the second replaces the first one's row numbers
        assert rows(dead)[0]["failed_file"] == str(tmp_path / r"in\xff.csv")
        mend.touch()
        assert again(calls, dead, target).added == 1
        assert [row["x"] for row in rows(target)] == [2, 3]


def test_a_row_that_could_not_be_read_never_becomes_null(functions: Any, tmp_path: Path, mend: Path) -> None:
    """Its values are lost, so that a replay would call the function with nulls, or not at all."""
    source, target, dead = tmp_path / "in.jsonl", tmp_path / "out.jsonl", tmp_path / "dead.parquet"
    lines = [f'{{"mend": "{mend}", "x": {x}}}\n' for x in ("2", "2", '"many"', "[")]
    source.write_text("".join(lines))
    calls = [Call.of(functions["half"])]
    failing(calls, [source], target, dead, reading=Reading(types={"x": "int"}))
    before = rows(dead)
    assert "'many' is not int64" in before[0]["failed_error"]
    assert [(row["failed_row"], row["failed_outcome"], row["x"]) for row in before] == [
        (3, "unread", None),
        (4, "unread", None),
    ]
    assert (again(calls, dead, target).added, rows(dead)) == (0, before)


def test_the_dialect_of_the_output_is_kept(functions: Any, tmp_path: Path, mend: Path) -> None:
    source, target, dead = tmp_path / "in.csv", tmp_path / "out.csv", tmp_path / "dead.parquet"
    source.write_text(f"id;mend;x\n1;{mend};2\n-;{mend};3\n")
    how = {"reading": Reading(delimiter=";", null_values=("-",)), "writing": Writing(delimiter=";", null_values=("-",))}
    calls = [Call.of(functions["half"])]
    failing(calls, [source], target, dead, **how)
    mend.touch()
    again(calls, dead, target)
    assert target.read_text() == f"id;mend;x;half\n1;{mend};2;1\n-;{mend};3;1\n"


# ---- The command -----------------------------------------------------------------------------------------------------


def cli(*arguments: object, cwd: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "arroyo_udf_plugin.cli", *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done


def test_replay_knows_how_the_run_was_made(build_plugin: Callable[..., Path], tmp_path: Path, mend: Path) -> None:
    """Plugin, functions, columns, names, options and policy; from another folder, too. Each can be given anew."""
    plugin = build_plugin(SOURCE, name="replayed")
    csv(tmp_path / "in.csv", mend, 3, 2, 7)
    calls = ["--call", "a half = half_later(mend, x)", "--call", 'much = tenfold("a half")', "--option", "timeout=5"]
    failing = ["--on-error", "dead_letter", "--dead-letter", "dead.parquet"]
    cli("run", plugin, "in.csv", "--out", "out.csv", *calls, *failing, cwd=tmp_path)
    mend.touch()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = cli("replay", "../dead.parquet", "--into", "../out.csv", cwd=elsewhere)
    assert done.stdout.startswith("../out.csv: 1 row added of 2 dead letters; 2 values, 1 error, ")
    assert (tmp_path / "out.csv").read_text() == (f"id,mend,x,a half,much\n001,{mend},3,1,10\n002,{mend},2,1,10\n")
    refused = cli(
        "replay", "dead.parquet", "--into", "out.csv", "--option", "timeout.timeout=1", cwd=tmp_path, status=2
    )
    assert "timeout: it is a function here and an option of the run; leave it out" in refused.stderr
    # A function that also takes 7. It is sync, so the run's options do not apply.
    lenient = build_plugin("from arroyo_udf_plugin import udf\n@udf\ndef lenient(x: int) -> int:\n    return 3\n")
    again = ["replay", "dead.parquet", "--into", "out.csv"]
    assert "has no function 'half_later'" in cli(*again, "--plugin", lenient, cwd=tmp_path, status=1).stderr
    calls = ["--call", "a half = lenient(x)", "--call", "much = lenient(x)"]
    done = cli(*again, "--plugin", lenient, *calls, "--option", "timeout=5", cwd=tmp_path, status=1)
    assert "timeout are options of async functions" in done.stderr
    done = cli(*again, "--plugin", lenient, *calls, "--on-error", "fail", "--json", cwd=tmp_path)
    assert (json.loads(done.stdout)["added"], json.loads(done.stdout)["dead_letters"]) == (1, 0)
    assert (tmp_path / "out.csv").read_text().splitlines()[-1] == f"003,{mend},7,3,3"
    assert cli(*again, cwd=tmp_path).stdout.startswith("out.csv: 0 rows added of 0 dead letters; ")
