"""Which operators and sinks follow which: a tree from the source, and often only a row.

A place is an operator's number; None is the source. An operator follows one that has a lower number.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from typing import Self


@dataclasses.dataclass(frozen=True)
class Routes:
    """before: whose rows each operator gets. sinks: whose rows each sink gets.

    gathering: operators that get the rows of all slices; they work in the first one, and so does all that follows them.
    """

    before: Sequence[int | None]
    sinks: Sequence[int | None]
    gathering: Collection[int] = ()

    @classmethod
    def in_a_row(cls, operators: int, sinks: int) -> Self:
        """One operator behind the other, and all sinks behind the last one."""
        places = [None, *range(operators)]
        return cls(places[:-1], [places[-1]] * sinks)

    def after(self, place: int | None) -> list[int]:
        """The operators that get the rows of `place`."""
        return [follower for follower, before in enumerate(self.before) if before == place]

    def sinks_after(self, place: int | None) -> list[int]:
        """The sinks that do."""
        return [sink for sink, before in enumerate(self.sinks) if before == place]

    def is_end(self, place: int | None) -> bool:
        """Whether rows go from `place` to sinks, or to several operators."""
        return len(self.after(place)) != 1 or bool(self.sinks_after(place))

    def is_behind_gathering(self, place: int | None) -> bool:
        """Whether the rows of `place`, or of those before it, were gathered: it gets rows in the first slice only."""
        before = None if place is None else self.before[place]
        return before is not None and (before in self.gathering or self.is_behind_gathering(before))
