"""Folders in which the files of pipelines may be: a query that names others is refused before anything is opened.

    files.roots = ["/data/flights"]        a path is absolute, below one of them, without `..`; links are followed

It is about what a query names; what it opens is looked at again then (see `confined_to`), because a variable or a link
may lead elsewhere by then. Code of functions opens what its process may open.
"""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...engine.connectors.described import VARIABLE
from ...engine.connectors.location import DATABASES, Location, database_of, pattern_of
from ...engine.planner.statements import CreateTable, Set, Statement, statement_of
from ...engine.planner.text import Text, Wrong
from ...errors import InvalidArgument


def check(text: Text, roots: Sequence[str]) -> None:
    """Raises Refused with all that is outside."""
    wrong = [Wrong(why, at) for place, at in _named(text) if (why := outside(place, roots)) is not None]
    if wrong:
        raise text.refused(wrong)


def _named(text: Text) -> Iterator[tuple[str, int]]:
    """What a query names that may be on this machine, and where."""
    for statement in statements(text):
        if isinstance(statement, CreateTable):
            for name in ("path", "uri"):
                if (option := statement.options.get(name)) is not None:
                    yield option.value, option.at
        elif isinstance(statement, Set) and statement.name == "dead_letters":
            yield statement.value, statement.at


def outside_of(pipeline: Mapping[str, Any], roots: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """As `outside`, of a described pipeline, whose variables may have other values by now."""
    reasons = (outside(place, roots, environment) for place in _places(pipeline))
    return next((why for why in reasons if why is not None), None)


def _places(described: Any) -> Iterator[str]:
    if isinstance(described, Mapping):
        for key, value in described.items():
            if key in ("path", "uri", "paths", "schema") and isinstance(value, str | list | tuple):
                yield from [value] if isinstance(value, str) else (path for path in value if isinstance(path, str))
            else:
                yield from _places(value)
    elif isinstance(described, list | tuple):
        for item in described:
            yield from _places(item)


def statements(text: Text) -> Iterator[Statement]:
    """Those that can be read. The others are told by the planner."""
    with contextlib.suppress(Wrong):
        for part in text.statements():
            with contextlib.suppress(Wrong):
                yield statement_of(part)


def outside(place: str, roots: Sequence[str], environment: Mapping[str, str] = os.environ) -> str | None:
    """Why a path or URL may not be used; None: it may. environment: of its variables."""
    try:
        where = _location(place, environment)
    except InvalidArgument as error:
        return str(error)
    if where.path is None:
        return None
    listed = ", ".join(roots)
    if not where.path.is_absolute() or ".." in where.path.parts:
        return f"{place}: write an absolute path without '..', in one of the folders {listed}"
    if where.is_below([Path(root) for root in roots], is_pattern=True):
        return None
    return f"{place} is outside of the folders that pipelines may use: {listed}"


def local_files(place: str) -> list[Path]:
    """What a path, URL or pattern names on this machine."""
    try:
        where = _location(place, os.environ)
    except InvalidArgument:  # told elsewhere
        return []
    if where.path is None:
        return []
    if where.path.exists() or not glob.has_magic(str(where.path)):
        return [where.path]
    return [Path(path) for path in glob.glob(str(where.path), recursive=True)]


def _location(place: str, environment: Mapping[str, str]) -> Location:
    """Of a place that may have variables. Raises InvalidArgument."""
    value = VARIABLE.sub(lambda match: match[0][1:] if match[1] else environment.get(match[2], ""), place)
    is_database = value.partition(":")[0].lower() in DATABASES
    return database_of(value, value) if is_database else pattern_of(value)
