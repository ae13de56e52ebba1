"""What a controller knows of a job beside its rows in the database, and what is due for it.

    watched.hear(report)                    what its generation, or the scheduler, has told
    due = watched.due(whole, now)           the one event that changes its state; None: nothing is to change
    watched.enter(whole, now, deadline)     it has come into another state
    watched.to_ask(whole)                   what the scheduler is to be asked for now; None: it knows

Guarantees: `due` follows from the wish, the fact and what was told, not from what was done before: it may be asked
again at any time. What a generation has told is kept until a state is stored in which it means nothing more.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from ..database.pipelines import WholeJob
from ..states import Action, Event, State, action, next_state
from ..task import JobReport
from ..wishes import is_forced, wanted

_MOST_REPORTS = 100  # of a worker that repeats itself while the database is away


class Due(NamedTuple):
    event: Event
    report: JobReport | None = None


@dataclass
class Watched:
    """state, since: as this controller has seen it last. deadline: when it is over, and by which event. is_late: this
    state or the one before has lasted too long. asked: the scheduler, in this state. started: the generation that the
    scheduler has. cleared: nothing runs of this generation and older ones."""

    state: State
    since: float
    deadline: tuple[float, Event] | None = None
    is_late: bool = False
    asked: Action | None = None
    started: int = 0
    cleared: int = -1
    reports: deque[JobReport] = field(default_factory=lambda: deque(maxlen=_MOST_REPORTS))

    def hear(self, report: JobReport) -> None:
        """What has an event."""
        if report.event is Event.READY:
            self.cleared = max(self.cleared, report.generation)
        elif report not in self.reports:
            self.reports.append(report)

    def due(self, whole: WholeJob, now: float) -> Due | None:
        state, generation = State(whole.status.state), whole.status.generation
        while self.reports:
            report = self.reports[0]
            if report.generation == generation and report.event and next_state(state, report.event):
                return Due(report.event, report)
            self.reports.popleft()
        events: list[Event] = []
        if self.cleared >= generation:
            events.append(Event.READY)
        if self.state is state and self.deadline is not None and now >= self.deadline[0]:
            events.append(self.deadline[1])
        wish = wanted(whole.job, whole.status)
        if wish is not None:
            events.append(wish)
        event = next((candidate for candidate in events if next_state(state, candidate)), None)
        if event is Event.LATE:
            return Due(event, JobReport(whole.job.id, generation, event, message=f"{state} takes too long"))
        return None if event is None else Due(event)

    def enter(self, state: State, now: float, deadline: tuple[float, Event] | None, is_late: bool = False) -> None:
        self.state, self.since, self.deadline = state, now, deadline
        self.is_late, self.asked = is_late, None

    def to_ask(self, whole: WholeJob) -> Action | None:
        wish = action(self.state, whole.job.stop, is_forced(whole.job, whole.status), self.is_late)
        generation = whole.status.generation
        is_known = wish is self.asked
        is_known |= wish is Action.CLEAR and self.cleared >= generation
        is_known |= wish is Action.START and self.started >= generation
        return None if is_known else wish
