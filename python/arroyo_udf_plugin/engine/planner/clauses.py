"""Where the clauses of a query begin: those of one SELECT, or of several between UNION, EXCEPT and INTERSECT."""

from __future__ import annotations

from collections.abc import Iterator

from .text import Tokens, leveled

_CLAUSES = {
    *("select", "from", "where", "having", "qualify", "limit", "offset", "union", "except", "intersect", "on", "join"),
    *("using", "values", "fetch", "window", "all", "distinct"),
}


def clauses_in(part: Tokens) -> Iterator[tuple[str, Tokens]]:
    """What stands behind each word that begins a clause, by the word; nothing, where another one follows at once."""
    word, start = "with" if part[0].word == "with" else "", 0
    for place, token, depth in leveled(part):
        if depth or not _begins(part, place):
            continue
        if place:
            yield word, part[start:place]
        word, start = token.word, place + 1
    if start < len(part):
        yield word, part[start:]


def _begins(part: Tokens, place: int) -> bool:
    word = part[place].word
    before = part[place - 1] if place else None
    following = part[place + 1].word if place + 1 < len(part) else ""
    if before is not None and (before.text == "." or before.word == "as"):
        return False
    if word in ("group", "order"):
        return following == "by"
    if word == "by":
        return before is not None and before.word in ("group", "order")
    if word == "from":
        return before is None or before.word != "distinct"
    if word == "distinct":
        return before is not None and before.word in ("select", "union", "except", "intersect")
    if word == "all":
        return before is not None and before.word in ("select", "union", "except", "intersect", "by")
    return word in _CLAUSES
