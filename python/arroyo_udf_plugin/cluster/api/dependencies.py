"""What endpoints work with: the parts of the API's process, limits that all users share, pages of lists.

`Quotas` are the `limits` of the configuration.

Guarantees: a request beyond a limit is refused by its name, with 409, or with 429 if it may pass later, and has changed
nothing. Each limit, what is used of it, and how often it has refused something are metrics.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, NoReturn

import fastapi
from sqlalchemy.orm import Session

from ...errors import InvalidArgument
from ..configuration import LimitSettings, Settings
from ..database import pipelines
from ..database.database import Database
from ..database.models import STATES
from ..database.pipelines import Chosen, alone, ended_previews, totals
from ..functions.builder import Builder
from ..functions.children import ChildLimits
from ..functions.fair_queue import Busy, Lane
from ..monitoring.metrics import Families, Source
from ..records import Records
from ..security import CALLER, Security, configured, is_loopback, refusal_of
from ..states import State
from ..tokens import ANYONE, Caller, Logins
from .failures import Refusal
from .shapes.pipelines import SchedulerName
from .streams import Streams


@dataclass(frozen=True)
class ApiParts:
    """security: None: the embedding program checks requests itself. checkpoint_interval, preview_ttl: microseconds.

    wake: called after each new wish, for a controller in this process; it must not wait.
    checkpoints: where checkpoints of jobs are, if their pipelines do not say otherwise.
    retain, retain_for: which checkpoints of jobs are kept, as a `Task` has it.
    sources: metrics of this process, beside those from the database. roots: folders in which files of pipelines may
    be; None: anywhere. is_controlled: False: this process had a controller, and it has ended. logins: of browsers that
    were not made yet. scheduler: of pipelines that name none. flink_slices: of new jobs on Flink; None: there is no
    Flink.
    """

    database: Database
    builder: Builder
    records: Records
    security: Security | None = field(default_factory=Security)
    wake: Callable[[], None] = lambda: None
    checkpoint_interval: int = 10_000_000
    preview_ttl: int = 60_000_000
    checkpoints: str = ""
    retain: int | None = None
    retain_for: float = 0.0
    sources: Sequence[Source] = ()
    roots: Sequence[str] | None = None
    is_controlled: Callable[[], bool] = lambda: True
    limits: LimitSettings = LimitSettings()  # noqa: RUF009 (frozen)
    logins: Logins = field(default_factory=Logins)
    scheduler: SchedulerName = "local"
    flink_slices: int | None = None

    @cached_property
    def quotas(self) -> Quotas:
        return Quotas(self.limits, self.database, self.builder, self.streams)

    @cached_property
    def streams(self) -> Streams:
        return Streams(self.database, self.records)

    @classmethod
    def configured(
        cls, database: Database, settings: Settings, wake: Callable[[], None], sources: Sequence[Source] = ()
    ) -> ApiParts:
        """Raises InvalidArgument for an API that would be open to others."""
        api = settings.api
        security = configured(api, settings.data)
        roots = [str(root.absolute()) for root in settings.files.roots]
        if not roots and not is_loopback(api.bind_address):
            raise InvalidArgument(
                f"{api.bind_address} can be reached by others: set files.roots, the folders that pipelines may use"
            )
        return cls(
            database=database,
            builder=Builder(
                settings.functions, limits_of(settings.limits), roots=roots or None, artifacts=settings.artifacts
            ),
            limits=settings.limits,
            records=Records.configured(settings),
            security=security,
            wake=wake,
            checkpoint_interval=round(settings.pipeline.checkpoint_interval * 1e6),
            checkpoints=settings.checkpoints,
            retain=settings.pipeline.retained_checkpoints,
            retain_for=settings.pipeline.retained_time,
            sources=sources,
            roots=roots or None,
            scheduler="flink" if settings.controller.scheduler in ("flink", "kubernetes") else "local",
            flink_slices=settings.flink.slices if settings.knows_flink else None,
        )


def limits_of(limits: LimitSettings) -> ChildLimits:
    return ChildLimits(
        seconds=limits.build_time,
        plan_seconds=limits.plan_time,
        memory=limits.build_memory,
        builds=Lane(limits.builds, limits.queued),
        plans=Lane(limits.plans, limits.queued),
    )


def parts_of(request: fastapi.Request) -> ApiParts:
    parts: ApiParts = request.app.state.parts
    return parts


ThePart = Annotated[ApiParts, fastapi.Depends(parts_of)]


def _caller_of(request: fastapi.Request) -> Caller:
    caller: Caller = request.scope.get(CALLER, ANYONE)
    return caller


TheCaller = Annotated[Caller, fastapi.Depends(_caller_of)]
"""Who calls, as the layer before the API has found out."""


def for_admins(caller: TheCaller) -> None:
    """A dependency of endpoints that change what all pipelines share."""
    if not caller.may("admin"):
        raise Refusal(403, refusal_of(caller, "admin"))


_MOST = 1000

Limit = Annotated[int, fastapi.Query(ge=1, le=2**32 - 1, description=f"The number of items, at most {_MOST}.")]
After = Annotated[str | None, fastapi.Query(description="The id of the last item of the page before.", max_length=200)]


Labels = Annotated[
    list[str] | None, fastapi.Query(alias="label", description="name=value: a tag that the pipeline has. All must fit.")
]
States = Annotated[
    list[str] | None, fastapi.Query(alias="state", description="A state of its job. One of them must fit.")
]
_LABEL = re.compile(r"[A-Za-z0-9_./:-]{1,256}")


def chosen(labels: list[str] | None, states: list[str] | None) -> Chosen:
    """Raises Refusal."""
    tags: dict[str, str] = {}
    for label in labels or ():
        name, is_pair, value = label.partition("=")
        if not is_pair:
            raise Refusal(400, f"label: {label[:100]!r} is no label: write name=value")
        tags[name] = value
    return checked(tags, states or ())


def checked(tags: Mapping[str, str], states: Sequence[str]) -> Chosen:
    """Raises Refusal."""
    for name in tags:
        if not _LABEL.fullmatch(name):
            raise Refusal(400, f"{name[:100]!r} is no name of a label: it has letters, digits, and _ . / : - only")
    for state in states:
        if state not in STATES:
            raise Refusal(400, f"there is no state {state[:100]!r}: there are {', '.join(STATES)}")
    return Chosen(tags, states)


def most(limit: int) -> int:
    return min(limit, _MOST)


_LATER = 1.0
"""Seconds after which a client may try again."""


class Quotas:
    def __init__(self, limits: LimitSettings, database: Database, builder: Builder, streams: Streams) -> None:
        self.limits = limits
        self._database, self._builder, self._streams = database, builder, streams
        self._refused: Counter[str] = Counter()

    def check_new(self, session: Session, parallelism: int, is_preview: bool) -> list[str]:
        """In the transaction that adds a pipeline. Returns the jobs of old previews that had to go. Raises Refusal."""
        alone(session)
        now, limits = totals(session), self.limits
        if is_preview and now.previews >= limits.previews:
            self._refuse("previews", 429, f"{now.previews} previews run: wait for one to end, or stop one")
        if not is_preview and now.pipelines >= limits.pipelines:
            self._refuse("pipelines", 409, f"there are {now.pipelines:,} pipelines: delete one")
        self._check_parallelism(now.parallelism, parallelism)
        if not is_preview or now.kept < limits.previews_kept:
            return []
        old = ended_previews(session, now.kept - limits.previews_kept + 1)
        for pipeline_id, _ in old:
            pipelines.delete(session, pipeline_id)
        return [job_id for _, job_id in old]

    def check_change(self, session: Session, whole: pipelines.WholeJob, changes: Mapping[str, Any]) -> None:
        """In the transaction that changes the wish of a job, or starts it. Raises Refusal if more would run by that."""
        _, job, status = whole
        is_asked = job.stop == "none" and (status.state == State.STOPPED or job.restart_nonce != status.restart_nonce)
        runs = is_asked or not State(status.state).is_terminal
        before = job.parallelism if runs else 0
        after = changes.get("parallelism", job.parallelism) if runs or changes.get("stop") == "none" else 0
        if after > before:
            alone(session)
            self._check_parallelism(totals(session, without_job=job.id).parallelism, after)

    def _check_parallelism(self, now: int, more: int) -> None:
        if now + more > self.limits.parallelism:
            reason = f"jobs with a parallelism of {now:,} in all run, and this would add {more:,}"
            self._refuse("parallelism", 409, f"{reason}: stop some, or ask for less")

    def check_stream(self) -> None:
        """Raises Refusal."""
        if self._streams.open >= self.limits.streams:
            self._refuse("streams", 429, f"{self._streams.open:,} streams are open: close one")

    def refusal_of(self, busy: Busy) -> Refusal:
        self._refused[busy.what] += 1
        return Refusal(429, f"{busy} (limits.queued)", retry_after=_LATER)

    def _refuse(self, what: str, status: int, text: str) -> NoReturn:
        self._refused[what] += 1
        message = f"{text} (limits.{what} = {getattr(self.limits, what):,})"
        raise Refusal(status, message, retry_after=_LATER if status == 429 else None)

    def tell(self, families: Families) -> None:
        """Metrics."""
        with self._database.read() as session:
            now = totals(session)
        builds, plans = self._builder.turns
        for what, used in (
            ("pipelines", now.pipelines),
            ("parallelism", now.parallelism),
            ("previews", now.previews),
            ("previews_kept", now.kept - now.previews),
            ("streams", self._streams.open),
        ):
            families.add("arroyo_udf_limit", getattr(self.limits, what), what=what)
            families.add("arroyo_udf_used", used, what=what)
        for turns in (builds, plans):
            families.add("arroyo_udf_limit", 2 * getattr(self.limits, turns.what), what=turns.what)
            families.add("arroyo_udf_used", turns.running, what=turns.what)
            families.add("arroyo_udf_queued", turns.waiting, what=turns.what)
        for what in ("pipelines", "parallelism", "previews", "streams", builds.what, plans.what):
            families.add("arroyo_udf_refused_total", self._refused[what], what=what)
