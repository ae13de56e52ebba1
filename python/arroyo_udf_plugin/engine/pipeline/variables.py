"""`${NAME}` in a description: the environment variable NAME. `$${NAME}` is the text `${NAME}` itself.

The description keeps the text as it is written; so do its JSON, errors and checkpoints. `resolved` makes a copy with
the values, which only the code that opens things sees. What that code says about itself, such as the error of a
database that cannot be reached, goes through `Secrets`, which write `${NAME}` for the values again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..connectors.described import VARIABLE
from .lines import Key
from .problems import InvalidPipeline, Problem

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TELLING = 8
"""A value that is shorter may be a part of a word by chance: it is hidden where it stands by itself."""


class Secrets:
    """The values of a description's variables."""

    def __init__(self, texts: Iterable[str], environment: Mapping[str, str]) -> None:
        """texts: those of the description."""
        self._values: dict[str, str] = {}
        written: dict[str, str] = {}
        for text in texts:
            names = [name for is_text, name in VARIABLE.findall(text) if not is_text]
            if names:
                written[_value(text, environment)] = text
            for name in names:
                self._values[name] = environment[name]
                written.setdefault(environment[name], f"${{{name}}}")
        self._written = {form: text for value, text in written.items() for form in (value, repr(value)[1:-1]) if form}
        # The longest first: a value may be a part of another one.
        longest_first = sorted(self._written, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(_form, longest_first)))

    def __bool__(self) -> bool:
        return bool(self._values)

    def hidden(self, text: str) -> str:
        """The text with `${NAME}` for the values."""
        return self._pattern.sub(lambda match: self._written[match[0]], text) if self._written else text

    def shown(self, text: str) -> str:
        """The reverse of `hidden`."""
        return VARIABLE.sub(lambda match: self._values.get(match[2], match[0]), text)


def _form(value: str) -> str:
    """Where a value is to be hidden. A very short one is as a name is: in quotes, or as a part of a path."""
    form = re.escape(value)
    if len(value) >= _TELLING:
        return form
    if len(value) >= _TELLING // 2:
        return rf"(?<!\w){form}(?!\w)"
    return rf"(?:^|(?<=[\'\"/:@=])){form}(?=$|[\'\"/:@])"


def resolved(data: Any, environment: Mapping[str, str]) -> tuple[Any, Secrets]:
    """A copy of the data of a description with the values of its variables.

    Raises InvalidPipeline, which names all variables that are missing.
    """
    texts = dict(_texts(data, ()))
    problems = [problem for key, text in texts.items() for problem in _problems(key, text, environment)]
    if problems:
        raise InvalidPipeline(problems)
    return _replaced(data, environment), Secrets(texts.values(), environment)


def _problems(key: Key, text: str, environment: Mapping[str, str]) -> Iterator[Problem]:
    for is_text, name in dict.fromkeys(VARIABLE.findall(text)):
        if is_text:
            continue
        if not _NAME.fullmatch(name):
            yield Problem(key, f"${{{name}}} names no variable: write ${{NAME}}, or $${{{name}}} for the text itself")
        elif name not in environment:
            yield Problem(key, f"the environment variable {name} is not set: export {name}=...")


def _value(text: str, environment: Mapping[str, str]) -> str:
    return VARIABLE.sub(lambda match: match[0][1:] if match[1] else environment[match[2]], text)


def _texts(data: Any, key: Key) -> Iterator[tuple[Key, str]]:
    if isinstance(data, str):
        yield key, data
    elif isinstance(data, Mapping):
        for name, item in data.items():
            yield from _texts(item, (*key, name))
    elif isinstance(data, list | tuple):
        for position, item in enumerate(data):
            yield from _texts(item, (*key, position))


def _replaced(data: Any, environment: Mapping[str, str]) -> Any:
    if isinstance(data, str):
        return _value(data, environment)
    if isinstance(data, Mapping):
        return {name: _replaced(item, environment) for name, item in data.items()}
    if isinstance(data, list | tuple):
        return type(data)(_replaced(item, environment) for item in data)
    return data
