"""The connectors that there are."""

from __future__ import annotations

import fastapi

from .catalog import KINDS
from .shapes.base import Listed
from .shapes.connections import Connector

router = fastapi.APIRouter(tags=["connectors"])
_TOLD = [kind.told() for kind in sorted(KINDS.values(), key=lambda kind: kind.name)]


@router.get("/connectors")
async def listed() -> Listed[Connector]:
    """By name; hidden ones, too."""
    return Listed(data=_TOLD)
