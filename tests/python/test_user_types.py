"""The types that users see: `mypy --strict` over a program of theirs, and over wrong ones."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("user_program.py")
ROOT = PROGRAM.parents[2]
CONFIG = """
[mypy]
strict = True
cache_dir = {cache}
mypy_path = {path}
[mypy-pyarrow.*,cffi.*,tqdm.*,_cffi_backend,arroyo_udf_plugin._cdef,asyncpg.*,adbc_driver_postgresql.*,google.*]
ignore_missing_imports = True
[mypy-connector_docs]
ignore_errors = True
"""
"""Scripts that tests import are checked by nobody here: the oldest pydantic has other types."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("types")
    path = ":".join(str(ROOT / name) for name in ("python", "scripts", "tests/python"))
    (folder / "mypy.ini").write_text(CONFIG.format(cache=ROOT / "build" / "cache" / "mypy", path=path))
    return folder


def checked(*programs: Path, folder: Path) -> str:
    command = [sys.executable, "-m", "mypy", "--config-file", str(folder / "mypy.ini"), *map(str, programs)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=folder).stdout


def test_a_user_s_program_is_typed(folder: Path) -> None:
    assert checked(PROGRAM, folder=folder).startswith("Success")


@pytest.mark.parametrize("room", ["python", "cli", "engine/connectors", "native", "native_functions"])
def test_the_tests_are_typed(folder: Path, room: str) -> None:
    """Those of rooms whose fixtures are typed."""
    files = [path for path in sorted((ROOT / "tests" / room).glob("*.py")) if path.name != "conftest.py"]
    found = checked(*files, folder=folder)
    assert found.startswith("Success"), found


def test_wrong_options_kinds_and_actions_are_found(folder: Path) -> None:
    mistakes = {
        "load('x').functions['f'].start(timeuot=1)": "timeuot",
        "load('x').functions['f'].start(ordered='yes')": "ordered",
        "load('x').functions['f'].start(retry_on='always')": "retry_on",
        "load('x').functions['f'].kind == 'asynchronous'": "comparison-overlap",
        "load('x').functions['f'].start().stop('now')": "stop",
        "Policy(error='ignore')": "Policy",
        "udf(alowed_in_flight=1)": "call-overload",
    }
    program = folder / "wrong.py"
    program.write_text("from arroyo_udf_plugin import Policy, load, udf\n" + "\n".join(mistakes) + "\n")
    found = checked(program, folder=folder).splitlines()
    line = 2
    for source, said in mistakes.items():
        at = [text for text in found if f"wrong.py:{line}: error" in text]
        assert any(said in text for text in at), (source, found)
        line += 1
