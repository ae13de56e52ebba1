"""Stops: of a job, whose last checkpoint may fail, and of a cluster, in which some may hang."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters import EMPTY
from simulations import Simulation

from arroyo_udf_plugin.cluster.api.responses import job_of
from arroyo_udf_plugin.cluster.database import history
from arroyo_udf_plugin.cluster.schedulers import embedded
from arroyo_udf_plugin.cluster.states import Event
from arroyo_udf_plugin.cluster.task import Task
from arroyo_udf_plugin.engine.execution.stopping import StopRequest


@pytest.fixture
def simulation(migrated: Path) -> Iterator[Simulation]:
    with contextlib.closing(Simulation(migrated)) as made:
        made.start()
        yield made


def told(simulation: Simulation, posted: str) -> tuple[str, str | None, list[str]]:
    """The state, the reason that the API tells, and the errors in the log."""
    with simulation.database.read() as session:
        whole = simulation.get(posted)
        job = job_of(posted, whole.job, whole.status)
        errors = [row.message for row in history.logged(session, whole.job.id, 9, levels=("error",)).rows]
    return job.state, job.failure_reason and job.failure_reason.error, errors


def late(simulation: Simulation, posted: str) -> None:
    simulation.now += 61.0
    simulation.turn()


ENDS: dict[str, tuple[Callable[[Simulation, str], None], str]] = {
    "lost": (lambda simulation, posted: simulation.end(posted, Event.LOST), "it ended"),
    "cut off": (lambda simulation, posted: simulation.end(posted, Event.CUT_OFF), "it ended"),
    "late": (late, "CheckpointStopping takes too long"),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_stop_without_its_last_checkpoint_is_told(simulation: Simulation, end: str) -> None:
    act, why = ENDS[end]
    posted = simulation.post()
    simulation.settle(1)
    simulation.change(posted, stop="checkpoint")
    simulation.turn()
    act(simulation, posted)
    simulation.settle(2)
    reason = f"stopped without a last checkpoint, so it goes on from the one before: {why}"
    assert told(simulation, posted) == ("Stopped", reason, [reason])
    simulation.change(posted, stop="none")
    simulation.settle(2)
    assert told(simulation, posted)[:2] == ("Running", None)


@pytest.mark.parametrize("stop", ["checkpoint", "graceful", "immediate", "force"])
def test_a_stop_as_it_was_asked_for_has_nothing_to_tell(simulation: Simulation, stop: str) -> None:
    posted = simulation.post()
    simulation.settle(1)
    simulation.change(posted, stop=stop)
    simulation.settle(2)
    assert told(simulation, posted) == ("Stopped", None, [])


def test_a_wish_is_seen_although_nobody_wakes_the_controller(simulation: Simulation) -> None:
    """As if the connection that listens to the database were half open."""
    (made,) = simulation.controllers
    posted = simulation.post()
    simulation.settle(1)
    simulation.change(posted, stop="immediate")
    for _ in range(3):
        made.turn()
        made.turn()
        for job_id in list(simulation.world.workers):
            simulation.world.happen(job_id)
        simulation.now += 5.0
    made.turn()
    assert simulation.get(posted).status.state == "Stopped"


def test_a_cluster_waits_for_all_its_jobs_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that hang use up one patience together."""
    now, waited = [0.0], list[float]()

    class Hanging(threading.Thread):
        def join(self, timeout: float | None = None) -> None:
            assert timeout is not None
            now[0] += timeout
            waited.append(timeout)

    monkeypatch.setattr(embedded.time, "monotonic", lambda: now[0])
    scheduler = embedded.EmbeddedScheduler(lambda report: None)
    for number in range(5):
        task: Any = Task(f"job_{number}", 1, EMPTY, 1, 10.0, None, drain_time=10.0)
        scheduler._running[task.job_id] = embedded._Running(task, StopRequest(), Hanging())
    scheduler.close()
    assert sum(waited) == 10.0 + embedded._GIVE_UP
