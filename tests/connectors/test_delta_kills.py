"""A pipeline from logs that are rotated to a Delta table is killed with SIGKILL, again and again: each line is in the
table once.

Each engine commits some epochs and is killed, between two steps of an epoch or whenever. The next one resumes it, with
another number of slices. Meanwhile lines are added for each epoch, and logs are rotated, also while no engine runs.
Others write the table, and make larger files of its small ones.

KILLS: see connector_kills.py. KILL_SEED: of all that is random here.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from connector_kills import KILLS, MOMENTS
from delta_tables import numbers_of
from failing import ended
from waiting import until

pytestmark = pytest.mark.connectors

EPOCHS = 2
ROWS = 200
PATIENCE = 120.0
CHILD = Path(__file__).parents[1] / "engine" / "execution" / "kill" / "child.py"


class Logs:
    """Two logs that are written. rows: how many lines there are. One is renamed, the other one is copied and
    truncated."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        folder.mkdir()
        self.folder, self.rows, self._chance, self._rotated = folder, 0, chance, 0
        self._paths = folder / "renamed.log", folder / "copied.log"

    def add(self) -> None:
        for path in self._paths:
            with open(path, "a") as file:
                file.writelines(f'{{"n": {n}}}\n' for n in range(self.rows, self.rows + ROWS))
            self.rows += ROWS

    def rotate(self) -> None:
        path = self._chance.choice(self._paths)
        self._rotated += 1
        aside = path.with_name(f"{path.name}.{self._rotated}")
        if path.name == "renamed.log":
            path.rename(aside)
            path.touch()
        else:
            shutil.copyfile(path, aside)
            os.truncate(path, 0)


class KilledTable:
    def __init__(self, folder: Path) -> None:
        seed = int(os.environ.get("KILL_SEED", secrets.randbelow(10**6)))
        print(f"KILL_SEED={seed} KILLS={KILLS}")
        self._random = random.Random(seed)
        self._folder, self.table = folder, folder / "table"
        self.logs, self._others = Logs(folder / "logs", self._random), 0
        self._description = {
            "name": "killed",
            "source": {
                "type": "tail",
                "paths": [str(folder / "logs" / "*.log")],
                "types": {"n": "int"},
                "settles": 0.05,
                "watch": 0.1,
            },
            "sinks": [{"type": "delta", "path": str(self.table)}],
            "checkpoints": {"place": str(folder / "checkpoints"), "every": 0.02},
        }

    def _engine(self, moment: str, is_first: bool) -> subprocess.Popen[str]:
        path = self._folder / "pipeline.json"
        path.write_text(json.dumps(self._description | {"parallelism": self._random.randint(1, 3)}))
        command = [sys.executable, str(CHILD), str(path), moment, str(EPOCHS), *([] if is_first else ["--resume"])]
        with open(self._folder / "errors", "w") as stderr:
            return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)

    def _errors(self) -> str:
        return (self._folder / "errors").read_text()

    def _disturb(self) -> None:
        """What others do with the table."""
        if self.table.is_dir() and deltalake.DeltaTable.is_deltatable(str(self.table)):
            self._others -= 1
            deltalake.write_deltalake(str(self.table), pa.table({"n": [self._others]}), mode="append")
            deltalake.DeltaTable(str(self.table)).optimize.compact()

    def kill(self, moment: str, is_first: bool) -> None:
        with self._engine(moment, is_first) as process:
            assert process.stdout is not None
            self.logs.add()
            for epochs, line in enumerate(process.stdout, 1):
                assert line == "epoch\n", self._errors()
                if self._random.random() < 0.5:
                    self.logs.rotate()
                self.logs.add()
                if moment == "any" and epochs == EPOCHS:
                    time.sleep(self._random.random() / 10)  # a kill at any moment: no result depends on its length
                    process.kill()
            assert process.wait(PATIENCE) == -signal.SIGKILL, self._errors()

    def found(self) -> list[int]:
        return [n for n in numbers_of(self.table) if n >= 0]

    def run(self) -> None:
        for number in range(KILLS):
            self.kill(MOMENTS[number % len(MOMENTS)], is_first=not number)
            found = self.found()
            assert len(found) == len(set(found)), "rows came twice"
            self._disturb()
            if self._random.random() < 0.5:
                self.logs.rotate()
                self.logs.add()
        self.logs.add()
        with ended(self._engine("none", is_first=False)) as process:
            until(lambda: len(self.found()) >= self.logs.rows or process.poll() is not None, "all rows")
            process.send_signal(signal.SIGTERM)
            output, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, self._errors()
        assert output.splitlines()[-1] == "resumable"
        assert self.found() == list(range(self.logs.rows))
        assert sorted(n for n in numbers_of(self.table) if n < 0) == list(range(self._others, 0))


def test_logs_to_a_delta_table(tmp_path: Path) -> None:
    KilledTable(tmp_path).run()
