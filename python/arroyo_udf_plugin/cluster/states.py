"""The life of a job: two tables.

    next_state(State.RUNNING, Event.STOP_CHECKPOINT)    State.CHECKPOINT_STOPPING
    next_state(State.FINISHED, Event.LOST)              None: this event means nothing in this state
    action(State.CHECKPOINT_STOPPING)                   Action.SAVE: what the scheduler is asked for in this state

What is to be done follows from the state and the wish alone, not from how the job came there; so whoever reads the
database knows it, and whatever one controller did not come to do, another one does.

Guarantees (a property test drives the tables against them): a generation starts only when nothing of an older one runs;
a job at its end runs nothing; every state that waits has a way out by `late`; a stop is never lost; Finished is left by
nothing, Stopped and Failed only by the user. What a generation tells has no meaning twice in a row.
Assumes: a generation ends with exactly one of the events finished, saved, cut off, lost, wrong; a stop of what does not
run answers with `lost`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator


class State(enum.StrEnum):
    CREATED = "Created"
    COMPILING = "Compiling"
    SCHEDULING = "Scheduling"
    RUNNING = "Running"
    RESCALING = "Rescaling"
    RESTARTING = "Restarting"
    RECOVERING = "Recovering"
    CHECKPOINT_STOPPING = "CheckpointStopping"
    STOPPING = "Stopping"
    STOPPED = "Stopped"
    FINISHING = "Finishing"
    FINISHED = "Finished"
    FAILING = "Failing"
    FAILED = "Failed"

    @property
    def is_terminal(self) -> bool:
        return self in _TERMINAL


_TERMINAL = (State.STOPPED, State.FINISHED, State.FAILED)
RUNS = (
    State.SCHEDULING,
    State.RUNNING,
    State.RESCALING,
    State.RESTARTING,
    State.CHECKPOINT_STOPPING,
    State.STOPPING,
)
"""States in which a generation may run."""
SETTLED = (State.RUNNING, *_TERMINAL)
"""States in which a job stays as long as nothing happens."""


class Event(enum.StrEnum):
    # what the user wants
    RUN = "run"
    STOP_CHECKPOINT = "stop checkpoint"
    STOP_GRACEFUL = "stop graceful"
    STOP_IMMEDIATE = "stop immediate"
    STOP_FORCE = "stop force"
    RESTART = "restart"
    RESTART_FORCE = "restart force"
    RESCALE = "rescale"
    EXPIRED = "expired"  # a preview's time is over
    # what has become of the last action
    READY = "ready"  # nothing of the job runs any more
    STARTED = "started"
    RESCALED = "rescaled"  # the generation goes on, with another parallelism
    RETRY = "retry"  # the back-off is over
    LATE = "late"  # the state has lasted too long
    # how a generation has ended
    FINISHED = "finished"  # all rows are in the sinks
    SAVED = "saved"  # stopped, with a checkpoint of everything
    CUT_OFF = "cut off"  # stopped, without one
    LOST = "lost"  # without a word, or by an error that may pass
    WRONG = "wrong"  # by an error that a new start would only repeat
    EXHAUSTED = "exhausted"  # lost, once too often
    # what a controller finds
    ORPHANED = "orphaned"  # nothing runs that should: whoever ran it is gone


class Action(enum.StrEnum):
    """What a scheduler is asked for."""

    CLEAR = "clear"  # kill what may still run; answers `ready`
    START = "start"  # a new generation, from the last checkpoint
    RESCALE = "rescale"  # change the parallelism in place, or save
    SAVE = "save"  # stop with a checkpoint of everything
    DRAIN = "drain"  # read no more, let the rows in flight end
    CANCEL = "cancel"  # give up the rows in flight
    KILL = "kill"


_TABLE = """
    Created             run                 Compiling
    Created             stop *              Stopped
    Created             expired             Stopped
    Created             restart *           Compiling

    Compiling           ready               Scheduling
    Compiling           stop *              Stopping
    Compiling           expired             Stopping
    Compiling           wrong               Failing
    Compiling           late                Compiling

    Scheduling          started             Running
    Scheduling          stop *              Stopping
    Scheduling          expired             Stopping
    Scheduling          restart *           Restarting
    Scheduling          finished            Finishing
    Scheduling          saved               Recovering
    Scheduling          cut off             Recovering
    Scheduling          lost                Recovering
    Scheduling          late                Recovering
    Scheduling          wrong               Failing
    Scheduling          exhausted           Failing
    Scheduling          orphaned            Compiling

    Running             stop checkpoint     CheckpointStopping
    Running             stop *              Stopping
    Running             expired             Stopping
    Running             rescale             Rescaling
    Running             restart *           Restarting
    Running             finished            Finishing
    Running             saved               Recovering
    Running             cut off             Recovering
    Running             lost                Recovering
    Running             wrong               Failing
    Running             exhausted           Failing
    Running             orphaned            Compiling

    Rescaling           rescaled            Running
    Rescaling           saved               Compiling
    Rescaling           cut off             Compiling
    Rescaling           finished            Finishing
    Rescaling           stop checkpoint     CheckpointStopping
    Rescaling           stop *              Stopping
    Rescaling           expired             Stopping
    Rescaling           restart force       Restarting
    Rescaling           lost                Recovering
    Rescaling           late                Recovering
    Rescaling           wrong               Failing
    Rescaling           exhausted           Failing
    Rescaling           orphaned            Compiling

    Restarting          saved               Compiling
    Restarting          cut off             Compiling
    Restarting          lost                Compiling
    Restarting          late                Compiling
    Restarting          finished            Finishing
    Restarting          stop checkpoint     CheckpointStopping
    Restarting          stop *              Stopping
    Restarting          expired             Stopping
    Restarting          wrong               Failing
    Restarting          orphaned            Compiling

    Recovering          retry               Compiling
    Recovering          restart *           Compiling
    Recovering          stop *              Stopping
    Recovering          expired             Stopping

    CheckpointStopping  saved               Stopped
    CheckpointStopping  cut off             Stopped
    CheckpointStopping  finished            Finishing
    CheckpointStopping  stop graceful       Stopping
    CheckpointStopping  stop immediate      Stopping
    CheckpointStopping  stop force          Stopping
    CheckpointStopping  expired             Stopping
    CheckpointStopping  lost                Stopped
    CheckpointStopping  late                Stopping
    CheckpointStopping  wrong               Failing
    CheckpointStopping  orphaned            Stopped

    Stopping            saved               Stopped
    Stopping            cut off             Stopped
    Stopping            lost                Stopped
    Stopping            finished            Finishing
    Stopping            late                Stopping
    Stopping            wrong               Failing
    Stopping            orphaned            Stopped

    Stopped             run                 Compiling
    Stopped             restart *           Compiling

    Finishing           ready               Finished
    Finishing           late                Finishing

    Failing             ready               Failed
    Failing             late                Failing

    Failed              restart *           Compiling
"""

_ACTIONS = {
    State.COMPILING: Action.CLEAR,
    State.SCHEDULING: Action.START,
    State.RESCALING: Action.RESCALE,
    State.RESTARTING: Action.SAVE,
    State.RECOVERING: Action.CLEAR,
    State.CHECKPOINT_STOPPING: Action.SAVE,
    State.STOPPING: Action.CANCEL,
    State.FINISHING: Action.CLEAR,
    State.FAILING: Action.CLEAR,
}
_STOPS = {"checkpoint": Action.SAVE, "graceful": Action.DRAIN, "immediate": Action.CANCEL, "force": Action.KILL}


def action(state: State, stop: str = "none", is_forced: bool = False, is_late: bool = False) -> Action | None:
    """stop: the user's. is_forced: a restart without a checkpoint was asked for. is_late: the state, or the one before,
    has lasted too long."""
    if state is State.STOPPING:
        return Action.KILL if is_late else _STOPS.get(stop, Action.CANCEL)
    if state is State.RESTARTING and is_forced:
        return Action.KILL
    return _ACTIONS.get(state)


def _events(pattern: str) -> Iterator[Event]:
    prefix = pattern.removesuffix(" *")
    return (event for event in Event if event == pattern or (pattern != prefix and event.startswith(prefix)))


def _read(table: str) -> dict[tuple[State, Event], State]:
    """The first line that fits an event counts. Raises ValueError for a line that never counts."""
    states: dict[tuple[State, Event], State] = {}
    for line in filter(str.strip, table.splitlines()):
        state, event, following = (line[start:end].strip() for start, end in _COLUMNS)
        new = [(State(state), member) for member in _events(event) if (State(state), member) not in states]
        if not new:
            raise ValueError(f"{state}, {event}: there is no such event, or it is in lines before this one")
        states |= dict.fromkeys(new, State(following))
    return states


_COLUMNS = ((4, 24), (24, 44), (44, None))
STEPS = _read(_TABLE)


def next_state(state: State, event: Event) -> State | None:
    """None: the event means nothing in this state."""
    return STEPS.get((state, event))


def table() -> Iterator[tuple[State, Event, State]]:
    """For people, in the order of the table."""
    for (state, event), following in STEPS.items():
        yield state, event, following


def actions() -> Iterator[tuple[str, str, Action]]:
    """For people: state, when, action."""
    for state, usual in _ACTIONS.items():
        if state is State.STOPPING:
            yield from ((state, f"stop {stop}", step) for stop, step in _STOPS.items())
            yield state, "any other", usual
            yield state, "for too long", Action.KILL
            continue
        if state is State.RESTARTING:
            yield state, "restart force", Action.KILL
        yield state, "", usual
