"""Where something is kept: a file or folder of this machine, a place in an object store, or a database.

    location_of("s3://bucket/state").child("job_1")        s3://bucket/state/job_1
    location_of("file:///data/a%20b").path                 /data/a b
    database_of("sqlite:rows.db", "sinks[0]").path         rows.db
    with confined_to([Path("/data")]): ...                 what pipelines open in the block is there, or refused

Guarantees: a text means the same to all who open it, because only this module reads it. The URL of an object store that
is written to, or kept, has neither `?` nor `#`, which would cut it off. While a process is confined, `admitted` refuses
each path that is outside, wherever its links lead.
Assumes: one confinement at a time in a process; all pipelines that it runs are under it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import urllib.parse
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...errors import InvalidArgument

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_SERVERS = ("postgresql", "postgres")
DATABASES = (*_SERVERS, "sqlite")
"""Schemes of the URIs of databases."""
_WILD = set("*?[")


class Outside(InvalidArgument):
    """A path that pipelines may not use."""


@dataclasses.dataclass(frozen=True)
class Location:
    """text: what opens it, for people, too. path: on this machine; None: it is elsewhere."""

    text: str
    path: Path | None

    def __str__(self) -> str:
        return self.text

    def child(self, *names: str) -> Location:
        """Below it. names: without slashes."""
        if self.path is not None:
            below = self.path.joinpath(*names)
            return Location(str(below), below)
        return Location("/".join([self.text.rstrip("/"), *names]), None)

    def absolute(self) -> Location:
        """The same, whatever the working directory is."""
        return self if self.path is None else Location(str(self.path.absolute()), self.path.absolute())

    def is_below(self, roots: Sequence[Path], is_pattern: bool = False) -> bool:
        """Whether it is in one of these folders, when links are followed; what is on other machines counts as that.
        is_pattern: only the part before wildcards can be known."""
        if self.path is None:
            return True
        parts = self.path.parts
        wild = next((at for at, part in enumerate(parts) if _WILD & set(part)), None) if is_pattern else None
        fixed = Path(*parts[:wild]).resolve()
        return any(fixed.is_relative_to(root.resolve()) for root in roots)

    def admitted(self) -> Location:
        """Itself. Raises Outside if this process is confined to other folders: call it before each opening."""
        if _roots is not None and not self.is_below(_roots):
            listed = ", ".join(map(str, _roots))
            raise Outside(f"{self.text} is outside of the folders that pipelines may use: {listed}")
        return self


_roots: tuple[Path, ...] | None = None


@contextlib.contextmanager
def confined_to(roots: Sequence[Path] | None) -> Iterator[None]:
    """What this process opens for pipelines is in these folders. None: anywhere."""
    global _roots
    before, _roots = _roots, None if roots is None else tuple(root.absolute() for root in roots)
    try:
        yield
    finally:
        _roots = before


def location_of(text: str) -> Location:
    """A path, a `file://` URL, or the URL of an object store. Raises InvalidArgument."""
    location = pattern_of(text)
    if location.path is None and (cut := next((mark for mark in "?#" if mark in text), None)) is not None:
        raise InvalidArgument(
            f"{text}: leave out {cut!r} and what follows it: options of an object store, such as its region, come from "
            "environment variables"
        )
    return location


def pattern_of(text: str) -> Location:
    """As `location_of`, of what is only read: it may have wildcards."""
    match = _URL.match(text)
    if match is None:
        return Location(text, Path(text))
    if match[1].lower() != "file":
        return Location(text, None)
    host, slash, rest = match[2].partition("/")
    if not slash or host not in ("", "localhost"):
        raise InvalidArgument(f"{text}: write the path of a file on this machine, as in file:///folder/file")
    path = Path(urllib.parse.unquote(f"/{rest}"))
    return Location(str(path), path)


def database_of(uri: str, name: str) -> Location:
    """A database: `sqlite:PATH`, with slashes `sqlite:///RELATIVE` and `sqlite:////ABSOLUTE`, or a server's URL.

    name: for error texts, because a URI may have a password. Raises InvalidArgument.
    """
    scheme, _, rest = uri.partition(":")
    if scheme.lower() in _SERVERS:
        return Location(uri, None)
    if scheme.lower() != "sqlite":
        raise InvalidArgument(
            f"{name}: the uri of a database begins with postgresql:// or sqlite:, such as sqlite:rows.db"
        )
    if rest.startswith("//"):
        rest = rest[3:] if rest.startswith("///") else ""
    if not rest or rest.startswith(":"):
        raise InvalidArgument(f"{name}: name the file of the SQLite database, such as sqlite:rows.db")
    return Location(uri, Path(rest))
