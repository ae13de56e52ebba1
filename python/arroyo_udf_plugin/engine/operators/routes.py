"""Which operators and sinks follow which: a tree from the source, and often only a row.

A place is an operator's number; None is the source, and -1, -2, ... are further sources. An operator follows one that
has a lower number, or several of them, whose rows it merges.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection, Mapping, Sequence
from typing import Self

Place = int | None


def place_of_source(number: int) -> Place:
    """number: 0: the first source."""
    return -number or None


def number_of_source(place: Place) -> int:
    return -(place or 0)


def is_source(place: Place) -> bool:
    return place is None or place < 0


@dataclasses.dataclass(frozen=True)
class Routes:
    """before: whose rows each operator gets. sinks: whose rows each sink gets. beside: whose rows operators get, too.

    exchanging: operators in front of which slices exchange rows. gathering: those of them that need all rows together:
    they work in the first slice, and what follows them gets rows there.
    """

    before: Sequence[Place]
    sinks: Sequence[Place]
    exchanging: Collection[int] = ()
    gathering: Collection[int] = ()
    beside: Mapping[int, Sequence[Place]] = dataclasses.field(default_factory=dict)

    @classmethod
    def in_a_row(cls, operators: int, sinks: int) -> Self:
        """One operator behind the other, and all sinks behind the last one."""
        places = [None, *range(operators)]
        return cls(places[:-1], [places[-1]] * sinks)

    def inputs(self, place: int) -> list[Place]:
        """Whose rows an operator gets."""
        return [self.before[place], *self.beside.get(place, ())]

    def entries(self, place: Place) -> list[tuple[int, int]]:
        """The operators that get the rows of `place`, each with the number of its input."""
        return self._entries.get(place, [])

    @functools.cached_property
    def _entries(self) -> dict[Place, list[tuple[int, int]]]:
        entries: dict[Place, list[tuple[int, int]]] = {}
        for follower in range(len(self.before)):
            for number, before in enumerate(self.inputs(follower)):
                entries.setdefault(before, []).append((follower, number))
        return entries

    def after(self, place: Place) -> list[int]:
        """The operators that get the rows of `place`."""
        return self._after.get(place, [])

    @functools.cached_property
    def _after(self) -> dict[Place, list[int]]:
        return {
            place: list(dict.fromkeys(follower for follower, _ in entries)) for place, entries in self._entries.items()
        }

    def sinks_after(self, place: Place) -> list[int]:
        """The sinks that do."""
        return self._sinks_after.get(place, [])

    @functools.cached_property
    def _sinks_after(self) -> dict[Place, list[int]]:
        sinks: dict[Place, list[int]] = {}
        for sink, before in enumerate(self.sinks):
            sinks.setdefault(before, []).append(sink)
        return sinks

    def sources_of(self, place: Place) -> frozenset[int]:
        """The numbers of the sources whose rows come to `place`."""
        if place is None or place < 0:
            return frozenset([number_of_source(place)])
        return frozenset().union(*map(self.sources_of, self.inputs(place)))

    def is_end(self, place: Place) -> bool:
        """Whether rows go from `place` to sinks, or to several operators."""
        return len(self.entries(place)) != 1 or bool(self.sinks_after(place))

    def is_alone(self, place: Place) -> bool:
        """Whether it has rows in the first slice only."""
        if place is None or place < 0:
            return False
        if place in self.exchanging:
            return place in self.gathering
        return all(map(self.is_alone, self.inputs(place)))
