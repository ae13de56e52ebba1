"""Jobs as resources of the Flink Kubernetes Operator.

One thread looks at all resources with our labels, once for all jobs, and does what is due for each (see `deployed.py`).
It looks only while there is a job to look after.

Guarantees: jobs go on when the controller ends, and the next one finds them by their labels. `ready` is told when none
of the job's resources up to that generation is there, nor may appear. The resource of a generation that has ended is
removed. While the API server is away, nothing is concluded.
Assumes: the operator removes a resource only when nothing of it runs, as it does with its finalizer.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from lightkube import Client

from ....errors import InvalidArgument
from ...configuration import KubernetesSettings
from ...states import Event
from ...task import NOTHING_RUNS, JobReport, Task, Tell
from ..flink.snapshots import newest_of
from ..interface import How
from .deployed import Deployed
from .observed import Observed
from .resources import KubernetesAway, Resources

LOOK_EVERY = 1.0
"""Seconds. The operator itself looks less often."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Removal:
    """Of a job's resources up to a generation. is_asked: by the controller. of: those that may still appear."""

    generation: int
    is_asked: bool
    of: Sequence[Deployed] = field(default=())


class KubernetesScheduler:
    """client: None: as the environment says, in a pod that of its service account. Raises InvalidArgument if the
    settings do not say what runs."""

    refused = 0

    def __init__(
        self,
        tell: Tell,
        settings: KubernetesSettings,
        client: Client | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if settings.mode == "application" and settings.image is None:
            raise InvalidArgument("set kubernetes.image to the image of Flink with this package: see deploy/flink")
        if settings.mode == "session" and settings.session is None:
            raise InvalidArgument("set kubernetes.session to the name of the FlinkDeployment that runs the jobs")
        self._tell, self._settings, self._clock = tell, settings, clock
        self._client = Client() if client is None else client
        self._resources = Resources(self._client, settings.namespace)
        self._lock = threading.Lock()
        self._deployed: dict[str, Deployed] = {}
        self._removals: dict[str, _Removal] = {}
        self._is_away = False
        self._failures: dict[str, str] = {}
        self._changed, self._is_closed = threading.Event(), False
        self._thread = threading.Thread(target=self._run, name="arroyo-udf-kubernetes", daemon=True)
        self._thread.start()

    # ---- Called by the controller ----

    def start(self, task: Task) -> None:
        self._follow(task, is_new=True)

    def stop(self, job_id: str, generation: int, how: How) -> None:
        with self._lock:
            deployed = self._deployed.get(job_id)
        if deployed is None or deployed.task.generation != generation:
            self._tell(JobReport(job_id, generation, Event.LOST, message=NOTHING_RUNS))
            return
        deployed.order(how)
        self._changed.set()

    def rescale(self, task: Task) -> None:
        self.stop(task.job_id, task.generation, "save")

    def clear(self, job_id: str, generation: int) -> None:
        self._remove(job_id, generation, is_asked=True)

    def take_over(self, task: Task) -> bool:
        """True: it is looked for; if it is not there, it is told to be orphaned."""
        with self._lock:
            deployed = self._deployed.get(task.job_id)
        if deployed is None or deployed.task.generation != task.generation:
            self._follow(task, is_new=False)
        return True

    def isolate(self, job_ids: Iterable[str]) -> None:
        """They are in pods."""

    def workers(self) -> Sequence[tuple[str, int]]:
        """None on this machine."""
        return ()

    def let_go(self) -> None:
        with self._lock:
            deployed, self._deployed, self._removals = self._deployed, {}, {}
        for one in deployed.values():
            one.mute()

    def close(self) -> None:
        """The jobs go on."""
        self._is_closed = True
        self._changed.set()
        self._thread.join()
        self._client.close()

    def _follow(self, task: Task, is_new: bool) -> None:
        deployed = Deployed(self._resources, self._settings, task, self._tell, is_new, self._clock)
        with self._lock:
            self._deployed[task.job_id] = deployed
        if is_new:
            _aside(deployed.prepare, self._changed.set)
        self._changed.set()

    def _remove(self, job_id: str, generation: int, is_asked: bool) -> None:
        with self._lock:
            before = self._removals.get(job_id, _Removal(0, False))
            of = [*before.of]
            deployed = self._deployed.get(job_id)
            if deployed is not None and deployed.task.generation <= generation:
                del self._deployed[job_id]
                deployed.mute()
                of.append(deployed)
            self._removals[job_id] = _Removal(max(before.generation, generation), before.is_asked or is_asked, of)
        self._changed.set()

    # ---- The thread ----

    def _run(self) -> None:
        while not self._is_closed:
            self._changed.clear()  # before the look: what comes meanwhile is looked at next
            try:
                has_jobs = self._look()
            except Exception:  # the others wait for it, too
                _log.exception("a bug")
                has_jobs = True
            self._changed.wait(LOOK_EVERY if has_jobs else None)

    def _look(self) -> bool:
        """Whether there is something to look after."""
        with self._lock:  # before the look: nothing is concluded from it for what is asked for meanwhile
            deployed, removals = dict(self._deployed), dict(self._removals)
        if deployed or removals:
            try:
                there = _by_job(self._resources.all())
            except KubernetesAway as error:
                self._note(error)
                return True
            self._note(None)
            for job_id, one in deployed.items():
                self._guarded(job_id, partial(self._turn, one, there.get(job_id, ())))
            for job_id, removal in removals.items():
                self._guarded(job_id, partial(self._clean, job_id, removal, there.get(job_id, ())))
        with self._lock:
            return bool(self._deployed or self._removals)

    def _turn(self, deployed: Deployed, there: Sequence[Observed]) -> None:
        end = deployed.turn(there)
        if end is None:
            return
        with self._lock:
            is_followed = self._deployed.get(end.job_id) is deployed
        if is_followed:
            self._remove(end.job_id, end.generation, is_asked=False)
            _aside(lambda: self._tell(_with_epoch(deployed.task, end)))

    def _clean(self, job_id: str, removal: _Removal, there: Sequence[Observed]) -> None:
        left = [seen for seen in there if seen.generation <= removal.generation]
        for seen in left:
            if not seen.is_going:
                self._resources.delete(seen)
        if left or any(deployed.may_appear for deployed in removal.of):
            return
        with self._lock:
            if self._removals.get(job_id) is not removal:
                return
            del self._removals[job_id]
        if removal.is_asked:
            self._tell(JobReport(job_id, removal.generation, Event.READY))

    def _guarded(self, job_id: str, act: Callable[[], None]) -> None:
        """What fails for one job holds no other back. The same text is logged once."""
        try:
            act()
            self._failures.pop(job_id, None)
        except KubernetesAway as error:
            if self._failures.get(job_id) != str(error):
                self._failures[job_id] = str(error)
                _log.warning("%s: %s", job_id, error)
        except Exception:
            _log.exception("%s: a bug", job_id)

    def _note(self, error: Exception | None) -> None:
        """Once when it begins, and once when it is over."""
        if (error is not None) is self._is_away:
            return
        self._is_away = error is not None
        if error is not None:
            _log.warning("the Kubernetes API cannot be asked, jobs there go on: %s", error)
        else:
            _log.info("the Kubernetes API answers again")


def _by_job(there: Iterable[Observed]) -> Mapping[str, Sequence[Observed]]:
    found: dict[str, list[Observed]] = {}
    for seen in there:
        found.setdefault(seen.job_id, []).append(seen)
    return found


def _with_epoch(task: Task, end: JobReport) -> JobReport:
    """With the number of the newest snapshot: no later generation may go on from an earlier one."""
    newest = None
    if task.place is not None:
        with contextlib.suppress(InvalidArgument):  # the next generation looks again
            newest = newest_of(task.place)
    return end if newest is None else replace(end, epoch=newest.number)


def _aside(*acts: Callable[[], None]) -> None:
    """In a thread of its own: what asks an object store may take its time."""

    def work() -> None:
        for act in acts:
            act()

    threading.Thread(target=work, daemon=True).start()
