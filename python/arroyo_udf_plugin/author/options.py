"""The options of async functions: one vocabulary for the decorator, the block at the head of a source, `start` and the
command line. What each means is the rule R4 to R8 of the contract; `OPTIONS` is the one table of them.

A choice is a dict from names to values; what is not chosen is as the next in line says: the host at `start`, the
decorator, the block, the default. Imports nothing heavy: every user's source imports this, also inside a plugin.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["OPTIONS", "Options", "abi_fields", "check", "from_abi", "parse"]

_FOREVER_NS = 2**64 - 1
_LONGEST = 1e9  # seconds
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_RETRY_ON = {"timeout": 1, "error": 2}


@dataclass(frozen=True)
class Options:
    """How an async function is run, where the host does not choose otherwise. Times are seconds; given as a text they
    have a unit: "2ms".

    ordered: results come out in the order of the rows, else as they end.
    allowed_in_flight: attempts that run at once.
    timeout: seconds for one attempt, from its start; `math.inf` for none.
    deadline: seconds for a row, waiting and all attempts; `math.inf` for none.
    max_rows, max_bytes: what may be held (waiting, running, not drained) before `send` finds no room.
    max_attempts: of a row. Default: 1 if ordered, 3 if not.
    retry_on: what gets a row another attempt: "timeout", "error", or both in a tuple.
    backoff, max_backoff: seconds of pause before the second attempt, doubled for each further one, and at most.
    seed: of the jitter, which takes up to a half off a pause. Default: other for each start.
    idempotent: a row may be tried again while an attempt that ignored its cancellation may still do something.
    max_stuck: so many attempts that ignore their cancellation end the runtime. Default: allowed_in_flight.
    batch_size: makes the function one that takes micro-batches: a list for each parameter, of at most so many rows, and
        a list of results. A call starts when so many rows wait,
    max_wait: or when one has waited so many seconds. Default: 0.002.
    batch_bytes: or when those that wait have so many bytes. Default: 1 MiB.
    """

    ordered: bool = True
    allowed_in_flight: int = 100
    timeout: float = 10.0
    deadline: float = math.inf
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

    def __post_init__(self) -> None:
        """Fills in the defaults that depend on other options."""
        for name, (_, kind) in OPTIONS.items():
            if kind is _SECONDS and isinstance(text := getattr(self, name), str):
                object.__setattr__(self, name, _duration(text))
        batched: dict[str, Any] = {"max_wait": 0.002, "batch_bytes": 1 << 20}
        dependent = (batched if self.batch_size else {}) | {
            "max_rows": max(4 * self.allowed_in_flight * (self.batch_size or 1), 16_384),
            "max_attempts": 1 if self.ordered else 3,
            "max_stuck": self.allowed_in_flight,
        }
        for name, value in dependent.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)


@dataclass(frozen=True)
class _Kind:
    """What an option's values are: how they are checked, written in the contract (0: not chosen), and read."""

    fits: Callable[[Any], bool]
    write: str
    """What to write, for a value that does not fit."""
    to_abi: Callable[[Any], int]
    from_abi: Callable[[int], Any]
    from_text: Callable[[str], Any]


def _whole(most: int) -> _Kind:
    fits = lambda value: type(value) is int and 1 <= value <= most  # noqa: E731
    return _Kind(fits, f"a whole number from 1 to {most}", int, int, int)


def _duration(text: str) -> float:
    """Seconds from a text: "2ms", "1.5 s", "0.5", "inf". Raises ValueError for others."""
    with_unit = re.fullmatch(r"(\d+(?:\.\d+)?) ?([a-z]+)", text)
    if with_unit is None or with_unit[2] not in _UNITS:
        return float(text)
    return float(with_unit[1]) * _UNITS[with_unit[2]]


def _seconds() -> _Kind:
    def fits(value: Any) -> bool:
        if isinstance(value, str):
            try:
                value = _duration(value)
            except ValueError:
                return False
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and (1e-9 <= value <= _LONGEST or value == math.inf)

    def to_abi(value: float | str) -> int:
        value = _duration(value) if isinstance(value, str) else value
        return _FOREVER_NS if value == math.inf else max(1, round(value * 1e9))

    def from_abi(value: int) -> float:
        return math.inf if value == _FOREVER_NS else value / 1e9

    return _Kind(fits, "seconds, more than 0 and at most 1e9, '10ms' or so, or math.inf", to_abi, from_abi, _duration)


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


OPTIONS: dict[str, tuple[str, _Kind]] = {
    "ordered": ("order", _flag(1, 2)),
    "allowed_in_flight": ("allowed_in_flight", _whole(2**32 - 1)),
    "timeout": ("timeout_ns", _SECONDS),
    "deadline": ("deadline_ns", _SECONDS),
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
}
"""Name -> field of `arroyo_udf_options`, and what its values are."""


def check(name: str, value: object) -> str | None:
    """What is wrong with a choice, and what to write instead; None if nothing is."""
    if name not in OPTIONS:
        return f"has the unknown option {name!r}; there are {', '.join(OPTIONS)}"
    kind = OPTIONS[name][1]
    return None if kind.fits(value) else f"has {name}={value!r}; write {kind.write}"


def parse(text: str) -> tuple[str, Any]:
    """A choice from "name=value". Raises ValueError with what is wrong, as `check` says it."""
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
    """A choice as fields of `arroyo_udf_options`."""
    return {OPTIONS[name][0]: OPTIONS[name][1].to_abi(value) for name, value in chosen.items()}


def from_abi(struct: Any) -> dict[str, Any]:
    """The choice that an `arroyo_udf_options` holds."""
    fields = ((name, kind, getattr(struct, field)) for name, (field, kind) in OPTIONS.items())
    return {name: kind.from_abi(value) for name, kind, value in fields if value}
