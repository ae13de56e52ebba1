"""The packages that a Python source lists: the build finds them and their requirements, and writes a lock file."""

import errno
import logging
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from arroyo_udf_plugin import BuildError, build, load
from arroyo_udf_plugin.build import plugin_for

FUNCTION = "\n\nfrom arroyo_udf_plugin import udf\n\n@udf(native=False)\ndef f(x: int) -> int: return x\n"
CFFI = f"cffi=={version('cffi')}"
PYCPARSER = f"pycparser=={version('pycparser')}"


def written(folder: Path, *dependencies: str) -> Path:
    source = folder / "mine.py"
    listed = ", ".join(f'"{package}"' for package in dependencies)
    source.write_text(f"# Mine.\n# /// script\n# dependencies = [{listed}]\n# ///\n{FUNCTION}")
    return source


def refused(source: Path, locked: bool = False) -> str:
    with pytest.raises(BuildError) as raised:
        build(source, locked=locked)
    assert (raised.value.file, raised.value.line) == (str(source), 2)
    return str(raised.value)


def source_lock(folder: Path) -> Path:
    return folder / "mine.requirements.txt"


def lines(source: Path) -> list[str]:
    return source_lock(source.parent).read_text().splitlines()


def test_the_lock_has_the_packages_and_their_requirements(tmp_path: Path) -> None:
    source = written(tmp_path, "CFFI >= 1.17", "tqdm; python_version < '3'")
    first = load(build(source)).hash
    assert lines(source)[0].startswith("# Written by arroyo-udf build: what mine.py was built with.")
    assert lines(source)[1:] == [CFFI, PYCPARSER]
    made = source_lock(tmp_path).stat().st_ino
    assert load(build(source, tmp_path / "again.so", locked=True)).hash == first
    assert source_lock(tmp_path).stat().st_ino == made, "not written again"


def test_extras_bring_their_packages(tmp_path: Path) -> None:
    """arroyo_udf_plugin[demo] needs asyncpg; without the extra it does not."""
    names = {}
    for extra in ("", "[demo]"):
        source = written(tmp_path, f"arroyo_udf_plugin{extra}")
        build(source)
        names[extra] = {line.partition("==")[0] for line in lines(source)[1:]}
    assert {"arroyo-udf-plugin", "cffi", "click", "packaging", "pyarrow", "pycparser", "tqdm"} <= names[""]
    assert "asyncpg" in names["[demo]"] - names[""]


def test_nothing_listed_nothing_written(tmp_path: Path) -> None:
    build(written(tmp_path), locked=True, offline=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["libmine.duckdb_extension", "libmine.so", "mine.py"]


@pytest.mark.parametrize(
    ("package", "says"),
    [
        (
            "no-such-package-here>=1",
            "needs the package no-such-package-here>=1, and it is not installed here: pip install",
        ),
        ("cffi<1", f"needs the package cffi<1, and {version('cffi')} is installed here: pip install 'cffi<1'"),
        ("cffi 1.17", "dependencies has 'cffi 1.17', which does not name a package"),
    ],
)
def test_packages_that_are_not_there(tmp_path: Path, package: str, says: str) -> None:
    assert says in refused(written(tmp_path, package))
    assert not source_lock(tmp_path).exists()


def test_locked(tmp_path: Path) -> None:
    source = written(tmp_path, "cffi")
    assert "--locked needs mine.requirements.txt beside the source" in refused(source, locked=True)
    build(source)
    other = source_lock(tmp_path).read_text().replace(CFFI, "cffi==1.0")
    source_lock(tmp_path).write_text(other)
    says = refused(source, locked=True)
    assert f"mine.requirements.txt is stale, or not what is installed here; they differ in cffi==1.0, {CFFI}:" in says
    assert source_lock(tmp_path).read_text() == other
    build(source)
    assert lines(source)[1:] == [CFFI, PYCPARSER]


@pytest.mark.parametrize("block", ["dependencies = 'cffi'", "dependencies = [1]"])
def test_a_list_that_is_none(tmp_path: Path, block: str) -> None:
    source = tmp_path / "mine.py"
    source.write_text(f"\n# /// script\n# {block}\n# ///\n{FUNCTION}")
    assert 'dependencies is not a list of strings; write ["aiohttp>=3.9"]' in refused(source)


def test_in_a_folder_that_cannot_be_written_the_lock_is_kept_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As in a container: `run` builds the source, and `build -o` does. The versions stay those of the first build."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "source"
    folder.mkdir()
    source = written(folder, "cffi")
    mkstemp: Any = tempfile.mkstemp

    def read_only(*args: Any, dir: Any = None, **named: Any) -> Any:
        if Path(dir) == folder:
            raise OSError(errno.EROFS, "Read-only file system", str(dir))
        return mkstemp(*args, dir=dir, **named)

    monkeypatch.setattr(tempfile, "mkstemp", read_only)
    caplog.set_level(logging.INFO)
    first = load(plugin_for(source)).hash
    (kept,) = (tmp_path / "cache").rglob("mine.requirements.txt")
    assert kept.read_text().splitlines()[1:] == [CFFI, PYCPARSER]
    assert (
        f"mine.requirements.txt cannot be written beside the source, where builds elsewhere want it; it is {kept}"
        in (caplog.text)
    )
    caplog.clear()
    assert load(build(source, tmp_path / "out.so")).hash == first
    assert "cannot be written" not in caplog.text
    assert "needs mine.requirements.txt beside the source" in refused(source, locked=True)
    with pytest.raises(BuildError, match=r"libmine\.so cannot be written; -o names another library"):
        build(source)
