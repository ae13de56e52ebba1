"""Which key groups a slice has (key_groups.py), and how far the windows of some are."""

from __future__ import annotations

import dataclasses
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

COUNT = 128
"""How many key groups there are. It is part of all states."""


@dataclasses.dataclass(frozen=True)
class GroupRange:
    """The key groups from `first` to `last`."""

    first: int = 0
    last: int = COUNT - 1

    @classmethod
    def of(cls, slice: int, width: int) -> GroupRange:
        """Those of a slice; of many slices, some have none."""
        first, behind = (-(-number * COUNT // width) for number in (slice, slice + 1))
        return cls(first, behind - 1)

    def common(self, other: GroupRange) -> GroupRange:
        return GroupRange(max(self.first, other.first), min(self.last, other.last))

    def mask(self, groups: pa.UInt8Array) -> pa.BooleanArray:
        """Which of these are its own."""
        return pc.and_(pc.greater_equal(groups, self.first), pc.less_equal(groups, self.last))

    def __bool__(self) -> bool:
        return self.first <= self.last


@dataclasses.dataclass(frozen=True)
class Passed:
    """How far the windows of some key groups are. watermark: that they have taken. closed: up to which time they have
    left. None: they have not begun."""

    range: GroupRange
    watermark: int | None
    closed: int | None

    def within(self, range_: GroupRange) -> Self:
        return dataclasses.replace(self, range=self.range.common(range_))
