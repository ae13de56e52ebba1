"""How many permissions to read each slice gets from Flink, and in which order.

    ticks = Ticks.of(source, width)
    ticks.slice_of(number)             of each number from 0 on, below `ticks.total`

A permission that finds nothing left costs some microseconds, and the last one of a slice reads all that is left, while
checkpoints wait. So there are as many as can be needed. Slices get them in turn, as long as they have some.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from ..connectors.file_source import FilesSource
from ..connectors.impulse import ImpulseSource
from ..connectors.inputs import InputFile
from ..connectors.interface import Source
from .reading_stage import PATIENCE, ROWS

WITHOUT_END = 1 << 40
"""Of each slice: more than are ever used."""
_SHORTEST = 2  # bytes of a row of text
_COMPRESSED = 16  # times as small


@dataclass(frozen=True)
class Ticks:
    """each: the permissions of each slice."""

    each: Sequence[int]

    @classmethod
    def of(cls, source: Source, width: int) -> Self:
        """For so many slices, as `ReadingStage` deals out partitions."""
        if source.watch is not None:
            return cls([WITHOUT_END] * width)
        if isinstance(source, ImpulseSource):
            return cls(_of_impulse(source, width))
        return cls(_of_files(source, width))

    @property
    def total(self) -> int:
        return sum(self.each)

    def slice_of(self, number: int) -> int:
        """The slice that gets this one."""
        before = 0  # rounds that are over, in which all slices of `left` had one each
        left = sorted(range(len(self.each)), key=self.each.__getitem__)
        while True:
            rounds = self.each[left[0]] - before
            if number < rounds * len(left):
                return sorted(left)[number % len(left)]
            number -= rounds * len(left)
            before = self.each[left[0]]
            left = left[1:]


def _of_impulse(source: ImpulseSource, width: int) -> list[int]:
    described = source.described
    if described.rows is None:
        return [WITHOUT_END] * width
    seconds = 0.0 if described.rate is None else described.rows / described.rate
    share = math.ceil(described.rows / source.parts)  # of a partition
    partitions = [len(range(slice, source.parts, width)) for slice in range(width)]
    return [math.ceil(own * share / ROWS) + math.ceil(seconds / PATIENCE) + 1 for own in partitions]


def _of_files(source: Source, width: int) -> list[int]:
    if not isinstance(source, FilesSource):
        return [WITHOUT_END if source.rows is None else math.ceil(source.rows / ROWS) + 1] * width
    files = source.files.input_files
    if len(source.partitions()) < len(files):  # all files are one partition
        shares = [files, *([] for _ in range(width - 1))]
    else:
        shares = [files[slice::width] for slice in range(width)]
    return [math.ceil(sum(map(_most_rows, own)) / ROWS) + 1 for own in shares]


def _most_rows(file: InputFile) -> int:
    """As if it were text; other formats have fewer rows of the same size."""
    size = file.version().size
    return math.ceil(size / _SHORTEST) * (1 if file.kind.compression is None else _COMPRESSED)
