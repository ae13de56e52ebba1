"""Whether what windows keep is made of a query's column: then another expression for it would mix both in a window.

    kept_by_windows(operators, 0, "x")      operators: of a fingerprint. The column x of the first one

Assumes nothing of which operator is behind which: each may be behind all that stand before it. So it may take a column
for another one of the same name, and never overlooks one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from ...errors import InvalidArgument
from ..datafusion.tokens import tokens
from ..pipeline.kinds import OPERATORS, FollowTable, LatestRows, UpdatingJoin
from ..pipeline.kinds.kind import DescribedOperator, WaitingOperator
from ..pipeline.kinds.updating import Updating


def _type_of(kind: type[DescribedOperator]) -> str:
    return str(kind.model_fields["type"].default)


_WITH_WINDOWS = frozenset(_type_of(kind) for kind in OPERATORS if issubclass(kind, WaitingOperator | Updating))
_OF_ROWS = (FollowTable, LatestRows, UpdatingJoin)
_OVER_ALL_ROWS = frozenset(_type_of(kind) for kind in OPERATORS if kind.is_over_all_rows or kind in _OF_ROWS)
_KEEPING = _WITH_WINDOWS | _OVER_ALL_ROWS


def kept_by_windows(operators: Sequence[Any], place: int, column: str) -> bool:
    """Whether keys, event times or aggregates of windows, or the condition of a join, depend on it."""
    made = {column}
    for operator in operators[place + 1 :]:
        kind = _kind(operator)
        if kind in _WITH_WINDOWS:
            asked = [
                operator.get("time", ""),
                *operator.get("keys", ()),
                *operator.get("aggregates", {}).values(),
                operator.get("order", ""),
            ]
            if made & _words([*asked, operator.get("on", "")]):
                return True
        elif kind in _OVER_ALL_ROWS:  # it keeps all rows
            return True
        elif kind in ("lookup", "union"):  # their results have names of their own
            return any(_kind(described) in _KEEPING for described in operators)
        if kind == "functions":
            calls = operator["calls"] if isinstance(operator, dict) else operator
            for words in map(_words, ([call] for call in calls)):
                made |= words if made & words else set()  # the name of the result is one of them
        else:
            made |= {name for name, text in (operator.get("select") or {}).items() if made & _words([text])}
    return False


def _kind(operator: Any) -> str:
    """As fingerprints have it: calls in a row are a list, and neither they nor queries have a type."""
    if not isinstance(operator, dict) or "calls" in operator:
        return "functions"
    return str(operator.get("type", "sql"))


def _words(texts: Sequence[str]) -> set[str]:
    words: set[str] = set()
    for text in texts:
        with contextlib.suppress(InvalidArgument):  # it is no SQL
            words |= {token.name for token in tokens(text) if token.name is not None}
        words.add(text)  # the whole of a key or a time is its name
    return words
