"""The windows that a grouping asks for."""

from __future__ import annotations

import pyarrow as pa

from .grouping import Grouping
from .joining import Joined, Joining
from .panes import Windows
from .sessions import Sessions
from .spans import Session


def opened(grouping: Grouping | Joining, given: pa.Schema) -> Windows | Sessions | Joined:
    """given: of the rows. Raises WrongQuery."""
    if isinstance(grouping, Joining):
        return Joined(grouping, given)
    return (Sessions if isinstance(grouping.window, Session) else Windows)(grouping, given)
