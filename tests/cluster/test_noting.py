"""What running jobs report, on its way to the database."""

from typing import Any

import pytest
import sqlalchemy
from test_database import made

from arroyo_udf_plugin.cluster.controller.report_writer import Notes
from arroyo_udf_plugin.cluster.database import history
from arroyo_udf_plugin.cluster.database.database import Database
from arroyo_udf_plugin.cluster.database.models import JobStatus
from arroyo_udf_plugin.cluster.records import Records
from arroyo_udf_plugin.cluster.states import Event
from arroyo_udf_plugin.cluster.task import OUTPUT, JobReport


@pytest.fixture
def job(database: Database) -> str:
    """Its generation is 0."""
    with database.begin() as session:
        return made(session).job.id


@pytest.fixture
def notes(records: Records) -> Notes:
    return Notes(records)


def note(notes: Notes, database: Database, *reports: JobReport) -> None:
    for report in reports:
        notes.add(report)
    with database.begin() as session:
        notes.write(session)
    notes.written()


def told(job: str, taken: int | None, generation: int = 0, event: Event | None = None, **more: Any) -> JobReport:
    checkpoint = None if taken is None else {"epoch": taken, "seconds": 0.1, "at": 1.0}
    return JobReport(job, generation, event, numbers={"rows_in": 0}, checkpoint=checkpoint, **more)


def epochs(database: Database, job: str) -> list[tuple[int, int, str]]:
    with database.read() as session:
        return [(row.epoch, row.generation, row.checkpoint_type) for row in history.checkpoints(session, job)]


def set_generation(database: Database, generation: int) -> None:
    with database.begin() as session:
        session.execute(sqlalchemy.update(JobStatus).values(generation=generation))


def test_each_checkpoint_is_written_however_many_come_at_once(database: Database, job: str, notes: Notes) -> None:
    note(
        notes,
        database,
        *(told(job, epoch) for epoch in (1, 2, 3)),
        told(job, None),
        told(job, 4, event=Event.SAVED),
    )
    assert epochs(database, job) == [(1, 0, "scheduled"), (2, 0, "scheduled"), (3, 0, "scheduled"), (4, 0, "stopping")]


def test_the_last_checkpoint_of_a_job_is_known_as_such_though_it_was_told_before(
    database: Database, job: str, notes: Notes
) -> None:
    note(notes, database, told(job, 1))
    note(notes, database, told(job, 1, event=Event.SAVED))
    assert epochs(database, job) == [(1, 0, "stopping")]


def test_a_new_history_begins_with_the_epoch_with_which_the_one_before_ended(
    database: Database, job: str, notes: Notes
) -> None:
    note(notes, database, told(job, 1))
    set_generation(database, 1)
    note(notes, database, told(job, 1, generation=1))
    assert epochs(database, job) == [(1, 1, "scheduled")]


def test_how_far_a_job_has_come_is_known_with_what_it_retains(
    database: Database, job: str, notes: Notes, records: Records
) -> None:
    def known() -> tuple[int, list[int]]:
        with database.read() as session:
            status = session.get(JobStatus, job)
            assert status is not None
            return status.epoch, [row.epoch for row in history.checkpoints(session, job) if row.retained]

    note(notes, database, told(job, None, event=Event.STARTED, epoch=1))
    assert known() == (1, [])
    for epoch in (2, 3, 4):
        note(notes, database, told(job, epoch, epoch=epoch, retained=[epoch - 1, epoch]))
    assert known() == (4, [3, 4])
    note(Notes(records), database, told(job, None, event=Event.STARTED, epoch=3, retained=[3]))  # to another controller
    assert known() == (4, [3])
    set_generation(database, 1)
    note(notes, database, told(job, None, epoch=9, retained=[9]))
    assert known() == (4, [3])


def test_a_late_report_of_an_old_generation_hides_nothing(database: Database, job: str, notes: Notes) -> None:
    set_generation(database, 1)
    note(notes, database, told(job, 7, generation=1), told(job, 3))
    assert epochs(database, job) == [(7, 1, "scheduled")]


def test_what_an_old_generation_has_printed_is_in_the_log(database: Database, job: str, notes: Notes) -> None:
    set_generation(database, 1)
    note(notes, database, told(job, None, generation=1), JobReport(job, 0, message=OUTPUT, details="the end"))
    with database.read() as session:
        (row,) = history.logged(session, job, 9).rows
        assert (row.generation, row.details) == (0, "the end")


def test_what_waits_for_the_database_has_a_limit(database: Database, job: str, notes: Notes) -> None:
    for number in range(1000):
        notes.add(told(job, number))
        notes.add(JobReport(job, 0, message=OUTPUT, details=str(number)))
    note(notes, database)
    assert [epoch for epoch, _, _ in epochs(database, job)] == list(range(900, 1000))
    with database.read() as session:
        assert [row.details for row in history.logged(session, job, 1000).rows] == [str(n) for n in range(999, 899, -1)]


def test_nothing_waits_when_nothing_has_changed(database: Database, job: str, notes: Notes) -> None:
    note(notes, database, told(job, 1))
    notes.add(told(job, 1))
    assert not notes.wait


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"], ids=["zero", "half a character"])
def test_whatever_a_worker_prints_can_be_stored(database: Database, job: str, notes: Notes, text: str) -> None:
    note(notes, database, JobReport(job, 0, message=OUTPUT, details=text))
    with database.read() as session:
        (row,) = history.logged(session, job, 9).rows
        assert row.details in ("a\N{REPLACEMENT CHARACTER}b", "a?b")
