"""What the database and files know of jobs, as samples. For the API, and for the controller that leads.

Guarantees: the latest numbers alone are read, of jobs that have not ended.
"""

from __future__ import annotations

from ..database import history, jobs
from ..database.database import Database
from ..database.models import STATES
from ..records import Records
from .metrics import Families, Source, add_checkpoint, add_numbers


def from_database(database: Database, records: Records) -> Source:
    def tell(families: Families) -> None:
        with database.read() as session:
            open_jobs = history.latest(session)
        for job in open_jobs:
            families.add("arroyo_udf_restarts", job.restarts, job_id=job.job_id)
            numbers = records.latest(job.job_id)
            if numbers is not None:
                add_numbers(families, numbers, job.job_id)
            taken = job.checkpoint
            if taken is not None:
                finish = taken.start_time if taken.finish_time is None else taken.finish_time
                size = sum(operator["bytes"] for operator in taken.operators.values())
                add_checkpoint(families, job.job_id, taken.epoch, (finish - taken.start_time) / 1e6, size)

    return tell


def by_state(database: Database) -> Source:
    """How many jobs there are, in each state; and whether a controller leads."""

    def tell(families: Families) -> None:
        with database.read() as session:
            families.add("arroyo_udf_led", int(jobs.is_led(session)))
            counts = dict.fromkeys([*STATES, "UserFailed"], 0) | jobs.by_state(session)
        for state, count in counts.items():
            families.add("arroyo_controller_jobs", count, state=state)

    return tell
