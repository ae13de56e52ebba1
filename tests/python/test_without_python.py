"""A Python plugin needs no Python before the first call: in a host that is not Python, with an empty environment."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from arroyo_udf_plugin.build import cache, inner, python

BuildPlugin = Callable[..., Path]
Late = Callable[..., list[str]]

HERE = Path(__file__).resolve().parent
CC = shlex.split(os.environ.get("CC", "")) or ["cc"]
PLUS = """
from arroyo_udf_plugin import udf

@udf(native=False)
def plus(x: int) -> int:
    return x + {}
"""


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> Late:
    """late(*words, blocks=None, **environment): runs late.c with that environment alone; returns what it prints.

    blocks: how large a file it may write, as `ulimit -f` takes it.
    """
    program = tmp_path_factory.mktemp("late") / "late"
    include = HERE.parents[1] / "native" / "include"
    command = [*CC, "-g", "-Wall", "-Wextra", "-Werror", "-rdynamic", "-D_GNU_SOURCE", f"-I{include}"]
    subprocess.run([*command, str(HERE / "late.c"), "-o", str(program), "-ldl"], check=True)

    def run(*words: Path | str, blocks: int | None = None, **environment: str) -> list[str]:
        call = [str(program), *map(str, words)]
        if blocks is not None:
            call = ["/bin/sh", "-c", f'ulimit -f {blocks}; exec "$@"', "sh", *call]
        done = subprocess.run(call, env=environment, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        return done.stdout.splitlines()

    return run


def test_libpython_comes_with_the_first_call(build_plugin: BuildPlugin, late: Late) -> None:
    plugin = build_plugin(PLUS.format(1))
    needed = subprocess.run(["readelf", "-d", str(plugin)], capture_output=True, text=True, check=True)
    assert "libpython" not in needed.stdout
    lines = ["plugin, without libpython", "2, with libpython", "0 files in memory are open"]
    assert late(plugin) == lines


def test_each_plugin_starts_its_own_functions(build_plugin: BuildPlugin, late: Late) -> None:
    """One after the other, so the files in memory get one descriptor, whose path the loader remembers."""
    plugins = [build_plugin(PLUS.format(number), name=f"plus_{number}") for number in range(1, 5)]
    lines = late(*plugins)
    assert lines[1:-1:2] == [f"{1 + number}, with libpython" for number in range(1, 5)]
    assert lines[-1] == "0 files in memory are open"


def test_without_files_in_memory_there_is_a_file_for_a_moment(
    build_plugin: BuildPlugin, late: Late, tmp_path: Path
) -> None:
    one, ten = build_plugin(PLUS.format(1)), build_plugin(PLUS.format(10), name="ten")
    folder = tmp_path / "temporary"
    folder.mkdir()
    lines = late("refuse", one, ten, TMPDIR=str(folder))
    assert lines[:4] == ["plugin, without libpython", "2, with libpython", "ten, with libpython", "11, with libpython"]
    assert os.listdir(folder) == []


def test_without_any_file_both_reasons_are_told_and_a_later_call_works(
    build_plugin: BuildPlugin, late: Late, tmp_path: Path
) -> None:
    folder = tmp_path / "missing"
    described, refused, works, _ = late("refuse", build_plugin(PLUS.format(1)), TMPDIR=str(folder))
    assert described == "plugin, without libpython"
    reason = (
        'plugin "plugin": Python does not start: its part of this library can be opened neither in memory '
        f"(memfd_create: Operation not permitted) nor as a file ({folder}: No such file or directory): permit one of "
        "them, or name a folder in TMPDIR from which libraries may be opened"
    )
    assert refused == f"18, retryable 0, without libpython: {reason}"
    assert works == "2, with libpython"


def test_a_limit_of_file_sizes_is_told(build_plugin: BuildPlugin, late: Late) -> None:
    """A process that writes beyond its limit would get SIGXFSZ, which ends it. The limit may be higher later."""
    _, refused, *_ = late(build_plugin(PLUS.format(1)), blocks=8)
    assert refused.startswith("18, retryable 1, without libpython: ")
    assert "neither in memory (memfd_create: File too large) nor as a file (/tmp: File too large)" in refused


def test_a_missing_libpython_is_named(tmp_path: Path, late: Late, monkeypatch: pytest.MonkeyPatch) -> None:
    """Described all the same. The error does not speak of files that may not be written."""
    missing = tmp_path / "libpython_of_nowhere.so"
    subprocess.run([*CC, "-shared", "-x", "c", "/dev/null", f"-Wl,-soname,{missing.name}", "-o", missing], check=True)
    flags = [*inner._libpython(), "-Wl,--no-as-needed", str(missing)]
    monkeypatch.setattr(inner, "_libpython", lambda: flags)
    source = tmp_path / "elsewhere.py"
    source.write_text(PLUS.format(1))
    library = tmp_path / "elsewhere.so"
    python.compile(source, library, cache.PluginIdentity("elsewhere", "0" * 64, "0.1.0"), cache.Resolution())
    missing.unlink()
    described, refused, *_ = late(library)
    assert described == "elsewhere, without libpython"
    assert refused == (
        '18, retryable 0, without libpython: plugin "elsewhere": Python does not start: libpython_of_nowhere.so: '
        f"cannot open shared object file: No such file or directory; it was built with {sys.executable}, and needs the "
        "shared library of that Python here"
    )


def test_native_functions_need_no_python_unless_a_row_is_deferred(build_plugin: BuildPlugin, late: Late) -> None:
    """F11. x is 1: C is sure of the sum, and Python decides what comes of a division by zero that is caught."""
    native = "from arroyo_udf_plugin import udf\n\n@udf(native=True)\ndef plus(x: int) -> int:\n"
    sure = build_plugin(native + "    return x + 1\n")
    assert late(sure)[:2] == ["plugin, without libpython", "2, without libpython"]
    caught = "    try:\n        return 1 // (x - 1)\n    except ZeroDivisionError:\n        return 7\n"
    assert late(build_plugin(native + caught, name="caught"))[:2] == ["caught, without libpython", "7, with libpython"]
