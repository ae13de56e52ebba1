"""The engines' own shells and modules load libraries in C and Rust without this package: it is not on the path."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import debian
from arroyo_udf_plugin import build
from conftest import HERE, Library

NATIVE = ("c", "rs")
ENGINES = Path(os.environ["PYTHONPATH"].split(os.pathsep)[0]) if "PYTHONPATH" in os.environ else Path()


BUILD = Path(__file__).resolve().parents[2] / "build"


def alone(*command: str | Path, text: str = "", libraries: str = "") -> str:
    """In an empty environment, but for where the program's own shared libraries are."""
    variables = {"LD_LIBRARY_PATH": libraries} if libraries else {}
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, env=variables, cwd="/")
    assert done.returncode == 0, done.stderr
    return done.stdout


def python(program: str, *arguments: str) -> str:
    """With the engines, and nothing else, on the path."""
    begin = f"import sys; sys.path.insert(0, {str(ENGINES)!r})\n"
    end = "\nassert not any(name.startswith('arroyo_udf') for name in sys.modules)"
    return alone(sys.executable, "-I", "-S", "-W", "ignore", "-c", begin + program + end, *arguments)


@pytest.fixture(scope="module")
def shell() -> tuple[Path, str]:
    """The sqlite3 of the system, or Debian's; and where its libraries are."""
    if installed := shutil.which("sqlite3"):
        return Path(installed), ""
    root = BUILD / "sqlite3"
    if not root.exists():
        debian.unpack(root, lambda apt: ["sqlite3", "libsqlite3-0", "libreadline8", "libtinfo6"])
    return root / "usr" / "bin" / "sqlite3", ":".join(sorted({str(path.parent) for path in root.rglob("lib*.so.*")}))


@pytest.mark.parametrize("language", NATIVE)
def test_the_shell_of_sqlite(library: Library, shell: tuple[Path, str], language: str) -> None:
    program, libraries = shell
    query = "SELECT mph(10, 2), shout('a'), or_zero(NULL);"
    assert alone(program, text=f".load {library(language)}\n{query}\n", libraries=libraries) == "300.0|a!|0\n"


@pytest.mark.parametrize("language", NATIVE)
def test_duckdbs_own_module(library: Library, language: str) -> None:
    link = library(language).with_suffix(".duckdb_extension")
    program = f"""
import duckdb
opened = duckdb.connect(config={{"allow_unsigned_extensions": True}})
opened.execute("LOAD '{link}'")
print(opened.execute("SELECT mph(10, 2), shout('a'), or_zero(NULL)").fetchall())
"""
    assert python(program) == "[(300.0, 'a!', 0)]\n"


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An aggregate and a table function, in C."""
    source = tmp_path_factory.mktemp("native") / "native.c"
    shutil.copy(HERE / "plugins" / "native.c", source)
    return build(source)


def test_an_aggregate_and_a_table_function_in_the_shell_of_sqlite(native: Path, shell: tuple[Path, str]) -> None:
    program, libraries = shell
    query = "SELECT plus(n), count(*) FROM series(0, 5000); SELECT plus(n) FROM series(1, 0);"
    assert alone(program, text=f".load {native}\n{query}\n", libraries=libraries) == "12497500|5000\n\n"


def test_an_aggregate_and_a_table_function_in_duckdbs_own_module(native: Path) -> None:
    program = f"""
import duckdb
opened = duckdb.connect(config={{"allow_unsigned_extensions": True}})
opened.execute("LOAD '{native.with_suffix(".duckdb_extension")}'")
print(opened.execute("SELECT n % 2, plus(n) FROM series(0, 5000) GROUP BY 1 ORDER BY 1").fetchall())
"""
    assert python(program) == "[(0, 6247500), (1, 6250000)]\n"


@pytest.mark.parametrize("language", NATIVE)
def test_polars_own_plugins(library: Library, language: str) -> None:
    program = f"""
import polars
from polars.plugins import register_plugin_function
mph = register_plugin_function(
    plugin_path={str(library(language))!r}, function_name="mph", args=["a", "b"], is_elementwise=True
)
print(polars.DataFrame({{"a": [10], "b": [2]}}).select(mph)["a"].to_list())
"""
    assert python(program) == "[300.0]\n"
