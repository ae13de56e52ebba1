"""The table of states, against what a user may rely on."""

import enum

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_udf_plugin.cli import main
from arroyo_udf_plugin.cluster.states import STEPS, Action, Event, State, next_step, table

ENDS = (Event.FINISHED, Event.SAVED, Event.CUT_OFF, Event.LOST, Event.WRONG)
WISHES = (
    Event.RUN,
    Event.STOP_CHECKPOINT,
    Event.STOP_GRACEFUL,
    Event.STOP_IMMEDIATE,
    Event.STOP_FORCE,
    Event.RESTART,
    Event.RESTART_FORCE,
    Event.RESCALE,
    Event.EXPIRED,
)
OPEN = [state for state in State if not state.is_terminal]


def test_the_table_has_a_row_for_each_of_the_states_of_arroyo() -> None:
    assert len(State) == 14
    assert {state for state, _, _, _ in table()} == set(State) - {State.FINISHED}


@pytest.mark.parametrize("state", State)
def test_only_the_user_leaves_a_terminal_state_and_nobody_leaves_finished(state: State) -> None:
    left = {event for event in Event if next_step(state, event) is not None}
    if state is State.FINISHED:
        assert not left
    elif state is State.STOPPED:
        assert left == {Event.RUN, Event.RESTART, Event.RESTART_FORCE}
    elif state is State.FAILED:
        assert left == {Event.RESTART, Event.RESTART_FORCE}


@pytest.mark.parametrize("state", [state for state in OPEN if state not in (State.CREATED, State.RUNNING)])
def test_no_state_waits_for_ever(state: State) -> None:
    """Stops that hang after a worker has died: checkpoint stops, rescaling, safe restarts."""
    step = next_step(state, Event.LATE)
    assert step is not None
    assert step.state is not state or step.action in (Action.KILL, Action.CLEAR)


@pytest.mark.parametrize("state", [state for state in OPEN if state not in (State.FINISHING, State.FAILING)])
def test_force_stops_from_every_state(state: State) -> None:
    """Arroyo's job loop panics on a forced stop while it stops with a checkpoint."""
    step = next_step(state, Event.STOP_FORCE)
    assert step in ((State.STOPPING, Action.KILL), (State.STOPPED, Action.NONE))
    assert next_step(State.STOPPING, Event.LOST) == (State.STOPPED, Action.NONE)


def test_restart_starts_a_stopped_and_a_failed_job_at_once() -> None:
    for state in (State.STOPPED, State.FAILED):
        assert next_step(state, Event.RESTART) == (State.COMPILING, Action.CLEAR)


def test_an_error_of_the_user_is_not_retried() -> None:
    for state in OPEN:
        step = next_step(state, Event.WRONG)
        assert step is None or step.state is State.FAILING


class Mode(enum.Enum):
    """What a generation does. The events with which it may answer."""

    STARTING = (Event.STARTED, Event.LOST, Event.WRONG, Event.EXHAUSTED)
    RUNNING = (Event.FINISHED, Event.LOST, Event.WRONG, Event.EXHAUSTED)
    SAVING = (Event.SAVED, Event.FINISHED, Event.LOST, Event.WRONG)
    DRAINING = (Event.SAVED, Event.CUT_OFF, Event.FINISHED, Event.LOST, Event.WRONG, Event.EXHAUSTED)
    CANCELLED = (Event.CUT_OFF, Event.FINISHED, Event.LOST)
    KILLED = (Event.LOST,)


class World:
    """A job with a worker that does what it may do."""

    def __init__(self) -> None:
        self.state = State.CREATED
        self.worker: Mode | None = None
        self.waiting: Event | None = None  # the answer that an action still owes

    def possible(self) -> list[Event]:
        """What may happen now, beside wishes."""
        found = [] if self.worker is None else list(self.worker.value)
        if self.state not in (State.CREATED, State.RUNNING) and not self.state.is_terminal:
            found.append(Event.LATE)
        if self.waiting is not None and (self.waiting is not Event.READY or self.worker is None):
            found.append(self.waiting)
        if self.worker is None and not self.state.is_terminal:
            found.append(Event.ORPHANED)
        return found

    def happen(self, event: Event) -> None:
        if event in (*ENDS, Event.EXHAUSTED) and event is not self.waiting:
            self.worker = None
        if event is Event.STARTED:
            self.worker = Mode.RUNNING
        if event is self.waiting:
            self.waiting = None
        step = next_step(self.state, event)
        if step is None:
            return
        if step.state is not self.state:
            self.waiting = None
        self.state = step.state
        self.act(step.action)
        assert not (self.state.is_terminal and self.worker is not None), "something runs for a job at its end"

    def act(self, action: Action) -> None:
        if action is Action.START:
            assert self.worker is None, "two generations run at once"
            self.worker = Mode.STARTING
        elif action is Action.CLEAR:
            self.worker, self.waiting = self.worker and Mode.KILLED, Event.READY
        elif action is Action.WAIT:
            self.worker, self.waiting = self.worker and Mode.KILLED, Event.RETRY
        elif action is not Action.NONE:
            if self.worker is None:
                self.waiting = Event.LOST
            elif self.worker is not Mode.KILLED:
                modes = {Action.SAVE: Mode.SAVING, Action.DRAIN: Mode.DRAINING, Action.CANCEL: Mode.CANCELLED}
                self.worker = modes.get(action, Mode.KILLED)


@settings(max_examples=500, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 1000)), max_size=60), st.sampled_from(WISHES[1:5]))
def test_whatever_happens_one_generation_runs_and_a_stop_ends_it(turns: list[tuple[bool, int]], stop: Event) -> None:
    world = World()
    for is_wish, number in turns:
        choices = list(WISHES) if is_wish else world.possible()
        if choices:
            world.happen(choices[number % len(choices)])
    for _ in range(20):  # the user wants it to stop, and what is asked for is done
        if world.state.is_terminal:
            break
        world.happen(stop)
        answers = [event for event in world.possible() if event is not Event.LATE]
        if answers:
            world.happen(answers[0])
    assert world.state.is_terminal
    assert world.worker is None


def test_each_pair_is_listed_once() -> None:
    assert len(list(table())) == len(STEPS) < len(State) * len(Event)


def test_the_command_prints_the_table() -> None:
    done = CliRunner().invoke(main, ["states"], catch_exceptions=False)
    assert "Running             stop checkpoint   CheckpointStopping  save\n" in done.output
