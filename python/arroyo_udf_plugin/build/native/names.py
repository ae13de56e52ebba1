"""What the variables of a Python function are called in C."""

from __future__ import annotations

from .values import Kind


def variable_name(name: str, kind: Kind) -> str:
    """What a variable is called in C while it has a value of this kind."""
    return f"v_{_c(name)}_{kind.name.lower()}"


def null_name(name: str) -> str:
    """What says in C whether a variable is None."""
    return f"v_{_c(name)}_is_null"


def _c(name: str) -> str:
    """A Python name as a part of a C name."""
    return "".join(one if one.isascii() and one.isalnum() else f"_{ord(one):x}_" for one in name)
