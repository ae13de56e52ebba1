"""0, 1, 2, ... as arrays: the numbers of rows.

ordinals(3)                         0, 1, 2 as uint64
ordinals(3, 5, "int64")             5, 6, 7

Guarantees: nothing is made when this is imported, because `pyarrow.array` imports pandas where it is installed, which
costs every process a tenth of a second at its start.
"""

from __future__ import annotations

import functools
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

Whole = Literal["uint32", "int64", "uint64"]

_KEPT = 8192


def ordinals(n_rows: int, first: int = 0, type_: Whole = "uint64") -> pa.Array:
    """first, first + 1, ... Up to 8,192 numbers from zero share their memory."""
    if n_rows <= _KEPT:
        numbers = _kept(type_).slice(0, n_rows)
        return pc.add(numbers, pa.scalar(first, type_)) if first else numbers
    ones = pa.repeat(pa.scalar(1, type_), n_rows - 1)
    return pc.cumulative_sum(pa.concat_arrays([pa.array([first], type_), ones]))


@functools.cache
def _kept(type_: Whole) -> pa.Array:
    return pa.array(range(_KEPT), type_)
