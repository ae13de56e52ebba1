"""Named moments at which a test may stop the process.

    failpoints.reached("staged")

Each stands between two steps of an epoch (see engine/checkpoints.py), where a crash has consequences of its own:
"sealed", "staged", "committed", "applied" (after each sink), "renamed" (after each part), "cleaned".

Assumes: callers use it through the module, so that a test can put another function in its place.
"""

from __future__ import annotations


def reached(name: str) -> None:
    """Does nothing."""
