"""Which key a slice has on Flink.

Flink puts a key into a key group by a hash, and gives each subtask a range of key groups. With as many key groups as
slices, and a key for each of them, slices are spread evenly over any number of subtasks.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

_MASK = 0xFFFFFFFF


@functools.cache
def keys_of_slices(width: int) -> Sequence[int]:
    """The keys of slices 0, 1, ...: each slice's number is its key group, if there are `width` of these."""
    found: dict[int, int] = {}
    for key in itertools.count():
        found.setdefault(key_group(key, width), key)
        if len(found) == width:
            return [found[slice] for slice in range(width)]
    raise AssertionError("unreachable")


def key_group(key: int, groups: int) -> int:
    """Of a key that PyFlink sends as a Row of one INT."""
    return _mixed(62 + key) % groups  # the argument is its Row.hashCode


def _mixed(code: int) -> int:
    """Flink's MathUtils.murmurHash: of one int, then made positive."""
    code = code * 0xCC9E2D51 & _MASK
    code = _rotated(code, 15) * 0x1B873593 & _MASK
    code = _rotated(code, 13) * 5 + 0xE6546B64 & _MASK
    code ^= 4
    code = (code ^ code >> 16) * 0x85EBCA6B & _MASK
    code = (code ^ code >> 13) * 0xC2B2AE35 & _MASK
    code ^= code >> 16
    if code < 1 << 31:
        return code
    negative = code - (1 << 32)
    return 0 if negative == -(1 << 31) else -negative


def _rotated(code: int, by: int) -> int:
    return (code << by | code >> 32 - by) & _MASK
