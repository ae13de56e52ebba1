"""The packages that a Python source lists in its script block, and the file that keeps their versions.

A plugin uses the packages of the environment that it is built in, so a build installs nothing. It looks for the listed
packages and their dependencies, and writes the versions that it finds beside the source, as udf.requirements.txt for
udf.py. `pip install -r` makes the same environment elsewhere; `--locked` refuses any other.
"""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from ..errors import BuildError
from . import cache, metadata
from .cache import Resolution

_HEAD = "# Written by arroyo-udf build: what {source} was built with. pip install -r {file}\n"


def locked(source: Path, text: str, how: Resolution) -> str:
    """The lock of a source, made or renewed unless --locked forbids it; empty if the source lists no packages.

    Raises BuildError: a package is missing, or its version does not fit; or --locked, and the lock differs from the
    environment.
    """
    line, wanted = metadata.dependencies(text, str(source))
    if not wanted:
        return ""
    file = source.with_name(f"{source.stem}.requirements.txt")
    versions = _versions(wanted, str(source), line)
    head = _HEAD.format(source=source.name, file=file.name)
    lock = head + "".join(f"{name}=={version}\n" for name, version in sorted(versions.items()))
    former = how.former_lock(file, source, line)
    if how.locked and former != lock:
        changed = sorted(set(lock.splitlines()) ^ set((former or "").splitlines()))
        raise BuildError(
            f"{file.name} is stale, or not what is installed here; they differ in {', '.join(changed)}: "
            f"pip install -r {file.name}, or build once without --locked",
            str(source),
            line,
        )
    if former != lock:
        cache.keep_lock(file, source, lock)
    return lock


def _versions(wanted: list[str], file: str, line: int) -> dict[str, str]:
    """Name and version of each listed package and of their dependencies."""
    versions: dict[str, str] = {}
    # The requirements left to look at, each with the extras of the package that has it; None: the source has it.
    left: list[tuple[str, frozenset[str] | None]] = [(text, None) for text in wanted]
    seen = set(left)
    while left:
        text, extras = left.pop()
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            raise BuildError(f"dependencies has {text!r}, which does not name a package: {error}", file, line) from None
        if not _applies(requirement, extras or frozenset()):
            continue
        name = canonicalize_name(requirement.name)
        package = _installed(name)
        if extras is None and (
            package is None or not requirement.specifier.contains(package.version, prereleases=True)
        ):
            here = "it is not installed here" if package is None else f"{package.version} is installed here"
            raise BuildError(f"needs the package {text}, and {here}: pip install {text!r}", file, line)
        if package is None:
            continue  # a package may lack one of its own requirements: that is not this source's problem
        versions[name] = package.version
        more = {(inner, frozenset(requirement.extras)) for inner in package.requires or []}
        left += more - seen
        seen |= more
    return versions


def _installed(name: str) -> importlib.metadata.Distribution | None:
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _applies(requirement: Requirement, extras: frozenset[str]) -> bool:
    """Whether its marker holds here, with no extra or with one of these."""
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in ["", *extras])
