"""What is wrong with a pipeline: all in one error, each by the path of its key, such as `operators[1].calls[0]`."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ...errors import ArroyoUdfError, InvalidArgument, service_of
from .lines import Key, line_of


@dataclasses.dataclass(frozen=True)
class Problem:
    """key: where; () is the whole description. text: what is wrong, and what to write instead. error: of this kind.
    service: what does not answer just now, if that is wrong."""

    key: Key
    text: str
    error: type[Exception] | None = None
    service: str = ""

    @property
    def path(self) -> str:
        return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.key).removeprefix(".")

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.key else self.text


class InvalidPipeline(InvalidArgument):
    """A pipeline that cannot be run. problems: all that were found. file: where the description was read."""

    def __init__(self, problems: Sequence[Problem], file: str = "", lines: Mapping[Key, int] | None = None) -> None:
        self.problems = tuple(problems)
        self.file = file
        self.lines = dict(lines or {})
        where = [(line_of(problem.key, self.lines), problem) for problem in self.problems]
        where.sort(key=lambda pair: pair[0] or 0)
        if len(where) == 1:
            ((line, problem),) = where
            place = f"{file}:{line}: " if file and line else f"{file}: " if file else ""
            super().__init__(f"{place}{problem}")
        else:
            texts = [f"  line {line}: {problem}" if line else f"  {problem}" for line, problem in where]
            super().__init__("\n".join([f"{file or 'the pipeline'} has {len(where)} errors:", *texts]))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problems, self.file, self.lines)


_OPTION = re.compile(r"--(?:in-|out-)?(format|types|delimiter|quote|columns|compression)\b(?: '')?")

_CONVERT = re.compile(r"convert it first, to pa\.\w+(\(.*?\))?")


def in_keys(text: str) -> str:
    """An error that names options of the command line, or what to call in Python: with what a description has."""
    text = _CONVERT.sub('cast it in an operator before, type = "sql"', text)
    return _OPTION.sub(lambda option: f'{option[1]} = ""' if option[0].endswith("''") else option[1], text)


class Problems:
    """What is wrong so far, without the values of variables."""

    def __init__(self, hidden: Callable[[str], str] = str) -> None:
        """hidden: a text without the values of variables."""
        self.entries: list[Problem] = []
        self.hidden = hidden

    def add(self, key: Key, text: str, cause: Exception | None = None) -> None:
        error, service = (None, "") if cause is None else (type(cause), service_of(cause))
        self.entries.append(Problem(key, self.hidden(in_keys(text)), error, service))

    @contextlib.contextmanager
    def at(self, *key: str | int) -> Iterator[None]:
        """Takes in the toolkit's errors as problems with this key."""
        try:
            yield
        except (ArroyoUdfError, OSError) as error:
            self.add(key, str(error), error)
