"""The hash of a library, by which it is known to be the one that was built."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ...errors import LoadError


def sha256_of(library: Path) -> str:
    with library.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verified(library: Path, sha256: str) -> Path:
    """The library. Raises LoadError, if it is not the one with this hash: call it before each load."""
    try:
        found = sha256_of(library)
    except OSError as error:
        raise LoadError(f"{library.name}: {error.strerror}: create the function again") from None
    if found != sha256:
        raise LoadError(f"{library.name} is not the library that was built: create the function again")
    return library
