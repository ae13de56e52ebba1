"""Which checkpoints are kept, to go back to one of them. What a savepoint has copied is kept without this."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import UTC, datetime

from ...errors import InvalidArgument

NUMBER = 3
"""How many are kept, unless somebody says it."""


@dataclasses.dataclass(frozen=True)
class Retention:
    """The latest `number`, and all that are not older than so many seconds."""

    number: int = NUMBER
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.number < 1:
            raise InvalidArgument(f"{self.number} checkpoints cannot be kept: write a number above 0")

    def kept(self, times: Mapping[int, str | None]) -> list[int]:
        """Of these epochs, by number. times: when each was taken (RFC 3339); None: nobody knows."""
        numbers, now = sorted(times), datetime.now(UTC)
        first = max(0, len(numbers) - self.number)
        while first and self._is_young(times[numbers[first - 1]], now):
            first -= 1
        return numbers[first:]

    def _is_young(self, time: str | None, now: datetime) -> bool:
        return time is not None and (now - datetime.fromisoformat(time)).total_seconds() < self.seconds


USUAL = Retention()
