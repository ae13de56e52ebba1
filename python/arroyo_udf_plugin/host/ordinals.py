"""0, 1, 2, ... as arrays: the numbers of rows.

ordinals(3)                         0, 1, 2 as uint64
ordinals(3, 5, "int64")             5, 6, 7

Guarantees: nothing is made when this is imported.
"""

from __future__ import annotations

import functools

import pyarrow as pa
import pyarrow.compute as pc

from . import few

_KEPT = 8192


def ordinals(n_rows: int, first: int = 0, type_: few.Whole = "uint64") -> pa.Array:
    """first, first + 1, ... Up to 8,192 numbers from zero share their memory."""
    if n_rows <= _KEPT:
        numbers = _kept(type_).slice(0, n_rows)
        return pc.add(numbers, few.number(first, type_)) if first else numbers
    ones = pa.repeat(few.number(1, type_), n_rows - 1)
    return pc.cumulative_sum(pa.concat_arrays([few.numbers([first], type_), ones]))


@functools.cache
def _kept(type_: few.Whole) -> pa.Array:
    return few.numbers(range(_KEPT), type_)
