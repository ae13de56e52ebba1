"""The text of a query file: its statements, and where things are in it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import InvalidArgument
from ..datafusion.tokens import Token, Unreadable, tokens

_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = set(_OPENING.values())

Tokens = Sequence[Token]


@dataclass(frozen=True)
class ErrorPlace:
    """Something wrong. start, end: line and column, counted from 1; the end is behind the last character."""

    text: str
    start: tuple[int, int]
    end: tuple[int, int]


class InvalidQuery(InvalidArgument):
    """What is wrong in a query file, and what to write instead: one or more, each with line and column."""

    def __init__(self, message: str, places: Sequence[ErrorPlace] = ()) -> None:
        super().__init__(message)
        self.places = places

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.places)


class Wrong(Exception):
    """Something that is wrong at an offset of the text. text: None: it follows from what was told before."""

    def __init__(self, text: str | None, at: int) -> None:
        self.text, self.at = text, at
        super().__init__(text)


class Unending(Wrong):
    """The same of a query that has no answer while rows come: over sources that end it may have one."""


class Text:
    """file: its name. text: all of it."""

    def __init__(self, file: str, text: str) -> None:
        self.file, self.text = file, text

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column, counted from 1."""
        line = self.text.count("\n", 0, offset)
        return line + 1, offset - self.text.rfind("\n", 0, offset)

    def refused(self, wrong: Sequence[Wrong]) -> InvalidQuery:
        """All that is wrong, in one error."""
        places = list(self._places(wrong))
        lines = [f"{self.file}:{place.start[0]}:{place.start[1]}: {place.text}" for place in places]
        return InvalidQuery("\n".join(lines), places)

    def _places(self, wrong: Sequence[Wrong]) -> Iterator[ErrorPlace]:
        for error in sorted(wrong, key=lambda error: error.at):
            if error.text is not None:
                yield ErrorPlace(error.text, self.place(error.at), self.place(self._end(error.at)))

    def _end(self, offset: int) -> int:
        """Behind the token that begins at an offset."""
        try:
            return next((token.end for token in tokens(self.text) if token.start <= offset < token.end), offset)
        except Unreadable:
            return offset

    def cut(self, part: Tokens) -> str:
        """What the user has written from the first of these tokens to the last."""
        return self.text[part[0].start : part[-1].end] if part else ""

    def statements(self) -> Iterator[Tokens]:
        """The tokens of each statement. Raises Wrong."""
        try:
            all_tokens = tokens(self.text)
        except Unreadable as error:
            raise Wrong(str(error), error.start) from None
        for part in split(all_tokens, ";"):
            if part:
                yield part

    def calls(self) -> dict[str, int]:
        """All names that stand before a bracket, in lower case, and where they stand first."""
        pairs = list(itertools.pairwise(tokens(self.text)))
        return {token.name.lower(): token.start for token, after in reversed(pairs) if token.name and after.text == "("}


def split(part: Tokens, sign: str) -> list[Tokens]:
    """Cut at a sign, but not inside brackets. Raises Wrong for brackets that do not match."""
    cuts = [place for place, token, depth in leveled(part) if not depth and token.text == sign]
    return [part[start + 1 : stop] for start, stop in zip([-1, *cuts], [*cuts, len(part)], strict=True)]


def leveled(part: Tokens) -> Iterator[tuple[int, Token, int]]:
    """Each token with its place and how many brackets are around it; brackets count as inside."""
    open_: list[Token] = []
    for place, token in enumerate(part):
        if token.text in _CLOSING and token.kind == "sign":
            if not open_ or _OPENING[open_[-1].text] != token.text:
                raise Wrong(f"nothing is open that this {token.text} closes", token.start)
            yield place, token, len(open_)
            open_.pop()
            continue
        if token.text in _OPENING and token.kind == "sign":
            open_.append(token)
        yield place, token, len(open_)
    if open_:
        raise Wrong(f"this {open_[-1].text} has no {_OPENING[open_[-1].text]}", open_[-1].start)


def closing(part: Tokens, place: int) -> int:
    """Where the bracket that opens at `place` closes."""
    return next(at for at, token, depth in leveled(part[place:]) if depth == 1 and token.text in _CLOSING) + place


class Cursor:
    """Reads tokens one by one. end: the offset behind the last one."""

    def __init__(self, part: Tokens) -> None:
        self._part, self.at = part, 0

    @property
    def now(self) -> Token | None:
        return self._part[self.at] if self.at < len(self._part) else None

    @property
    def offset(self) -> int:
        """Of the next token, or behind the last."""
        return self._part[self.at].start if self.at < len(self._part) else self._part[-1].end

    @property
    def rest(self) -> Tokens:
        return self._part[self.at :]

    def take(self, *words: str) -> bool:
        """Whether these words or signs come next; then they are behind."""
        following = [token.word or token.text for token in self._part[self.at : self.at + len(words)]]
        if following != list(words):
            return False
        self.at += len(words)
        return True

    def need(self, *words: str) -> None:
        if not self.take(*words):
            self.fail(" ".join(words).upper())

    def fail(self, wanted: str) -> None:
        """Raises Wrong: something else was expected here."""
        actual = "the end" if self.now is None else self.now.text
        raise Wrong(f"write {wanted} here, not {actual}", self.offset)

    def next(self) -> Token:
        token = self.now
        if token is None:
            raise Wrong("the statement ends here, but there must be more", self.offset)
        self.at += 1
        return token

    def name(self, what: str) -> tuple[str, int]:
        """A name, and its offset. what: for the error, such as "the table's name"."""
        token = self.now
        name = None if token is None else token.name
        if token is None or name is None:
            self.fail(what)
            raise AssertionError
        self.at += 1
        return name, token.start

    def brackets(self) -> Tokens:
        """What is between the brackets that open here."""
        if self.now is None or self.now.text != "(":
            self.fail("(")
        end = closing(self._part, self.at)
        inner, self.at = self._part[self.at + 1 : end], end + 1
        return inner
