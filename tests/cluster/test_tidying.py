"""What is removed when nobody needs it any more."""

import asyncio
import contextlib
import fcntl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from clusters import settings_in, shown
from test_database import made

from arroyo_udf_plugin.cluster.controller.removal import tidy_files, tidy_rows
from arroyo_udf_plugin.cluster.database import history
from arroyo_udf_plugin.cluster.database.database import Database, LogKept
from arroyo_udf_plugin.cluster.functions.children import ChildLimits, Children, left_behind
from arroyo_udf_plugin.cluster.records import Records
from arroyo_udf_plugin.cluster.schedulers import worker_files

HELD = """
import fcntl, sys
file = open(sys.argv[1], "ab")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def held(path: Path) -> Any:
    """The file is locked by a process within the block."""
    path.parent.mkdir(parents=True, exist_ok=True)
    child = subprocess.Popen([sys.executable, "-c", HELD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        yield
        assert child.stdin is not None
        child.stdin.close()


def test_what_jobs_have_shown_goes_with_them(database: Database, records: Records, tmp_path: Path) -> None:
    with database.begin() as session:
        job = made(session).job.id
    for one in (job, "job_deleted"):
        records.count(one, {})
        records.show(one, [shown(0)])
    tidy_rows(database, database.begin, settings_in(tmp_path))
    assert records.jobs() == [job]


def test_files_of_workers_that_were_killed_with_their_controller_go(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    workers, logs = tmp_path / "workers", tmp_path / "logs"
    for folder in (workers, logs):
        folder.mkdir()
    for name in ("job_1-1", "job_1-2", "job_2-5", "job_2-4"):
        (workers / name).touch()
        (workers / f"{name}.sock").touch()
        (logs / f"{name}.log").touch()
    (logs / "job_3-1.log").touch()
    (workers / "job_3-1.sock").touch()
    (logs / "mine").touch()
    with held(workers / "job_2-4"):  # it lives, though nobody wants it any more
        tidy_files(settings, {"job_1": 2})
        assert sorted(path.name for path in workers.iterdir()) == ["job_1-2", "job_1-2.sock", "job_2-4", "job_2-4.sock"]
        assert sorted(path.name for path in logs.iterdir()) == ["job_1-2.log", "job_2-4.log", "mine"]


def test_private_folders_of_children_go_when_nothing_has_them(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    with held(settings.functions / "child-a" / "stderr"):
        for name in ("child-b", "other"):
            (settings.functions / name).mkdir()
            (settings.functions / name / "stderr").touch()
        tidy_files(settings, {})
        assert sorted(path.name for path in settings.functions.iterdir()) == ["child-a", "other"]


def test_a_name_of_a_worker_says_job_and_generation() -> None:
    assert worker_files.generation_of("job_1-12") == ("job_1", 12)
    assert worker_files.generation_of("mine") is None


@pytest.mark.usefixtures("database")
def test_the_log_of_a_job_has_a_limit(tmp_path: Path) -> None:
    limited = Database.open(f"sqlite:///{tmp_path / 'cluster.sqlite'}", log=LogKept(entries=3, entry_bytes=1000))
    with contextlib.closing(limited), limited.begin() as session:
        first, second = (made(session).job.id for _ in range(2))
        history.log(session, second, 1, "info", "other")
        for number in range(5):
            history.log(session, first, 1, "error", str(number))
        assert [row.message for row in history.logged(session, first, 9).rows] == ["4", "3", "2"]
        assert [row.message for row in history.logged(session, second, 9).rows] == ["other"]
        history.log(session, second, 1, "error", "long", "begin " + "ä" * 2000 + " end")
        (long, _) = history.logged(session, second, 9).rows
        assert 900 < len(long.details.encode()) < 1100
        assert long.details.startswith("begin ä")
        assert long.details.endswith("ä end")
        assert "\n(3,010 bytes are left out here)\n" in long.details


def test_the_folder_of_a_child_that_just_starts_is_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Path] = []
    flock = fcntl.flock

    def just_before(file: Any, how: int) -> None:
        if how == fcntl.LOCK_EX:
            found.extend(left_behind(tmp_path))
        flock(file, how)

    async def start() -> None:
        children = Children(tmp_path, tmp_path / "cache", ChildLimits())
        async with children.working(children.plans) as child:
            assert child.folder.parent == tmp_path
            assert list(left_behind(tmp_path)) == []

    monkeypatch.setattr(fcntl, "flock", just_before)
    asyncio.run(start())
    assert found == []
