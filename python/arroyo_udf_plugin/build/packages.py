"""The versions of packages in the environment that builds."""

from __future__ import annotations

import importlib.metadata

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from ..errors import BuildError


def versions(wanted: list[str], file: str, line: int) -> dict[str, str]:
    """Name and version of each listed package and of their dependencies.

    Raises BuildError, with that line, for one that is missing or does not fit.
    """
    found: dict[str, str] = {}
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
        found[name] = package.version
        more = {(inner, frozenset(requirement.extras)) for inner in package.requires or []}
        left += more - seen
        seen |= more
    return found


def _installed(name: str) -> importlib.metadata.Distribution | None:
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _applies(requirement: Requirement, extras: frozenset[str]) -> bool:
    """Whether its marker holds here, with no extra or with one of these."""
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in ["", *extras])
