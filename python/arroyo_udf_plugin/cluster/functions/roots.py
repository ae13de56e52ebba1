"""Folders in which the files of pipelines may be: a query that names others is refused before anything is opened.

    files.roots = ["/data/flights"]        a path is absolute, below one of them, without `..`; links are followed

It is about what a query names. Code of functions opens what its process may open.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...connectors.described import VARIABLE
from ...connectors.folder import local_path
from ...planner.statements import CreateTable, Set, Statement, statement_of
from ...planner.text import Text, Wrong

_WILD = set("*?[")


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


def statements(text: Text) -> Iterator[Statement]:
    """Those that can be read. The others are told by the planner."""
    with contextlib.suppress(Wrong):
        for part in text.statements():
            with contextlib.suppress(Wrong):
                yield statement_of(part)


def outside(place: str, roots: Sequence[str]) -> str | None:
    """Why a path or URL may not be used; None: it may."""
    value = VARIABLE.sub(lambda found: found[0][1:] if found[1] else os.environ.get(found[2], ""), place)
    path = _path(value)
    if path is None:
        return None
    listed = ", ".join(roots)
    if not path.is_absolute() or ".." in path.parts:
        return f"{place}: write an absolute path without '..', in one of the folders {listed}"
    fixed = Path(*_before_wildcards(path)).resolve()
    if any(fixed.is_relative_to(Path(root).resolve()) for root in roots):
        return None
    return f"{place} is outside of the folders that pipelines may use: {listed}"


def _path(value: str) -> Path | None:
    """None: it is not on this machine."""
    scheme, _, rest = value.partition(":")
    if scheme.lower() == "sqlite":
        return Path(rest[3:] if rest.startswith("///") else rest)
    if scheme.lower() == "file":
        return local_path(f"file:{rest}")
    return None if scheme.lower() in ("postgresql", "postgres") else local_path(value)


def _before_wildcards(path: Path) -> Iterator[str]:
    for part in path.parts:
        if _WILD & set(part):
            return
        yield part
