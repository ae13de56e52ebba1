"""Numbers and failures for people, in summaries and views."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..engine.operators.failures import FailedRows

_MOST_KINDS = 5
_WIDTH = 200
"""Of a failure's text."""


def text_of(error: Exception) -> str:
    """An error's text with its notes."""
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


def counted(number: int, name: str) -> str:
    """1 row, 2,000 rows."""
    return f"{number:,} {name}" if number == 1 else f"{number:,} {name}s"


def values(number: int, nulls: int) -> str:
    return counted(number, "value") + (f" ({nulls:,} null)" if nulls else "")


def duration(seconds: float) -> str:
    """1.23 s, 45.6 ms, 789 us."""
    unit, size = next((pair for pair in (("s", 1.0), ("ms", 1e-3)) if seconds >= pair[1]), ("us", 1e-6))
    number = seconds / size
    return f"{number:.3g} {unit}" if number < 100 else f"{number:.0f} {unit}"


def failed(failures: Sequence[FailedRows], prefix: str = "") -> Iterator[str]:
    """A line for each of the most frequent kinds."""
    by_rows = sorted(failures, key=lambda failure: -failure.rows)
    for failure in by_rows[:_MOST_KINDS]:
        what = "could not be read" if failure.function is None else f"failed in {failure.function}"
        yield f"{prefix}{counted(failure.rows, 'row')} {what}, such as {_cut(failure.message)}"
    if rows := sum(failure.rows for failure in by_rows[_MOST_KINDS:]):
        yield f"{prefix}{counted(rows, 'row')} failed in other ways; --json has them"


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
