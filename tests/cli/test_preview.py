"""`run` without --out: the first rows as a table, and no file."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

BuildPlugin = Callable[..., Path]

SOURCE = """
from arroyo_udf_plugin import udf

@udf
def half(x: int) -> float:
    if x == 3:
        raise ValueError("three")
    return x / 2

@udf
def raw(x: int) -> bytes | None:
    return None if x == 2 else bytes([x, 255])

@udf
def named(name: str) -> str | None:
    return None if name == "b" else f"\\x1b[31m{name}" + "." * 100
"""


@pytest.fixture(scope="module")
def plugin(build_plugin: BuildPlugin) -> Path:
    return build_plugin(SOURCE, name="shown")


def cli(*words: object, cwd: Path, status: int = 0, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "arroyo_udf_plugin.cli", *map(str, words)]
    done = subprocess.run(command, cwd=cwd, stdout=stdout, stderr=subprocess.PIPE, text=True)
    assert done.returncode == status, done.stderr
    return done


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    (tmp_path / "rows.csv").write_text("x,name\n" + "".join(f"{x},{chr(96 + x)}\n" for x in range(1, 21)))
    return tmp_path


def test_the_first_rows_are_shown_and_nothing_is_written(plugin: Path, rows: Path) -> None:
    done = cli("run", f"{plugin}:half", "rows.csv", "--on-error", "null", cwd=rows)
    assert done.stdout.splitlines()[:4] == [" x  name  half", " 1  a      0.5", " 2  b      1.0", " 3  c     null"]
    assert len(done.stdout.splitlines()) == 11
    first, failed, last = done.stderr.splitlines()
    assert first.startswith("the first 10 rows; 9 values, 1 error, ")
    assert failed == "1 row failed in half, such as rows.csv, row 3: ValueError: three"
    assert last == "nothing was written; to write all rows, add --out FILE"
    assert [file.name for file in rows.iterdir()] == ["rows.csv"]


def test_as_json(plugin: Path, rows: Path) -> None:
    words = ("--select", "half,x", "--limit", "2", "--json")
    told = json.loads(cli("run", f"{plugin}:half", "rows.csv", *words, cwd=rows).stdout)
    assert told["preview"] == [{"half": 0.5, "x": 1}, {"half": 1.0, "x": 2}]
    assert (told["rows"], told["values"]) == (2, 2)


def test_all_rows_of_a_small_file(plugin: Path, tmp_path: Path) -> None:
    (tmp_path / "few.csv").write_text("x\n1\n")
    assert cli("run", f"{plugin}:half", "few.csv", cwd=tmp_path).stderr.startswith("all rows (1); ")
    (tmp_path / "none.csv").write_text("x\n")
    assert cli("run", f"{plugin}:half", "none.csv", cwd=tmp_path).stdout == "no rows\n"


def test_values_are_cut_and_do_not_reach_the_terminal_as_they_are(plugin: Path, rows: Path) -> None:
    done = cli("run", f"{plugin}:named", "rows.csv", "--limit", "2", cwd=rows)
    header, first, second = done.stdout.splitlines()
    assert header == "x  name  named"
    assert first == "1  a     \\x1b[31ma" + "." * 30 + "…"
    assert second == "2  b     null"


def test_a_narrow_terminal_leaves_columns_out_but_results(plugin: Path, tmp_path: Path) -> None:
    names = [f"column{number}" for number in range(20)]
    (tmp_path / "wide.csv").write_text(f"{','.join(names)},x\n{'1,' * 20}8\n")
    ours, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    command = [sys.executable, "-m", "arroyo_udf_plugin.cli", "run", f"{plugin}:half", "wide.csv"]
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    subprocess.run(command, cwd=tmp_path, stdin=terminal, stdout=terminal, stderr=subprocess.PIPE, env=environment)
    os.close(terminal)
    header = os.read(ours, 1000).decode().splitlines()[0]
    os.close(ours)
    assert header == "column0  column1  column2  …  half"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--force"], "--force"),
        (["--on-error", "dead_letter", "--dead-letter", "a.arrow"], "--dead-letter, the policy dead_letter"),
        (["--out-format", "csv"], "--out-format"),
    ],
)
def test_options_of_outputs_are_refused(plugin: Path, rows: Path, words: list[str], named: str) -> None:
    done = cli("run", f"{plugin}:half", "rows.csv", *words, cwd=rows, status=2)
    assert done.stderr.endswith(f"without --out, rows are only shown: add --out FILE, or leave out {named}\n")


def test_no_error_names_the_temporary_file(plugin: Path, rows: Path) -> None:
    done = cli("run", f"{plugin}:half", "rows.csv", "--select", "y", cwd=rows, status=1)
    assert done.stderr == "Error: there is no column 'y'; the columns are x, name, half\n"


def test_texts_with_separators_of_lines(plugin: Path, tmp_path: Path) -> None:
    (tmp_path / "odd.csv").write_text("x,name\n1,a\u2028b\u2029c\x85d\n", encoding="utf-8")
    done = cli("run", f"{plugin}:half", "odd.csv", cwd=tmp_path)
    assert done.stdout.split("\n")[1] == "1  a\\u2028b\\u2029c\\x85d   0.5"


@pytest.mark.parametrize("options", [("timeout=5", "timeout.timeout=1"), ("timeout.timeout=1", "timeout=5")])
def test_an_option_that_is_a_function_too_is_refused(plugin: Path, rows: Path, options: tuple[str, str]) -> None:
    words = [word for option in options for word in ("--option", option)]
    done = cli("run", f"{plugin}:half", "rows.csv", *words, cwd=rows, status=2)
    assert done.stderr.endswith(f"--option {options[1]}: timeout is an option and a function; leave one out\n")


def test_bytes_and_columns_of_one_name_are_shown(plugin: Path, tmp_path: Path) -> None:
    (tmp_path / "twice.csv").write_text("a,x,a,a (3)\nb,1,c,d\nb,2,c,d\n")
    done = cli("run", f"{plugin}:raw", "twice.csv", cwd=tmp_path)
    assert done.stdout.splitlines() == [
        "a  x  a (3) (3)  a (3)  raw",
        "b  1  c          d      01ff",
        "b  2  c          d      null",
    ]
