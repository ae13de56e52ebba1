"""Functions are stored before something refers to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from ... import failpoints
from ...errors import InvalidArgument
from ..database import artifacts
from ..functions.workshop import BuiltFunction
from .failures import Refusal
from .parts import Parts

Result = TypeVar("Result")
_TRIES = 5
"""Each fails only if somebody has just deleted the last pipeline with one of the functions."""


async def with_stored(
    parts: Parts, functions: Sequence[BuiltFunction], write: Callable[[Session, Mapping[str, str]], Result]
) -> Result:
    """What `write` returns. It gets a transaction, in which nobody removes the functions, and what programs call their
    libraries, by their paths. Raises Refusal for a store that does not answer."""

    def work() -> Result:
        for _ in range(_TRIES - 1):
            try:
                return tried()
            except artifacts.Released:
                continue
        return tried()

    def tried() -> Result:
        places = _reserved(parts, functions)
        try:
            names = {one.library: parts.workshop.store(one, places[one.sha256]) for one in functions}
        except InvalidArgument as error:
            raise Refusal(503, f"the functions cannot be stored: {error}") from None
        failpoints.reached("stored")
        with parts.database.begin() as session:
            artifacts.hold(session, places)
            return write(session, names)

    return await run_in_threadpool(work)


def _reserved(parts: Parts, functions: Sequence[BuiltFunction]) -> dict[str, str]:
    """Places by hash."""
    if not functions:
        return {}
    with parts.database.begin() as session:
        return {
            one.sha256: artifacts.reserve(
                session,
                one.sha256,
                name=one.name,
                language=one.language,
                size=Path(one.library).stat().st_size,
                new_place=partial(parts.workshop.new_place, one),
            )
            for one in sorted(functions, key=lambda one: one.sha256)
        }
