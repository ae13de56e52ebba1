"""Arguments that are the same in all rows come as one value (CONSTANTS in arroyo_udf.h), in the engines that say so."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import daft
import polars
import pytest
from callers import connection

from arroyo_udf_plugin import build
from arroyo_udf_plugin.integrations import daft as in_daft
from arroyo_udf_plugin.integrations import polars as in_polars

HERE = Path(__file__).parent
ROWS = 1_000
LANGUAGES = ("c", "rs", "py")
WORDS = [f"w{i % 7}" for i in range(ROWS)]


@pytest.fixture(scope="module")
def constants(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    sources = [HERE / "plugins" / f"constants.{language}" for language in LANGUAGES]
    built = {source.suffix[1:]: build(shutil.copy(source, tmp_path_factory.mktemp("constants"))) for source in sources}
    return built.__getitem__


def frame() -> polars.DataFrame:
    return polars.DataFrame({"text": WORDS})


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_literal_of_polars_is_made_once(constants: Callable[[str], Path], language: str) -> None:
    made = in_polars.functions(constants(language)).made
    found = frame().select(n=made("text", polars.lit("polars")), sliced=made("text", polars.lit("café")))
    assert found["n"].to_list() == found["sliced"].to_list() == [1] * ROWS
    in_two_chunks = polars.concat([frame(), frame()], rechunk=False)
    assert in_two_chunks.select(n=made("text", polars.lit("chunks")))["n"].max() <= 2


def test_a_column_of_polars_is_not_taken_for_a_constant(constants: Callable[[str], Path]) -> None:
    made = in_polars.functions(constants("py")).made
    assert frame().select(n=made("text", "text"))["n"].max() > 100
    joined = in_polars.functions(constants("py")).joined
    assert frame().head(1).select(n=joined("text", polars.lit("x")))["n"].to_list() == ["w0 x"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_null_and_empty_constants(constants: Callable[[str], Path], language: str) -> None:
    udf = in_polars.functions(constants(language))
    nothing = polars.lit(None, dtype=polars.String)
    some = polars.DataFrame({"text": ["a", None, "b"]})
    found = some.select(joined=udf.joined("text", nothing), made=udf.made("text", nothing))
    assert found["joined"].to_list() == ["a None", "None None", "b None"]
    assert found["made"].to_list() == [None] * 3
    assert some.head(0).select(n=udf.made("text", polars.lit("empty")))["n"].to_list() == []
    assert some.select(n=udf.joined(polars.lit(""), "text"))["n"].to_list() == [" a", " None", " b"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_literal_of_daft_is_made_once(constants: Callable[[str], Path], language: str) -> None:
    in_daft.register(constants(language))
    rows = daft.from_pydict({"text": WORDS})  # noqa: F841 (daft.sql finds it by its name)
    found = daft.sql("SELECT made(text, 'daft') AS n, joined(text, 'x') AS j FROM rows").to_pydict()
    assert found["n"] == [1] * ROWS
    assert found["j"] == [f"{word} x" for word in WORDS]


def test_a_literal_of_duckdb_is_prepared_once_for_each_of_its_vectors(constants: Callable[[str], Path]) -> None:
    """DuckDB repeats it, and `Constant` finds the rows alike."""
    with connection(constants("rs")) as opened:
        opened.execute("CREATE TABLE t AS SELECT 'w' || (range % 7) AS text FROM range(10000)")
        found = opened.execute("SELECT max(made(text, 'duckdb')), count(*) FROM t").fetchone()
        assert found == (5, 10_000)
