"""What is wrong with a request to the database. Each has a text for the user."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sqlalchemy.exc import IntegrityError

from ...errors import ArroyoUdfError


class NotFound(ArroyoUdfError):
    """There is no such thing."""


class Taken(ArroyoUdfError):
    """There is one of that name, or with that id, already."""


class InUse(ArroyoUdfError):
    """It cannot be deleted, because others need it."""


@contextlib.contextmanager
def once(text: str) -> Iterator[None]:
    """Raises Taken with that text, if the block breaks a constraint of uniqueness."""
    try:
        yield
    except IntegrityError as error:
        if "unique" not in str(error.orig).lower():
            raise
        raise Taken(text) from error
