"""Jobs that are lost because something outside does not answer, for an hour; and jobs that crash for as long."""

import contextlib
import errno
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters import EMPTY
from simulations import Simulation

from arroyo_udf_plugin.cluster import generation
from arroyo_udf_plugin.cluster.generation import run
from arroyo_udf_plugin.cluster.states import Event
from arroyo_udf_plugin.cluster.task import Task
from arroyo_udf_plugin.engine.execution.stopping import StopRequest
from arroyo_udf_plugin.errors import InvalidArgument, Unreachable, service_of

HOUR = 3600
STEP = 15


@pytest.fixture
def simulation(migrated: Path) -> Iterator[Simulation]:
    with contextlib.closing(Simulation(migrated, initial_backoff=0.5, max_backoff=60.0)) as made:
        made.start()
        yield made


def an_hour(simulation: Simulation) -> dict[str, set[float]]:
    """In which whatever starts is lost. Returns when each job has started."""
    times: dict[str, set[float]] = {}
    for _ in range(HOUR // STEP):
        simulation.turn()
        while simulation.world.workers or not all(each._words.empty() for each in simulation.controllers):
            for job_id in list(simulation.world.workers):
                times.setdefault(job_id, set()).add(simulation.now)
                simulation.world.happen(job_id, Event.LOST)
            simulation.turn()
        simulation.now += STEP
    return times


def test_an_hours_outage_uses_up_no_restarts(simulation: Simulation) -> None:
    posted = [simulation.post() for _ in range(3)]
    simulation.settle(2)
    simulation.world.outage = "s3://state"
    times = an_hour(simulation)
    for one in posted:
        status = simulation.get(one).status
        assert (status.state, status.restarts) == ("Recovering", 0)
    together = set.union(*times.values())
    assert len(together) < 120, "tries of the store"
    assert all(len(each) > 40 for each in times.values())
    assert all(len(together - each) <= 2 for each in times.values()), "jobs try it together"
    simulation.world.outage = ""
    simulation.settle(65)
    for one in posted:
        status = simulation.get(one).status
        assert (status.state, status.restarts, status.failure_message) == ("Running", 0, None)


def test_an_hour_of_crashes_ends_a_job(simulation: Simulation) -> None:
    posted = simulation.post()
    simulation.settle(2)
    an_hour(simulation)
    status = simulation.get(posted).status
    assert (status.state, status.restarts, status.generation) == ("Failed", 20, 21)


def test_a_preview_is_tried_once_whatever_it_fails_by(simulation: Simulation) -> None:
    posted = simulation.post(ttl_micros=60_000_000)
    simulation.world.outage = "s3://state"
    an_hour(simulation)
    assert simulation.get(posted).status.state == "Failed"


def test_a_stop_ends_a_job_that_waits_for_an_outage(simulation: Simulation) -> None:
    posted = simulation.post()
    simulation.settle(2)
    simulation.world.outage = "s3://state"
    an_hour(simulation)
    simulation.change(posted, stop="checkpoint")
    simulation.settle(1)
    assert simulation.get(posted).status.state == "Stopped"


def test_what_does_not_answer_is_known_through_the_errors_around_it() -> None:
    inner = Unreachable("s3://state/a: the store cannot be asked", "s3://state")
    outer = InvalidArgument("the checkpoint cannot be written")
    outer.__cause__ = inner
    assert service_of(outer) == service_of(pickle.loads(pickle.dumps(inner))) == "s3://state"
    assert service_of(OSError(errno.ENOSPC, "No space left on device")) == "No space left on device"
    assert service_of(InvalidArgument("a mistake")) == service_of(None) == ""


def test_a_store_that_does_not_answer_at_the_first_start_is_no_mistake_of_the_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def place(_: Task) -> Any:
        raise Unreachable("s3://state: the store cannot be asked", "s3://state")

    monkeypatch.setattr(generation, "_planned", place)
    told: list[Any] = []
    run(Task("job_1", 1, EMPTY, 1, 10.0, None), StopRequest(), told.append)
    assert [(one.event, one.domain, one.outage) for one in told] == [(Event.LOST, "external", "s3://state")]
