"""The controller, with a database that fails at any statement, crashes and take-overs.

Time passes, and workers act, when the test says so.
"""

import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from clusters import EMPTY
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from simulations import Runs, Simulation

from arroyo_udf_plugin.cluster.controller import controller
from arroyo_udf_plugin.cluster.database import history, pipelines
from arroyo_udf_plugin.cluster.database.database import LeaderLock
from arroyo_udf_plugin.cluster.database.models import JobRow, JobStatus
from arroyo_udf_plugin.cluster.states import Event, State
from arroyo_udf_plugin.cluster.wishes import settings as wish_of


@pytest.fixture
def simulate(migrated: Path) -> Iterator[Callable[..., Simulation]]:
    with contextlib.ExitStack() as stack:
        yield lambda **limits: stack.enter_context(contextlib.closing(Simulation(migrated, **limits)))


def outcome(simulation: Simulation, pipeline_id: str) -> tuple[Any, ...]:
    whole = simulation.get(pipeline_id)
    status = whole.status
    with simulation.database.read() as session:
        logged = [row.message for row in history.logged(session, whole.job.id, 100).rows]
    is_fulfilled = whole.job.fulfilled == whole.job.revision
    return status.state, status.generation, status.restarts, status.failure_message, is_fulfilled, logged


SCENARIOS: dict[str, Callable[[Simulation, str], None]] = {
    "stop": lambda simulation, posted: simulation.change(posted, stop="checkpoint"),
    "rescale": lambda simulation, posted: simulation.change(posted, parallelism=2),
    "lost": lambda simulation, posted: simulation.end(posted, Event.LOST),
    "wrong": lambda simulation, posted: simulation.end(posted, Event.WRONG),
}


@pytest.mark.cluster
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("is_done", [False, True], ids=["not done", "not answered"])
def test_each_statement_may_fail_and_nothing_is_lost(
    simulate: Callable[..., Simulation], scenario: str, is_done: bool
) -> None:
    """From the start of the job, without a wait for the limit of a state. allowed_restarts: a report that counted twice
    would end the job."""
    simulation = simulate(allowed_restarts=1)
    simulation.start()
    simulation.turn()

    def run(after: int | None) -> tuple[Any, ...]:
        if after is not None:
            simulation.faults.plan(after, 1, is_done)
        posted = simulation.post()
        simulation.settle(2)
        SCENARIOS[scenario](simulation, posted)
        simulation.settle(2)
        found = outcome(simulation, posted)
        simulation.faults.left = 0
        simulation.change(posted, stop="force")
        simulation.settle(1)
        return found

    expected = run(None)
    before = simulation.faults.statements
    assert run(None) == expected
    for after in range(simulation.faults.statements - before):
        assert run(after) == expected, after


def test_one_timer_waits_for_a_database_that_is_away(simulate: Callable[..., Simulation]) -> None:
    simulation = simulate()
    started = simulation.start()
    for _ in range(3):
        simulation.end(simulation.post(), Event.LOST)
    simulation.settle(2)
    simulation.faults.plan(0, 1_000_000, False)
    for _ in range(100):
        simulation.world.report_all()
        simulation.turn()
        before = simulation.faults.statements
        simulation.turn()
        assert simulation.faults.statements == before  # nobody asks before the second is over
        simulation.now += 1.0
    assert len(started._timers._heap) < 10
    assert len(started._work._waiting) < 10
    simulation.faults.is_off = True
    simulation.settle(2)
    assert {runs.mode for runs in simulation.world.workers.values()} == {"running"}


def test_leading_and_tidying_go_on_whatever_happens(
    simulate: Callable[..., Simulation], monkeypatch: pytest.MonkeyPatch
) -> None:
    simulation = simulate()
    hold, tidied = LeaderLock.hold, list[int]()

    def failing(lock: LeaderLock) -> bool:
        if simulation.now < 3:
            raise OSError("no space left on the device")
        return hold(lock)

    def tidy(*_: Any) -> None:
        tidied.append(1)
        raise OSError("no space left on the device")

    monkeypatch.setattr(LeaderLock, "hold", failing)
    monkeypatch.setattr(controller, "tidy_rows", tidy)
    made = simulation.start()
    simulation.settle(2)
    assert not made.leads
    simulation.settle(200)
    assert made.leads
    assert len(tidied) == 3


@pytest.mark.parametrize("method", ["take_over", "clear", "start"])
def test_a_scheduler_that_fails_is_asked_again(
    simulate: Callable[..., Simulation], monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    simulation = simulate()
    posted = simulation.post()
    simulation.start()
    simulation.settle(2)
    simulation.crash(simulation.controllers[0])
    made = simulation.start()
    if method != "take_over":
        simulation.restart(posted, force=True)
    asked, do = list[int](), getattr(made._schedulers.of("local"), method)

    def failing(*how: Any) -> Any:
        asked.append(1)
        if len(asked) == 1:
            raise RuntimeError("can't start new thread")
        return do(*how)

    monkeypatch.setattr(made._schedulers.of("local"), method, failing)
    simulation.settle(8)
    whole = simulation.get(posted)
    assert len(asked) > 1
    assert (whole.status.state, whole.status.restart_nonce) == (State.RUNNING, whole.job.restart_nonce)
    assert simulation.world.workers[whole.job.id].owner is made._schedulers.of("local")


def test_a_job_that_cannot_be_read_holds_no_other_back(simulate: Callable[..., Simulation]) -> None:
    simulation = simulate()
    jobs = [simulation.get(simulation.post()).job.id for _ in range(3)]
    simulation.start()
    simulation.settle(2)
    simulation.crash(simulation.controllers[0])
    with simulation.database.engine.begin() as connection:
        connection.exec_driver_sql("""UPDATE jobs SET env_vars = '{"A": "no token"}' WHERE serial = 2""")
    simulation.start()
    simulation.settle(2)
    assert [simulation.world.workers[job].owner is None for job in jobs] == [False, True, False]


def test_a_thousand_jobs_are_taken_over_by_a_few_statements(simulate: Callable[..., Simulation]) -> None:
    """And a wake-up reads only what has changed."""
    simulation = simulate()
    with simulation.database.begin() as session:
        given: dict[str, Any] = {"query": "", "program": EMPTY, "graph": {}, "checkpoint_interval_micros": 1_000_000}
        made = [pipelines.create(session, name="p", **given) for _ in range(1000)]
        session.execute(sqlalchemy.update(JobRow).values(fulfilled=JobRow.revision))
        facts = {"state": "Running", "generation": 1, "settings": wish_of(made[0].job)}
        session.execute(sqlalchemy.update(JobStatus).values(facts))
    for whole in made:
        simulation.world.workers[whole.job.id] = Runs(1, None, "running")
    simulation.start()
    simulation.turn()
    assert all(runs.owner is not None for runs in simulation.world.workers.values())
    assert simulation.faults.statements < 60
    simulation.settle(1)
    before = simulation.faults.statements
    simulation.change(made[7].pipeline.id, stop="immediate")
    simulation.turn()
    assert simulation.world.workers[made[7].job.id].mode == "cancelled"
    assert simulation.faults.statements - before < 40


EXAMPLES = 20 * int(os.environ.get("KILLS", "5"))
STOPS = ("checkpoint", "graceful", "immediate", "force")
ENDS = (None, None, Event.LOST, Event.FINISHED, Event.WRONG)
TURNS = st.one_of(
    st.tuples(st.just("turn")),
    st.tuples(st.just("turn")),
    st.tuples(st.just("worker"), st.integers(0, 1), st.sampled_from(ENDS)),
    st.tuples(st.just("fail"), st.integers(0, 12), st.integers(1, 3), st.booleans()),
    st.tuples(st.just("fail"), st.integers(0, 12), st.integers(1, 3), st.booleans()),
    st.tuples(st.just("time"), st.sampled_from([0.5, 1.0, 5.0, 130.0])),
    st.tuples(st.just("stop"), st.integers(0, 1), st.sampled_from(STOPS)),
    st.tuples(st.just("run"), st.integers(0, 1)),
    st.tuples(st.just("restart"), st.integers(0, 1), st.booleans()),
    st.tuples(st.just("rescale"), st.integers(0, 1), st.integers(1, 3)),
    st.tuples(st.just("crash"), st.integers(0, 1)),
    st.tuples(st.just("unlock"), st.integers(0, 1)),
)


def do(simulation: Simulation, posted: list[str], what: str, *how: Any) -> None:
    if what == "turn":
        simulation.turn()
    elif what == "worker":
        simulation.end(posted[how[0]], how[1])
    elif what == "fail":
        simulation.faults.plan(*how)
    elif what == "time":
        simulation.now += how[0]
    elif what == "stop":
        simulation.change(posted[how[0]], stop=how[1])
    elif what == "run":
        simulation.change(posted[how[0]], stop="none")
    elif what == "restart":
        simulation.restart(posted[how[0]], force=how[1])
    elif what == "rescale":
        simulation.change(posted[how[0]], parallelism=how[1])
    elif what == "crash":
        simulation.crash(simulation.controllers[how[0]])
        simulation.start()
    elif what == "unlock":  # as PostgreSQL does with a connection that is lost
        simulation.controllers[how[0]]._lock.release()


@pytest.mark.cluster
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(st.lists(TURNS, max_size=50), st.booleans())
def test_whatever_fails_every_wish_comes_true(
    migrated: Path, caplog: pytest.LogCaptureFixture, turns: list[tuple[Any, ...]], rescales: bool
) -> None:
    """Without a wait for the limit of a state: no action is lost. The scheduler of the simulation sees to it that no
    two generations run at once, and that none is started twice."""
    caplog.clear()
    with contextlib.closing(Simulation(migrated)) as simulation:
        simulation.world.rescales = rescales
        simulation.start()
        simulation.start()
        posted = [simulation.post() for _ in range(2)]
        for one in turns:
            do(simulation, posted, *one)
        simulation.faults.is_off = True
        simulation.settle(8)
        for pipeline_id in posted:
            whole = simulation.get(pipeline_id)
            state, runs = State(whole.status.state), simulation.world.workers.get(whole.job.id)
            assert whole.job.fulfilled == whole.job.revision
            if runs is not None:
                assert (state, runs.mode, runs.generation) == (State.RUNNING, "running", whole.status.generation)
                assert whole.job.stop == "none"
                assert whole.status.settings["parallelism"] == whole.job.parallelism
                assert whole.status.restart_nonce == whole.job.restart_nonce
            else:
                ended = [State.FAILED, State.FINISHED]
                assert state in [*ended, State.STOPPED] if whole.job.stop != "none" else state in ended
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
