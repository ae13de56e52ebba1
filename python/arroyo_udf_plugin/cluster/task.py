"""What a scheduler is to run, a generation of a job, and what it hears of it.

    task = Task(job_id="job_1", generation=3, program=JobProgram(...), place=".../job_1/0", ...)

The job decides about checkpoints, parallelism and environment. `generation.py` runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from .job_program import JobProgram
from .states import Event

if TYPE_CHECKING:
    from .preview_rows import Shown
    from .reports import CheckpointReport, JobNumbers

OUTPUT = "output of the worker"
"""The message of a report whose details are that."""
LOCAL = "local"
"""The scheduler of the controller's machine, whichever that is."""
NOTHING_RUNS = "nothing of it runs"
"""The message of a scheduler that is to stop what it does not have."""


@dataclass(frozen=True)
class Task:
    """place: of its checkpoints; None: without. checkpoint_interval: in seconds. drain_time: of a stop. resume_at: an
    epoch of that place: it goes on from there or later, or not at all. restore: {"epoch" or "savepoint", "doubles"}, to
    go back to first; {"positions"}: where sources begin. retain, retain_for: how many checkpoints are kept, if the
    query does not say it, and for how many seconds all.
    libraries: the folder to which libraries of object stores are copied. trace_parent: W3C's, of the span of its start.
    slices: on Flink, into how many the job is cut, whatever its parallelism.
    """

    job_id: str
    generation: int
    program: JobProgram
    parallelism: int
    checkpoint_interval: float
    place: str | None
    environment: Mapping[str, str] = field(default_factory=dict)
    drain_time: float = 10.0
    libraries: str = ""
    trace_parent: str | None = None
    resume_at: int = 0
    restore: Mapping[str, Any] | None = None
    retain: int | None = None
    retain_for: float = 0.0
    slices: int | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"program": self.program.as_json()}

    @classmethod
    def of_json(cls, document: Mapping[str, Any]) -> Task:
        """Raises InvalidState for a program that this worker is too old for."""
        return cls(**_known(cls, document) | {"program": JobProgram.of_json(document["program"])})


@dataclass(frozen=True)
class JobReport:
    """What a generation tells, or a scheduler about it.

    event: None: it only goes on. tasks: with `started` and `rescaled`. parallelism: with `rescaled`. message, details,
    domain: why it has ended, with an error.
    outage: what does not answer, if it has ended by that. numbers: so far. checkpoint: the latest, once, and again with
    the last report. shown: batches of previews. epoch: the newest that is committed; 0: none. retained: those that one
    can go back to.
    """

    job_id: str
    generation: int
    event: Event | None = None
    tasks: int | None = None
    parallelism: int | None = None
    message: str = ""
    details: str = ""
    domain: str = "internal"
    outage: str = ""
    numbers: JobNumbers | None = None
    checkpoint: CheckpointReport | None = None
    shown: Sequence[Shown] = ()
    epoch: int = 0
    retained: Sequence[int] = ()

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def _known(kind: type[Any], document: Mapping[str, Any]) -> dict[str, Any]:
    """Without what another version of the program may have added."""
    return {member.name: document[member.name] for member in fields(kind) if member.name in document}


How = Literal["save", "drain", "cancel"]
"""Ways to stop: with a checkpoint of everything; after the rows in flight; at once."""


Tell = Callable[[JobReport], None]
