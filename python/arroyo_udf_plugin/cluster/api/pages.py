"""Pages of a list: how many, and after which."""

from __future__ import annotations

from typing import Annotated

import fastapi

_MOST = 1000

Limit = Annotated[int, fastapi.Query(ge=1, le=2**32 - 1, description=f"The number of items, at most {_MOST}.")]
After = Annotated[str | None, fastapi.Query(description="The id of the last item of the page before.", max_length=200)]


def most(limit: int) -> int:
    return min(limit, _MOST)
