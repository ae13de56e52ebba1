"""The options of async functions, with the same names in the decorator, the block at the head of a source, `start` and
the command line. Rules R4 to R8, R21 to R23 of docs/semantics.md define them; `OPTIONS` is their one table.

A choice is a dict from names to values. An option that the host does not choose at `start` has the decorator's value,
else the block's, else the default. Imports nothing heavy, because every user's source imports this module.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypedDict

__all__ = [
    "OPTIONS",
    "Options",
    "StartOptions",
    "abi_fields",
    "check",
    "check_cache",
    "from_abi",
    "parse",
    "unknown_in",
]

_FOREVER_NS = 2**64 - 1
_LONGEST = 1e9  # seconds
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_RETRY_ON = {"timeout": 1, "error": 2}


RetryOn: TypeAlias = Literal["timeout", "error"]


class StartOptions(TypedDict, total=False):
    """The options as keywords, of the decorator and of `start`; see `Options`."""

    ordered: bool
    allowed_in_flight: int | str
    timeout: float | str
    deadline: float | str
    rate: str
    max_rows: int
    max_bytes: int
    max_attempts: int
    retry_on: RetryOn | tuple[RetryOn, ...]
    backoff: float | str
    max_backoff: float | str
    seed: int
    idempotent: bool
    max_stuck: int
    batch_size: int
    max_wait: float | str
    batch_bytes: int
    deterministic: bool
    cache: int
    cache_bytes: int
    cache_ttl: float | str
    cache_errors: bool


@dataclass(frozen=True)
class Options:
    """How an async function runs. Times are seconds, or texts with a unit: "2ms", "1.5 s".

    ordered: results come out in the order of the rows; otherwise as rows end.
    allowed_in_flight: the most attempts that run at once. "auto": a limit that adapts, from 1 to 1,000;
        "auto:50": from 1 to 50.
    timeout: seconds for one attempt, from its start; `math.inf` for none.
    deadline: seconds for a row, including waiting and all attempts; `math.inf` for none.
    rate: the most attempts that start in any such time, evenly paced: "500/s", "30/min", "100/15min"; None for any
        number. Functions of one name and rate that are started in one process share it.
    max_rows, max_bytes: limits of held rows (waiting, running, or not drained). At one of them `send` finds no room.
        Default of max_rows: the larger of 4 * allowed_in_flight (times batch_size) and 16,384.
    max_attempts: attempts per row. Default: 1 if ordered, else 3.
    retry_on: which failures are retried: "timeout", "error", or both in a tuple.
    backoff, max_backoff: seconds before the second attempt; they double for each further attempt, up to max_backoff.
    seed: of the jitter, which shortens each pause by a random 0 to 50 %. Default: a new seed for each start.
    idempotent: a row may be retried while an earlier attempt that ignored its cancellation still runs.
    max_stuck: stop the runtime once this many attempts ignore their cancellation. Default: allowed_in_flight.
    batch_size: the function takes micro-batches: each parameter is a list of at most this many rows, and it returns a
        list of results. A call starts once batch_size rows wait,
    max_wait: or once a row has waited this many seconds (default 0.002),
    batch_bytes: or once the waiting rows have this many bytes (default 1 MiB).
    deterministic: equal arguments give equal values, so rows of a batch that have them share a call, and so do all rows
        that come while it is made. An error is that of all of them.
    cache: the most values that are kept for later rows; needs deterministic=True. Default: none.
    cache_bytes: the most bytes that they take, with their arguments and 200 bytes for each (default 64 MiB).
    cache_ttl: seconds for which a value is kept; `math.inf`, the default, for as long as there is room.
    cache_errors: errors are kept, too (default False).
    """

    ordered: bool = True
    allowed_in_flight: int | str = 100
    timeout: float = 10.0
    deadline: float = math.inf
    rate: str | None = None
    max_rows: int | None = None
    max_bytes: int = 64 << 20
    max_attempts: int | None = None
    retry_on: str | tuple[str, ...] = "timeout"
    backoff: float = 0.1
    max_backoff: float = 10.0
    seed: int | None = None
    idempotent: bool = False
    max_stuck: int | None = None
    batch_size: int | None = None
    max_wait: float | None = None
    batch_bytes: int | None = None
    deterministic: bool = False
    cache: int | None = None
    cache_bytes: int | None = None
    cache_ttl: float | None = None
    cache_errors: bool | None = None

    def __post_init__(self) -> None:
        """Fills in the defaults that depend on other options."""
        for name, (_, kind) in OPTIONS.items():
            if kind is _SECONDS and isinstance(text := getattr(self, name), str):
                object.__setattr__(self, name, seconds_of(text))
        batched: dict[str, Any] = {"max_wait": 0.002, "batch_bytes": 1 << 20}
        cached: dict[str, Any] = {"cache_bytes": 64 << 20, "cache_ttl": math.inf, "cache_errors": False}
        dependent = (
            (batched if self.batch_size else {})
            | (cached if self.cache else {})
            | {
                "max_rows": max(4 * self.most_in_flight * (self.batch_size or 1), 16_384),
                "max_attempts": 1 if self.ordered else 3,
                "max_stuck": self.most_in_flight,
            }
        )
        for name, value in dependent.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)

    @property
    def most_in_flight(self) -> int:
        """The most attempts that may ever run at once."""
        return _limit_of(self.allowed_in_flight)[0] or _MOST_BY_DEFAULT


@dataclass(frozen=True)
class _Kind:
    """A kind of values: how they are checked, and converted to the ABI (0: not chosen), from it and from text.

    An option that is several fields there has a tuple of numbers, one for each.
    """

    fits: Callable[[Any], bool]
    write: str
    """What to write instead of a value that does not fit."""
    to_abi: Callable[[Any], Any]
    from_abi: Callable[[Any], Any]
    from_text: Callable[[str], Any]


def _whole(most: int) -> _Kind:
    fits = lambda value: type(value) is int and 1 <= value <= most  # noqa: E731
    return _Kind(fits, f"a whole number from 1 to {most}", int, int, int)


def seconds_of(text: str) -> float:
    """Converts "2ms", "1.5 s", "30d", "0.5" or "inf" to seconds. Raises ValueError for other texts."""
    with_unit = re.fullmatch(r"(\d+(?:\.\d+)?) ?([a-z]+)", text)
    if with_unit is None or with_unit[2] not in _UNITS:
        return float(text)
    return float(with_unit[1]) * _UNITS[with_unit[2]]


_SIZES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "kB": 10**3, "MB": 10**6, "GB": 10**9}


def bytes_of(text: str) -> int:
    """Converts "512 MiB", "2GB" or "1000" to bytes. Raises ValueError for other texts."""
    with_unit = re.fullmatch(r"(\d+) ?([A-Za-z]+)", text)
    if with_unit is None:
        return int(text)
    if with_unit[2] not in _SIZES:
        raise ValueError(f"{text!r}: the unit is {', '.join(_SIZES)}")
    return int(with_unit[1]) * _SIZES[with_unit[2]]


def _seconds() -> _Kind:
    def fits(value: Any) -> bool:
        if isinstance(value, str):
            try:
                value = seconds_of(value)
            except ValueError:
                return False
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and (1e-9 <= value <= _LONGEST or value == math.inf)

    def to_abi(value: float | str) -> int:
        value = seconds_of(value) if isinstance(value, str) else value
        return _FOREVER_NS if value == math.inf else max(1, round(value * 1e9))

    def from_abi(value: int) -> float:
        return math.inf if value == _FOREVER_NS else value / 1e9

    write = "seconds above 0 and up to 1e9, a text such as '10ms', or math.inf"
    return _Kind(fits, write, to_abi, from_abi, seconds_of)


_SECONDS = _seconds()


def _from_words(words: Mapping[str, bool]) -> Callable[[str], bool]:
    return lambda text: words[text.lower()]


def _flag(yes: int, no: int) -> _Kind:
    words = {"true": True, "yes": True, "false": False, "no": False}
    return _Kind(
        lambda value: isinstance(value, bool),
        "True or False",
        lambda value: yes if value else no,
        lambda value: value == yes,
        _from_words(words),
    )


def _names(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _retry_on() -> _Kind:
    def fits(value: Any) -> bool:
        names = _names(value) if isinstance(value, str | tuple | list) else ()
        return 0 < len(set(names)) == len(names) and set(names) <= set(_RETRY_ON)

    def from_abi(value: int) -> str | tuple[str, ...]:
        names = tuple(name for name, flag in _RETRY_ON.items() if value & flag)
        return names[0] if len(names) == 1 else names

    return _Kind(
        fits,
        "'timeout', 'error', or ('timeout', 'error')",
        lambda value: sum(_RETRY_ON[name] for name in _names(value)),
        from_abi,
        lambda text: tuple(text.split(",")),
    )


def _rate_of(text: str) -> tuple[int, int]:
    """Converts "500/s", "30/min" or "100/15min" to starts and seconds. Raises ValueError for other texts."""
    match = re.fullmatch(r"(\d+) ?/ ?(\d*) ?([a-z]+)", text)
    seconds = seconds_of(f"{match[2] or 1}{match[3]}") if match else 0.0
    if match is None or not (seconds.is_integer() and 1 <= seconds < 2**32 and 1 <= int(match[1]) < 2**32):
        raise ValueError(text)
    return int(match[1]), int(seconds)


def _rate() -> _Kind:
    def fits(value: Any) -> bool:
        try:
            return isinstance(value, str) and bool(_rate_of(value))
        except ValueError:
            return False

    def from_abi(numbers: tuple[int, int]) -> str:
        starts, seconds = numbers[0], numbers[1] or 1
        unit, length = next((unit, length) for unit, length in _RATE_UNITS.items() if seconds % length == 0)
        return f"{starts}/{seconds // length if seconds > length else ''}{unit}"

    return _Kind(fits, "a text such as '500/s', '30/min' or '100/15min'", _rate_of, from_abi, str)


_MOST_BY_DEFAULT = 1000
"""Of a limit that adapts."""


def _limit_of(value: int | str) -> tuple[int, int]:
    """Converts 100, "auto" or "auto:500" to the most attempts (0: not said) and whether the limit adapts (1 or 0).

    Raises ValueError for other texts."""
    if not isinstance(value, str):
        return value, 0
    match = re.fullmatch(r"auto(?::(\d+))?", value)
    if match is None or (match[1] is not None and not 1 <= int(match[1]) < 2**32):
        raise ValueError(value)
    return int(match[1] or 0), 1


def _limit() -> _Kind:
    def fits(value: Any) -> bool:
        if type(value) is int:
            return 1 <= value < 2**32
        try:
            return isinstance(value, str) and bool(_limit_of(value))
        except ValueError:
            return False

    def from_abi(numbers: tuple[int, int]) -> int | str:
        most, adaptive = numbers
        return most if adaptive != 1 else f"auto:{most}" if most else "auto"

    def from_text(text: str) -> int | str:
        return text if text.startswith("auto") else int(text)

    return _Kind(fits, f"a whole number from 1 to {2**32 - 1}, 'auto', or 'auto:500'", _limit_of, from_abi, from_text)


_RATE_UNITS = {"d": 86_400, "h": 3600, "min": 60, "s": 1}


OPTIONS: dict[str, tuple[str | tuple[str, ...], _Kind]] = {
    "ordered": ("order", _flag(1, 2)),
    "allowed_in_flight": (("allowed_in_flight", "adaptive"), _limit()),
    "timeout": ("timeout_ns", _SECONDS),
    "deadline": ("deadline_ns", _SECONDS),
    "rate": (("rate", "rate_seconds"), _rate()),
    "max_rows": ("max_rows", _whole(2**64 - 1)),
    "max_bytes": ("max_bytes", _whole(2**64 - 1)),
    "max_attempts": ("max_attempts", _whole(2**16 - 1)),
    "retry_on": ("retry_on", _retry_on()),
    "backoff": ("backoff_ns", _SECONDS),
    "max_backoff": ("max_backoff_ns", _SECONDS),
    "seed": ("seed", _whole(2**64 - 1)),
    "idempotent": ("idempotent", _flag(1, 2)),
    "max_stuck": ("max_stuck", _whole(2**32 - 1)),
    "batch_size": ("batch_size", _whole(2**32 - 1)),
    "max_wait": ("max_wait_ns", _SECONDS),
    "batch_bytes": ("batch_bytes", _whole(2**64 - 1)),
    "deterministic": ("deterministic", _flag(1, 2)),
    "cache": ("cache", _whole(2**64 - 1)),
    "cache_bytes": ("cache_bytes", _whole(2**64 - 1)),
    "cache_ttl": ("cache_ttl_ns", _SECONDS),
    "cache_errors": ("cache_errors", _flag(1, 2)),
}
"""Name -> field or fields of `arroyo_udf_options`, and the kind of its values."""


def check(name: str, value: object) -> str | None:
    """Says what is wrong with a choice and what to write instead; None if it is right."""
    if name not in OPTIONS:
        return f"has the unknown option {name!r}; there are {', '.join(OPTIONS)}"
    kind = OPTIONS[name][1]
    return None if kind.fits(value) else f"has {name}={value!r}; write {kind.write}"


def check_cache(chosen: Mapping[str, object]) -> str | None:
    """Says what is wrong with the choice of a cache, for a function with these options; None if it is right."""
    named = [name for name in ("cache", "cache_bytes", "cache_ttl", "cache_errors") if chosen.get(name)]
    if named and chosen.get("deterministic") is not True:
        return (
            f"has {named[0]}={chosen[named[0]]!r}, and a cache is for functions that return the same for equal "
            "arguments; if this one does, write deterministic=True, too, else leave it out"
        )
    if named and "cache" not in named:
        return f"has {named[0]}={chosen[named[0]]!r}, but no cache; write how many values it keeps, too: cache=100_000"
    return None


def parse(text: str) -> tuple[str, Any]:
    """Reads "name=value" into (name, value). Raises ValueError with the text of `check`."""
    name, _, word = text.partition("=")
    if name not in OPTIONS:
        raise ValueError(check(name, word))
    kind = OPTIONS[name][1]
    try:
        value = kind.from_text(word)
    except (ValueError, KeyError):
        raise ValueError(f"has {name}={word!r}; write {kind.write}") from None
    wrong = check(name, value)
    if wrong:
        raise ValueError(wrong)
    return name, value


def abi_fields(chosen: Mapping[str, Any]) -> dict[str, int]:
    """Converts a choice to fields of `arroyo_udf_options` and their numbers."""
    numbers: dict[str, int] = {}
    for name, value in chosen.items():
        field, kind = OPTIONS[name]
        if isinstance(field, str):
            numbers[field] = kind.to_abi(value)
        else:
            numbers |= zip(field, kind.to_abi(value), strict=True)
    return numbers


def _numbers(struct: Any, field: str | tuple[str, ...]) -> Any:
    """What an `arroyo_udf_options` has for an option; None: it is not chosen."""
    if isinstance(field, str):
        return getattr(struct, field) or None
    numbers = tuple(getattr(struct, part) for part in field)
    return numbers if any(numbers) else None


def from_abi(struct: Any) -> dict[str, Any]:
    """Reads the choice from an `arroyo_udf_options`; fields that are 0 are not chosen."""
    fields = ((name, kind, _numbers(struct, field)) for name, (field, kind) in OPTIONS.items())
    return {name: kind.from_abi(numbers) for name, kind, numbers in fields if numbers is not None}


def unknown_in(struct: Any) -> str | None:
    """Says which field of an `arroyo_udf_options` has a number without a meaning; None if there is none."""
    for name, (field, kind) in OPTIONS.items():
        if (numbers := _numbers(struct, field)) is not None:
            value = kind.from_abi(numbers)
            is_exact = isinstance(field, str) and kind is not _SECONDS
            if not kind.fits(value) or (is_exact and kind.to_abi(value) != numbers):
                return f"its option {name} is {numbers}, which has no meaning"
    return None
