"""What endpoints work with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import fastapi

from ...errors import InvalidArgument
from ..configuration import Settings
from ..database.opened import Database
from ..functions.workshop import Workshop
from ..monitoring.families import Source
from ..security import Security, configured, is_loopback


@dataclass(frozen=True)
class Parts:
    """security: None: the embedding program checks requests itself. checkpoint_interval, preview_ttl: microseconds.

    wake: called after each new wish, for a controller in this process; it must not wait.
    checkpoints: where checkpoints of jobs are, if their pipelines do not say otherwise.
    sources: metrics of this process, beside those from the database. roots: folders in which files of pipelines may
    be; None: anywhere. is_controlled: False: this process had a controller, and it has ended.
    """

    database: Database
    workshop: Workshop
    security: Security | None = field(default_factory=Security)
    wake: Callable[[], None] = lambda: None
    checkpoint_interval: int = 10_000_000
    preview_ttl: int = 60_000_000
    checkpoints: str = ""
    sources: Sequence[Source] = ()
    roots: Sequence[str] | None = None
    is_controlled: Callable[[], bool] = lambda: True

    @classmethod
    def configured(
        cls, database: Database, settings: Settings, wake: Callable[[], None], sources: Sequence[Source] = ()
    ) -> Parts:
        """Raises InvalidArgument for an API that would be open to others."""
        api = settings.api
        security = configured(api)
        roots = [str(root.absolute()) for root in settings.files.roots]
        if not roots and not is_loopback(api.bind_address):
            raise InvalidArgument(
                f"{api.bind_address} can be reached by others: set files.roots, the folders that pipelines may use"
            )
        return cls(
            database=database,
            workshop=Workshop(settings.functions, roots=roots or None, artifacts=settings.artifacts),
            security=security,
            wake=wake,
            checkpoint_interval=round(settings.pipeline.checkpoint_interval * 1e6),
            checkpoints=settings.checkpoints,
            sources=sources,
            roots=roots or None,
        )


def parts_of(request: fastapi.Request) -> Parts:
    found: Parts = request.app.state.parts
    return found


ThePart = Annotated[Parts, fastapi.Depends(parts_of)]
