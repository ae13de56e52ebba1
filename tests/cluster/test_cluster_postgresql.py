"""Jobs with PostgreSQL as database, also when it loses its connections."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy
from clusters import Cluster, settings_in
from waiting import until

from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.database.errors import InUse
from arroyo_udf_plugin.cluster.database.places import move
from arroyo_udf_plugin.engine.pipeline import Blackhole, Impulse, Pipeline

pytestmark = pytest.mark.server


@pytest.fixture
def cluster(postgresql: str, tmp_path: Path) -> Iterator[Cluster]:
    with contextlib.closing(Database.open(postgresql, tmp_path / "secrets.key")) as database:
        with database.engine.begin() as connection:
            connection.exec_driver_sql("DROP SCHEMA public CASCADE")
            connection.exec_driver_sql("CREATE SCHEMA public")
        database.migrate()
        with contextlib.closing(Cluster(database, settings_in(tmp_path))) as made:
            yield made


def test_a_job_lives_with_postgresql(cluster: Cluster) -> None:
    posted = cluster.post(Pipeline(name="p", source=Impulse(rate=1000), sinks=[Blackhole()]))
    cluster.await_state(posted, "Running")
    cluster.change(posted, parallelism=2)
    cluster.await_state(posted, "Running", generation=2)
    cluster.change(posted, stop="checkpoint")
    cluster.await_state(posted, "Stopped")


def test_files_are_moved_while_no_controller_leads(cluster: Cluster, tmp_path: Path) -> None:
    posted = cluster.post(Pipeline(name="p", source=Impulse(rate=1000), sinks=[Blackhole()]))
    cluster.await_state(posted, "Running")
    before = cluster.get(posted).job.place
    assert before is not None
    assert before.startswith(str(tmp_path))
    with pytest.raises(InUse, match="a controller runs: stop it"):
        move(cluster.database, str(tmp_path), "/elsewhere")
    cluster.change(posted, stop="checkpoint")
    cluster.await_state(posted, "Stopped")
    cluster.controller.stop()
    assert [move(cluster.database, str(tmp_path), "/elsewhere") for _ in range(2)] == [1, 0]
    assert cluster.get(posted).job.place == before.replace(str(tmp_path), "/elsewhere")


def test_a_controller_outlives_the_connections_of_its_database(cluster: Cluster) -> None:
    posted = cluster.post(Pipeline(name="p", source=Impulse(rate=1000), sinks=[Blackhole()]))
    cluster.await_state(posted, "Running")
    with contextlib.suppress(sqlalchemy.exc.SQLAlchemyError), cluster.database.engine.begin() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND datname IS NOT NULL"
        )
    until(lambda: cluster.controller.leads, "the lock")
    cluster.change(posted, stop="checkpoint")
    assert cluster.await_state(posted, "Stopped").status.generation == 1


def test_a_wish_is_seen_although_the_connection_that_tells_of_it_is_dead(cluster: Cluster) -> None:
    """Half open, as after a failover: the server's side stands still, and nobody says so."""
    posted = cluster.post(Pipeline(name="p", source=Impulse(rate=1000), sinks=[Blackhole()]))
    cluster.await_state(posted, "Running")
    with cluster.database.engine.begin() as connection:
        found = connection.exec_driver_sql("SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%%'")
        listening = [row.pid for row in found]
    assert listening
    try:
        for pid in listening:
            os.kill(pid, signal.SIGSTOP)
        cluster.change(posted, stop="immediate")
        cluster.await_state(posted, "Stopped")
    finally:
        for pid in listening:
            os.kill(pid, signal.SIGCONT)
