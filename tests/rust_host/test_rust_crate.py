"""The crate `arroyo-udf-host`: its own tests, over plugins in three languages; and the SQL shell on it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from arroyo_udf_plugin import build

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
pytestmark = pytest.mark.rust_host

Shell = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """c.so, rs.so and py.so, of one source in three languages, and stubborn.so; null_c.so and its like give null for
    failed rows. constants/rs.so and its like."""
    folder = tmp_path_factory.mktemp("plugins")
    sources = ROOT / "tests" / "integrations" / "plugins"
    for source in sources.glob("constants.*"):
        target = folder / "constants" / source.suffix[1:]
        target.mkdir(parents=True)
        build(shutil.copy(source, target), target.with_suffix(".so"))
    for source in [*sources.glob("one.*"), HERE / "stubborn.py"]:
        name = source.suffix[1:] if source.stem == "one" else source.stem
        build(shutil.copy(source, folder), folder / f"{name}.so")
        build(folder / source.name, folder / f"null_{name}.so", on_error="null")
    return folder


def cargo(*words: str, folder: Path, **variables: str) -> None:
    done = subprocess.run(
        ["cargo", *words], cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_its_own_tests_pass(plugins: Path) -> None:
    folder = ROOT / "native" / "host"
    target = str(ROOT / "build" / "example_host")
    cargo("test", "--quiet", "--locked", "--target-dir", target, folder=folder, PLUGINS=str(plugins))


@pytest.fixture(scope="session")
def shell(plugins: Path, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Runs SQL over t.parquet, in an empty environment: shell("SELECT 1", "c.so")."""
    target = ROOT / "build" / "example_sql"
    cargo("build", "--quiet", "--locked", "--target-dir", str(target), folder=ROOT / "examples" / "host" / "datafusion")
    numbers = pa.array([10, None, 13, *range(14, 3000)], pa.int64())
    table = pa.table({"n": numbers, "narrow": numbers.cast(pa.int32()), "text": pa.array(["x"] * len(numbers))})
    path = tmp_path_factory.mktemp("tables") / "t.parquet"
    pyarrow.parquet.write_table(table, path, row_group_size=500)

    def run(sql: str, *words: str) -> subprocess.CompletedProcess[str]:
        command = [target / "debug" / "arroyo-udf-example-sql", *words, path]
        return subprocess.run(command, input=sql, cwd=plugins, env={}, capture_output=True, text=True, timeout=300)

    return run


def rows(done: subprocess.CompletedProcess[str]) -> list[list[str]]:
    """The cells of a table that the shell has printed, without its head."""
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines][1:]


@pytest.mark.parametrize("language", ["c", "rs", "py"])
def test_sync_functions_in_sql(shell: Shell, language: str) -> None:
    query = "SELECT mph(n, 2) m, shout(text) s, or_zero(n) z FROM t LIMIT 3"
    assert rows(shell(query, f"{language}.so")) == [["300.0", "x!", "10"], ["", "x!", "0"], ["390.0", "x!", "13"]]
    assert rows(shell("SELECT sum(mph(narrow, 60) - n) FROM t", f"{language}.so")) == [["0.0"]]
    assert rows(shell("SELECT mph(10, 2)", f"{language}.so")) == [["300.0"]]


@pytest.mark.parametrize("language", ["c", "rs", "py"])
def test_a_literal_text_in_sql_is_made_once_for_each_batch(shell: Shell, language: str) -> None:
    (count,), *_ = rows(shell("SELECT max(made(text, 'word')) FROM t", f"constants/{language}.so"))
    assert 1 <= int(count) <= 10  # of 2,990 rows


@pytest.mark.parametrize("language", ["rs", "py"])
def test_async_functions_in_sql(shell: Shell, language: str) -> None:
    """Over all partitions at once, each row once, in its place."""
    query = "SELECT count(*), sum(later(n) - n) FROM t WHERE n <> 13"
    assert rows(shell(query, f"{language}.so")) == [["2987", "2987"]]
    query = "SELECT n, later(n) l FROM t WHERE n > 2990 ORDER BY n LIMIT 2"
    assert rows(shell(query, f"{language}.so")) == [["2991", "2992"], ["2992", "2993"]]


@pytest.mark.parametrize("language", ["c", "rs", "py"])
def test_a_failed_row_in_sql(shell: Shell, language: str) -> None:
    done = shell("SELECT mph(n, n - 10) FROM t; SELECT mph(1, 1)", f"{language}.so")
    assert done.returncode == 1
    assert "one.mph, row 0: " in done.stderr
    assert "no time" in done.stderr
    assert "60.0" in done.stdout, "the next statement runs"
    query = "SELECT mph(n, n - 10) m FROM t LIMIT 1"
    assert rows(shell(query, f"null_{language}.so")) == [[""]]
    if language != "c":
        assert "thirteen" in shell("SELECT later(n) FROM t", f"{language}.so").stderr
        query = "SELECT count(*) FROM t WHERE later(n) IS NULL"
        assert rows(shell(query, f"null_{language}.so")) == [["2"]]


def test_what_cannot_be_called_says_why(shell: Shell, tmp_path: Path) -> None:
    assert "one.mph" not in shell("SELECT mph(text, 1) FROM t", "c.so").stdout
    assert "mph" in shell("SELECT mph(text, 1) FROM t", "c.so").stderr
    done = shell("SELECT 1", "none.so")
    assert done.returncode == 1
    assert "none.so" in done.stderr
