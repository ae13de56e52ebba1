"""What endpoints work with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

import fastapi

from ...errors import InvalidArgument
from ..configuration import LimitSettings, Settings
from ..database.opened import Database
from ..functions.children import Limits
from ..functions.turns import Lane
from ..functions.workshop import Workshop
from ..monitoring.families import Source
from ..records import Records
from ..security import CALLER, Security, configured, is_loopback, refusal_of
from ..tokens import ANYONE, Caller, Logins
from .failures import Refusal
from .quotas import Quotas
from .streams import Streams


@dataclass(frozen=True)
class Parts:
    """security: None: the embedding program checks requests itself. checkpoint_interval, preview_ttl: microseconds.

    wake: called after each new wish, for a controller in this process; it must not wait.
    checkpoints: where checkpoints of jobs are, if their pipelines do not say otherwise.
    sources: metrics of this process, beside those from the database. roots: folders in which files of pipelines may
    be; None: anywhere. is_controlled: False: this process had a controller, and it has ended. logins: of browsers that
    were not made yet.
    """

    database: Database
    workshop: Workshop
    records: Records
    security: Security | None = field(default_factory=Security)
    wake: Callable[[], None] = lambda: None
    checkpoint_interval: int = 10_000_000
    preview_ttl: int = 60_000_000
    checkpoints: str = ""
    sources: Sequence[Source] = ()
    roots: Sequence[str] | None = None
    is_controlled: Callable[[], bool] = lambda: True
    limits: LimitSettings = LimitSettings()  # noqa: RUF009 (frozen)
    logins: Logins = field(default_factory=Logins)

    @cached_property
    def quotas(self) -> Quotas:
        return Quotas(self.limits, self.database, self.workshop, self.streams)

    @cached_property
    def streams(self) -> Streams:
        return Streams(self.database, self.records)

    @classmethod
    def configured(
        cls, database: Database, settings: Settings, wake: Callable[[], None], sources: Sequence[Source] = ()
    ) -> Parts:
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
            workshop=Workshop(
                settings.functions, limits_of(settings.limits), roots=roots or None, artifacts=settings.artifacts
            ),
            limits=settings.limits,
            records=Records.configured(settings),
            security=security,
            wake=wake,
            checkpoint_interval=round(settings.pipeline.checkpoint_interval * 1e6),
            checkpoints=settings.checkpoints,
            sources=sources,
            roots=roots or None,
        )


def limits_of(limits: LimitSettings) -> Limits:
    return Limits(
        seconds=limits.build_time,
        plan_seconds=limits.plan_time,
        memory=limits.build_memory,
        builds=Lane(limits.builds, limits.queued),
        plans=Lane(limits.plans, limits.queued),
    )


def parts_of(request: fastapi.Request) -> Parts:
    found: Parts = request.app.state.parts
    return found


ThePart = Annotated[Parts, fastapi.Depends(parts_of)]


def _caller_of(request: fastapi.Request) -> Caller:
    found: Caller = request.scope.get(CALLER, ANYONE)
    return found


TheCaller = Annotated[Caller, fastapi.Depends(_caller_of)]
"""Who calls, as the layer before the API has found out."""


def for_admins(caller: TheCaller) -> None:
    """A dependency of endpoints that change what all pipelines share."""
    if not caller.may("admin"):
        raise Refusal(403, refusal_of(caller, "admin"))
