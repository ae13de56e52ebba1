"""What a worker does by itself, and what it is given."""

import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from arroyo_udf_plugin.cluster import worker
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.schedulers import protocol, spawning, worker_files


def test_a_worker_that_finds_no_controller_gives_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "ALONE", 0.2)
    told: dict[str, Any] = {"data": str(tmp_path), "job_id": "job_1", "generation": 3, "secret": "s"}
    with pytest.raises(worker.Alone):
        worker.Worker(told).run()


def test_a_worker_starts_without_what_only_the_other_programs_need() -> None:
    """Each start of a job, and each recovery, waits for its imports."""
    others = (
        "sqlalchemy",
        "alembic",
        "fastapi",
        "uvicorn",
        "psycopg",
        "pydantic_settings",
        "cryptography",
        "opentelemetry",
    )
    program = f"""
import sys
import arroyo_udf_plugin.cli, arroyo_udf_plugin.cluster.worker
print([name for name in {others!r} if name in sys.modules])
"""
    assert subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout == "[]\n"


def test_a_worker_is_found_by_its_lock_as_long_as_it_lives(tmp_path: Path) -> None:
    program = f"""
import sys
from pathlib import Path
import os
from arroyo_udf_plugin.cluster.schedulers import worker_files
lock = worker_files.claim(Path({str(tmp_path)!r}), "job_1", 3)
worker_files.sign(lock, os.getpid())
print("held", flush=True)
sys.stdin.read()
"""
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        (found,) = worker_files.living(tmp_path, "job_1")
        assert found == worker_files.Living("job_1", 3, child.pid, found.started)
        assert not list(worker_files.living(tmp_path, "job"))
        found.kill()
    assert child.returncode == -9
    assert not list(worker_files.living(tmp_path, "job_1"))
    assert not list(tmp_path.iterdir())


def test_secrets_differ_by_job_and_generation(tmp_path: Path) -> None:
    key = protocol.key_of(tmp_path)
    assert protocol.key_of(tmp_path) == key
    made = {protocol.secret_of(key, job, generation) for job in ("a", "b") for generation in (1, 2)}
    assert len(made) == 4


def test_functions_do_not_see_the_settings_of_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARROYO_UDF__API__TOKEN", "secret")
    monkeypatch.setenv("OTHER", "seen")
    found = spawning.inherited()
    assert "secret" not in json.dumps(found)
    assert found["OTHER"] == "seen"


def test_the_database_is_its_users_alone(tmp_path: Path) -> None:
    database = Database.open(f"sqlite:///{tmp_path / 'cluster.sqlite'}")
    database.migrate()
    with database.read():
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("cluster.sqlite*")}
    database.close()
    del modes["cluster.sqlite.lock"]  # it has nothing in it
    assert set(modes.values()) == {0o600}
    assert "cluster.sqlite-wal" in modes
