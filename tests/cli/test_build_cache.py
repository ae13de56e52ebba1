"""The build cache: `arroyo-udf cache`, and a cache that is damaged, full or no folder is told in one line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from arroyo_udf_plugin import BuildError, build, load
from arroyo_udf_plugin.build import cache, plugin_for

CLI = [sys.executable, "-m", "arroyo_udf_plugin.cli"]
SOURCE = "from arroyo_udf_plugin import udf\n\n@udf\ndef f(x: int) -> int:\n    return x + {}\n"


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "arroyo-udf"


def written(folder: Path, number: int = 1) -> Path:
    source = folder / f"mine_{number}.py"
    source.write_text(SOURCE.format(number))
    return source


def cli(*arguments: object, status: int = 0) -> str:
    done = subprocess.run([*CLI, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def kept() -> list[Path]:
    return sorted(cache.folder().glob("*/*/lib*.so"))


def test_cache_tells_its_size_and_is_cleared(own_cache: Path, tmp_path: Path) -> None:
    assert cli("cache").splitlines()[0] == f"{own_cache}: 0 bytes"
    first, second = (build(written(tmp_path, number)) for number in (1, 2))
    (own_cache / "rust" / "target").mkdir(parents=True)
    (own_cache / "rust" / "target" / "crate").write_bytes(bytes(10_000_000))
    lines = cli("cache").splitlines()
    assert re.fullmatch(rf"{own_cache}: 10\.\d MB", lines[0])
    assert re.fullmatch(r"2 libraries, [\d.]+ kB; crates for Rust and async C, 10 MB", lines[1])

    older, newer = kept()
    if "mine_2" in older.name:
        older, newer = newer, older
    os.utime(older.parent, (1, 1))
    size = sum(file.stat().st_size for file in newer.parent.iterdir())
    cli("cache", "--limit", f"{(10_000_000 + size) / 1e6:.6f}MB")
    assert kept() == [newer], "what was used longest ago goes first"
    cli("cache", "--limit", f"{10_000_000 - 1}")
    assert kept() == []
    assert not (own_cache / "rust" / "target").exists()

    build(tmp_path / "mine_1.py")
    assert cli("cache", "--clear").splitlines()[2].endswith(" deleted")
    assert cli("cache").splitlines()[0] == f"{own_cache}: 0 bytes"
    assert load(first).name == "mine_1", "libraries beside their sources stay"
    assert load(second).name == "mine_2"


def test_cache_refuses_what_is_no_size(own_cache: Path) -> None:
    assert "'much' is no size; write 500MB or 2GB, say" in cli("cache", "--limit", "much", status=2)


def test_a_damaged_library_in_the_cache_is_built_again(own_cache: Path, tmp_path: Path) -> None:
    source = written(tmp_path)
    good = load(build(source)).hash
    (library,) = kept()
    for damaged in (library.read_bytes()[:4000], bytes(len(library.read_bytes())), b""):
        library.write_bytes(damaged)
        assert load(build(source)).hash == good
    library.with_name(cache.DIGEST).unlink()
    assert load(build(source)).hash == good


def test_a_cache_that_is_no_folder_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "file")}
    done = subprocess.run([*CLI, "build", str(written(tmp_path))], env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert "the build cache " in done.stderr
    assert "name another folder in XDG_CACHE_HOME: Not a directory" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_full_disk_is_told_in_one_line(own_cache: Path, tmp_path: Path) -> None:
    """No file may be longer than 1 kB; the library is in the cache already."""
    source = written(tmp_path)
    build(source).unlink()
    code = f"""
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
from arroyo_udf_plugin.cli import main
main(["build", {str(source)!r}])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "libmine_1.so cannot be written; -o names another library: File too large" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.glob("*.so*"))
    assert not list(tmp_path.glob(".lib*"))


def test_a_folder_as_the_library_is_told_in_one_line(own_cache: Path, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"cannot be written; -o names another library: Is a directory"):
        build(written(tmp_path), tmp_path)


def test_plugin_for_builds_what_is_new_or_has_changed(own_cache: Path, tmp_path: Path) -> None:
    source = written(tmp_path)
    plugin = plugin_for(source)
    assert plugin.is_relative_to(own_cache)
    first = load(plugin).hash
    assert load(plugin_for(source)).hash == first
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["mine_1.py"]
    source.write_text(SOURCE.format(7))
    assert load(plugin_for(source)).hash != first
    library = build(source)
    assert plugin_for(library) == library
    (tmp_path / "mine.c").write_text("int mistake")
    with pytest.raises(BuildError, match=r"mine\.c:1: "):
        plugin_for(tmp_path / "mine.c")
