"""The place of a killed engine's checkpoints is damaged: an engine that goes on refuses it by name and changes nothing,
however often, or the damage has no effect; then all rows are there, once.

A pipeline of a sync and an unordered async function reads some files, and writes a folder, a table, whose rows wait in
the place, and dead letters. Its engines are real processes.

KILLS: a tenth of it is the number of moments at which an engine is killed (at least one), of those in MOMENTS.
KILL_SEED: of all that is random here.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import secrets
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_kill import CHILD, FUNCTIONS, KILLS, PATIENCE, Rows, rows_of_parts

pytestmark = [pytest.mark.pipelines, pytest.mark.timeout(7200)]

MOMENTS = ("committed", "applied", "staged", "cleaned", "sealed")[: max(1, KILLS // 10)]
FILES, ROWS_OF_FILE = 4, 100  # for each engine that is killed
REFUSALS = 2  # how often a start is repeated that was refused
FLIPS = 3  # bytes of each file
OURS = ("state", "out", "letters", "rows.db")

Tree = Mapping[str, bytes]


class Pipeline:
    """What is there of one pipeline: `state`, the place, and what its sinks have."""

    def __init__(self, folder: Path, plugin: Path) -> None:
        self.folder = folder
        seed = int(os.environ.get("KILL_SEED", secrets.randbelow(10**6)))
        print(f"KILL_SEED={seed} KILLS={KILLS}")
        self.random = random.Random(seed)
        (folder / "input").mkdir()
        self._files = 0
        self._description = folder / "pipeline.json"
        calls = {
            "plugin": str(plugin),
            "calls": ["doubled = doubled(n)", "text = slowly(n)"],
            "on_error": "dead_letter",
        }
        sinks = [
            {"type": "parts", "path": str(folder / "out")},
            {"type": "table", "uri": f"sqlite:{folder / 'rows.db'}", "table": "rows"},
        ]
        described = {
            "name": "damaged",
            "source": {"type": "files", "paths": [str(folder / "input")]},
            "operators": [calls],
            "dead_letters": {"type": "parts", "path": str(folder / "letters")},
            "sinks": sinks,
            "checkpoints": {"place": str(folder / "state"), "every": 0.01},
            "parallelism": 2,
        }
        self._description.write_text(json.dumps(described))

    def engine(self, moment: str = "none") -> subprocess.CompletedProcess[str]:
        """One that ends by itself, begins, or goes on if something is there."""
        resume = ["--resume"] if (self.folder / "state").exists() else []
        command = [sys.executable, str(CHILD), str(self._description), moment, "0", *resume]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)

    def add_files(self) -> None:
        for number in range(self._files, self._files + FILES):
            first = number * ROWS_OF_FILE
            rows = pa.table({"n": pa.array(range(first, first + ROWS_OF_FILE))})
            pq.write_table(rows, self.folder / "input" / f"{number:03}.parquet")
        self._files += FILES

    def kill(self, moment: str) -> None:
        """Lets an engine read more files, and ends it in its first epoch."""
        self.add_files()
        ended = self.engine(moment)
        assert ended.returncode == -signal.SIGKILL, ended.stderr

    def tree(self, below: str = "") -> Tree:
        """All that is ours, or what has names that begin so."""
        every = [path for name in OURS for path in (self.folder / name, *(self.folder / name).rglob("*"))]
        found = {str(path.relative_to(self.folder)): path for path in every if path.is_file()}
        return {name: path.read_bytes() for name, path in sorted(found.items()) if name.startswith(below)}

    def put_back(self, tree: Tree, below: str = "") -> None:
        """Makes what has names that begin so as it was."""
        for name in self.tree(below):
            if name not in tree:
                (self.folder / name).unlink()
        for name, data in tree.items():
            if name.startswith(below):
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / name).write_bytes(data)

    def goes_on(self, damage: str, *named: str) -> bool:
        """Lets an engine go on, to the end, with all rows. False: it refuses that, and changes nothing.

        named: a refusal's text must name one of them; otherwise a path.
        """
        before = self.tree()
        for _ in range(REFUSALS):
            ended = self.engine()
            if ended.returncode == 0:
                self.check(damage)
                return True
            refusal = ended.stderr.strip().splitlines()
            told = "\n".join(refusal[-3:])
            assert re.search(r"(InvalidArgument|WrongCheckpoints): ", told), f"{damage}: no refusal\n{ended.stderr}"
            assert any(name in told for name in named or (str(self.folder),)), f"{damage}: nothing is named\n{told}"
            changed = [name for name, data in self.tree().items() if before.get(name) != data]
            assert not changed, f"{damage}: a refusal has changed {changed}"
            assert before.keys() == self.tree().keys(), f"{damage}: a refusal has removed files"
        return False

    def check(self, what: str) -> None:
        numbers = range(self._files * ROWS_OF_FILE)
        expected = Rows((n, 2 * n, f"row {n}") for n in numbers if n % 50 != 7)
        assert rows_of_parts(str(self.folder / "out")) == expected, what
        with contextlib.closing(sqlite3.connect(self.folder / "rows.db")) as database:
            assert Rows(database.execute("SELECT n, doubled, text FROM rows").fetchall()) == expected, what
        letters = rows_of_parts(str(self.folder / "letters"), ("n", "failed_outcome"))
        assert letters == Rows((n, "error") for n in numbers if n % 50 == 7), what


@pytest.fixture(scope="session")
def plugin(build_plugin: Callable[..., Path]) -> Path:
    return build_plugin(FUNCTIONS, name="killed")


@pytest.fixture
def pipelines(plugin: Path, tmp_path: Path) -> Callable[[], Pipeline]:
    def made() -> Pipeline:
        folder = tmp_path / "pipeline"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return Pipeline(folder, plugin)

    return made


@pytest.mark.parametrize("moment", MOMENTS)
def test_flipped_bytes_in_all_that_a_place_contains(moment: str, pipelines: Callable[[], Pipeline]) -> None:
    pipeline = pipelines()
    pipeline.kill(moment)
    whole, refused = pipeline.tree(), 0
    for name, data in pipeline.tree("state/").items():
        damaged = [("truncated", data[: pipeline.random.randrange(len(data))])] if data else []
        for _ in range(FLIPS if data else 0):
            at = pipeline.random.randrange(len(data))
            flipped = bytes([data[at] ^ 1 << pipeline.random.randrange(8)])
            damaged.append((f"flipped at {at}", data[:at] + flipped + data[at + 1 :]))
        for how, bytes_ in damaged:
            (pipeline.folder / name).write_bytes(bytes_)
            refused += not pipeline.goes_on(f"{name} {how}, killed when {moment}", Path(name).name)
            pipeline.put_back(whole)
    assert refused, "nothing that was damaged is needed"
    assert pipeline.goes_on("put back")


@pytest.mark.parametrize("moment", MOMENTS)
def test_lost_and_older_checkpoints(moment: str, pipelines: Callable[[], Pipeline]) -> None:
    """Between two engines files of the place are gone, or are those of before."""
    pipeline = pipelines()
    trees = []
    for _ in range(2):
        pipeline.kill(moment)
        trees.append(pipeline.tree())
    older, whole = trees
    for name in pipeline.tree("state/"):
        (pipeline.folder / name).unlink()
        pipeline.goes_on(f"{name} is lost", Path(name).name, str(pipeline.folder))
        pipeline.put_back(whole)
    for folder in ("state/epochs/", "state/states/", "state/rows/"):
        for what, tree in (("older", older), ("lost", dict[str, bytes]())):
            pipeline.put_back(tree, folder)
            pipeline.goes_on(f"{folder} is {what}", str(pipeline.folder), folder.removeprefix("state/"))
            pipeline.put_back(whole)
    assert pipeline.goes_on("put back")

    done = pipeline.tree()
    for number, tree in enumerate(trees):
        pipeline.put_back(tree, "state/")
        assert not pipeline.goes_on(f"the place is as after kill {number}, the sinks are at the end", "out")
        pipeline.put_back(done)
    assert pipeline.goes_on("put back at the end")
