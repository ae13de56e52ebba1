"""Durations as text: ISO 8601, such as P1DT2H3.5S. A day has 24 hours.

Texts of earlier versions and of Python, such as "1 day, 2:00:03.5", are read, too.
"""

from __future__ import annotations

import re

import pyarrow as pa

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""By the units of Arrow's types."""

_NUMBER = r"[+-]?[0-9]+"
_ISO = re.compile(
    rf"(?P<sign>[+-]?)P(?=.)(?:(?P<weeks>{_NUMBER})W)?(?:(?P<days>{_NUMBER})D)?"
    rf"(?:T(?=.)(?:(?P<hours>{_NUMBER})H)?(?:(?P<minutes>{_NUMBER})M)?"
    rf"(?:(?P<seconds>{_NUMBER})(?:[.,](?P<fraction>[0-9]{{1,9}}))?S)?)?",
    re.ASCII,
)
_PYTHON = re.compile(
    rf"(?:(?P<days>{_NUMBER}) days?,? )?(?P<hours>[0-9]+):(?P<minutes>[0-9]{{2}}):(?P<seconds>[0-9]{{2}})"
    r"(?:\.(?P<fraction>[0-9]{1,9}))?",
    re.ASCII,
)
_SECONDS = {"weeks": 604_800, "days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1}


def written(durations: pa.Array) -> list[str | None]:
    """Each duration as a text."""
    per_second = PER_SECOND[durations.type.unit]
    counts = durations.cast(pa.int64()).to_pylist()
    return [None if count is None else _written(count, per_second) for count in counts]


def _written(count: int, per_second: int) -> str:
    seconds, fraction = divmod(abs(count), per_second)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    text = "-P" if count < 0 else "P"
    if days:
        text += f"{days}D"
    if not (hours or minutes or seconds or fraction):
        return text if days else "PT0S"
    text += "T" + (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "")
    if fraction:
        digits = f"{fraction:0{len(str(per_second)) - 1}d}".rstrip("0")
        return f"{text}{seconds}.{digits}S"
    return text + f"{seconds}S" if seconds else text


def count_of(text: str, unit: str) -> int | None:
    """The duration's number of units; None: it is none, or no whole number."""
    match = _ISO.fullmatch(text) or _PYTHON.fullmatch(text)
    if match is None:
        return None
    parts = match.groupdict()
    nanoseconds = sum(int(parts.get(name) or 0) * seconds for name, seconds in _SECONDS.items()) * 10**9
    fraction = int((parts["fraction"] or "").ljust(9, "0"))
    nanoseconds += -fraction if (parts["seconds"] or "").startswith("-") else fraction
    if parts.get("sign") == "-":
        nanoseconds = -nanoseconds
    count, rest = divmod(nanoseconds, 10**9 // PER_SECOND[unit])
    return None if rest else count
