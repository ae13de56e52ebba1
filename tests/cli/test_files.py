"""`run` over files that a newcomer has: what is wrong is said in one sentence, and what travels keeps its meaning."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from arroyo_udf_plugin.cli import main

SOURCE = """
from arroyo_udf_plugin import udf

@udf
def double(x: int) -> int:
    return 2 * x

@udf
def same(t: str) -> str:
    return t
"""


@pytest.fixture(scope="module")
def plugin(build_plugin: Callable[..., Path]) -> Path:
    return build_plugin(SOURCE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "in.csv").write_text('x,t,zip\n1,"NA",01234\n2.0,"",+4912\nNA,,12345678901234567890\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(plugin: Path, function: str, *arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["run", f"{plugin}:{function}", *arguments], input=stdin)


def test_csv_keeps_its_meaning(plugin: Path, folder: Path) -> None:
    assert run(plugin, "double", "in.csv", "--out", "out.csv").exit_code == 0
    assert (folder / "out.csv").read_text() == (
        'x,t,zip,double\n1,"NA",01234,2\n2.0,"",+4912,4\nNA,,12345678901234567890,\n'
    )
    assert (
        run(plugin, "same", "in.csv", "--out", "out.jsonl", "--select", "zip,same", "--types", "x=int").exit_code == 0
    )
    assert (folder / "out.jsonl").read_text() == (
        '{"zip":"01234","same":"NA"}\n{"zip":"+4912","same":""}\n{"zip":"12345678901234567890","same":null}\n'
    )


MISTAKES = [
    (["none.csv", "--out", "o.csv"], "none.csv: there is no such file"),
    (["in.csv", "--out", "in.csv"], "in.csv is an input, too: name another output, or replace it with --force"),
    (["in.csv", "--out", "link.csv"], "link.csv is the input in.csv, too: name another output, or replace"),
    (["in.csv", "--out", "."], ". is a folder; name a file in it"),
    (["in.csv", "--out", "none/o.csv"], "none/o.csv: the folder none does not exist"),
    (["in.csv", "--out", "/dev/full"], "cannot write /dev/full: No space left on device"),
    (["in.csv", "--out", "in.csv/o.csv"], "cannot write in.csv/o.csv: Not a directory"),
    (["in.csv", "--out", "x" * 300 + ".csv"], "x.csv: File name too long"),
    (["in.csv", "--out", "o.xlsx"], "o.xlsx: the file's ending must be one of .csv, "),
    (["text.parquet", "--out", "o.csv"], "cannot read text.parquet: "),
    (["text.arrow", "--out", "o.csv"], "cannot read text.arrow: "),
    (["text.csv.gz", "--out", "o.csv"], "cannot read text.csv.gz: "),
    (["latin.csv", "--out", "o.csv"], "latin.csv: row 1: column 't': b'\\xe4' is not UTF-8"),
    (["wide.csv", "--out", "o.csv"], "wide.csv: row 2: it has 3 cells, and the header has 2: '1,2,3'"),
    (["twice.csv", "--out", "o.csv"], "twice.csv: there are 2 columns 'x'; the columns are x, x"),
    (["empty.csv", "--out", "o.csv"], "empty.csv is empty"),
    (["text.csv", "--out", "o.csv"], "text.csv, row 2: column 'x': 'many' is not int64"),
    (["half.jsonl", "--out", "o.csv"], "half.jsonl, row 1: column 't': \"\\ud800\" is not "),
    ([os.fsdecode(b"\xff.csv"), "--out", "o.csv"], "\\xff.csv, row 1: column 'x': 'many' is not int64"),
    (["in.csv", "--out", "o.csv", "--types", "y=int"], "in.csv: there is no column 'y'; the columns are x, t, zip"),
    (["in.csv", "--out", "o.csv", "--select", "y"], "o.csv: there is no column 'y'; the columns are x, t, zip, double"),
    (["in.csv", "--out", "o.parquet", "--compression", "xz"], "o.parquet: the compressions of parquet are snappy"),
]


@pytest.mark.parametrize(("arguments", "error"), MISTAKES, ids=[error.split(": ")[0] for _, error in MISTAKES])
def test_a_mistake_is_one_sentence(plugin: Path, folder: Path, arguments: list[str], error: str) -> None:
    (folder / "link.csv").symlink_to("in.csv")
    (folder / "latin.csv").write_bytes("x,t\n1,ä\n".encode("latin1"))
    (folder / "wide.csv").write_text("x,t\n1,2\n1,2,3\n")
    (folder / "twice.csv").write_text("x,x\n1,2\n")
    (folder / "empty.csv").touch()
    (folder / "half.jsonl").write_text('{"x": 1, "t": "\\ud800"}\n')
    (folder / os.fsdecode(b"\xff.csv")).write_text("x\nmany\n")
    for name in ("text.csv", "text.parquet", "text.arrow", "text.csv.gz"):
        (folder / name).write_text("x\n1\nmany\n")
    before = sorted(path.name for path in folder.iterdir())
    done = run(plugin, "double", *arguments)
    assert done.exit_code == 1
    assert error in done.output
    assert done.output.startswith("Error: ")
    assert done.output.count("\n") == 1
    assert sorted(path.name for path in folder.iterdir()) == before


WIDTHS = "x,t\n1,a\n2\n3,c,d\n4,e\n"


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        (["null"], "x,t,double\n1,a,2\n,,\n,,\n4,e,8\n"),
        (["drop"], "x,t,double\n1,a,2\n4,e,8\n"),
        (["dead_letter", "--dead-letter", "dead.parquet"], "x,t,double\n1,a,2\n4,e,8\n"),
    ],
)
def test_rows_of_another_width_fail_alone(plugin: Path, folder: Path, policy: list[str], text: str) -> None:
    (folder / "widths.csv").write_text(WIDTHS)
    result = run(plugin, "double", "widths.csv", "--out", "o.csv", "--on-error", *policy)
    assert result.exit_code == 0, result.output
    assert (folder / "o.csv").read_text() == text


def test_a_row_of_another_width_ends_the_run_by_default(plugin: Path, folder: Path) -> None:
    (folder / "widths.csv").write_text(WIDTHS)
    result = run(plugin, "double", "widths.csv", "--out", "o.csv")
    assert result.exit_code == 1
    assert "widths.csv: row 2: it has 1 cell, and the header has 2: '2'" in result.output


def test_types_by_the_first_rows_are_told(plugin: Path, folder: Path) -> None:
    result = run(plugin, "same", "in.csv", "--types", "auto,t=str", "--out", "o.jsonl", "--out-format", "jsonl")
    assert "types by the first rows: x=double\n" in result.output
    assert (folder / "o.jsonl").read_text().startswith('{"x":1.0,"t":"NA","zip":"01234"')


def test_cells_as_elsewhere(plugin: Path, folder: Path) -> None:
    (folder / "de.csv").write_text("# by hand\nx;t;m\n7,0;a;1,5\n")
    options = ["--delimiter", ";", "--decimal-mark", ",", "--comment", "#", "--types", "m=float"]
    assert run(plugin, "double", "de.csv", *options, "--out", "o.csv").exit_code == 0
    assert (folder / "o.csv").read_text() == "x;t;m;double\n7,0;a;1,5;14\n"
    assert run(plugin, "double", "de.csv", *options, "--out", "o.csv", "--out-delimiter", r"\t").exit_code == 0
    assert (folder / "o.csv").read_text() == "x\tt\tm\tdouble\n7,0\ta\t1,5\t14\n"


def test_a_type_by_the_first_lines_that_no_function_takes(plugin: Path, folder: Path) -> None:
    (folder / "in.jsonl").write_text('{"t":1.5}\n')
    result = run(plugin, "same", "in.jsonl", "--out", "-")
    assert "column 't' is double by the first lines, and same takes string: add --types 't=string'" in result.output
    assert run(plugin, "same", "in.jsonl", "--types", "t=string", "--out", "o.csv").exit_code == 0
    assert (folder / "o.csv").read_text() == "t,same\n1.5,1.5\n"


def test_a_column_of_another_type_is_cast_as_the_error_says(plugin: Path, folder: Path) -> None:
    pq.write_table(pa.table({"t": [1]}), folder / "in.parquet")
    result = run(plugin, "same", "in.parquet", "--out", "-")
    assert "argument 't' is int64, not string: cast it in a query, with arroyo-udf sql, or" in result.output
    (folder / "in.csv").write_text("t\n1\n")
    result = run(plugin, "same", "in.csv", "--types", "t=int", "--out", "-")
    assert "argument 't' is int64, not string: give it another type, with --types, or" in result.output
    assert run(plugin, "same", "in.csv", "--types", "t=string", "--out", "o.csv").exit_code == 0
