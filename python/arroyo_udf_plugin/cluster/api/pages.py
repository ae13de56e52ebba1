"""Pages of a list: how many, and after which; and which pipelines are meant."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated

import fastapi

from ..database.models import STATES
from ..database.pipelines import Chosen
from .failures import Refusal

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
