"""The tokens of SQL, with their places in the text. DataFusion says what is wrong with a text; this only cuts it.

Guarantees: tokens are those of DataFusion's generic dialect, so that nothing inside a quote or a comment is taken for
more than it is.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator
from typing import Literal

from ...errors import InvalidArgument

Kind = Literal["word", "quoted", "text", "number", "sign"]

_PATTERN = re.compile(
    r"""
    (?P<space> \s+ | --[^\n]* )
  | (?P<comment> /\* )
  | (?P<text> [eEnNbBxX]?'(?:[^']|'')*' )
  | (?P<quoted> "(?:[^"]|"")*" | `[^`]*` )
  | (?P<number> 0[xX][0-9a-fA-F]+ | (?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)? )
  | (?P<word> [^\W\d]\w* )
  | (?P<sign> ::|->>|->|<=>|<=|>=|<>|!=|!~\*|!~|~\*|\|\||<<|>>|=> | [^\s] )
    """,
    re.VERBOSE,
)
_ESCAPED = re.compile(r"[eE]'(?:[^'\\]|\\.|'')*'", re.DOTALL)
_DOLLARS = re.compile(r"\$(\w*)\$.*?\$\1\$", re.DOTALL)
_COMMENT = re.compile(r"/\*|\*/")


@dataclasses.dataclass(frozen=True, slots=True)
class Token:
    """start, end: offsets in the text. word: in lower case, if it is a word without quotes; otherwise ""."""

    kind: Kind
    text: str
    start: int
    end: int
    word: str

    @property
    def name(self) -> str | None:
        """The name that it is, as SQL reads it: in lower case unless it is quoted. None: it is none."""
        if self.kind == "quoted":
            return self.text[1:-1].replace(self.text[0] * 2, self.text[0])
        return self.word or None

    @property
    def value(self) -> str | None:
        """What a quoted text says; None: it is none."""
        return self.text[1:-1].replace("''", "'") if self.kind == "text" and self.text[0] == "'" else None


class Unreadable(InvalidArgument):
    """A quote or comment that does not end. start: its offset."""

    def __init__(self, text: str, start: int) -> None:
        self.start = start
        super().__init__(text)


@functools.lru_cache(maxsize=256)  # each question about a text begins here
def tokens(text: str, start: int = 0) -> tuple[Token, ...]:
    """The tokens from `start` on, without spaces and comments. Raises Unreadable."""
    return tuple(_tokens(text, start))


def without_layout(text: str) -> str:
    """The same for texts that differ in spaces between tokens and in comments alone. A text that is no SQL stays."""
    try:
        return " ".join(token.text for token in tokens(text))
    except Unreadable:
        return text


def _tokens(text: str, at: int) -> Iterator[Token]:
    while at < len(text):
        match = _ESCAPED.match(text, at) or _DOLLARS.match(text, at)
        kind = "text"
        if match is None:
            match = _PATTERN.match(text, at)
            assert match is not None, "the last alternative takes any character"
            kind = match.lastgroup or "text"
        end = match.end()
        if kind == "comment":
            at = _after_comment(text, at)
            continue
        if match.group() in ("'", '"', "`"):
            raise Unreadable(f"this {match.group()} has no end: close the quote", at)
        if kind != "space":
            piece = match.group()
            yield Token(kind, piece, at, end, piece.lower() if kind == "word" else "")  # type: ignore[arg-type]
        at = end


def _after_comment(text: str, start: int) -> int:
    """Comments nest."""
    depth = 0
    for match in _COMMENT.finditer(text, start):
        depth += 1 if match.group() == "/*" else -1
        if not depth:
            return match.end()
    raise Unreadable("this comment has no end: write */", start)


def quoted(name: str) -> str:
    """A name in SQL, as it is."""
    return '"' + name.replace('"', '""') + '"'


def column_name(text: str, table: str) -> str | None:
    """The column that an expression is and nothing more: a, "a", table.a. None: it is another expression."""
    all_tokens = tokens(text)
    names = [token.name for token in all_tokens[::2]]
    if len(all_tokens) == 3 and all_tokens[1].text == "." and names[0] == table:
        return names[1]
    return names[0] if len(all_tokens) == 1 else None


_OF_THE_TIME = {
    "current_timestamp": '"__now"',
    "current_date": 'CAST("__now" AS DATE)',
    "current_time": 'CAST("__now" AS TIME)',
    "now": '"__now"',
    "today": 'CAST("__now" AS DATE)',
}


def with_now(text: str) -> str:
    """The text with a column "__now" where it asks for the time, which a planned query would not ask again."""
    written, done, all_tokens = [], 0, tokens(text)
    for place, token in enumerate(all_tokens):
        called = [following.text for following in all_tokens[place + 1 : place + 3]] == ["(", ")"]
        before = all_tokens[place - 1] if place else None
        is_name = before is not None and (before.text == "." or before.word == "as")
        if token.word not in _OF_THE_TIME or is_name or (token.word in ("now", "today") and not called):
            continue
        written += [text[done : token.start], _OF_THE_TIME[token.word]]
        done = all_tokens[place + 2].end if called else token.end
    return "".join([*written, text[done:]])
