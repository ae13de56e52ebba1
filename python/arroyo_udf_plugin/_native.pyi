"""The native core (native/python): executes the functions of Python plugins. Also a C library for the host, see setup.py."""

from collections.abc import Callable
from typing import Any

TABLE: object
__file__: str

def register(descriptor: int, functions: list[tuple[Callable[..., Any], type | None]], /) -> int:
    """Registers a plugin's functions: address of its descriptor, and per function the callable and its Context.

    Returns the number that the first one has in TABLE's run and start.
    """

def stop_all() -> None:
    """Stops what runs (cancel, 1 s); nothing asks for the GIL afterwards."""
