"""Built functions as libraries: stored at any place that `engine.store` opens, and copied to this machine to be loaded.

    artifacts/<sha256>-<8 digits>/libplane.so      stored at `artifact_url`; a place of its own each time it is stored
    libraries/<sha256>/libplane.so                 a copy on this machine

A program names its libraries by the places where they are stored (see `moved`).

Guarantees: a library has all of its bytes or does not exist, at both places. What `fetched` returns has the hash that
was asked for. Several processes may store, fetch and copy the same library at once.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from pathlib import Path

from ...engine.connectors.location import location_of
from ...engine.execution.store import AlreadyThere, LocalStore, open_store
from ...errors import LoadError

LIBRARIES = "libraries"
"""The folder of copies, below that of functions."""


def new_place(artifacts: str, sha256: str) -> str:
    """Where a library can be stored. No other one ever is, so removing the place takes nothing from anybody."""
    return location_of(artifacts).child(f"{sha256}-{secrets.token_hex(4)}").text


def store(library: Path, place: str, patience: float) -> str:
    """Stores a library, if it is not there whole. Returns what programs call it. Raises InvalidArgument.

    patience: seconds for a store that does not answer.
    """
    data, opened = library.read_bytes(), open_store(place, patience)
    try:
        if opened.get(library.name) != data:  # damaged
            opened.put(library.name, data)
    except FileNotFoundError:
        with contextlib.suppress(AlreadyThere):  # another process has stored the same
            opened.create(library.name, data)
    return f"{place}/{library.name}"


def fetched(name: str, sha256: str, libraries: Path) -> Path:
    """The library on this machine. name: as programs have it: a path, or a URL, of which there will be a copy.

    Raises LoadError for a library that is gone or not the one that was built; InvalidArgument for a store that fails.
    """
    path = location_of(name).path
    if path is not None:
        return verified(path, sha256)
    place, _, file = name.rpartition("/")
    with contextlib.suppress(LoadError):
        return verified(libraries / sha256 / file, sha256)
    try:
        data = open_store(place).get(file)
    except FileNotFoundError:
        raise LoadError(f"{name} is not there any more: create the pipeline again") from None
    if hashlib.sha256(data).hexdigest() != sha256:
        raise LoadError(f"{name} is not the library that was built: create the pipeline again")
    return _put(data, sha256, file, libraries)


def copied(library: Path, libraries: Path) -> tuple[Path, str]:
    """A copy of a new library on this machine, with its hash."""
    data = library.read_bytes()
    sha256 = hashlib.sha256(data).hexdigest()
    return _put(data, sha256, library.name, libraries), sha256


def _put(data: bytes, sha256: str, file: str, libraries: Path) -> Path:
    LocalStore(libraries).put(f"{sha256}/{file}", data)
    return libraries / sha256 / file


def verified(library: Path, sha256: str) -> Path:
    """The library. Raises LoadError, if it is not the one with this hash: call it before each load."""
    try:
        with library.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise LoadError(f"{library} cannot be read: {error.strerror}: create the function again") from None
    if digest != sha256:
        raise LoadError(f"{library} is not the library that was built: create the function again")
    return library
