"""The engines' own shells and modules load libraries in C and Rust without this package: it is not on the path."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Library

NATIVE = ("c", "rs")
ENGINES = Path(os.environ["PYTHONPATH"].split(os.pathsep)[0]) if "PYTHONPATH" in os.environ else Path()


def alone(*command: str, text: str = "") -> str:
    """In an empty environment."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, env={}, cwd="/")
    assert done.returncode == 0, done.stderr
    return done.stdout


def python(program: str, *arguments: str) -> str:
    """With the engines, and nothing else, on the path."""
    begin = f"import sys; sys.path.insert(0, {str(ENGINES)!r})\n"
    end = "\nassert not any(name.startswith('arroyo_udf') for name in sys.modules)"
    return alone(sys.executable, "-I", "-S", "-W", "ignore", "-c", begin + program + end, *arguments)


@pytest.mark.parametrize("language", NATIVE)
def test_the_shell_of_sqlite(library: Library, language: str) -> None:
    query = "SELECT mph(10, 2), shout('a'), or_zero(NULL);"
    assert alone("sqlite3", text=f".load {library(language)}\n{query}\n") == "300.0|a!|0\n"


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
