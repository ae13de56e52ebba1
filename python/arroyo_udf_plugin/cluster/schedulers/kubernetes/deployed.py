"""One generation of a job on Kubernetes, from its create, or from where another controller has left it, to its end.

    deployed.prepare()              what it goes on from is looked up; takes its time
    deployed.turn(there)            does what is due, given the job's resources; returns how it has ended, or None

Guarantees: what is due follows from what is there, so a call that was not answered is made again: a create under the
same name, which exists once. An older generation that appears, because its create was not answered, is deleted. Nothing
is concluded from what is absent as long as a create that was not answered may still take effect.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....errors import InvalidArgument, WrongCheckpoints, service_of
from ...configuration import KubernetesSettings
from ...states import Event
from ...task import JobReport, Task, Tell
from ..flink.snapshots import begin_of
from ..interface import How
from .manifest import manifest, name_of, suspended
from .observed import Observed, stack_in, told_by
from .resources import KubernetesAway, KubernetesRefused, Resources

LANDS_IN = 60.0
"""Seconds after which a create that was not answered has no effect any more: the API server gives it up."""


class Deployed:
    """is_new: it is to be created."""

    def __init__(
        self,
        resources: Resources,
        settings: KubernetesSettings,
        task: Task,
        tell: Tell,
        is_new: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.task = task
        self._resources, self._settings, self._is_new, self._clock = resources, settings, is_new, clock
        self._tell, self._is_muted = tell, False
        self._settled_at = clock() if is_new else clock() + LANDS_IN  # another controller may have created it just now
        self._order: How | None = None
        self._manifest: Mapping[str, Any] | None = None
        self._refused: JobReport | None = None
        self._is_known = self._has_started = False
        self._error = ""

    @property
    def may_appear(self) -> bool:
        """Although it is not there now."""
        return self._clock() < self._settled_at

    def order(self, how: How) -> None:
        """A softer stop does not replace a harder one."""
        if self._order not in ("cancel", "kill"):
            self._order = "cancel" if self.task.place is None else how

    def mute(self) -> None:
        """Nobody waits for what it says."""
        self._is_muted = True

    def say(self, report: JobReport) -> None:
        if not self._is_muted:
            self._tell(report)

    def prepare(self) -> None:
        try:
            self._manifest = manifest(self.task, self._settings, begin_of(self.task))
        except InvalidArgument as error:
            event = Event.WRONG if isinstance(error, WrongCheckpoints) else Event.LOST
            self._refused = self._report(event, message=str(error), domain="external", outage=service_of(error))

    def turn(self, there: Sequence[Observed]) -> JobReport | None:
        """there: the resources of the job. Raises KubernetesAway: the next turn does what is left."""
        for seen in there:
            if seen.generation < self.task.generation and not seen.is_going:
                self._resources.delete(seen)
        own = next((seen for seen in there if seen.generation == self.task.generation), None)
        if own is None:
            return self._absent()
        if not self._is_new:
            self._settled_at = self._clock()  # the other controller's create has had its effect
        self._is_known = True
        self._note(own.error)
        if own.is_going:
            return None
        if self._order in ("cancel", "kill"):
            self._resources.delete(own)
            return None
        told = told_by(own)
        if told is not None and told.event is not Event.STARTED:
            return self._report(told.event, message=told.message, details=told.details, domain=told.domain)
        if told is not None and not self._has_started:
            self._has_started = True
            self.say(self._report(Event.STARTED, tasks=self.task.parallelism))
        if self._order in ("save", "drain") and not own.is_suspending:
            self._resources.patch(own, suspended(is_drain=self._order == "drain"))
        return None

    def _absent(self) -> JobReport | None:
        is_cancelled = self._order in ("cancel", "kill")
        if self._is_known:
            if is_cancelled:
                return self._report(Event.CUT_OFF)
            return self._report(Event.LOST, message=f"its resource {self._name} was deleted by somebody else")
        if self._is_new and self._order is None:
            return self._refused or self._create()
        if self.may_appear:
            return None
        if self._is_new:
            return self._report(Event.CUT_OFF, message="stopped before its start")
        return self._report(Event.ORPHANED, message=f"there is no resource {self._name}")

    def _create(self) -> JobReport | None:
        if self._manifest is None:  # not prepared yet
            return None
        try:
            self._resources.create(self._manifest)
        except KubernetesRefused as error:
            event = Event.WRONG if error.is_invalid else Event.LOST
            return self._report(event, message=str(error), domain="external")
        except KubernetesAway:
            self._settled_at = self._clock() + LANDS_IN
            raise
        self._is_known = True
        return None

    def _note(self, error: str) -> None:
        """Of the operator, which goes on to try: the same text once."""
        if error and error != self._error:
            self.say(self._report(None, message="the Flink operator tells an error", details=stack_in(error)))
        self._error = error

    @property
    def _name(self) -> str:
        return name_of(self.task.job_id, self.task.generation)

    def _report(self, event: Event | None, **told: Any) -> JobReport:
        return JobReport(self.task.job_id, self.task.generation, event, **told)
