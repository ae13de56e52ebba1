"""What is wrong with a request to the database, or with the database. Each has a text for the user."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sqlalchemy import exc

from ...errors import ArroyoUdfError


class NotFound(ArroyoUdfError):
    """There is no such thing."""


class NameTaken(ArroyoUdfError):
    """There is one of that name, or with that id, already."""


class InUse(ArroyoUdfError):
    """It cannot be deleted or moved, because others need it."""


class Ended(ArroyoUdfError):
    """The job has done all that it was to do."""


class Deposed(ArroyoUdfError):
    """Another controller leads."""


_OF_THE_STATEMENT = (exc.DataError, exc.IntegrityError, exc.NotSupportedError, exc.ProgrammingError)


def is_outage(error: Exception) -> bool:
    """Whether the database does not do its work just now, such as a server that has gone, a full disk or a deadlock.

    False: the statement itself is wrong, and would be the next time.
    """
    if isinstance(error, exc.DBAPIError):
        return error.connection_invalidated or not isinstance(error, _OF_THE_STATEMENT)
    return isinstance(error, exc.TimeoutError)  # of the pool: all connections are in use


@contextlib.contextmanager
def once(text: str) -> Iterator[None]:
    """Raises Taken with that text, if the block breaks a constraint of uniqueness."""
    try:
        yield
    except exc.IntegrityError as error:
        if "unique" not in str(error.orig).lower():
            raise
        raise NameTaken(text) from error
