"""What keeps the rows of a grouping."""

from __future__ import annotations

import pyarrow as pa

from .collecting import Collected, Collecting
from .first_rows import First, FirstRows
from .followed_rows import TableFollower
from .grouping import GroupingPlan
from .interval_joining import IntervalJoined
from .join_query import Joining
from .joining import Joined
from .key_groups import Asked
from .look_back import LookBackRows, LookedBack
from .net_changes import NetChanges
from .panes import WindowPanes
from .recounted_keys import RecountedKeys
from .sessions import Sessions
from .spans import Session
from .storage import StorageLimits
from .updated_join import UpdatedJoin
from .updated_keys import UpdatedKeys
from .updating_rows import FollowedRows, JoiningRows, NetRows, UpdatingRows

Changes = UpdatedKeys | RecountedKeys | TableFollower | NetChanges | UpdatedJoin
OpenWindows = WindowPanes | Sessions | Joined | IntervalJoined | Collected | First | LookedBack | Changes


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
    if isinstance(grouping, UpdatingRows):
        takes_off = not grouping.is_signed or GroupingPlan(grouping, given, []).in_parts
        return (UpdatedKeys if takes_off else RecountedKeys)(grouping, given, limits)
    if isinstance(grouping, FollowedRows):
        return TableFollower(grouping, given, limits)
    if isinstance(grouping, NetRows):
        return NetChanges(grouping, given, limits)
    if isinstance(grouping, JoiningRows):
        return UpdatedJoin(grouping, given, limits)
    if isinstance(grouping, Joining):
        return (Joined if grouping.within is None else IntervalJoined)(grouping, given, limits)
    return (Sessions if isinstance(grouping.window, Session) else WindowPanes)(grouping, given, limits)
