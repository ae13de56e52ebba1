"""What windows are, row by row."""

from __future__ import annotations

import dataclasses
import datetime
import statistics
from collections.abc import Sequence
from typing import Any

from window_rows import ROWS, Row

DAY = 86_400_000_000_000
Bounds = Sequence[tuple[int, int]]


def tumbling(width: int, slide: int) -> Bounds:
    return [(start, start + width) for start in range(-10 * slide * width, 10 * slide * width, slide)]


def monthly(months: int, slide: int) -> Bounds:
    begins = [datetime.datetime(year, month, 1) for year in range(1960, 1981) for month in range(1, 13)]
    starts = [(begin - datetime.datetime(1970, 1, 1)).days * DAY for begin in begins]
    return list(zip(starts[::slide], starts[months::slide], strict=False))  # 120 months before 1970


@dataclasses.dataclass
class Model:
    """What windows are, row by row. bounds: of all windows that there may be, in their order."""

    bounds: Bounds
    aggregates: Any
    rows: list[Row] = dataclasses.field(default_factory=list)
    watermark: int | None = None
    closed: int | None = None
    late: list[Row] = dataclasses.field(default_factory=list)

    def add(self, rows: Sequence[Row]) -> None:
        for row in rows:
            last_end = max(end for start, end in self.bounds if start <= row[2] < end)
            if self.watermark is not None and last_end <= self.watermark:
                self.late.append(row)
            else:
                self.rows.append(row)

    def close(self, all_of_them: bool = False) -> list[tuple[Any, ...]]:
        found = []
        for start, end in self.bounds:
            is_new = self.closed is None or end > self.closed
            if is_new and (all_of_them or (self.watermark is not None and end <= self.watermark)):
                inside = [row for row in self.rows if start <= row[2] < end]
                for key in {row[0] for row in inside}:
                    values = [x for k, x, _ in inside if k == key]
                    found.append((start, end, key, *answer(self.aggregates, values)))
        if self.watermark is not None:
            self.closed = max(self.closed or self.watermark, self.watermark)
        return found


def answer(aggregates: Any, given: Sequence[int | None]) -> tuple[Any, ...]:
    """The aggregates of some values."""
    values = [x for x in given if x is not None]
    if aggregates is ROWS:
        return len(given), statistics.median(values) if values else None
    high = [x for x in values if x > 2]
    sums = (sum(values), sum(values) / len(values)) if values else (None, None)
    return (len(given), *sums, min(high, default=None))


@dataclasses.dataclass
class SessionModel:
    """What sessions are, row by row."""

    gap: int
    aggregates: Any
    rows: list[Row] = dataclasses.field(default_factory=list)
    watermark: int | None = None
    late: list[Row] = dataclasses.field(default_factory=list)

    def add(self, rows: Sequence[Row]) -> None:
        for row in rows:
            is_late = self.watermark is not None and row[2] + self.gap <= self.watermark
            (self.late if is_late else self.rows).append(row)

    def close(self, all_of_them: bool = False) -> list[tuple[Any, ...]]:
        sessions: list[list[Row]] = []
        for row in sorted(self.rows, key=lambda row: (str(row[0]), row[2])):
            last = sessions[-1][-1] if sessions else None
            if last is not None and last[0] == row[0] and row[2] - last[2] < self.gap:
                sessions[-1].append(row)
            else:
                sessions.append([row])
        ends = [session[-1][2] + self.gap for session in sessions]
        over = [all_of_them or (self.watermark is not None and end <= self.watermark) for end in ends]
        self.rows = [row for session, is_over in zip(sessions, over, strict=True) if not is_over for row in session]
        return [
            (session[0][2], end, session[0][0], *answer(self.aggregates, [x for _, x, _ in session]))
            for session, end, is_over in zip(sessions, ends, over, strict=True)
            if is_over
        ]
