"""What endpoints work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

import fastapi

from ..database.opened import Database
from ..functions.workshop import Workshop
from ..security import Security


@dataclass(frozen=True)
class Parts:
    """security: None: whoever embeds the app checks requests by itself. checkpoint_interval, preview_ttl: microseconds.

    wake: called after each new wish, for a controller in this process; it must not wait.
    """

    database: Database
    workshop: Workshop
    security: Security | None = field(default_factory=Security)
    wake: Callable[[], None] = lambda: None
    checkpoint_interval: int = 10_000_000
    preview_ttl: int = 60_000_000


def parts_of(request: fastapi.Request) -> Parts:
    found: Parts = request.app.state.parts
    return found


ThePart = Annotated[Parts, fastapi.Depends(parts_of)]
