"""F11: dates, datetimes and timedeltas, as Python has them, over all years and beyond."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from comparing import Pair

N = 10_000
DAY = 86_400_000_000
FIRST, LAST = -719_162, 2_932_896  # 0001-01-01, 9999-12-31
SOURCE = """
import datetime as dt
from datetime import date, datetime, timedelta
from arroyo_udf_plugin import udf


@udf(native=True)
def fields(d: date, t: datetime) -> str:
    day = f"{d}|{d.year}-{d.month}-{d.day}|{d.weekday()}{d.isoweekday()}{d.toordinal()}|{d.isoformat()}"
    time = f"{t}|{t.isoformat()}|{t.hour}:{t.minute}:{t.second}.{t.microsecond}|{t.date()}|{t.weekday()}|{t.year}"
    return day + time + str(t.date())

@udf(native=True)
def days(a: date, b: date) -> int:
    return (a - b).days if a > b else -1

@udf(native=True)
def secs(a: datetime, b: datetime) -> float:
    d = a - b
    if d < timedelta(0):
        d = -d
    return d.total_seconds() + d.days + d.seconds + d.microseconds

@udf(native=True)
def plus(d: date, n: int) -> date:
    return d + timedelta(days=n, hours=n)

@udf(native=True)
def minus(t: datetime, n: int) -> datetime:
    return t - timedelta(n, n, milliseconds=n) * 2

@udf(native=True)
def made(y: int, m: int, d: int) -> date:
    return date(y, m, d)

@udf(native=True)
def made2(y: int, m: int, d: int) -> datetime:
    return dt.datetime(y, m, d, hour=d, minute=m)

@udf(native=True)
def diff(a: datetime, b: datetime) -> timedelta | None:
    return None if a == b else (a - b) % timedelta(hours=7)

@udf(native=True)
def span(a: timedelta, b: timedelta) -> int:
    return a // b

@udf(native=True)
def ordinal(n: int) -> date:
    return date.fromordinal(n)

@udf(native=True)
def weekend(d: date | None) -> bool:
    return d is not None and d.weekday() >= 5 and min(d, date(2024, 1, 1)) == d and bool(d)

@udf(native=True)
def ratio(a: timedelta, b: timedelta) -> float:
    return a / b
"""
CHOICES = random.Random(34)


def day() -> int:
    edges = [FIRST, LAST, 0, -1, FIRST + 1, LAST - 1, FIRST - 1, LAST + 1, 2**31 - 1, -(2**31)]
    ways: list[Callable[[], int]] = [
        lambda: CHOICES.choice(edges),
        *[lambda: CHOICES.randint(FIRST, LAST)] * 4,
        *[lambda: CHOICES.randint(0, 20_000)] * 4,
    ]
    return CHOICES.choice(ways)()


def time() -> int:
    edges = [FIRST * DAY, (LAST + 1) * DAY - 1, (LAST + 1) * DAY, FIRST * DAY - 1, 0, -1, 2**63 - 1, -(2**63)]
    ways: list[Callable[[], int]] = [
        lambda: CHOICES.choice(edges),
        lambda: CHOICES.randint(FIRST * DAY, (LAST + 1) * DAY - 1),
        *[lambda: CHOICES.randint(0, 20_000 * DAY)] * 4,
        *[lambda: CHOICES.randint(0, 20_000) * DAY] * 4,
    ]
    return CHOICES.choice(ways)()


def delta() -> int:
    ways: list[Callable[[], int]] = [
        lambda: CHOICES.choice([0, 1, -1, 2**63 - 1, -(2**63), DAY, -DAY]),
        *[lambda: CHOICES.randint(-(10**15), 10**15)] * 4,
        *[lambda: CHOICES.randint(-(10**7), 10**7)] * 4,
    ]
    return CHOICES.choice(ways)()


def number() -> int:
    edges = [0, 1, -1, 5, 30, 10**6, -(10**6), 10**9, 2**62, -(2**63)]
    return CHOICES.choice(edges) if CHOICES.random() < 0.1 else CHOICES.randint(-1000, 1000)


def column(make: Callable[[], int], type_: pa.DataType) -> pa.Array:
    values = [None if CHOICES.random() < 0.05 else make() for _ in range(N)]
    lying = pa.int32() if type_ == pa.date32() else pa.int64()
    return pa.array(values, lying).cast(type_)


DATES = (day, pa.date32())
TIMES = (time, pa.timestamp("us"))
DELTAS = (delta, pa.duration("us"))
NUMBERS = (number, pa.int64())
YEARS = (lambda: CHOICES.randint(-1, 10_001) if CHOICES.random() < 0.3 else CHOICES.randint(1990, 2030), pa.int64())
MONTHS = (lambda: CHOICES.randint(0, 13), pa.int64())
DAYS = (lambda: CHOICES.randint(0, 32), pa.int64())
ORDINALS = (lambda: CHOICES.randint(-5, 3_652_070), pa.int64())


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return Pair(tmp_path_factory.mktemp("dates"), SOURCE)


@pytest.mark.parametrize(
    ("function", "columns"),
    [
        ("fields", (DATES, TIMES)),
        ("days", (DATES, DATES)),
        ("secs", (TIMES, TIMES)),
        ("plus", (DATES, NUMBERS)),
        ("minus", (TIMES, NUMBERS)),
        ("made", (YEARS, MONTHS, DAYS)),
        ("made2", (YEARS, MONTHS, DAYS)),
        ("diff", (TIMES, TIMES)),
        ("span", (DELTAS, DELTAS)),
        ("ratio", (DELTAS, DELTAS)),
        ("ordinal", (ORDINALS,)),
        ("weekend", (DATES,)),
    ],
)
def test_times(both: Pair, function: str, columns: tuple[tuple[Callable[[], int], pa.DataType], ...]) -> None:
    deferred = both.check(function, *(column(*one) for one in columns))
    assert deferred < N / 2


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return a < datetime(2024, 1, 1)", "`<` of date and datetime in line 6"),
        ("return a + 1 == a", "Add of date and int in line 6"),
        ("return timedelta(days=0.5) == timedelta(0)", "float instead of int in line 6"),
        ("return str(a - a) == ''", "the call of `str` with timedelta in line 6"),
        ("return f'{a - a}' == ''", "the text of timedelta in line 6"),
        ("return f'{a:%Y}' == ''", "the format '%Y' of date in line 6"),
        ("return a.strftime('%Y') == ''", "date instead of str in line 6"),
        ("return a.hour == 1", "`.hour` of date in line 6"),
        ("return date.today() == a", "the call of `date.today` in line 6"),
        ("return datetime(2024, 1, 1, tzinfo=None).year == 1", "this call of `datetime` in line 6"),
        ("return a == datetime(2024, 1, 1)", None),
    ],
)
def test_what_is_not_compiled(tmp_path: Path, body: str, reason: str | None) -> None:
    head = "from datetime import date, datetime, timedelta\nfrom arroyo_udf_plugin import udf\n\n"
    pair = Pair(tmp_path, f'{head}@udf(native="auto")\ndef f(a: date) -> bool:\n    {body}\n')
    if reason is None:
        assert pair.check("f", pa.array([19_723, 0, None], pa.int32()).cast(pa.date32())) == 0
    else:
        assert reason in str(pair.native["f"].not_native)
