"""Dead letters of a pipeline, and what their replay asks and answers."""

from __future__ import annotations

from typing import Annotated, Any

import pydantic

from ..shapes import Answer, Asked

_MOST_ROWS = 1000


class LetterColumn(Answer):
    name: str
    type: str
    """As Arrow names it; `text`: a cell of a file whose columns have no types."""


class DeadLetter(Answer):
    """A row that failed, with why. Its columns failed_... have shorter names here."""

    file: str
    """failed_file: with `row`, it is the row's origin."""
    row: int
    """failed_row: its number in the file."""
    operator: str | None
    """failed_function; null: the row could not be read."""
    outcome: str
    """failed_outcome: error, timed_out, cancelled, unread or late."""
    error: str | None
    """failed_error."""
    attempts: int | None
    """failed_attempts."""
    values: dict[str, Any]
    """Its own columns. Times are as in RFC 3339, without a zone if the column has none; what JSON cannot hold, such as
    bytes, is a text."""


class ShownLetters(Answer):
    place: str | None
    """Their folder, as the query names it. null: this pipeline keeps none."""
    why_not: str | None
    """Why some of them, or all, cannot be read."""
    count: int
    """How many there are that can be read."""
    columns: list[LetterColumn]
    """The row's own, of the newest letter."""
    data: list[DeadLetter]
    """The newest first; fewer than were asked for, if they are large."""


class LetterRow(Asked):
    """The origin of a letter."""

    file: Annotated[str, pydantic.Field(max_length=10_000)]
    row: Annotated[int, pydantic.Field(ge=0, le=2**63 - 1)]


class ChangedRow(LetterRow):
    values: dict[str, Any]
    """Of its own columns, those that have new values, as `DeadLetter.values` has them."""


class ReplayPost(Asked):
    rows: Annotated[list[LetterRow] | None, pydantic.Field(min_length=1, max_length=_MOST_ROWS)] = None
    """null: all that were not replayed since they failed."""
    values: Annotated[list[ChangedRow] | None, pydantic.Field(max_length=_MOST_ROWS)] = None
    """Rows that run with other values than those with which they failed. They must be among `rows`."""
    again: bool = False
    """Also rows, of `rows`, that were replayed before. Their results come twice then."""


class SkippedLetters(Answer):
    replayed_before: int
    """They have not failed since."""
    unread: int
    """They could not be read, and so have lost values."""
    late: int
    """Their windows are over, and still are."""
    of_windows: int
    """They are results of windows, which come from many rows."""


class Replay(Answer):
    rows_in: int
    """Rows that ran again."""
    rows_out: int
    """Rows that were added to each sink."""
    failed: int
    """Rows that failed again: they are new dead letters."""
    dropped: int
    """Rows that were left out, by another policy."""
    nulled: int
    """Results that are null, by another policy."""
    skipped: SkippedLetters
    """Letters that did not run."""
