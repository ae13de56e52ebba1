"""What the operator says of a resource, and which event that is.

    seen = Observed.of(resource)      None: it is nobody's, or not ours
    told_by(seen)                     Told(Event.LOST, "TaskManager ... "); None: nothing has happened

Guarantees: what is not as expected is no event. A stop counts as saved only with a savepoint of this generation: a job
that has ended by itself at that moment is suspended by the operator, too, and has status FINISHED as every suspended
one.
Assumes: the operator falls back to no other way of suspending (see `manifest.py`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...states import Event
from ..flink.failures import SEE_LOG, reason_of
from .manifest import GENERATION, JOB, KINDS, ResourceKind

_BROKEN = ("MISSING", "ERROR")
_FORGOTTEN = "Job Not Found"
"""The operator's error if a session cluster does not know the job any more."""
_ENDED = "in terminal state"
"""The operator's error if a job that is to be suspended has ended by itself."""


class Told(NamedTuple):
    event: Event
    message: str = ""
    details: str = ""
    domain: str = "internal"


@dataclass(frozen=True)
class Observed:
    """job_state: of Flink, as the operator has seen it last. cycle: the state of the resource. savepoint: where the
    operator has stopped it. cluster: of its JobManager. is_suspending: asked to. is_going: it is being deleted."""

    kind: ResourceKind
    name: str
    job_id: str
    generation: int
    job_state: str = ""
    cycle: str = ""
    savepoint: str = ""
    cluster: str = ""
    error: str = ""
    is_suspending: bool = False
    is_going: bool = False

    @classmethod
    def of(cls, resource: Mapping[str, Any]) -> Observed | None:
        kind = next((kind for kind in KINDS if kind.name == resource.get("kind")), None)
        name, job_id = _text(resource, "metadata", "name"), _text(resource, "metadata", "labels", JOB)
        generation = _text(resource, "metadata", "labels", GENERATION)
        if kind is None or not name or not job_id or not generation.isdecimal():
            return None
        return cls(
            kind,
            name,
            job_id,
            int(generation),
            _text(resource, "status", "jobStatus", "state"),
            _text(resource, "status", "lifecycleState"),
            _text(resource, "status", "jobStatus", "upgradeSavepointPath")
            or _text(resource, "status", "jobStatus", "savepointInfo", "lastSavepoint", "location"),
            _text(resource, "status", "jobManagerDeploymentStatus"),
            _text(resource, "status", "error"),
            _text(resource, "spec", "job", "state") == "suspended",
            bool(_text(resource, "metadata", "deletionTimestamp")),
        )


def told_by(seen: Observed) -> Told | None:
    if seen.job_state == "FAILED":
        return _failed(seen.error)
    is_suspended, has_finished = seen.cycle == "SUSPENDED", seen.job_state == "FINISHED"
    if is_suspended or has_finished:
        if seen.is_suspending and f"/flink/g{seen.generation:06}/savepoints/" in seen.savepoint:
            return Told(Event.SAVED)
        if has_finished and (is_suspended or not seen.is_suspending or _ENDED in seen.error):
            return Told(Event.FINISHED)
        return Told(Event.CUT_OFF) if is_suspended else None  # the operator has yet to see whether there is a savepoint
    if seen.cycle == "FAILED" or (seen.error and (seen.cluster in _BROKEN or _FORGOTTEN in seen.error)):
        return _failed(seen.error)
    return Told(Event.STARTED) if seen.job_state == "RUNNING" else None


def _failed(error: str) -> Told:
    stack = stack_in(error)
    reason = reason_of(stack)
    event, domain = (Event.WRONG, "user") if reason.is_wrong else (Event.LOST, "external")
    return Told(event, (reason.text if stack else SEE_LOG)[:500], stack, domain)


def stack_in(error: str) -> str:
    """The text of an error, which the operator writes as JSON: an exception and its causes."""
    try:
        document = json.loads(error)
    except ValueError:
        return error
    if not isinstance(document, dict):
        return error
    causes = document.get("throwableList")
    exceptions = [document, *(causes if isinstance(causes, list) else ())]
    lines = [": ".join(filter(None, (_text(one, "type"), _text(one, "message")))) for one in exceptions]
    first, *others = [line for line in lines if line] or [error]
    return "\n".join([first, *(f"Caused by: {line}" for line in others)])


def _text(document: object, *path: str) -> str:
    """What is there; "": there is no text."""
    for name in path:
        document = document.get(name) if isinstance(document, Mapping) else None
    return document if isinstance(document, str) else ""
