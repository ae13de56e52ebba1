"""One library of each language, in all engines. `make test-integrations` installs the engines, and `make test-spark`
Spark; without them these files are not collected, because they import them."""

from __future__ import annotations

import functools
import importlib.util
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from documented import speeds_of_readme

from arroyo_udf_plugin import build

HERE = Path(__file__).parent
LANGUAGES = ("c", "rs", "py")
IN_SPARK = HERE / "test_spark.py"
OF_PYSPARK = ("ignore:PySpark does not yet fully support pandas:FutureWarning", "ignore:unclosed:ResourceWarning")


def _have(*modules: str) -> bool:
    return all(importlib.util.find_spec(module) for module in modules)


collect_ignore = [] if _have("pyspark") else [IN_SPARK]
collect_ignore += [] if _have("duckdb", "apsw") else [file for file in HERE.glob("test_*.py") if file != IN_SPARK]

Library = Callable[..., Path]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path == IN_SPARK:
            item.add_marker("spark")
            item.add_marker(pytest.mark.filterwarnings(*OF_PYSPARK))
        elif HERE in item.path.parents:
            item.add_marker("integrations")
            item.add_marker(pytest.mark.filterwarnings("ignore:Native extensions are experimental:UserWarning"))


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """The library of plugins/one.LANGUAGE, built once for each treatment of failed rows.

    library("py", on_error="null")
    """
    built: dict[tuple[str, str, str], Path] = {}

    def of(language: str, on_error: str = "fail", name: str = "one") -> Path:
        if (language, on_error, name) not in built:
            source = tmp_path_factory.mktemp(language) / f"{name}.{language}"
            shutil.copy(HERE / "plugins" / f"one.{language}", source)
            built[language, on_error, name] = build(source, on_error=on_error)  # type: ignore[arg-type]
        return built[language, on_error, name]

    return of


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The library of plugins/many.py, built once for each treatment of failed groups: many("null")."""

    @functools.cache
    def of(on_error: str) -> Path:
        source = tmp_path_factory.mktemp("many") / ("many.py" if on_error == "fail" else f"many_{on_error}.py")
        shutil.copy(HERE / "plugins" / "many.py", source)
        return build(source, on_error=on_error)  # type: ignore[arg-type]

    return of


@pytest.fixture(scope="session")
def speeds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the README's library."""
    folder = tmp_path_factory.mktemp("lines")
    (folder / "speeds.py").write_text(speeds_of_readme())
    build(folder / "speeds.py")
    return folder
