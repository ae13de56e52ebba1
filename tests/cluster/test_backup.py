"""A cluster is backed up while it runs, its machine is lost, and it goes on from the backup in another folder: as
docs/operate.md says it."""

import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from programs import SQL, TWICE, Client, Program, doubles, expected, parts
from waiting import until

from arroyo_udf_plugin.cluster.schedulers import protocol, worker_files

pytestmark = pytest.mark.cluster


def command(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "arroyo_udf_plugin.cli", *map(str, arguments)], capture_output=True, text=True
    )


def back_up(data: Path, backup: Path) -> None:
    """The database first, so that no checkpoint is older than it."""
    backup.mkdir()
    with (
        closing(sqlite3.connect(data / "cluster.sqlite")) as source,
        closing(sqlite3.connect(backup / "cluster.sqlite")) as copy,
    ):
        source.backup(copy)
    for name in ("checkpoints", "artifacts"):
        # A checkpoint that is removed meanwhile is one that nobody needs.
        subprocess.run(["cp", "-a", data / name, backup / name], stderr=subprocess.DEVNULL)
    for name in ("secrets.key", "token", "tokens.json"):
        if (data / name).exists():
            shutil.copy(data / name, backup / name)


def test_a_backup_goes_on_in_another_folder(start: Callable[..., Program], tmp_path: Path) -> None:
    lost, backup, found = tmp_path / "lost", tmp_path / "backup", tmp_path / "found"
    program = start("cluster", lost, "--port", "0")
    client = Client(program)
    udf = {"definition": TWICE, "language": "python"}
    body = {"name": "doubles", "query": SQL.format(out=tmp_path / "out"), "parallelism": 1, "udfs": [udf]}
    pipeline = client.ask("POST", "/pipelines", body | {"checkpoint_interval_micros": 1_000_000})["id"]
    job = client.await_state(pipeline, "Running")["id"]
    until(lambda: len(parts(tmp_path)) > 1, "rows")
    back_up(lost, backup)
    many = len(parts(tmp_path))
    until(lambda: len(parts(tmp_path)) > many, "rows after the backup")
    program.end(signal.SIGKILL)
    for worker in worker_files.living(protocol.folder_of(lost), job):
        worker.kill()
    shutil.rmtree(lost)

    shutil.copytree(backup, found)
    found.chmod(0o700)
    moved = command("moved", lost, found, "--data", found)
    assert (moved.stdout, moved.returncode) == (f"2 places below {lost} are below {found} now\n", 0), moved.stderr
    client = Client(start("cluster", found, "--port", "0"))
    failed = client.await_state(pipeline, "Failed")
    first = int(re.findall(r"move away its parts from number (\d+) on", failed["failure_reason"]["error"])[0])
    for path in (tmp_path / "out").glob("part-*"):
        if int(path.name.split("-")[1]) >= first:
            path.unlink()
    client.ask("PATCH", f"/pipelines/{pipeline}", {"stop": "none"})
    client.await_state(pipeline, "Running")
    many = len(parts(tmp_path))
    until(lambda: len(parts(tmp_path)) > many, "rows after the restore")
    client.ask("PATCH", f"/pipelines/{pipeline}", {"stop": "checkpoint"})
    client.await_state(pipeline, "Stopped")
    assert doubles(tmp_path) == expected(len(doubles(tmp_path)))
    assert not lost.exists()


def test_files_of_a_cluster_that_runs_are_not_moved(start: Callable[..., Program], tmp_path: Path) -> None:
    start("cluster", tmp_path / "data", "--port", "0")
    refused = command("moved", tmp_path / "data", tmp_path / "other", "--data", tmp_path / "data")
    assert refused.returncode == 1
    assert "a controller runs: stop it" in refused.stderr
