"""The database of a cluster: migrations, constraints, wishes and facts."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.util import CommandError
from clusters import EMPTY

from arroyo_udf_plugin.cluster.database import connections, history, jobs, pipelines, places, udfs
from arroyo_udf_plugin.cluster.database.database import LATEST, Changes, Database, LeaderLock
from arroyo_udf_plugin.cluster.database.errors import Deposed, InUse, NameTaken, NotFound
from arroyo_udf_plugin.cluster.database.models import Base, JobRow, JobStatus, PipelineRow
from arroyo_udf_plugin.cluster.database.pipelines import Totals, alone, totals
from arroyo_udf_plugin.cluster.database.sealing import Keys
from arroyo_udf_plugin.errors import InvalidArgument, InvalidState


def made(session: Any, **changes: Any) -> pipelines.WholeJob:
    given: dict[str, Any] = {"name": "p", "query": "SELECT 1", "program": EMPTY, "graph": {"nodes": [], "edges": []}}
    given |= {"checkpoint_interval_micros": 10_000_000, "checkpoints": "/state"}
    return pipelines.create(session, **given | changes)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.server)])
def each(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A new database of each kind."""
    if request.param == "sqlite":
        opened = Database.open(f"sqlite:///{tmp_path / 'cluster.sqlite'}")
    else:
        opened = Database.open(request.getfixturevalue("postgresql"), tmp_path / "secrets.key")
        with opened.engine.begin() as connection:
            connection.exec_driver_sql("DROP SCHEMA public CASCADE")
            connection.exec_driver_sql("CREATE SCHEMA public")
    opened.migrate()
    yield opened
    opened.close()


def test_migrations_make_the_tables_of_the_models(each: Database) -> None:
    with each.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def test_migrations_make_the_constraints_of_the_models(database: Database) -> None:
    """Alembic does not compare checks."""
    fresh = sqlalchemy.create_engine("sqlite://")
    Base.metadata.create_all(fresh)
    for table in Base.metadata.tables:
        names = [
            {one["name"]: one["sqltext"] for one in sqlalchemy.inspect(engine).get_check_constraints(table)}
            for engine in (fresh, database.engine)
        ]
        assert names[0] == names[1], table
    fresh.dispose()


def test_a_second_migration_does_nothing(each: Database) -> None:
    assert each.migrate() == LATEST
    each.check()


def test_programs_that_start_at_once_migrate_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new' / 'cluster.sqlite'}"
    found: list[str | None] = []

    def start() -> None:
        with contextlib.closing(Database.open(url)) as database:
            found.append(database.migrate())

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found, key=str) == [None, LATEST, LATEST, LATEST]


def test_a_newer_database_is_refused(each: Database) -> None:
    with each.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = 'v9999'")
    with pytest.raises(InvalidState, match="is of a newer program"):
        each.check()
    with pytest.raises(InvalidState, match="is of a newer program"):
        each.migrate()


def test_an_older_database_is_copied_and_refused_until_it_is_migrated(tmp_path: Path) -> None:
    file = tmp_path / "cluster.sqlite"
    with contextlib.closing(Database.open(f"sqlite:///{file}")) as database:
        with database.engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE alembic_version (version_num TEXT)")
            connection.exec_driver_sql("INSERT INTO alembic_version VALUES ('v0000')")
        with pytest.raises(InvalidState, match="run `arroyo-udf migrate`"):
            database.check()
        with pytest.raises(CommandError, match="v0000"):  # there is no such revision; it was copied before
            database.migrate()
    with contextlib.closing(Database.open(f"sqlite:///{file}.before-v0000")) as copy:
        assert copy.revision == "v0000"


def test_a_database_of_another_kind_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="write sqlite or postgresql"):
        Database.open("mysql://localhost/x")
    with pytest.raises(InvalidArgument, match="is no URL"):
        Database.open("cluster")


def test_a_created_pipeline_has_a_job_that_is_to_run(each: Database) -> None:
    with each.begin() as session:
        whole = made(session, tags={"team": "a"}, udfs=[{"definition": "def f", "language": "python"}])
    with each.read() as session:
        found = pipelines.get(session, whole.pipeline.id)
        assert (found.status.state, found.job.stop, found.job.fulfilled) == ("Created", "none", 0)
        assert (found.pipeline.tags, found.pipeline.udfs[0]["language"]) == ({"team": "a"}, "python")
        assert found.status.worker is None
        assert pipelines.of_job(session, whole.job.id).pipeline.id == whole.pipeline.id
        assert list(jobs.unfulfilled(session)) == list(jobs.under_way(session)) == [whole.job.id]


def test_a_pipeline_is_created_whole_or_not_at_all(each: Database) -> None:
    with pytest.raises(sqlalchemy.exc.IntegrityError), each.begin() as session:
        made(session, id="mine", tables=["ct_unknown"])
    with each.begin() as session:
        made(session, id="mine")
    with pytest.raises(NameTaken), each.begin() as session:
        made(session, id="mine")


def test_pages_tell_each_pipeline_once(each: Database) -> None:
    with each.begin() as session:
        ids = [made(session).pipeline.id for _ in range(7)]
        made(session, is_preview=True)
    told: list[str] = []
    with each.read() as session:
        after, more = None, True
        while more:
            page = pipelines.listed(session, 3, after)
            told += [whole.pipeline.id for whole in page.rows]
            after, more = told[-1], page.has_more
        assert told == ids[::-1]
        assert [whole.pipeline.id for whole in pipelines.all_listed(session)] == told
        with pytest.raises(NotFound):
            pipelines.listed(session, 3, "pl_unknown")


def test_a_wish_is_fulfilled_with_its_last_revision(each: Database) -> None:
    with each.begin() as session:
        whole = made(session)
        first = whole.job.revision
        pipelines.change(session, whole.pipeline.id, {"stop": "checkpoint"})
    with each.begin() as session:
        jobs.fulfil(session, whole.job.id, first)
    with each.read() as session:
        assert list(jobs.unfulfilled(session)) == [whole.job.id]
        revision = pipelines.get(session, whole.pipeline.id).job.revision
    with each.begin() as session:
        jobs.fulfil(session, whole.job.id, revision)
        assert list(jobs.unfulfilled(session)) == []
        assert list(jobs.open_jobs(session)) == [whole.job.id]


def test_a_leader_that_ends_without_a_word_is_counted(each: Database) -> None:
    with each.begin() as session:
        assert not jobs.is_led(session)
        assert jobs.lead(session, "a") == (1, 0)
        assert jobs.is_led(session)
        assert jobs.lead(session, "b") == (2, 1)
        assert jobs.lead(session, "c") == (3, 2)
        jobs.beat(session, is_healthy=False)
        assert jobs.lead(session, "c") == (4, 2)  # it has lost its lock for a moment
        assert jobs.lead(session, "d") == (5, 3)
        jobs.beat(session, is_healthy=True)
        assert jobs.lead(session, "e") == (6, 1)
        jobs.give_up(session)
        assert not jobs.is_led(session)
        assert jobs.lead(session, "f") == (7, 0)


def test_a_restart_without_state_begins_a_new_history(each: Database) -> None:
    with each.begin() as session:
        whole = made(session)
        pipelines.change(session, whole.pipeline.id, {"stop": "immediate"})
        job = pipelines.restart(session, whole.pipeline.id, ignore_state=True).job
        assert (job.stop, job.restart_nonce, job.restart_mode, job.history) == ("none", 1, "safe", 1)
        job = pipelines.restart(session, whole.pipeline.id, force=True).job
        assert (job.restart_nonce, job.restart_mode, job.history) == (2, "force", 1)


def test_only_a_pipeline_that_has_ended_can_be_deleted(each: Database) -> None:
    with each.begin() as session:
        whole = made(session)
        history.log(session, whole.job.id, 1, "info", "started")
        with pytest.raises(InUse, match="its job is Created"):
            pipelines.delete(session, whole.pipeline.id)
        session.execute(sqlalchemy.update(JobStatus).values(state="Failed"))
    with each.begin() as session:
        pipelines.delete(session, whole.pipeline.id)
        with pytest.raises(NotFound):
            pipelines.delete(session, whole.pipeline.id)
        assert session.query(PipelineRow).count() == session.query(JobRow).count() == 0
        assert list(jobs.leftovers(session)) == [f"/state/{whole.job.id}"]
        jobs.removed(session, f"/state/{whole.job.id}")
        assert list(jobs.leftovers(session)) == []


@pytest.mark.parametrize(
    "values", [{"state": "Sleeping"}, {"failure_domain": "nobody"}], ids=lambda values: next(iter(values))
)
def test_unknown_words_are_refused_by_the_database(each: Database, values: dict[str, str]) -> None:
    with each.begin() as session:
        made(session)
    with pytest.raises(sqlalchemy.exc.IntegrityError), each.begin() as session:
        session.execute(sqlalchemy.update(JobStatus).values(values))


def test_there_is_one_leader(each: Database) -> None:
    first, second = LeaderLock(each), LeaderLock(each)
    assert first.hold()
    assert first.hold()
    assert not second.hold()
    first.release()
    assert second.hold()
    assert not first.hold()
    second.release()


def test_only_the_leader_passes_the_fence(each: Database) -> None:
    with each.begin() as session:
        assert jobs.lead(session, "b").term == 1
        assert jobs.lead(session, "a").term == 2
        jobs.fence(session, "a", 2)
        for controller, term in (("b", 1), ("b", 2), ("a", 1)):
            with pytest.raises(Deposed):
                jobs.fence(session, controller, term)


def test_nobody_becomes_the_leader_while_the_one_before_writes(each: Database) -> None:
    led = threading.Event()

    def lead() -> None:
        with each.begin() as session:
            jobs.lead(session, "b")
        led.set()

    with each.begin() as session:
        jobs.lead(session, "a")
    thread = threading.Thread(target=lead)
    with each.begin() as session:
        jobs.fence(session, "a", 1)
        thread.start()
        assert not led.wait(0.2)
    thread.join()
    with pytest.raises(Deposed), each.begin() as session:
        jobs.fence(session, "a", 1)


def test_a_fact_is_written_only_from_the_state_and_generation_that_are_known(each: Database) -> None:
    with each.begin() as session:
        whole = made(session)

    def write(**changes: Any) -> bool:
        given: dict[str, Any] = {"state": "Created", "generation": 0, "facts": {"controller": "a"}}
        with each.begin() as session:
            return jobs.write(session, whole.job.id, **given | changes)

    assert not write(generation=1)
    assert not write(state="Running")
    assert write(facts={"state": "Compiling", "generation": 1})
    assert not write()
    with each.read() as session:
        status = pipelines.get(session, whole.pipeline.id).status
        assert (status.state, status.generation) == ("Compiling", 1)
        assert status.state_since >= whole.status.state_since


def test_logs_come_in_pages_by_level(each: Database) -> None:
    with each.begin() as session:
        job = made(session).job.id
        for number in range(5):
            history.log(session, job, 1, "error" if number % 2 else "info", str(number), error_domain="user")
    with each.read() as session:
        first = history.logged(session, job, 1, levels=("error",))
        assert ([row.message for row in first.rows], first.has_more) == (["3"], True)
        rest = history.logged(session, job, 1, first.rows[-1].id, levels=("error",))
        assert ([row.message for row in rest.rows], rest.has_more) == (["1"], False)


def test_checkpoints_are_listed_by_epoch_without_failed_ones(each: Database) -> None:
    with each.begin() as session:
        job = made(session).job.id
        for epoch, state in ((2, "ready"), (1, "ready"), (3, "failed"), (4, "inprogress")):
            history.checkpoint(session, job, epoch, generation=1, state=state, start_time=epoch)
        history.checkpoint(session, job, 4, generation=1, state="ready", start_time=4, finish_time=5)
    with each.begin() as session:
        assert [(one.epoch, one.finish_time) for one in history.checkpoints(session, job)] == [
            (1, None),
            (2, None),
            (4, 5),
        ]
        with pytest.raises(NotFound):
            history.one_checkpoint(session, job, 9)
        history.drop_checkpoints(session, job, 2, 9)
        assert [one.epoch for one in history.checkpoints(session, job)] == [2, 4]
        history.drop_checkpoints(session, job, 1, 2)  # another history, which has come to epoch 2
        assert [one.epoch for one in history.checkpoints(session, job)] == [2]


def test_profiles_and_tables_in_use_cannot_be_deleted(each: Database) -> None:
    with each.begin() as session:
        profile = connections.create_profile(session, name="broker", connector="kafka", config={"a": 1})
        row = connections.create_table(
            session, name="Trips", connector="kafka", table_type="source", config={}, schema={}, profile_id=profile.id
        )
        whole = made(session, tables=[row.table.id, row.table.id])
        (told,) = connections.tables(session, 10).rows
        assert (told.profile.id, told.consumers) == (profile.id, 1)
        with pytest.raises(InUse, match="Trips"):
            connections.delete_profile(session, profile.id)
        with pytest.raises(InUse, match=whole.pipeline.id):
            connections.delete_table(session, row.table.id)
        session.delete(whole.pipeline)
        session.flush()
        connections.delete_table(session, row.table.id)
        connections.delete_profile(session, profile.id)
        assert connections.profiles(session) == []


def test_names_are_taken_once(each: Database) -> None:
    table: dict[str, Any] = {"connector": "impulse", "table_type": "source", "config": {}, "schema": {}}
    udf = {"prefix": "/", "language": "python", "definition": ""}
    with each.begin() as session:
        connections.create_profile(session, name="p", connector="kafka", config={})
        connections.create_table(session, name="trips", **table)
        udfs.create(session, name="f", **udf)
    with pytest.raises(NameTaken), each.begin() as session:
        connections.create_profile(session, name="p", connector="kafka", config={})
    with pytest.raises(NameTaken), each.begin() as session:
        connections.create_table(session, name="TRIPS", **table)
    with pytest.raises(NameTaken), each.begin() as session:
        udfs.create(session, name="F", **udf)


def reserved(database: Database, place: str, sha256: str = "ab") -> dict[str, str]:
    """Where a library is stored now: at `place`, if it was nowhere. By its hash."""
    with database.begin() as session:
        told = {"name": "f", "language": "python", "size": 10}
        return {sha256: places.reserve(session, sha256, **told, new_place=lambda: place)}


def test_a_library_stays_as_long_as_somebody_has_it(each: Database) -> None:
    assert reserved(each, "/1") == reserved(each, "/2") == {"ab": "/1"}
    with each.begin() as session:
        udf = udfs.create(session, prefix="/", name="f", language="python", definition="", artifact="ab")
        whole = made(session, libraries=["ab"])
        assert [one.artifact for one in udfs.listed(session)] == ["ab"]
        session.execute(sqlalchemy.update(JobStatus).values(state="Failed"))
    with each.begin() as session:
        udfs.delete(session, udf.id)
        with pytest.raises(NotFound):
            udfs.delete(session, udf.id)
        assert list(jobs.leftovers(session)) == []
    with each.begin() as session:
        pipelines.delete(session, whole.pipeline.id)
        assert set(jobs.leftovers(session)) == {"/1", f"/state/{whole.job.id}"}
    assert reserved(each, "/2") == {"ab": "/2"}


def test_a_library_that_was_released_meanwhile_is_stored_anew(each: Database) -> None:
    """Between its storing and the pipeline that has it, the last other pipeline was deleted."""
    stored = reserved(each, "/1")
    with each.begin() as session:
        places.hold(session, stored)
        places.release(session, ["ab"])
    for _ in range(2):
        with each.begin() as session, pytest.raises(places.Released):
            places.hold(session, stored)
        reserved(each, "/2")


def test_whoever_releases_a_library_waits_for_those_who_hold_it(each: Database) -> None:
    stored = reserved(each, "/1")
    held = threading.Event()

    def release() -> None:
        held.wait()
        with each.begin() as session:
            places.release(session, ["ab"])

    thread = threading.Thread(target=release)
    thread.start()
    with each.begin() as session:
        places.hold(session, stored)
        held.set()
        thread.join(0.2)  # it waits; if it did not, the use below would fail
        made(session, libraries=["ab"])
    thread.join()
    with each.begin() as session:
        assert list(jobs.leftovers(session)) == []
        places.hold(session, stored)


def test_a_pipeline_that_has_other_libraries_now_lets_the_old_ones_go(each: Database) -> None:
    for sha256 in ("ab", "cd", "ef"):
        reserved(each, f"/{sha256}", sha256)
    with each.begin() as session:
        whole = made(session, libraries=["ab", "cd"])
        places.use(session, whole.pipeline.id, ["cd", "ef"])
        assert list(jobs.leftovers(session)) == ["/ab"]
        assert sorted(places.used_by(session, whole.pipeline.id)) == ["cd", "ef"]
        assert list(places.unused(session, 1 << 62)) == []


def test_libraries_that_nobody_ever_had_are_found(each: Database) -> None:
    reserved(each, "/1")
    with each.begin() as session:
        assert list(places.unused(session, 0)) == []
        assert list(places.unused(session, 1 << 62)) == ["ab"]


def test_a_udf_has_a_library_that_is_known(each: Database) -> None:
    with pytest.raises(sqlalchemy.exc.IntegrityError), each.begin() as session:
        udfs.create(session, prefix="/", name="g", language="python", definition="", artifact="unknown")


def test_a_udf_keeps_the_definitions_that_it_has_had(each: Database) -> None:
    with each.begin() as session:
        id = udfs.create(session, prefix="/", name="g", language="python", definition="0").id
        other = udfs.create(session, prefix="/", name="h", language="c", definition="other").id
        udfs.change(session, id, {"description": "what it does"})
        udfs.change(session, id, {"definition": "1"})
        udfs.change(session, id, {"definition": "1"})
        udfs.change(session, id, {"language": "rust"})
        kept = [(one.number, one.language, one.definition) for one in udfs.versions(session, id)]
        assert kept == [(3, "rust", "1"), (2, "python", "1"), (1, "python", "0")]
        for number in range(60):
            udfs.change(session, id, {"definition": f"n {number}"})
        numbers = [one.number for one in udfs.versions(session, id)]
        assert (numbers[0], numbers[-1], len(numbers)) == (63, 14, 50)
        udfs.delete(session, id)
        assert udfs.versions(session, id) == []
        assert len(udfs.versions(session, other)) == 1


def test_old_previews_are_found_when_they_have_ended(each: Database) -> None:
    with each.begin() as session:
        made(session)
        old = made(session, is_preview=True)
        assert jobs.old_previews(session, old.pipeline.created_at + 1) == []
        session.execute(sqlalchemy.update(JobStatus).values(state="Stopped"))
        assert list(jobs.old_previews(session, old.pipeline.created_at + 1)) == [old.pipeline.id]
        assert jobs.old_previews(session, old.pipeline.created_at) == []


def test_a_wish_that_another_program_writes_wakes_the_controller(each: Database, tmp_path: Path) -> None:
    woken = threading.Event()
    with contextlib.closing(Changes(each, woken.set)):
        other = Database(each.engine, Keys(tmp_path / "secrets.key"))
        with other.begin() as session:
            made(session)
        assert woken.wait(30)


def test_a_retained_checkpoint_is_not_forgotten_however_many_follow(each: Database) -> None:
    with each.begin() as session:
        job = made(session).job.id
        for epoch in (1, 2, 300, 900):
            history.checkpoint(session, job, epoch, generation=1, state="ready", start_time=1, history=2)
        history.retain(session, job, 2, [1, 900])
        history.drop_checkpoints(session, job, 200, 300)
        assert [(one.epoch, one.retained) for one in history.checkpoints(session, job)] == [(1, True), (300, False)]
        history.retain(session, job, 3, [1])  # of another history
        assert not any(one.retained for one in history.checkpoints(session, job))


def test_an_epoch_that_was_told_is_not_forgotten_for_an_earlier_one(each: Database) -> None:
    with each.begin() as session:
        job = made(session).job.id
        for epoch in (3, 7, 5):
            jobs.came_to(session, job, epoch)
        assert pipelines.of_job(session, job).status.epoch == 7


def test_what_all_have_together_is_counted_while_a_controller_leads(each: Database) -> None:
    """Both have a lock in PostgreSQL, each its own."""
    lock = LeaderLock(each)
    assert lock.hold()
    try:
        with each.begin() as session:
            alone(session)
            first = made(session, parallelism=3)
            made(session, is_preview=True)
            assert totals(session) == Totals(pipelines=1, parallelism=4, previews=1, kept=1)
            first.status.state, first.job.stop = "Stopped", "checkpoint"
            session.flush()
            assert totals(session) == Totals(pipelines=1, parallelism=1, previews=1, kept=1)
            first.job.stop = "none"
            session.flush()
            assert totals(session).parallelism == 4, "it is to run"
            assert totals(session, without_job=first.job.id).parallelism == 1
    finally:
        lock.release()
