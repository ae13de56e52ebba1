"""A controller that is killed anywhere: before or after any statement, commit or word to the scheduler. The next one
brings every job to where its user wants it, without a wait for the limit of a state.

The scheduler of the simulation sees to it that no two generations of a job run at once, and that none starts twice.
EVERY=1 tries each place; otherwise each fourth, from another one on in each scenario.
"""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from simulations import Simulation

from arroyo_udf_plugin.cluster.states import Event, State

EVERY = int(os.environ.get("EVERY", "4"))

Scenario = Callable[[Simulation, str], None]


def stopped_and_started(simulation: Simulation, posted: str) -> None:
    """While it stops, it is to run again."""
    simulation.change(posted, stop="checkpoint")
    simulation.turn()
    simulation.change(posted, stop="none")
    simulation.turn()


def restarted_as_it_fails(simulation: Simulation, posted: str) -> None:
    simulation.end(posted, Event.WRONG)
    simulation.restart(posted, force=False)


def rescaled_in_place(simulation: Simulation, posted: str) -> None:
    simulation.world.rescales = True
    simulation.change(posted, parallelism=2)


def lost_as_it_stops(simulation: Simulation, posted: str) -> None:
    simulation.change(posted, stop="graceful")
    simulation.turn()
    simulation.end(posted, Event.LOST)


SCENARIOS: dict[str, tuple[Scenario, tuple[State, ...]]] = {
    "stopped": (lambda simulation, posted: simulation.change(posted, stop="checkpoint"), (State.STOPPED,)),
    "killed": (lambda simulation, posted: simulation.change(posted, stop="force"), (State.STOPPED,)),
    "stopped and started": (stopped_and_started, (State.RUNNING,)),
    "lost as it stops": (lost_as_it_stops, (State.STOPPED,)),
    "rescaled": (lambda simulation, posted: simulation.change(posted, parallelism=2), (State.RUNNING,)),
    "rescaled in place": (rescaled_in_place, (State.RUNNING,)),
    "restarted": (lambda simulation, posted: simulation.restart(posted, force=True), (State.RUNNING,)),
    "restarted as it fails": (restarted_as_it_fails, (State.RUNNING,)),
    "lost": (lambda simulation, posted: simulation.end(posted, Event.LOST), (State.RUNNING,)),
    # What a worker has told dies with the controller: then the job is started again, and would fail or finish again.
    "failed": (lambda simulation, posted: simulation.end(posted, Event.WRONG), (State.FAILED, State.RUNNING)),
    "finished": (lambda simulation, posted: simulation.end(posted, Event.FINISHED), (State.FINISHED, State.RUNNING)),
}


def run(simulation: Simulation, scenario: Scenario) -> str:
    """From a job's creation until everything is quiet. Returns the pipeline's id."""
    posted = simulation.post()
    simulation.settle(1)
    scenario(simulation, posted)
    simulation.settle(3)
    return posted


def check(simulation: Simulation, posted: str, allowed: tuple[State, ...], where: Any) -> None:
    whole = simulation.get(posted)
    runs = simulation.world.workers.get(whole.job.id)
    state = State(whole.status.state)
    assert state in allowed, (where, state)
    assert whole.job.fulfilled == whole.job.revision, where
    assert (runs is not None) == (state is State.RUNNING), (where, state)
    if runs is not None:
        assert (runs.mode, runs.generation) == ("running", whole.status.generation), where
        assert runs.owner is simulation.controllers[0]._schedulers.of("local"), where
        assert whole.status.settings["parallelism"] == whole.job.parallelism, where
        assert whole.status.restart_nonce == whole.job.restart_nonce, where


@pytest.mark.cluster
@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_controller_may_be_killed_anywhere(migrated: Path, name: str, is_done: bool) -> None:
    scenario, allowed = SCENARIOS[name]
    with contextlib.closing(Simulation(migrated)) as simulation:
        simulation.start()
        simulation.settle(1)
        before = simulation.faults.seen
        check(simulation, run(simulation, scenario), allowed, "undisturbed")
        places = simulation.faults.seen - before
        assert places > 30
        for place in range(list(SCENARIOS).index(name) % EVERY, places, EVERY):
            simulation.faults.plan(place, 1, is_done, is_kill=True)
            posted = run(simulation, scenario)
            simulation.faults.left = 0
            check(simulation, posted, allowed, place)
            simulation.change(posted, stop="force")
            simulation.settle(1)


@pytest.mark.parametrize("name", ["stopped and started", "restarted as it fails"])
def test_a_wish_outlives_the_leader_that_has_ended_the_job(migrated: Path, name: str) -> None:
    """It dies right after it has stored Stopped or Failed."""
    scenario, allowed = SCENARIOS[name]
    with contextlib.closing(Simulation(migrated)) as simulation:
        simulation.start()
        posted = simulation.post()
        simulation.settle(1)
        scenario(simulation, posted)
        for _ in range(100):
            if State(simulation.get(posted).status.state).is_terminal:
                break
            for job_id in list(simulation.world.workers):
                simulation.world.happen(job_id)
            one_act(simulation)
        assert State(simulation.get(posted).status.state).is_terminal
        simulation.crash(simulation.controllers[0])
        simulation.start()
        simulation.settle(1)
        check(simulation, posted, allowed, "after the crash")


def one_act(simulation: Simulation) -> None:
    """Of the controller, and no more."""
    made = simulation.controllers[0]
    for word in made._hear(0.0):
        made._take(word)
    act = made._work._next()
    if act is not None:
        act()
