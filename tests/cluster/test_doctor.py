"""What is wrong with an installation is said, thing by thing, with what to do."""

from __future__ import annotations

import resource
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from arroyo_udf_plugin.cli import main
from arroyo_udf_plugin.cluster import doctor
from arroyo_udf_plugin.cluster.configuration import configured
from arroyo_udf_plugin.cluster.database.database import KEY_FILE
from arroyo_udf_plugin.cluster.program import make_private
from arroyo_udf_plugin.cluster.tokens import Tokens
from arroyo_udf_plugin.engine.execution.store import LocalStore


@pytest.fixture
def data(tmp_path: Path, migrated: Path) -> Path:
    """An installation that was started once, and does not run."""
    folder = tmp_path / "data"
    make_private(folder)
    for path in (migrated, migrated.with_name(KEY_FILE)):
        shutil.copy(path, folder)
    Tokens(folder).make()
    return folder


def wrong(data: Path, **changes: Any) -> dict[str, str]:
    settings = configured(None, {"data": str(data)} | changes, {}).settings
    found = list(doctor.examine(settings))
    assert len(found) == 11
    return {one.what: one.text for one in found if one.is_wrong}


def test_a_good_installation_lacks_nothing_but_a_program_that_runs(data: Path) -> None:
    found = wrong(data)
    assert list(found) == ["API"]
    assert "start `arroyo-udf cluster`" in found["API"]
    assert not list(data.glob("checkpoints/*")), "it leaves nothing behind"


def test_it_says_whose_limits_it_has_looked_at(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that runs may have been started with others."""
    (found,) = (
        one.text for one in doctor.examine(configured(None, {"data": str(data)}, {}).settings) if one.what == "limits"
    )
    assert "this shell allows " in found
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    assert "this shell allows 1,024 open files, too few" in wrong(data)["limits"]


def test_a_folder_that_is_not_there_is_named_once_for_each_thing(tmp_path: Path) -> None:
    found = wrong(tmp_path / "nowhere")
    assert "start the cluster once" in found["data folder"]
    assert {"data folder", "disk", "token", "database", "keys", "clock", "API"} <= found.keys()


@pytest.mark.parametrize("name", ["token", KEY_FILE, "."])
def test_what_others_can_read_is_named(data: Path, name: str) -> None:
    (data / name).chmod(0o755)
    (told,) = [one for what, one in wrong(data).items() if what != "API"]
    assert "chmod " in told


def test_another_key_a_damaged_database_and_missing_roots_are_named(data: Path, tmp_path: Path) -> None:
    (data / KEY_FILE).write_text("MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n")
    found = wrong(data, files={"roots": [str(tmp_path), str(tmp_path / "unmounted")]})
    assert "restore its key" in found["keys"]
    assert "unmounted is not there: mount" in found["files.roots"]
    with (data / "cluster.sqlite").open("r+b") as file:
        file.write(b"no database at all")
    assert "database" in wrong(data)


def test_a_store_without_fences_and_a_full_disk_are_named(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalStore, "create", LocalStore.put)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**12, 10**12, 5000))
    found = wrong(data)
    assert "no fence holds" in found["checkpoints"]
    assert "make room" in found["disk"]


def test_clocks_that_differ_are_named(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = doctor.time.time
    monkeypatch.setattr(doctor.time, "time", lambda: real() - 3600)
    assert "+3600 s off: synchronise" in wrong(data)["clock"]


def test_the_command_says_so_by_its_status(data: Path) -> None:
    done = CliRunner().invoke(main, ["doctor", "--data", str(data)])
    assert done.exit_code == 1
    lines = done.output.splitlines()
    assert lines[0] == f"ok     data folder  {data}"
    assert lines[-1].startswith("WRONG  API ")
