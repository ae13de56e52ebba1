"""Where the keys of a TOML text are: `lines_of(text)["operators", 1, "calls", 0]` is the line of that value.

TOML's parser does not say it. So the text is cut into statements: a statement is the fewest lines that parse, and what
it parses to says which keys it has.

Assumes: the whole text parses. A key inside an inline table, or an item of a nested list, is not found: it is in the
line of the nearest key around it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

Key = tuple[str | int, ...]
"""The way to a value, from key to key and by the positions in lists."""


def line_of(key: Key, lines: Mapping[Key, int]) -> int | None:
    """The line of a key, or of the nearest one around it."""
    return next((lines[key[:length]] for length in range(len(key), 0, -1) if key[:length] in lines), None)


def lines_of(text: str) -> dict[Key, int]:
    """The line of each key, counted from 1."""
    lines: dict[Key, int] = {}
    table: Key = ()
    counts: dict[Key, int] = {}  # the last position in each list of tables
    written, first, items = "", 1, list[int]()
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if not written:
            first, items = number, []
        written += line
        statement = _parsed(written)
        if statement is None:  # a text or a list goes on in the next line
            items += [number] * (_length(_parsed(written + "\n]")) - len(items))
            continue
        names = _names(statement)
        if names and written.lstrip().startswith("["):
            table = _within(names, counts, is_list=written.lstrip().startswith("[["))
            lines.setdefault(table, first)
        elif names:
            items += [number] * (_length(statement) - len(items))
            key = table + names
            lines.update({key[:length]: first for length in range(len(table) + 1, len(key) + 1)})
            lines.update({(*key, position): line for position, line in enumerate(items)})
        written = ""
    return lines


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _names(statement: Mapping[str, Any]) -> Key:
    """The keys of `a.b = 1`, `[a.b]` or `[[a.b]]`."""
    names: list[str] = []
    inner: Any = statement
    while isinstance(inner, dict) and len(inner) == 1:
        ((name, inner),) = inner.items()
        names.append(name)
    return tuple(names)


def _length(statement: Any) -> int:
    """How many items a statement's list has."""
    while isinstance(statement, dict) and len(statement) == 1:
        (statement,) = statement.values()
    return len(statement) if isinstance(statement, list) else 0


def _within(names: Key, counts: dict[Key, int], is_list: bool) -> Key:
    """The key of a table. Tables below `[[name]]` belong to its latest one."""
    key: Key = ()
    for place, name in enumerate(names):
        key = (*key, name)
        if is_list and place == len(names) - 1:
            counts[key] = counts.get(key, -1) + 1
        if key in counts:
            key = (*key, counts[key])
    return key
