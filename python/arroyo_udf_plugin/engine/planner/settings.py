"""The values of SET, checked when they are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal

from ...author.options import bytes_of
from ...errors import nearest
from ...host.isolation import ISOLATIONS, MOST_WORKERS
from ...host.policy import ACTIONS
from ..connectors.described import Output
from ..connectors.table_options import period_seconds
from ..pipeline.description import Checkpoints
from ..pipeline.kinds.kind import DescribedOperator, WaitingOperator
from ..pipeline.lines import Key
from .flow import FlowSettings
from .statements import CreateTable, Set
from .text import Wrong

_WORDS: Mapping[str, Sequence[str]] = {
    "on_error": ACTIONS,
    "on_timeout": ACTIONS,
    "on_late": ("drop", "dead_letter"),
    "isolation": ISOLATIONS,
}
_MEASURES: Mapping[str, tuple[Callable[[str], float], str]] = {
    "memory_limit": (bytes_of, "a size above 0, such as '512MiB' or '2GB'"),
    "disk_limit": (bytes_of, "a size above 0, such as '100GiB'"),
    "allowed_lateness": (period_seconds, "a time above 0, such as '10 minutes'"),
    "max_drift": (period_seconds, "a time above 0, such as '10 minutes'"),
    "state_ttl": (period_seconds, "a time above 0, such as '1 hour' or '7 days'"),
    "updating_ttl": (period_seconds, "a time above 0, such as '1 hour' or '7 days'"),
    "checkpoint_interval": (period_seconds, "a time above 0, such as '10 seconds' or '500ms'"),
    "checkpoint_rows": (int, "a whole number above 0"),
    "retained_checkpoints": (int, "a whole number above 0"),
}
_KNOWN = ("on_error", "on_timeout", "on_late", "dead_letters", "isolation", "workers", *_MEASURES)


class ChosenSettings:
    """The settings of a file."""

    def __init__(self) -> None:
        self._set: dict[str, Set] = {}
        self._values: dict[str, Any] = {}

    def take(self, setting: Set) -> None:
        """Raises Wrong."""
        self._values[setting.name] = _value(setting)
        self._set[setting.name] = setting

    def of_operators(self) -> FlowSettings:
        known = {field.name for field in fields(FlowSettings)}
        chosen = {name: value for name, value in self._values.items() if name in known}
        on_error = chosen.get("on_error", "fail")
        return FlowSettings(**chosen, on_row="fail" if on_error == "null" else on_error)

    def checkpoints(self) -> Checkpoints | None:
        """How often they are and how many are kept, if a file says so."""
        names = {"every": "checkpoint_interval", "every_rows": "checkpoint_rows", "retain": "retained_checkpoints"}
        values = {key: self._values[name] for key, name in names.items() if name in self._values}
        return Checkpoints(**values) if values else None

    def letters(self) -> Output | None:
        from ..connectors.parts import Parts

        place = self._values.get("dead_letters")
        return None if place is None else Parts(path=place)

    def check_letters(self, tables: Iterable[CreateTable]) -> Iterator[Wrong]:
        """A policy dead_letter and a place for dead letters belong together."""
        wanting = [setting.at for setting in self._set.values() if setting.value == "dead_letter"]
        options = [option for table in tables if (option := table.options.get("bad_data")) is not None]
        wanting += [option.at for option in options if option.value == "dead_letter"]
        place = self._set.get("dead_letters")
        if wanting and place is None:
            yield Wrong("dead letters need a place: write SET dead_letters = 'folder'", wanting[0])
        if place is not None and not wanting:
            yield Wrong("nothing sends rows here: write SET on_error = 'dead_letter'", place.at)

    def check_windows(self, operators: Iterable[DescribedOperator]) -> Iterator[Wrong]:
        """What is said of windows is of no use without them."""
        if not any(isinstance(operator, WaitingOperator) for operator in operators):
            for name in ("on_late", "allowed_lateness", "max_drift"):
                if (setting := self._set.get(name)) is not None:
                    yield Wrong(f"{name} is for windows, and no query has any: leave it out", setting.at)

    @property
    def places(self) -> Mapping[Key, int]:
        """As of `Compiled`."""
        letters = self._set.get("dead_letters")
        return {} if letters is None else {("dead_letters",): letters.at}


def _value(setting: Set) -> Any:
    name, text = setting.name, setting.value
    if name not in _KNOWN:
        raise Wrong(f"there is no setting {name}: {nearest(name, _KNOWN)}", setting.at)
    if name in _WORDS and text not in _WORDS[name]:
        raise Wrong(f"{name} = '{text}': {nearest(text, _WORDS[name])}", setting.at)
    if name == "workers":
        if (workers := _workers(text)) is None:
            raise Wrong(f"workers = {text}: write a number from 1 to {MOST_WORKERS}, or auto", setting.at)
        return workers
    if name not in _MEASURES:
        return text
    read, example = _MEASURES[name]
    if (value := _measured(read, text)) is None:
        raise Wrong(f"{name} = '{text}': write {example}", setting.at)
    return value


def _workers(text: str) -> int | Literal["auto"] | None:
    """None: it is no number of workers."""
    if text == "auto":
        return "auto"
    return int(text) if text.isdecimal() and 1 <= int(text) <= MOST_WORKERS else None


def _measured(read: Callable[[str], float], text: str) -> float | None:
    """None: it is none, or not above 0."""
    try:
        value = read(text)
    except ValueError:
        return None
    return value if 0 < value < math.inf else None
