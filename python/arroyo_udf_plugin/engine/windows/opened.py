"""What keeps the rows of a grouping."""

from __future__ import annotations

import pyarrow as pa

from .collecting import Collected, Collecting
from .first_rows import First, FirstRows
from .interval_joining import IntervalJoined
from .join_query import Joining
from .joining import Joined
from .key_groups import Asked
from .look_back import LookBackRows, LookedBack
from .panes import WindowPanes
from .sessions import Sessions
from .spans import Session
from .storage import StorageLimits

OpenWindows = WindowPanes | Sessions | Joined | IntervalJoined | Collected | First | LookedBack


def opened(
    grouping: Asked,
    given: pa.Schema,
    limits: StorageLimits = StorageLimits(),  # noqa: B008 (frozen)
) -> OpenWindows:
    """given: of the rows. Raises WrongQuery."""
    if isinstance(grouping, Collecting):
        return Collected(grouping, given, limits)
    if isinstance(grouping, LookBackRows):
        return LookedBack(grouping, given, limits)
    if isinstance(grouping, FirstRows):
        return First(grouping, given, limits)
    if isinstance(grouping, Joining):
        return (Joined if grouping.within is None else IntervalJoined)(grouping, given, limits)
    return (Sessions if isinstance(grouping.window, Session) else WindowPanes)(grouping, given, limits)
