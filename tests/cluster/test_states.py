"""The table of states, against what a user may rely on."""

import enum

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_udf_plugin.cli import main
from arroyo_udf_plugin.cluster import states
from arroyo_udf_plugin.cluster.states import STEPS, Action, Event, State, action, actions, next_state, table

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
    assert {state for state, _, _ in table()} == set(State) - {State.FINISHED}


@pytest.mark.parametrize("state", State)
def test_only_the_user_leaves_a_terminal_state_and_nobody_leaves_finished(state: State) -> None:
    left = {event for event in Event if next_state(state, event) is not None}
    if state is State.FINISHED:
        assert not left
    elif state is State.STOPPED:
        assert left == {Event.RUN, Event.RESTART, Event.RESTART_FORCE}
    elif state is State.FAILED:
        assert left == {Event.RESTART, Event.RESTART_FORCE}


@pytest.mark.parametrize("state", [state for state in OPEN if state not in (State.CREATED, State.RUNNING)])
def test_no_state_waits_for_ever(state: State) -> None:
    """Stops that hang after a worker has died: checkpoint stops, rescaling, safe restarts."""
    if state is State.RECOVERING:
        assert next_state(state, Event.RETRY) is State.COMPILING
        return
    following = next_state(state, Event.LATE)
    assert following is not None
    assert following is not state or action(state, is_late=True) in (Action.KILL, Action.CLEAR)


@pytest.mark.parametrize("state", [state for state in OPEN if state not in (State.FINISHING, State.FAILING)])
def test_force_stops_from_every_state(state: State) -> None:
    """Arroyo's job loop panics on a forced stop while it stops with a checkpoint."""
    assert state is State.STOPPING or next_state(state, Event.STOP_FORCE) in (State.STOPPING, State.STOPPED)
    assert action(State.STOPPING, "force") is Action.KILL
    assert next_state(State.STOPPING, Event.LOST) is State.STOPPED


def test_restart_starts_a_stopped_and_a_failed_job_at_once() -> None:
    for state in (State.STOPPED, State.FAILED):
        assert next_state(state, Event.RESTART) is State.COMPILING


def test_an_error_of_the_user_is_not_retried() -> None:
    for state in OPEN:
        assert next_state(state, Event.WRONG) in (None, State.FAILING)


@pytest.mark.parametrize("event", [*ENDS, Event.STARTED, Event.RESCALED, Event.ORPHANED])
def test_what_a_generation_tells_counts_once(event: Event) -> None:
    """A step whose commit was not answered is looked at again with the same report."""
    for state in State:
        following = next_state(state, event)
        assert following is None or next_state(following, event) is None


def test_no_wish_leads_to_the_state_that_it_is_in() -> None:
    """It would be followed without an end."""
    assert not [(state, event) for (state, event), following in STEPS.items() if event in WISHES and following is state]


class Mode(enum.Enum):
    """What a generation does. The events with which it may answer."""

    STARTING = (Event.STARTED, Event.LOST, Event.WRONG, Event.EXHAUSTED)
    RUNNING = (Event.FINISHED, Event.LOST, Event.WRONG, Event.EXHAUSTED)
    RESCALING = (Event.RESCALED, Event.SAVED, Event.FINISHED, Event.LOST, Event.WRONG)
    SAVING = (Event.SAVED, Event.FINISHED, Event.LOST, Event.WRONG)
    DRAINING = (Event.SAVED, Event.CUT_OFF, Event.FINISHED, Event.LOST, Event.WRONG, Event.EXHAUSTED)
    CANCELLED = (Event.CUT_OFF, Event.FINISHED, Event.LOST)
    KILLED = (Event.LOST,)


class World:
    """A job with a worker that does what it may do."""

    def __init__(self) -> None:
        self.state, self.stop, self.is_late = State.CREATED, "none", False
        self.worker: Mode | None = None

    def possible(self) -> list[Event]:
        """What may happen now, beside wishes."""
        found = [] if self.worker is None else list(self.worker.value)
        if self.state not in (State.CREATED, State.RUNNING, State.RECOVERING) and not self.state.is_terminal:
            found.append(Event.LATE)
        if self.state is State.RECOVERING:
            found.append(Event.RETRY)
        if self.worker is None:
            found += [Event.READY, Event.ORPHANED, Event.LOST]
        return found

    def happen(self, event: Event) -> None:
        if event in (*ENDS, Event.EXHAUSTED):
            self.worker = None
        if event in (Event.STARTED, Event.RESCALED):
            self.worker = Mode.RUNNING
        if event in WISHES:
            self.stop = event.removeprefix("stop ") if event.startswith("stop ") else "none"
        following = next_state(self.state, event)
        if following is not None:
            is_start = following is State.SCHEDULING
            assert not (is_start and self.worker is not None), "two generations run at once"
            self.state, self.is_late = following, event is Event.LATE
            if is_start:
                self.worker = Mode.STARTING
        self.ask()
        assert not (self.state.is_terminal and self.worker is not None), "something runs for a job at its end"

    def ask(self) -> None:
        """Again and again: nothing changes by that."""
        asked = action(self.state, self.stop, is_late=self.is_late)
        if asked in (None, Action.START) or self.worker in (None, Mode.KILLED):
            return
        modes = {
            Action.RESCALE: Mode.RESCALING,
            Action.SAVE: Mode.SAVING,
            Action.DRAIN: Mode.DRAINING,
            Action.CANCEL: Mode.CANCELLED,
        }
        self.worker = modes.get(asked, Mode.KILLED)


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
        answers = [each for each in world.possible() if each is not Event.LATE and next_state(world.state, each)]
        if answers:
            world.happen(answers[0])
    assert world.state.is_terminal
    assert world.worker is None


def test_a_line_of_the_table_that_never_counts_is_refused() -> None:
    first = next(filter(str.strip, states._TABLE.splitlines()))
    assert states._read(first)
    for line in (first, first.replace(next(iter(table()))[1], "no such event")):
        with pytest.raises(ValueError, match="it is in lines before this one"):
            states._read(f"{first}\n{line}")


def test_the_command_prints_the_table() -> None:
    done = CliRunner().invoke(main, ["states"], catch_exceptions=False)
    assert "Running             stop checkpoint   CheckpointStopping\n" in done.output
    assert "Stopping            stop force        kill\n" in done.output


def test_each_state_in_which_something_is_to_be_done_is_listed() -> None:
    assert {state for state, _, _ in actions()} == {str(state) for state in State if action(state) is not None}
