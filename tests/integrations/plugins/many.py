"""Aggregates and table functions, for the engines that have them."""

import datetime
import decimal
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated

import pyarrow as pa

from arroyo_udf_plugin import udaf, udtf


@udaf
@dataclass
class tally:
    sum: int = 0
    rows: int = 0

    def update(self, values: list[int]) -> None:
        self.sum += sum(values)
        self.rows += len(values)

    def merge(self, other: "tally") -> None:
        self.sum += other.sum
        self.rows += other.rows

    def finish(self) -> int | None:
        return self.sum if self.rows else None


@udaf
@dataclass
class fast_tally:
    """The same, from Arrow arrays."""

    sum: float = 0.0
    rows: int = 0

    def update(self, values: pa.DoubleArray) -> None:
        self.sum += values.sum().as_py() or 0.0
        self.rows += len(values) - values.null_count

    def merge(self, other: "fast_tally") -> None:
        self.sum += other.sum
        self.rows += other.rows

    def finish(self) -> float | None:
        return self.sum if self.rows else None


@udaf
@dataclass
class middle:
    """The median: its state is a list."""

    values: list[float] = field(default_factory=list)

    def update(self, values: list[float]) -> None:
        self.values += values

    def merge(self, other: "middle") -> None:
        self.values += other.values

    def finish(self) -> float | None:
        if not self.values:
            return None
        ordered, half = sorted(self.values), len(self.values) // 2
        return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


@udaf
@dataclass
class sorted_texts:
    """All texts, with a separator; a null is written as one."""

    texts: list[str | None] = field(default_factory=list)
    separators: list[str] = field(default_factory=list)

    def update(self, texts: list[str | None], separators: list[str]) -> None:
        self.texts += texts
        self.separators = separators[:1] or self.separators

    def merge(self, other: "sorted_texts") -> None:
        self.texts += other.texts
        self.separators = self.separators or other.separators

    def finish(self) -> str:
        return (self.separators or [""])[0].join(sorted("NULL" if text is None else text for text in self.texts))


@udaf
@dataclass
class latest:
    """The greatest of each of some types, in one text; its state has them all."""

    day: datetime.date | None = None
    at: datetime.datetime | None = None
    price: Annotated[decimal.Decimal, pa.decimal128(12, 2)] | None = None
    data: bytes | None = None
    flag: bool | None = None

    def update(
        self,
        days: list[datetime.date | None],
        ats: list[datetime.datetime | None],
        prices: list[Annotated[decimal.Decimal, pa.decimal128(12, 2)] | None],
        datas: list[bytes | None],
        flags: list[bool | None],
    ) -> None:
        self.day = max((v for v in (self.day, *days) if v is not None), default=None)
        self.at = max((v for v in (self.at, *ats) if v is not None), default=None)
        self.price = max((v for v in (self.price, *prices) if v is not None), default=None)
        self.data = max((v for v in (self.data, *datas) if v is not None), default=None)
        self.flag = max((v for v in (self.flag, *flags) if v is not None), default=None)

    def merge(self, other: "latest") -> None:
        self.update([other.day], [other.at], [other.price], [other.data], [other.flag])

    def finish(self) -> str:
        return f"{self.day} {self.at} {self.price} {self.data!r} {self.flag}"


@udaf
@dataclass
class picky:
    """A sum that refuses 13 in `update`, and a sum of 100 in `finish`."""

    sum: int = 0

    def update(self, values: list[int]) -> None:
        if 13 in values:
            raise ValueError("thirteen")
        self.sum += sum(values)

    def merge(self, other: "picky") -> None:
        self.sum += other.sum

    def finish(self) -> int:
        if self.sum == 100:
            raise ValueError("a hundred")
        return self.sum


@udaf
@dataclass
class unlike:
    """Of a type that neither DuckDB nor SQLite passes on."""

    rows: int = 0

    def update(self, values: list[list[int]]) -> None:
        self.rows += len(values)

    def merge(self, other: "unlike") -> None:
        self.rows += other.rows

    def finish(self) -> int:
        return self.rows


@dataclass
class Word:
    word: str
    place: int


@udtf
def words(text: str) -> Iterator[Word]:
    for place, word in enumerate(text.split()):
        yield Word(word, place)


@udtf
def numbers(start: int, stop: int) -> list[int]:
    return list(range(start, stop))


@udtf
def picky_numbers(n: int) -> Iterator[int]:
    for i in range(n):
        if i == 12:
            raise ValueError("thirteen")
        yield i


@dataclass
class Text:
    text: str | None


@udtf
def texts(text: str, n: int) -> list[Text]:
    """Its argument has the name of a column."""
    return [Text(text if i % 2 else None) for i in range(n)]


@dataclass
class Step:
    text: str | None
    half: float | None
    day: datetime.date | None


@udtf
def steps(text: str | None, n: int) -> list[Step]:
    """Every other row has nulls."""
    day = datetime.date(2024, 1, 1)
    return [Step(text, i / 2, day) if i % 2 else Step(None, None, None) for i in range(n)]


@udtf
def one_of_each(
    data: bytes,
    day: datetime.date,
    at: datetime.datetime,
    hour: datetime.time,
    price: Annotated[decimal.Decimal, pa.decimal128(12, 2)],
    flag: bool,
    n: int,
    int8: Annotated[int, pa.int8()],
    int16: Annotated[int, pa.int16()],
    int32: Annotated[int, pa.int32()],
    uint8: Annotated[int, pa.uint8()],
    uint16: Annotated[int, pa.uint16()],
    uint32: Annotated[int, pa.uint32()],
    float32: Annotated[float, pa.float32()],
    float64: float,
) -> list[str]:
    """All arguments, in one text."""
    numbers = f"{n} {int8} {int16} {int32} {uint8} {uint16} {uint32} {float32} {float64}"
    return [f"{data!r} {day} {at} {hour} {price} {flag} {numbers}"]


@udtf
def nested(n: int) -> list[list[int]]:
    return [[n]]
