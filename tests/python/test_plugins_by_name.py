"""Plugins that are found by name: installed, checked before they are loaded, and removed."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from arroyo_udf_plugin import build, load
from arroyo_udf_plugin.errors import InvalidArgument, LoadError
from arroyo_udf_plugin.host import installed

GEO = "from arroyo_udf_plugin import udf\n\n@udf(native=False)\ndef twice(n: int) -> int:\n    return 2 * n\n"
THRICE = GEO.replace("2 * n", "3 * n").replace("twice", "thrice")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.delenv(installed.VARIABLE, raising=False)
    return tmp_path / "share" / "arroyo-udf" / "plugins"


def built(folder: Path, text: str = GEO) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "geo.py").write_text(text)
    return build(folder / "geo.py")


def cli(*arguments: object, status: int = 0) -> str:
    command = [sys.executable, "-m", "arroyo_udf_plugin.cli", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stdout + done.stderr


def test_a_plugin_is_installed_listed_found_verified_and_removed(folder: Path, tmp_path: Path) -> None:
    library = built(tmp_path)
    assert cli("install", library) == f"geo: {folder}/geo/libgeo.so\n"
    assert cli("list").split() == ["geo", "python", "twice"]
    assert json.loads(cli("list", "--json")) == [
        {"name": "geo", "library": f"{folder}/geo/libgeo.so", "functions": ["twice"]}
    ]
    library.unlink()
    assert load("geo").functions["twice"](pa.array([1, None])).to_pylist() == [2, None]
    assert load("geo").path == f"{folder}/geo/libgeo.so"
    assert (folder / "geo" / "libgeo.duckdb_extension").exists()
    assert cli("verify") == cli("verify", "geo") == "geo: as it was installed\n"
    assert cli("uninstall", "geo") == f"{folder}/geo removed\n"
    assert cli("list") == ""
    with pytest.raises(LoadError, match="no plugin 'geo' is installed"):
        load("geo")


def test_a_source_is_built_and_an_installation_replaced_in_one_step(folder: Path, tmp_path: Path) -> None:
    built(tmp_path)
    cli("install", tmp_path / "geo.py")
    (tmp_path / "geo.py").write_text(THRICE)
    cli("install", tmp_path / "geo.py")
    assert load("geo").functions["thrice"](pa.array([1])).to_pylist() == [3]
    assert [path.name for path in folder.iterdir()] == ["geo"]


def test_the_first_folder_of_the_path_counts(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed.install(load(built(tmp_path / "a")))
    installed.install(load(built(tmp_path / "b", THRICE)), tmp_path / "first")
    assert "twice" in load("geo").functions
    monkeypatch.setenv(installed.VARIABLE, f"{tmp_path}/none:{tmp_path}/first")
    assert "thrice" in load("geo").functions
    assert [one.functions for one in installed.listed() if isinstance(one, installed.InstalledPlugin)] == [("thrice",)]


def test_a_file_of_the_name_comes_first(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed.install(load(built(tmp_path / "a")))
    built(tmp_path / "b", THRICE).rename(tmp_path / "geo")
    monkeypatch.chdir(tmp_path)
    assert "thrice" in load("geo").functions


def changed(folder: Path) -> Path:
    library = folder / "geo" / "libgeo.so"
    library.write_bytes(library.read_bytes() + b"\0")
    return library


def other(folder: Path) -> Path:
    file = folder / "geo" / "geo.json"
    file.write_text(file.read_text().replace('"geo"', '"other"'))
    return file


def writable(*parts: str) -> Any:
    def change(folder: Path) -> Path:
        path = folder.joinpath(*parts)
        path.chmod(path.stat().st_mode | 0o020)
        return path

    return change


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (changed, "is not the library that was installed: its hash differs"),
        (writable("geo", "libgeo.so"), "others can write to .*libgeo.so: chmod go-w"),
        (writable("geo", "geo.json"), "others can write to .*geo.json"),
        (writable("geo"), "others can write to .*geo: chmod"),
        (writable(), "others can write to .*plugins: chmod"),
        (other, "is no manifest: its name is 'other'"),
        (lambda folder: (folder / "geo" / "geo.json").write_text("{"), "is no manifest"),
        (lambda folder: (folder / "geo" / "geo.json").write_text('{"version": 2}'), "of another version"),
        (lambda folder: (folder / "geo" / "geo.json").write_text('{"version": 1, "name": 3}'), "name is not there"),
        (
            lambda folder: (folder / "geo" / "libgeo.so").unlink(),
            "libgeo.so: No such file or directory: install it again",
        ),
    ],
)
def test_what_was_changed_since_or_can_be_changed_by_others_is_refused(
    folder: Path, tmp_path: Path, change: Any, why: str
) -> None:
    installed.install(load(built(tmp_path)))
    change(folder)
    with pytest.raises(LoadError, match=why):
        load("geo")
    told = cli("verify", status=1)
    assert "as it was installed" not in told


def test_another_users_plugin_is_refused(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed.install(load(built(tmp_path)))
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    if os.stat(folder).st_uid == 0:  # root's files are everybody's to load
        assert "twice" in load("geo").functions
    else:
        with pytest.raises(LoadError, match="is of another user"):
            load("geo")
    with monkeypatch.context() as patched:
        patched.setattr(stat, "S_IWGRP", 0)
        patched.setattr(Path, "stat", lambda path: os.stat_result((0o100644, 0, 0, 1, 4711, 0, 0, 0, 0, 0)))
        assert "is of another user" in str(installed._open_to_others(folder))


def test_nothing_is_installed_where_others_can_write(folder: Path, tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    with pytest.raises(InvalidArgument, match="others can write to"):
        installed.install(load(built(tmp_path)), open_to_all)
    with pytest.raises(InvalidArgument, match="cannot be written"):
        installed.install(load(built(tmp_path)), tmp_path / "geo.py" / "below")
