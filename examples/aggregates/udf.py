"""An aggregate and a table function, for engines and queries: docs/functions.md."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from arroyo_udf_plugin import udaf, udtf


@udaf
@dataclass
class geometric_mean:
    """The n-th root of the product of n values."""

    logs: float = 0.0
    count: int = 0

    def update(self, values: list[float]) -> None:
        self.logs += sum(map(math.log, values))
        self.count += len(values)

    def merge(self, other: "geometric_mean") -> None:
        self.logs += other.logs
        self.count += other.count

    def finish(self) -> float | None:
        return math.exp(self.logs / self.count) if self.count else None


@dataclass
class Word:
    word: str
    place: int


@udtf
def words(text: str) -> Iterator[Word]:
    for place, word in enumerate(text.split()):
        yield Word(word, place)
