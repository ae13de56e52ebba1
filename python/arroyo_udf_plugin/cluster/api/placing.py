"""On which scheduler a job runs, and its move from one to another.

Guarantees: what cannot run there is refused before it is stored. A job moves with the positions of its sources or not
at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ...errors import InvalidArgument
from ..configuration import MOST_SLICES
from ..crossing import positions_of
from ..database import places
from ..database.models import TERMINAL
from ..database.pipelines import WholeJob
from ..job_program import JobProgram
from .dependencies import ApiParts
from .failures import Refusal
from .shapes.pipelines import SchedulerName


class Placement(NamedTuple):
    """slices: of a job on Flink."""

    scheduler: str
    slices: int | None

    def check(self, program: JobProgram, variables: Mapping[str, Any] | None) -> None:
        """variables: of the pipeline. Raises Refusal: what Flink gets as arguments is in its logs."""
        if self.slices is None or not (names := [*(variables or {}), *program.variables]):
            return
        raise Refusal(
            400,
            f"{', '.join(names)}: a job on Flink gets no values of variables from here: set them in the environment of "
            "Flink's processes, and write ${NAME} into the query",
        )


def schedulers(parts: ApiParts) -> list[SchedulerName]:
    """Those of this cluster. The first is that of jobs that choose none."""
    known: list[SchedulerName] = ["local"] if parts.flink_slices is None else ["local", "flink"]
    return sorted(known, key=lambda name: name != parts.scheduler)


def placement(parts: ApiParts, asked: SchedulerName | None, parallelism: int) -> Placement:
    """Of a new job. asked: None: as it is configured. Raises Refusal."""
    scheduler = asked or parts.scheduler
    if scheduler == "local":
        return Placement(scheduler, None)
    if parts.flink_slices is None:
        raise Refusal(400, "scheduler: this cluster knows no Flink: set flink.url")
    if parallelism > MOST_SLICES:
        raise Refusal(400, f"parallelism: a job on Flink has {MOST_SLICES} slices at most")
    return Placement(scheduler, max(parts.flink_slices, parallelism))


def placement_of(whole: WholeJob) -> Placement:
    return Placement(whole.job.scheduler, whole.job.slices)


def check_change(whole: WholeJob, changes: Mapping[str, Any]) -> None:
    """Raises Refusal for what a job on Flink cannot have."""
    slices = whole.job.slices
    if slices is None:
        return
    placement_of(whole).check(whole.program, changes.get("env_vars"))
    if changes.get("parallelism", 1) > slices:
        raise Refusal(400, f"parallelism: this job on Flink has {slices} slices since its creation: ask for less")


def taken_along(whole: WholeJob, discards: bool) -> Mapping[str, Any] | None:
    """What a job that moves restores there; None: it begins anew. Raises Refusal."""
    job, status, place = whole.job, whole.status, places.state_of(whole.job)
    if status.state not in TERMINAL:
        raise Refusal(409, f"its job is {status.state}: stop it, and move it when it has stopped")
    if discards or place is None:
        return None
    if job.scheduler != "local":
        raise Refusal(400, "where the sources of a job on Flink are is known to Flink alone: send discard_state")
    sources = ["source", *whole.program.pipeline.get("sources", {})]
    try:
        return {"positions": positions_of(place, whole.pipeline.graph, sources, status.epoch)}
    except InvalidArgument as error:
        raise Refusal(400, f"the job cannot move: {error}") from None
