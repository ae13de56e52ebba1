"""What keeps the rows of a grouping."""

from __future__ import annotations

import pyarrow as pa

from .collecting import Collected, Collecting
from .first_rows import First, FirstRows
from .grouping import Grouping
from .interval_joining import IntervalJoined
from .join_query import Joining
from .joining import Joined
from .look_back import LookBack, LookedBack
from .panes import Windows
from .sessions import Sessions
from .spans import Session
from .storage import Limits


def opened(
    grouping: Grouping | Joining | Collecting | FirstRows | LookBack,
    given: pa.Schema,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
) -> Windows | Sessions | Joined | IntervalJoined | Collected | First | LookedBack:
    """given: of the rows. Raises WrongQuery."""
    if isinstance(grouping, Collecting):
        return Collected(grouping, given, limits)
    if isinstance(grouping, LookBack):
        return LookedBack(grouping, given, limits)
    if isinstance(grouping, FirstRows):
        return First(grouping, given, limits)
    if isinstance(grouping, Joining):
        return (Joined if grouping.within is None else IntervalJoined)(grouping, given, limits)
    return (Sessions if isinstance(grouping.window, Session) else Windows)(grouping, given, limits)
