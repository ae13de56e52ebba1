"""The life of a job: one table, state x event -> state, action.

    next_step(State.RUNNING, Event.STOP_CHECKPOINT)     Step(State.CHECKPOINT_STOPPING, Action.SAVE)
    next_step(State.FINISHED, Event.LOST)               None: this event means nothing in this state

The controller stores the new state, then it acts; so whatever it does can be repeated by another controller.

Guarantees (a property test drives the table against them): a generation starts only when nothing of an older one runs;
a job at its end runs nothing; every state that waits has a way out by `late`; a stop is never lost; Finished is left by
nothing, Stopped and Failed only by the user.
Assumes: a generation ends with exactly one of the events finished, saved, cut off, lost, wrong; a stop of what does not
run answers with `lost`; `late` and `ready` belong to the state in which they were asked for.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import NamedTuple


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
    RETRY = "retry"  # the back-off is over
    LATE = "late"  # the state has lasted too long
    # how a generation has ended
    FINISHED = "finished"  # all rows are in the sinks
    SAVED = "saved"  # stopped, with a checkpoint of everything
    CUT_OFF = "cut off"  # stopped, without one
    LOST = "lost"  # without a word, or by an error that may pass
    WRONG = "wrong"  # by an error that a new start would only repeat
    EXHAUSTED = "exhausted"  # lost, once too often
    # what a new controller finds
    ORPHANED = "orphaned"  # nothing runs that should


class Action(enum.StrEnum):
    NONE = "-"
    CLEAR = "clear"  # kill what may still run; answers `ready`
    START = "start"  # a new generation, from the last checkpoint
    SAVE = "save"  # stop with a checkpoint of everything
    DRAIN = "drain"  # read no more, let the rows in flight end
    CANCEL = "cancel"  # give up the rows in flight
    KILL = "kill"
    WAIT = "wait"  # kill, and back off; answers `retry`


class Step(NamedTuple):
    state: State
    action: Action


_TABLE = """
    Created             run                 Compiling           clear
    Created             stop *              Stopped             -
    Created             expired             Stopped             -
    Created             restart *           Compiling           clear
    Created             orphaned            Compiling           clear

    Compiling           ready               Scheduling          start
    Compiling           stop *              Stopping            kill
    Compiling           expired             Stopping            kill
    Compiling           wrong               Failing             clear
    Compiling           late                Compiling           clear
    Compiling           orphaned            Compiling           clear

    Scheduling          started             Running             -
    Scheduling          stop force          Stopping            kill
    Scheduling          stop *              Stopping            cancel
    Scheduling          expired             Stopping            cancel
    Scheduling          restart *           Restarting          kill
    Scheduling          finished            Finishing           clear
    Scheduling          saved               Recovering          wait
    Scheduling          cut off             Recovering          wait
    Scheduling          lost                Recovering          wait
    Scheduling          late                Recovering          wait
    Scheduling          wrong               Failing             clear
    Scheduling          exhausted           Failing             clear
    Scheduling          orphaned            Compiling           clear

    Running             stop checkpoint     CheckpointStopping  save
    Running             stop graceful       Stopping            drain
    Running             stop immediate      Stopping            cancel
    Running             stop force          Stopping            kill
    Running             expired             Stopping            cancel
    Running             rescale             Rescaling           save
    Running             restart             Restarting          save
    Running             restart force       Restarting          kill
    Running             finished            Finishing           clear
    Running             saved               Recovering          wait
    Running             cut off             Recovering          wait
    Running             lost                Recovering          wait
    Running             wrong               Failing             clear
    Running             exhausted           Failing             clear
    Running             orphaned            Compiling           clear

    Rescaling           saved               Compiling           clear
    Rescaling           cut off             Compiling           clear
    Rescaling           finished            Finishing           clear
    Rescaling           stop checkpoint     CheckpointStopping  -
    Rescaling           stop graceful       Stopping            -
    Rescaling           stop immediate      Stopping            cancel
    Rescaling           stop force          Stopping            kill
    Rescaling           expired             Stopping            cancel
    Rescaling           restart force       Restarting          kill
    Rescaling           lost                Recovering          wait
    Rescaling           late                Recovering          wait
    Rescaling           wrong               Failing             clear
    Rescaling           exhausted           Failing             clear
    Rescaling           orphaned            Compiling           clear

    Restarting          saved               Compiling           clear
    Restarting          cut off             Compiling           clear
    Restarting          lost                Compiling           clear
    Restarting          late                Compiling           clear
    Restarting          finished            Finishing           clear
    Restarting          stop checkpoint     CheckpointStopping  -
    Restarting          stop graceful       Stopping            -
    Restarting          stop immediate      Stopping            cancel
    Restarting          stop force          Stopping            kill
    Restarting          expired             Stopping            cancel
    Restarting          restart force       Restarting          kill
    Restarting          wrong               Failing             clear
    Restarting          exhausted           Failing             clear
    Restarting          orphaned            Compiling           clear

    Recovering          retry               Compiling           clear
    Recovering          late                Compiling           clear
    Recovering          restart *           Compiling           clear
    Recovering          stop *              Stopping            kill
    Recovering          expired             Stopping            kill
    Recovering          exhausted           Failing             clear
    Recovering          orphaned            Compiling           clear

    CheckpointStopping  saved               Stopped             -
    CheckpointStopping  cut off             Stopped             -
    CheckpointStopping  finished            Finishing           clear
    CheckpointStopping  stop graceful       Stopping            -
    CheckpointStopping  stop immediate      Stopping            cancel
    CheckpointStopping  stop force          Stopping            kill
    CheckpointStopping  expired             Stopping            cancel
    CheckpointStopping  lost                Stopped             -
    CheckpointStopping  late                Stopping            kill
    CheckpointStopping  wrong               Failing             clear
    CheckpointStopping  exhausted           Stopped             -
    CheckpointStopping  orphaned            Stopped             -

    Stopping            saved               Stopped             -
    Stopping            cut off             Stopped             -
    Stopping            lost                Stopped             -
    Stopping            finished            Finishing           clear
    Stopping            stop immediate      Stopping            cancel
    Stopping            stop force          Stopping            kill
    Stopping            late                Stopping            kill
    Stopping            wrong               Failing             clear
    Stopping            exhausted           Stopped             -
    Stopping            orphaned            Stopped             -

    Stopped             run                 Compiling           clear
    Stopped             restart *           Compiling           clear

    Finishing           ready               Finished            -
    Finishing           late                Finishing           clear
    Finishing           orphaned            Finished            -

    Failing             ready               Failed              -
    Failing             late                Failing             clear
    Failing             orphaned            Failed              -

    Failed              restart *           Compiling           clear
"""


def _events(pattern: str) -> Iterator[Event]:
    prefix = pattern.removesuffix(" *")
    return (event for event in Event if event == pattern or (pattern != prefix and event.startswith(prefix)))


def _read(table: str) -> dict[tuple[State, Event], Step]:
    steps: dict[tuple[State, Event], Step] = {}
    for line in filter(str.strip, table.splitlines()):
        state, event, following, action = (line[start:end].strip() for start, end in _COLUMNS)
        for each in _events(event):
            steps.setdefault((State(state), each), Step(State(following), Action(action)))
    return steps


_COLUMNS = ((4, 24), (24, 44), (44, 64), (64, None))
STEPS = _read(_TABLE)


def next_step(state: State, event: Event) -> Step | None:
    """None: the event means nothing in this state."""
    return STEPS.get((state, event))


def table() -> Iterator[tuple[State, Event, State, Action]]:
    """For people, in the order of the table."""
    for (state, event), step in STEPS.items():
        yield state, event, *step
