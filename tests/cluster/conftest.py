"""What the tests of the cluster share: a new database."""

import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from programs import Program

from arroyo_udf_plugin.cluster.database.database import KEY_FILE, Database
from arroyo_udf_plugin.cluster.records import Records


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of an empty database, to be copied with its key: a migration takes longer than most tests."""
    file = tmp_path_factory.mktemp("migrated") / "cluster.sqlite"
    opened = Database.open(f"sqlite:///{file}")
    opened.migrate()
    opened.close()
    return file


@pytest.fixture
def database(tmp_path: Path, migrated: Path) -> Iterator[Database]:
    file = tmp_path / "cluster.sqlite"
    for path in (migrated, migrated.with_name(KEY_FILE)):
        shutil.copy(path, tmp_path)
    opened = Database.open(f"sqlite:///{file}")
    yield opened
    opened.close()


@pytest.fixture
def records(tmp_path: Path) -> Records:
    """The files beside the database."""
    return Records(tmp_path)


@pytest.fixture
def start() -> Iterator[Callable[..., Program]]:
    """Starts programs of a cluster; those that still run at the end of the test are killed."""
    started: list[Program] = []

    def start_one(*arguments: object, environment: Mapping[str, str] | None = None) -> Program:
        started.append(Program(*map(str, arguments), environment=environment))
        return started[-1]

    yield start_one
    for program in started:
        program.end(signal.SIGKILL)
