"""The functions that plugins have registered in this interpreter, by the address of their descriptor: for a Python host
in the same interpreter, which may hand arrays to a vectorised function as they are (vectorized.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .loading import Registered

functions: dict[int, list[Registered]] = {}
