"""What the tests of the cluster share: a new database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from arroyo_udf_plugin.cluster.database.opened import Database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database.open(f"sqlite:///{tmp_path / 'cluster.sqlite'}")
    opened.migrate()
    yield opened
    opened.close()
