"""A query file, from its text to the description of a pipeline."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence

from ..datafusion.feed import check_installed
from ..pipeline.document import text_of
from ..pipeline.problems import InvalidPipeline, Problem
from .compiler import compiled
from .diagnostics import check_syntax
from .functions import loaded
from .statements import Statement, statement_of
from .text import Text, Tokens, Wrong


class Script:
    """pipeline: what the text describes. explain: it asks to be explained, not run."""

    def __init__(self, file: str, text: str, udfs: Sequence[str] = ()) -> None:
        """udfs: files of functions: plugins, or sources. Raises Refused, and what building and loading raise."""
        check_installed()
        self._text = Text(file, text)
        self.explain = False
        wrong: list[Wrong] = []
        statements: list[Statement] = []
        try:
            for part in self._text.statements():
                try:
                    statements.append(self._statement(part))
                except Wrong as error:
                    wrong.append(error)
        except Wrong as error:
            wrong.append(error)
        if wrong:
            raise self._text.refused(wrong)
        try:
            with loaded(udfs, self._text.calls()) as functions:
                result = compiled(self._text, statements, functions)
        except Wrong as error:
            raise self._text.refused([error]) from error.__cause__
        self.pipeline, self._places = result.pipeline, result.places

    @classmethod
    def read(cls, path: str | os.PathLike[str], udfs: Sequence[str] = ()) -> Script:
        """Raises InvalidArgument, too, for a file that cannot be read."""
        file = os.fspath(path)
        return cls(file, text_of(file), udfs)

    def _statement(self, part: Tokens) -> Statement:
        if part[0].word == "explain":
            self.explain = True
            part = part[1:]
            if not part:
                raise Wrong("EXPLAIN stands before a SELECT or an INSERT", len(self._text.text))
            if part[0].word in ("analyze", "verbose", "format"):
                raise Wrong(f"there is no EXPLAIN {part[0].text.upper()}: write EXPLAIN alone", part[0].start)
        start = _query_start(part)
        if start is not None:
            check_syntax(self._text, part[start:])
        return statement_of(part)

    @contextlib.contextmanager
    def located(self) -> Iterator[None]:
        """Adds the places in the text to an InvalidPipeline."""
        try:
            yield
        except InvalidPipeline as error:
            raise self._text.refused([self._wrong(problem) for problem in error.problems]) from error.__cause__

    def _wrong(self, problem: Problem) -> Wrong:
        prefixes = [problem.key[:length] for length in range(len(problem.key), 0, -1)]
        at = next((self._places[prefix] for prefix in prefixes if prefix in self._places), 0)
        return Wrong(
            str(problem) if problem.key[:1] not in [("source",), ("sources",), ("sinks",)] else problem.text, at
        )


def _query_start(part: Tokens) -> int | None:
    """Where the query of a statement begins."""
    depth = 0
    for place, token in enumerate(part):
        if token.word in ("select", "with") and _is_query(part, place, depth):
            return place
        depth += (token.text == "(") - (token.text == ")")
    return None


def _is_query(part: Tokens, place: int, depth: int) -> bool:
    """WITH (option = ...) of a table is none."""
    token, after = part[place], part[place + 1 : place + 2]
    return not depth and (token.word == "select" or not after or after[0].text != "(")
