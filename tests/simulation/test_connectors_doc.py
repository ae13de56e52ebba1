"""docs/connectors/own.md: its sink passes, the faults that it speaks of are found, and its package adds a connector."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packages import environment, install

pytestmark = pytest.mark.once

TEXT = (Path(__file__).parents[2] / "docs" / "connectors" / "own.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


PROGRAM, PACKAGE = blocks("python")
(PRINTED,) = blocks("text")


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


def test_its_program_prints_what_the_document_shows() -> None:
    assert run(PROGRAM).stdout == PRINTED


@pytest.mark.parametrize("line", ["self._disk.fsync(file.fileno())", "self._disk.sync(self._folder)"])
def test_without_a_fsync_it_is_broken(line: str) -> None:
    assert PROGRAM.count(line) == 1
    ended = run(PROGRAM.replace(line, "pass"))
    assert ended.returncode == 1
    assert "Broken: missing" in ended.stderr


def test_its_package_adds_a_connector(tmp_path: Path) -> None:
    (project,), (query,) = blocks("toml"), blocks("sql")
    named = tomllib.loads(project)["project"]
    classes = PROGRAM.partition("\nwith TemporaryDirectory")[0]
    files = {"json_files/__init__.py": PACKAGE, "json_files/sink.py": classes}
    site = tmp_path / "site"
    install(site, named["name"], named["entry-points"], files)
    (tmp_path / "query.sql").write_text(query)
    command = [sys.executable, "-m", "arroyo_udf_plugin.cli", "run", "query.sql", "--checkpoints", "state"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(site), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (file,) = (tmp_path / "out").glob("0*.jsonl")
    assert [json.loads(line) for line in file.read_text().splitlines()] == [{"n": 0}, {"n": 1}, {"n": 2}]
